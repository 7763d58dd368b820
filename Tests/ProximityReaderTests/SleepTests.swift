import Foundation
import ProximityReader
import TestSupport
import Testing

/// What happens when the machine sleeps, as logind's stand-in of python-dbusmock tells it on a bus of its own.
@Suite(
    .timeLimit(.minutes(5)),
    .enabled(if: LogindBus.obstacle == nil, "\(LogindBus.obstacle ?? "")"))
struct SleepTests {
    @Test("while the machine sleeps nothing is read; when it wakes the session goes on")
    func theMachineSleeps() async throws {
        let bus = try await LogindBus()
        let bench = try await Bench { $0.systemBus = bus.address }
        let log = await EventLog(bench.reader)
        let session = try await bench.reader.prepare(using: bench.token())
        let read = Task { try await session.readPaymentCard(purchase) }
        try await log.wait(for: "readyForTap")

        // Until the terminal listens.
        while await !log.names.contains("notReady") { try await bus.tell(isAsleep: true) }
        await expect("readFromBackgroundError") { _ = try await read.value }
        await expect("readFromBackgroundError") { _ = try await session.readPaymentCard(purchase) }
        await expect("backgroundRequestNotAllowed") { _ = try await bench.reader.prepare(using: bench.token()) }

        try await bus.tell(isAsleep: false)
        try bench.insert("visa")
        // The signal takes its way.
        var result: PaymentCardReadResult?
        try await wait(for: "end of the sleep") {
            do {
                result = try await session.readPaymentCard(purchase)
            } catch PaymentCardReaderSession.ReadError.readFromBackgroundError {}
            return result != nil
        }
        #expect(result?.outcome == .success)
    }
}
