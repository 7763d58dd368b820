/// Splits a command that is too long for the reader, by command chaining (ISO/IEC 7816-4, 5.3.3).
///
/// It requests the response in short length, so that the card answers 61xx if there is more.  Each part but the last
/// has bit 5 of CLA set and 255 bytes of data.  The chain ends early at a part that the card answers with a status
/// other than 9000; that answer is the response.
public struct CommandChainingLayer: CardChannel {
    private let base: any CardChannel
    private let longestCommand: Int

    /// - Parameters:
    ///   - base: the layer or transport below.
    ///   - longestCommand: the longest encoded command in bytes.  Commands up to this length pass unchanged.
    public init(_ base: any CardChannel, longestCommand: Int) {
        (self.base, self.longestCommand) = (base, longestCommand)
    }

    /// - Throws: `CardError`, of kind `tooLong` for a long command of a proprietary class: only interindustry classes
    ///   have chaining.
    public func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        guard command.bytes.count > longestCommand else { return try await base.transmit(command) }
        // The first and the further interindustry classes both use bit 5 (5.4.1, tables 2 and 3).
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
