import SmartCard

/// A script of the issuer's, and how far the card has carried it out (EMV Book 3, 10.10; Book 4, Annex A5).
struct IssuerScript: Sendable {
    /// Tag 9F18; zeros if the script has none.
    private let identifier: [UInt8]
    private let commands: [[UInt8]]
    /// How many of them have been sent.
    private var sent = 0
    private var hasFailed = false

    /// Reads template 71 or 72.  A script that cannot be read has no commands, and is not performed.
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

    /// - Returns: the next command; nil when all have been sent, or one has failed.
    mutating func next() -> CommandAPDU? {
        guard !hasFailed, commands.indices.contains(sent) else { return nil }
        let command = try? CommandAPDU(commands[sent])
        sent += 1
        // What is no command cannot be carried out.
        if command == nil { hasFailed = true }
        return command
    }

    /// Takes the status of the response to the command.
    mutating func take(_ status: StatusWord) {
        // EMV Book 3, 10.10: only SW1 counts.
        hasFailed = ![0x90, 0x62, 0x63].contains(status.sw1)
    }

    /// Takes that there was no response to the command.
    mutating func interrupt() { hasFailed = true }

    /// Five bytes: the result, with the number of the command that failed, and the identifier.
    var result: [UInt8] {
        let first: UInt8 = sent == 0 ? 0x00 : hasFailed ? 0x10 | UInt8(min(sent, 15)) : 0x20
        return [first] + identifier
    }
}
