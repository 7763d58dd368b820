import Foundation
import Logging

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

    private func findReader() async throws -> AttachedReader {
        defer { finding = nil }
        let found = try await AttachedReader(configuration.reader.find(), answersWithin: configuration.answerTime) {
            [weak self] in await self?.readerLeft($0)
        }
        attached = found
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
            while !Task.isCancelled, await self?.hasFoundReader() == false {
                try? await Task.sleep(for: .seconds(1))
            }
            await self?.endSearch()
        }
    }

    private func hasFoundReader() async -> Bool {
        guard session != nil, !isAsleep else { return true }
        return (try? await attachedReader()) != nil
    }

    private func endSearch() { search = nil }
}
