// Stores payments and forwards them, until it is killed; writes a line for each thing that is certain.
//
//     store-worker FOLDER FIRST [drain | fill [END] | script]
//
// FIRST: the number of the first payment.  The payment service is a file, `service` in FOLDER, which it appends to before it
// answers; now and then it fails, before that or after it.  With `drain` nothing is stored, and it ends when all is
// forwarded; with `fill` nothing is forwarded, and it ends with the payment before END.  With `script` it does each thing once,
// the same in each run.
import Crypto
import Foundation
import Glibc
import ProximityReader

// Whoever ends before killing it leaves no program behind that writes for ever.
let parent = getppid()
let folder = URL(filePath: CommandLine.arguments[1])
var number = Int(CommandLine.arguments[2]) ?? 0
let mode = CommandLine.arguments.dropFirst(3).first
let end = CommandLine.arguments.dropFirst(4).first.flatMap { Int($0) } ?? .max
let store = RecordStore(folder: folder.appending(path: "store")) { Date() }
let service = try DoubleService(folder)

do {
    if try await store.preparation() == nil {
        try await store.add(
            Preparation(
                issuer: DoubleService.issuer, merchant: "merchant-1", terminalProfile: nil, cardDataKey: nil,
                tokenExpiration: .distantFuture, time: Date(), uptime: 1, boot: "boot-1",
                reader: DoubleService.reader))
    }
    // As a program that starts does not know what became of the batch before.
    say("opened")
    if mode == "script" { try await script() }
    if mode == "drain" {
        for payment in try await store.payments() where payment.state == .setAside {
            try await store.putBack(payment.id)
        }
    }
    while getppid() == parent {
        if mode == "drain" {
            if try await store.count() == 0 { exit(0) }
        } else {
            for _ in 0..<Int.random(in: 1...4) {
                guard number < end else { exit(0) }
                try await storeOne()
            }
        }
        if mode == "drain" || mode == nil && Bool.random() { try await forward() }
    }
} catch {
    say("error \(error)")
    exit(1)
}

@MainActor func script() async throws -> Never {
    for _ in 0..<4 { try await storeOne(isWithdrawn: false) }
    try await storeOne(isWithdrawn: true)
    // Refused, and its first payment set aside for a while.
    let refused = try await store.makeBatch(size: 2)
    try await store.willSend(batch: refused.id)
    try await store.wasRefused(batch: refused.id)
    try await store.reset()
    if let first = refused.payments.first { try await store.setAside(first.id, reason: "it was refused") }
    // Answered at the second attempt, and taken in part.
    let batch = try await store.makeBatch(size: 2)
    try await store.willSend(batch: batch.id)
    try await store.record(Dictionary(uniqueKeysWithValues: batch.payments.map { ($0.id, .unknown) }))
    try await take(batch, service.charge(batch, count: 1))
    if let first = refused.payments.first { try await store.putBack(first.id) }
    try await storeOne(isWithdrawn: false)
    let rest = try await store.makeBatch(size: 0)
    try await store.willSend(batch: rest.id)
    try await take(rest, service.charge(rest, count: rest.count))
    say("done")
    exit(0)
}

@MainActor func storeOne(isWithdrawn: Bool = Int.random(in: 0..<8) == 0) async throws {
    let tap = "tap-\(number)"
    number += 1
    do {
        try await store.add(
            RecordStore.Payment(
                id: UUID().uuidString, paymentCardData: tap, generalCardData: "", amount: 10, currency: "EUR",
                issuer: DoubleService.issuer, merchant: "merchant-1"))
    } catch  where mode == "script" {
        // The customer pays in another way.
        return say("refused \(tap)")
    }
    say("stored \(tap)")
    guard isWithdrawn else { return }
    say("withdrawing \(tap)")
    try await store.withdrawLast()
    say("withdrawn \(tap)")
}

/// One call, so that a line is written whole or not at all.
func say(_ text: String) {
    let line = Array("\(text)\n".utf8)
    _ = write(1, line, line.count)
}

@MainActor func forward() async throws {
    var current = try await store.batch()
    if current == nil, try await store.count() > 0 {
        current = try await store.makeBatch(size: Bool.random() ? 0 : 1)
    }
    guard let batch = current else { return }
    // An impatient program: refused where it would be wrong.
    if Int.random(in: 0..<4) == 0 {
        do {
            try await store.reset()
            return
        } catch PaymentCardReaderStore.StoreError.notAllowed {}
    }
    try await store.willSend(batch: batch.id)
    do {
        try await take(batch, service.take(batch))
    } catch is DoubleService.Refused {
        try await store.wasRefused(batch: batch.id)
    } catch is DoubleService.Unreachable {
        try await store.record(Dictionary(uniqueKeysWithValues: batch.payments.map { ($0.id, .unknown) }))
    }
}

/// Notes what the payment service has taken, and deletes that.
@MainActor func take(_ batch: StoreAndForwardBatch, _ payments: [StoredPaymentCardReadResult]) async throws {
    try await store.record(
        Dictionary(uniqueKeysWithValues: payments.map { ($0.id, $0.id.hasPrefix("A") ? .declined : .approved) }))
    if mode == nil, Int.random(in: 0..<4) == 0 { return }
    _ = try await store.resolve(
        DeletionToken(
            service.token(for: batch, payments), keys: service.keySet, issuer: DoubleService.issuer, at: Date()))
}

/// Charges every payment of a batch that it has not seen, or the first of them.  It knows a batch by its `id`, and payments not at all: a payment
/// that comes in two batches is charged twice.
final class DoubleService {
    static let issuer = "https://payments.example"
    static let reader = "reader-1"

    struct Refused: Error {}
    struct Unreachable: Error {}

    private let key: P256.Signing.PrivateKey
    private let file: URL

    init(_ folder: URL) throws {
        let keyFile = folder.appending(path: "service.key")
        if let text = try? String(contentsOf: keyFile, encoding: .utf8) {
            key = try P256.Signing.PrivateKey(pemRepresentation: text)
        } else {
            key = P256.Signing.PrivateKey()
            try Data(key.pemRepresentation.utf8).write(to: keyFile, options: .atomic)
        }
        file = folder.appending(path: "service")
    }

    var keySet: String {
        let point = key.publicKey.rawRepresentation
        return """
            {"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":"service-1",\
            "x":"\(base64URL(point.prefix(32)))","y":"\(base64URL(point.suffix(32)))"}]}
            """
    }

    /// - Returns: the payments that it has charged, now or before.
    func take(_ batch: StoreAndForwardBatch) throws -> [StoredPaymentCardReadResult] {
        let failure = Int.random(in: 0..<8)
        if failure == 0 { throw Unreachable() }
        let isKnown = seen.contains("batch \(batch.id)\n")
        if !isKnown, failure == 1 { throw Refused() }
        let taken = try charge(batch, count: failure == 2 ? Int.random(in: 1...batch.count) : batch.count)
        // The answer is lost.
        if Int.random(in: 0..<3) == 0 { throw Unreachable() }
        return taken
    }

    /// - Returns: those that were charged before, if it has seen the batch.
    func charge(_ batch: StoreAndForwardBatch, count: Int) throws -> [StoredPaymentCardReadResult] {
        let seen = seen
        if seen.contains("batch \(batch.id)\n") {
            return batch.payments.filter { seen.contains("charged \($0.paymentCardData)\n") }
        }
        // One call, so that it is taken whole or not at all.
        let payments = Array(batch.payments.prefix(count))
        let lines = "batch \(batch.id)\n" + payments.map { "charged \($0.paymentCardData)\n" }.joined()
        let descriptor = open(file.path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
        defer { close(descriptor) }
        let bytes = Array(lines.utf8)
        guard write(descriptor, bytes, bytes.count) == bytes.count else { throw Unreachable() }
        return payments
    }

    private var seen: String { (try? String(contentsOf: file, encoding: .utf8)) ?? "" }

    func token(
        for batch: StoreAndForwardBatch, _ taken: [StoredPaymentCardReadResult]
    ) throws -> StoreAndForwardBatchDeletionToken {
        let lines = batch.payments.map { payment in
            let form =
                "swift-contactless payment 1\n\(payment.id)\n\(payment.paymentCardData)\n\(payment.generalCardData)\n"
            return "\(payment.id) \(hex(SHA256.hash(data: Data(form.utf8))))\n"
        }
        let form = "swift-contactless batch 1\n\(batch.id)\n\(batch.count)\n\(lines.joined())"
        let now = Int(Date().timeIntervalSince1970)
        let claims = """
            {"iss":"\(Self.issuer)","aud":"\(Self.reader)","jti":"\(UUID())","bid":"\(batch.id)","cnt":\(batch.count),\
            "hash":"\(base64URL(Data(SHA256.hash(data: Data(form.utf8)))))","iat":\(now),"exp":\(now + 600),\
            "ids":[\(taken.map { "\"\($0.id)\"" }.joined(separator: ","))]}
            """
        let text = base64URL(Data(#"{"alg":"ES256","kid":"service-1"}"#.utf8)) + "." + base64URL(Data(claims.utf8))
        let signature = try key.signature(for: Data(text.utf8)).rawRepresentation
        return .init(rawValue: "\(text).\(base64URL(signature))")
    }

    private func hex(_ digest: SHA256.Digest) -> String { digest.map { String(format: "%02x", $0) }.joined() }

    private func base64URL(_ data: Data) -> String {
        data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
