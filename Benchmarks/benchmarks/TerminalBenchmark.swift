import CardEncryption
import Foundation
import JWTKit
import ProximityReader
import SmartCard
import SmartCardSimulator
import WalletPasses

extension Benchmarks {
    /// Measures the time from a card in the field to sealed card data, with a reader and a card that cost nothing.
    static func terminal() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "terminal-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        for algorithm in [JWEAlgorithm.ecdhES, .ecdhESA256KW, .rsaOAEP256] {
            let session = try await session(sealingBy: algorithm, in: folder)
            let request = PaymentCardTransactionRequest(amount: 12.34, currencyCode: "EUR")
            func tap() async throws {
                guard try await session.readPaymentCard(request).paymentCardData != nil else {
                    throw CardError(.other, "no card data")
                }
            }
            try await printTaps("terminal: from tap to sealed data, \(algorithm.rawValue)", 1000, 9450, tap)
        }
    }

    /// Measures the time from a phone in the field to its pass, opened, and its sealed card data; the phone's own
    /// cryptography is part of it.
    static func loyalty() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "loyalty-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        // TEST: the published key that the pass of `phone-apple` is encrypted to (proxmark3).
        let digits = Array("3d1547f23cd78ad052a58860f1219e8fb791ec4dfe33769f5b9bfa627a656ca1")
        let number = stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(digits[$0...($0 + 1)]), radix: 16)
        }
        guard let key = MerchantKey(number) else { throw CardError(.other, "no key") }
        let passType = "pass.com.passkit.pksamples.nfcdemo"
        let passes = try PassConfiguration(merchants: [
            PassMerchant(id: passType, apple: .init(passTypeIdentifier: passType, keys: [key]))
        ])
        let phone = try CardFile(parsing: "variant phone-apple {\nscreen both\n}").makeCard()
        let session = try await session(sealingBy: .ecdhES, in: folder, phone, passes)
        let purchase = PaymentCardTransactionRequest(amount: 12.34, currencyCode: "EUR")
        func tap() async throws {
            let (payment, passes) = try await session.readPaymentCard(
                purchase, vasRequest: VASRequest(), stopOnVASResult: false)
            guard payment?.paymentCardData != nil, passes?.entries.first?.status == .success else {
                throw CardError(.other, "no pass, or no card data")
            }
        }
        try await printTaps("loyalty: from tap to pass and sealed data", 5000, 10_200, tap)
    }

    /// Prints the time of a tap, and its allocations, the virtual card's included.
    private static func printTaps(
        _ name: String, _ most: Int, _ unoptimized: Int, _ tap: () async throws -> Void
    ) async throws {
        let allocations = try await Allocations(rounds: 50, tap)
        var times: [Double] = []
        for _ in 0..<(Limit.isGate ? 1 : 201) { times.append(try await time { try await tap() }) }
        print(
            "\(name): \(microseconds(median(times))), "
                + allocations.verdict(atMost: most, unoptimized: unoptimized))
    }

    private static func session(
        sealingBy algorithm: JWEAlgorithm, in folder: URL, _ card: (any VirtualCard)? = VirtualCards.named("visa"),
        _ passes: PassConfiguration? = nil
    ) async throws -> PaymentCardReaderSession {
        guard let card else { throw CardError(.other, "no card") }
        var configuration = ProximityReaderSystem.Configuration()
        configuration.reader = .reader(InstantReader(card))
        configuration.folder = folder
        configuration.passes = passes
        if passes != nil { configuration.storeAndForward = .init(limits: ["EUR": .init(perPayment: 50, total: 100)]) }
        var options = PaymentCardReader.Options()
        options.returnReadResultImmediately = true
        let reader = PaymentCardReader(options: options, terminal: PaymentTerminal(try configuration.validated()))

        let key = try JWEPrivateKey(generating: algorithm, keyID: "cards-1")
        let claims = Claims(
            iss: "https://payments.test", aud: "terminals", iat: Date().timeIntervalSince1970.rounded(.down),
            exp: Date().timeIntervalSince1970 + 3600, mid: "merchant-1",
            card_data_key: try JSONDecoder().decode([String: String].self, from: Data(key.publicJWK.utf8)))
        // TEST: the published key of the test payment service.
        let signer = try ES256PrivateKey(key: "Jz3hgC6wPXkw9kLsBrVfP_24fBaaHcfm4apwcZfSwVE")
        let keys = await JWTKeyCollection().add(ecdsa: signer, kid: "test-payment-service")
        let token = PaymentCardReader.Token(
            rawValue: try await keys.sign(claims, kid: "test-payment-service", header: ["typ": "reader-token+jwt"]))
        try await reader.relinkAccount(using: token)
        return try await reader.prepare(using: token)
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    private struct Claims: JWTPayload {
        let iss: String
        let aud: String
        let iat: Double
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

    init(_ card: any VirtualCard) {
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
