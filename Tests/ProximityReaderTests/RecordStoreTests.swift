import Crypto
import EMVContactless
import Foundation
import JWTKit
import ProximityReader
import SmartCard
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5))) struct RecordStoreTests {
    // MARK: Batches

    @Test("payments come in the order in which they were stored, and the batch stays as it is whoever opens the store")
    func batches() async throws {
        let bench = try StoreBench()
        var store: RecordStore? = try await bench.preparedStore()
        for id in ["c", "a", "b"] { try await store?.add(StoreBench.payment(id)) }
        await expect("storeAndForwardBatchSizeInvalid") { _ = try await store?.makeBatch(size: -1) }
        await expect("storeAndForwardBatchSizeInvalid") { _ = try await store?.makeBatch(size: 4) }
        let batch = try #require(try await store?.makeBatch(size: 2))
        #expect(batch.payments.map(\.id) == ["c", "a"] && batch.count == 2)
        #expect(batch.payments.map(\.paymentCardData) == ["sealed-c", "sealed-a"])
        await expect("storeAndForwardBatchAlreadyExists") { _ = try await store?.makeBatch(size: 0) }
        try await store?.add(StoreBench.payment("d"))
        await store?.close()
        store = nil
        let reopened = bench.store()
        let again = try #require(try await reopened.batch())
        #expect(again.id == batch.id && again.payments.map(\.id) == ["c", "a"])
        #expect(try encoded(again) == encoded(batch))
        #expect(try await reopened.count() == 4)
        #expect(try await reopened.payments().map(\.state) == [.batched, .batched, .stored, .stored])
        try await reopened.reset()
        #expect(try await reopened.payments().map(\.state) == [.stored, .stored, .stored, .stored])
        await expect("storeAndForwardBatchNotFound") { try await reopened.reset() }
        #expect(try await reopened.makeBatch(size: 0).payments.map(\.id) == ["c", "a", "b", "d"])
    }

    @Test("a stored payment's receipt has its brand, its card's last four digits, and what the kernel has told")
    func receipts() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        // Visa's and Mastercard's registered names, and one that nobody has: ISO/IEC 7816-5.
        let brands: [(aid: String, brand: String?)] = [
            ("A0000000031010", "Visa"), ("A0000000041010", "Mastercard"), ("FFFFFFFFFF", nil),
        ]
        // TEST: Visa's published test account number.
        let number = try #require(PAN(packed: [UInt8](hex: "4761739001010010")))
        for (aid, brand) in brands {
            let facts = try #require(
                ReceiptFacts(
                    label: "CREDIT", applicationIdentifier: [UInt8](hex: aid), cardholderVerification: .deviceCVM))
            try await store.add(
                RecordStore.Payment(
                    id: aid, paymentCardData: "sealed", generalCardData: "general", amount: 12, currency: "EUR",
                    issuer: StoreBench.issuer, merchant: "merchant-1",
                    card: StoredCard(number, key: SymmetricKey(size: .bits256)), facts: Data(facts.encoded)))
            let receipt = try #require(try await store.receipt(of: aid))
            #expect(receipt.brand == brand && receipt.facts == facts && receipt.lastFour == "0010")
            // Kept to the millisecond.
            #expect(abs(receipt.payment.time.timeIntervalSince(bench.clock.now)) < 0.002)
            #expect(receipt.payment.amount == 12)
            #expect(receipt.payment.state == .stored && receipt.payment.answer == nil)
        }
        try await store.add(StoreBench.payment("none"))
        let bare = try #require(try await store.receipt(of: "none"))
        #expect(bare.brand == nil && bare.facts == nil && bare.lastFour == nil)
        // Also by the next program.
        await store.close()
        #expect(try await bench.store().receipt(of: "A0000000031010")?.brand == "Visa")
        #expect(try await bench.store().receipt(of: "nobody") == nil)
    }

    private func encoded(_ batch: StoreAndForwardBatch) throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .sortedKeys
        return try encoder.encode(batch)
    }

    @Test("the same payments are the same batch, with the identifier that the documentation tells how to make")
    func identifiers() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        for id in ["a", "b"] { try await store.add(StoreBench.payment(id)) }
        // printf 'a\nb\n' | sha256sum: 16 bytes of it, with the version 8 and the variant of RFC 9562.
        let expected = "911169DD-AAF1-86AF-B539-F58C26C489AF"
        #expect(try await store.makeBatch(size: 0).id == expected)
        try await store.reset()
        #expect(try await store.makeBatch(size: 0).id == expected)
        try await store.reset()
        #expect(try await store.makeBatch(size: 1).id != expected)
    }

    @Test("there is no batch of nothing")
    func nothing() async throws {
        let store = try await StoreBench().preparedStore()
        await expect("storeAndForwardResultsNotFound") { _ = try await store.makeBatch(size: 0) }
        #expect(try await store.batch() == nil)
    }

    @Test(
        "openssl verifies each payment, the batch and the certificates",
        .enabled(if: Program.isInstalled("openssl"), "openssl is not installed"))
    func signatures() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        for _ in 0..<3 { try await store.add(StoreBench.payment()) }
        let batch = try await store.makeBatch(size: 0)
        func save(_ name: String, base64: String) throws {
            try #require(Data(base64Encoded: base64)).write(to: bench.file(name))
        }
        let certificates = try await store.certificates()
        #expect(certificates.leafCertificate == batch.leafCertificate)
        #expect(certificates.intermediateCertificate == batch.intermediateCertificate)
        try save("leaf.der", base64: batch.leafCertificate)
        try save("intermediate.der", base64: try #require(batch.intermediateCertificate.first))
        for name in ["leaf", "intermediate"] {
            _ = try await openssl(
                "x509", "-inform", "DER", "-in", bench.file("\(name).der").path, "-out",
                bench.file("\(name).pem").path)
        }
        let chain = try await openssl(
            "verify", "-x509_strict", "-CAfile", bench.file("intermediate.pem").path, bench.file("leaf.pem").path)
        #expect(chain.status == 0, "\(chain)")
        let key = try await openssl("x509", "-in", bench.file("leaf.pem").path, "-pubkey", "-noout")
        try Data(key.output.utf8).write(to: bench.file("key.pem"))
        func verifies(_ form: String, _ signature: String) async throws -> Bool {
            try Data(form.utf8).write(to: bench.file("form"))
            try save("signature", base64: signature)
            return try await openssl(
                "dgst", "-sha256", "-verify", bench.file("key.pem").path, "-signature", bench.file("signature").path,
                bench.file("form").path
            ).status == 0
        }
        #expect(try await verifies(canonicalForm(of: batch), batch.signature))
        for payment in batch.payments { #expect(try await verifies(canonicalForm(of: payment), payment.signature)) }
        #expect(try await !verifies(canonicalForm(of: batch) + "x", batch.signature))
    }

    private func openssl(_ arguments: String...) async throws -> Program.Outcome {
        try await Program.run(["openssl"] + arguments)
    }

    // MARK: The ledger

    @Test("a batch that may have been seen is not reset, until the payment service says that it took nothing")
    func sent() async throws {
        let bench = try StoreBench()
        var store: RecordStore? = try await bench.preparedStore()
        for id in ["a", "b", "c"] { try await store?.add(StoreBench.payment(id)) }
        let batch = try #require(try await store?.makeBatch(size: 2))
        await expect("storeAndForwardBatchNotFound") { try await store?.record(["a": .approved]) }
        await expect("storeAndForwardBatchNotFound") { try await store?.willSend(batch: "other") }
        try await store?.willSend(batch: batch.id)
        await expect("notAllowed") { try await store?.reset() }
        await store?.close()
        store = nil
        let reopened = bench.store()
        await expect("notAllowed") { try await reopened.reset() }
        #expect(try await reopened.payments().map(\.state) == [.sent, .sent, .stored])
        // Of another payment than the batch's: nothing is recorded.
        await expect("storeAndForwardResultsNotFound") { try await reopened.record(["a": .approved, "c": .approved]) }
        #expect(try await reopened.payments().map(\.state) == [.sent, .sent, .stored])
        try await reopened.wasRefused(batch: batch.id)
        #expect(try await reopened.payments().map(\.state) == [.batched, .batched, .stored])
        try await reopened.reset()
        #expect(try await reopened.payments().map(\.state) == [.stored, .stored, .stored])
    }

    @Test("what is known of a payment stays known, and goes when it is resolved")
    func answers() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        for id in ["a", "b", "c"] { try await store.add(StoreBench.payment(id)) }
        let batch = try await store.makeBatch(size: 0)
        try await store.willSend(batch: batch.id)
        try await store.record(["a": .approved, "b": .unknown, "c": .declined])
        await expect("notAllowed") { try await store.wasRefused(batch: batch.id) }
        try await store.willSend(batch: batch.id)
        #expect(try await store.payments().map(\.state) == [.approved, .unknown, .declined])
        try await store.record(["b": .approved])
        #expect(try await store.payments().map(\.state) == [.approved, .approved, .declined])
        #expect(try await store.resolve(bench.verified(bench.claims(for: batch))) == 0)
        #expect(try await store.state(of: "a") == .resolved)
        #expect(try await store.state(of: "never") == nil)
        #expect(try await store.batch() == nil)
    }

    @Test("an answer is not forgotten when the next is lost, and not taken back; the batch is not reset then")
    func answersStay() async throws {
        let bench = try StoreBench()
        var store = try await bench.preparedStore()
        for id in ["a", "b", "c"] { try await store.add(StoreBench.payment(id)) }
        let batch = try await store.makeBatch(size: 0)
        try await store.willSend(batch: batch.id)
        try await store.record(["a": .approved, "b": .declined, "c": .unknown])
        // The program ends before the deletion; the batch is sent again, and the answer is lost.
        await store.close()
        store = bench.store()
        try await store.willSend(batch: batch.id)
        try await store.record(["a": .unknown, "b": .unknown, "c": .unknown])
        #expect(try await store.payments().map(\.state) == [.approved, .declined, .unknown])
        await expect("notAllowed") { try await store.record(["c": .approved, "a": .declined]) }
        await expect("notAllowed") { try await store.record(["b": .approved]) }
        #expect(try await store.payments().map(\.state) == [.approved, .declined, .unknown])
        await expect("notAllowed") { try await store.wasRefused(batch: batch.id) }
        await expect("notAllowed") { try await store.reset() }
    }

    @Test("a payment that is set aside comes into no batch until it is put back, and counts nevertheless")
    func setAside() async throws {
        let bench = try StoreBench()
        var store = try await bench.preparedStore()
        for id in ["a", "b", "c"] { try await store.add(StoreBench.payment(id)) }
        let batch = try await store.makeBatch(size: 2)
        await expect("storeAndForwardResultsNotFound") { try await store.setAside("a", reason: "it fails") }
        try await store.reset()
        try await store.setAside("a", reason: "it fails")
        await expect("storeAndForwardResultsNotFound") { try await store.setAside("a", reason: "twice") }
        await expect("storeAndForwardResultsNotFound") { try await store.setAside("x", reason: "never stored") }
        await expect("storeAndForwardResultsNotFound") { try await store.putBack("b") }
        await store.close()
        store = bench.store()
        #expect(try await store.payments().map(\.state) == [.setAside, .stored, .stored])
        #expect(try await store.payments().map(\.reason) == ["it fails", nil, nil])
        #expect(try await store.count() == 3)
        await expect("storeAndForwardBatchSizeInvalid") { _ = try await store.makeBatch(size: 3) }
        let next = try await store.makeBatch(size: 0)
        #expect(next.payments.map(\.id) == ["b", "c"] && next.id != batch.id)
        try await store.putBack("a")
        #expect(try await store.resolve(bench.verified(bench.claims(for: next))) == 1)
        #expect(try await store.makeBatch(size: 0).payments.map(\.id) == ["a"])
        // Only what is set aside: nothing to forward.
        try await store.reset()
        try await store.setAside("a", reason: "again")
        await expect("storeAndForwardResultsNotFound") { _ = try await store.makeBatch(size: 0) }
    }

    // MARK: Figures

    @Test("a summary tells what is stored by currency and state, how old it is, and which limits are near")
    func summary() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        let policy = ProximityReaderSystem.StoreAndForwardPolicy(
            limits: ["EUR": .init(perPayment: 50, total: 100), "USD": .init(perPayment: 10, total: 20)],
            maximumCount: 10, maximumAge: .seconds(1000))
        let empty = try await store.summary(under: policy)
        #expect(empty.count == 0 && empty.totals == [] && empty.oldest == nil && empty.expiration == nil)
        #expect(empty.limits.allSatisfy { $0.used == 0 && $0.alarm == nil } && empty.limits.count == 5)
        let start = bench.clock.now
        for (id, amount) in [("a", "10.5"), ("b", "20"), ("c", "19.49")] {
            try await store.add(StoreBench.payment(id, amount: try #require(Decimal(string: amount))))
        }
        try await store.setAside("a", reason: "it fails")
        let batch = try await store.makeBatch(size: 1)
        try await store.willSend(batch: batch.id)
        try await store.record(["b": .approved])
        bench.clock.advance(799)
        let before = try await store.summary(under: policy)
        #expect(before.count == 3)
        #expect(
            before.totals.map { "\($0.currency) \($0.state) \($0.count) \($0.amount)" }
                == ["EUR stored 1 19.49", "EUR setAside 1 10.5", "EUR approved 1 20"])
        // Milliseconds are kept.
        #expect(abs(try #require(before.oldest).timeIntervalSince(start)) < 0.01)
        #expect(abs(try #require(before.expiration).timeIntervalSince(start) - 1000) < 0.01)
        func alarms(_ summary: ProximityReaderSystem.Ledger.Summary) -> [String] {
            summary.limits.map { "\($0.limit) \($0.alarm.map { "\($0)" } ?? "none")" }
        }
        #expect(
            alarms(before) == [
                "count none", "age half", "total(currency: \"EUR\") none", "total(currency: \"USD\") none",
                "unacknowledged none",
            ])
        #expect(before.limits[2].used == Decimal(string: "49.99") && before.limits[2].allowed == 100)
        bench.clock.advance(1.1)
        try await store.add(StoreBench.payment("d", amount: Decimal(string: "0.01") ?? 0))
        #expect(try await alarms(store.summary(under: policy))[1...2] == ["age most", "total(currency: \"EUR\") half"])
        bench.clock.advance(200)
        try await store.add(StoreBench.payment("e", amount: 50))
        #expect(
            try await alarms(store.summary(under: policy))[0...2]
                == ["count half", "age all", "total(currency: \"EUR\") all"])
        #expect(try await store.summary(under: nil).limits == [])
    }

    @Test("decisions that nobody acknowledges are kept, and raise an alarm when they are many, until somebody does")
    func unacknowledged() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        var policy = ProximityReaderSystem.StoreAndForwardPolicy(limits: ["EUR": .init(perPayment: 50, total: 100)])
        policy.maximumUnacknowledged = 2
        func use() async throws -> ProximityReaderSystem.Ledger.Summary.LimitUse? {
            try await store.summary(under: policy).limits.first { $0.limit == .unacknowledged }
        }
        for id in ["a", "b"] { try await store.add(StoreBench.payment(id, amount: 1)) }
        let batch = try await store.makeBatch(size: 0)
        try await store.willSend(batch: batch.id)
        try await store.record(["a": .approved])
        #expect(try await use()?.alarm == .half)
        try await store.record(["b": .declined])
        #expect(try await use()?.alarm == .all)
        #expect(try await store.outcomes().count == 2)
        try await store.acknowledge("a")
        try await store.acknowledge("b")
        let none = try await use()
        #expect(none?.used == 0 && none?.alarm == nil)
    }

    @Test(
        "an export is what other programs read",
        .enabled(if: Program.isInstalled("python3"), "python3 is not installed"))
    func export() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        try await store.add(StoreBench.payment("a", amount: Decimal(string: "12.34") ?? 0))
        try await store.add(StoreBench.payment("b"))
        try await store.setAside("b", reason: "=SUM(A1), \"quoted\",\r\nand a line")
        let payments = try await store.payments()
        for format in ProximityReaderSystem.Ledger.ExportFormat.allCases {
            let text = try format.text(of: payments)
            #expect(!text.contains("sealed") && !text.contains("general"))
            try Data(text.utf8).write(to: bench.file(format.rawValue))
        }
        let script = """
            import csv, json, sys
            a = list(csv.DictReader(open(sys.argv[1], newline="")))
            b = [json.loads(line) for line in open(sys.argv[2])]
            assert [x["id"] for x in a] == [x["id"] for x in b] == ["a", "b"]
            assert [x["state"] for x in a] == [x["state"] for x in b] == ["stored", "setAside"]
            assert a[0]["time"] == b[0]["time"] and a[0]["merchant"] == b[0]["merchant"] == "merchant-1"
            print(a[0]["amount"], b[0]["amount"], a[0]["reason"] + a[1]["reason"], b[1]["reason"])
            """
        let read = try await Program.run([
            "/usr/bin/python3", "-c", script, bench.file("csv").path, bench.file("jsonLines").path,
        ])
        let reason = "=SUM(A1), \"quoted\",\r\nand a line"
        #expect(read.output == "12.34 12.34 '\(reason) \(reason)\n", "\(read)")
    }

    // MARK: Deletion tokens

    @Test("a token deletes what it is for, once")
    func resolved() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        for id in ["a", "b", "c"] { try await store.add(StoreBench.payment(id)) }
        let batch = try await store.makeBatch(size: 2)
        let token = try await bench.verified(bench.claims(for: batch))
        #expect(try await store.resolve(token) == 1)
        await expect("storeAndForwardDeletionTokenInvalid") { _ = try await store.resolve(token) }
        let next = try await store.makeBatch(size: 0)
        #expect(next.payments.map(\.id) == ["c"])
        // Remembered by whoever opens the store next.
        await store.close()
        let reopened = bench.store()
        await expect("storeAndForwardDeletionTokenInvalid") { _ = try await reopened.resolve(token) }
    }

    @Test("a token for a part of the batch leaves the rest stored, for the next batch")
    func partial() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        for id in ["a", "b", "c"] { try await store.add(StoreBench.payment(id)) }
        let batch = try await store.makeBatch(size: 0)
        var claims = bench.claims(for: batch)
        claims["ids"] = ["b", "x"]
        await expect("storeAndForwardDeletionTokenInvalid") { _ = try await store.resolve(bench.verified(claims)) }
        claims["ids"] = [String]()
        await expect("storeAndForwardDeletionTokenInvalid") { _ = try await store.resolve(bench.verified(claims)) }
        claims["ids"] = ["b"]
        #expect(try await store.resolve(bench.verified(claims)) == 2)
        #expect(try await store.makeBatch(size: 0).payments.map(\.id) == ["a", "c"])
    }

    @Test("a token deletes nothing whose answer is unknown, and leaves nothing that was taken for another batch")
    func tokensAndAnswers() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        for id in ["a", "b", "c"] { try await store.add(StoreBench.payment(id)) }
        let batch = try await store.makeBatch(size: 0)
        try await store.willSend(batch: batch.id)
        try await store.record(["a": .approved, "b": .declined, "c": .unknown])
        var claims = bench.claims(for: batch)
        for ids in [nil, ["a"], ["b"], ["a", "c"], ["a", "b", "c"]] as [[String]?] {
            claims["ids"] = ids
            await expect("storeAndForwardDeletionTokenInvalid") { _ = try await store.resolve(bench.verified(claims)) }
        }
        claims["ids"] = ["a", "b"]
        #expect(try await store.resolve(bench.verified(claims)) == 1)
        #expect(try await store.payments().map(\.state) == [.stored])
        // It was sent, and nobody has said that it was not taken: it may still be charged.
        await expect("storeAndForwardDeclineFailed") { try await store.withdrawLast() }
        #expect(try await store.count() == 1)
    }

    @Test("a token that is forged, foreign, expired, or for something else deletes nothing")
    func badTokens() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        for id in ["a", "b"] { try await store.add(StoreBench.payment(id)) }
        let batch = try await store.makeBatch(size: 0)
        let good = bench.claims(for: batch)
        let now = bench.clock.now.timeIntervalSince1970
        let hash = base64URL(Data(SHA256.hash(data: Data("x".utf8))))
        let changes: [(String, Any?, String)] =
            [
                ("iss", "https://elsewhere.example", "storeAndForwardDeletionTokenInvalid"),
                ("aud", "reader-2", "storeAndForwardDeletionTokenInvalid"),
                ("aud", [String](), "storeAndForwardDeletionTokenInvalid"),
                ("jti", "", "storeAndForwardDeletionTokenInvalid"),
                ("bid", UUID().uuidString, "storeAndForwardBatchNotFound"),
                ("cnt", 1, "storeAndForwardDeletionTokenInvalid"),
                ("hash", hash, "storeAndForwardDeletionTokenInvalid"),
                ("hash", "", "storeAndForwardDeletionTokenInvalid"),
                ("iat", now + 3600, "storeAndForwardDeletionTokenInvalid"),
                ("exp", now - 1, "storeAndForwardDeletionTokenExpired"),
            ]
            + ["iss", "aud", "jti", "bid", "cnt", "hash", "iat", "exp"].map {
                ($0, nil, "storeAndForwardDeletionTokenInvalid")
            }
        for (name, value, error) in changes {
            var claims = good
            claims[name] = value
            await expect(error) { _ = try await store.resolve(bench.verified(claims)) }
        }
        await expect("storeAndForwardDeletionTokenInvalid") {
            _ = try await store.resolve(bench.verified(good, signedBy: P256.Signing.PrivateKey()))
        }
        let text = try bench.token(good).rawValue
        let unsigned = try bench.token(good, algorithm: "none").rawValue.split(separator: ".").prefix(2)
        for raw in [
            try bench.token(good, type: "JWT").rawValue, try bench.token(good, type: "reader-token+jwt").rawValue,
            "", "x", "a.b.c", String(text.dropLast(4)), text + ".x", unsigned.joined(separator: ".") + ".",
            String(repeating: "A", count: 2 << 20),
        ] {
            await expect("storeAndForwardDeletionTokenInvalid") {
                _ = try await DeletionToken(
                    .init(rawValue: raw), by: TokenVerifier(keySet: Bench.keySet(bench.service)),
                    issuer: StoreBench.issuer,
                    at: bench.clock.now)
            }
        }
        #expect(try await store.count() == 2)
        #expect(try await store.resolve(bench.verified(good)) == 0)
    }

    @Test("a deletion token is kept with the batch until it is resolved, whoever opens the store")
    func keptToken() async throws {
        let bench = try StoreBench()
        var store = try await bench.preparedStore()
        for id in ["a", "b"] { try await store.add(StoreBench.payment(id)) }
        let batch = try await store.makeBatch(size: 1)
        try await store.willSend(batch: batch.id)
        #expect(try await store.deletionToken() == nil)
        try await store.record([:], deletionToken: "first")
        try await store.record(["a": .approved], deletionToken: "second")
        try await store.record(["a": .unknown], deletionToken: String(repeating: "x", count: 1 << 20 + 1))
        await store.close()
        store = bench.store()
        #expect(try await store.deletionToken() == "second")
        // Also where the book is begun anew meanwhile.
        for _ in 0..<300 { try await store.setAside("b", reason: "it fails"); try await store.putBack("b") }
        await store.close()
        store = bench.store()
        #expect(try await store.entryCount() < 10)
        #expect(try await store.deletionToken() == "second")
        _ = try await store.resolve(bench.verified(bench.claims(for: batch)))
        #expect(try await store.deletionToken() == nil)
    }

    // MARK: Release

    @Test("a person dissolves a batch, and the book tells who, why and how; what was decided is in no other batch")
    func released() async throws {
        let bench = try StoreBench()
        var store = try await bench.preparedStore()
        for id in ["a", "b", "c", "d"] { try await store.add(StoreBench.payment(id)) }
        let batch = try await store.makeBatch(size: 3)
        let findings: [String: ProximityReaderSystem.Ledger.Finding] = ["a": .declined, "b": .notTaken, "c": .approved]
        // It can be reset.
        await expect("notAllowed") { try await store.release(batch.id, findings, by: "M. Teller", reason: "asked") }
        try await store.willSend(batch: batch.id)
        try await store.record(["a": .approved, "b": .unknown])
        await expect("storeAndForwardBatchNotFound") {
            try await store.release("other", findings, by: "M. Teller", reason: "asked")
        }
        for wrong in [
            ["a": .approved, "c": .approved], ["a": .approved, "b": .declined, "c": .approved, "d": .approved],
        ] as [[String: ProximityReaderSystem.Ledger.Finding]] {
            await expect("storeAndForwardResultsNotFound") {
                try await store.release(batch.id, wrong, by: "M. Teller", reason: "asked")
            }
        }
        // It is known to have been charged.
        await expect("notAllowed") {
            try await store.release(
                batch.id, ["a": .notTaken, "b": .notTaken, "c": .approved], by: "M. Teller", reason: "asked")
        }
        for (person, reason) in [("", "asked"), ("M. Teller", "")] {
            await expect("notAllowed") { try await store.release(batch.id, findings, by: person, reason: reason) }
        }
        #expect(try await store.payments().map(\.state) == [.approved, .unknown, .sent, .stored])
        try await store.release(batch.id, findings, by: "M. Teller", reason: "asked")
        for isOpenedAnew in [false, true] {
            if isOpenedAnew {
                await store.close()
                store = bench.store()
            }
            #expect(try await store.batch() == nil)
            #expect(try await store.payments().map(\.id) == ["b", "d"])
            #expect(try await store.payments().map(\.state) == [.stored, .stored])
            #expect(try await store.state(of: "a") == .resolved)
            let release = try #require(try await store.releases().first)
            #expect(try await store.releases().count == 1)
            #expect(release.batch == batch.id && release.person == "M. Teller" && release.reason == "asked")
            #expect(release.payments == findings && release.answers == ["a": .approved, "b": .unknown])
            let history = try await store.history()
            #expect(history.map(\.id) == ["a", "c", "b", "d"])
            #expect(history.prefix(2).map(\.answer) == [.declined, .approved])
            #expect(history.prefix(2).map(\.reason) == ["M. Teller: asked", "M. Teller: asked"])
        }
        await expect("storeAndForwardBatchNotFound") {
            try await store.release(batch.id, findings, by: "M. Teller", reason: "twice")
        }
        #expect(try await store.makeBatch(size: 0).payments.map(\.id) == ["b", "d"])
    }

    // MARK: What stays

    @Test("nothing of a payment can be read in the store's files")
    func sealedOnDisk() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        for id in ["a", "b", "c"] { try await store.add(StoreBench.payment(id)) }
        try await store.setAside("c", reason: "it fails")
        _ = try await store.resolve(bench.verified(bench.claims(for: store.makeBatch(size: 1))))
        for isOpen in [true, false] {
            if !isOpen { await store.close() }
            for name in try FileManager.default.contentsOfDirectory(atPath: bench.folder.path) {
                let bytes = try Data(contentsOf: bench.file(name))
                // Of seven bytes and more: three are in some hundred thousand random ones by chance, as those of `EUR` were.
                for text in [
                    "sealed-", "general-", "merchant-1", StoreBench.issuer, StoreBench.reader, "it fails",
                ] {
                    #expect(bytes.range(of: Data(text.utf8)) == nil, "\(text) in \(name)")
                }
            }
        }
    }

    @Test("what was deleted cannot be read from an old copy of the database, whoever has the key of now")
    func erased() async throws {
        let bench = try StoreBench()
        var store = try await bench.preparedStore()
        for id in ["a", "b"] { try await store.add(StoreBench.payment(id)) }
        let batch = try await store.makeBatch(size: 0)
        await store.close()
        let names = ["store.sqlite", "store.head", "store.key"]
        for name in names { try FileManager.default.copyItem(at: bench.file(name), to: bench.file("old-\(name)")) }
        func putBack(_ names: [String]) throws {
            for name in names {
                try? FileManager.default.removeItem(at: bench.file(name))
                try FileManager.default.copyItem(at: bench.file("old-\(name)"), to: bench.file(name))
            }
        }
        store = bench.store()
        #expect(try await store.resolve(bench.verified(bench.claims(for: batch))) == 0)
        await store.close()
        try putBack(["store.sqlite", "store.head"])
        await #expect { try await bench.store().count() } throws: {
            "\($0)".contains("payment a is not what was stored")
        }
        // With the key of then they can: the copy is good.
        try putBack(names)
        #expect(try await bench.store().count() == 2)
    }

    @Test("a store is opened at the cost of what is in it, not of all that was")
    func compaction() async throws {
        let bench = try StoreBench()
        var store = try await bench.preparedStore()
        try await store.add(StoreBench.payment("first"))
        try await store.setAside("first", reason: "it fails")
        var forwarded: [String] = []
        var sizes: [Int] = []
        let rounds = Tier.rounds(8, thorough: 40)
        for round in 0..<rounds {
            let ids = (0..<25).map { "\(round)-\($0)" }
            for id in ids { try await store.add(StoreBench.payment(id)) }
            let batch = try await store.makeBatch(size: 0)
            try await store.willSend(batch: batch.id)
            try await store.record(Dictionary(uniqueKeysWithValues: ids.map { ($0, .approved) }))
            #expect(try await store.resolve(bench.verified(bench.claims(for: batch))) == 1)
            forwarded += ids
            sizes.append(try await store.entryCount())
        }
        // Two entries: what there was before, and the one that is set aside.
        #expect(sizes.allSatisfy { $0 == 2 }, "\(sizes)")
        #expect(try await store.state(of: "0-0") == .resolved)
        #expect(try await store.state(of: "\(rounds - 1)-24") == .resolved)
        await store.close()
        store = bench.store()
        #expect(try await store.payments().map(\.id) == ["first"])
        #expect(try await store.payments().map(\.state) == [.setAside])
        #expect(try await store.history().map(\.id) == forwarded + ["first"])
        #expect(try await store.history().allSatisfy { $0.id == "first" || $0.answer == .approved })
        // Retries without an end, and a batch through which a book is begun anew.
        try await store.putBack("first")
        let batch = try await store.makeBatch(size: 0)
        for _ in 0..<300 {
            try await store.willSend(batch: batch.id)
            try await store.wasRefused(batch: batch.id)
        }
        #expect(try await store.entryCount() > 600)
        await store.close()
        store = bench.store()
        #expect(try await store.entryCount() == 2)
        #expect(try await store.batch()?.signature == batch.signature)
        #expect(try await store.payments().map(\.state) == [.batched])
        #expect(try await store.resolve(bench.verified(bench.claims(for: batch))) == 0)
        // What was forwarded is forgotten after 30 days.
        bench.clock.advance(30 * 24 * 3600 + 1)
        try await store.add(StoreBench.payment("next"))
        _ = try await store.resolve(bench.verified(bench.claims(for: store.makeBatch(size: 0))))
        #expect(try await store.history().map(\.id) == ["next"])
    }

    // MARK: Taking back

    @Test(
        "a payment of just now can be taken back, whatever its date rounds to",
        arguments: [817_700_003.17, 817_700_004.755])
    func roundedTime(_ reference: TimeInterval) async throws {
        let bench = try StoreBench(clock: Bench.Clock(Date(timeIntervalSinceReferenceDate: reference)))
        let store = try await bench.preparedStore()
        try await store.add(StoreBench.payment("a"))
        try await store.withdrawLast()
    }

    @Test("the last payment is taken back within a minute, once, and not from a batch")
    func withdrawn() async throws {
        let bench = try StoreBench()
        let store = try await bench.preparedStore()
        await expect("storeAndForwardResultNotFound") { try await store.withdrawLast() }
        try await store.add(StoreBench.payment("a"))
        try await store.add(StoreBench.payment("b"))
        bench.clock.advance(59)
        try await store.withdrawLast()
        #expect(try await store.payments().map(\.id) == ["a"])
        await expect("storeAndForwardResultNotFound") { try await store.withdrawLast() }
        try await store.add(StoreBench.payment("c"))
        bench.clock.advance(61)
        await expect("storeAndForwardDeclineFailed") { try await store.withdrawLast() }
        try await store.add(StoreBench.payment("d"))
        bench.clock.advance(-1)
        await expect("storeAndForwardDeclineFailed") { try await store.withdrawLast() }
        bench.clock.advance(1)
        _ = try await store.makeBatch(size: 0)
        await expect("storeAndForwardDeclineFailed") { try await store.withdrawLast() }
        #expect(try await store.state(of: "b") == nil)
        #expect(try await store.state(of: "c") == .batched)
    }
}
