import CardEncryption
import EMVContactless
import Foundation
import KioskKit
import ProximityReader
import SandboxClient
import SmartCard
import SmartCardSimulator
import WalletPasses

/// `kiosk --loyalty`: member number, discount, payment and receipt in one tap of a phone.
extension Kiosk {
    /// The discount for members, in percent.
    private static let discount = 10

    /// - Returns: true if all payments were approved.
    func takeLoyalPayments() async throws -> Bool {
        let sandbox = service == nil ? try await SandboxProcess() : nil
        defer { withExtendedLifetime(sandbox) {} }
        guard let address = service.flatMap(URL.init(string:)) ?? sandbox?.address else { return false }
        print("Payment service: \(address.absoluteString)")

        let virtual = reader ? nil : SoftwareACR122U()
        var configuration = try virtual.map(configuration) ?? ProximityReaderSystem.Configuration()
        configuration.passes = try Self.merchant()
        ProximityReaderSystem.bootstrap(try configuration.validated())
        let service = TapToPayService(psp: SandboxService(address: address, patience: patience))
        try await service.initialize()
        let guide = guide(service.reader, virtual)
        defer { guide.cancel() }
        var areApproved = true
        for text in amounts {
            print("\(text) \(currency)")
            guard let currency = Currency[currency], let amount = Self.amount(text, of: currency) else { return false }
            do {
                areApproved = try await Self.pay(amount, currency, service) && areApproved
            } catch {
                print("  Not paid: \(error.localizedDescription)")
                areApproved = false
            }
        }
        return areApproved
    }

    /// - Returns: true if the payment was approved.
    private static func pay(_ amount: Decimal, _ currency: Currency, _ service: TapToPayService) async throws -> Bool {
        let result = try await service.charge(
            PaymentCardTransactionRequest(amount: amount, currencyCode: currency.code), with: VASRequest()
        ) { passes in
            // The customer holds the phone to the reader: this has to be quick.
            guard let member = memberNumber(in: passes) else { return amount }
            let price = discounted(amount, currency)
            print("  Member \(member): \(discount) % off, \(text(price, currency))")
            return price
        }
        guard let payment = result.payment, let paid = result.amount else {
            print("  A pass, and no card to pay with")
            return false
        }
        guard payment.status == .approved else {
            print("  Declined\(payment.message.map { ": \($0)" } ?? "")")
            return false
        }
        print("  Approved")
        let saved = text(amount - paid, currency)
        let member = memberNumber(in: result.passes).map { ", member \($0), saved \(saved)" } ?? ""
        print("  Receipt: \(text(paid, currency))\(member)")
        return true
    }

    /// Returns the member number of a pass, as it may be shown and printed: its last four characters.
    private static func memberNumber(in passes: VASReadResult?) -> String? {
        for entry in passes?.entries ?? [] where entry.status == .success {
            guard let number = entry.customerVASData.flatMap({ String(data: $0, encoding: .utf8) }) else { continue }
            // Whoever issued the pass wrote it.
            let shown = number.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }
            return String(repeating: "*", count: max(0, min(shown.count, 64) - 4)) + shown.suffix(4)
        }
        return nil
    }

    private static func text(_ amount: Decimal, _ currency: Currency) -> String {
        let digits = Decimal.FormatStyle(locale: Locale(identifier: "en_US_POSIX"))
            .precision(.fractionLength(currency.exponent ?? 0)).grouping(.never)
        return "\(amount.formatted(digits)) \(currency.code)"
    }

    private static func discounted(_ amount: Decimal, _ currency: Currency) -> Decimal {
        var exact = amount * Decimal(100 - discount) / 100
        var rounded = Decimal()
        NSDecimalRound(&rounded, &exact, currency.exponent ?? 0, .plain)
        return rounded
    }

    /// Returns the merchant that the passes of the virtual phones are for.
    private static func merchant() throws -> PassConfiguration {
        // TEST: published keys, Apple's of proxmark3 and Google's of its sample application for Smart Tap.
        let keys = try [appleKey, googleKey].map { digits in
            guard let key = MerchantKey(bytes(digits)) else { throw CardError(.other, "a key that is none") }
            return key
        }
        return try PassConfiguration(merchants: [
            PassMerchant(
                id: "loyalty",
                apple: .init(passTypeIdentifier: "pass.com.passkit.pksamples.nfcdemo", keys: [keys[0]]),
                google: .init(collectorID: 20_180_608, keys: [1: keys[1]]))
        ])
    }

    private static let appleKey = "3d1547f23cd78ad052a58860f1219e8fb791ec4dfe33769f5b9bfa627a656ca1"
    private static let googleKey = "826d17e50767b165b0e4d9e332f8d1d1e20224284fb4daf1e50a03246e70797d"

    private static func bytes(_ digits: String) -> [UInt8] {
        let digits = digits.compactMap(\.hexDigitValue)
        return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
    }

    /// Returns a virtual phone that answers nothing before it has heard what the terminal is for, or a card.
    static func presented(_ name: String, loyalty: Bool) -> (any VirtualCard)? {
        guard loyalty, name == "phone-apple" else { return VirtualCards.named(name) }
        return try? CardFile(parsing: "variant phone-apple {\nscreen closed\n}").makeCard()
    }
}
