import EMVContactless
import Foundation
import KioskKit
import KioskTestSupport
import ProximityReader
import SmartCardSimulator
import TestSupport
import Testing
import Waiting

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct TapToPayServiceTests {
    @Test("a card is read and charged, under the read's own key; a refund likewise")
    func charge() async throws {
        let bench = try await KioskBench()
        try bench.insert()
        let result = try await bench.service.charge(amount: 12.34, currency: "EUR")
        #expect(result.status == .approved && result.responseCode == "00")
        try bench.insert()
        #expect(try await bench.service.refund(amount: 5, currency: "EUR").status == .approved)
        let calls = await bench.psp.calls
        #expect(calls.map(\.kind) == ["payment", "refund"])
        #expect(calls.map(\.amount) == [12.34, 5])
        #expect(Set(calls.map(\.key)).count == 2 && calls.allSatisfy { UUID(uuidString: $0.key) != nil })
    }

    @Test("a decline is a result, and a refusal an error that is not asked about again")
    func declined() async throws {
        let bench = try await KioskBench(script: [.declined, .refused])
        try bench.insert()
        let result = try await bench.service.charge(amount: 12.34, currency: "EUR")
        #expect(result.status == .declined && result.message == "Insufficient funds")
        try bench.insert()
        await #expect(throws: PaymentServiceError.refused(code: "merchant", message: "No such merchant.")) {
            _ = try await bench.service.charge(amount: 12.34, currency: "EUR")
        }
        #expect(await bench.psp.calls.count == 2)
    }

    @Test("an answer that is lost is asked for again, under the same key")
    func lost() async throws {
        let bench = try await KioskBench(script: [.lost, .lost, .approved])
        try bench.insert()
        #expect(try await bench.service.charge(amount: 12.34, currency: "EUR").status == .approved)
        let calls = await bench.psp.calls
        #expect(calls.count == 3 && Set(calls).count == 1)
    }

    @Test("where no answer comes at all, that nothing is known is said, and with which key to ask")
    func unknown() async throws {
        let bench = try await KioskBench(script: [.lost, .lost, .lost])
        try bench.insert()
        do {
            _ = try await bench.service.charge(amount: 12.34, currency: "EUR")
            Issue.record("no error")
        } catch let error as TapToPayError {
            let calls = await bench.psp.calls
            #expect(calls.count == 3)
            #expect(error == .outcomeUnknown(key: calls[0].key))
            #expect(error.localizedDescription.contains(calls[0].key))
        }
    }

    @Test("nothing is read before initialize(), nor while the machine sleeps; and it is afterwards")
    func theMachineSleeps() async throws {
        let bench = try await KioskBench(isPrepared: false)
        try bench.insert()
        await #expect(throws: TapToPayError.notInitialized) {
            _ = try await bench.service.charge(amount: 1, currency: "EUR")
        }
        try await bench.service.initialize()
        await bench.service.suspend()
        #expect(
            await thrown { _ = try await bench.service.charge(amount: 1, currency: "EUR") } == "readFromBackgroundError"
        )
        #expect(await thrown { try await bench.service.initialize() } == "backgroundRequestNotAllowed")
        try await bench.service.resume()
        #expect(try await bench.service.charge(amount: 1, currency: "EUR").status == .approved)
    }

    @Test("a session or a token that has run out is replaced, with a new token, by the next read")
    func expiry() async throws {
        let bench = try await KioskBench(isPrepared: false)
        try bench.insert()
        await bench.psp.setTokenLifetime(60)
        try await bench.service.initialize()
        bench.passTime(61)
        #expect(try await bench.service.charge(amount: 1, currency: "EUR").status == .approved)
        #expect(await bench.psp.tokens == 2)
        await bench.psp.setTokenLifetime(72 * 3600)
        bench.passTime(61)
        try await bench.service.initialize()
        try bench.insert()
        bench.passTime(24 * 3600 + 1)
        #expect(try await bench.service.charge(amount: 1, currency: "EUR").status == .approved)
        #expect(await bench.psp.tokens == 4)
    }

    @Test(
        "a card that wants another interface has not declined: that is told as itself, and EMV's message 1D",
        arguments: ["mastercard-decline", "visa-oda-fails-switch"], [false, true])
    func anotherInterface(_ card: String, _ inResult: Bool) async throws {
        var options = PaymentCardReader.Options()
        options.includeErrorInReadResult = inResult
        let bench = try await KioskBench(options: options) { configuration in
            // Cards can be inserted; no amount has to go online.
            configuration.terminal.abilities.insert(.contacts)
            for index in configuration.terminal.combinations.indices {
                configuration.terminal.combinations[index].floorLimit = nil
            }
        }
        let messages = ProximityReaderSystem.messages(of: bench.reader)
        try bench.insert(card)
        await #expect(throws: TapToPayError.anotherInterfaceNeeded) {
            _ = try await bench.service.charge(amount: 12.34, currency: "EUR")
        }
        #expect(await messages.contains { $0.message == .insertCard })
        #expect(await bench.psp.calls.isEmpty)
    }

    @Test("an answer that cannot be read is a lost one")
    func garbled() async throws {
        let bench = try await KioskBench(script: [.garbled, .approved])
        try bench.insert()
        #expect(try await bench.service.charge(amount: 12.34, currency: "EUR").status == .approved)
        #expect(Set(await bench.psp.calls).count == 1)
    }

    @Test(
        "an answer that is not final, or about another payment, amount or currency, is none",
        arguments: ScriptedService.Flaw.allCases)
    func flawed(_ flaw: ScriptedService.Flaw) async throws {
        let bench = try await KioskBench(script: [.flawed(flaw), .approved])
        let card = try await bench.readCard()
        #expect(try await bench.service.authorize(card, amount: 12.34, currency: "EUR").status == .approved)
        #expect(await bench.psp.calls.count == 2)
        bench.device.remove()

        await bench.psp.setScript([.flawed(flaw), .flawed(flaw), .flawed(flaw)])
        let other = try await bench.readCard()
        await #expect(throws: TapToPayError.outcomeUnknown(key: other.id)) {
            _ = try await bench.service.authorize(other, amount: 12.34, currency: "EUR")
        }
        #expect(await bench.service.unsettledPayments.map(\.id) == [other.id])
        await bench.psp.setResult(flaw, for: other.id)
        let error = await thrown { _ = try await bench.service.resolve(other.id) }
        #expect(error?.hasPrefix("The payment service did not answer") == true)
        #expect(await bench.service.unsettledPayments.map(\.id) == [other.id])
        await bench.psp.setResult(.approved, for: other.id)
        #expect(try await bench.service.resolve(other.id)?.status == .approved)
        #expect(await bench.service.unsettledPayments.isEmpty)
        #expect(await bench.psp.reversals.isEmpty)
    }

    @Test("a refusal tells nothing of a call before it, whose answer was lost", arguments: [false, true])
    func refusedLate(_ isRefund: Bool) async throws {
        let bench = try await KioskBench(script: [.lost, .refused, .refused])
        try bench.insert()
        do {
            if isRefund {
                _ = try await bench.service.refund(amount: 5, currency: "EUR")
            } else {
                _ = try await bench.service.charge(amount: 5, currency: "EUR")
            }
            Issue.record("no error")
        } catch let error as TapToPayError {
            #expect(error == .outcomeUnknown(key: await bench.psp.calls[0].key))
        }
    }

    @Test("who cancels while the service is asked gets its answer; before, the service is not asked")
    func cancelled() async throws {
        let bench = try await KioskBench(script: [.held])
        try bench.insert()
        let card = try await bench.service.read(PaymentCardTransactionRequest(amount: 1, currencyCode: "EUR"))
        let asking = Task { try await bench.service.authorize(card, amount: 1, currency: "EUR") }
        try await wait(for: "call") { await bench.psp.calls.count == 1 }
        asking.cancel()
        await bench.psp.release()
        #expect(try await asking.value.status == .approved)
        let early = Task {
            try? await Time.sleep(for: .seconds(3600))
            _ = try await bench.service.authorize(card, amount: 1, currency: "EUR")
        }
        early.cancel()
        #expect(await thrown { try await early.value } == "readCancelled")
        #expect(await bench.psp.calls.count == 1)
    }

    @Test("a card that declines is not charged, though it comes as a result; a currency may be spelled small")
    func notPaid() async throws {
        var options = PaymentCardReader.Options()
        options.includeErrorInReadResult = true
        let bench = try await KioskBench(options: options)
        try bench.insert("visa-decline")
        #expect(
            await thrown { _ = try await bench.service.charge(amount: 1, currency: "eur") } == "paymentCardDeclined")
        #expect(await bench.psp.calls.isEmpty)
        bench.device.remove()
        try bench.insert()
        _ = try await bench.service.charge(amount: 1, currency: "eur")
        #expect(await bench.psp.calls.map(\.currency) == ["EUR"])
    }

    @Test("called at once, initialize() is done once; a wait for a card can be ended")
    func atOnce() async throws {
        let bench = try await KioskBench(isPrepared: false)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<8 { group.addTask { try await bench.service.initialize() } }
            try await group.waitForAll()
        }
        #expect(await !bench.service.cancelRead())
        let ready = Task { [events = bench.reader.events] in
            for await event in events { if case .readyForTap = event { return } }
        }
        let charge = Task { try await bench.service.charge(amount: 1, currency: "EUR") }
        await ready.value
        #expect(await bench.service.cancelRead())
        #expect(await thrown { _ = try await charge.value } == "readCancelled")
    }

    @Test("without a key of the caller's, the read's id is the key, or the same card data have the same one")
    func defaultKeys() async throws {
        let bench = try await KioskBench()
        try bench.insert()
        let card = try await bench.service.read(PaymentCardTransactionRequest(amount: 1, currencyCode: "EUR"))
        _ = try await bench.psp.processPayment(
            cardData: try #require(card.paymentCardData), amount: 1, currency: "EUR")
        for data in ["abc", "abc", "sealed-2"] {
            _ = try await bench.psp.processPayment(cardData: data, amount: 1, currency: "EUR")
        }
        let keys = await bench.psp.calls.map(\.key)
        #expect(keys[0] == card.id && keys[1] == keys[2] && keys[1] != keys[3])
        // FIPS 180-4's example of SHA-256: "abc".
        #expect(keys[1] == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }
}

@Suite(.simulatedTime, .timeLimit(.minutes(5))) @MainActor struct ObservableTests {
    @Test("the session manager has the reader ready, not while the machine sleeps, and again afterwards")
    func suspended() async throws {
        let bench = try await KioskBench(isPrepared: false)
        let manager = ReaderSessionManager(
            bench.service, pause: .milliseconds(10), tokenPause: .milliseconds(10))
        manager.start()
        try await wait(for: "ready") { manager.state.isReady }
        let ready = Task { [events = bench.reader.events] in
            for await event in events { if case .readyForTap = event { return } }
        }
        let charge = Task { try await bench.service.charge(amount: 1, currency: "EUR") }
        await ready.value
        await manager.hostDidSuspend()
        #expect(await thrown { _ = try await charge.value } == "readCancelled")
        guard case .suspended = manager.state else { throw Unexpected(state: "\(manager.state)") }
        manager.hostDidResume()
        try await wait(for: "ready") { manager.state.isReady }
        try bench.insert()
        #expect(try await bench.service.charge(amount: 1, currency: "EUR").status == .approved)
    }

    @Test("it tries again until the reader is there, tells why it is not, and notices that a session is over")
    func recovery() async throws {
        let bench = try await KioskBench(isPrepared: false)
        // A token that has expired when it comes.
        await bench.psp.setTokenLifetime(-1)
        let manager = ReaderSessionManager(
            bench.service, pause: .milliseconds(100), tokenPause: .milliseconds(100))
        manager.start()
        try await wait(for: "failure") {
            if case .failed(let error) = manager.state { "\(error)" == "tokenExpired" } else { false }
        }
        await bench.psp.setTokenLifetime(72 * 3600)
        try await wait(for: "ready") { manager.state.isReady }
        // A read finds that its session is over, and the reader says so to everybody.
        let token = PaymentCardReader.Token(rawValue: try await bench.psp.fetchReaderToken())
        let session = try await bench.reader.prepare(using: token)
        let tokens = await bench.psp.tokens
        bench.passTime(24 * 3600 + 1)
        let request = PaymentCardTransactionRequest(amount: 1, currencyCode: "EUR")
        #expect(await thrown { _ = try await session.readPaymentCard(request) } == "readerSessionExpired")
        try await wait(for: "new token") { await bench.psp.tokens > tokens }
        try await wait(for: "ready") { manager.state.isReady }
        bench.device.unplug()
        try await wait(for: "loss") {
            // And then that there is none to prepare.
            if case .failed(let error) = manager.state {
                ["notReady", "unsupported"].contains("\(error)")
            } else {
                false
            }
        }
    }

    @Test("the view model shows a payment from the wait for a card to the decision")
    func viewModel() async throws {
        let bench = try await KioskBench(script: [.approved, .declined], isPrepared: false)
        let model = PaymentViewModel(bench.service)
        await model.readPayment()
        #expect(model.result == nil && model.errorMessage == nil, "not ready: nothing happens")
        await model.setup()
        #expect(model.isReady && model.errorMessage == nil)
        model.amount = 12.34
        let first = Task { await model.readPayment() }
        try await wait(for: "prompt") { model.prompt == .presentCard }
        #expect(model.isProcessing)
        try bench.insert()
        await first.value
        #expect(model.transactionComplete && !model.isProcessing && model.prompt == nil)
        try bench.insert()
        await model.readPayment()
        #expect(!model.transactionComplete && model.result?.message == "Insufficient funds")
        model.amount = -1
        await model.readPayment()
        #expect(model.result == nil && model.errorMessage?.contains("The amount is not valid") == true)
    }

    @Test("a read that is cancelled is no error to show")
    func viewModelCancelled() async throws {
        let bench = try await KioskBench(isPrepared: false)
        let model = PaymentViewModel(bench.service)
        await model.setup()
        model.amount = 1
        let read = Task { await model.readPayment() }
        try await wait(for: "prompt") { model.prompt == .presentCard }
        read.cancel()
        await read.value
        #expect(model.errorMessage == nil && model.result == nil && !model.isProcessing)
    }

    @Test("after an answer that was lost nobody pays again before it is known; what was never made is taken back")
    func unresolved() async throws {
        let bench = try await KioskBench(script: [.lost, .lost, .lost], isPrepared: false)
        let model = PaymentViewModel(bench.service)
        await model.setup()
        model.amount = 1
        try bench.insert()
        await model.readPayment()
        let key = try #require(model.unresolvedKey)
        #expect(model.errorMessage?.contains(key) == true)
        await model.readPayment()
        #expect(await bench.psp.calls.count == 3, "no other payment")
        await bench.psp.setResult(.approved, for: key)
        await model.resolve()
        #expect(model.transactionComplete && model.unresolvedKey == nil && model.errorMessage == nil)
        #expect(await bench.psp.reversals.isEmpty)

        bench.device.remove()
        try bench.insert()
        await bench.psp.setScript([.lost, .lost, .lost])
        await model.readPayment()
        let other = try #require(model.unresolvedKey)
        await model.resolve()
        #expect(model.result == nil && model.unresolvedKey == nil)
        #expect(await bench.psp.reversals == [other])
    }

    struct Unexpected: Error { let state: String }
}
