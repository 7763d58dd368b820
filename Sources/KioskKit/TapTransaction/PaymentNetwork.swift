import EMVContactless
import SmartCard

/// A network whose cards are accepted.
public enum PaymentNetwork: String, CaseIterable, Sendable, Hashable {
    case visa
    case mastercard
    case americanExpress
    case discover
    case jcb
    case unionPay
    case interac
    case girocard

    /// The scheme of the network's applications, named as in `KnownApplication`.
    var scheme: String {
        switch self {
        case .visa: "Visa"
        case .mastercard: "Mastercard"
        case .americanExpress: "American Express"
        case .discover: "Discover"
        case .jcb: "JCB"
        case .unionPay: "UnionPay"
        case .interac: "Interac"
        case .girocard: "girocard"
        }
    }

    func has(_ application: AID) -> Bool { KnownApplication.scheme(of: application) == scheme }
}
