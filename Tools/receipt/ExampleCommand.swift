import ArgumentParser
import CardReceipts
import EMVContactless
import Foundation
import ToolSupport

struct ExampleCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "example", abstract: "Prints a transaction file to start from.")

    func run() async throws {
        let card = CardPresentTransactionDetails(
            last4: "0010", expMonth: 12, expYear: 2030, brand: .visa,
            receipt: ReceiptDetails(
                applicationPreferredName: "VISA CREDIT", dedicatedFileName: "A0000000031010",
                authorizationResponseCode: "00", applicationCryptogram: "3866196A29768AC9", cryptogramType: .arqc,
                terminalVerificationResults: "0000000000", transactionStatusInformation: "0000",
                issuerApplicationData: "06010A03A00000", accountType: "Credit", cardholderVerificationMethod: .noCVM,
                authorizationCode: "831000"),
            readMethod: .contactlessEMV)
        let charge = Charge(
            id: "ch_1", amount: 1234, currency: "eur", status: .succeeded,
            created: Date(timeIntervalSince1970: 1_795_352_709), paymentMethod: .cardPresent(details: card))
        let transaction = TransactionFile(
            merchant: ReceiptMerchant(
                name: "Café am Markt", address: ["Markt 1", "04109 Leipzig"], country: "DE", merchantID: "0815",
                terminalID: "T-1"),
            order: ReceiptOrder(
                id: "1001",
                lineItems: [
                    ReceiptLineItem(
                        title: "Cappuccino", quantity: 2, amount: 760, attributes: [.init(name: "Milk", value: "oat")]),
                    ReceiptLineItem(title: "Apple cake", amount: 474),
                ],
                totals: ReceiptTotals(subtotal: 1234, taxes: 80), note: "Thank you!"),
            intent: PaymentIntent(
                id: "pi_1", status: .succeeded, created: Date(timeIntervalSince1970: 1_795_352_709), amount: 1234,
                currency: "eur", charges: [charge]),
            refund: nil, timeZone: "Europe/Berlin")
        Terminal.print(try JSONEncoder.ofReceipts.text(of: transaction))
    }
}
