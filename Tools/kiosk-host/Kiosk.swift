import CardReaders
import ComposableCheckout
import EMVContactless
import Foundation
import KioskBridge
import KioskKit
import ProximityReader
import SandboxClient
import SmartCardSimulator
import ToolReaders
import ToolSupport
import TravelDocument

/// The kiosk behind the page: host, reader, orders and payment service.
@MainActor final class Kiosk {
    let host: BridgeHost
    /// The lines to show to the person who started it.
    private(set) var introduction: [String] = []
    private let orders: DemoOrders
    private let receipts: KioskReceipts
    private var customer: VirtualCustomer?
    /// The reader that gets its cards by hand; nil without one.
    private var readerByHand: SoftwareACR122U?
    private var sandbox: SandboxProcess?
    /// The payment service; nil without one.
    private var address: URL?
    private var following: Task<Void, Never>?
    /// Prepares the payments at a real reader.
    private var preparation: Task<Void, Never>?

    /// - Parameter texts: the page's strings.js; nil if it has none.
    init(_ options: KioskHost, texts: [UInt8]?) async throws {
        let host = BridgeHost(hostVersion: PackageVersion.current)
        self.host = host
        let amount = Decimal(string: options.amount, locale: Locale(identifier: "en_US_POSIX")) ?? 0
        orders = DemoOrders(amount: amount, currency: options.currency)
        receipts = try KioskReceipts(merchant: options.merchant, printer: options.printer)
        let reader = try options.reader()
        let trust = try Self.trust(options)
        host.register(
            NFCReadCapability(reader: reader.map { .reader($0) } ?? .automatic, trust: { trust }))
        let service = try await service(options, reader)
        if let service {
            try await takePayments(service, options)
            let passes = PassCapability(service)
            host.register(passes)
            host.register(checkout(service, passes, options))
        }
        if let reader, options.byHand {
            readerByHand = reader.device
            introduction.append("Reader: virtual; cards are put on it by lines on standard input")
        } else if let reader {
            let (document, card) = (options.document ?? VirtualCustomer.document, options.card ?? VirtualCustomer.card)
            let customer = VirtualCustomer(
                reader.device, document: document, card: card,
                pause: .milliseconds(options.pause ?? VirtualCustomer.pause))
            customer.follow(host, service?.reader)
            self.customer = customer
            introduction += [
                "Reader: virtual, with the document “\(document)” and the card “\(card)”",
                "The virtual passport opens with the card access number 123456",
            ]
        }
        host.useDocumentCamera()
        host.followSleep()
        host.followScreenLock()
        if let language = options.language { host.setLocale(Locale(identifier: language)) }
        if let texts { speak(texts, options) }
        let messages = host.messages
        following = Task { [orders] in
            for await message in messages where message.payload.action == "journey.complete" {
                await orders.takeNextCustomer()
            }
        }
    }

    /// Takes lines from standard input, if the reader gets its cards by hand.
    func beginByHand() { if let readerByHand { CardsByHand.follow(readerByHand) } }

    /// Says the page's texts, if it has them in a form that can be said.
    private func speak(_ module: [UInt8], _ options: KioskHost) {
        do {
            host.register(
                SpeechCapability(
                    try SpeechTexts(module: module).withCheckout(),
                    audience: options.speakAloud ? .everybody : .headphones))
        } catch { Terminal.remark("no speech: \(error)") }
    }

    private static func trust(_ options: KioskHost) throws -> TrustList {
        var list = try TrustStore.user.read()
        if options.virtual { try list.add(TestIssuingState.authorityCertificate, source: "virtual", at: .now) }
        for path in options.trust {
            for file in try TrustFile.all(in: path) { try file.add(to: &list) }
        }
        return list
    }

    /// Returns the reader and its payment service; nil without a payment service.
    private func service(_ options: KioskHost, _ reader: VirtualReader?) async throws -> TapToPayService? {
        var address = options.service.flatMap(URL.init(string:))
        if address == nil, reader != nil {
            let sandbox = try await SandboxProcess()
            (self.sandbox, address) = (sandbox, sandbox.address)
        }
        guard let address else { return nil }
        self.address = address
        var configuration = try reader.map(Demonstration.configuration) ?? ProximityReaderSystem.Configuration()
        configuration.passes = try Demonstration.merchant()
        ProximityReaderSystem.bootstrap(try configuration.validated())
        introduction.append("Payment service: \(address.absoluteString)")
        return TapToPayService(psp: SandboxService(address: address))
    }

    private func takePayments(_ service: TapToPayService, _ options: KioskHost) async throws {
        if options.virtual {
            do { try await service.initialize() } catch {
                throw ToolError(
                    status: 5, summary: "no payments: \(error.localizedDescription)",
                    hint: options.service.map { "Check that a payment service answers at \($0)." }
                        ?? "Check the folder for the terminal's state, and that psp-sandbox can be run.")
            }
        } else {
            preparation = Task {
                async let store: Void = Self.persist(
                    "the store's key", "the store's key can be used", longest: .seconds(3600)
                ) {
                    try await ProximityReaderSystem.ValidatedConfiguration.checkStore()
                }
                await Self.persist(
                    "no payments before reader and payment service are ready", "payments are ready",
                    service.initialize)
                await store
            }
        }
        host.register(
            PaymentCapability(service, orders: orders, pricing: { Self.price($0, $1) }, canPrintReceipts: true))
        host.register(
            ReceiptCapability { [orders, receipts] id, locale in
                guard let sale = await orders.sale(of: id) else {
                    throw BridgeErrorPayload(.invalidRequest, "order: one that is paid is due")
                }
                try await receipts.print(sale, locale: locale)
            })
    }

    /// The checkout of pages that show one, with a session of the payment service for each customer.
    private func checkout(
        _ service: TapToPayService, _ passes: PassCapability, _ options: KioskHost
    ) -> CheckoutCapability {
        CheckoutCapability(
            orders: orders, pricing: { Self.price($0, $1) }, passes: passes, qrCode: QRCode.modules(of:)
        ) {
            [address, permitsCardEntry = options.cardEntry] order, locale in
            guard let address else { throw BridgeErrorPayload(.unsupported, "there is no payment service") }
            let session = try await HTTPCheckoutRepository.openSession(
                at: address, amount: order.total, currency: order.currencyCode)
            return try await CompositionRoot(
                configurations: session, methods: session, tokens: session, payments: session,
                reader: TapToPayReader(service), permitsCardEntry: permitsCardEntry,
                language: locale.identifier(.bcp47)
            ).checkout()
        }
    }

    /// Tries `work` until it succeeds: a kiosk is switched on before its network is.  Each new reason is told, and then the
    /// success.
    ///
    /// - Parameter longest: the time between two tries doubles up to this.
    private static func persist(
        _ obstacle: String, _ success: String, longest: Duration = .seconds(5),
        _ work: @Sendable () async throws -> Void
    ) async {
        var told: String?
        var pause = Duration.seconds(5)
        while !Task.isCancelled {
            do {
                try await work()
                if told != nil { Terminal.remark(success) }
                return
            } catch {
                let reason = error.localizedDescription
                if reason != told { Terminal.remark("\(obstacle): \(reason)") }
                told = reason
            }
            try? await Task.sleep(for: pause)
            pause = min(pause * 2, longest)
        }
    }

    /// Members pay 10 % less.
    private nonisolated static func price(_ order: KioskOrder, _ passes: VASReadResult?) -> KioskPrice {
        guard let member = passes?.maskedNumber else { return KioskPrice(order.total) }
        var exact = order.total * 90 / 100
        var rounded = Decimal()
        NSDecimalRound(&rounded, &exact, Currency[order.currencyCode]?.exponent ?? 2, .plain)
        return KioskPrice(rounded, member: member)
    }
}
