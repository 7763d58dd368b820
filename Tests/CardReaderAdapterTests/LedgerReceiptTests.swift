import CardReaderAdapter
import CardReceipts
import EMVContactless
import Foundation
import ProximityReader
import SmartCard
import TestSupport
import Testing

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct LedgerReceiptTests {
    @Test("A stored sale's receipt is made of what the ledger has of it")
    func storedInLedger() throws {
        let facts = try #require(
            ReceiptFacts(
                label: "VISA CREDIT", applicationIdentifier: [UInt8](hex: "A0000000031010"),
                cryptogramInformationData: 0x80, applicationCryptogram: [UInt8](hex: "3866196A29768AC9"),
                cardholderVerification: .none))
        // As the ledger's values are encoded; the account number is truncated there.
        let payment: [String: Any] = [
            "id": "KEY-1", "time": 0.0, "amount": 12.34, "currency": "EUR", "merchant": "0815", "state": "stored",
            "card": "476173******0010",
        ]
        func receipt(_ facts: ReceiptFacts?) throws -> ReceiptContent {
            var object: [String: Any] = ["payment": payment]
            object["facts"] = facts?.encoded.hex
            return try ReceiptContent(
                merchant: Sample.merchant, order: Sample.order(1234),
                stored: JSONDecoder().decode(
                    ProximityReaderSystem.Ledger.Receipt.self, from: JSONSerialization.data(withJSONObject: object)),
                timeZone: .gmt)
        }
        let parameters = try receipt(facts).parameters
        #expect(parameters.type == .storedSale && parameters.amount == 1234 && parameters.currency == "EUR")
        #expect(parameters.card.lastFourDigits == "0010" && parameters.card.brand == .visa)
        #expect(parameters.card.emv?.applicationName == "VISA CREDIT")
        #expect(parameters.time.text == "2001-01-01T00:00:00+00:00")
        // The network is that of the application.
        #expect(throws: ReceiptError.missingRequiredField(.cardBrand)) { try receipt(nil) }
    }
}

/// A sale to make receipts of.
enum Sample {
    static let merchant = ReceiptMerchant(
        name: "Café am Markt", address: ["Markt 1", "04109 Leipzig"], country: "DE", merchantID: "0815",
        terminalID: "T-1")

    static func order(_ amount: Int) -> ReceiptOrder {
        ReceiptOrder(
            lineItems: [ReceiptLineItem(title: "Cappuccino", amount: amount)], totals: ReceiptTotals(subtotal: amount))
    }
}
