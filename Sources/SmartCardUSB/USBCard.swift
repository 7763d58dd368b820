public import SmartCard
import Waiting

/// A connection to a card in a reader that this process drives itself.
///
/// Calls from several tasks take turns.  A call whose task is cancelled returns at once with `CancellationError`.  What
/// it began at the card is aborted (USB CCID 1.10, 5.3.1) unless the reader cannot (``ReaderQuirk/noAbort``) or passes
/// T=1 blocks on, whose exchange runs to its end; the next call waits for either.  What a cancelled command has done to
/// the card is not known.  A connection that is let go leaves the card as it is.
public final class USBCard: CardConnection {
    public let reader: USBReader
    public let transmissionProtocol: TransmissionProtocol
    private let interface: CCIDInterface
    private let slot: CCIDSlot
    private let session: Lock<CCIDSlot.Session?>
    private let lastATR: Lock<ATR>

    init(reader: USBReader, interface: CCIDInterface, slot: CCIDSlot, session: CCIDSlot.Session) {
        (self.reader, self.interface, self.slot) = (reader, interface, slot)
        transmissionProtocol = session.transmissionProtocol
        lastATR = Lock(session.atr)
        self.session = Lock(session)
    }

    public var atr: ATR { lastATR.withLock { $0 } }

    /// Sends a command APDU: of up to extended length where the reader's exchange level allows it, else of short length.
    public func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        let answer = try await transmit(bytes: command.bytes)
        guard answer.count >= 2 else {
            throw CardError(.malformedAnswer, "one byte, where a status word is due")
        }
        return try ResponseAPDU(answer)
    }

    /// Sends bytes that need not be an APDU and returns the answer as it is, status word or not.
    ///
    /// - Throws: `CardError` of kind `noAnswer` if the answer is empty: readers report a silent card as success.
    public func transmit(bytes command: [UInt8]) async throws -> [UInt8] {
        try await slot.transmit(command, session: openSession().number)
    }

    public func reset() async throws {
        let new = try await slot.connect(insteadOf: openSession().number)
        session.withLock { if $0 != nil { $0 = new } }
        lastATR.withLock { $0 = new.atr }
    }

    public func disconnect(_ disposition: CardDisposition) async {
        let last = session.withLock { session in
            defer { session = nil }
            return session
        }
        if let last { await slot.disconnect(last.number, disposition) }
    }

    private func openSession() throws -> CCIDSlot.Session {
        guard let session = session.withLock({ $0 }) else { throw CardError(.disconnected) }
        return session
    }
}
