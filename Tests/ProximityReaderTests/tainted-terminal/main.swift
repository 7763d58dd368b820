import CardEncryption
import Foundation
import Logging
import ProximityReader

// Reads one card, as a kiosk does, says what came of it, and stays: TaintTests look for the card in this process's memory.
// Arguments: the folder for records; online, stored or dukpt; digits to be found.  Standard input has the token.
LoggingSystem.bootstrap { label in
    var handler = StreamLogHandler.standardError(label: label)
    handler.logLevel = .trace
    return handler
}

let folder = URL(filePath: CommandLine.arguments[1])
let mode = CommandLine.arguments[2]

// So that looking for digits is known to find them: packed, in memory that is not wiped.
let digits = CommandLine.arguments[3].utf8.map { $0 - UInt8(ascii: "0") }
let control = UnsafeMutableRawBufferPointer.allocate(byteCount: digits.count / 2, alignment: 1)
for index in control.indices { control[index] = digits[2 * index] << 4 | digits[2 * index + 1] }

var configuration = ProximityReaderSystem.Configuration()
configuration.reader = .pcsc
configuration.folder = folder
if mode == "stored" {
    configuration.storeAndForward = .init(
        limits: ["EUR": .init(perPayment: 50, total: 100)], maximumCount: 3, maximumAge: .seconds(3600))
}
if mode == "dukpt" {
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    // TEST
    configuration.cardDataKey = .dukpt(
        try await AESDUKPTDevice(
            loading: SecretKey((0..<16).map { $0 }), initialKeyID: Array("TESTTEST".utf8),
            into: KeyFile(folder.appending(path: "dukpt").path)))
}
ProximityReaderSystem.bootstrap(try configuration.validated())

let reader = PaymentCardReader()
let token = PaymentCardReader.Token(rawValue: readLine() ?? "")
try await reader.linkAccount(using: token)
var session = try await reader.prepare(using: token)
if mode == "stored" { session = try await reader.prepareStoreAndForward() }
do {
    let result = try await session.readPaymentCard(PaymentCardTransactionRequest(amount: 12.34, currencyCode: "EUR"))
    print("read: \(result)")
} catch {
    print("failed: \(error) \(error.localizedDescription)")
}
if mode == "stored" {
    let store = try reader.fetchPaymentCardReaderStore()
    let batch = try await store.fetchStoredPaymentCardReadResultBatch()
    print("batch: \(String(decoding: try JSONEncoder().encode(batch), as: UTF8.self))")
    print("ledger: \(try await ProximityReaderSystem.Ledger(of: store).payments())")
}
print("done")
fflush(nil)
try await Task.sleep(for: .seconds(600))
