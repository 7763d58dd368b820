/// A fault of a reader or its card, which can be switched on and off at any time.
///
/// It is written as `NAME` or `NAME=ARGUMENT`, as on a command line: `slow=250`.
public struct SoftwareReaderFault: Hashable, Sendable {
    /// The kinds of fault.  The raw value is the name on command lines and does not change.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        case muteCard = "mute-card"
        case emptyAnswers = "empty-answers"
        case oneByteAnswers = "one-byte-answers"
        case statusOnlyAnswers = "status-only-answers"
        case brokenATR = "broken-atr"
        case fieldLoss = "field-loss"
        case staleFrame = "stale-frame"
        case sequenceBehind = "sequence-behind"
        case wrongSequence = "wrong-sequence"
        case slow = "slow"
        case timeExtension = "time-extension"
        case truncatedAnswers = "truncated-answers"
        case oversizedLength = "oversized-length"
        case garbage = "garbage"
        case unplug = "unplug"
        case hung = "hung"
    }

    public let kind: Kind
    /// The count, duration or position that ``Kind/argument`` describes; 0 for kinds without an argument.
    public let argument: Int

    /// - Parameters:
    ///   - kind: the fault.
    ///   - argument: nil for the default.  Negative values count as 0.
    public init(_ kind: Kind, _ argument: Int? = nil) {
        self.kind = kind
        self.argument = max(argument ?? kind.argument?.usual ?? 0, 0)
    }

    /// Parses `NAME` or `NAME=ARGUMENT`.
    ///
    /// - Throws: ``SoftwareReaderFaultError`` for an unknown name, or an invalid or unexpected argument.
    public init(_ text: some StringProtocol) throws(SoftwareReaderFaultError) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts.first ?? "")
        guard let kind = Kind(rawValue: name) else { throw .unknownName(name) }
        guard parts.count > 1 else {
            self.init(kind)
            return
        }
        guard kind.argument != nil else { throw .unexpectedArgument(kind) }
        guard let argument = Int(parts[1]), argument >= 0 else { throw .badArgument(kind, String(parts[1])) }
        self.init(kind, argument)
    }
}

extension SoftwareReaderFault: CustomStringConvertible {
    /// The command-line spelling: `slow=250`.
    public var description: String { kind.rawValue + (kind.argument == nil ? "" : "=\(argument)") }
}

extension SoftwareReaderFault.Kind {
    /// The name of the argument and its default; nil for kinds without an argument.
    public var argument: (name: String, usual: Int)? { entry.argument }
    /// One line for a list of all faults.
    public var summary: String { entry.summary }

    private var entry: (argument: (name: String, usual: Int)?, summary: String) {
        switch self {
        case .muteCard: (nil, "the card answers neither its reset nor any command")
        case .emptyAnswers: (nil, "every APDU is answered by an empty block, as when the card is silent")
        case .oneByteAnswers: (nil, "of every response APDU only the first byte comes")
        case .statusOnlyAnswers: (nil, "of every response APDU only the status word comes")
        case .brokenATR: (nil, "the ATR is 33 bytes of FF")
        case .fieldLoss: (("APDUS", 0), "the card leaves the field after so many APDUs")
        case .staleFrame: (nil, "the first answer comes twice, and every later one is read one command late")
        case .sequenceBehind: (nil, "answers to messages over 64 bytes bear the bSeq before theirs")
        case .wrongSequence: (nil, "every answer bears a bSeq that is not its own")
        case .slow: (("MILLISECONDS", 1000), "APDUs and power-up take so much longer")
        case .timeExtension:
            (("COUNT", 3), "before each answer to an APDU come so many requests for time, 100 ms apart")
        case .truncatedAnswers: (("BYTES", 1), "answers to APDUs end so many bytes too early")
        case .oversizedLength: (("LENGTH", 0x7FFF_FFFF), "answers to APDUs claim so many bytes")
        case .garbage: (("SEED", 1), "answers to APDUs are pseudo-random bytes")
        case .hung: (("RESETS", 1), "the reader answers nothing until it has been reset so often over USB")
        case .unplug: (("TRANSFER", 1), "the reader leaves the bus at this USB transfer, counted from 1")
        }
    }
}

/// Text that does not name a fault.
public enum SoftwareReaderFaultError: Error, Hashable, Sendable {
    case unknownName(String)
    case unexpectedArgument(SoftwareReaderFault.Kind)
    case badArgument(SoftwareReaderFault.Kind, String)
}

extension SoftwareReaderFaultError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .unknownName(let name):
            "no fault is called '\(name)'; there are "
                + SoftwareReaderFault.Kind.allCases.map(\.rawValue).joined(separator: ", ")
        case .unexpectedArgument(let kind): "\(kind.rawValue) takes no argument"
        case .badArgument(let kind, let text):
            "\(kind.rawValue) takes \(kind.argument?.name ?? "no argument"), a number from 0 on, not '\(text)'"
        }
    }
}

/// The active faults and their progress.
struct SoftwareReaderFaults {
    /// The active faults.  Setting them restarts their counts.
    var list: [SoftwareReaderFault] = [] {
        didSet {
            arguments = Dictionary(list.map { ($0.kind, $0.argument) }, uniquingKeysWith: { $1 })
            (apdus, transfers, firstAnswerSent) = (0, 0, false)
            generator = UInt64(truncatingIfNeeded: arguments[.garbage] ?? 0)
        }
    }
    private var arguments: [SoftwareReaderFault.Kind: Int] = [:]
    private var apdus = 0
    private var transfers = 0
    private var firstAnswerSent = false
    private var generator: UInt64 = 0

    subscript(kind: SoftwareReaderFault.Kind) -> Bool { arguments[kind] != nil }

    /// Resets the reader over USB.  A reader that hangs may then answer.
    mutating func reset() {
        guard let due = arguments[.hung] else { return }
        arguments[.hung] = due > 1 ? due - 1 : nil
    }

    /// Counts a USB transfer; returns true if the reader leaves the bus at it.
    mutating func unplugsAtThisTransfer() -> Bool {
        guard let due = arguments[.unplug] else { return false }
        transfers += 1
        return transfers >= due
    }

    /// Counts an exchange with a card; returns true if the card has left the field by then.
    mutating func losesFieldAtThisAPDU() -> Bool {
        guard let most = arguments[.fieldLoss] else { return false }
        apdus += 1
        return apdus > most
    }

    /// Returns the part of a card's response that the reader receives.
    func response(_ response: [UInt8]) -> [UInt8]? {
        if self[.emptyAnswers] { return nil }
        if self[.oneByteAnswers] { return Array(response.prefix(1)) }
        if self[.statusOnlyAnswers] { return Array(response.suffix(2)) }
        return response
    }

    /// Returns the frames to send for `answer`, each with its delay.
    mutating func frames(
        _ answer: CCIDAnswer, to command: CCIDCommand, delay: Duration
    ) -> [(bytes: [UInt8], delay: Duration)] {
        var answer = answer
        var delay = delay
        if self[.sequenceBehind] && command.bytes.count > 64 { answer.sequence &-= 1 }
        if self[.wrongSequence] { answer.sequence &+= 100 }

        var frames: [(bytes: [UInt8], delay: Duration)] = []
        let isAPDU = command.kind == .xfrBlock
        if let milliseconds = arguments[.slow], isAPDU || command.kind == .iccPowerOn {
            delay += .milliseconds(min(milliseconds, 1_000_000_000))
        }
        if isAPDU {
            for _ in 0..<min(arguments[.timeExtension] ?? 0, 1000) {
                delay += .milliseconds(100)
                var request = answer
                request.data = []
                request.status = CCIDAnswer.CommandStatus.timeExtension.rawValue | answer.status & 0x03
                request.error = 1
                frames.append((request.bytes, delay))
            }
            if self[.timeExtension] { delay += .milliseconds(100) }
        }

        var bytes = answer.bytes
        if isAPDU {
            if self[.garbage] { bytes = bytes.map { _ in nextRandomByte() } }
            if let length = arguments[.oversizedLength] { bytes.replaceSubrange(1..<5, with: littleEndian(length)) }
            if let missing = arguments[.truncatedAnswers] { bytes.removeLast(min(missing, bytes.count)) }
        }
        frames.append((bytes, delay))
        if self[.staleFrame] && !firstAnswerSent { frames.append((bytes, delay)) }
        firstAnswerSent = true
        return frames
    }

    /// SplitMix64.
    private mutating func nextRandomByte() -> UInt8 {
        generator &+= 0x9E37_79B9_7F4A_7C15
        var z = generator
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return UInt8(truncatingIfNeeded: z ^ (z >> 31))
    }
}
