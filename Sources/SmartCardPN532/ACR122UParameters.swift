import SmartCard

/// The PICC operating parameter of an ACR122U (ACS API v2.04, 6.5): `FF` when the reader is plugged in.
public struct PICCOperatingParameter: OptionSet, Hashable, Sendable {
    public var rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The value when the reader is plugged in.
    public static let initial = PICCOperatingParameter(rawValue: 0xFF)

    public static let typeA = PICCOperatingParameter(rawValue: 0x01)
    public static let typeB = PICCOperatingParameter(rawValue: 0x02)
    public static let topaz = PICCOperatingParameter(rawValue: 0x04)
    public static let felica212 = PICCOperatingParameter(rawValue: 0x08)
    public static let felica424 = PICCOperatingParameter(rawValue: 0x10)
    /// Polls every 250 ms instead of every 500 ms.
    public static let fastPolling = PICCOperatingParameter(rawValue: 0x20)
    /// Sends RATS to type A cards, which activates ISO/IEC 14443-4.
    public static let automaticATS = PICCOperatingParameter(rawValue: 0x40)
    /// Polls for cards and reports them.
    public static let automaticPolling = PICCOperatingParameter(rawValue: 0x80)
}

/// The time that an ACR122U waits for a card (ACS API v2.04, 6.6).
public enum ReaderTimeout: Hashable, Sendable {
    /// No check.
    case none
    /// A multiple of five seconds, 1 to 254; other values become the nearest bound.
    case fiveSeconds(times: Int)
    /// No limit.
    case unlimited

    var parameter: UInt8 {
        switch self {
        case .none: 0x00
        case .fiveSeconds(let times): UInt8(min(max(times, 1), 254))
        case .unlimited: 0xFF
        }
    }
}

/// The lights of an ACR122U.
public struct Lights: OptionSet, Hashable, Sendable {
    public var rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let red = Lights(rawValue: 0x01)
    public static let green = Lights(rawValue: 0x02)
}

/// The control of the lights: byte P2 of the command (ACS API v2.04, 6.2).
public struct LightControl: OptionSet, Hashable, Sendable {
    public var rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// On at the end, if updated.
    public static let finalRed = LightControl(rawValue: 0x01)
    public static let finalGreen = LightControl(rawValue: 0x02)
    /// Set to its final state; otherwise unchanged.
    public static let updateRed = LightControl(rawValue: 0x04)
    public static let updateGreen = LightControl(rawValue: 0x08)
    /// Begins with on, if it blinks.
    public static let startRed = LightControl(rawValue: 0x10)
    public static let startGreen = LightControl(rawValue: 0x20)
    public static let blinkRed = LightControl(rawValue: 0x40)
    public static let blinkGreen = LightControl(rawValue: 0x80)

    /// Returns the control that sets both lights to these final states.
    public static func steady(red: Bool = false, green: Bool = false) -> LightControl {
        var control: LightControl = [.updateRed, .updateGreen]
        if red { control.insert(.finalRed) }
        if green { control.insert(.finalGreen) }
        return control
    }
}

/// The timing of blinking lights and the buzzer (ACS API v2.04, 6.2).
public struct Blinking: Hashable, Sendable {
    public enum Buzzer: UInt8, Hashable, Sendable {
        case silent = 0x00
        /// During T1, the first part of each blink.
        case whileOn = 0x01
        /// During T2, the second part.
        case whileOff = 0x02
        case always = 0x03
    }

    /// T1, the first part of a blink, in units of 100 ms.
    public var on: UInt8
    /// T2, the second part of a blink, in units of 100 ms.
    public var off: UInt8
    public var times: UInt8
    public var buzzer: Buzzer

    public init(on: UInt8, off: UInt8, times: UInt8, buzzer: Buzzer = .silent) {
        self.on = on
        self.off = off
        self.times = times
        self.buzzer = buzzer
    }

    /// The time for which the reader is busy.
    public var duration: Duration { .milliseconds(100 * Int(times) * (Int(on) + Int(off))) }
}

/// The status word of an ACR122U's own command.  Unknown values print as numbers.
public struct ACR122UStatus: RawRepresentable, Error, Hashable, Sendable, ExpressibleByIntegerLiteral {
    public let rawValue: UInt16

    public init(rawValue: UInt16) { self.rawValue = rawValue }
    public init(integerLiteral value: UInt16) { rawValue = value }
    init(_ sw1: UInt8, _ sw2: UInt8) { rawValue = UInt16(sw1) << 8 | UInt16(sw2) }

    /// Returns nil unless there are two bytes.
    init?(_ bytes: some Collection<UInt8>) {
        let b = Array(bytes)
        guard b.count == 2 else { return nil }
        self.init(b[0], b[1])
    }

    public static let success: ACR122UStatus = 0x9000
    /// The operation failed.
    public static let failed: ACR122UStatus = 0x6300
    /// The PN532 does not respond.
    public static let timeout: ACR122UStatus = 0x6301
    /// The checksum of the card's answer is wrong.
    public static let wrongChecksum: ACR122UStatus = 0x6327
    /// The PN532 rejects the command.
    public static let rejected: ACR122UStatus = 0x637F

    private static let table: [ACR122UStatus: (name: String, kind: CardError.Kind)] = [
        .success: ("success", .other),
        .failed: ("the operation failed", .notTransacted),
        .timeout: ("the PN532 does not respond", .noAnswer),
        .wrongChecksum: ("the checksum of the card's answer is wrong", .notTransacted),
        .rejected: ("the PN532 rejects the command", .unsupported),
        0x6A81: ("not supported", .unsupported),
    ]

    var error: CardError { CardError(Self.table[self]?.kind ?? .malformedAnswer, cause: self) }
}

extension ACR122UStatus: CustomStringConvertible {
    /// `637F the PN532 rejects the command`
    public var description: String {
        [UInt8(truncatingIfNeeded: rawValue >> 8), UInt8(truncatingIfNeeded: rawValue)].hex
            + (Self.table[self].map { " " + $0.name } ?? "")
    }
}
