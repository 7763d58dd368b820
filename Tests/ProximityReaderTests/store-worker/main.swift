// Stores payments and forwards them, until it is killed; writes a line for each thing that is certain.
//
//     store-worker FOLDER FIRST [drain | fill [END] | script]
//
// FIRST: the number of the first payment.  What is stored is forwarded by a PaymentForwarder.  The payment service is a file,
// `service` in FOLDER, which it appends to before it answers; now and then it fails, before that or after it.  With `drain` nothing is stored, and it ends when all is
// forwarded; with `fill` nothing is forwarded, and it ends with the payment before END.  With `script` it does each thing once,
// the same in each run.  It ends by _exit, as by a kill: with its store open, which no sanitizer is to call a leak.
import Crypto
import Foundation
import Glibc
import KioskKit
import ProximityReader
import Synchronization
import TestSupport

/// What this program draws: by the seed, and by what it is called with.
enum Chance {
    private static let generator = Mutex(Seed.generator(CommandLine.arguments.dropFirst(2)))
    static func number(_ range: ClosedRange<Int>) -> Int { generator.withLock { Int.random(in: range, using: &$0) } }
    static func oneIn(_ count: Int) -> Bool { number(1...count) == 1 }
}

// Whoever ends before killing it leaves no program behind that writes for ever.
let parent = getppid()
let folder = URL(filePath: CommandLine.arguments[1])
var number = Int(CommandLine.arguments[2]) ?? 0
let mode = CommandLine.arguments.dropFirst(3).first
let end = CommandLine.arguments.dropFirst(4).first.flatMap { Int($0) } ?? .max
let service = try DoubleService(folder)
let terminal: PaymentTerminal = try {
    var configuration = ProximityReaderSystem.Configuration()
    configuration.folder = folder.appending(path: "store")
    configuration.tokenKeys = service.keySet
    configuration.tokenIssuer = DoubleService.issuer
    return PaymentTerminal(try configuration.validated())
}()
let store = terminal.store

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
    while getppid() == parent {
        if mode == "drain" {
            if try await store.count() == 0 { _exit(0) }
            for payment in try await store.payments() where payment.state == .setAside {
                try await store.putBack(payment.id)
            }
        } else {
            for _ in 0..<Chance.number(1...4) {
                guard number < end else { _exit(0) }
                try await storeOne()
            }
        }
        if mode == "drain" || mode == nil && Chance.oneIn(2) { try await forward() }
    }
} catch {
    say("error \(error)")
    _exit(1)
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
    try await take(batch, service.charge(batch.id, batch.payments.map { ($0.id, $0.paymentCardData) }, count: 1))
    if let first = refused.payments.first { try await store.putBack(first.id) }
    try await storeOne(isWithdrawn: false)
    let rest = try await store.makeBatch(size: 0)
    try await store.willSend(batch: rest.id)
    try await take(
        rest, service.charge(rest.id, rest.payments.map { ($0.id, $0.paymentCardData) }, count: rest.count))
    say("done")
    _exit(0)
}

@MainActor func storeOne(isWithdrawn: Bool = Chance.oneIn(8)) async throws {
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
    // An impatient program: refused where it would be wrong.
    if Chance.oneIn(4) {
        do {
            try await store.reset()
        } catch PaymentCardReaderStore.StoreError.notAllowed {
        } catch PaymentCardReaderStore.StoreError.storeAndForwardBatchNotFound {}
    }
    var pace = PaymentForwarder.Pace()
    pace.batchSize = Chance.number(1...20)
    pace.attempts = Chance.number(1...3)
    (pace.interval, pace.pause) = (.zero, .zero)
    let forwarder = PaymentForwarder(PaymentCardReaderStore(terminal: terminal), to: service, pace: pace)
    // It gives up, as the pace has it.
    do { try await forwarder.forward() } catch is PaymentServiceError {}
}

/// Notes what the payment service has taken, and deletes that.
@MainActor func take(_ batch: StoreAndForwardBatch, _ taken: [String]) async throws {
    let sent = try JSONDecoder().decode(DoubleService.Batch.self, from: JSONEncoder().encode(batch))
    let token = StoreAndForwardBatchDeletionToken(rawValue: try service.token(for: sent, taken))
    try await store.record(
        Dictionary(uniqueKeysWithValues: taken.map { ($0, DoubleService.isDeclined($0) ? .declined : .approved) }),
        deletionToken: token.rawValue)
    _ = try await store.resolve(
        DeletionToken(token, by: TokenVerifier(keySet: service.keySet), issuer: DoubleService.issuer, at: Date()))
}

/// Charges every payment of a batch that it has not seen, or the first of them.  It knows a batch by its `id`, and payments not
/// at all: a payment that comes in two batches is charged twice.
final class DoubleService: PaymentServiceProvider {
    static let issuer = "https://payments.example"
    static let reader = "reader-1"

    struct Batch: Decodable {
        struct Payment: Decodable { let id: String, paymentCardData: String, generalCardData: String }
        let id: String, count: Int
        let payments: [Payment]
    }

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

    static func isDeclined(_ payment: String) -> Bool { payment.hasPrefix("A") }

    func submitBatch(_ data: Data, from reader: String, idempotencyKey: String) async throws -> BatchResult {
        let batch = try JSONDecoder().decode(Batch.self, from: data)
        let failure = Chance.number(0...7)
        if failure == 0 { throw PaymentServiceError.noAnswer("unreachable") }
        let isKnown = seen.contains("batch \(batch.id)\n")
        if !isKnown, failure == 1 { throw PaymentServiceError.refused(code: "no", message: "No.") }
        let taken = try charge(
            batch.id, batch.payments.map { ($0.id, $0.paymentCardData) },
            count: failure == 2 ? Chance.number(1...batch.count) : batch.count)
        // The answer is lost, or the token is.
        if Chance.oneIn(3) { throw PaymentServiceError.noAnswer("lost") }
        let results = taken.map { ($0, Self.result($0)) }
        return BatchResult(
            payments: Dictionary(uniqueKeysWithValues: results),
            deletionToken: failure == 3 ? nil : try token(for: batch, taken))
    }

    func result(for idempotencyKey: String) async throws -> PaymentResult? {
        guard seen.contains("decided \(idempotencyKey)\n") else { return nil }
        return Self.result(idempotencyKey)
    }

    private static func result(_ payment: String) -> PaymentResult {
        PaymentResult(
            id: payment, status: isDeclined(payment) ? .declined : .approved, idempotencyKey: payment, amount: 10,
            currency: "EUR")
    }

    /// - Returns: those that were charged before, if it has seen the batch.
    func charge(_ batch: String, _ payments: [(id: String, cardData: String)], count: Int) throws -> [String] {
        let seen = seen
        if seen.contains("batch \(batch)\n") {
            return payments.filter { seen.contains("charged \($0.cardData)\n") }.map(\.id)
        }
        // One call, so that it is taken whole or not at all.
        let taken = payments.prefix(count)
        let lines = taken.map { "decided \($0.id)\ncharged \($0.cardData)\n" }.joined()
        let descriptor = open(file.path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
        defer { close(descriptor) }
        let bytes = Array("batch \(batch)\n\(lines)".utf8)
        guard write(descriptor, bytes, bytes.count) == bytes.count else {
            throw PaymentServiceError.noAnswer("its disk is full")
        }
        return taken.map(\.id)
    }

    private var seen: String { (try? String(contentsOf: file, encoding: .utf8)) ?? "" }

    func token(for batch: Batch, _ taken: [String]) throws -> String {
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
            "ids":[\(taken.map { "\"\($0)\"" }.joined(separator: ","))]}
            """
        let text =
            base64URL(Data(#"{"alg":"ES256","kid":"service-1","typ":"deletion-token+jwt"}"#.utf8)) + "."
            + base64URL(Data(claims.utf8))
        let signature = try key.signature(for: Data(text.utf8)).rawRepresentation
        return "\(text).\(base64URL(signature))"
    }

    private func hex(_ digest: SHA256.Digest) -> String { digest.map { String(format: "%02x", $0) }.joined() }

    private func base64URL(_ data: Data) -> String {
        data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }

    // MARK: Not asked here

    func fetchReaderToken() async throws -> String { "" }
    func reverse(idempotencyKey: String, amount: Decimal?, currency: String?) async throws {
        throw PaymentServiceError.refused(code: "no", message: "No.")
    }

    func processPayment(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> PaymentResult { throw PaymentServiceError.refused(code: "no", message: "No.") }

    func processRefund(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> RefundResult { throw PaymentServiceError.refused(code: "no", message: "No.") }
}
