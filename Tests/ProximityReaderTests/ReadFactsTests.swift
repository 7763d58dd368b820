import EMVContactless
import Foundation
import ProximityReader
import SmartCard
import TestSupport
import Testing

/// What a read tells of how the cardholder was verified, and of what a receipt states.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct ReadFactsTests {
    /// Below the limit nobody is verified, above it nobody can be; a terminal that says it has a PIN pad is asked for a PIN.
    @Test(
        "a card that asks for a PIN has not paid: there is no PIN pad",
        arguments: [
            (false, "49.99", .none, .success, nil),
            (false, "50.00", .none, .cardDeclined, "paymentCardDeclined"),
            (true, "12.34", .onlinePIN, .failure, "pinNotAllowed"),
        ] as [(Bool, String, Outcome.CVM, PaymentCardReadResult.ReadOutcome, String?)])
    func onlinePIN(
        _ hasPINPad: Bool, _ amount: String, _ cvm: Outcome.CVM,
        _ outcome: PaymentCardReadResult.ReadOutcome, _ error: String?
    ) async throws {
        try await read("visa-online-pin", amount, hasPINPad ? .test : .unattendedTest, outcome, error) {
            #expect($0.facts?.cardholderVerification == cvm)
        }
    }

    @Test(
        "a card that wants another interface is not supported, and one that declines has declined",
        arguments: [
            ("visa-oda-fails-switch", .failure, "cardNotSupported"),
            ("mastercard-decline", .failure, "cardNotSupported"),
            ("visa-decline", .cardDeclined, "paymentCardDeclined"),
        ] as [(String, PaymentCardReadResult.ReadOutcome, String)])
    func anotherInterface(_ card: String, _ outcome: PaymentCardReadResult.ReadOutcome, _ error: String) async throws {
        // No amount has to go online.
        var configuration = ReaderConfiguration.test
        for index in configuration.combinations.indices { configuration.combinations[index].floorLimit = nil }
        try await read(card, "12.34", configuration, outcome, error)
    }

    /// EMV Contactless Book B, 3.1.1.5 and 3.1.1.13: 10,000.00 is the limit of every combination.
    @Test("a payment that Start A refuses asks for no card")
    func refusedBeforeACard() async throws {
        let bench = try await Bench()
        let session = try await bench.reader.prepare(using: bench.token())
        let log = await EventLog(bench.reader)
        await expect("cardNotSupported") {
            _ = try await session.readPaymentCard(PaymentCardTransactionRequest(amount: 10_000, currencyCode: "EUR"))
        }
        await expect("readCancelled") {
            let next = Task { try await session.readPaymentCard(purchase) }
            try await log.wait(for: "readyForTap")
            #expect(try await session.cancelRead())
            _ = try await next.value
        }
        #expect(await log.names.count { $0 == "readyForTap" } == 1, "the next one's")
    }

    /// Reads a card twice: with its error in the result, and thrown.
    private func read(
        _ card: String, _ amount: String, _ configuration: ReaderConfiguration,
        _ outcome: PaymentCardReadResult.ReadOutcome, _ error: String?,
        check: (PaymentCardReadResult) -> Void = { _ in }
    ) async throws {
        let request = PaymentCardTransactionRequest(
            amount: try #require(Decimal(string: amount)), currencyCode: "EUR")
        var options = PaymentCardReader.Options()
        options.includeErrorInReadResult = true
        let bench = try await Bench(options: options) { $0.terminal = configuration }
        let session = try await bench.reader.prepare(using: bench.token())
        try bench.present(card)
        let result = try await session.readPaymentCard(request)
        #expect(result.outcome == outcome)
        check(result)
        guard let error else { return }
        let other = try await Bench { $0.terminal = configuration }
        let otherSession = try await other.reader.prepare(using: other.token())
        try other.present(card)
        await expect(error) { _ = try await otherSession.readPaymentCard(request) }
    }

    @Test("what a receipt states comes with the result, and to the payment service")
    func facts() async throws {
        let bench = try await Bench()
        let session = try await bench.reader.prepare(using: bench.token())
        try bench.present("visa")
        let result = try await session.readPaymentCard(purchase)
        let facts = try #require(result.facts)
        let general = try #require(result.generalCardData.flatMap { Data(base64Encoded: $0) })
        #expect([UInt8](general).hex.hasSuffix(facts.encoded.hex))
    }
}
