import CardEncryption
import Foundation
import JWTKit
import ProximityReader
import SmartCard
import SmartCardSimulator

extension Benchmarks {
    /// Measures the time from a card in the field to sealed card data, with a reader and a card that cost nothing.
    static func terminal() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "terminal-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        for algorithm in [JWEAlgorithm.ecdhES, .ecdhESA256KW, .rsaOAEP256] {
            let session = try await session(sealingBy: algorithm, in: folder)
            let request = PaymentCardTransactionRequest(amount: 12.34, currencyCode: "EUR")
            var times: [Double] = []
            for _ in 0..<201 {
                times.append(
                    try await time {
                        guard try await session.readPaymentCard(request).paymentCardData != nil else {
                            throw CardError(.other, "no card data")
                        }
                    })
            }
            print(
                "terminal: from tap to sealed data, \(algorithm.rawValue): \(microseconds(median(times)))"
                    + Limit.verdict(.milliseconds(1), median(times)))
        }
    }

    private static func session(
        sealingBy algorithm: JWEAlgorithm, in folder: URL
    ) async throws -> PaymentCardReaderSession {
        var configuration = ProximityReaderSystem.Configuration()
        configuration.reader = .reader(try InstantReader(card: "visa"))
        configuration.folder = folder
        var options = PaymentCardReader.Options()
        options.returnReadResultImmediately = true
        let reader = PaymentCardReader(options: options, terminal: PaymentTerminal(try configuration.validated()))

        let key = try JWEPrivateKey(generating: algorithm, keyID: "cards-1")
        let claims = Claims(
            iss: "https://payments.test", exp: Date().timeIntervalSince1970 + 3600, mid: "merchant-1",
            card_data_key: try JSONDecoder().decode([String: String].self, from: Data(key.publicJWK.utf8)))
        // TEST: the published key of the test payment service.
        let signer = try ES256PrivateKey(key: "Jz3hgC6wPXkw9kLsBrVfP_24fBaaHcfm4apwcZfSwVE")
        let keys = await JWTKeyCollection().add(ecdsa: signer, kid: "test-payment-service")
        let token = PaymentCardReader.Token(rawValue: try await keys.sign(claims, kid: "test-payment-service"))
        try await reader.relinkAccount(using: token)
        return try await reader.prepare(using: token)
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    private struct Claims: JWTPayload {
        let iss: String
        let exp: Double
        let mid: String
        let card_data_key: [String: String]
        func verify(using algorithm: some JWTAlgorithm) throws {}
    }
}

/// A reader in this process whose card comes and goes with each look.
private struct InstantReader: CardReader {
    let identity = ReaderIdentity(name: "instant", backend: .virtual)
    private let card: any VirtualCard
    private let atr: ATR

    init(card name: String) throws {
        guard let card = VirtualCards.named(name) else { throw CardError(.other, "no card \(name)") }
        self.card = card
        atr = ATR([0x3B, 0x80, 0x80, 0x01, 0x01])
    }

    func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable {
        AsyncThrowingStream<SlotState, any Error> { states in
            states.yield(.card(atr, exclusivelyHeld: false))
            states.yield(.empty)
        }
    }

    func connect() async throws -> any CardConnection {
        card.reset()
        return Connection(card: card, atr: atr)
    }

    func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] { throw CardError(.unsupported) }

    private struct Connection: CardConnection {
        let card: any VirtualCard
        let atr: ATR
        let transmissionProtocol = TransmissionProtocol.t1

        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
            try ResponseAPDU(card.exchange(command.bytes) ?? [])
        }
        func reset() async throws { card.reset() }
        func disconnect(_ disposition: CardDisposition) async {}
    }
}
