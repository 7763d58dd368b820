import Foundation
import KioskKit
import KioskTestSupport
import ProximityReader
import SmartCardSimulator
import TestSupport
import Testing

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct AliasTests {
    @Test("a session that is made from reader and token, and prepared again, goes on as the reader's session")
    func session() async throws {
        let bench = try await KioskBench()
        let token = PaymentCardReader.Token(rawValue: try await bench.psp.fetchReaderToken())
        let session = try await PaymentCardReaderSession(reader: bench.reader, token: token)
        var events = session.events.makeAsyncIterator()
        let other = try await bench.reader.prepare(using: token)
        let request = PaymentCardTransactionRequest(amount: 12.34, currencyCode: "EUR", type: .refund)
        #expect(request.type == .refund)
        try bench.insert()
        // There is one session: a newer one is made.
        #expect(await thrown { _ = try await session.readPaymentCard(request) } == "noReaderSession")
        try await session.prepare()
        #expect(try await session.readPaymentCard(request).outcome == .success)
        #expect(await thrown { _ = try await other.readPaymentCard(request) } == "noReaderSession")
        var names: [String] = []
        while names.last != "userInterfaceDismissed", let event = await events.next() { names.append(event.name) }
        #expect(
            names.filter { $0 != "updateProgress" } == [
                "readyForTap", "cardDetected", "removeCard", "readCompleted", "userInterfaceDismissed",
            ])
    }

    @Test("prepared again with a token that has expired, a session says so")
    func expired() async throws {
        let bench = try await KioskBench()
        await bench.psp.setTokenLifetime(60)
        let token = PaymentCardReader.Token(rawValue: try await bench.psp.fetchReaderToken())
        let session = try await PaymentCardReaderSession(reader: bench.reader, token: token)
        bench.passTime(61)
        #expect(await thrown { try await session.prepare() } == "tokenExpired")
    }

    @Test("the guide's cases match Apple's that they stand for, and no others")
    func patterns() {
        func event(_ event: PaymentCardReader.Event) -> String {
            switch event {
            case .ready: "ready"
            case .updateProgress(let progress): "\(progress)"
            case .notReady: "notReady"
            default: "other"
            }
        }
        #expect(event(.readyForTap) == "ready" && event(.updateProgress(7)) == "7" && event(.notReady) == "notReady")
        #expect(event(.cardDetected) == "other")

        func read(_ error: PaymentCardReaderSession.ReadError) -> String {
            switch error {
            case .cancelled: "cancelled"
            case .notReady: "notReady"
            default: "other"
            }
        }
        #expect(read(.readCancelled) == "cancelled" && read(.noReaderSession) == "notReady")
        #expect(read(.readerSessionExpired) == "other")

        func reader(_ error: PaymentCardReaderError) -> String {
            switch error {
            case .backgrounded: "backgrounded"
            case .invalidReaderToken: "invalidReaderToken"
            default: "other"
            }
        }
        #expect(reader(.backgroundRequestNotAllowed) == "backgrounded" && reader(.notReady) == "other")
        #expect(reader(.invalidReaderToken("it is too long")) == "invalidReaderToken")
    }
}
