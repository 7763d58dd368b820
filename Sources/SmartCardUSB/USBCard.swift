public import SmartCard
import Waiting

/// A connection to a card in a reader that only this process drives.
///
/// Calls from several tasks take turns.  A call whose task is cancelled throws `CancellationError` at once.  Its
/// exchange with the card is aborted (USB CCID 1.10, 5.3.1), unless the reader cannot abort (``ReaderQuirk/noAbort``)
/// or passes on T=1 blocks; such an exchange runs to its end.  The next call waits in both cases.  The effect of a
/// canceled command on the card is unknown.  A connection that is released leaves the card as it is.
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

    /// Sends a command APDU, of extended length if the reader's exchange level allows it, else of short length.
    public func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        let answer = try await transmit(bytes: command.bytes)
        guard answer.count >= 2 else {
            throw CardError(.malformedAnswer, "one byte, where a status word is due")
        }
        return try ResponseAPDU(answer)
    }

    /// Sends bytes that need not be an APDU and returns the unmodified answer, with or without a status word.
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
