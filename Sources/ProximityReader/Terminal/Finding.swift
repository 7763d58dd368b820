import Foundation
import Logging
import SmartCard

/// How the terminal finds its reader, loses it and finds it again.
extension PaymentTerminal {
    /// The reader, looked for if it is not there.
    func attachedReader() async throws -> AttachedReader {
        if let attached { return attached }
        let finding = finding ?? Task { try await findReader() }
        self.finding = finding
        await finding.ended()
        try Task.checkCancellation()
        return try await finding.value
    }

    /// Finds the reader, and asks it whether it answers: before anybody is asked for a token that would be of no use.
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
            // Another's error may say anything.
            logger.error("the reader could not be found: \(type(of: error))")
            throw PaymentCardReaderError.prepareFailed(nil)
        }
    }

    private func findReader() async throws -> AttachedReader {
        defer { finding = nil }
        let found = try await AttachedReader(configuration.reader.find(), answersWithin: configuration.answerTime)
        attached = found
        // From here on: a loss told of a reader that is not the terminal's yet would be told to nobody.
        found.watch { [weak self] in await self?.readerLeft($0) }
        return found
    }

    /// - Parameter id: of the reader, which may not be that of now.
    private func readerLeft(_ id: UUID) {
        guard id == attached?.id else { return }
        attached = nil
        logger.warning("the reader is gone")
        interruptRead(with: .readerNotAvailable)
        guard session != nil else { return }
        events.send(.notReady)
        searchReader()
    }

    /// Looks for the reader until it is there, so that its next leaving is noticed, too.
    func searchReader() {
        guard search == nil else { return }
        search = Task { [weak self] in
            while await self?.isStillSearching() == true { try? await Task.sleep(for: .seconds(1)) }
        }
    }

    /// Ends the search in the turn in which it sees the reader, so that a loss in the next one begins another.
    private func isStillSearching() async -> Bool {
        if !Task.isCancelled, session != nil, !isAsleep {
            _ = try? await attachedReader()
            // It may have left again since it was found.
            if attached == nil { return true }
        }
        search = nil
        return false
    }
}
