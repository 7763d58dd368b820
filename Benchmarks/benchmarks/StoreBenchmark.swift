import CBaseline
import Crypto
import Foundation
import JWTKit
import KioskKit
import ProximityReader
import SmartCard

extension Benchmarks {
    /// Measures the memory to forward many payments.
    static func forwarding() async throws {
        print("forwarding: by PaymentForwarder in batches of 100")
        if !Limit.isGate { try measureForwarding() }
        try await forwardAgain()
    }

    /// Measures the time to store a payment durably on disk.
    static func store() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "store-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        guard let baseline = baseline_sqlite_open(folder.appending(path: "baseline.sqlite").path) else {
            throw CardError(.other, "SQLite cannot be used from C")
        }
        defer { baseline_sqlite_close(baseline) }
        let store = try await preparedStore(in: folder.appending(path: "store"))
        let payload = Array(sealed.utf8)
        print("store: payments of \(payload.count) bytes, each on the disk before the next")
        func insert() throws -> Double {
            let time = baseline_sqlite_insert(baseline, payload, payload.count)
            guard time >= 0 else { throw CardError(.other, "an insert from C failed") }
            return Double(time)
        }
        func add() async throws -> Double {
            let payment = payment()
            return try await time { try await store.add(payment) }
        }
        // With the first ones the files grow, and caches fill.
        for _ in 0..<20 { _ = (try insert(), try await add()) }
        let rounds = 200
        func cost(_ body: () async throws -> Void) async throws -> (flushes: Int, bytes: Int) {
            let (flushes, bytes) = (baseline_flushes(), io("wchar"))
            for _ in 0..<rounds { try await body() }
            return ((baseline_flushes() - flushes + rounds / 2) / rounds, (io("wchar") - bytes + rounds / 2) / rounds)
        }
        let plain = try await cost { _ = try insert() }
        let ours = try await cost { _ = try await add() }
        let allocations = try await Allocations(rounds: rounds) { _ = try await add() }
        print(
            """
              RecordStore.add: \(ours.flushes) flushes to the disk\(Limit.verdict(atMost: plain.flushes, ours.flushes)) and \
            \(ours.bytes) bytes for a payment\(Limit.verdict(atMost: 20_000, ours.bytes)), where an INSERT from C takes \
            \(plain.flushes) and \(plain.bytes); \(allocations.verdict(atMost: 300, unoptimized: 590))
            """)
        guard !Limit.isGate else { return }
        let comparison = try await Comparison(.time, pairs: 1000) {
            try insert()
        } _: {
            try await add()
        }
        report(comparison, "C, INSERT with synchronous = FULL", "RecordStore.add", limit: nil)
    }

    /// A string as long as the virtual cards' sealed data.
    private static let sealed = String(repeating: "c2VhbGVk", count: 160)
    private static let issuer = "https://payments.test"

    private static func payment() -> RecordStore.Payment {
        RecordStore.Payment(
            id: UUID().uuidString, paymentCardData: sealed, generalCardData: "", amount: 10, currency: "EUR",
            issuer: issuer, merchant: "merchant-1")
    }

    private static func preparedStore(in folder: URL) async throws -> RecordStore {
        let store = RecordStore(folder: folder) { Date() }
        try await store.add(
            Preparation(
                issuer: issuer, merchant: "merchant-1", terminalProfile: nil, cardDataKey: nil,
                tokenExpiration: .distantFuture, time: Date(), uptime: 1, boot: "boot-1", reader: "reader-1"))
        return store
    }

    /// Measures each count in its own process, in turns.
    private static func measureForwarding() throws {
        let (few, many) = (1_000, 10_000)
        var added: [Int: Double] = [:]
        for count in [few, many] {
            let child = Process()
            child.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
            child.arguments = [forwardOption, "\(count)"]
            // One arena for all threads, as their number is not what is measured.
            child.environment = ProcessInfo.processInfo.environment.merging(["MALLOC_ARENA_MAX": "1"]) { $1 }
            let output = Pipe()
            child.standardOutput = output
            try child.run()
            let text = String(decoding: try output.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
            child.waitUntilExit()
            let figures = text.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
            guard child.terminationStatus == 0, figures.count == 4 else {
                throw CardError(.other, "no figures: \(text)")
            }
            print(
                "  \(count) payments: \(tenths(figures[0])) MB opened,"
                    + " \(tenths(figures[1])) MB more at most while they are forwarded;"
                    + " opened in \(tenths(figures[2])) ms, forwarded in \(tenths(figures[3])) s")
            added[count] = figures[1]
        }
        let more = (added[many] ?? 0) - (added[few] ?? 0)
        print(
            "  to forward ten times as many payments takes \(tenths(max(more, 0))) MB more"
                + Limit.verdict("1 MB", isKept: more <= 1))
    }

    /// Stores and forwards 1,000 payments six times, and looks for what each 2,000 leave in the heap.  With the first, caches
    /// fill, and the book takes room that it keeps.  On a machine that waits for its disk, what is on its way may be counted: the
    /// least is what stays.
    private static func forwardAgain() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "store-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let count = 1_000
        await (try await preparedStore(in: folder)).close()
        let (terminal, forwarder) = try terminal(in: folder)
        var left: [Double] = []
        for _ in 0..<6 {
            for _ in 0..<count { try await terminal.store.add(payment()) }
            guard try await forwarder.forward().approved == count else {
                throw CardError(.other, "not all were forwarded")
            }
            left.append(Double(baseline_live_bytes()) / 1000)
        }
        let more = (3...5).map { max(left[$0] - left[$0 - 2], 0) }.min() ?? 0
        print("  2,000 more payments leave \(tenths(more)) kB in use" + Limit.verdict("50 kB", isKept: more <= 50))
    }

    private static func terminal(in folder: URL) throws -> (PaymentTerminal, PaymentForwarder) {
        let service = DecidedService()
        var configuration = ProximityReaderSystem.Configuration()
        configuration.folder = folder
        configuration.tokenKeys = service.keySet
        configuration.tokenIssuer = issuer
        let terminal = PaymentTerminal(try configuration.validated())
        var pace = PaymentForwarder.Pace()
        (pace.batchSize, pace.interval) = (100, .zero)
        return (terminal, PaymentForwarder(PaymentCardReaderStore(terminal: terminal), to: service, pace: pace))
    }

    /// The option with which this program calls itself.
    static let forwardOption = "--forward"

    /// Stores and forwards payments.  Prints the memory with the store open (MB), what the peak adds to it while they are
    /// forwarded (MB), the time to open the store with all payments (ms), and the time to forward them (s).
    static func forward(_ count: Int) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "store-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let filled = try await preparedStore(in: folder)
        for _ in 0..<count { try await filled.add(payment()) }
        await filled.close()
        let (terminal, forwarder) = try terminal(in: folder)
        let opening = try await time { _ = try await terminal.store.count() }
        let opened = memory("VmRSS")
        var report = PaymentForwarder.Report()
        var forwarding = 0.0
        let added = try await peakGrowth { forwarding = try await time { report = try await forwarder.forward() } }
        guard report.approved == count else { throw CardError(.other, "not all were forwarded") }
        print("\(Double(opened) / 1024) \(Double(added) / 1024) \(opening / 1e6) \(forwarding / 1e9)")
    }

    /// A payment service in this process that approves everything at once.
    private struct DecidedService: PaymentServiceProvider {
        private let signer = ES256PrivateKey()

        private struct Batch: Decodable {
            struct Payment: Decodable { let id: String, paymentCardData: String, generalCardData: String }
            let id: String, count: Int
            let payments: [Payment]
        }

        private struct Claims: JWTPayload {
            let iss: String, aud: String, jti: String, bid: String
            let cnt: Int
            let hash: String
            let iat: Double, exp: Double
            func verify(using algorithm: some JWTAlgorithm) throws {}
        }

        var keySet: String {
            let (x, y) = (Self.url(signer.parameters?.x ?? ""), Self.url(signer.parameters?.y ?? ""))
            return #"{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":"service-1","x":"\#(x)","y":"\#(y)"}]}"#
        }

        func submitBatch(_ data: Data, from reader: String, idempotencyKey: String) async throws -> BatchResult {
            let batch = try JSONDecoder().decode(Batch.self, from: data)
            let lines = batch.payments.map { payment in
                let form =
                    "swift-contactless payment 1\n\(payment.id)\n\(payment.paymentCardData)\n\(payment.generalCardData)\n"
                return "\(payment.id) \(Data(SHA256.hash(data: Data(form.utf8))).hex.lowercased())\n"
            }
            let form = "swift-contactless batch 1\n\(batch.id)\n\(batch.count)\n\(lines.joined())"
            let now = Date().timeIntervalSince1970
            let claims = Claims(
                iss: issuer, aud: reader, jti: UUID().uuidString, bid: batch.id, cnt: batch.count,
                hash: Self.url(Data(SHA256.hash(data: Data(form.utf8))).base64EncodedString()), iat: now, exp: now + 600
            )
            let keys = await JWTKeyCollection().add(ecdsa: signer, kid: "service-1")
            let results = batch.payments.map {
                ($0.id, PaymentResult(id: $0.id, status: .approved, idempotencyKey: $0.id, amount: 10, currency: "EUR"))
            }
            return BatchResult(
                payments: Dictionary(uniqueKeysWithValues: results),
                deletionToken: try await keys.sign(claims, kid: "service-1", header: ["typ": "deletion-token+jwt"]))
        }

        private static func url(_ base64: String) -> String {
            base64.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        }

        func result(for idempotencyKey: String) async throws -> PaymentResult? { nil }
        func reverse(idempotencyKey: String, amount: Decimal?, currency: String?) async throws {}
        func fetchReaderToken() async throws -> String { "" }

        func processPayment(
            cardData: String, amount: Decimal, currency: String, idempotencyKey: String
        ) async throws -> PaymentResult { throw PaymentServiceError.refused(code: "no", message: "No.") }

        func processRefund(
            cardData: String, amount: Decimal, currency: String, idempotencyKey: String
        ) async throws -> RefundResult { throw PaymentServiceError.refused(code: "no", message: "No.") }
    }
}
