import CardEncryption
import Crypto
import EMVContactless
import Foundation
import JWTKit
import ProximityReader
import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

/// A terminal with a virtual reader, and the payment service that it trusts.
struct Bench {
    let device = SoftwareACR122U()
    private(set) var reader: PaymentCardReader
    let cardDataKey: JWEPrivateKey
    let signer = ES256PrivateKey()
    private let folder: Folder
    private let customer = Customer()
    private let clock = Clock()
    let configuration: ProximityReaderSystem.Configuration
    private var terminal: PaymentTerminal

    /// Removed with the bench.
    private final class Folder: Sendable {
        let url = FileManager.default.temporaryDirectory.appending(path: "terminal-\(UUID().uuidString)")
        deinit { try? FileManager.default.removeItem(at: url) }
    }

    /// Presents a card when the reader is ready for it, and takes it away when told to.
    private final class Customer: @unchecked Sendable {
        private let lock = NSLock()
        private var task: Task<Void, Never>?

        func present(_ card: any VirtualCard, to reader: PaymentCardReader, _ device: SoftwareACR122U) {
            let events = reader.events
            let next = Task {
                for await event in events {
                    switch event {
                    case .readyForTap: device.insert(card)
                    case .removeCard: device.remove(card)
                    default: break
                    }
                }
            }
            lock.withLock {
                task?.cancel()
                task = next
            }
        }

        deinit { task?.cancel() }
    }

    /// Stands still unless it is moved, however busy the machine is.
    final class Clock: @unchecked Sendable {
        private let lock = NSLock()
        private let start: Date
        private var offset: TimeInterval = 0
        init(_ start: Date = Date()) { self.start = start }
        var now: Date { lock.withLock { start.addingTimeInterval(offset) } }
        func advance(_ seconds: TimeInterval) { lock.withLock { offset += seconds } }

        private var boot = (identifier: "boot-1", uptime: TimeInterval(1000))
        var uptime: Duration { lock.withLock { .seconds(boot.uptime) } }
        var bootIdentifier: String { lock.withLock { boot.identifier } }
        func run(_ seconds: TimeInterval) { lock.withLock { boot.uptime += seconds } }
        func restart() { lock.withLock { boot.identifier = UUID().uuidString } }
    }

    init(
        options: PaymentCardReader.Options = .init(), isLinked: Bool = true,
        configure: (inout ProximityReaderSystem.Configuration) -> Void = { _ in }
    ) async throws {
        folder = Folder()
        cardDataKey = try JWEPrivateKey(generating: .ecdhES, keyID: "cards-1")
        var configuration = ProximityReaderSystem.Configuration()
        configuration.reader = .reader(VirtualReader(device))
        configuration.answerTime = .seconds(120)
        configuration.folder = folder.url
        configuration.tokenIssuer = "https://payments.example"
        configuration.tokenAudience = "terminals"
        configuration.tokenKeys = Self.keySet(signer)
        configuration.certificationAuthorityKeys = try Self.cardKeys()
        configuration.now = { [clock] in clock.now }
        configuration.uptime = { [clock] in clock.uptime }
        configuration.bootIdentifier = { [clock] in clock.bootIdentifier }
        configure(&configuration)
        self.configuration = configuration
        terminal = PaymentTerminal(try configuration.validated())
        reader = PaymentCardReader(options: options, terminal: terminal)
        if isLinked { try await reader.linkAccount(using: token()) }
    }

    func passTime(_ seconds: TimeInterval) {
        clock.advance(seconds)
        clock.run(seconds)
    }

    /// The machine's clock is set.
    func setClock(by seconds: TimeInterval) { clock.advance(seconds) }

    func restartMachine() { clock.restart() }

    /// The program ends: nothing of it has the reader or the store.
    func end() async { await terminal.end() }

    /// The program ends and starts, with what `configure` changes.
    mutating func restart(_ configure: (inout ProximityReaderSystem.Configuration) -> Void = { _ in }) async throws {
        var configuration = configuration
        configure(&configuration)
        await end()
        terminal = PaymentTerminal(try configuration.validated())
        reader = PaymentCardReader(options: reader.options, terminal: terminal)
    }

    static func keySet(_ key: ES256PrivateKey) -> String {
        func url(_ text: String?) -> String {
            (text ?? "").replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        }
        let (x, y) = (url(key.parameters?.x), url(key.parameters?.y))
        return #"{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":"service-1","x":"\#(x)","y":"\#(y)"}]}"#
    }

    /// The published ones, and those that the virtual cards' certificates are made with.
    private static func cardKeys() throws -> CAPublicKeys {
        var keys = CAPublicKeys.published
        for key in VirtualCards.certificationAuthorityKeys {
            keys.insert(
                try CAPublicKey(
                    environment: .test, rid: key.rid, index: key.index, modulus: key.modulus, exponent: key.exponent,
                    checksum: key.checksum, expiration: CalendarDate(packed: key.expires)))
        }
        return keys
    }

    /// A good token, but for what is given.
    func token(
        issuer: String = "https://payments.example", audience: String = "terminals", merchant: String = "merchant-1",
        lifetime: TimeInterval = 48 * 3600, issued: TimeInterval = 0, namesKey: Bool = true,
        signedBy other: ES256PrivateKey? = nil, keyID: String = "service-1", type: String? = "reader-token+jwt"
    ) async throws -> PaymentCardReader.Token {
        let key =
            namesKey
            ? try JSONDecoder().decode([String: String].self, from: Data(cardDataKey.publicJWK.utf8)) : nil
        let claims = Claims(
            iss: issuer, aud: audience, exp: clock.now.timeIntervalSince1970 + lifetime,
            iat: clock.now.timeIntervalSince1970 + issued, mid: merchant, tpid: "profile-1", card_data_key: key)
        let keys = await JWTKeyCollection().add(ecdsa: other ?? signer, kid: JWKIdentifier(string: keyID))
        return PaymentCardReader.Token(
            rawValue: try await keys.sign(
                claims, kid: JWKIdentifier(string: keyID), header: type.map { ["typ": .string($0)] } ?? [:]))
    }

    /// Puts a card on the reader, and leaves it there.
    func insert(_ name: String) throws { device.insert(try #require(VirtualCards.named(name))) }

    /// From now on each read gets this card, and gives it back.
    func present(_ name: String) throws { present(try #require(VirtualCards.named(name))) }

    func present(_ card: any VirtualCard) {
        device.remove()
        customer.present(card, to: reader, device)
    }

    /// What the payment service sees of a result.
    func open(_ result: PaymentCardReadResult) throws -> [TLVTag: [UInt8]] {
        try open(#require(result.paymentCardData))
    }

    func open(_ text: String) throws -> [TLVTag: [UInt8]] {
        let sealed = try SealedCardData(parsing: text)
        guard case .jwe(let jwe) = sealed else { throw NotSealed() }
        return try cardDataKey.open(jwe) { bytes in
            Dictionary(try TLVList(Array(bytes)).flattened.map { ($0.tag, Array($0.value)) }) { first, _ in first }
        }
    }

    struct NotSealed: Error {}

    // swift-format-ignore: AlwaysUseLowerCamelCase
    private struct Claims: JWTPayload {
        let iss: String, aud: String
        let exp: Double, iat: Double
        let mid: String, tpid: String
        let card_data_key: [String: String]?
        func verify(using algorithm: some JWTAlgorithm) throws {}
    }
}

/// The events of one stream, as they have come so far.
actor EventLog {
    private(set) var names: [String] = []
    private var task: Task<Void, Never>?

    init(_ reader: PaymentCardReader) async {
        let events = reader.events
        task = Task { [weak self] in for await event in events { await self?.append(event.name) } }
    }

    deinit { task?.cancel() }

    private func append(_ name: String) { names.append(name) }

    /// Waits until an event has come `count` times.
    func wait(for name: String, _ count: Int = 1) async throws {
        do {
            try await TestSupport.wait(for: name) { names.count { $0 == name } >= count }
        } catch let error where !(error is CancellationError) {
            throw Missing(name: name, names: names)
        }
    }

    struct Missing: Error {
        let name: String
        let names: [String]
    }

    /// Those that came from now on are counted.
    func clear() { names = [] }
}

let purchase = PaymentCardTransactionRequest(amount: 12.34, currencyCode: "EUR")

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct ReadTests {
    @Test("a purchase comes back sealed: what is opened is the card's, and nothing else tells whose it is")
    func aPurchase() async throws {
        let bench = try await Bench()
        let log = await EventLog(bench.reader)
        let session = try await bench.reader.prepare(using: bench.token())
        try bench.present("visa")
        let result = try await session.readPaymentCard(purchase)
        #expect(result.outcome == .success)
        #expect(result.applicationTypeIdentifier == "A0000000031010")
        #expect(result.cardExpirationState == .notExpired)
        let data = try bench.open(result)
        #expect(data[0x9F02]?.hex == "000000001234" && data[0x5F2A]?.hex == "0978")
        // The card's file: TEST.
        #expect(data[0x57]?.hex.hasPrefix("4761739001010010D") == true)
        let general = try [UInt8](#require(result.generalCardData.flatMap { Data(base64Encoded: $0) }))
        #expect(general.hex.contains("9F0206000000001234"))
        #expect(!general.hex.contains("4761739001010010") && !"\(result)".contains("4761739001010010"))
        try await log.wait(for: "userInterfaceDismissed")
        #expect(
            await log.names == [
                "updateProgress", "updateProgress", "updateProgress", "updateProgress", "updateProgress",
                "readyForTap", "cardDetected", "removeCard", "readCompleted", "userInterfaceDismissed",
            ])
    }

    @Test("a card that declines is an error, or on request a result without card data's secrets")
    func aDecline() async throws {
        let bench = try await Bench()
        let session = try await bench.reader.prepare(using: bench.token())
        try bench.insert("visa-decline")
        await #expect(throws: PaymentCardReaderSession.ReadError.self) {
            do { _ = try await session.readPaymentCard(purchase) } catch {
                #expect("\(error)" == "paymentCardDeclined")
                throw error
            }
        }
        var options = PaymentCardReader.Options()
        options.includeErrorInReadResult = true
        let other = try await Bench(options: options)
        let otherSession = try await other.reader.prepare(using: other.token())
        try other.insert("visa-decline")
        #expect(try await otherSession.readPaymentCard(purchase).outcome == .cardDeclined)
    }

    @Test("a read is cancelled until a card is found; so is one whose task is")
    func cancelled() async throws {
        let bench = try await Bench()
        let log = await EventLog(bench.reader)
        let session = try await bench.reader.prepare(using: bench.token())
        #expect(try await session.cancelRead() == false)
        for isByTask in [false, true] {
            await log.clear()
            let read = Task { try await session.readPaymentCard(purchase) }
            try await log.wait(for: "readyForTap")
            if isByTask { read.cancel() } else { #expect(try await session.cancelRead()) }
            let result = await read.result
            #expect(throws: PaymentCardReaderSession.ReadError.self) { try result.get() }
            if case .failure(let error) = result { #expect("\(error)" == "readCancelled") }
            try await log.wait(for: "userInterfaceDismissed")
            let names = await log.names.filter { $0 != "updateProgress" }
            #expect(names == ["readyForTap", "readCancelled", "userInterfaceDismissed"])
        }
        // And then another one goes through.
        try bench.present("visa")
        #expect(try await session.readPaymentCard(purchase).outcome == .success)
    }

    @Test("one read at a time, and no second prepare meanwhile")
    func oneAtATime() async throws {
        let bench = try await Bench()
        let log = await EventLog(bench.reader)
        let session = try await bench.reader.prepare(using: bench.token())
        let read = Task { try await session.readPaymentCard(purchase) }
        try await log.wait(for: "readyForTap")
        await expect("readerSessionBusy") { _ = try await session.readPaymentCard(purchase) }
        await expect("readerBusy") { _ = try await bench.reader.prepare(using: bench.token()) }
        try bench.insert("visa")
        #expect(try await read.value.outcome == .success)
    }

    @Test("amounts, currencies and AIDs that are none are refused before a card is asked for")
    func requests() async throws {
        let bench = try await Bench()
        let session = try await bench.reader.prepare(using: bench.token())
        for (amount, currency) in [
            ("-1", "EUR"), ("0", "EUR"), ("1.234", "EUR"), ("0.5", "JPY"), ("10000000000.00", "EUR"),
        ] {
            await expect("invalidAmount") {
                _ = try await session.readPaymentCard(
                    PaymentCardTransactionRequest(amount: Decimal(string: amount) ?? 0, currencyCode: currency))
            }
        }
        for currency in ["XXZ", "", "€", "978"] {
            await expect("invalidCurrencyCode") {
                _ = try await session.readPaymentCard(PaymentCardVerificationRequest(currencyCode: currency))
            }
        }
        for names in [[Data(count: 4)], [Data(count: 17)], Array(repeating: Data([0xA0, 0, 0, 0, 3]), count: 5)] {
            var request = purchase
            request.preferredAIDList = names
            await expect("invalidPreferredAID") { _ = try await session.readPaymentCard(request) }
        }
    }

    @Test("of a card with two applications the preferred one is taken")
    func preferred() async throws {
        let bench = try await Bench()
        let session = try await bench.reader.prepare(using: bench.token())
        // Visa twice: the card prefers the second.
        for (preferred, name) in [(nil, "A000000003101002"), ("A000000003101001", "A000000003101001")] {
            var request = purchase
            request.preferredAIDList = try preferred.map { [Data(try [UInt8](hex: $0))] } ?? []
            try bench.present("multi")
            let result = try await session.readPaymentCard(request)
            #expect(try bench.open(result)[0x84]?.hex == name)
            #expect(result.applicationTypeIdentifier == "A0000000031010")
        }
    }

    @Test("a verification reads the card at an amount of zero")
    func verification() async throws {
        let bench = try await Bench()
        let session = try await bench.reader.prepare(using: bench.token())
        try bench.present("visa")
        let result = try await session.readPaymentCard(
            PaymentCardVerificationRequest(currencyCode: "EUR", for: .lookUp))
        #expect(try bench.open(result)[0x9F02]?.hex == "000000000000")
    }

    @Test("a session ends with its token or its time, and with the next one")
    func expiry() async throws {
        let bench = try await Bench()
        let first = try await bench.reader.prepare(using: bench.token())
        let second = try await bench.reader.prepare(using: bench.token())
        await expect("noReaderSession") { _ = try await first.readPaymentCard(purchase) }
        bench.passTime(24 * 3600 + 1)
        let log = await EventLog(bench.reader)
        for _ in 0..<2 { await expect("readerSessionExpired") { _ = try await second.readPaymentCard(purchase) } }
        try await log.wait(for: "notReady")
        #expect(await log.names == ["notReady"])
        let third = try await bench.reader.prepare(using: bench.token(lifetime: 60))
        bench.passTime(61)
        await expect("readerTokenExpired") { _ = try await third.readPaymentCard(purchase) }
    }

    @Test("each stream has every event")
    func streams() async throws {
        let bench = try await Bench()
        let logs = [await EventLog(bench.reader), await EventLog(bench.reader)]
        let session = try await bench.reader.prepare(using: bench.token())
        try bench.present("visa")
        _ = try await session.readPaymentCard(purchase)
        for log in logs { try await log.wait(for: "userInterfaceDismissed") }
        #expect(await logs[0].names == logs[1].names)
    }
}

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct TokenTests {
    @Test("a token that is missing, foreign, forged or expired has its own error")
    func tokens() async throws {
        let bench = try await Bench()
        let good = try await bench.token().rawValue
        func prepare(_ token: PaymentCardReader.Token, _ expected: String) async {
            await expect(expected) { _ = try await bench.reader.prepare(using: token) }
        }
        await prepare(.init(rawValue: ""), "emptyReaderToken")
        for text in ["x", "a.b.c", String(good.dropLast(4)), good + "." + good, String(repeating: "A", count: 20_000)] {
            await prepare(.init(rawValue: text), "invalidReaderToken")
        }
        // One letter of the payload.
        var parts = good.split(separator: ".").map(String.init)
        let index = parts[1].index(parts[1].startIndex, offsetBy: 20)
        parts[1].replaceSubrange(index...index, with: parts[1][index] == "A" ? "B" : "A")
        await prepare(.init(rawValue: parts.joined(separator: ".")), "invalidReaderToken")
        // No signature (RFC 7519, section 6.1).
        let none = Data(#"{"alg":"none","kid":"service-1"}"#.utf8).base64EncodedString().filter { $0 != "=" }
        await prepare(.init(rawValue: "\(none).\(good.split(separator: ".")[1])."), "invalidReaderToken")
        await prepare(try await bench.token(signedBy: ES256PrivateKey()), "invalidReaderToken")
        await prepare(try await bench.token(issuer: "https://elsewhere.example"), "invalidReaderToken")
        await prepare(try await bench.token(audience: "others"), "invalidReaderToken")
        await prepare(try await bench.token(issued: 3600), "invalidReaderToken")
        await prepare(try await bench.token(namesKey: false), "invalidReaderToken")
        await prepare(try await bench.token(lifetime: -1), "tokenExpired")
        await prepare(try await bench.token(merchant: ""), "invalidMerchant")
        await prepare(try await bench.token(merchant: "merchant-2"), "accountNotLinked")
    }

    @Test("an account is linked once, for its merchant and the version of the terms, and stays so")
    func accounts() async throws {
        let bench = try await Bench(isLinked: false)
        let token = try await bench.token()
        #expect(try await !bench.reader.isAccountLinked(using: token))
        await expect("accountNotLinked") { _ = try await bench.reader.prepare(using: token) }
        try await bench.reader.linkAccount(using: token)
        #expect(try await bench.reader.isAccountLinked(using: token))
        await expect("accountAlreadyLinked") { try await bench.reader.linkAccount(using: token) }
        try await bench.reader.relinkAccount(using: token)
        #expect(try await !bench.reader.isAccountLinked(using: bench.token(merchant: "merchant-2")))
    }

    @Test("every error tells what to do")
    func descriptions() {
        let error: any Error = PaymentCardReaderError.invalidReaderToken("it is too long")
        #expect(error.localizedDescription.contains("it is too long. Fetch a new one"))
        #expect(PaymentCardReaderError.unknown(code: 7).errorName == "unknown")
        #expect(PaymentCardReaderSession.ReadError.readCancelled.localizedDescription == "The read was cancelled.")
    }
}

/// - Parameter name: of the error's case.
func expect(_ name: String, _ body: () async throws -> Void) async {
    do {
        try await body()
        Issue.record("no error, but for \(name)")
    } catch {
        #expect("\(error)".prefix { $0 != "(" } == name, "\(error)")
    }
}
