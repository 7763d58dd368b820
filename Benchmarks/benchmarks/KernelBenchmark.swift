import CBaseline
import EMVContactless
import SmartCard
import SmartCardSimulator

extension Benchmarks {
    /// What a whole transaction costs the host: Entry Point, Kernel 3 and fast dynamic data authentication, with a card
    /// that costs nothing.
    static func kernel() throws {
        let entryPoint = EntryPoint(
            configuration: try offlineConfiguration(), kernels: Kernels.all, keys: try virtualKeys())
        let transaction = try transaction()
        guard let card = VirtualCards.named("visa-offline") else { throw CardError(.other, "no card visa-offline") }
        card.reset()
        var responses: [ResponseAPDU] = []
        let first = try play(entryPoint, transaction) { command in
            let response = try ResponseAPDU(card.exchange(command.bytes) ?? [])
            responses.append(response)
            return response
        }
        guard first.outcome.kind == .approved else { throw CardError(.other, "not approved: \(first.outcome.reason)") }

        var times: [Double] = []
        var allocations: [Double] = []
        for _ in 0..<501 {
            let start = ContinuousClock.now
            let before = baseline_allocations()
            var next = 0
            let final = try play(entryPoint, transaction) { _ in
                defer { next += 1 }
                return responses[next]
            }
            allocations.append(Double(baseline_allocations() - before))
            times.append(nanoseconds(ContinuousClock.now - start))
            guard final == first else { throw CardError(.other, "another outcome: \(final.outcome.reason)") }
        }
        print(
            "kernel: a transaction of Kernel 3 with fDDA, \(responses.count) APDUs, approved offline: \(microseconds(median(times)))"
                + Limit.verdict(.milliseconds(1), median(times))
        )
        print(
            "kernel: \(Int(median(allocations))) allocations"
                + Limit.verdict("200", isKept: median(allocations) <= 200))
    }

    private static func play(
        _ entryPoint: EntryPoint, _ transaction: Transaction, _ transmit: (CommandAPDU) throws -> ResponseAPDU
    ) throws -> FinalOutcome {
        var entryPoint = entryPoint
        var event = EntryPoint.Event.startA(transaction)
        while true {
            switch entryPoint.next(event).action {
            case .activateField: event = .cardPresent
            case .switchFieldOff: event = .fieldIsOff
            case .exchange: event = .terminalData(DataRecord())
            case .send(let command): event = .response(try transmit(command), after: .milliseconds(10))
            case .finish(let final): return final
            }
        }
    }

    /// That for tests, but with a floor limit.
    private static func offlineConfiguration() throws -> ReaderConfiguration {
        var configuration = ReaderConfiguration.test
        for index in configuration.combinations.indices { configuration.combinations[index].floorLimit = 10_000 }
        return configuration
    }

    private static func virtualKeys() throws -> CAPublicKeys {
        CAPublicKeys(
            try VirtualCards.certificationAuthorityKeys.map {
                try CAPublicKey(
                    environment: .test, rid: $0.rid, index: $0.index, modulus: $0.modulus, exponent: $0.exponent,
                    checksum: $0.checksum)
            })
    }

    private static func transaction() throws -> Transaction {
        guard let date = CalendarDate(year: 2026, month: 11, day: 21), let time = TerminalTime(date),
            let currency = Currency["EUR"],
            let transaction = Transaction(
                .purchase, amount: 1234, currency: currency, time: time, unpredictableNumber: [1, 2, 3, 4])
        else { throw CardError(.other, "no transaction") }
        return transaction
    }
}
