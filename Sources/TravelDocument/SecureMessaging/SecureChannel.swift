import SmartCard
import Waiting

/// A channel to the chip within a session: each command is protected, and each response checked.
///
/// One command is under way at a time; others wait for their turn.
final class SecureChannel: CardChannel {
    private let base: any CardChannel
    private let turn = Turn()
    private let messaging: Lock<SecureMessaging>

    init(_ base: any CardChannel, _ messaging: SecureMessaging) {
        (self.base, self.messaging) = (base, Lock(messaging))
    }

    /// - Throws: ``SecureMessagingError``, or the error of the layer below.  Either ends the session.
    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        try await turn.take()
        defer { turn.pass() }
        let protected = try messaging.withLock { try $0.protect(command) }
        let response: ResponseAPDU
        do { response = try await base.transmit(protected) } catch {
            messaging.withLock { $0.abandon() }
            throw error
        }
        return try messaging.withLock { try $0.unprotect(response) }
    }
}
