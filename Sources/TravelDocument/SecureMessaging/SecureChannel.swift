import SmartCard
import Waiting

/// A channel to the chip within a session: each command is protected, and each response checked.
///
/// One command is under way at a time; others wait for their turn.
final class SecureChannel: CardChannel {
    private let base: any CardChannel
    private let turn = Turn()
    private let messaging: Lock<SecureMessaging>
    private let longestCommand: Int

    /// - Parameter longestCommand: the longest protected command in bytes that the reader passes on.
    init(_ base: any CardChannel, _ messaging: SecureMessaging, longestCommand: Int = .max) {
        (self.base, self.messaging, self.longestCommand) = (base, Lock(messaging), longestCommand)
    }

    /// - Throws: ``SecureMessagingError``, or the error of the layer below.  Either ends the session, but for
    ///   ``SecureMessagingError/tooLong``: that command was not sent.
    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        try await turn.take()
        defer { turn.pass() }
        let protected = try messaging.withLock { messaging in
            var next = messaging
            let protected = try next.protect(command)
            guard protected.bytes.count <= longestCommand else { throw SecureMessagingError.tooLong }
            messaging = next
            return protected
        }
        let response: ResponseAPDU
        do { response = try await base.transmit(protected) } catch {
            messaging.withLock { $0.abandon() }
            throw error
        }
        return try messaging.withLock { try $0.unprotect(response) }
    }
}
