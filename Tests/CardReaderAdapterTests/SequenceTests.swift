import CardReaderAdapter
import CardReaderCombine
import Foundation
import OpenCombine
import Synchronization
import Testing

/// The sequences, and the publishers made of them: one suite for both.
@Suite(.timeLimit(.minutes(10))) struct SequenceTests {
    enum Surface: CaseIterable { case sequences, publishers }

    /// What comes to one subscriber.
    private final class Log: @unchecked Sendable {
        // Unchecked: `hold` is set once, before anything else is done.
        private let lines = Mutex<[String]>([])
        private var hold: Any?
        var all: [String] { lines.withLock { $0 } }

        private func note(_ line: String) { lines.withLock { $0.append(line) } }

        init(events service: ContactlessReaderService, _ surface: Surface) {
            switch surface {
            case .sequences:
                let stream = service.readerEvents
                let task = Task { for await event in stream { note(event.text) } }
                hold = AnyCancellable { task.cancel() }
            case .publishers:
                hold = CombineCardReaderService(service).readerEvents.sink { [unowned self] in note($0.text) }
            }
        }

        init(discovery service: ContactlessReaderService, _ surface: Surface) {
            switch surface {
            case .sequences:
                let stream = service.discoveredReaders
                let task = Task {
                    do {
                        for try await list in stream { note("\(list.map(\.serial))") }
                        note("finished")
                    } catch { note("\(error)") }
                }
                hold = AnyCancellable { task.cancel() }
            case .publishers:
                hold = CombineCardReaderService(service).discoveredReaders.sink { [unowned self] completion in
                    switch completion {
                    case .finished: note("finished")
                    case .failure(let error): note("\(error)")
                    }
                } receiveValue: { [unowned self] in
                    note("\($0.map(\.serial))")
                }
            }
        }
    }

    /// One value of a publisher, or its failure.
    private func value<Output: Sendable, Failure: Error>(_ publisher: some Publisher<Output, Failure>) async throws
        -> Output
    {
        let hold = Mutex<AnyCancellable?>(nil)
        defer { hold.withLock { $0 = nil } }
        let (stream, continuation) = AsyncThrowingStream<Output, any Error>.makeStream()
        let cancellable = publisher.sink { completion in
            switch completion {
            case .finished: continuation.finish()
            case .failure(let error): continuation.finish(throwing: error)
            }
        } receiveValue: {
            continuation.yield($0)
        }
        for try await value in stream {
            withExtendedLifetime(cancellable) {}
            return value
        }
        throw AdapterBench.Missing()
    }

    @Test(
        "A26: two subscribers get every one of 1,000 events sent in a burst, in one order", arguments: Surface.allCases)
    func burst(_ surface: Surface) async throws {
        let bench = AdapterBench([SimulatedReader(serial: "A", batteryLevel: 1)])
        try await bench.connect()
        let logs = [Log(events: bench.service, surface), Log(events: bench.service, surface)]
        for index in 0..<1000 { bench.readers.setBattery(index.isMultiple(of: 2) ? 0.1 : 0.9, of: "A") }
        let expected = (0..<1000).map { $0.isMultiple(of: 2) ? "lowBattery" : "lowBatteryResolved" }
        for log in logs {
            try await wait(for: "events") { log.all.count >= 1000 }
            #expect(log.all == expected)
        }
    }

    @Test(
        "A26: a search, a connection, a payment and an unplugging look the same on both surfaces",
        arguments: Surface.allCases)
    func parity(_ surface: Surface) async throws {
        let bench = AdapterBench()
        let service = bench.service
        let combine = CombineCardReaderService(service)
        let lists = Log(discovery: service, surface)
        let events = Log(events: service, surface)
        switch surface {
        case .sequences:
            try service.start(bench.shop, discoveryMethod: .simulated)
            #expect(throws: CardReaderServiceError.self) {
                try service.start(bench.shop, discoveryMethod: .simulated)
            }
        case .publishers:
            try combine.start(bench.shop, discoveryMethod: .simulated)
            #expect(throws: CardReaderServiceError.self) {
                try combine.start(bench.shop, discoveryMethod: .simulated)
            }
        }
        try await wait(for: "reader") { lists.all.last == #"["A"]"# }
        let options = CardReaderConnectionOptions(autoReconnect: false)
        bench.readers.present(.approved(.visa))
        let intent: PaymentIntent
        switch surface {
        case .sequences:
            try await service.connect(CardReader(serial: "A"), options: options)
            intent = try await service.capturePayment(AdapterBench.payment)
        case .publishers:
            _ = try await value(combine.connect(CardReader(serial: "A"), options: options))
            intent = try await value(combine.capturePayment(AdapterBench.payment))
        }
        #expect(intent.status == .requiresCapture)
        bench.readers.unplug("A")
        try await wait(for: "events") { events.all.count == 5 }
        try await wait(for: "end") { lists.all.last == "finished" }
        #expect(lists.all == ["[]", #"["A"]"#, "finished"])
        #expect(
            events.all == [
                "waiting 4", "cardInserted", "message Remove the card", "cardDetailsCollected",
                "disconnected usbDisconnected",
            ])
        let errors: [String?]
        switch surface {
        case .sequences:
            errors = [
                await failure { try await service.disconnect() },
                await failure { try await service.cancelPaymentIntent() },
                await failure { _ = try await service.retryActivePaymentIntent() },
                await failure { try await service.cancelRefund() },
            ]
        case .publishers:
            errors = [
                await failure { try await value(combine.disconnect()) },
                await failure { try await value(combine.cancelPaymentIntent()) },
                await failure { _ = try await value(combine.retryActivePaymentIntent()) },
                await failure { try await value(combine.cancelRefund()) },
            ]
        }
        #expect(
            errors == [
                "disconnection(underlyingError: notConnectedToReader)",
                "paymentCancellation(underlyingError: noActivePaymentIntent)", "retryNotPossibleNoActivePayment",
                "refundCancellation(underlyingError: noRefundInProgress)",
            ])
    }

    @Test("A26: a publisher gives as many as are asked for, and a subscription that is cancelled cancels the payment")
    func demand() async throws {
        let bench = AdapterBench([SimulatedReader(serial: "A", batteryLevel: 1)])
        try await bench.connect()
        let combine = CombineCardReaderService(bench.service)
        let few = Mutex<[String]>([])
        let firstThree = combine.readerEvents.prefix(3).sink { event in few.withLock { $0.append(event.text) } }
        for index in 0..<100 { bench.readers.setBattery(index.isMultiple(of: 2) ? 0.1 : 0.9, of: "A") }
        try await wait(for: "three") { few.withLock { $0.count } == 3 }
        #expect(few.withLock { $0 } == ["lowBattery", "lowBatteryResolved", "lowBattery"])
        firstThree.cancel()

        let events = Seen(bench.service.readerEvents)
        let payment = combine.capturePayment(AdapterBench.payment).sink { _ in
        } receiveValue: { _ in
        }
        try await wait(for: "wait for a card") { events.all.contains { $0.text == "waiting 4" } }
        payment.cancel()
        try await value(combine.cancelPaymentIntent())
        try await bench.payOnceMore()
    }

    @Test("a stream that comes late has the present state first, and one that is let go is forgotten")
    func late() async throws {
        let bench = AdapterBench()
        try await bench.connect()
        for _ in 0..<100 {
            var first: [CardReader]?
            for await list in bench.service.connectedReaders {
                first = list
                break
            }
            #expect(first?.map(\.serial) == ["A"])
        }
    }
}
