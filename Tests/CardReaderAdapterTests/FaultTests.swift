import CardReaderAdapter
import CardReceipts
import Foundation
import Synchronization
import TestSupport
import Testing
import Waiting

/// What may go wrong, in every state that it can go wrong in.  Each ends as documented, and the next payment works.
@Suite(.simulatedTime, .timeLimit(.minutes(10))) struct FaultTests {
    /// A row of the article Faults: what is under way, what happens, how the call ends, what is published.
    struct Row: Sendable, CustomTestStringConvertible {
        let state: String, fault: String, end: String?
        let events: [String]
        var testDescription: String { "\(state): \(fault)" }
    }

    private static let table: [Row] = {
        let article = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/CardReaderAdapter/Documentation.docc/Faults.md")
        let text = (try? String(contentsOf: article, encoding: .utf8)) ?? ""
        return text.split(separator: "\n").filter { $0.hasPrefix("| ") }.dropFirst().map { line in
            let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            let parts = cells[2].split(separator: ", ")
            let cause = parts.last?.replacing("(app)", with: "(from: CancellationSource.app)") ?? ""
            return Row(
                state: cells[0], fault: cells[1],
                end: parts.count == 2 ? "\(parts[0])(underlyingError: \(cause))" : nil,
                events: cells[3] == "none" ? [] : cells[3].components(separatedBy: "; "))
        }
    }()

    /// A subscription that is cancelled is told nothing: ``MoneyTests`` has what becomes of the money then.
    private static let rows = table.flatMap { row in
        Surface.allCases.filter { $0 == .sequences || row.fault != "task canceled" }.map { (row, $0) }
    }

    @Test("the table has each state with each fault") func tableIsWhole() {
        #expect(Self.table.count == 12 * 4)
        #expect(Set(Self.table.map(\.testDescription)).count == 12 * 4)
    }

    private static let refund = RefundParameters(chargeId: "charge-1", amount: 5, currency: "eur")

    @Test("a fault in a state ends as documented, with these events and no others", arguments: rows)
    func fault(_ row: Row, _ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let (service, readers, processor) = (bench.service, bench.readers, bench.processor)
        let events = Seen(service.readerEvents)
        let lists = Seen(service.connectedReaders)
        let reader = try await bench.find()
        let once = CardReaderConnectionOptions(autoReconnect: false)
        let isOfPayment = !["search", "connection"].contains(row.state)
        if isOfPayment { try await service.connect(reader, options: once) }
        let (before, call): ([ScriptedProcessor.Answer], @Sendable () async throws -> Void)
        let pay: @Sendable () async throws -> Void = { _ = try await bench.pay() }
        let retry: @Sendable () async throws -> Void = { _ = try await service.retryActivePaymentIntent() }
        let giveBack: @Sendable () async throws -> Void = {
            _ = try await service.refundPayment(parameters: Self.refund)
        }
        await processor.setRefund(.succeeded, needsCard: true)
        let captured = Mutex(false)
        switch row.state {
        case "payment, card to be removed":
            readers.layCard()
            (before, call) = ([], pay)
        case "payment, intent being made": (before, call) = ([.held], pay)
        case "payment, card awaited": (before, call) = ([], pay)
        case "payment, being processed":
            readers.present(.approved(.visa))
            (before, call) = ([.approved, .held], pay)
        case "retry, card awaited", "retry, being processed":
            readers.present(.approved(.visa))
            let isLost = row.state == "retry, being processed"
            await processor.follow([.approved, .fails(isLost ? .noAnswer : .declined(.generic))])
            #expect(await failure { _ = try await bench.pay() } != nil)
            // The events that a publisher has still to tell are the first payment's.
            try await wait(for: "its last event") { events.all.last?.text == "cardDetailsCollected" }
            (before, call) = (isLost ? [.held] : [], retry)
        case "capture, card to be removed":
            readers.present(.approved(.visa))
            (before, call) = (
                [],
                {
                    _ = try await service.collectPayment(AdapterBench.payment) { _ in
                        readers.layCard()
                    } capture: { intent in
                        // It ends when the test has seen the prompt, and the fault.
                        try await toTheEnd { try await wait(for: "the end") { captured.withLock { $0 } } }
                        return PaymentIntent(
                            id: intent.id, status: .succeeded, created: intent.created, amount: intent.amount,
                            currency: intent.currency)
                    }
                }
            )
        case "refund, being prepared": (before, call) = ([.held], giveBack)
        case "refund, card awaited": (before, call) = ([], giveBack)
        case "refund, being processed":
            readers.present(.approved(.visa))
            (before, call) = ([.approved, .held], giveBack)
        case "search":
            let found = service.discoveredReaders
            (before, call) = ([], { for try await _ in found {} })
        case "connection":
            bench.shop.set(token: .silent)
            (before, call) = ([], { try await service.connect(reader, options: once) })
        default:
            Issue.record("no such state: \(row.state)")
            return
        }
        let start = events.all.count
        await processor.follow(before)
        let task = Task { await failure(call) }
        switch row.state {
        case "search": break
        case "connection": try await wait(for: "token") { bench.shop.isAsked }
        case "capture, card to be removed":
            try await wait(for: "prompt") { events.all.count == 5 }
        case _ where before.contains(where: { if case .held = $0 { true } else { false } }):
            try await wait(for: "question") { await processor.isHolding }
        default: try await wait(for: "event") { events.all.count > start }
        }
        switch row.fault {
        case "unplugged", "pcscd stopped":
            readers.unplug("A", reason: row.fault == "unplugged" ? .usbDisconnected : .serviceStopped)
            if isOfPayment {
                try await wait(for: "empty list") { lists.all.count == 3 }
            }
        case "canceled" where row.state == "search": try await service.cancelDiscovery()
        case "canceled" where row.state == "connection": try service.clear()
        case "canceled" where row.state.hasPrefix("refund"): try? await service.cancelRefund()
        case "canceled": try? await service.cancelPaymentIntent()
        case "task canceled": task.cancel()
        default: Issue.record("no such fault: \(row.fault)")
        }
        // What is left to happen, where it has not ended.
        captured.withLock { $0 = true }
        bench.shop.answerLate()
        if row.state == "search" {
            // It goes on, with whatever is plugged in.
            readers.plug(SimulatedReader(serial: "B"))
            if row.fault != "canceled" {
                let lists = Seen(service.discoveredReaders)
                try await wait(for: "list") { lists.all.last?.last?.serial == "B" }
            }
            try await service.cancelDiscovery()
        } else if row.end == nil {
            if !(row.state.hasPrefix("capture") && row.fault != "canceled") { readers.takeCard() }
            if row.fault == "canceled", row.events.last == "cardDetailsCollected", before.count < 2,
                row.state.hasPrefix("payment")
            {
                readers.present(.approved(.visa))
            }
            await processor.release()
        }
        #expect(await task.value == row.end)
        await processor.release()
        try await wait(for: "events") { events.all.count >= row.events.count }
        #expect(events.all.map(\.text) == row.events)
        let isConnected = isOfPayment && !["unplugged", "pcscd stopped"].contains(row.fault)
        let serials: [[String]] = !isOfPayment ? [[]] : isConnected ? [[], ["A"]] : [[], ["A"], []]
        #expect(lists.all.map { $0.map(\.serial) } == serials)
        bench.shop.set()
        await processor.setRefund(.succeeded, needsCard: false)
        try await bench.payOnceMore()
    }

    @Test(
        "A10: a reader that is unplugged again while it is connected again comes back all the same",
        arguments: Surface.allCases)
    func unpluggedTwice(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let states = Seen(bench.service.reconnectionEvents)
        let events = Seen(bench.service.readerEvents)
        try await bench.connect()
        bench.shop.set(token: .silent)
        bench.readers.unplug("A")
        bench.readers.plug(SimulatedReader(serial: "A"))
        try await wait(for: "token") { bench.shop.isAsked }
        bench.readers.unplug("A")
        bench.shop.set()
        bench.shop.answerLate()
        bench.readers.plug(SimulatedReader(serial: "A"))
        try await wait(for: "reconnection") { states.all.count == 2 }
        guard case .succeeded = states.all[1] else { throw AdapterBench.Missing() }
        #expect(bench.shop.tokens == 2, "the one that was fetched is still good")
        #expect(events.all.map(\.text) == ["disconnected usbDisconnected"])
        try await bench.payOnceMore()
    }

    @Test("A10: a reader that is there and cannot be opened costs one token, however often it is tried")
    func oneToken() async throws {
        let readers = LateReaders()
        var limits = ContactlessReaderService.TimeLimits()
        limits.reconnectionPauses = Array(repeating: .milliseconds(1), count: 5)
        let service = ContactlessReaderService(
            processor: ScriptedProcessor([]), backend: readers, journal: .memory, limits: limits)
        let states = Seen(service.reconnectionEvents)
        let shop = Shop()
        try service.start(shop, discoveryMethod: .simulated)
        for try await list in service.discoveredReaders {
            if let reader = list.first { try await service.connect(reader, options: nil) }
        }
        readers.letGo()
        readers.refuse(4)
        readers.simulated.unplug("A")
        readers.simulated.plug(SimulatedReader(serial: "A"))
        try await wait(for: "reconnection") { states.all.count == 2 }
        guard case .succeeded = states.all[1] else { throw AdapterBench.Missing() }
        #expect(readers.log.count { $0 == "open" } == 6 && shop.tokens == 2)
    }

    @Test("A10: a reader is opened again when the one that was lost is given back, and not before")
    func givenBackFirst() async throws {
        let readers = LateReaders()
        let service = ContactlessReaderService(processor: ScriptedProcessor([]), backend: readers, journal: .memory)
        let states = Seen(service.reconnectionEvents)
        let shop = Shop()
        try service.start(shop, discoveryMethod: .simulated)
        for try await list in service.discoveredReaders {
            if let reader = list.first { try await service.connect(reader, options: nil) }
        }
        readers.simulated.unplug("A")
        readers.simulated.plug(SimulatedReader(serial: "A"))
        // The token is fetched before the reader is opened.
        try await wait(for: "token") { shop.tokens == 2 }
        try await wait(for: "closing") { readers.log.last == "closing" }
        try await Time.sleep(for: .seconds(1))
        #expect(readers.log == ["open", "closing"])
        readers.letGo()
        try await wait(for: "reconnection") { states.all.count == 2 }
        #expect(readers.log == ["open", "closing", "closed", "open"])
    }

    @Test(
        "A18: nothing comes between a payment and its cancellation, though it ends before its reader says so",
        arguments: [false, true])
    func cancelledLate(_ failsToCancel: Bool) async throws {
        let readers = LateReaders(failsToCancel: failsToCancel)
        let processor = ScriptedProcessor([])
        let service = ContactlessReaderService(processor: processor, backend: readers, journal: .memory)
        let events = Seen(service.readerEvents)
        try service.start(Shop(), discoveryMethod: .simulated)
        for try await list in service.discoveredReaders {
            if let reader = list.first { try await service.connect(reader, options: nil) }
        }
        let payment = Task { await failure { _ = try await service.capturePayment(AdapterBench.payment) } }
        try await wait(for: "wait for a card") { events.all.contains { $0.text == "waiting 4" } }
        let cancellation = Task { await failure { try await service.cancelPaymentIntent() } }
        #expect(
            await payment.value
                == "paymentMethodCollection(underlyingError: commandCancelled(from: CancellationSource.app))")
        // Of whoever comes between, nobody waits for a card.
        readers.simulated.present(.unreadable)
        #expect(
            await failure { _ = try await service.retryActivePaymentIntent() }
                == "paymentMethodCollection(underlyingError: readerBusy)")
        #expect(
            await failure { try await service.cancelPaymentIntent() }
                == "paymentCancellation(underlyingError: readerBusy)")
        readers.letGo()
        #expect(
            await cancellation.value
                == (failsToCancel ? "paymentCancellation(underlyingError: readerCommunicationError)" : nil))
        #expect(await processor.calls.map(\.kind) == (failsToCancel ? ["create"] : ["create", "cancel"]))
        // The place is free again.
        readers.simulated.present(.unreadable)
        #expect(
            await failure { _ = try await service.capturePayment(AdapterBench.payment) }
                == "paymentMethodCollection(underlyingError: readerCommunicationError)")
    }

    @Test(
        "an update that is interrupted ends, whatever the driver does; no payment begins meanwhile, and the next works",
        arguments: [
            ("unplugged", "readerSoftwareUpdateFailedInterrupted"),
            ("task canceled", "commandCancelled(from: CancellationSource.app)"),
        ])
    func updating(_ fault: String, _ error: String) async throws {
        let readers = LateReaders()
        let service = ContactlessReaderService(processor: ScriptedProcessor([]), backend: readers, journal: .memory)
        let updates = Seen(service.softwareUpdateEvents)
        let once = CardReaderConnectionOptions(autoReconnect: false)
        func connect() async throws {
            try service.start(Shop(), discoveryMethod: .simulated)
            for try await list in service.discoveredReaders {
                if let reader = list.first { try await service.connect(reader, options: once) }
            }
        }
        try await connect()
        let update = Task { await failure { try await service.installUpdate() } }
        try await wait(for: "update") { readers.log.last == "updating" }
        #expect(
            await failure { _ = try await service.capturePayment(AdapterBench.payment) }
                == "paymentMethodCollection(underlyingError: readerBusy)")
        #expect(
            await failure { try await service.installUpdate() }
                == "softwareUpdate(underlyingError: readerBusy, batteryLevel: nil)")
        if fault == "unplugged" { readers.simulated.unplug("A") } else { update.cancel() }
        #expect(await update.value == "softwareUpdate(underlyingError: \(error), batteryLevel: nil)")
        readers.letGo()
        try await wait(for: "end of the driver") { readers.log.contains("updated") }
        if fault == "unplugged" {
            readers.simulated.plug(SimulatedReader(serial: "A"))
            try await connect()
        }
        readers.simulated.present(.approved(.visa))
        #expect(try await service.capturePayment(AdapterBench.payment).status == .requiresCapture)
        try await wait(for: "states") { updates.all.count >= 4 }
        let states = updates.all.map { state in
            switch state {
            case .none: "none"
            case .started: "started"
            case .failed: "failed"
            default: "other"
            }
        }
        #expect(states == ["none", "started", "failed", "none"])
    }

    @Test(
        "the payment service does not answer a cancellation, a refund, or whether a refund needs the card",
        arguments: Surface.allCases)
    func silence(_ surface: Surface) async throws {
        var limits = ContactlessReaderService.TimeLimits()
        limits.processor = .seconds(8)
        let bench = AdapterBench(script: [.approved, .fails(.noAnswer), .never], limits: limits, on: surface)
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.pay() } != nil)
        #expect(
            await failure { try await bench.service.cancelPaymentIntent() }
                == "paymentCancellation(underlyingError: requestTimedOut)")
        await bench.processor.release()
        try await bench.service.cancelPaymentIntent()
        await bench.processor.follow([.never])
        #expect(
            await failure { _ = try await bench.service.refundPayment(parameters: Self.refund) }
                == "refundCreation(underlyingError: requestTimedOut)")
        #expect(await bench.processor.calls(of: "refund").isEmpty)
        await bench.processor.release()
        // One that was done, and of which the answer comes late: the second question has it.
        await bench.processor.follow([.approved, .held])
        #expect(
            await failure { _ = try await bench.service.refundPayment(parameters: Self.refund) }
                == "refundPayment(underlyingError: requestTimedOut, shouldRetry: true)")
        await bench.processor.release()
        #expect(try await bench.service.refundPayment(parameters: Self.refund) == "success")
        #expect(await Set(bench.processor.calls(of: "refund").map(\.key)).count == 1)
        try await bench.payOnceMore()
    }

    @Test(
        "a payment service that answers wrongly, as an error, or not at all",
        arguments: [
            (ScriptedProcessor.Answer.wrong, 0, "intentCreation(underlyingError: processorAPIError)", false),
            (.wrong, 1, "paymentCapture(underlyingError: processorAPIError)", true),
            (.status(.succeeded), 0, "intentCreation(underlyingError: processorAPIError)", false),
            (.status(.canceled), 1, "paymentCapture(underlyingError: processorAPIError)", false),
            (.fails(.notConnected), 0, "intentCreation(underlyingError: notConnectedToInternet)", false),
            (.fails(.notConnected), 1, "paymentCapture(underlyingError: notConnectedToInternet)", false),
            (.fails(.sessionExpired), 1, "paymentCapture(underlyingError: readerSessionExpired)", false),
            (.never, 0, "intentCreation(underlyingError: requestTimedOut)", false),
            (.never, 1, "paymentCapture(underlyingError: requestTimedOut)", true),
            // It succeeds when nobody waits for it any more.
            (.held, 1, "paymentCapture(underlyingError: requestTimedOut)", true),
        ] as [(ScriptedProcessor.Answer, Int, String, Bool)], Surface.allCases)
    func answers(_ row: (ScriptedProcessor.Answer, Int, String, Bool), _ surface: Surface) async throws {
        let (answer, call, error, isUnknown) = row
        var limits = ContactlessReaderService.TimeLimits()
        switch answer {
        case .never, .held: limits.processor = .seconds(8)
        default: break
        }
        let bench = AdapterBench(
            script: Array(repeating: .approved, count: call) + [answer], limits: limits, on: surface)
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.pay() } == error)
        await bench.processor.release()
        await bench.processor.follow([])
        if isUnknown {
            // What comes when nobody waits any more changes nothing; the next question has the same key.
            #expect(
                await failure { _ = try await bench.pay() } == "intentCreation(underlyingError: paymentOutcomeUnknown)")
            #expect(try await bench.service.retryActivePaymentIntent().status == .requiresCapture)
            #expect(await Set(bench.processor.calls(of: "process").map(\.key)).count == 1)
        }
        if call == 0 { #expect(await bench.activePaymentIntent == nil) }
        await bench.processor.release()
        await bench.processor.follow([])
        bench.readers.present(.approved(.visa))
        #expect(try await bench.pay().status == .requiresCapture)
    }
}

/// Readers that take as long as the test wants to be given back, to be updated, and to tell that a read was cancelled.
private final class LateReaders: ReaderBackend {
    let simulated = SimulatedReaders([SimulatedReader(serial: "A")])
    /// Whether a read that was cancelled is told of as one that was not.
    let failsToCancel: Bool
    private let state = Mutex((log: [String](), isHeld: true, refusals: 0))
    private let held = Mutex<[CheckedContinuation<Void, Never>]>([])

    init(failsToCancel: Bool = false) { self.failsToCancel = failsToCancel }

    var log: [String] { state.withLock { $0.log } }
    func note(_ line: String) { state.withLock { $0.log.append(line) } }
    /// The next so many are not opened.
    func refuse(_ count: Int) { state.withLock { $0.refusals = count } }
    func letGo() {
        state.withLock { $0.isHeld = false }
        let waiting = held.withLock { held in
            defer { held = [] }
            return held
        }
        for one in waiting { one.resume() }
    }
    /// Also for whoever is canceled.
    func waitUntilLetGo() async {
        await withCheckedContinuation { continuation in
            let isHeld = held.withLock { held in
                let isHeld = state.withLock { $0.isHeld }
                if isHeld { held.append(continuation) }
                return isHeld
            }
            if !isHeld { continuation.resume() }
        }
    }

    func supports(_ method: CardReaderDiscoveryMethod, _ type: CardReaderType) -> Bool { true }
    func attachedReaders() -> AsyncThrowingStream<[AttachedReader], any Error> { simulated.attachedReaders() }
    func open(
        _ reader: AttachedReader, token: String, acceptingTerms: Bool,
        update: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void
    ) async throws -> any ReaderLink {
        note("open")
        let isRefused = state.withLock { state in
            defer { state.refusals = max(0, state.refusals - 1) }
            return state.refusals > 0
        }
        if isRefused { throw UnderlyingError.readerCommunicationError }
        return Link(
            link: try await simulated.open(reader, token: token, acceptingTerms: acceptingTerms, update: update),
            readers: self)
    }

    private struct Link: ReaderLink {
        let link: any ReaderLink
        let readers: LateReaders

        var events: AsyncStream<LinkEvent> { link.events }
        func collect(
            _ request: CollectionRequest, tell: @escaping @Sendable (CardReaderEvent) -> Void
        ) async throws -> CollectedCard { try await link.collect(request, tell: tell) }
        func cancelCollection() async throws -> Bool {
            let wasCancelled = try await link.cancelCollection()
            await readers.waitUntilLetGo()
            if readers.failsToCancel { throw UnderlyingError.readerCommunicationError }
            return wasCancelled
        }
        func waitForRemoval(_ cardIsThere: @escaping @Sendable () -> Void) async -> Bool {
            await link.waitForRemoval(cardIsThere)
        }
        func installUpdate(_ tell: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void) async throws {
            tell(.started(cancelable: nil))
            readers.note("updating")
            await readers.waitUntilLetGo()
            tell(.completed)
            readers.note("updated")
        }
        func close() async {
            readers.note("closing")
            await readers.waitUntilLetGo()
            readers.note("closed")
            await link.close()
        }
    }
}
