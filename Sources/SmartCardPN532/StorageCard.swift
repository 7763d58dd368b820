import SmartCard

/// The reader's commands for storage cards (PC/SC part 3, 3.2.2.1), over a connection to such a card.
///
/// After a refusal, these cards are silent until they are selected anew, so this type selects them at once.
struct StorageCard: Sendable {
    let connection: any CardConnection

    /// - Returns: the response data; nil for a refusal, after selecting the card anew.
    func send(_ header: (UInt8, UInt8, UInt8, UInt8), data: [UInt8] = [], ne: Int? = nil) async throws -> [UInt8]? {
        let command = try CommandAPDU(cla: header.0, ins: header.1, p1: header.2, p2: header.3, data: data, ne: ne)
        do {
            let response = try await connection.transmit(command)
            if response.status == .success { return response.data }
        } catch let error as CardError where error.kind == .noAnswer {}
        try await connection.reset()
        return nil
    }

    /// READ BINARY of exactly `count` bytes.
    func read(_ address: UInt8, count: Int) async throws -> [UInt8] {
        guard let data = try await send((0xFF, 0xB0, 0x00, address), ne: count) else {
            throw TagError.refused("to read \(address)")
        }
        guard data.count == count else {
            throw CardError(.malformedAnswer, "\(data.count) bytes of \(count) read at \(address)")
        }
        return data
    }

    /// UPDATE BINARY.
    func write(_ address: UInt8, _ data: [UInt8]) async throws {
        guard let answer = try await send((0xFF, 0xD6, 0x00, address), data: data) else {
            throw TagError.refused("to write \(address)")
        }
        guard answer.isEmpty else { throw CardError(.malformedAnswer, "\(answer.count) bytes to a write") }
    }
}
