import CardReaderAdapter
import Foundation
import Testing

/// Payments that are taken while the payment service is not reached.
@Suite(.timeLimit(.minutes(10))) struct OfflineTests {
    private struct Bench {
        let readers = SimulatedReaders([SimulatedReader(serial: "A")])
        let online = ScriptedProcessor([])
        let file = FileManager.default.temporaryDirectory.appending(path: "offline-\(UUID().uuidString).json")
        let offline: OfflinePaymentProcessor
        let service: ContactlessReaderService

        init() async throws {
            offline = OfflinePaymentProcessor(
                online, limits: .init(perTransaction: ["eur": 5000, "jpy": 1000], total: ["eur": 8000]),
                store: StoredPaymentFile(file))
            service = ContactlessReaderService(processor: offline, backend: readers, journal: .memory)
            try service.start(Shop(), discoveryMethod: .simulated)
            for try await list in service.discoveredReaders {
                if let reader = list.first { try await service.connect(reader, options: nil) }
            }
        }

        /// A payment with the network down.
        func pay(_ amount: Decimal, _ currency: String = "eur") async throws -> PaymentIntent {
            await online.follow([.fails(.notConnected)])
            readers.present(.approved(.visa))
            return try await service.capturePayment(PaymentIntentParameters(amount: amount, currency: currency))
        }
    }

    private static let refused = "intentCreation(underlyingError: notConnectedToInternet)"

    @Test("A27: without the network no more is taken than a payment's limit and its currency's total allow")
    func a27Limits() async throws {
        let bench = try await Bench()
        defer { try? FileManager.default.removeItem(at: bench.file) }
        #expect(await failure { _ = try await bench.pay(50.01) } == Self.refused)
        let first = try await bench.pay(50)
        #expect(first.status == .requiresCapture && first.offlineDetails?.requiresUpload == true)
        #expect(first.offlineDetails?.storedAt != nil)
        #expect(await failure { _ = try await bench.pay(30.01) } == Self.refused)
        _ = try await bench.pay(30)
        #expect(await failure { _ = try await bench.pay(0.01) } == Self.refused)
        // No total, and no limit at all.
        #expect(await failure { _ = try await bench.pay(500, "jpy") } == Self.refused)
        #expect(await failure { _ = try await bench.pay(1, "usd") } == Self.refused)
        let status = try await bench.offline.status
        #expect(status.paymentsCount == 2 && status.paymentAmountsByCurrency == ["eur": 8000])
        #expect(await bench.online.calls(of: "process").isEmpty)
        let mode = try FileManager.default.attributesOfItem(atPath: bench.file.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        // One that is taken back counts no more.
        try await bench.offline.cancel(first)
        #expect(try await bench.offline.status.paymentAmountsByCurrency == ["eur": 3000])
        #expect(await failure { try await bench.offline.cancel(first) } != nil)
    }

    @Test("A27: what requires upload is not captured; online everything is as without")
    func a27Capture() async throws {
        let bench = try await Bench()
        defer { try? FileManager.default.removeItem(at: bench.file) }
        await bench.online.follow([.fails(.notConnected)])
        bench.readers.present(.approved(.visa))
        let parameters = PaymentIntentParameters(amount: 20, currency: "eur")
        let stored = try await bench.service.collectPayment(parameters) { intent in
            Issue.record("captured")
            return intent
        }
        #expect(stored.offlineDetails?.requiresUpload == true)
        bench.readers.present(.approved(.visa))
        let intent = try await bench.service.capturePayment(parameters)
        #expect(intent.offlineDetails == nil && intent.status == .requiresCapture)
        #expect(try await bench.offline.status.paymentsCount == 1)
    }

    @Test(
        "A27: forwarding tells of each payment, asks under the keys of the first time, and keeps what was not answered")
    func a27Forwarding() async throws {
        let bench = try await Bench()
        defer { try? FileManager.default.removeItem(at: bench.file) }
        var stored: [String] = []
        for amount in [10, 20, 30] as [Decimal] { stored.append(try await bench.pay(amount).id) }
        let before = await bench.online.calls.count
        // Whoever is there after a restart finds them in the file.
        let restarted = OfflinePaymentProcessor(
            bench.online, limits: .init(perTransaction: [:], total: [:]), store: StoredPaymentFile(bench.file))
        let events = Seen(restarted.forwardingEvents)
        await bench.online.follow([.approved, .fails(.noAnswer)])
        #expect(try await restarted.forward() == 3)
        await bench.online.follow([
            .approved, .approved, .approved, .fails(.declined(.expiredCard)), .fails(.notConnected),
        ])
        #expect(try await restarted.forward() == 1)
        await bench.online.follow([])
        #expect(try await restarted.forward() == 0)
        #expect(try await restarted.forward() == 0)
        try await wait(for: "events") { events.all.count == 3 }
        let texts = events.all.map { event in
            switch event {
            case .forwarded(let intent, let id): "\(id) \(intent.amount) \(intent.status.rawValue)"
            case .failed(let id, let error): "\(id) \(error.reason)"
            }
        }
        #expect(
            texts == [
                "\(stored[0]) 1000 requires_capture",
                "\(stored[1]) declined(CardReaderAdapter.DeclineReason.expiredCard)",
                "\(stored[2]) 3000 requires_capture",
            ])
        let calls = await bench.online.calls.dropFirst(before)
        #expect(
            calls.map(\.kind) == [
                "create", "process", "create", "process", "create", "process", "create", "create", "process",
            ])
        #expect(Set(calls.filter { $0.amount == 1000 }.map(\.key)).count == 2, "one of the intent, one of the card")
        #expect(try await restarted.status.paymentsCount == 0)
    }

    @Test("A27: a payment that turns out to have been made is forwarded, though the answer is an error")
    func a27Made() async throws {
        let bench = try await Bench()
        defer { try? FileManager.default.removeItem(at: bench.file) }
        let stored = try await bench.pay(10)
        let events = Seen(bench.offline.forwardingEvents)
        await bench.online.follow([.approved, .failsWith(.unknownIntent, .succeeded)])
        #expect(try await bench.offline.forward() == 0)
        try await wait(for: "an event") { events.all.count == 1 }
        guard case .forwarded(let intent, stored.id)? = events.all.first else {
            Issue.record("\(events.all)")
            return
        }
        #expect(intent.status == .succeeded && intent.amount == 1000)
    }

    @Test("A27: amounts in the file that no sum holds leave no room, and end nothing")
    func a27Tampered() async throws {
        let bench = try await Bench()
        defer { try? FileManager.default.removeItem(at: bench.file) }
        _ = try await bench.pay(10)
        let payment = try String(contentsOf: bench.file, encoding: .utf8).dropFirst().dropLast()
            .replacing("1000", with: "\(UInt.max)")
        try Data("[\(payment),\(payment)]".utf8).write(to: bench.file)
        #expect(try await bench.offline.status.paymentAmountsByCurrency == ["eur": .max])
        #expect(await failure { _ = try await bench.pay(1) } == Self.refused)
    }
}
