import ArgumentParser
import EMVContactless
import Foundation
import KioskKit
import Logging
import ProximityReader
import SandboxClient
import SmartCard
import SmartCardSimulator
import WalletPasses

@main
struct Kiosk: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "kiosk",
        abstract: "Take payments as a kiosk does, from the card to the payment service.",
        discussion: """
            Without options, everything is simulated: a software reader with a virtual card, and a payment service, psp-sandbox, \
            that is started for the purpose. With --reader a real card is read. No money moves.

            With --offline the payments are stored while there is no payment service, and forwarded when there is one. \
            --hold leaves them stored, --forward forwards what is: in $STATE_DIRECTORY, or swift-contactless in \
            $XDG_STATE_HOME or ~/.local/state. Without --service, the books and the key of the payment service that is \
            started are kept there, too.

            With --loyalty a phone is tapped that has a loyalty pass and a card: the pass is read first, members pay 10 % less, \
            and the card pays in the same tap. A card without a pass pays the full amount.

            With --checkout the customer chooses how to pay: by tap, with a voucher, and with --card-entry by a card whose \
            number is typed, which brings a terminal into the scope of PCI DSS. “<” goes back.

            EXAMPLES
              kiosk                   12.34 EUR
              kiosk --loyalty         member number, discount and payment in one tap of a virtual iPhone
              kiosk --checkout        methods, a tap, and what becomes of the payment
              kiosk 5.00 10.51        the second is declined: psp-sandbox --help has the amounts' meanings
              kiosk --reader 1.00     with the reader that is attached
              kiosk --offline 5.00 10.51 1.96
                                      the third payment's answer is lost, and asked for again

            EXIT STATUS
              0  every payment was approved, or with --hold stored
              1  one was declined or set aside, or the machine failed
              64 wrong usage
            """)

    @Argument(help: "What is to be paid, one payment each.")
    var amounts: [String] = ["12.34"]

    @Option(help: "The currency, of ISO 4217.")
    var currency = "EUR"

    @Flag(help: "Use the reader that is attached, in place of a virtual one.")
    var reader = false

    @Option(help: .init("The card on the software reader: visa, with --loyalty phone-apple.", valueName: "name"))
    var card: String?

    @Flag(help: "Read loyalty passes and payments in one tap.")
    var loyalty = false

    @Flag(help: "Show a checkout, in which the customer chooses how to pay.")
    var checkout = false

    @Flag(help: "With --checkout: let customers enter cards by hand.")
    var cardEntry = false

    @Option(help: .init("With --checkout: the language, as de or fr-CA.", valueName: "language"))
    var language = "en"

    /// The name of the card on the software reader.
    var presentedCard: String { card ?? (loyalty ? "phone-apple" : "visa") }

    @Option(help: .init("Where psp-sandbox listens, in place of one that is started.", valueName: "address"))
    var service: String?

    @Option(help: .init("How long to wait for the payment service each time it is asked.", valueName: "seconds"))
    var patience: Double = 30

    @Flag(help: "Store the payments as where there is no network, then forward them.")
    var offline = false

    @Flag(help: "With --offline: leave the payments stored.")
    var hold = false

    @Flag(help: "Forward what is stored, and take no payments.")
    var forward = false

    @Option(help: .init("How many payments are forwarded at once.", valueName: "number"))
    var batch = 50

    func validate() throws {
        guard let currency = Currency[currency] else {
            throw ValidationError("“\(currency)” is no currency: EUR is one.")
        }
        for amount in amounts where Self.amount(amount, of: currency) == nil {
            throw ValidationError(
                "“\(amount)” is no amount in \(currency.code): \(currency.exponent ?? 0 == 0 ? "1234" : "12.34") is one."
            )
        }
        guard !hold || offline else { throw ValidationError("--hold goes with --offline.") }
        guard !forward || !offline else { throw ValidationError("--forward goes without --offline.") }
        guard batch > 0 else { throw ValidationError("--batch: more than 0.") }
        guard !loyalty || !(offline || forward) else {
            throw ValidationError("--loyalty goes without --offline and --forward.")
        }
        guard !checkout || !(offline || forward || loyalty) else {
            throw ValidationError("--checkout goes without --offline, --forward and --loyalty.")
        }
        guard checkout || !cardEntry else { throw ValidationError("--card-entry goes with --checkout.") }
        guard VirtualCards.named(presentedCard) != nil else {
            throw ValidationError(
                "No card “\(presentedCard)”: there are \(VirtualCards.all.map(\.name).joined(separator: ", ")).")
        }
        guard service.map({ URL(string: $0)?.host != nil }) ?? true else {
            throw ValidationError("--service: an address such as http://127.0.0.1:8790.")
        }
        guard patience > 0 else { throw ValidationError("--patience: more than 0.") }
    }

    func run() async throws {
        // Warnings about test keys and a test terminal are suppressed here.
        LoggingSystem.bootstrap { label in
            var handler = StreamLogHandler.standardError(label: label)
            handler.logLevel = .warning
            return handler
        }
        do {
            let isDone =
                if offline || forward { try await storeAndForward() } else if loyalty {
                    try await takeLoyalPayments()
                } else if checkout { try await takeCheckouts() } else { try await takePayments() }
            guard isDone else { throw ExitCode(1) }
        } catch let error as ExitCode {
            throw error
        } catch {
            try? FileHandle.standardError.write(contentsOf: Data("kiosk: \(error.localizedDescription)\n".utf8))
            throw ExitCode(1)
        }
    }

    /// Starts the payment service unless one is named, and the reader with somebody who follows what it says.
    ///
    /// - Parameters:
    ///   - passes: what the terminal reads of passes.
    ///   - work: gets the terminal and the payment service's address.
    func withService(
        passes: PassConfiguration? = nil, _ work: (TapToPayService, URL) async throws -> Bool
    ) async throws -> Bool {
        let sandbox = service == nil ? try await SandboxProcess() : nil
        defer { withExtendedLifetime(sandbox) {} }
        guard let address = service.flatMap(URL.init(string:)) ?? sandbox?.address else { return false }
        print("Payment service: \(address.absoluteString)")

        let virtual = reader ? nil : SoftwareACR122U()
        var configuration =
            try virtual.map { try Demonstration.configuration(VirtualReader($0)) }
            ?? ProximityReaderSystem.Configuration()
        configuration.passes = passes
        ProximityReaderSystem.bootstrap(try configuration.validated())
        let service = TapToPayService(psp: SandboxService(address: address, patience: patience))
        try await service.initialize()
        let guide = guide(service.reader, virtual)
        defer { guide.cancel() }
        return try await work(service, address)
    }

    /// - Returns: true if all payments were approved.
    private func takePayments() async throws -> Bool {
        try await withService { service, _ in
            let transactions = TapTransactions(service)
            var areApproved = true
            for amount in amounts {
                print("\(amount) \(currency)")
                let outcome = await Self.pay(amount, currency, transactions, service)
                areApproved = areApproved && outcome
            }
            return areApproved
        }
    }

    /// - Returns: true if the payment was approved.
    private static func pay(
        _ amount: String, _ currency: String, _ transactions: TapTransactions, _ service: TapToPayService
    ) async -> Bool {
        let amount = Currency[currency].flatMap { Self.amount(amount, of: $0) } ?? 0
        for await state in transactions.processPayment(amount, currencyCode: currency) {
            switch state {
            case .confirmingPayment(let payment, let confirmation):
                print("  Asking the payment service…")
                await service.authorize(payment, answering: confirmation)
            case .completed(.approved):
                print("  Approved")
                return true
            case .completed(.declined(let reason)): print("  Declined\(reason.map { ": \($0)" } ?? "")")
            case .completed(.failed(let reason)): print("  Failed: \(reason)")
            case .cancelled(let error): print("  Not paid: \(error.localizedDescription)")
            }
        }
        return false
    }

    /// Tells the customer the next step; a virtual card takes it at once.
    private static func follow(
        _ event: PaymentCardReader.Event, _ virtual: SoftwareACR122U?, _ tell: (String) -> Void,
        _ card: () -> (any VirtualCard)?
    ) {
        switch event {
        case .readyForTap:
            tell("  Present your card")
            if let virtual, let card = card() { virtual.insert(card) }
        case .readRetry: tell("  Present your card again")
        case .removeCard:
            tell("  Remove your card")
            virtual?.remove()
        default: break
        }
    }

    /// Guides the customer until the task is cancelled.  A checkout has its own words.
    func guide(_ reader: PaymentCardReader, _ virtual: SoftwareACR122U?) -> Task<Void, Never> {
        print("Reader: \(virtual == nil ? "the one that is attached" : "virtual, with the card “\(presentedCard)”")")
        return Task { [events = reader.events, presentedCard, loyalty, checkout] in
            for await event in events {
                Self.follow(event, virtual) {
                    if !checkout { print($0) }
                } _: {
                    loyalty ? Demonstration.card(presentedCard) : VirtualCards.named(presentedCard)
                }
            }
        }
    }

    /// - Returns: the amount in the currency's major unit; nil if it is not a payable amount.
    static func amount(_ text: String, of currency: Currency) -> Decimal? {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
            text.utf8.count <= 16, parts.count == 1 || parts[1].count <= currency.exponent ?? 0,
            let amount = Decimal(string: text, locale: Locale(identifier: "en_US_POSIX")), amount > 0
        else { return nil }
        return amount
    }
}

/// Writes a line at once: a program may be waiting for it.
func print(_ line: String) { try? FileHandle.standardOutput.write(contentsOf: Data((line + "\n").utf8)) }
