import CardReaders
import Foundation
import Logging
import SmartCard
import Synchronization
import WalletPasses

/// A reader that was found.
final class AttachedReader: Sendable {
    /// An identifier of this finding: a reader that is plugged in again gets another one.
    let id = UUID()
    /// The reader's identity, with its serial number if it has one and the driver reports it.
    let identity: ReaderIdentity
    /// The layers over its cards.
    let stack: Stack
    private let reader: any CardReader
    /// True if its PN532 finds the cards: the chip reports more than one card.
    private let hasChip: Bool
    private let answerTime: Duration
    private let watch = Mutex<Task<Void, Never>?>(nil)

    /// Opens a reader.
    ///
    /// - Throws: `CardError` if it is already gone, or cannot be used.
    init(_ reader: any CardReader, answersWithin answerTime: Duration) async throws {
        (self.reader, self.answerTime) = (reader, answerTime)
        stack = Stack(.ofEMVContactless, for: reader, timeLimit: answerTime)
        hasChip = try await withTimeLimit(answerTime) { try await reader.reachesChip() }
        try await Self.check(reader, hasChip: hasChip, within: answerTime)
        identity = await reader.details()
    }

    /// Watches the reader for as long as this value exists.
    ///
    /// - Parameter left: called once, with ``id``, when the reader is gone, or at once if it already is.
    func watch(left: @escaping @Sendable (UUID) async -> Void) {
        let task = Task { [reader, id] in
            do {
                for try await _ in reader.slotStates() {}
            } catch {
                if !Task.isCancelled { logger.warning("the reader cannot be watched: \(loggable(error))") }
            }
            if !Task.isCancelled { await left(id) }
        }
        watch.withLock { $0 = task }
    }

    deinit { watch.withLock { $0?.cancel() } }

    /// Checks that the reader answers, and that it can report the state of its slot.
    ///
    /// - Throws: `CardError`.
    func check() async throws { try await Self.check(reader, hasChip: hasChip, within: answerTime) }

    private static func check(_ reader: any CardReader, hasChip: Bool, within answerTime: Duration) async throws {
        try await withTimeLimit(answerTime) {
            if hasChip { try await reader.checkFirmware() }
            for try await _ in reader.slotStates() { return }
            try Task.checkCancellation()
            throw CardError(.readerGone)
        }
    }

    /// Lends the reader's field to `body`, and then releases the card and the reader.
    ///
    /// - Parameter broadcast: the frame that tells phones what the terminal is for.  A reader that sends no such frames
    ///   reads only phones that answer any reader.
    /// - Throws: `ReadError` if the field cannot be switched on; `CardError` if the reader's state cannot be restored.
    func withField(
        broadcast: PollingFrame, _ body: @Sendable (any ContactlessField) async -> Void
    ) async throws {
        if hasChip {
            let isFieldUp = Mutex(false)
            do {
                return try await reader.withChipField(broadcast: broadcast.bytes) { field in
                    isFieldUp.withLock { $0 = true }
                    await body(field)
                }
            } catch let error as CardError where !isFieldUp.withLock({ $0 }) {
                logger.warning("the reader's field cannot be brought up: \(error)")
                throw PaymentCardReaderSession.ReadError(error, isFieldUp: false)
            }
        }
        let field = CardReaderField(reader)
        if broadcast != .payment { tellWhatIsMissing(field) }
        await body(field)
        await field.release(.powerOff)
    }

    /// Logs that a phone which waits for a frame will not answer this reader, and what helps.
    private func tellWhatIsMissing(_ field: some ContactlessField) {
        do { try field.capabilities.require(.broadcast) } catch {
            logger.notice("\(error.description), and phones that wait for them are not read.  \(error.hint)")
        }
    }
}
