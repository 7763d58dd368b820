import CardEncryption
import Foundation
import JWTKit
import ProximityReader
import TestSupport
import Testing

/// psp-sandbox on a port of its own.
struct RunningSandbox {
    let address: String
    private let program: Program

    init(_ arguments: String...) async throws { try await self.init(arguments) }

    init(_ arguments: [String]) async throws {
        program = try Program([Program.built("psp-sandbox"), "--port", "0"] + arguments)
        try await program.wait(for: "address") { $0.output.contains("\n") }
        address = try #require(
            program.output.split(separator: "\n").first?.split(separator: " ").last.map(String.init), "\(program.error)"
        )
    }

    var output: String { program.output + program.error }

    struct Answer {
        /// Of HTTP; 0 if there was no answer.
        let status: Int
        let body: [String: Any]
        let exit: Int32
    }

    /// What curl gets.
    ///
    /// - Parameter body: nil: GET.
    func ask(
        _ resource: String, _ body: String?, key: String? = nil, reader: String? = nil, options: [String] = [],
        timeout: Int = 60
    ) async throws -> Answer {
        let outcome = try await caller(resource, body, key: key, reader: reader, options: options, timeout: timeout)
            .outcome()
        let parts = outcome.output.split(separator: "\n", omittingEmptySubsequences: false)
        let object = try? JSONSerialization.jsonObject(with: Data((parts.first ?? "").utf8))
        return Answer(
            status: Int(parts.last ?? "") ?? 0, body: object as? [String: Any] ?? [:], exit: outcome.status)
    }

    /// A curl that has begun to ask.
    func caller(
        _ resource: String, _ body: String?, key: String? = nil, reader: String? = nil, options: [String] = [],
        timeout: Int = 60
    ) throws -> Program {
        let headers = [key.map { "Idempotency-Key: \($0)" }, reader.map { "Reader-Identifier: \($0)" }]
            .compactMap { $0 }.flatMap { ["-H", $0] }
        return try Program(
            ["curl", "-s", "-m", "\(timeout)", "-w", "\n%{http_code}"] + (body == nil ? [] : ["--data-binary", "@-"])
                + options + headers + ["\(address)/\(resource)"], input: body ?? "")
    }

    func post(_ resource: String, _ body: String, key: String? = nil, timeout: Int = 60) async throws -> Answer {
        try await ask(resource, body, key: key, timeout: timeout)
    }

    var pid: Int32 { program.pid }

    /// As a power failure does, or when it ends by itself.
    func kill() async throws {
        program.signal(SIGKILL)
        try await end()
    }

    func end() async throws { _ = try await program.outcome() }

    /// Passes each writable part of its memory on.
    ///
    /// - Returns: the number of parts.
    func memory(_ body: (Data, Substring) throws -> Void) throws -> Int {
        let maps = try String(contentsOfFile: "/proc/\(pid)/maps", encoding: .utf8)
        let memory = try FileHandle(forReadingFrom: URL(filePath: "/proc/\(pid)/mem"))
        var count = 0
        for line in maps.split(separator: "\n") {
            let fields = line.split(separator: " ", omittingEmptySubsequences: true)
            let bounds = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
            guard fields[1].hasPrefix("rw"), bounds.count == 2, (try? memory.seek(toOffset: bounds[0])) != nil,
                let bytes = try? memory.read(upToCount: Int(bounds[1] - bounds[0]))
            else { continue }
            count += 1
            try body(bytes, line)
        }
        return count
    }

    func payments() async throws -> [[String: Any]] {
        let outcome = try await Program.run(["curl", "-s", "-m", "60", "\(address)/payments"])
        return try #require(
            try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [[String: Any]], "\(outcome)")
    }
}

@Suite(.timeLimit(.minutes(5))) struct PSPSandboxTests {
    /// Visa's published test account number.  TEST.
    private static let track = "57134761739001010010D301220100000000000000"

    private struct TokenClaims: JWTPayload {
        let iss: String, aud: String, mid: String, tpid: String
        let iat: Double, exp: Double
        let cardDataKey: [String: String]
        enum CodingKeys: String, CodingKey {
            case iss, aud, mid, tpid, iat, exp
            case cardDataKey = "card_data_key"
        }
        func verify(using algorithm: some JWTAlgorithm) throws {}
    }

    private struct DeletionClaims: JWTPayload {
        let iss: String, aud: String, jti: String, bid: String, hash: String
        let cnt: Int
        let iat: Double, exp: Double
        let ids: [String]?
        func verify(using algorithm: some JWTAlgorithm) throws {}
    }

    /// Of a token that verifies with the key that terminals trust without a configuration.
    private func claims<Claims: JWTPayload>(_ token: Any?, _ type: Claims.Type) async throws -> Claims {
        let keys = try await JWTKeyCollection().add(jwksJSON: TestPaymentService.keySet)
        return try await keys.verify(try #require(token as? String), as: type)
    }

    /// Card data as a terminal seals them.
    private func seal(
        _ sandbox: RunningSandbox, units: String, type: String = "00", track: String = Self.track
    ) async throws -> String {
        let token = try await sandbox.post("reader-tokens", "{}").body["token"]
        let key = try await claims(token, TokenClaims.self).cardDataKey
        let recipient = try JWERecipient(jwk: String(decoding: JSONEncoder().encode(key), as: UTF8.self))
        // EUR; TLV: amount, currency, type, track.
        let data = try [UInt8](hexDigits: "9F0206\(units)5F2A0209789C01\(type)\(track)")
        return try recipient.seal(ClearCardData(data), header: JWEHeader(keyID: key["kid"])).description
    }

    private func charge(_ cardData: String, _ amount: String) -> String {
        #"{"cardData":"\#(cardData)","amount":"\#(amount)","currency":"EUR"}"#
    }

    @Test("reader tokens have the requested merchant and lifetime")
    func tokens() async throws {
        let sandbox = try await RunningSandbox("--merchant", "shop", "--token-lifetime", "60")
        for (body, merchant) in [("{}", "shop"), (#"{"merchant":"other"}"#, "other")] {
            let token = try await sandbox.post("reader-tokens", body).body["token"]
            let claims = try await claims(token, TokenClaims.self)
            #expect(claims.mid == merchant && claims.exp - claims.iat == 60 && !claims.iss.isEmpty)
            #expect(claims.cardDataKey["d"] == nil && claims.cardDataKey["crv"] == "P-256")
        }
    }

    @Test(
        "the amount decides",
        arguments: [
            ("000000001234", "12.34", "approved", "00"), ("000000000105", "1.05", "declined", "05"),
            ("000000000051", "0.51", "declined", "51"), ("000000010054", "100.54", "declined", "54"),
            ("000000000514", "5.14", "declined", "14"), ("000000000091", "0.91", "declined", "91"),
            ("000000000100", "1", "approved", "00"),
        ])
    func amounts(_ units: String, _ amount: String, _ status: String, _ code: String) async throws {
        let sandbox = try await RunningSandbox()
        let answer = try await sandbox.post("payments", charge(seal(sandbox, units: units), amount), key: "k")
        #expect(answer.status == 200 && answer.body["status"] as? String == status)
        #expect(answer.body["responseCode"] as? String == code)
        #expect(answer.body["card"] as? String == "476173******0010")
        #expect(!sandbox.output.contains("4761739001010010"))
    }

    @Test("a known key gets its first answer again; with another request it is refused")
    func idempotency() async throws {
        let sandbox = try await RunningSandbox()
        let body = charge(try await seal(sandbox, units: "000000001234"), "12.34")
        let first = try await sandbox.post("payments", body, key: "k")
        let second = try await sandbox.post("payments", body, key: "k")
        #expect(first.body["id"] as? String == second.body["id"] as? String && first.body["id"] != nil)
        let other = charge(try await seal(sandbox, units: "000000000100"), "1.00")
        let reused = try await sandbox.post("payments", other, key: "k")
        #expect(reused.status == 422)
        #expect((reused.body["error"] as? [String: Any])?["code"] as? String == "idempotency_key_reused")
        #expect(try await sandbox.post("payments", other, key: "l").status == 200)
        #expect(try await sandbox.payments().count == 2)
    }

    @Test("…96 closes the connection in place of the first answer, and …98 answers late: the payment is made once")
    func lostAndLate() async throws {
        let sandbox = try await RunningSandbox("--late", "3600")
        // curl's exit status: 52, nothing came; 28, the time was over.
        let lost = charge(try await seal(sandbox, units: "000000000196"), "1.96")
        #expect(try await sandbox.post("payments", lost, key: "1.96").exit == 52)
        let late = charge(try await seal(sandbox, units: "000000000198"), "1.98")
        let waiting = Task { try await sandbox.post("payments", late, key: "1.98", timeout: 100).exit }
        try await wait(for: "decision") { sandbox.output.contains("the answer comes in") }
        for (body, key) in [(lost, "1.96"), (late, "1.98")] {
            let again = try await sandbox.post("payments", body, key: key)
            #expect(again.status == 200 && again.body["status"] as? String == "approved")
        }
        #expect(try await sandbox.payments().count == 2)
        try await sandbox.kill()
        #expect(try await waiting.value == 52, "no answer before the sandbox ended")
    }

    @Test("a request that contradicts the card's data, or lacks it, is refused and not booked")
    func refusals() async throws {
        let sandbox = try await RunningSandbox()
        let sealed = try await seal(sandbox, units: "000000001234")
        for (resource, body, key, code) in [
            ("payments", charge(sealed, "12.35"), "k", "mismatch"),
            ("payments", charge(sealed, "12.34").replacing("EUR", with: "USD"), "k", "mismatch"),
            ("refunds", charge(sealed, "12.34"), "k", "mismatch"),
            ("payments", charge(sealed, "12.345"), "k", "invalid_amount"),
            ("payments", charge(sealed, "-12.34"), "k", "invalid_amount"),
            ("payments", charge(sealed, "99999999999999999999"), "k", "invalid_amount"),
            ("payments", charge(sealed, "12.34").replacing("EUR", with: "€"), "k", "invalid_amount"),
            ("payments", charge("AAAA", "12.34"), "k", "card_data"),
            ("payments", charge(String(sealed.dropLast(8)) + "AAAAAAAA", "12.34"), "k", "card_data"),
            ("payments", charge(sealed, "12.34"), nil, "no_idempotency_key"),
            ("payments", "{", "k", "invalid_request"), ("nothing", "{}", "k", "not_found"),
        ] as [(String, String, String?, String)] {
            let answer = try await sandbox.post(resource, body, key: key)
            #expect((400..<500).contains(answer.status), "\(answer)")
            #expect((answer.body["error"] as? [String: Any])?["code"] as? String == code, "\(answer)")
        }
        #expect(try await sandbox.payments().isEmpty)
        let refund = try await seal(sandbox, units: "000000001234", type: "20")
        #expect(try await sandbox.post("refunds", charge(refund, "12.34"), key: "k").status == 200)
        #expect(try await sandbox.payments().first?["kind"] as? String == "refund")
    }

    // MARK: Batches

    /// A terminal's store, which makes and signs batches.
    private final class Terminal: Sendable {
        let folder = FileManager.default.temporaryDirectory.appending(path: "sandbox-\(UUID().uuidString)")
        let store: RecordStore

        init() async throws {
            store = RecordStore(folder: folder) { Date() }
            try await store.add(
                Preparation(
                    issuer: "psp-sandbox", merchant: "merchant-1", terminalProfile: nil, cardDataKey: nil,
                    tokenExpiration: .distantFuture, time: Date(), uptime: 1, boot: "boot-1", reader: "reader-1"))
        }

        deinit { try? FileManager.default.removeItem(at: folder) }

        /// - Returns: the batch as JSON.
        func batch(_ payments: [(id: String, cardData: String)]) async throws -> (id: String, json: String) {
            for payment in payments {
                try await store.add(
                    RecordStore.Payment(
                        id: payment.id, paymentCardData: payment.cardData, generalCardData: "general", amount: 1,
                        currency: "EUR", issuer: "psp-sandbox", merchant: "merchant-1"))
            }
            let batch = try await store.makeBatch(size: payments.count)
            return (batch.id, String(decoding: try JSONEncoder().encode(batch), as: UTF8.self))
        }
    }

    private func codes(_ answer: RunningSandbox.Answer) -> [String: String] {
        let payments = answer.body["payments"] as? [[String: Any]] ?? []
        return Dictionary(
            payments.map { ($0["idempotencyKey"] as? String ?? "", $0["responseCode"] as? String ?? "") }
        ) { first, _ in first }
    }

    private func code(_ answer: RunningSandbox.Answer) -> String? {
        (answer.body["error"] as? [String: Any])?["code"] as? String
    }

    @Test("a batch and its payments are accepted once; its deletion token is valid only for it and its reader")
    func batches() async throws {
        let sandbox = try await RunningSandbox()
        let sealed = [try await seal(sandbox, units: "000000001234"), try await seal(sandbox, units: "000000000051")]
        // Sealed for nobody's key; and none at all.
        let foreign = try await seal(try await RunningSandbox(), units: "000000001234")
        let terminal = try await Terminal()
        let cards = [("r0", sealed[0]), ("r1", sealed[1]), ("r2", "AAAA"), ("r3", foreign)]
        let (id, json) = try await terminal.batch(cards)
        let first = try await sandbox.ask("batches", json, key: id, reader: "reader-1")
        #expect(first.status == 200 && codes(first) == ["r0": "00", "r1": "51", "r2": "30"], "\(first)")
        let token = try await claims(first.body["deletionToken"], DeletionClaims.self)
        #expect(token.bid == id && token.cnt == 4 && token.exp > token.iat && token.aud == "reader-1")
        #expect(token.ids == ["r0", "r1", "r2"], "what cannot be opened is not decided")
        // As the help says, by coreutils.
        var form = "swift-contactless batch 1\n\(id)\n4\n"
        for (id, cardData) in cards {
            let payment = "swift-contactless payment 1\n\(id)\n\(cardData)\ngeneral\n"
            form += "\(id) \(try await Program.run(["sha256sum"], input: payment).output.prefix(64))\n"
        }
        let sum = try await Program.run(["sha256sum"], input: form).output.prefix(64)
        let hash = Data(try [UInt8](hexDigits: String(sum))).base64EncodedString()
        #expect(token.hash == hash.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: ""))

        // Again: the same decisions, and a token that has not been used.
        let again = try await sandbox.ask("batches", json, key: id, reader: "reader-2")
        let other = try await claims(again.body["deletionToken"], DeletionClaims.self)
        #expect(codes(again) == codes(first) && other.jti != token.jti && other.aud == "reader-2")
        #expect(try await sandbox.payments().count == 3)
        // Nothing that was charged is refused: its key is another batch's, or its headers are missing.
        let next = try await Terminal()
        let mixed = try await next.batch([("r0", sealed[0]), ("r1", sealed[0]), ("r9", sealed[1])])
        #expect(try await sandbox.ask("batches", mixed.json, key: id, reader: "reader-1").status == 409)
        #expect(try await sandbox.ask("batches", mixed.json, key: mixed.id).status == 409)
        // An id with other card data, and card data with another id, are none of the payments that were made.
        let partly = try await sandbox.ask("batches", mixed.json, key: mixed.id, reader: "reader-1")
        #expect(codes(partly) == ["r0": "00"])
        #expect(try await sandbox.payments().count == 3)
    }

    @Test("a batch without its terminal's signature is refused without effect")
    func signatures() async throws {
        let sandbox = try await RunningSandbox()
        let sealed = try await seal(sandbox, units: "000000001234")
        let (id, json) = try await Terminal().batch([("r0", sealed)])
        let other = try await Terminal().batch([("r0", sealed)])
        func object(_ text: String) throws -> [String: Any] {
            try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        }
        func with(_ change: (inout [String: Any]) throws -> Void) throws -> String {
            var batch = try object(json)
            try change(&batch)
            return String(decoding: try JSONSerialization.data(withJSONObject: batch), as: UTF8.self)
        }
        func payment(_ key: String, _ value: String) throws -> String {
            try with { batch in
                var payments = batch["payments"] as? [[String: Any]] ?? []
                payments[0][key] = value
                batch["payments"] = payments
            }
        }
        let foreign = try object(other.json)
        let foreignPayment = try #require((foreign["payments"] as? [[String: Any]])?.first)
        let wrong: [(String, String)] = [
            (try payment("paymentCardData", String(sealed.dropLast()) + (sealed.last == "A" ? "Q" : "A")), "signature"),
            (try payment("generalCardData", ""), "signature"),
            (try payment("signature", foreignPayment["signature"] as? String ?? ""), "signature"),
            (try payment("signature", "AAAA"), "signature"), (try payment("id", "a\nb"), "invalid_batch"),
            (try with { $0["signature"] = foreign["signature"] }, "signature"),
            (try with { $0["id"] = "another" }, "signature"),
            (try with { $0["leafCertificate"] = foreign["leafCertificate"] }, "signature"),
            (try with { $0["intermediateCertificate"] = foreign["intermediateCertificate"] }, "signature"),
            (try with { $0["intermediateCertificate"] = [String]() }, "signature"),
            (try with { $0["leafCertificate"] = "AAAA" }, "signature"),
            (try with { $0["count"] = 2 }, "invalid_batch"),
            (try with { $0["payments"] = [Any]() }, "invalid_batch"),
            (try with { $0["payments"] = nil }, "invalid_request"),
        ]
        for (text, expected) in wrong {
            let answer = try await sandbox.ask("batches", text, key: id, reader: "reader-1")
            #expect(
                (400..<500).contains(answer.status) && answer.status != 409 && code(answer) == expected, "\(answer)")
        }
        #expect(code(try await sandbox.ask("batches", json, key: id)) == "header_missing")
        #expect(code(try await sandbox.ask("batches", json, reader: "reader-1")) == "header_missing")
        #expect(try await sandbox.payments().isEmpty)
        #expect(try await sandbox.ask("batches", json, key: id, reader: "reader-1").status == 200)
    }

    @Test("an enrolled reader is authenticated only by its own key; with --enrolled-only, no other reader is")
    func enrolment() async throws {
        let sandbox = try await RunningSandbox("--enrolled-only")
        let sealed = [try await seal(sandbox, units: "000000001234"), try await seal(sandbox, units: "000000000100")]
        let terminal = try await Terminal()
        let (id, json) = try await terminal.batch([("r0", sealed[0])])
        #expect(code(try await sandbox.ask("batches", json, key: id, reader: "reader-1")) == "not_enrolled")
        // The batch has the certificates; what else is in it is not looked at.
        #expect(code(try await sandbox.ask("terminals", json, key: nil)) == "header_missing")
        #expect(try await sandbox.ask("terminals", json, reader: "reader-1").status == 200)
        #expect(try await sandbox.ask("batches", json, key: id, reader: "reader-1").status == 200)
        // Another terminal under this one's name: neither its batches nor its certificates.
        let other = try await Terminal().batch([("r1", sealed[1])])
        #expect(code(try await sandbox.ask("batches", other.json, key: other.id, reader: "reader-1")) == "signature")
        #expect(try await sandbox.ask("terminals", other.json, reader: "reader-1").status == 409)
        #expect(try await sandbox.ask("terminals", json, reader: "reader-1").status == 200)
        #expect(try await sandbox.ask("terminals", #"{"leafCertificate":"AAAA"}"#, reader: "reader-9").status == 422)
    }

    @Test("a key is certified for openssl's request, and openssl verifies the certificate")
    func authority() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "authority-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        func path(_ name: String) -> String { folder.appending(path: name).path }
        func request(_ algorithm: [String], _ subject: String) async throws -> Data {
            let made = try await Program.run(
                ["openssl", "req", "-new", "-nodes", "-subj", subject, "-outform", "DER", "-out", path("request")]
                    + ["-keyout", path("key"), "-newkey"] + algorithm)
            #expect(made.status == 0, "\(made)")
            return try Data(contentsOf: URL(filePath: path("request")))
        }
        let sandbox = try await RunningSandbox()
        func enrol(_ request: Data, _ reader: String) async throws -> RunningSandbox.Answer {
            try await sandbox.ask(
                "terminals", #"{"certificateRequest":"\#(request.base64EncodedString())"}"#, reader: reader)
        }
        let curve = ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        var good = try await request(curve, "/CN=Terminal 7")
        let answer = try await enrol(good, "reader-7")
        let authority = try #require((answer.body["intermediateCertificate"] as? [String])?.first)
        for (name, text) in [("leaf", answer.body["leafCertificate"] as? String ?? ""), ("authority", authority)] {
            try #require(Data(base64Encoded: text)).write(to: URL(filePath: path(name + ".der")))
            let pem = try await Program.run(
                ["openssl", "x509", "-inform", "DER", "-in", path(name + ".der"), "-out", path(name + ".pem")])
            #expect(pem.status == 0, "\(pem)")
        }
        let verified = try await Program.run(
            ["openssl", "verify", "-x509_strict", "-CAfile", path("authority.pem"), path("leaf.pem")])
        #expect(verified.status == 0, "\(verified)")
        let shown = try await Program.run(["openssl", "x509", "-in", path("leaf.pem"), "-noout", "-subject", "-pubkey"])
        let key = try await Program.run(["openssl", "pkey", "-in", path("key"), "-pubout"])
        #expect(shown.output.contains("Terminal 7") && shown.output.contains(key.output), "\(shown)")
        // A batch with another key's certificate is none of this reader's.
        let sealed = try await seal(sandbox, units: "000000001234")
        let (id, json) = try await Terminal().batch([("r0", sealed)])
        #expect(code(try await sandbox.ask("batches", json, key: id, reader: "reader-7")) == "signature")
        // Of another curve; changed after it was signed.
        let foreign = try await request(["ec", "-pkeyopt", "ec_paramgen_curve:P-384"], "/CN=Terminal 8")
        #expect(code(try await enrol(foreign, "reader-8")) == "certificate_request")
        good[good.count - 1] ^= 1
        #expect(code(try await enrol(good, "reader-8")) == "certificate_request")
    }

    @Test("…13 gets its batch refused; so does card data that the sandbox cannot open")
    func refusedBatches() async throws {
        let sandbox = try await RunningSandbox()
        let good = try await seal(sandbox, units: "000000001234")
        let bad = try await seal(sandbox, units: "000000000513")
        let first = try await Terminal().batch([("r0", good), ("r1", bad)])
        let answer = try await sandbox.ask("batches", first.json, key: first.id, reader: "reader-1")
        #expect(answer.status == 422 && code(answer) == "amount_refused")
        #expect(code(try await sandbox.post("payments", charge(bad, "5.13"), key: "k")) == "amount_refused")
        #expect(try await sandbox.payments().isEmpty)
        let foreign = try await seal(try await RunningSandbox(), units: "000000001234")
        let second = try await Terminal().batch([("r2", foreign)])
        #expect(code(try await sandbox.ask("batches", second.json, key: second.id, reader: "reader-1")) == "card_data")
        // Once something of it is charged it is not refused any more.
        let third = try await Terminal().batch([("r0", good)])
        #expect(try await sandbox.ask("batches", third.json, key: third.id, reader: "reader-1").status == 200)
        let again = try await sandbox.ask("batches", first.json, key: first.id, reader: "reader-1")
        #expect(again.status == 200 && codes(again) == ["r0": "00"])
    }

    // MARK: Books

    @Test(
        "a sandbox that crashes in the middle of a batch keeps its charges, and makes the rest when it is back")
    func crash() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "books-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let books = folder.appending(path: "books")
        let arguments = ["--books", books.path, "--card-data-key", folder.appending(path: "key").path]
        let first = try await RunningSandbox(arguments)
        let sealed = [
            try await seal(first, units: "000000000100"), try await seal(first, units: "000000000197"),
            try await seal(first, units: "000000000300"),
        ]
        let terminal = try await Terminal()
        let (id, json) = try await terminal.batch([("r0", sealed[0]), ("r1", sealed[1]), ("r2", sealed[2])])
        #expect(try await first.ask("batches", json, key: id, reader: "reader-1").exit == 52)
        try await first.end()
        // A line that was cut off was never answered for.
        let handle = try FileHandle(forWritingTo: books)
        try handle.seekToEnd()
        try handle.write(contentsOf: Data(#"{"payment":{"id":"cut"#.utf8))
        try handle.close()

        let second = try await RunningSandbox(arguments)
        #expect(try await second.payments().map { $0["idempotencyKey"] as? String } == ["r0", "r1"])
        let busy = try await Program.run([Program.built("psp-sandbox"), "--port", "0"] + arguments)
        #expect(busy.status == 2 && busy.error.contains(books.path), "\(busy)")
        let answer = try await second.ask("batches", json, key: id, reader: "reader-1")
        #expect(codes(answer) == ["r0": "00", "r1": "00", "r2": "00"])
        let before = try await second.payments()
        try await second.kill()
        let third = try await RunningSandbox(arguments)
        let same = try await third.ask("batches", json, key: id, reader: "reader-1")
        #expect(codes(same) == codes(answer))
        #expect(try await third.payments().map { $0["id"] as? String } == before.map { $0["id"] as? String })
        // As the owner's alone.
        let mode = try FileManager.default.attributesOfItem(atPath: books.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        #expect(!String(decoding: try Data(contentsOf: books), as: UTF8.self).contains("4761739001010010"))
    }

    @Test("a line that did not fit into the books is absent, and does not damage the next")
    func shortWrite() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "books-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let books = folder.appending(path: "books")
        let arguments = ["--books", books.path, "--card-data-key", folder.appending(path: "key").path]
        let sandbox = try await RunningSandbox(arguments)
        func pay(_ key: String) async throws -> Int {
            let sealed = try await seal(sandbox, units: "000000001234")
            return try await sandbox.post("payments", charge(sealed, "12.34"), key: key).status
        }
        func size() throws -> Int {
            try FileManager.default.attributesOfItem(atPath: books.path)[.size] as? Int ?? 0
        }
        #expect(try await pay("one") == 200)
        let length = try size()
        func limit(_ bytes: String) async throws {
            let set = try await Program.run(["prlimit", "--pid", "\(sandbox.pid)", "--fsize=\(bytes):unlimited"])
            #expect(set.status == 0, "\(set)")
        }
        try await limit("\(length + 20)")
        #expect(try await pay("two") == 500)
        #expect(try size() == length)
        try await limit("unlimited")
        #expect(try await pay("three") == 200)
        try await sandbox.kill()
        let again = try await RunningSandbox(arguments)
        #expect(try await again.payments().map { $0["idempotencyKey"] as? String } == ["one", "three"])
    }

    @Test("a key queries its decision; a reversal takes it back, even before it arrives")
    func reversals() async throws {
        let sandbox = try await RunningSandbox()
        func decision(_ key: String) async throws -> String? {
            let answer = try await sandbox.ask("decision", nil, key: key)
            #expect(answer.status == 200)
            return (answer.body["payment"] as? [String: Any])?["responseCode"] as? String
        }
        #expect(try await decision("k") == nil)
        let body = charge(try await seal(sandbox, units: "000000001234"), "12.34")
        #expect(try await sandbox.post("payments", body, key: "k").status == 200)
        #expect(try await decision("k") == "00")
        for _ in 0..<2 { #expect(try await sandbox.post("reversals", "", key: "k").status == 200) }
        #expect(try await decision("k") == "17")
        // On its way when it was taken back.
        #expect(try await sandbox.post("reversals", "", key: "late").status == 200)
        let late = charge(try await seal(sandbox, units: "000000000100"), "1")
        let answer = try await sandbox.post("payments", late, key: "late")
        #expect(answer.status == 200 && answer.body["status"] as? String == "declined")
        #expect(try await sandbox.payments().allSatisfy { $0["status"] as? String == "declined" })
    }

    @Test("the next calls are refused, declined, late or lost on request, and no others")
    func faults() async throws {
        let sandbox = try await RunningSandbox("--late", "3600")
        let body = charge(try await seal(sandbox, units: "000000001234"), "12.34")
        func fault(_ text: String) async throws { #expect(try await sandbox.post("faults", text).status == 200) }
        try await fault(#"{"kind":"refused","calls":3,"status":429}"#)
        #expect(try await sandbox.post("payments", body, key: "1").status == 429)
        #expect(try await sandbox.ask("decision", nil, key: "1").status == 429)
        #expect(try await sandbox.post("reader-tokens", "{}").status == 429)
        #expect(try await sandbox.payments().isEmpty)
        try await fault(#"{"kind":"refused","calls":9}"#)
        #expect(try await sandbox.post("reversals", "", key: "1").status == 403)
        // curl's exit status: 52, nothing came; 28, the time was over.
        try await fault(#"{"kind":"lost","calls":1}"#)
        #expect(try await sandbox.post("payments", body, key: "1").exit == 52)
        try await fault(#"{"kind":"late","calls":1}"#)
        #expect(try await sandbox.post("payments", body, key: "1", timeout: 1).exit == 28)
        #expect(try await sandbox.post("payments", body, key: "1").body["status"] as? String == "approved")
        try await fault(#"{"kind":"declined","calls":1}"#)
        let other = charge(try await seal(sandbox, units: "000000001234"), "12.34")
        let declined = try await sandbox.post("payments", other, key: "2")
        #expect(declined.body["responseCode"] as? String == "05")
        #expect(try await sandbox.payments().count == 2)
        for bad in [#"{"kind":"lost","calls":-1}"#, #"{"kind":"refused","calls":1,"status":200}"#] {
            #expect(try await sandbox.post("faults", bad).status == 422)
        }
        #expect(try await sandbox.post("faults", #"{"kind":"odd","calls":1}"#).status == 400)
    }

    @Test("a payment that was reversed before it arrived is answered with its own amount and currency")
    func reversedBefore() async throws {
        let sandbox = try await RunningSandbox()
        let body = charge(try await seal(sandbox, units: "000000001234"), "12.34")
        #expect(try await sandbox.post("reversals", "", key: "1").status == 200)
        let answer = try await sandbox.post("payments", body, key: "1")
        #expect(answer.body["status"] as? String == "declined" && answer.body["amount"] as? String == "12.34")
        #expect(answer.body["currency"] as? String == "EUR" && answer.body["idempotencyKey"] as? String == "1")
        let known = try await sandbox.ask("decision", nil, key: "1").body["payment"] as? [String: Any]
        #expect(known?["amount"] as? String == "12.34")
        let other = charge(try await seal(sandbox, units: "000000009900"), "99.00")
        #expect(try await sandbox.post("payments", other, key: "1").status == 422)
    }

    @Test("a reversed payment that never arrived is declined, with the reversal's amount")
    func reversedNever() async throws {
        let sandbox = try await RunningSandbox()
        let reversal = #"{"amount":"12.34","currency":"EUR"}"#
        for _ in 0..<2 {
            #expect(try await sandbox.post("reversals", reversal, key: "1").status == 200)
            let known = try await sandbox.ask("decision", nil, key: "1").body["payment"] as? [String: Any]
            #expect(known?["status"] as? String == "declined" && known?["idempotencyKey"] as? String == "1")
            #expect(known?["amount"] as? String == "12.34" && known?["currency"] as? String == "EUR")
        }
        let body = charge(try await seal(sandbox, units: "000000001234"), "12.34")
        #expect(try await sandbox.post("payments", body, key: "1").body["status"] as? String == "declined")
        for bad in [#"{"amount":"12.345","currency":"EUR"}"#, #"{"amount":"12.34"}"#] {
            let answer = try await sandbox.post("reversals", bad, key: "2")
            #expect(answer.status == 422 && code(answer) == "invalid_amount")
        }
        #expect(try await sandbox.payments().count == 1)
    }

    @Test("a delayed call is executed even if its caller has left, unless its key was reversed meanwhile")
    func delayed() async throws {
        let sandbox = try await RunningSandbox("--late", "3600")
        #expect(try await sandbox.post("faults", #"{"kind":"delayed","calls":2}"#).status == 200)
        for (count, key) in [(1, "kept"), (2, "reversed")] {
            let caller = try sandbox.caller(
                "payments", charge(try await seal(sandbox, units: "000000001234"), "12.34"), key: key)
            try await wait(for: "call") { try await sandbox.ask("faults", nil).body["delayed"] as? Int == count }
            caller.signal(SIGKILL)
            #expect(try await caller.outcome().status == 128 + SIGKILL)
        }
        #expect(try await sandbox.ask("decision", nil, key: "kept").body["payment"] is NSNull)
        #expect(try await sandbox.post("reversals", "", key: "reversed").status == 200)
        #expect(try await sandbox.ask("faults", nil).body["delayed"] as? Int == 2)
        #expect(try await sandbox.post("delayed", "").body["performed"] as? Int == 2)
        #expect(try await sandbox.ask("faults", nil).body["delayed"] as? Int == 0)
        for (key, status) in [("kept", "approved"), ("reversed", "declined")] {
            let known = try await sandbox.ask("decision", nil, key: key).body["payment"] as? [String: Any]
            #expect(known?["status"] as? String == status && known?["amount"] as? String == "12.34", "it came")
        }
    }

    @Test("a kernel's data is returned with the decision and its time, even from the books")
    func receiptFacts() async throws {
        let books = FileManager.default.temporaryDirectory.appending(path: "books-\(UUID().uuidString)").path
        defer { try? FileManager.default.removeItem(atPath: books) }
        // 84: A0000000031010; 9F27; 9F26; 95; DF8129 without cardholder verification.
        let facts = "8407A00000000310109F2701809F2608112233445566778895050000000000DF812908F0F0F00000F0FF00"
        var sandbox = try await RunningSandbox("--books", books)
        let sealed = try await seal(sandbox, units: "000000001234")
        let body = charge(sealed, "12.34").dropLast() + #","receiptFacts":"\#(facts)"}"#
        let first = try await sandbox.post("payments", String(body), key: "k").body
        let told = try #require(first["receiptFacts"] as? String)
        #expect(told.uppercased() == facts)
        let time = try #require((first["time"] as? String).flatMap { ISO8601DateFormatter().date(from: $0) })
        #expect(abs(time.timeIntervalSinceNow) < 600)
        try await sandbox.kill()
        sandbox = try await RunningSandbox("--books", books)
        let known = try await sandbox.ask("decision", nil, key: "k").body["payment"] as? [String: Any]
        #expect(known?["receiptFacts"] as? String == told && known?["time"] as? String == first["time"] as? String)
        let odd = charge(sealed, "12.34").dropLast() + #","receiptFacts":"84"}"#
        #expect(try await sandbox.post("payments", String(odd), key: "l").status == 400)
    }

    @Test("batches are refused, declined, late or lost like payments, and no payment in them is made twice")
    func batchFaults() async throws {
        let sandbox = try await RunningSandbox("--late", "3600")
        func fault(_ text: String) async throws { #expect(try await sandbox.post("faults", text).status == 200) }
        func batch(_ names: String...) async throws -> (id: String, json: String) {
            var cards: [(String, String)] = []
            for name in names { cards.append((name, try await seal(sandbox, units: "000000001234"))) }
            return try await Terminal().batch(cards)
        }
        func send(_ batch: (id: String, json: String), timeout: Int = 60) async throws -> RunningSandbox.Answer {
            try await sandbox.ask("batches", batch.json, key: batch.id, reader: "reader-1", timeout: timeout)
        }
        let first = try await batch("a", "b")
        try await fault(#"{"kind":"refused","calls":1,"status":429}"#)
        #expect(try await send(first).status == 429)
        #expect(try await sandbox.payments().isEmpty)
        // curl's exit status: 52, nothing came; 28, the time was over.
        try await fault(#"{"kind":"lost","calls":1}"#)
        #expect(try await send(first).exit == 52)
        #expect(try await sandbox.payments().count == 2, "it was taken")
        try await fault(#"{"kind":"late","calls":1}"#)
        #expect(try await send(first, timeout: 1).exit == 28)
        try await fault(#"{"kind":"declined","calls":1}"#)
        #expect(try await codes(send(first)) == ["a": "00", "b": "00"], "what is decided stays")
        let declined = try await batch("c")
        try await fault(#"{"kind":"declined","calls":1}"#)
        #expect(try await codes(send(declined)) == ["c": "05"])
        let delayed = try await batch("d")
        try await fault(#"{"kind":"delayed","calls":1}"#)
        #expect(try await send(delayed, timeout: 1).exit == 28)
        #expect(try await sandbox.payments().count == 3, "not yet")
        #expect(try await codes(send(delayed)) == ["d": "00"])
        #expect(try await sandbox.payments().count == 4)
    }

    @Test("a reversed payment is declined in its batch, and the others are not")
    func reversedInBatch() async throws {
        let sandbox = try await RunningSandbox()
        let sealed = try await [
            seal(sandbox, units: "000000001234"), seal(sandbox, units: "000000001234"),
            seal(sandbox, units: "000000001234"),
        ]
        let (id, json) = try await Terminal().batch([("a", sealed[0]), ("b", sealed[1]), ("c", sealed[2])])
        #expect(try await sandbox.post("reversals", "", key: "a").status == 200)
        #expect(
            try await sandbox.post("reversals", #"{"amount":"12.34","currency":"EUR"}"#, key: "b").status == 200)
        for _ in 0..<2 {
            let answer = try await sandbox.ask("batches", json, key: id, reader: "reader-1")
            #expect(codes(answer) == ["a": "17", "b": "17", "c": "00"])
            let payments = answer.body["payments"] as? [[String: Any]] ?? []
            #expect(payments.allSatisfy { $0["amount"] as? String == "12.34" && $0["card"] is String })
            #expect(try await claims(answer.body["deletionToken"], DeletionClaims.self).ids == nil, "all are decided")
        }
        #expect(try await sandbox.post("reversals", "", key: "c").status == 200)
        let answer = try await sandbox.ask("batches", json, key: id, reader: "reader-1")
        #expect(codes(answer) == ["a": "17", "b": "17", "c": "17"])
    }

    @Test("one read under two keys is reported, and one amount may be written in two ways")
    func sameCardData() async throws {
        let sandbox = try await RunningSandbox()
        let sealed = try await seal(sandbox, units: "000000001230")
        #expect(try await sandbox.post("payments", charge(sealed, "12.30"), key: "k").status == 200)
        #expect(try await sandbox.post("payments", charge(sealed, "12.3"), key: "k").status == 200)
        let answer = try await sandbox.post("payments", charge(sealed, "12.30"), key: "l")
        #expect(answer.status == 409 && code(answer) == "card_data_reused")
        #expect(try await sandbox.payments().count == 1)
    }

    @Test(
        "what is too long is refused, and the next request on the connection is understood", arguments: [false, true])
    func limits(_ isChunked: Bool) async throws {
        let sandbox = try await RunningSandbox()
        let long = String(repeating: "a", count: 5 << 20)
        let options = isChunked ? ["-H", "Transfer-Encoding: chunked"] : []
        let answer = try await Program.run(
            ["curl", "-s", "-m", "100", "-H", "Idempotency-Key: k", "--data-binary", "@-"] + options
                + [
                    "\(sandbox.address)/payments", "--next", "-s", "-m", "100", "\(sandbox.address)/decision", "-H",
                    "Idempotency-Key: k",
                ], input: long)
        #expect(
            answer.output.contains(#""code":"too_long""#) && answer.output.hasSuffix(#"{"payment":null}"#), "\(answer)")
        let small = charge(try await seal(sandbox, units: "000000001234"), "12.34")
        #expect(try await sandbox.ask("payments", small, key: "k", options: options).status == 200)
    }

    @Test("its memory contains no card data after a payment and a batch")
    func memory() async throws {
        let sandbox = try await RunningSandbox()
        // A number of a range that no issuer has: TEST.
        let digits = "4999998213746504"
        let marked = Self.track.replacing("4761739001010010", with: digits)
        let sealed = try await [
            seal(sandbox, units: "000000001234", track: marked), seal(sandbox, units: "000000001234", track: marked),
        ]
        let (id, json) = try await Terminal().batch([("r0", sealed[1])])
        #expect(try await sandbox.post("payments", charge(sealed[0], "12.34"), key: "k").status == 200)
        #expect(try await sandbox.ask("batches", json, key: id, reader: "reader-1").status == 200)
        #expect(try await sandbox.payments().allSatisfy { $0["card"] as? String == "499999******6504" })
        let needles = [
            Array(digits.utf8), try [UInt8](hexDigits: digits),
            try [UInt8](hexDigits: String(digits.dropFirst() + "D")),
        ]
        let count = try sandbox.memory { bytes, line in
            for needle in needles { #expect(bytes.range(of: Data(needle)) == nil, "\(line)") }
        }
        #expect(count > 10)
    }

    @Test("a key in a file stays the same, and only the owner can read the file")
    func keptKey() async throws {
        let path = FileManager.default.temporaryDirectory.appending(path: "sandbox-\(UUID().uuidString).key").path
        defer { try? FileManager.default.removeItem(atPath: path) }
        var keys: [[String: String]] = []
        for _ in 0..<2 {
            let sandbox = try await RunningSandbox("--card-data-key", path)
            let token = try await sandbox.post("reader-tokens", "{}").body["token"]
            keys.append(try await claims(token, TokenClaims.self).cardDataKey)
        }
        #expect(keys[0] == keys[1])
        let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    @Test("it listens only on this machine, and reports a port in use")
    func loopback() async throws {
        let sandbox = try await RunningSandbox()
        #expect(sandbox.address.hasPrefix("http://127.0.0.1:"))
        let port = try #require(sandbox.address.split(separator: ":").last)
        let second = try await Program.run([Program.built("psp-sandbox"), "--port", String(port)])
        #expect(second.status == 2 && second.error.contains("Take another one with --port"), "\(second)")
    }
}

extension [UInt8] {
    fileprivate init(hexDigits text: String) throws {
        self = try stride(from: 0, to: text.count, by: 2).map { offset in
            let start = text.index(text.startIndex, offsetBy: offset)
            return try #require(UInt8(text[start..<text.index(start, offsetBy: 2)], radix: 16))
        }
    }
}
