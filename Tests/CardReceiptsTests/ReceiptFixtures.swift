import CardReceipts
import EMVContactless
import Foundation
import TestSupport

/// Receipts to start from.
enum Sample {
    static let emv = ReceiptDetails(
        applicationPreferredName: "VISA CREDIT", dedicatedFileName: "A0000000031010", authorizationResponseCode: "00",
        applicationCryptogram: "3866196A29768AC9", cryptogramType: .arqc, terminalVerificationResults: "0000008001",
        transactionStatusInformation: "E800", issuerApplicationData: "06010A03A00000", accountType: "Credit",
        cardholderVerificationMethod: .signature, authorizationCode: "831000")

    /// Somebody who sells in Leipzig.
    static func merchant(
        name: String = "Café am Markt", address: [String] = ["Markt 1", "04109 Leipzig"], country: String = "DE",
        merchantID: String = "0815", terminalID: String = "T-1"
    ) -> ReceiptMerchant {
        ReceiptMerchant(
            name: name, address: address, country: country, merchantID: merchantID, terminalID: terminalID)
    }

    /// What a payment service says of a payment of 12.34 EUR with ``card(last4:receipt:readMethod:brand:)``.
    static func intent(
        status: PaymentIntentStatus = .succeeded, charges: [Charge] = [charge()], metadata: [String: String]? = nil
    ) -> PaymentIntent {
        PaymentIntent(
            id: "pi_1", status: status, created: Date(timeIntervalSince1970: 1_795_000_000), amount: 1234,
            currency: "eur", metadata: metadata, charges: charges)
    }

    static func charge(
        status: ChargeStatus = .succeeded, metadata: [String: String]? = nil,
        method: PaymentMethod? = .cardPresent(details: card())
    ) -> Charge {
        Charge(
            id: "ch_1", amount: 1234, currency: "eur", status: status,
            created: Date(timeIntervalSince1970: 1_795_352_709), metadata: metadata, paymentMethod: method)
    }

    static func card(
        last4: String = "0010", receipt: ReceiptDetails? = emv, readMethod: CardReadMethod? = .contactlessEMV,
        brand: CardBrand = .visa
    ) -> CardPresentTransactionDetails {
        CardPresentTransactionDetails(
            last4: last4, expMonth: 11, expYear: 2037, cardholderName: "MARKED/CARDHOLDER", brand: brand,
            generatedCard: "MARKED-GENERATED", receipt: receipt, emvAuthData: "MARKED-EMV",
            wallet: Wallet(type: "MARKED-WALLET"), readMethod: readMethod)
    }

    static func parameters(
        type: CardPresentReceiptParameters.TransactionType = .sale, amount: UInt = 1234, currency: String = "EUR",
        card: CardPresentTransactionDetails = card(), orderID: String? = "1001"
    ) throws -> CardPresentReceiptParameters {
        try CardPresentReceiptParameters(
            type: type, amount: amount, currency: currency, date: Date(timeIntervalSince1970: 1_795_352_709),
            timeZone: TimeZone(secondsFromGMT: 3600) ?? .gmt, cardDetails: card, orderID: orderID)
    }

    static func content(
        merchant: ReceiptMerchant = merchant(),
        parameters: CardPresentReceiptParameters? = nil, lineItems: [ReceiptLineItem] = items,
        totals: ReceiptTotals = ReceiptTotals(subtotal: 1234), note: String? = nil, link: String? = nil
    ) throws -> ReceiptContent {
        try ReceiptContent(
            merchant: merchant, parameters: parameters ?? Self.parameters(), lineItems: lineItems, cartTotals: totals,
            orderNote: note, link: link)
    }

    static let items = [
        ReceiptLineItem(
            title: "Cappuccino", quantity: 2, amount: 760, attributes: [.init(name: "Milk", value: "oat")]),
        ReceiptLineItem(title: "Apple cake", amount: 474),
    ]

    /// All that a receipt can have, and what is hard to lay out.
    static func full() throws -> ReceiptContent {
        try content(
            parameters: parameters(amount: 123_456_789),
            lineItems: items + [
                ReceiptLineItem(
                    title: "A title that is so long that it takes more than one line on any paper there is", amount: 99
                ),
                ReceiptLineItem(title: "烏龍茶 (Oolong) 大杯", quantity: 0.355, amount: 1_000_000),
                ReceiptLineItem(title: String(repeating: "W", count: 60), amount: -100),
            ],
            totals: ReceiptTotals(
                subtotal: 1_001_333, discount: 250, coupons: ["SPRING", "VIP"], fees: 30, shipping: 499, taxes: 80),
            note: "Leave at the door.\nThank you!", link: "https://shop.example/r/1001")
    }
}

/// The three forms that hold what is said as text, and the bytes for a printer.
func everyRendering(_ document: ReceiptDocument) -> [(name: String, bytes: [UInt8])] {
    [32, 42, 48].flatMap { columns in
        [
            ("text \(columns)", Array(TextRenderer(columns: columns).render(document).utf8)),
            ("ESC/POS \(columns)", ESCPOSRenderer(columns: columns).render(document)),
        ]
    } + HTMLRenderer.Paper.allCases.map { ("HTML \($0)", Array(HTMLRenderer(paper: $0).render(document).utf8)) }
}

/// A folder that goes with its last user.
final class TemporaryFolder: Sendable {
    let url: URL

    init() throws {
        url = FileManager.default.temporaryDirectory.appending(path: "receipts-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false)
    }

    deinit { try? FileManager.default.removeItem(at: url) }
}

enum Judge {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent()

    /// What a program of the folder Judges prints for `input`.
    static func ask(_ script: String, _ arguments: [String] = [], input: String) async throws -> Program.Outcome {
        try await Program.run(
            ["/usr/bin/python3", folder.appending(path: "Judges/\(script)").path] + arguments,
            environment: ["PYTHONIOENCODING": "utf-8"], input: input)
    }
}
