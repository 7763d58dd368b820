import EMVContactless
import SmartCard

/// The network of a card.
public enum CardBrand: String, Codable, CaseIterable, Hashable, Sendable {
    case visa, amex, masterCard, discover, jcb, dinersClub, interac, unionPay, eftposAu, unknown

    /// The network's own name, the same in every language; nil for ``unknown``.
    public var name: String? {
        switch self {
        case .visa: "Visa"
        case .amex: "American Express"
        case .masterCard: "Mastercard"
        case .discover: "Discover"
        case .jcb: "JCB"
        case .dinersClub: "Diners Club"
        case .interac: "Interac"
        case .unionPay: "UnionPay"
        case .eftposAu: "eftpos"
        case .unknown: nil
        }
    }
}

extension CardBrand {
    /// By the scheme that an AID is registered for (`KnownApplication`); ``unknown`` for others.
    ///
    /// - Parameter aid: hexadecimal.
    init(applicationIdentifier aid: String) {
        let scheme = (try? [UInt8](hex: aid)).flatMap(AID.init).flatMap(KnownApplication.scheme(of:))
        self = scheme.flatMap { name in Self.allCases.first { $0.name == name } } ?? .unknown
    }
}
