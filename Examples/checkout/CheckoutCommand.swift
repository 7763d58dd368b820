import ArgumentParser
import CheckoutTerminal
import ComposableCheckout
import EMVContactless
import Foundation
import SandboxClient

@main
struct CheckoutCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "checkout",
        abstract:
            "Show a checkout on the terminal: methods, a card's form, a voucher, and what becomes of the payment.",
        discussion: """
            The terminal knows no method and no field: it walks the descriptions that the checkout gives it. The payment \
            service is psp-sandbox, which is started for the purpose. No money moves.

            Cards are entered by hand only with --card-entry: it brings a terminal into the scope of PCI DSS. Enter test \
            numbers, such as 4111111111111111, and 4000000000003220 for a challenge. “<” goes back.

            EXAMPLES
              checkout                    12.30 EUR, by voucher
              checkout --card-entry --country DE 12.33
                                          by card, with a challenge; psp-sandbox --help has the amounts' meanings
              checkout --language de      in German

            EXIT STATUS
              0  the payment was made
              1  it was not, or it is not known, or the machine failed
              64 wrong usage
            """)

    @Argument(help: "The amount to be paid.")
    var amount = "12.30"

    @Option(help: "The currency, of ISO 4217.")
    var currency = "EUR"

    @Option(help: "The customer's country, of ISO 3166-1: DE.")
    var country: String?

    @Option(help: "The language, as de or fr-CA.")
    var language = "en"

    @Flag(help: "Let customers enter cards by hand.")
    var cardEntry = false

    @Option(help: .init("Where psp-sandbox listens, in place of one that is started.", valueName: "address"))
    var service: String?

    @Option(help: .init("How long to wait for the payment service each time it is asked.", valueName: "seconds"))
    var patience: Double = 30

    func validate() throws {
        guard Self.amount(amount, of: currency) != nil else {
            throw ValidationError("“\(amount) \(currency)” is no amount of a currency: 12.30 EUR is one.")
        }
        guard country.map({ $0.count == 2 && Country[$0] != nil }) ?? true else {
            throw ValidationError("--country: two letters of ISO 3166-1, as DE.")
        }
        guard service.map({ URL(string: $0)?.host != nil }) ?? true else {
            throw ValidationError("--service: an address such as http://127.0.0.1:8790.")
        }
        guard patience > 0, patience <= 3600 else { throw ValidationError("--patience: more than 0, at most 3600.") }
    }

    /// - Returns: nil if it is not an amount of the currency.
    private static func amount(_ text: String, of currency: String) -> Decimal? {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let currency = Currency[currency], text.utf8.count <= 12,
            parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
            parts.count == 1 || parts[1].count <= currency.exponent ?? 0
        else { return nil }
        return Decimal(string: text, locale: Locale(identifier: "en_US_POSIX"))
    }

    func run() async throws {
        do {
            guard try await isPaid() else { throw ExitCode(1) }
        } catch let error as ExitCode {
            throw error
        } catch {
            try? FileHandle.standardError.write(contentsOf: Data("checkout: \(error)\n".utf8))
            throw ExitCode(1)
        }
    }

    private func isPaid() async throws -> Bool {
        let sandbox = service == nil ? try await SandboxProcess() : nil
        defer { withExtendedLifetime(sandbox) {} }
        guard let address = service.flatMap(URL.init(string:)) ?? sandbox?.address else { return false }
        let session = try await HTTPCheckoutRepository.openSession(
            at: address, amount: Self.amount(amount, of: currency) ?? 0, currency: currency, country: country,
            patience: .seconds(patience))
        let root = CompositionRoot(
            configurations: session, methods: session, tokens: session, payments: session,
            permitsCardEntry: cardEntry, language: language)
        let texts = InputLocalizable(language: language)
        return await TerminalFront(try await root.checkout(), texts, Terminal()).run()
    }
}
