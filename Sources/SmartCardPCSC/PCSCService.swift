import SmartCard

/// The smart card service, pcscd.
///
///     for reader in try await PCSCService().readers() {
///         let card = try await reader.connect()
///         …
///     }
///
/// A value without state: each call makes the connections to pcscd that it needs and lets them go again.  Nothing here
/// blocks a thread of Swift's pool, and every wait ends at once when its task is cancelled.
///
/// libpcsclite takes the path of pcscd's socket from `PCSCLITE_CSOCK_NAME` when it is first used, and keeps it.
public struct PCSCService: Sendable {
    public init() {}

    /// The readers that are attached, in pcscd's order.
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

    /// What happens to readers and cards from now on, after what is there already: first the readers attached and the
    /// cards in them, then each change as it happens, without polling.
    ///
    /// Each call makes a stream of its own.  A card that was taken away and put back, or swapped, between two looks is
    /// told by pcscd's count of insertions, and reported as removed and inserted.  A stream that is not read keeps the
    /// newest 4096 events.
    ///
    /// - Parameter waitForService: what happens while pcscd does not answer.  If false, the stream throws the
    ///   `CardError`.  If true, it says ``PCSCEvent/serviceUnavailable(_:)`` once and goes on when pcscd is back; since
    ///   pcscd announces itself to nobody, that is tried after 50 ms and then at growing intervals of up to 1 s.
    public func events(
        waitForService: Bool = false
    ) -> some AsyncSequence<PCSCEvent, any Error> & Sendable {
        ReaderWatch.shared.events(waitingForService: waitForService)
    }
}

/// The state of a thread that has none.
private struct OnceOnly {}
