import SmartCard

/// An issuer script, and the progress of its execution (EMV Book 3, 10.10; Book 4, Annex A5).
struct IssuerScript: Sendable {
    /// The script identifier, tag 9F18; zeros if the script has none.
    private let identifier: [UInt8]
    private let commands: [[UInt8]]
    /// The number of commands sent.
    private var sent = 0
    private var hasFailed = false

    /// Parses template 71 or 72.  A malformed script has no commands, and is not performed.
    init(_ template: [UInt8]) {
        guard let list = try? TLVList(template), list.count == 1, let script = list.first,
            script.tag == 0x71 || script.tag == 0x72
        else {
            (identifier, commands) = ([0, 0, 0, 0], [])
            return
        }
        identifier = script.children[0x9F18].flatMap { $0.value.count == 4 ? Array($0.value) : nil } ?? [0, 0, 0, 0]
        commands = script.children.filter { $0.tag == 0x86 }.map { Array($0.value) }
    }

    /// Returns the next command.
    ///
    /// - Returns: nil when all have been sent, or one has failed.
    mutating func next() -> CommandAPDU? {
        guard !hasFailed, commands.indices.contains(sent) else { return nil }
        let command = try? CommandAPDU(commands[sent])
        sent += 1
        // A malformed command cannot be executed.
        if command == nil { hasFailed = true }
        return command
    }

    /// Records the status of the response to the command.
    mutating func take(_ status: StatusWord) {
        // EMV Book 3, 10.10: only SW1 counts.
        hasFailed = ![0x90, 0x62, 0x63].contains(status.sw1)
    }

    /// Records that there was no response to the command.
    mutating func interrupt() { hasFailed = true }

    /// The issuer script result, five bytes: the result, with the number of the failed command, and the identifier.
    var result: [UInt8] {
        let first: UInt8 = sent == 0 ? 0x00 : hasFailed ? 0x10 | UInt8(min(sent, 15)) : 0x20
        return [first] + identifier
    }
}
