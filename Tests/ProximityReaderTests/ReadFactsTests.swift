import EMVContactless
import Foundation
import ProximityReader
import SmartCard
import Testing

/// What a read tells of how the cardholder was verified, and of what a receipt states.
@Suite(.timeLimit(.minutes(5))) struct ReadFactsTests {
    @Test("a card that asks for a PIN has not paid: there is no PIN pad")
    func onlinePIN() async throws {
        let bench = try await Bench()
        let session = try await bench.reader.prepare(using: bench.token())
        try bench.present("visa-online-pin")
        do {
            let result = try await session.readPaymentCard(purchase)
            #expect(result.facts?.cardholderVerification != .onlinePIN)
        } catch PaymentCardReaderSession.ReadError.pinNotAllowed {}
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
