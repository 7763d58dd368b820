import CardReaderAdapter
import CardReaderCombine
import CardReceipts
import Foundation
import OpenCombine
import Synchronization
import TestSupport
import Testing

/// The sequences, and the publishers made of them: one suite for both.
@Suite(.simulatedTime, .timeLimit(.minutes(10))) struct SequenceTests {
    @Test(
        "A26: two subscribers get every one of 1,000 events sent in a burst, in one order", arguments: Surface.allCases)
    func burst(_ surface: Surface) async throws {
        let bench = AdapterBench([SimulatedReader(serial: "A", batteryLevel: 1)], on: surface)
        try await bench.connect()
        let logs = [Seen(bench.service.readerEvents), Seen(bench.service.readerEvents)]
        for index in 0..<1000 { bench.readers.setBattery(index.isMultiple(of: 2) ? 0.1 : 0.9, of: "A") }
        let expected = (0..<1000).map { $0.isMultiple(of: 2) ? "lowBattery" : "lowBatteryResolved" }
        for log in logs {
            try await wait(for: "events") { log.all.count >= 1000 }
            #expect(log.all.map(\.text) == expected)
        }
    }

    @Test(
        "A26: a search, a connection, a payment and an unplugging look the same on both surfaces",
        arguments: Surface.allCases)
    func parity(_ surface: Surface) async throws {
        let bench = AdapterBench(on: surface)
        let service = bench.service
        let lists = Seen(service.discoveredReaders)
        let events = Seen(service.readerEvents)
        try service.start(bench.shop, discoveryMethod: .simulated)
        #expect(throws: CardReaderServiceError.self) { try service.start(bench.shop, discoveryMethod: .simulated) }
        try await wait(for: "reader") { lists.all.last?.first?.serial == "A" }
        bench.readers.present(.approved(.visa))
        try await service.connect(
            CardReader(serial: "A"), options: CardReaderConnectionOptions(autoReconnect: false))
        #expect(try await bench.pay().status == .requiresCapture)
        bench.readers.unplug("A")
        try await wait(for: "events") { events.all.count == 5 }
        try await wait(for: "end") { lists.isOver }
        #expect(lists.all.map { $0.map(\.serial) } == [[], ["A"]])
        #expect(
            events.all.map(\.text) == [
                "waiting 4", "cardInserted", "message Remove the card", "cardDetailsCollected",
                "disconnected usbDisconnected",
            ])
        let errors = [
            await failure { try await service.disconnect() },
            await failure { try await service.cancelPaymentIntent() },
            await failure { _ = try await service.retryActivePaymentIntent() },
            await failure { try await service.cancelRefund() },
        ]
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

    @Test("the status of the service and of its payments")
    func statuses() async throws {
        let readers = SimulatedReaders([SimulatedReader(serial: "A")])
        let service = ContactlessReaderService(processor: ScriptedProcessor([]), backend: readers, journal: .memory)
        let states = Seen(service.paymentStatus)
        #expect(service.status == .ready)
        try service.start(Shop(), discoveryMethod: .simulated)
        for try await list in service.discoveredReaders {
            if let reader = list.first { try await service.connect(reader, options: nil) }
        }
        readers.present(.approved(.visa))
        _ = try await service.capturePayment(AdapterBench.payment)
        try await service.disconnect()
        try await wait(for: "end") { states.all.count == 7 }
        #expect(states.all == [.notReady, .ready, .notReady, .waitingForInput, .processing, .ready, .notReady])
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
