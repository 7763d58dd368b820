/// Sends a command that is too long for the reader in parts, by command chaining (ISO/IEC 7816-4, 5.3.3), and asks for the
/// response in short length, so that a card answers 61xx where there is more.
///
/// Each part but the last has bit 5 of CLA set and data of 255 bytes.  The chain ends with the first part that a card answers by
/// anything but 9000, and that is the response.
public struct CommandChainingLayer: CardChannel {
    private let base: any CardChannel
    private let longestCommand: Int

    /// - Parameter longestCommand: in bytes, all of them; what is no longer is sent as it is.
    public init(_ base: any CardChannel, longestCommand: Int) {
        (self.base, self.longestCommand) = (base, longestCommand)
    }

    /// - Throws: `CardError`, of kind `tooLong` for a long command of a class that is not interindustry, which has no chaining.
    public func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        guard command.bytes.count > longestCommand else { return try await base.transmit(command) }
        // First and further interindustry classes both have it as bit 5 (5.4.1, tables 2 and 3).
        guard command.cla & 0x80 == 0 else {
            throw CardError(
                .tooLong, "\(command.bytes.count) bytes; this reader takes \(longestCommand)",
                hint: "Send the data in several commands, or use a reader of extended APDUs.")
        }
        var rest = command.data[...]
        while rest.count > 255 {
            let part = CommandAPDU(
                unchecked: (command.cla | 0x10, command.ins, command.p1, command.p2), data: Array(rest.prefix(255)))
            let response = try await base.transmit(part)
            guard response.status == .success else { return response }
            rest = rest.dropFirst(255)
        }
        return try await base.transmit(
            CommandAPDU(
                unchecked: (command.cla, command.ins, command.p1, command.p2), data: Array(rest),
                ne: command.ne.map { min($0, 256) }))
    }
}
