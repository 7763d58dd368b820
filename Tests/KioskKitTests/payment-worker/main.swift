// Takes one payment, with a payment service that is a file, `books` in FOLDER; ends as if it was killed where it is told to.
//
//     payment-worker FOLDER KEY pay | reverse | start | report | credential [POINT]
//
// pay: has a card charged that was read.  reverse: that, and then has it taken back.  start: only starts, as the program does
// after it was killed.  report: likewise, and prints what the payment service had decided.
//
// credential: takes no payment, and tells whether the store's key would be wrapped.
//
// With `matrix` it does something else: see Matrix.swift.
//
// POINT: asked, booked: the payment service has been asked, has charged.  reversing, reversed: likewise of a reversal.  down: it
// answers to no reversal.  held: it does not answer to a payment.  removing: the journal is about to remove the entry.
import Foundation
import Glibc
import KioskKit
import ProximityReader

let folder = URL(filePath: CommandLine.arguments[1])
let key = CommandLine.arguments[2]
let mode = CommandLine.arguments[3]
let point = CommandLine.arguments.dropFirst(4).first

if mode == "matrix" {
    guard let address = URL(string: CommandLine.arguments[5]) else { exit(2) }
    try await runMatrix(
        folder, seed: UInt64(key) ?? 0, surface: point ?? "", address: address,
        isDraining: CommandLine.arguments.last == "drain")
    exit(0)
}

struct Books: PaymentServiceProvider {
    func write(_ line: String) {
        let descriptor = open(folder.appending(path: "books").path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
        let bytes = Array((line + "\n").utf8)
        _ = Glibc.write(descriptor, bytes, bytes.count)
        close(descriptor)
    }

    func reach(_ name: String) { if point == name { kill(getpid(), SIGKILL) } }

    func approved(_ key: String) -> PaymentResult {
        PaymentResult(id: "p", status: .approved, idempotencyKey: key, amount: 12.34, currency: "EUR")
    }

    func fetchReaderToken() async throws -> String { throw PaymentServiceError.noAnswer("there are no tokens") }

    func processPayment(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> PaymentResult {
        reach("asked")
        write("charged \(idempotencyKey)")
        reach("booked")
        if point == "held" { try await Task.sleep(for: .seconds(600)) }
        return approved(idempotencyKey)
    }

    func processRefund(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> RefundResult { throw PaymentServiceError.noAnswer("there are no refunds") }

    func result(for idempotencyKey: String) async throws -> PaymentResult? {
        let books = (try? String(contentsOf: folder.appending(path: "books"), encoding: .utf8)) ?? ""
        return books.contains("charged \(idempotencyKey)\n") ? approved(idempotencyKey) : nil
    }

    func reverse(idempotencyKey: String, amount: Decimal?, currency: String?) async throws {
        reach("reversing")
        guard point != "down" else { throw PaymentServiceError.noAnswer("it is down") }
        write("reversed \(idempotencyKey)")
        reach("reversed")
    }

    func submitBatch(_ batch: Data, from reader: String, idempotencyKey: String) async throws -> BatchResult {
        throw PaymentServiceError.noAnswer("there are no batches")
    }
}

let report: @Sendable (UnsettledPayment, PaymentResult) async -> Void = { payment, result in
    print("decided \(payment.id) \(result.status)")
}
var configuration = ProximityReaderSystem.Configuration()
configuration.folder = folder.appending(path: "state")
if mode == "credential" {
    configuration.storeAndForward = .init(limits: [:])
    print("wrapped: \(configuration.storeWrappingKey != nil)")
    do {
        ProximityReaderSystem.bootstrap(try configuration.validated())
        _ = PaymentCardReader()
    } catch {
        print("error: \(error.localizedDescription)")
    }
    exit(0)
}
var disk = PaymentJournal.Disk()
if point == "removing" { disk.remove = { _ in kill(getpid(), SIGKILL) } }
let service = TapToPayService(
    psp: Books(), reader: PaymentCardReader(terminal: PaymentTerminal(try configuration.validated())), pauses: [],
    reversalPause: .seconds(30), disk: disk,
    decided: mode == "report" ? report : nil)
if ["pay", "reverse"].contains(mode) {
    // No card's data: what a sealed blob would be.
    let card = PaymentCardReadResult(
        id: key, paymentCardData: "SEALED-CARD-DATA", generalCardData: nil, applicationTypeIdentifier: nil,
        outcome: .success, cardEffectiveState: nil, cardExpirationState: nil)
    _ = try await service.authorize(card, amount: 12.34, currency: "EUR")
    if mode == "reverse" { try await service.reverse(key) }
} else {
    // It has no reader; what is left is settled before that is found out.
    try? await service.initialize()
    for payment in await service.unsettledPayments {
        print("unsettled \(payment.id) \(payment.amount?.description ?? "-") \(payment.currency ?? "-")")
    }
}
