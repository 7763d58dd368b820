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

    init(_ arguments: String...) async throws {
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
    func post(_ resource: String, _ body: String, key: String? = nil, timeout: Int = 20) async throws -> Answer {
        let header = key.map { ["-H", "Idempotency-Key: \($0)"] } ?? []
        let outcome = try await Program.run(
            ["curl", "-s", "-m", "\(timeout)", "-w", "\n%{http_code}", "--data-binary", "@-"] + header
                + ["\(address)/\(resource)"], input: body)
        let parts = outcome.output.split(separator: "\n", omittingEmptySubsequences: false)
        let object = try? JSONSerialization.jsonObject(with: Data((parts.first ?? "").utf8))
        return Answer(
            status: Int(parts.last ?? "") ?? 0, body: object as? [String: Any] ?? [:], exit: outcome.status)
    }

    func payments() async throws -> [[String: Any]] {
        let outcome = try await Program.run(["curl", "-s", "-m", "20", "\(address)/payments"])
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
        func verify(using algorithm: some JWTAlgorithm) throws {}
    }

    /// Of a token that verifies with the key that terminals trust without a configuration.
    private func claims<Claims: JWTPayload>(_ token: Any?, _ type: Claims.Type) async throws -> Claims {
        let keys = try await JWTKeyCollection().add(jwksJSON: TestPaymentService.keySet)
        return try await keys.verify(try #require(token as? String), as: type)
    }

    /// Card data as a terminal seals them.
    private func seal(_ sandbox: RunningSandbox, units: String, type: String = "00") async throws -> String {
        let token = try await sandbox.post("reader-tokens", "{}").body["token"]
        let key = try await claims(token, TokenClaims.self).cardDataKey
        let recipient = try JWERecipient(jwk: String(decoding: JSONEncoder().encode(key), as: UTF8.self))
        // EUR; TLV: amount, currency, type, track.
        let data = try [UInt8](hexDigits: "9F0206\(units)5F2A0209789C01\(type)\(Self.track)")
        return try recipient.seal(ClearCardData(data), header: JWEHeader(keyID: key["kid"])).description
    }

    private func charge(_ cardData: String, _ amount: String) -> String {
        #"{"cardData":"\#(cardData)","amount":"\#(amount)","currency":"EUR"}"#
    }

    @Test("reader tokens are for the merchant asked for, and for as long as is said")
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

    @Test("a key that is known gets the answer of the first time; with another request it is refused")
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
        for (units, amount, exit) in [("000000000196", "1.96", Int32(52)), ("000000000198", "1.98", 28)] {
            let body = charge(try await seal(sandbox, units: units), amount)
            #expect(try await sandbox.post("payments", body, key: amount, timeout: 2).exit == exit)
            let again = try await sandbox.post("payments", body, key: amount)
            #expect(again.status == 200 && again.body["status"] as? String == "approved")
        }
        #expect(try await sandbox.payments().count == 2)
    }

    @Test("what does not fit what the card agreed to, or is not there, is refused and not booked")
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

    @Test("a batch is taken once, each of its payments once, and its deletion token is for it alone")
    func batches() async throws {
        let sandbox = try await RunningSandbox()
        let sealed = [
            try await seal(sandbox, units: "000000001234"), try await seal(sandbox, units: "000000000051"), "AAAA",
        ]
        func batch(_ id: String, _ numbers: [Int]) -> String {
            let payments = numbers.map { #"{"id":"r\#($0)","paymentCardData":"\#(sealed[$0])","signature":""}"# }
            return #"{"id":"\#(id)","count":\#(numbers.count),"payments":[\#(payments.joined(separator: ","))]}"#
        }
        let first = try await sandbox.post("batches", batch("b1", [0, 1, 2]), key: "b1")
        #expect(first.status == 200)
        let decisions = try #require(first.body["payments"] as? [[String: Any]])
        #expect(decisions.map { $0["responseCode"] as? String } == ["00", "51", "30"])
        let token = try await claims(first.body["deletionToken"], DeletionClaims.self)
        #expect(token.bid == "b1" && token.cnt == 3 && token.exp > token.iat && !token.jti.isEmpty)
        // As the help says, by coreutils.
        var form = "swift-contactless batch 1\nb1\n3\n"
        for number in 0..<3 {
            let payment = "swift-contactless payment 1\nr\(number)\n\(sealed[number])\n\n"
            form += "r\(number) \(try await Program.run(["sha256sum"], input: payment).output.prefix(64))\n"
        }
        let sum = try await Program.run(["sha256sum"], input: form).output.prefix(64)
        let hash = Data(try [UInt8](hexDigits: String(sum))).base64EncodedString()
        #expect(token.hash == hash.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: ""))
        #expect(!token.aud.isEmpty)

        let again = try await sandbox.post("batches", batch("b1", [0, 1, 2]), key: "b1")
        #expect(again.body["deletionToken"] as? String == first.body["deletionToken"] as? String)
        #expect(try await sandbox.post("batches", batch("b1", [0]), key: "b1").status == 422)
        // Its records in another batch: decided already.
        let other = try await sandbox.post("batches", batch("b2", [0, 1]), key: "b2")
        #expect(
            (other.body["payments"] as? [[String: Any]])?.map { $0["id"] as? String }
                == decisions.prefix(2).map { $0["id"] as? String })
        #expect(try await sandbox.payments().count == 3)
        #expect(try await sandbox.post("batches", batch("b3", [0, 0]), key: "b3").status == 422)
    }

    @Test("a key in a file stays the same, and the file is the owner's alone")
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

    @Test("it listens to this machine alone, and says so where the port is taken")
    func loopback() async throws {
        let sandbox = try await RunningSandbox()
        #expect(sandbox.address.hasPrefix("http://127.0.0.1:"))
        let port = try #require(sandbox.address.split(separator: ":").last)
        let second = try await Program.run([Program.built("psp-sandbox"), "--port", String(port)])
        #expect(second.status == 1 && second.error.contains("Take another one with --port"), "\(second)")
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
