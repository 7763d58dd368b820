import EMVContactless
import Foundation
import ProximityReader
import SmartCard
import SmartCardSimulator
import Testing

/// What of a read lasts to the next.
@Suite(.timeLimit(.minutes(5))) struct TornTests {
    @Test("a card that is torn in one read is recovered in the next, with the cryptogram that it made")
    func recovered() async throws {
        let bench = try await Bench()
        let session = try await bench.reader.prepare(using: bench.token())
        let card = try #require(VirtualCards.named("mastercard-torn"))
        let events = bench.reader.events
        bench.device.insert(card)
        let first = Task { try await session.readPaymentCard(purchase) }
        // It is asked for again in the same read, which nobody waits for.
        for await event in events { if case .readRetry = event { break } }
        bench.device.remove()
        first.cancel()
        await expect("readCancelled") { _ = try await first.value }
        bench.device.insert(card)
        let guide = Task {
            for await event in bench.reader.events {
                if case .removeCard = event { bench.device.remove() }
            }
        }
        defer { guide.cancel() }
        let result = try await session.readPaymentCard(purchase)
        #expect(result.outcome == .success)
        // A cryptogram that it made anew would have another counter: of the card's second transaction.
        #expect(try bench.open(result)[0x9F36]?.hex == "0001")
    }

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
