import EMVContactless
import Foundation
import KioskKit
import ProximityReader
import SandboxClient
import SmartCardSimulator

/// `kiosk --loyalty`: member number, discount, payment and receipt in one tap of a phone.
extension Kiosk {
    /// The discount for members, in percent.
    private static let discount = 10

    /// - Returns: true if all payments were approved.
    func takeLoyalPayments() async throws -> Bool {
        try await withService(passes: try Demonstration.merchant()) { service, _ in
            var areApproved = true
            for text in amounts {
                print("\(text) \(currency)")
                guard let currency = Currency[currency], let amount = Self.amount(text, of: currency) else {
                    return false
                }
                do {
                    areApproved = try await Self.pay(amount, currency, service) && areApproved
                } catch {
                    print("  Not paid: \(error.localizedDescription)")
                    areApproved = false
                }
            }
            return areApproved
        }
    }

    /// - Returns: true if the payment was approved.
    private static func pay(_ amount: Decimal, _ currency: Currency, _ service: TapToPayService) async throws -> Bool {
        let result = try await service.charge(
            PaymentCardTransactionRequest(amount: amount, currencyCode: currency.code), with: VASRequest()
        ) { passes in
            // The customer holds the phone to the reader: this has to be quick.
            guard let member = passes?.maskedNumber else { return amount }
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
        let member = result.passes?.maskedNumber.map { ", member \($0), saved \(saved)" } ?? ""
        print("  Receipt: \(text(paid, currency))\(member)")
        return true
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
}
