import EMVContactless
import Foundation
import SmartCard
import SmartCardSimulator
import SmartCardTrace
import TestSupport
import Testing

/// The traces in Tests/Traces and Tests/OfflineTraces: payments with the virtual cards, redacted.  This reads by itself what
/// they expect, apart from `apdu-trace`; the oracle is what came of each when it was recorded.
@Suite(.computing) struct RecordedTracesTests {
    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .appendingPathComponent("Traces").path

    static let files =
        FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String }.filter { $0.hasSuffix(".apdu") }
        .sorted() ?? []

    private func transaction(_ meta: [String: String]) throws -> Transaction {
        let kinds: [String: Transaction.Kind] = [
            "purchase": .purchase, "cash": .cash, "cashback": .purchaseWithCashback, "refund": .refund,
        ]
        func value(_ key: String) throws -> String { try #require(meta["transaction.\(key)"], "\(key)") }
        let numbers = try value("time").split { "-T:".contains($0) }.compactMap { Int($0) }
        try #require(numbers.count == 6)
        let date = try #require(CalendarDate(year: numbers[0], month: numbers[1], day: numbers[2]))
        let kind = try #require(kinds[value("type")])
        let amount = try #require(UInt64(value("amount")))
        let other = try #require(UInt64(value("amount-other")))
        let currency = try #require(Currency[value("currency")])
        let time = try #require(TerminalTime(date, hour: numbers[3], minute: numbers[4], second: numbers[5]))
        let counter = try #require(UInt32(value("counter")))
        let number = try [UInt8](hex: value("number"))
        var transaction = try #require(
            Transaction(
                kind, amount: amount, amountOther: other, currency: currency, time: time, unpredictableNumber: number,
                sequenceCounter: counter))
        transaction.furtherUnpredictableNumbers =
            try meta["transaction.further-numbers"]?.split(separator: " ").map { try [UInt8](hex: String($0)) } ?? []
        return transaction
    }

    @Test("there are traces")
    func thereAreTraces() { #expect(Self.files.count >= 5) }

    private func replay(_ path: String, _ configuration: ReaderConfiguration, _ keys: CAPublicKeys) async throws {
        let trace = try Trace(path: path)
        let meta = trace.meta
        let reader = ReplayReader(trace)
        let transaction = try transaction(meta)
        let terminal = ContactlessTerminal(
            EntryPoint(configuration: try configuration.validated(), keys: keys))
        let field = CardReaderField(reader)
        let final = try await terminal.perform(transaction, in: field) { _ in }.final
        await field.release(.leave)
        try reader.checkPlayedThrough()
        #expect(final.outcome.kind.rawValue == meta["outcome.kind"])
        #expect(final.outcome.cvm?.rawValue == meta["outcome.cvm"])
        #expect(final.name?.hex == meta["outcome.aid"])
        #expect(final.kernel.map { "\($0.rawValue)" } == meta["outcome.kernel"])
    }

    @Test("a recorded payment ends as it did", arguments: files)
    func replay(_ file: String) async throws {
        try await replay("\(Self.folder)/\(file)", .test, .published)
    }

    /// The terminal of `reader.json` approves offline what authenticates itself, with certificates that were reissued, under
    /// the keys of the virtual cards.  Without these it goes online.
    @Test("a payment that was approved offline is approved again")
    func offline() async throws {
        let folder = "\(Self.folder)/../OfflineTraces"
        let configuration = try JSONDecoder().decode(
            ReaderConfiguration.self, from: Data(contentsOf: URL(fileURLWithPath: "\(folder)/reader.json")))
        var keys = CAPublicKeys.published
        for key in VirtualCards.certificationAuthorityKeys {
            keys.insert(
                try CAPublicKey(
                    environment: .test, rid: key.rid, index: key.index, modulus: key.modulus, exponent: key.exponent,
                    checksum: key.checksum, expiration: CalendarDate(packed: key.expires)))
        }
        #expect(try Trace(path: "\(folder)/approved.apdu").meta["outcome.kind"] == "approved")
        try await replay("\(folder)/approved.apdu", configuration, keys)
    }

    @Test("no trace holds an account number in the clear", arguments: files + ["../OfflineTraces/approved.apdu"])
    func redacted(_ file: String) throws {
        let trace = try Trace(path: "\(Self.folder)/\(file)")
        #expect(TraceRedaction.eventsWithAccountNumbers(in: trace) == [])
        let redacted = TraceRedaction().redacted(trace)
        #expect(TraceRedaction().redacted(redacted) == redacted && TraceRedaction().findings(in: redacted).isEmpty)
        // Certificates of a test authority stay only where the tool recognizes them.
        if !file.contains("OfflineTraces") { #expect(redacted == trace) }
        #expect(trace.events.contains { if case .redacted = $0.what { true } else { false } })
    }
}
