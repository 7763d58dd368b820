import Foundation
import ProximityReader

// Reads one card, as a kiosk does, says what came of it, and stays: TaintTests look for the card in this process's memory.
// The first argument is the folder for records; standard input has the token.
var configuration = ProximityReaderSystem.Configuration()
configuration.reader = .pcsc
configuration.folder = URL(filePath: CommandLine.arguments[1])
try ProximityReaderSystem.bootstrap(configuration)

let reader = PaymentCardReader()
let token = PaymentCardReader.Token(rawValue: readLine() ?? "")
try await reader.linkAccount(using: token)
let session = try await reader.prepare(using: token)
do {
    let result = try await session.readPaymentCard(PaymentCardTransactionRequest(amount: 12.34, currencyCode: "EUR"))
    print("read: \(result)")
} catch {
    print("failed: \(error) \(error.localizedDescription)")
}
print("done")
fflush(nil)
try await Task.sleep(for: .seconds(600))
