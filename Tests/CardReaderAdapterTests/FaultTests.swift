import CardReaderAdapter
import Foundation
import Testing

/// What may go wrong, in every state that it can go wrong in.  Each ends as documented, and the next payment works.
@Suite(.timeLimit(.minutes(10))) struct FaultTests {
    enum State: CaseIterable { case waitingForRemoval, creating, collecting, processing }
    enum Fault: CaseIterable { case unplug, serviceStopped, cancelIntent, cancelTask }

    /// How the payment ends: nil is a payment.
    private static func end(_ fault: Fault, in state: State) -> String? {
        switch (fault, state) {
        case (_, .processing): nil
        case (.unplug, .creating), (.serviceStopped, .creating):
            "intentCreation(underlyingError: bluetoothDisconnected)"
        case (.unplug, _), (.serviceStopped, _): "paymentMethodCollection(underlyingError: bluetoothDisconnected)"
        // There is no intent yet.
        case (.cancelIntent, .waitingForRemoval), (.cancelIntent, .creating): nil
        case (.cancelTask, .creating):
            "intentCreation(underlyingError: commandCancelled(from: CancellationSource.app))"
        case (.cancelIntent, _), (.cancelTask, _):
            "paymentMethodCollection(underlyingError: commandCancelled(from: CancellationSource.app))"
        }
    }

    @Test("a fault in a state", arguments: Fault.allCases.flatMap { fault in State.allCases.map { (fault, $0) } })
    func fault(_ fault: Fault, _ state: State) async throws {
        let bench = AdapterBench()
        let events = Seen(bench.service.readerEvents)
        try await bench.connect(options: CardReaderConnectionOptions(autoReconnect: false))
        switch state {
        case .waitingForRemoval: bench.readers.layCard()
        case .creating: await bench.processor.follow([.held])
        case .collecting: break
        case .processing:
            await bench.processor.follow([.approved, .held])
            bench.readers.present(.approved(.visa))
        }
        let payment = Task { await failure { _ = try await bench.pay() } }
        switch state {
        case .waitingForRemoval, .collecting: try await wait(for: "event") { !events.all.isEmpty }
        case .creating, .processing: try await wait(for: "question") { await bench.processor.isHolding }
        }
        let before = events.all.count
        switch fault {
        case .unplug: bench.readers.unplug("A")
        case .serviceStopped: bench.readers.unplug("A", reason: .serviceStopped)
        case .cancelIntent: try? await bench.service.cancelPaymentIntent()
        case .cancelTask: payment.cancel()
        }
        if fault == .unplug || fault == .serviceStopped {
            try await wait(for: "event") { events.all.count == before + 1 }
            #expect(events.all.last?.text == "disconnected \(fault == .unplug ? "usbDisconnected" : "serviceStopped")")
        }
        let end = Self.end(fault, in: state)
        if end == nil {
            bench.readers.takeCard()
            if state != .processing { bench.readers.present(.approved(.visa)) }
            await bench.processor.release()
        }
        #expect(await payment.value == end)
        await bench.processor.release()
        try await bench.payOnceMore()
    }

    @Test(
        "a payment service that answers wrongly, as an error, or not at all",
        arguments: [
            (ScriptedProcessor.Answer.wrong, 0, "intentCreation(underlyingError: processorAPIError)"),
            (.wrong, 1, "paymentCapture(underlyingError: processorAPIError)"),
            (.status(.succeeded), 0, "intentCreation(underlyingError: processorAPIError)"),
            (.status(.canceled), 1, "paymentCapture(underlyingError: processorAPIError)"),
            (.fails(.notConnected), 0, "intentCreation(underlyingError: notConnectedToInternet)"),
            (.fails(.notConnected), 1, "paymentCapture(underlyingError: notConnectedToInternet)"),
            (.fails(.sessionExpired), 1, "paymentCapture(underlyingError: readerSessionExpired)"),
            (.never, 0, "intentCreation(underlyingError: requestTimedOut)"),
            (.never, 1, "paymentCapture(underlyingError: requestTimedOut)"),
        ])
    func answers(_ answer: ScriptedProcessor.Answer, _ call: Int, _ error: String) async throws {
        var limits = ContactlessReaderService.TimeLimits()
        if case .never = answer { limits.processor = .milliseconds(500) }
        let bench = AdapterBench(
            script: Array(repeating: .approved, count: call) + [answer], limits: limits)
        try await bench.connect()
        bench.readers.present(.approved(.visa))
        #expect(await failure { _ = try await bench.pay() } == error)
        if call == 1, case .never = answer {
            // What comes when nobody waits any more changes nothing; the next question has the same key.
            await bench.processor.release()
            await bench.processor.follow([])
            #expect(try await bench.service.retryActivePaymentIntent().status == .requiresCapture)
            #expect(await Set(bench.processor.calls(of: "process").map(\.key)).count == 1)
        }
        if call == 0 { #expect(await bench.service.activePaymentIntent == nil) }
        await bench.processor.release()
        await bench.processor.follow([])
        bench.readers.present(.approved(.visa))
        #expect(try await bench.pay().status == .requiresCapture)
    }
}
