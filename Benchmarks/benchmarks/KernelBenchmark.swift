import EMVContactless
import SmartCard
import SmartCardSimulator

extension Benchmarks {
    /// Measures the host's cost of a whole transaction: Entry Point, kernel and offline data authentication, with a
    /// card that costs nothing.
    static func kernel() async throws {
        for (name, kernel, most, unoptimized) in [
            ("visa-offline", "Kernel 3 with fDDA", 200, 1550),
            ("mastercard-advance", "Kernel 2 with relay resistance and CDA", 300, 2250),
        ] {
            let transaction = try PlayedTransaction(name)
            let allocations = try await Allocations(rounds: 100) { try transaction.play() }
            var times: [Double] = []
            for _ in 0..<(Limit.isGate ? 1 : 501) { times.append(try await time { try transaction.play() }) }
            print(
                "kernel: \(kernel), approved offline with \(transaction.count) APDUs: \(microseconds(median(times))), "
                    + allocations.verdict(atMost: most, unoptimized: unoptimized))
        }
    }

    /// A transaction with recorded responses, which come from a virtual card the first time.
    private struct PlayedTransaction {
        private let entryPoint: EntryPoint
        private let transaction: Transaction
        private let responses: [ResponseAPDU]
        private let final: FinalOutcome

        var count: Int { responses.count }

        init(_ name: String) throws {
            entryPoint = EntryPoint(
                configuration: try offlineConfiguration().validated(), keys: try virtualKeys())
            transaction = try Benchmarks.transaction()
            guard let card = VirtualCards.named(name) else { throw CardError(.other, "no card \(name)") }
            card.reset()
            var responses: [ResponseAPDU] = []
            final = try Benchmarks.play(entryPoint, transaction) { command in
                let response = try ResponseAPDU(card.exchange(command.bytes) ?? [])
                responses.append(response)
                return response
            }
            self.responses = responses
            guard final.outcome.kind == .approved else {
                throw CardError(.other, "not approved: \(final.outcome.reason)")
            }
        }

        func play() throws {
            var next = 0
            let final = try Benchmarks.play(entryPoint, transaction) { _ in
                defer { next += 1 }
                return responses[next]
            }
            guard final == self.final else { throw CardError(.other, "another outcome: \(final.outcome.reason)") }
        }
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

    /// Returns the test configuration with a floor limit.
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
            var transaction = Transaction(
                .purchase, amount: 1234, currency: currency, time: time, unpredictableNumber: [1, 2, 3, 4])
        else { throw CardError(.other, "no transaction") }
        // The same each time: the card has signed them.
        transaction.furtherUnpredictableNumbers = [[5, 6, 7, 8], [9, 10, 11, 12], [13, 14, 15, 16]]
        return transaction
    }
}
