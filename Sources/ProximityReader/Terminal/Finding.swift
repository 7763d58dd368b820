import ContactlessMetrics
import Foundation
import Logging
import SmartCard
import Waiting

/// The terminal's search for its reader, at the start and after a loss.
extension PaymentTerminal {
    /// Returns the reader, and searches for it if necessary.
    func attachedReader() async throws -> AttachedReader {
        if let attached { return attached }
        let finding = finding ?? Task { try await findReader() }
        self.finding = finding
        await finding.ended()
        try Task.checkCancellation()
        return try await finding.value
    }

    /// Finds the reader and checks that it answers, before a token is requested that would be of no use.
    ///
    /// - Throws: ``PaymentCardReaderError``.
    package func requireReader() async throws {
        watchSleep()
        guard !isAsleep else { throw PaymentCardReaderError.backgroundRequestNotAllowed }
        guard !isPreparing, reading == nil else { return }
        do {
            if let attached { try await attached.check() }
            _ = try await attachedReader()
        } catch let error as CardError {
            attached = nil
            throw PaymentCardReaderError(error)
        } catch is CancellationError {
            throw PaymentCardReaderError.requestInterrupted
        } catch {
            // A foreign error's text is not safe to log.
            logger.error("the reader could not be found: \(type(of: error))")
            throw PaymentCardReaderError.prepareFailed(nil)
        }
    }

    private func findReader() async throws -> AttachedReader {
        defer {
            finding = nil
            tellPresence()
        }
        let found = try await AttachedReader(configuration.reader.find(), answersWithin: configuration.answerTime)
        attached = found
        // The watch begins here: a loss of a reader that is not the terminal's yet would be reported to nobody.
        found.watch { [weak self] in await self?.readerLeft($0) }
        return found
    }

    /// Tells whether the terminal has its reader, if that is new.
    func tellPresence() {
        let isPresent = attached != nil
        metrics.readerPresent.set(to: isPresent)
        presence.update { $0 == isPresent ? nil : isPresent }
    }

    /// Handles the loss of a reader.
    ///
    /// - Parameter id: the identifier of the lost reader, which may not be the present one.
    private func readerLeft(_ id: UUID) {
        guard id == attached?.id else { return }
        attached = nil
        logger.warning("the reader is gone")
        interruptRead(with: .readerNotAvailable)
        if session != nil { events.send(.notReady) }
    }

    /// Searches for the reader of a session until it is present, so that its next loss is noticed, too.
    func searchReader() {
        guard search == nil, session != nil, !isAsleep else { return }
        search = Task { [weak self] in
            while await self?.isStillSearching() == true { try? await Time.sleep(for: .seconds(1)) }
        }
    }

    /// Ends the search in the turn in which it sees the reader, so that a loss in the next turn begins another search.
    private func isStillSearching() async -> Bool {
        if !Task.isCancelled, session != nil, !isAsleep {
            _ = try? await attachedReader()
            // The reader may have left again since it was found.
            if attached == nil { return true }
        }
        search = nil
        return false
    }
}
