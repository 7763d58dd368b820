import CardEncryption
import CardReaderAdapter
import CardReaders
import CardReceipts
import EMVContactless
import Foundation
import JWTKit
import ProximityReader
import SmartCardSimulator
import SmartCardUSB
import Synchronization
import TestSupport
import Testing
import USBTestSupport

/// The service over the drivers, the terminal and its kernels: a software ACR122U on a USB bus in this process.
@Suite(.simulatedTime, .timeLimit(.minutes(10))) struct MachineTests {
    private struct Bench {
        let bus = SoftwareUSBBus()
        let device = SoftwareACR122U()
        let processor = ScriptedProcessor([])
        let shop: SigningShop
        let service: ContactlessReaderService
        let folder = FileManager.default.temporaryDirectory.appending(path: "adapter-\(UUID().uuidString)")

        /// - Parameter abilities: what the terminal has beside its antenna.
        init(abilities: Set<ReaderConfiguration.Ability> = []) throws {
            shop = try SigningShop()
            let configuration = try ProximityReaderSystem.ValidatedConfiguration.forVirtualCards(
                in: folder, tokenKeys: shop.keySet, abilities: abilities)
            var limits = ContactlessReaderService.TimeLimits()
            limits.reconnectionPauses = Array(repeating: .milliseconds(50), count: 20)
            service = ContactlessReaderService(
                processor: processor,
                backend: MachineReaders(configuration, machine: Machine(.usb, usb: USBReaders(on: bus))),
                journal: .memory, limits: limits)
        }

        func remove() { try? FileManager.default.removeItem(at: folder) }

        func connect(options: CardReaderConnectionOptions? = nil) async throws -> CardReader {
            try service.start(shop, discoveryMethod: .usb)
            for try await list in service.discoveredReaders {
                if let reader = list.first { return try await service.connect(reader, options: options) }
            }
            throw AdapterBench.Missing()
        }

        func card(_ name: String) throws -> any VirtualCard { try #require(VirtualCards.named(name)) }
    }

    @Test("a card that wants another interface has declined nothing, and the customer is told")
    func anotherInterface() async throws {
        let bench = try Bench(abilities: [.contacts])
        defer { bench.remove() }
        bench.bus.plug(bench.device)
        _ = try await bench.connect()
        let events = Seen(bench.service.readerEvents)
        async let error = failure { _ = try await bench.service.capturePayment(AdapterBench.payment) }
        try await wait(for: "wait for a card") { events.all.last?.text == "waiting 4" }
        bench.device.insert(try bench.card("mastercard-decline"))
        #expect(await error == "paymentMethodCollection(underlyingError: anotherInterfaceNeeded)")
        try await wait(for: "message") { events.all.last?.text == "message Use the card another way" }
        #expect(await bench.processor.calls(of: "process").isEmpty)
        bench.device.remove()
    }

    @Test("A1, A14, A15: a reader on USB is found, connected and paid with; its name is its model and port")
    func payment() async throws {
        let bench = try Bench()
        defer { bench.remove() }
        let lists = Seen(bench.service.discoveredReaders)
        let events = Seen(bench.service.readerEvents)
        try bench.service.start(bench.shop, discoveryMethod: .usb)
        try await wait(for: "empty list") { !lists.all.isEmpty }
        bench.bus.plug(bench.device)
        try await wait(for: "reader") { lists.all.last?.count == 1 }
        let found = try #require(lists.all.last?.first)
        #expect(found.serial == "072F:2200@1-2#0" && found.vendorIdentifier == "072F:2200")
        #expect(found.name == "ACS ACR122U PICC Interface" && found.batteryLevel == nil)
        #expect(found.readerType == .acr122u)
        #expect(!found.status.connected && found.discoveryMethod == .usb)
        let reader = try await bench.service.connect(found, options: nil)
        #expect(reader.status.connected && reader.locationId == "shop-1")

        async let intent = bench.service.capturePayment(AdapterBench.payment)
        try await wait(for: "wait for a card") { events.all.last?.text == "waiting 4" }
        bench.device.insert(try bench.card("visa"))
        #expect(try await intent.status == .requiresCapture)
        try await wait(for: "end of the read") { events.all.last?.text == "cardDetailsCollected" }
        #expect(
            events.all.map(\.text) == ["waiting 4", "cardInserted", "message Remove the card", "cardDetailsCollected"])
        // The card lies there still, and the next payment has it removed.
        async let second = bench.service.capturePayment(AdapterBench.payment)
        try await wait(for: "prompt") { events.all.count == 5 }
        #expect(await bench.processor.calls(of: "create").count == 1)
        bench.device.remove()
        try await wait(for: "wait for a card") { events.all.last?.text == "waiting 4" }
        bench.device.insert(try bench.card("visa"))
        #expect(try await second.status == .requiresCapture)
        #expect(await Set(bench.processor.calls(of: "process").map(\.key)).count == 2)
        try await bench.service.disconnect()
        try await wait(for: "release") { bench.bus.inUse.links == 0 }
    }

    @Test(
        "A9, A10, A19: unplugged while a card is awaited, the reader is connected again when it is back; cancelled, it is free"
    )
    func unplugged() async throws {
        let bench = try Bench()
        defer { bench.remove() }
        bench.bus.plug(bench.device)
        let events = Seen(bench.service.readerEvents)
        let states = Seen(bench.service.reconnectionEvents)
        _ = try await bench.connect()
        let payment = Task { await failure { _ = try await bench.service.capturePayment(AdapterBench.payment) } }
        try await wait(for: "wait for a card") { events.all.last?.text == "waiting 4" }
        bench.device.unplug()
        bench.bus.unplug()
        #expect(await payment.value == "paymentMethodCollection(underlyingError: bluetoothDisconnected)")
        try await wait(for: "event") { events.all.last?.text == "disconnected usbDisconnected" }
        let device = SoftwareACR122U()
        bench.bus.plug(device)
        try await wait(for: "reconnection") { states.all.count == 2 }
        guard case .succeeded = states.all[1] else { throw AdapterBench.Missing() }
        // One for each attempt: the first may come before the reader is ready.
        #expect(bench.shop.tokens >= 2)

        let cancelled = Task { await failure { _ = try await bench.service.retryActivePaymentIntent() } }
        try await wait(for: "wait for a card") { events.all.last?.text == "waiting 4" }
        cancelled.cancel()
        #expect(
            await cancelled.value
                == "paymentMethodCollection(underlyingError: commandCancelled(from: CancellationSource.app))")
        async let intent = bench.service.retryActivePaymentIntent()
        try await wait(for: "wait for a card") { events.all.filter { $0.text == "waiting 4" }.count == 3 }
        device.insert(try bench.card("visa"))
        #expect(try await intent.status == .requiresCapture)
    }

    @Test("A1: a watch of the USB that ends is begun again, and what came meanwhile is found")
    func watchEnds() async throws {
        let bench = try Bench()
        defer { bench.remove() }
        let lists = Seen(bench.service.discoveredReaders)
        try bench.service.start(bench.shop, discoveryMethod: .usb)
        try await wait(for: "empty list") { !lists.all.isEmpty }
        try await wait(for: "watch") { bench.bus.isWatched }
        bench.bus.endWatches()
        bench.bus.plug(bench.device)
        try await wait(for: "reader") { lists.all.last?.count == 1 }
        bench.bus.unplug()
        try await wait(for: "empty list") { lists.all.last?.isEmpty == true }
        try await bench.service.cancelDiscovery()
    }

    @Test("A13, A22: a token that is no good, terms that may not be accepted, and a card that declines")
    func errors() async throws {
        let bench = try Bench()
        defer { bench.remove() }
        bench.bus.plug(bench.device)
        bench.shop.setLifetime(-1)
        #expect(await failure { _ = try await bench.connect() } == "connection(underlyingError: readerSessionExpired)")
        bench.shop.setLifetime(3600)
        let refusing = CardReaderConnectionOptions(builtInOptions: .init(termsOfServiceAcceptancePermitted: false))
        #expect(
            await failure { _ = try await bench.connect(options: refusing) }
                == "connection(underlyingError: appleBuiltInReaderTOSNotYetAccepted)")
        _ = try await bench.connect()
        let events = Seen(bench.service.readerEvents)
        let payment = Task { await failure { _ = try await bench.service.capturePayment(AdapterBench.payment) } }
        try await wait(for: "wait for a card") { events.all.last?.text == "waiting 4" }
        bench.device.insert(try bench.card("visa-decline"))
        #expect(await payment.value == "paymentMethodCollection(underlyingError: paymentDeclinedByCardReader)")
        #expect(await bench.processor.calls.map(\.kind) == ["create"])
    }
}

extension ProximityReaderSystem.ValidatedConfiguration {
    /// That trusts the authorities of the virtual cards.
    static func forVirtualCards(
        in folder: URL, tokenKeys: String, abilities: Set<ReaderConfiguration.Ability> = [],
        storing policy: ProximityReaderSystem.StoreAndForwardPolicy? = nil
    ) throws -> Self {
        var configuration = ProximityReaderSystem.Configuration()
        configuration.folder = folder
        configuration.tokenKeys = tokenKeys
        configuration.terminal.abilities = abilities
        configuration.storeAndForward = policy
        for key in VirtualCards.certificationAuthorityKeys {
            configuration.certificationAuthorityKeys.insert(
                try CAPublicKey(
                    environment: .test, rid: key.rid, index: key.index, modulus: key.modulus,
                    exponent: key.exponent, checksum: key.checksum, expiration: CalendarDate(packed: key.expires)))
        }
        return try configuration.validated()
    }
}

/// A shop whose payment service signs tokens.
final class SigningShop: CardReaderConfigProvider {
    let keySet: String
    private let signer = ES256PrivateKey()
    private let cardDataKey: String
    private let state = Mutex((tokens: 0, lifetime: 3600.0))

    init() throws {
        cardDataKey = try JWEPrivateKey(generating: .ecdhES, keyID: "cards-1").publicJWK
        func url(_ text: String?) -> String {
            (text ?? "").replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        }
        let (x, y) = (url(signer.parameters?.x), url(signer.parameters?.y))
        keySet = #"{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":"service-1","x":"\#(x)","y":"\#(y)"}]}"#
    }

    var tokens: Int { state.withLock { $0.tokens } }
    func setLifetime(_ seconds: Double) { state.withLock { $0.lifetime = seconds } }

    func fetchToken(completion: @escaping @Sendable (Result<String, any Error>) -> Void) {
        let lifetime = state.withLock { state in
            state.tokens += 1
            return state.lifetime
        }
        Task { [signer, cardDataKey] in
            do {
                let now = Date().timeIntervalSince1970
                let claims = Claims(
                    iss: "https://payments.example", aud: "terminal", iat: now, exp: now + lifetime, mid: "merchant-1",
                    card_data_key: try JSONDecoder().decode([String: String].self, from: Data(cardDataKey.utf8)))
                let keys = await JWTKeyCollection().add(ecdsa: signer, kid: "service-1")
                completion(.success(try await keys.sign(claims, kid: "service-1", header: ["typ": "reader-token+jwt"])))
            } catch {
                completion(.failure(error))
            }
        }
    }

    func fetchDefaultLocationID(completion: @escaping @Sendable (Result<String, any Error>) -> Void) {
        completion(.success("shop-1"))
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    private struct Claims: JWTPayload {
        let iss: String, aud: String
        let iat: Double, exp: Double
        let mid: String
        let card_data_key: [String: String]
        func verify(using algorithm: some JWTAlgorithm) throws {}
    }
}
