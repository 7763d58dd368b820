import SmartCard

/// The smart card service, pcscd.
///
///     for reader in try await PCSCService().readers() {
///         let card = try await reader.connect()
///         …
///     }
///
/// This value has no state: each call makes the connections to pcscd that it needs and closes them.  No call blocks a
/// thread of Swift's pool, and every wait ends at once when its task is canceled.
///
/// libpcsclite reads the path of pcscd's socket from `PCSCLITE_CSOCK_NAME` on first use and keeps it.
public struct PCSCService: Sendable {
    public init() {}

    /// Returns the attached readers in pcscd's order.
    ///
    /// - Throws: `CardError` of kind `noService`, `permissionDenied`, `versionMismatch`, ….
    public func readers() async throws -> [PCSCReader] {
        let names = try await BlockingThread { OnceOnly() }.run { _ in
            let context = try SCardContext.forOperation()
            do throws(PCSCStatus) { return try context.readers() } catch { throw CardError(error, during: .list) }
        }
        ReaderWatch.shared.verify()
        return names.map { PCSCReader(name: $0) }
    }

    /// Returns the events of readers and cards: first the attached readers and their cards, then each change as it
    /// happens, without polling.
    ///
    /// Each call makes an independent stream.  If a card was replaced or put back between two looks, pcscd's count of
    /// insertions reveals it; the stream reports a removal and an insertion.  A stream that is not read keeps the
    /// newest 4096 events.
    ///
    /// - Parameter waitForService: if false, the stream throws the `CardError` when pcscd does not answer.  If true, it
    ///   reports ``PCSCEvent/serviceUnavailable(_:)`` once and continues when pcscd is back.  pcscd does not announce
    ///   itself, so the stream tries after 50 ms and then at growing intervals of up to 1 s.
    public func events(
        waitForService: Bool = false
    ) -> some AsyncSequence<PCSCEvent, any Error> & Sendable {
        ReaderWatch.shared.events(waitingForService: waitForService)
    }
}

/// The empty state of a thread without state.
private struct OnceOnly {}
