import Foundation
import KioskKit
import KioskTestSupport
import ProximityReader
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

/// Payments of a program that is killed: payment-worker, whose payment service is a file.
@Suite(.timeLimit(.minutes(5))) struct PaymentJournalTests {
    private let folder = Folder()
    private let key = UUID().uuidString

    /// Removed with the test.
    private final class Folder: Sendable {
        let url = FileManager.default.temporaryDirectory.appending(path: "journal-\(UUID().uuidString)")
        init() { try? FileManager.default.createDirectory(at: url, withIntermediateDirectories: true) }
        deinit { try? FileManager.default.removeItem(at: url) }
    }

    private func work(_ arguments: String...) async throws -> Program.Outcome {
        try await Program.run([Program.built("payment-worker"), folder.url.path, key] + arguments)
    }

    /// What the payment service has done, in its order.
    private var books: [String] {
        let text = (try? String(contentsOf: folder.url.appending(path: "books"), encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map { String($0.replacing(" \(key)", with: "")) }
    }

    private var journal: URL { folder.url.appending(path: "state/payments") }
    private var entries: [String] { (try? FileManager.default.contentsOfDirectory(atPath: journal.path)) ?? [] }

    @Test("a payment that was answered is settled: nothing is left, and the next run takes nothing back")
    func answered() async throws {
        #expect(try await work("pay").status == 0)
        #expect(entries == [])
        let next = try await work("start")
        #expect(next.status == 0 && next.output == "")
        #expect(books == ["charged"])
    }

    @Test(
        "killed between the request and the answer, a program takes the payment back when it starts again",
        arguments: [("asked", []), ("booked", ["charged"])])
    func killed(_ point: String, _ before: [String]) async throws {
        #expect(try await work("pay", point).status == 128 + SIGKILL)
        #expect(books == before)
        let entry = try #require(entries.first)
        #expect(entries.count == 1 && entry.hasSuffix(".payment"))
        let file = journal.appending(path: entry)
        let text = try String(contentsOf: file, encoding: .utf8)
        #expect(text.contains(key) && text.contains("12.34") && text.contains("EUR"))
        #expect(!text.contains("SEALED-CARD-DATA"))
        func mode(_ path: String) throws -> Int? {
            try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        }
        #expect(try mode(file.path) == 0o600 && mode(journal.path) == 0o700)

        #expect(try await work("start").output == "")
        #expect(books == before + ["reversed"])
        #expect(entries == [])
        _ = try await work("start")
        #expect(books == before + ["reversed"], "once")
    }

    @Test(
        "killed while it takes a payment back, it goes on when it starts again",
        arguments: [("reversing", ["charged"]), ("reversed", ["charged", "reversed"])])
    func killedReversing(_ point: String, _ before: [String]) async throws {
        #expect(try await work("reverse", point).status == 128 + SIGKILL)
        #expect(books == before)
        #expect(entries.count == 1)
        // Killed once more, at the same point, and then with the payment service gone.
        #expect(try await work("start", point).status == 128 + SIGKILL)
        #expect(try await work("start", "down").output.hasPrefix("unsettled \(key)"))
        #expect(entries.count == 1)
        #expect(try await work("start").output == "")
        #expect(books.last == "reversed" && books.filter { $0 == "charged" }.count == 1)
        #expect(entries == [])
    }

    @Test("who wants to know is told what was decided, and it is not taken back; what was not decided is")
    func reported() async throws {
        _ = try await work("pay", "booked")
        #expect(try await work("report").output == "decided \(key) approved\n")
        #expect(books == ["charged"] && entries == [])
        try FileManager.default.removeItem(at: folder.url.appending(path: "books"))
        _ = try await work("pay", "asked")
        #expect(try await work("report").output == "")
        #expect(books == ["reversed"] && entries == [])
    }

    @Test("a payment that another process has in hand is left to it, until that is gone")
    func inHand() async throws {
        let paying = try Program([Program.built("payment-worker"), folder.url.path, key, "pay", "held"])
        try await wait(for: "charge") { books == ["charged"] }
        #expect(try await work("start").output == "")
        #expect(books == ["charged"] && entries.count == 1)
        kill(paying.pid, SIGKILL)
        _ = try await paying.outcome(timeout: .seconds(60))
        _ = try await work("start")
        #expect(books == ["charged", "reversed"] && entries == [])
    }

    @Test(
        "killed between the decision and its end in the journal, the next run takes nothing back; who keeps books is told again"
    )
    func killedSettling() async throws {
        #expect(try await work("pay", "removing").status == 128 + SIGKILL)
        #expect(entries.count == 1 && books == ["charged"])
        #expect(try await work("start").output == "")
        #expect(entries == [] && books == ["charged"])
        #expect(try await work("pay", "removing").status == 128 + SIGKILL)
        #expect(try await work("report").output == "decided \(key) approved\n")
        #expect(entries == [] && books == ["charged", "charged"], "which knows a key is not this test's")
    }

    /// A disk of which a test says what it takes.
    private final class Faulty: Sendable {
        let state = Mutex((write: Int32(0), remove: Int32(0)))
        var disk: PaymentJournal.Disk {
            var disk = PaymentJournal.Disk()
            let (write, remove) = (disk.write, disk.remove)
            disk.write = { [self] in
                let failure = state.withLock { $0.write }
                return failure == 0 ? write($0, $1, $2) : failure
            }
            disk.remove = { [self] in
                let failure = state.withLock { $0.remove }
                return failure == 0 ? remove($0) : failure
            }
            return disk
        }
    }

    @Test("a payment whose entry cannot be removed is over all the same: the next run does not take it back")
    func notRemoved() async throws {
        let faulty = Faulty()
        faulty.state.withLock { $0.remove = EROFS }
        let bench = try await KioskBench(disk: faulty.disk)
        #expect(
            try await bench.service.authorize(try await bench.readCard(), amount: 12.34, currency: "EUR").status
                == .approved)
        #expect(bench.entries.count == 1)
        // Nor is it told of again.
        _ = try await bench.nextRun { _, _ in Issue.record("told again") }
        #expect(await bench.psp.reversals == [] && bench.entries == [])
    }

    @Test("the next run has an entry, though a program that was just being started has its descriptor, too")
    func copiedDescriptor() async throws {
        let copies = Mutex<[Int32]>([])
        defer { for copy in copies.withLock({ $0 }) { close(copy) } }
        let faulty = Faulty()
        faulty.state.withLock { $0.remove = EROFS }
        var disk = faulty.disk
        disk.write = { [write = disk.write] descriptor, bytes, offset in
            copies.withLock { $0.append(dup(descriptor)) }
            return write(descriptor, bytes, offset)
        }
        let bench = try await KioskBench(disk: disk)
        _ = try await bench.service.authorize(try await bench.readCard(), amount: 12.34, currency: "EUR")
        #expect(bench.entries.count == 1 && copies.withLock { !$0.isEmpty })
        _ = try await bench.nextRun()
        #expect(bench.entries == [])
    }

    @Test("of a tap, too, the disk has the decision before anybody is told")
    func settledBeforeCompleted() async throws {
        let faulty = Faulty()
        faulty.state.withLock { $0.remove = EROFS }
        let bench = try await KioskBench(disk: faulty.disk)
        try bench.insert()
        for await state in TapTransactions(bench.service).processPayment(12.34, currencyCode: "EUR") {
            switch state {
            case .confirmingPayment(let payment, let confirmation):
                Task { await bench.service.authorize(payment, answering: confirmation) }
            case .completed(let outcome):
                #expect(outcome == .approved)
                let entry = try String(
                    contentsOf: bench.journal.appending(path: try #require(bench.entries.first)), encoding: .utf8)
                #expect(entry.split(separator: "\n").last == #"{"settled":{}}"#)
            case .cancelled(let error): Issue.record("\(error)")
            }
        }
        _ = try await bench.nextRun()
        #expect(await bench.psp.reversals == [] && bench.entries == [])
    }

    @Test("a reversal that the disk does not take is told as an alarm, and no payment begins until it is written")
    func reversalNotWritten() async throws {
        let faulty = Faulty()
        let bench = try await KioskBench(script: [.lost, .lost, .lost], disk: faulty.disk)
        let card = try await bench.readCard()
        _ = try? await bench.service.authorize(card, amount: 12.34, currency: "EUR")
        await bench.psp.failReversals(.max)
        faulty.state.withLock { $0.write = ENOSPC }
        do {
            try await bench.service.reverse(card.id)
            Issue.record("no error")
        } catch TapToPayError.notRecorded(let reason) {
            #expect(reason.contains("No space left"))
        }
        let calls = await bench.psp.calls.count
        let payment = UnsettledPayment(id: card.id, kind: .payment, amount: 12.34, currency: "EUR")
        let summary = await bench.service.unsettledSummary
        #expect(summary.reversals.map(\.id) == [payment.id] && summary.unanswered == [])
        #expect(summary.isAskingInBackground && summary.alarms.count == 1)
        guard case .reversalNotWritten(let open, let reason) = summary.alarms.first else { throw KioskBench.Missing() }
        #expect(open.id == card.id && open.amount == 12.34 && reason.contains("No space left"))
        await #expect(throws: TapToPayError.reversalNotRecorded(key: card.id)) {
            _ = try await bench.service.charge(amount: 1, currency: "EUR")
        }
        let transactions = TapTransactions(bench.service)
        for await state in transactions.processPayment(1, currencyCode: "EUR") {
            guard case .cancelled(let error) = state else { throw KioskBench.Missing() }
            #expect(error as? TapToPayError == .reversalNotRecorded(key: card.id))
        }
        #expect(await bench.psp.calls.count == calls)
        // It is tried again without being asked to.
        faulty.state.withLock { $0.write = 0 }
        for await alarms in bench.service.journalAlarms where alarms.isEmpty { break }
        #expect(await bench.service.unsettledSummary.reversals.count == 1, "not confirmed yet")
        await bench.psp.setScript([])
        bench.device.remove()
        try bench.insert()
        #expect(try await bench.service.charge(amount: 1, currency: "EUR").status == .approved)
        await bench.psp.failReversals(0)
        try await wait(for: "reversal") { await bench.service.unsettledPayments.isEmpty }
        #expect(await bench.psp.reversals == [card.id])
    }

    @Test("an approval that the disk does not take is taken back, and nobody is told that it was one")
    func decisionNotWritten() async throws {
        let faulty = Faulty()
        let bench = try await KioskBench(script: [.held], disk: faulty.disk)
        let card = try await bench.readCard()
        let asking = Task { try await bench.service.authorize(card, amount: 12.34, currency: "EUR") }
        try await wait(for: "call") { await bench.psp.calls.count == 1 }
        faulty.state.withLock { $0.write = EROFS }
        await bench.psp.release()
        do {
            _ = try await asking.value
            Issue.record("no error")
        } catch TapToPayError.notRecorded(let reason) {
            #expect(reason.contains("Read-only"))
        }
        #expect(await bench.psp.reversals == [card.id])
        #expect(await bench.service.unsettledSummary.alarms == [])
    }

    @Test("a refusal that the disk does not take is told, and nothing is taken back")
    func refusalNotWritten() async throws {
        let faulty = Faulty()
        let bench = try await KioskBench(script: [.held], disk: faulty.disk)
        let card = try await bench.readCard()
        let asking = Task { try await bench.service.authorize(card, amount: 12.34, currency: "EUR") }
        try await wait(for: "call") { await bench.psp.calls.count == 1 }
        await bench.psp.setResult(.declined, for: card.id)
        faulty.state.withLock { $0.write = EROFS }
        await bench.psp.release()
        #expect(try await asking.value.status == .declined)
        #expect(await bench.psp.reversals == [])
        #expect(await bench.service.unsettledPayments.isEmpty)
    }

    @Test("a payment that is being taken back is resolved by that alone, whatever result the service has")
    func resolvedByReversal() async throws {
        let bench = try await KioskBench(script: [.lost, .lost, .lost])
        let card = try await bench.readCard()
        _ = try? await bench.service.authorize(card, amount: 12.34, currency: "EUR")
        await bench.psp.failReversals(1_000_000)
        for _ in 0..<2 {
            await #expect(throws: PaymentServiceError.noAnswer("the reversal was not confirmed")) {
                _ = try await bench.service.resolve(card.id)
            }
            await bench.psp.setResult(.approved, for: card.id)
        }
    }

    @Test("what is no entry is told as an alarm and stays; a line that was never finished is none")
    func damaged() async throws {
        let faulty = Faulty()
        let bench = try await KioskBench(script: [.lost, .lost, .lost], disk: faulty.disk)
        let card = try await bench.readCard()
        _ = try? await bench.service.authorize(card, amount: 12.34, currency: "EUR")
        let name = try #require(bench.entries.first)
        let good = try Data(contentsOf: bench.journal.appending(path: name))
        try FileManager.default.removeItem(at: bench.journal.appending(path: name))
        func put(_ data: Data, _ name: String) throws { try data.write(to: bench.journal.appending(path: name)) }
        let other = name.replacing("payment", with: "")
        try put(good.prefix(20), "a\(other.dropFirst())payment")
        try put(Data(), "b.payment")
        try put(good, "c.payment")
        try put(good + Data("{\"gone\":{}}\n".utf8), "d.payment")
        try put(Data(repeating: 0x0A, count: 1 << 20), "e.payment")
        try put(Data("mine".utf8), "notes.txt")
        try put(good + Data("{\"decided\":{\"_0\"".utf8), name)
        let before = bench.entries
        let service = try await bench.nextRun()
        let alarms = await service.unsettledSummary.alarms
        let files = alarms.map { alarm in
            if case .unreadable(let file, _) = alarm { file } else { "" }
        }
        #expect(files == before.filter { $0 != name })
        #expect(bench.entries == files)
        #expect(await bench.psp.reversals == [card.id])
    }

    @Test(
        "a payment service that never answers does not keep the reader from being ready: it is asked in the background")
    func silentAtStart() async throws {
        let bench = try await KioskBench(script: [.lost, .lost, .lost])
        let card = try await bench.readCard()
        do {
            let last = try await bench.nextRun()
            _ = try? await last.authorize(card, amount: 12.34, currency: "EUR")
        }
        #expect(bench.entries.count == 1)
        await bench.psp.holdReversals()
        let service = try await bench.nextRun(settlingTime: .milliseconds(50))
        let summary = await service.unsettledSummary
        #expect(summary.isAskingInBackground && summary.unanswered.isEmpty && summary.reversals.map(\.id) == [card.id])
        await bench.psp.release()
        // The entry is removed by a queue of its own.
        try await wait(for: "reversal") { await service.unsettledPayments.isEmpty && bench.entries.isEmpty }
        #expect(await bench.psp.reversals == [card.id])
        try await wait(for: "the end of asking") { await !service.unsettledSummary.isAskingInBackground }
    }

    @Test(
        "an answer about a left-over that is not final is waited for; one about something else is none, and nobody was told",
        arguments: ScriptedService.Flaw.allCases)
    func flawedLeftover(_ flaw: ScriptedService.Flaw) async throws {
        let bench = try await KioskBench(script: [.lost, .lost, .lost])
        let card = try await bench.readCard()
        do {
            let last = try await bench.nextRun()
            _ = try? await last.authorize(card, amount: 12.34, currency: "EUR")
        }
        await bench.psp.setResult(flaw, for: card.id)
        let service = try await bench.nextRun(decided: { _, _ in })
        let isFinal = ![.processing, .requiresPaymentMethod, .unknownStatus].contains(flaw)
        #expect(await service.unsettledPayments.isEmpty == isFinal)
        await bench.psp.setResult(.approved, for: card.id)
        try await wait(for: "end") { await service.unsettledPayments.isEmpty }
        #expect(await bench.psp.reversals == (isFinal ? [card.id] : []))
    }

    @Test("the store's key is wrapped by systemd's credential where there is one; where there is none, the log says so")
    func credential() async throws {
        func worker(_ directory: URL?) async throws -> String {
            let environment = directory.map { ["CREDENTIALS_DIRECTORY": $0.path] } ?? [:]
            let outcome = try await Program.run(
                [Program.built("payment-worker"), folder.url.path, key, "credential"], environment: environment)
            #expect(outcome.status == 0)
            return outcome.output + outcome.error
        }
        let warning = "the store's key is not wrapped"
        let without = try await worker(nil)
        #expect(without.contains("wrapped: false") && without.contains(warning))
        let credentials = folder.url.appending(path: "credentials")
        try FileManager.default.createDirectory(at: credentials, withIntermediateDirectories: false)
        let other = try await worker(credentials)
        #expect(other.contains("wrapped: false") && other.contains(warning))
        // TEST
        let file = credentials.appending(path: "swift-contactless-store")
        try Data(0..<32).write(to: file)
        let with = try await worker(credentials)
        #expect(with.contains("wrapped: true") && !with.contains(warning) && !with.contains("error"))
        try Data(0..<31).write(to: file)
        let short = try await worker(credentials)
        #expect(short.contains("wrapped: false") && short.contains("error:") && short.contains("credential"))
    }

    @Test("where nothing can be written down, the payment service is not asked")
    func noDisk() async throws {
        let bench = try await KioskBench()
        try bench.insert()
        let card = try await bench.service.read(PaymentCardTransactionRequest(amount: 1, currencyCode: "EUR"))
        // A file where the folder must be.
        try Data().write(to: bench.reader.terminal.folder.appending(path: "payments"))
        do {
            _ = try await bench.service.authorize(card, amount: 1, currency: "EUR")
            Issue.record("no error")
        } catch TapToPayError.notRecorded(let reason) {
            #expect(reason.contains("Not a directory"))
        }
        #expect(await bench.psp.calls.isEmpty)
        // What has to be taken back is tried all the same.
        #expect(try await bench.service.reverse("some-key"))
        #expect(await bench.psp.reversals == ["some-key"])
    }

    @Test("a reversal that is not confirmed is asked for again until it is, though nobody waits for it")
    func reversalLater() async throws {
        let bench = try await KioskBench()
        await bench.psp.failReversals(3)
        #expect(try await bench.service.reverse("some-key") == false)
        #expect(await bench.service.unsettledPayments.map(\.id) == ["some-key"])
        try await wait(for: "reversal") { await bench.psp.reversals == ["some-key"] }
        try await wait(for: "end") { await bench.service.unsettledPayments.isEmpty }
    }

    @Test("a payment that is taken back while it is asked for is not approved, whatever the answer says")
    func takenBackMeanwhile() async throws {
        let bench = try await KioskBench(script: [.held])
        try bench.insert()
        let card = try await bench.service.read(PaymentCardTransactionRequest(amount: 1, currencyCode: "EUR"))
        let asking = Task { try await bench.service.authorize(card, amount: 1, currency: "EUR") }
        try await wait(for: "call") { await bench.psp.calls.count == 1 }
        #expect(try await bench.service.reverse(card.id))
        #expect(await bench.psp.reversals == [card.id])
        await bench.psp.release()
        await #expect(throws: TapToPayError.takenBack) { _ = try await asking.value }
        #expect(await bench.service.unsettledPayments.isEmpty)
    }

    @Test("a payment that is being taken back is not asked for again; what was not answered can be resolved")
    func takenBack() async throws {
        let bench = try await KioskBench(script: [.lost, .lost, .lost])
        try bench.insert()
        let card = try await bench.service.read(PaymentCardTransactionRequest(amount: 1, currencyCode: "EUR"))
        await #expect(throws: TapToPayError.outcomeUnknown(key: card.id)) {
            _ = try await bench.service.authorize(card, amount: 1, currency: "EUR")
        }
        #expect(await bench.service.unsettledPayments.map(\.amount) == [1])
        await bench.psp.setResult(.declined, for: card.id)
        #expect(try await bench.service.resolve(card.id)?.status == .declined)
        #expect(await bench.service.unsettledPayments.isEmpty)
        #expect(await bench.psp.reversals.isEmpty)

        await bench.psp.setResult(nil, for: card.id)
        await bench.psp.setScript([.lost, .lost, .lost])
        _ = try? await bench.service.authorize(card, amount: 1, currency: "EUR")
        await bench.psp.failReversals(3)
        await #expect(throws: PaymentServiceError.noAnswer("the reversal was not confirmed")) {
            _ = try await bench.service.resolve(card.id)
        }
        await bench.psp.failReversals(1_000_000)
        let calls = await bench.psp.calls.count
        await #expect(throws: TapToPayError.takenBack) {
            _ = try await bench.service.authorize(card, amount: 1, currency: "EUR")
        }
        #expect(await bench.psp.calls.count == calls)
    }
}
