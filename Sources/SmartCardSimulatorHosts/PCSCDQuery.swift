import Glibc

/// A query for the readers of a pcscd, over the service's own socket protocol (pcsc-lite, src/winscard_msg.h, version
/// 4:4, which later versions still speak).  It opens no context and disturbs no client.
enum PCSCDQuery {
    struct Reader: Hashable {
        let name: String
        let hasCard: Bool
    }

    /// - Returns: nil if no service answers at `socket`.
    static func readers(at socket: String) -> [Reader]? {
        guard let connection = UnixSocket.connect(to: socket) else { return nil }
        defer { close(connection) }
        // CMD_VERSION: major 4, minor 4, return value.
        guard let version = exchange(connection, command: 0x11, body: [4, 4, 0], answer: 12),
            word(version, at: 8) == 0,
            // CMD_GET_READERS_STATE: 16 READER_STATEs.
            let states = exchange(connection, command: 0x12, body: [], answer: 16 * stateSize)
        else { return nil }
        return stride(from: 0, to: states.count, by: stateSize).compactMap { start in
            let state = Array(states[start..<start + stateSize])
            let name = state.prefix(128).prefix { $0 != 0 }
            guard !name.isEmpty else { return nil }
            // readerState at 132; bit 2 is SCARD_PRESENT.
            return Reader(name: String(decoding: name, as: UTF8.self), hasCard: word(state, at: 132) & 0x04 != 0)
        }
    }

    private static let stateSize = 184

    /// Size and command in front of the body, all in the machine's byte order; the answer is a body alone.
    private static func exchange(_ connection: Int32, command: UInt32, body: [UInt32], answer: Int) -> [UInt8]? {
        let words = [UInt32(body.count * 4), command] + body
        guard
            words.withUnsafeBytes({ send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) })
                == words.count * 4
        else { return nil }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: answer)
        while bytes.count < answer {
            let count = recv(connection, &buffer, answer - bytes.count, 0)
            guard count > 0 else { return nil }
            bytes += buffer[..<count]
        }
        return bytes
    }

    private static func word(_ bytes: [UInt8], at offset: Int) -> UInt32 {
        guard offset + 4 <= bytes.count else { return 0 }
        return bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) }
    }
}
