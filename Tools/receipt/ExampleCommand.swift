import ArgumentParser
import CardReaderAdapter
import Foundation
import ToolSupport

struct ExampleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "example", abstract: "Prints a receipt file to start from.")

    func run() async throws {
        let card = CardPresentTransactionDetails(
            last4: "0010", expMonth: 12, expYear: 2030, brand: .visa,
            receipt: ReceiptDetails(
                applicationPreferredName: "VISA CREDIT", dedicatedFileName: "A0000000031010",
                authorizationResponseCode: "00", applicationCryptogram: "3866196A29768AC9",
                terminalVerificationResults: "0000000000", transactionStatusInformation: "0000",
                cardholderVerificationMethod: .noCVM, authorizationCode: "831000"),
            readMethod: .contactlessEMV)
        let content = try ReceiptContent(
            merchant: ReceiptMerchant(
                name: "Café am Markt", address: ["Markt 1", "04109 Leipzig"], merchantID: "0815", terminalID: "T-1"),
            parameters: CardPresentReceiptParameters(
                type: .sale, amount: 1234, currency: "EUR", date: Date(timeIntervalSince1970: 1_795_352_709),
                timeZone: TimeZone(secondsFromGMT: 3600) ?? .gmt, cardDetails: card, orderID: "1001"),
            lineItems: [
                ReceiptLineItem(
                    title: "Cappuccino", quantity: 2, amount: 760,
                    attributes: [.init(name: "Milk", value: "oat")]),
                ReceiptLineItem(title: "Apple cake", amount: 474),
            ],
            cartTotals: ReceiptTotals(subtotal: 1234, taxes: 80), orderNote: "Thank you!")
        try Report.print(content)
    }
}
