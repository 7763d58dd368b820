/// Something that goes wrong in a PN532 board, on its line or with its card, to be switched on and off while it runs.
///
/// Written as `NAME` or `NAME=ARGUMENT`, as on a command line: `garbage=20`.
public struct PN532BoardFault: Hashable, Sendable {
    /// The kinds of fault.  The raw value is the name on command lines and does not change.
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        case muteCard = "mute-card"
        case emptyAnswers = "empty-answers"
        case oneByteAnswers = "one-byte-answers"
        case statusOnlyAnswers = "status-only-answers"
        case fieldLoss = "field-loss"
        case slow
        case endlessExtension = "endless-extension"
        case noAcknowledgment = "no-acknowledgment"
        case mute
        case errorFrames = "error-frames"
        case wrongChecksum = "wrong-checksum"
        case truncatedFrames = "truncated-frames"
        case garbage
        case onlyGarbage = "only-garbage"
        case oversizedLength = "oversized-length"
        case unplug
    }

    public let kind: Kind
    /// The count, duration or position that ``Kind/argument`` describes; 0 for kinds without an argument.
    public let argument: Int

    /// - Parameters:
    ///   - kind: the fault.
    ///   - argument: nil for the usual one.  Negative ones count as 0.
    public init(_ kind: Kind, _ argument: Int? = nil) {
        self.kind = kind
        self.argument = max(argument ?? kind.argument?.usual ?? 0, 0)
    }

    /// Parses `NAME` or `NAME=ARGUMENT`; nil for an unknown name, or an invalid or unexpected argument.
    public init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        guard let kind = Kind(rawValue: String(parts.first ?? "")) else { return nil }
        guard parts.count > 1 else {
            self.init(kind)
            return
        }
        guard kind.argument != nil, let argument = Int(parts[1]), argument >= 0 else { return nil }
        self.init(kind, argument)
    }
}

extension PN532BoardFault: CustomStringConvertible {
    /// The command-line spelling: `garbage=20`.
    public var description: String { kind.rawValue + (kind.argument == nil ? "" : "=\(argument)") }
}

extension PN532BoardFault.Kind {
    /// The name of the argument and its default; nil for kinds without an argument.
    public var argument: (name: String, usual: Int)? { entry.argument }
    /// One line for a list of all faults.
    public var summary: String { entry.summary }

    private var entry: (argument: (name: String, usual: Int)?, summary: String) {
        switch self {
        case .muteCard: (nil, "the card answers neither its reset nor any command")
        case .emptyAnswers: (nil, "every APDU is answered as when the card is silent")
        case .oneByteAnswers: (nil, "of every response APDU only the first byte comes")
        case .statusOnlyAnswers: (nil, "of every response APDU only the status word comes")
        case .fieldLoss: (("APDUS", 0), "the card leaves the field after so many APDUs")
        case .slow: (("MS", 1000), "every response takes so much longer")
        case .endlessExtension: (nil, "the card asks for more time for ever: exchanges with it have no end")
        case .noAcknowledgment: (nil, "no command is acknowledged; the responses come")
        case .mute: (nil, "nothing comes")
        case .errorFrames: (nil, "every command is answered by an error frame")
        case .wrongChecksum: (("FRAMES", 1_000_000), "the checksums of so many responses are wrong")
        case .truncatedFrames: (("BYTES", 3), "the last bytes of every response are missing")
        case .garbage: (("BYTES", 20), "so many random bytes come before every frame")
        case .onlyGarbage: (("BYTES", 600), "so many random bytes come in place of every frame")
        case .oversizedLength: (nil, "every response says that it is 65535 bytes long")
        case .unplug: (("FRAMES", 1), "the board leaves at this frame from the host, counted from 1")
        }
    }

    /// The corresponding card fault of an ACR122U, which contains the same chip.
    var ofCard: SoftwareReaderFault.Kind? {
        switch self {
        case .muteCard: .muteCard
        case .emptyAnswers: .emptyAnswers
        case .oneByteAnswers: .oneByteAnswers
        case .statusOnlyAnswers: .statusOnlyAnswers
        case .fieldLoss: .fieldLoss
        default: nil
        }
    }
}
