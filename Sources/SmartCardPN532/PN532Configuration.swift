extension PN532 {
    /// The flags of SetParameters (UM0701-02, 7.2.9).
    public struct Parameters: OptionSet, Hashable, Sendable {
        public var rawValue: UInt8

        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let usesNAD = Parameters(rawValue: 0x01)
        public static let usesDID = Parameters(rawValue: 0x02)
        public static let automaticATRResponse = Parameters(rawValue: 0x04)
        /// Sends RATS to listed type A cards.
        public static let automaticRATS = Parameters(rawValue: 0x10)
        public static let emulatesISO14443Part4 = Parameters(rawValue: 0x20)
        public static let noPreambleAndPostamble = Parameters(rawValue: 0x40)

        /// The value after a reset.
        public static let initial: Parameters = [.automaticATRResponse, .automaticRATS]
    }

    /// A waiting time in the chip's coding: n for 100 µs · 2ⁿ⁻¹, 0 for none (UM0701-02, 7.3.1).
    public struct WaitingTime: RawRepresentable, Hashable, Sendable {
        public let rawValue: UInt8

        /// Takes any code.  Those above `10`, 3.28 s, are reserved; the chip decides about them.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// The shortest waiting time of at least `duration`, at most 3.28 s.
        public init(atLeast duration: Duration) {
            rawValue = (1...16).first { Self(rawValue: $0).duration.map { $0 >= duration } ?? false } ?? 16
        }

        /// The time; nil for no limit, and for reserved codes.
        public var duration: Duration? {
            (1...16).contains(rawValue) ? .microseconds(100 << Int(rawValue - 1)) : nil
        }
    }

    /// An item of RFConfiguration (UM0701-02, 7.3.1).
    public enum RFConfiguration: Hashable, Sendable {
        /// The field; `avoidsCollision` switches it on only if there is no other field.
        case field(isOn: Bool, avoidsCollision: Bool = false)
        /// The time limits for ATR_RES, and for the answer to ``PN532/communicateThrough(_:)``.
        case timings(atr: WaitingTime, exchange: WaitingTime)
        /// The number of repetitions of a command that a card did not understand.
        case exchangeRetries(UInt8)
        /// The numbers of retries, `FF` for no limit; `passiveActivation` applies to listing targets.
        case retries(atr: UInt8, psl: UInt8, passiveActivation: UInt8)
        /// Any other item: the analog settings.
        case item(UInt8, [UInt8])

        /// The retries after a reset.
        public static let initialRetries = RFConfiguration.retries(atr: 0xFF, psl: 0x01, passiveActivation: 0xFF)

        /// The timings after a reset: 102.4 and 51.2 ms.
        static let initialTimings = RFConfiguration.timings(
            atr: WaitingTime(rawValue: 0x0B), exchange: WaitingTime(rawValue: 0x0A))

        var bytes: [UInt8] {
            switch self {
            case .field(let isOn, let avoidsCollision): [0x01, (isOn ? 0x01 : 0x00) | (avoidsCollision ? 0x02 : 0x00)]
            case .timings(let atr, let exchange): [0x02, 0x00, atr.rawValue, exchange.rawValue]
            case .exchangeRetries(let count): [0x04, count]
            case .retries(let atr, let psl, let passiveActivation): [0x05, atr, psl, passiveActivation]
            case .item(let number, let data): [number] + data
            }
        }
    }
}
