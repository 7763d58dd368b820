import SmartCard

/// A frame of enhanced contactless polling, which tells phones what a terminal is for before they answer.
///
/// A reader sends it between the polls of a technology, with CRC_A or CRC_B behind it; nothing answers it.  A phone that knows
/// the frame shows a pass, a card for payment, or both (kormax, `apple-enhanced-contactless-polling`).
public struct PollingFrame: Hashable, Sendable {
    /// The frame's bytes, without CRC.
    public let bytes: [UInt8]

    /// The first byte of every frame.
    public static let header: UInt8 = 0x6A

    // MARK: Version 1: three bytes of terminal capabilities

    /// Creates a frame of version 1.
    ///
    /// - Parameter capabilities: the terminal's: 3 bytes.
    /// - Returns: nil for another number of bytes.
    public init?(capabilities: [UInt8]) {
        guard capabilities.count == 3 else { return nil }
        bytes = [Self.header, 0x01] + capabilities
    }

    private init(unchecked payload: [UInt8]) { bytes = [Self.header] + payload }

    /// Passes if the phone has them, else payment.
    public static let passOrPayment = PollingFrame(unchecked: [0x01, 0x00, 0x00, 0x00])
    /// Passes and payment in one tap.
    public static let passAndPayment = PollingFrame(unchecked: [0x01, 0x00, 0x00, 0x01])
    /// Passes without payment.
    public static let passOnly = PollingFrame(unchecked: [0x01, 0x00, 0x00, 0x02])
    /// Payment without passes.
    public static let payment = PollingFrame(unchecked: [0x01, 0x00, 0x00, 0x03])
    /// A terminal that a phone does not react to.
    public static let ignore = PollingFrame(unchecked: [0x01, 0xCF, 0x00, 0x00])

    /// The frame for a tap's purpose.
    public init(for mode: PassReading.Mode) {
        self =
            switch mode {
            case .passOrPayment: .passOrPayment
            case .passAndPayment: .passAndPayment
            case .passOnly: .passOnly
            case .paymentOnly: .payment
            }
    }

    // MARK: Version 2: configuration, type, subtype, data

    /// The kind of terminal of a frame of version 2.
    public enum TerminalType: UInt8, Hashable, Sendable {
        case special = 0x00
        case transit = 0x01
        case access = 0x02
        case identity = 0x03
        case airDrop = 0x05
    }

    /// Flags in the configuration byte of a frame of version 2; its low nibble is the number of bytes of data.
    public struct Presentment: OptionSet, Hashable, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// b7: the phone presents a card by itself.
        public static let automatic = Presentment(rawValue: 0x80)
        /// b6: its holder need not authenticate.
        public static let withoutAuthentication = Presentment(rawValue: 0x40)
    }

    /// Creates a frame of version 2.
    ///
    /// - Parameters:
    ///   - type: the kind of terminal that polls.
    ///   - subtype: the kind of terminal within `type`.
    ///   - presentment: how the phone presents its card; no other bits than those of the two flags.
    ///   - data: at most 15 bytes, as `type` has them.
    /// - Returns: nil for more data, or other bits.
    public init?(_ type: TerminalType, subtype: UInt8 = 0x00, presentment: Presentment, data: [UInt8]) {
        guard data.count <= 0x0F, presentment.rawValue & 0x3F == 0 else { return nil }
        let configuration = presentment.rawValue | UInt8(truncatingIfNeeded: data.count)
        self.init(unchecked: [0x02, configuration, type.rawValue, subtype] + data)
    }

    /// Identity documents (ISO/IEC 18013-5).
    public static let identity = PollingFrame(unchecked: [0x02, 0x81, 0x03, 0x00, 0x00])

    /// The card networks that a gate takes for payment where a phone has no card of the operator.
    public struct Networks: OptionSet, Hashable, Sendable {
        /// The mask's first byte in the low byte, its second in the high one.
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        public static let americanExpress = Networks(rawValue: 0x0001)
        public static let discover = Networks(rawValue: 0x0002)
        public static let maestro = Networks(rawValue: 0x0008)
        public static let mastercard = Networks(rawValue: 0x0010)
        public static let visa = Networks(rawValue: 0x0020)
        public static let electron = Networks(rawValue: 0x0040)
        public static let jcb = Networks(rawValue: 0x0100)
    }

    /// A gate of public transport, at which a phone in express mode pays without its holder.
    ///
    /// - Parameters:
    ///   - operatorCode: the terminal capability identifier of the operator.
    ///   - networks: the mask of card networks.
    public static func transit(operatorCode: (UInt8, UInt8, UInt8), networks: Networks) -> PollingFrame {
        let mask = [UInt8(truncatingIfNeeded: networks.rawValue), UInt8(truncatingIfNeeded: networks.rawValue >> 8)]
        let data = [operatorCode.0, operatorCode.1, operatorCode.2] + mask + [0x00, 0x00, 0x00]
        let presentment: Presentment = [.automatic, .withoutAuthentication]
        return PollingFrame(
            unchecked: [0x02, presentment.rawValue | UInt8(truncatingIfNeeded: data.count), 0x01, 0x00] + data)
    }

    /// Transport for London, as its gates send it (sniffed by proxmark3).
    public static let transportForLondon = transit(
        operatorCode: (0x03, 0x00, 0x02), networks: [.electron, .visa, .mastercard, .maestro, .americanExpress])
}

extension PollingFrame: CustomStringConvertible {
    public var description: String { bytes.hex(separator: " ") }
}
