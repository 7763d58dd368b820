import SmartCard

/// A card network, by its identifier in configurations and messages.  A payment service may name networks that this
/// package does not know.
public struct CardNetwork: RawRepresentable, Hashable, Codable, Sendable, CodingKeyRepresentable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    public static let visa = CardNetwork(rawValue: "visa")
    public static let mastercard = CardNetwork(rawValue: "mastercard")
    public static let amex = CardNetwork(rawValue: "amex")
    public static let diners = CardNetwork(rawValue: "diners")
    public static let discover = CardNetwork(rawValue: "discover")
    public static let jcb = CardNetwork(rawValue: "jcb")
    public static let unionPay = CardNetwork(rawValue: "unionpay")
    public static let maestro = CardNetwork(rawValue: "maestro")
    public static let dankort = CardNetwork(rawValue: "dankort")
    public static let mir = CardNetwork(rawValue: "mir")
    public static let ruPay = CardNetwork(rawValue: "rupay")
    public static let troy = CardNetwork(rawValue: "troy")

    /// The networks whose numbers this package recognizes, in the order of its table.
    public static let known = IssuerNetwork.all.map { CardNetwork(rawValue: $0.id) }

    /// The facts about the network's numbers; nil for a network that this package does not know.
    var facts: IssuerNetwork? { IssuerNetwork.all.first { $0.id == rawValue } }

    /// The network's name for itself, the same in every language; its identifier if this package does not know it.
    public var name: String { facts?.name ?? rawValue }

    /// The number of digits of a security code; 3 for a network that this package does not know.
    public var securityCodeLength: Int { facts?.securityCodeLength ?? 3 }

    /// The lengths of account numbers in digits; 13 to 19 for a network that this package does not know.
    public var numberLengths: [Int] { facts?.lengths ?? Array(13...19) }
}

extension CardNetwork: CustomStringConvertible {
    public var description: String { rawValue }
}
