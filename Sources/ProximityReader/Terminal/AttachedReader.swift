import CardReaders
import Foundation
import Logging
import SmartCard
import Synchronization

/// A reader that was found.
final class AttachedReader: Sendable {
    /// Of this finding: a reader that is plugged in again is another one.
    let id = UUID()
    /// With its serial number, where it has one and the driver tells.
    let identity: ReaderIdentity
    private let reader: any CardReader
    /// Whether cards are found by its PN532, which tells when there is more than one.
    private let hasChip: Bool
    private let answerTime: Duration
    private let watch = Mutex<Task<Void, Never>?>(nil)

    /// - Throws: `CardError` if it is gone already, or cannot be used.
    init(_ reader: any CardReader, answersWithin answerTime: Duration) async throws {
        (self.reader, self.answerTime) = (reader, answerTime)
        hasChip = try await withTimeLimit(answerTime) { try await reader.reachesChip() }
        try await Self.check(reader, hasChip: hasChip, within: answerTime)
        identity = await reader.details()
    }

    /// Watches the reader for as long as this value lives.
    ///
    /// - Parameter left: called once, with ``id``, when the reader is gone, be it gone already.
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

    /// Asks the reader itself whether it is there, and can tell what is in its slot.
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

    /// Has `body` use the reader's field, and gives card and reader back when it is done.
    ///
    /// - Throws: `ReadError` where the field cannot be brought up; `CardError` where the reader cannot be put back.
    func withField(_ body: @Sendable (any ContactlessField) async -> Void) async throws {
        if hasChip {
            let isFieldUp = Mutex(false)
            do {
                return try await reader.withChipField { field in
                    isFieldUp.withLock { $0 = true }
                    await body(field)
                }
            } catch let error as CardError where !isFieldUp.withLock({ $0 }) {
                logger.warning("the reader's field cannot be brought up: \(error)")
                throw PaymentCardReaderSession.ReadError(error, isFieldUp: false)
            }
        }
        let field = CardReaderField(reader)
        await body(field)
        await field.release(.powerOff)
    }
}
