import SmartCard

/// Whose cards are accepted.
public enum PaymentNetwork: String, CaseIterable, Sendable, Hashable {
    case visa
    case mastercard
    case americanExpress
    case discover
    case jcb
    case unionPay
    case interac
    case girocard

    /// The registered application provider identifiers that its applications' names begin with (ISO/IEC 7816-5).
    var providers: [[UInt8]] {
        switch self {
        case .visa: [[0xA0, 0x00, 0x00, 0x00, 0x03]]
        case .mastercard: [[0xA0, 0x00, 0x00, 0x00, 0x04]]
        case .americanExpress: [[0xA0, 0x00, 0x00, 0x00, 0x25]]
        case .discover: [[0xA0, 0x00, 0x00, 0x01, 0x52], [0xA0, 0x00, 0x00, 0x03, 0x24]]
        case .jcb: [[0xA0, 0x00, 0x00, 0x00, 0x65]]
        case .unionPay: [[0xA0, 0x00, 0x00, 0x03, 0x33]]
        case .interac: [[0xA0, 0x00, 0x00, 0x02, 0x77]]
        case .girocard: [[0xA0, 0x00, 0x00, 0x03, 0x59]]
        }
    }

    func has(_ application: AID) -> Bool { providers.contains { application.bytes.starts(with: $0) } }
}
