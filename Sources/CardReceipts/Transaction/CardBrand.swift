import EMVContactless
import SmartCard

/// The card network.
public enum CardBrand: String, Codable, CaseIterable, Hashable, Sendable {
    case visa, amex, masterCard, discover, jcb, dinersClub, interac, unionPay, eftposAu, maestro, dankort, mir, ruPay,
        troy
    case unknown

    /// The network's name for itself, the same in every language; nil for ``unknown``.
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
        case .maestro: "Maestro"
        case .dankort: "Dankort"
        case .mir: "Mir"
        case .ruPay: "RuPay"
        case .troy: "Troy"
        case .unknown: nil
        }
    }
}

extension CardBrand {
    /// Finds the brand by the network's name for itself, ``name``; nil for other names.
    public init?(name: String) {
        guard let brand = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = brand
    }

    /// Finds the brand by the scheme for which an AID is registered (`KnownApplication`); ``unknown`` for other AIDs.
    ///
    /// - Parameter aid: hexadecimal.
    package init(applicationIdentifier aid: String) {
        let scheme = (try? [UInt8](hex: aid)).flatMap(AID.init).flatMap(KnownApplication.scheme(of:))
        self = scheme.flatMap(CardBrand.init(name:)) ?? .unknown
    }
}
