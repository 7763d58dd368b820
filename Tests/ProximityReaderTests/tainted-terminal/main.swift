import CardEncryption
import Foundation
import Logging
import ProximityReader
import WalletPasses

// Reads one card, as a kiosk does, says what came of it, and stays: TaintTests look for the card in this process's memory.
// Arguments: the folder for records; online, stored, dukpt, passes or sealed-passes; digits to be found.  Standard input has the token.
LoggingSystem.bootstrap { label in
    var handler = StreamLogHandler.standardError(label: label)
    handler.logLevel = .trace
    return handler
}

let folder = URL(filePath: CommandLine.arguments[1])
let mode = CommandLine.arguments[2]
let passType = "pass.com.passkit.pksamples.nfcdemo"

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
if mode == "passes" {
    // TEST: the published keys of the virtual phones (proxmark3; Google's sample application for Smart Tap).
    let keys = [
        "3d1547f23cd78ad052a58860f1219e8fb791ec4dfe33769f5b9bfa627a656ca1",
        "826d17e50767b165b0e4d9e332f8d1d1e20224284fb4daf1e50a03246e70797d",
    ].compactMap { digits in
        let digits = digits.compactMap(\.hexDigitValue)
        return MerchantKey(stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) })
    }
    configuration.passes = try PassConfiguration(merchants: [
        PassMerchant(
            id: passType, apple: .init(passTypeIdentifier: passType, keys: [keys[0]]),
            google: .init(collectorID: 20_180_608, keys: [1: keys[1]]))
    ])
    // So that what was seen of passes has a file.
    configuration.storeAndForward = .init(
        limits: ["EUR": .init(perPayment: 50, total: 100)], maximumCount: 3, maximumAge: .seconds(3600))
}
ProximityReaderSystem.bootstrap(try configuration.validated())

let reader = PaymentCardReader()
let token = PaymentCardReader.Token(rawValue: readLine() ?? "")
try await reader.linkAccount(using: token)
var session = try await reader.prepare(using: token)
if mode == "stored" { session = try await reader.prepareStoreAndForward() }
do {
    let purchase = PaymentCardTransactionRequest(amount: 12.34, currencyCode: "EUR")
    if mode.hasSuffix("passes") {
        let (payment, passes) = try await session.readPaymentCard(
            purchase, vasRequest: VASRequest(vasMerchants: [.init(id: passType)]), stopOnVASResult: false)
        print("read: \(payment.map { "\($0)" } ?? "no payment"), \(passes.map { "\($0)" } ?? "no passes")")
        print("passes: \((passes?.entries ?? []).map { "\($0.status) \($0.customerVASData?.count ?? 0)" })")
    } else {
        print("read: \(try await session.readPaymentCard(purchase))")
    }
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
