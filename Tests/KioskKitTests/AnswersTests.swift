import Foundation
import KioskKit
import KioskTestSupport
import ProximityReader
import Synchronization
import TestSupport
import Testing

/// The table of `Answers.md`, row by row: each answer is given to a batch of four payments.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct AnswersTests {
    private typealias Bench = ForwarderBench
    private static let count = 4

    /// A row in the page's own words.
    struct Row: CustomTestStringConvertible, Sendable {
        let status: String, body: String, before: String, after: String
        var testDescription: String { "\(status): \(body)" }
    }

    static let rows: [Row] = {
        let page = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../Sources/KioskKit/Documentation.docc/Answers.md")
        let lines = ((try? String(contentsOf: page, encoding: .utf8)) ?? "").split(separator: "\n")
        return lines.filter { $0.hasPrefix("|") }.dropFirst(2).map { line in
            let cells = line.split(separator: "|", omittingEmptySubsequences: false)
                .map { $0.trimmingCharacters(in: .whitespaces) }.dropFirst().dropLast()
            let padded = Array(cells) + Array(repeating: "", count: max(0, 4 - cells.count))
            return Row(status: padded[0], body: padded[1], before: padded[2], after: padded[3])
        }
    }()

    /// What the payment service does with one call.
    private enum Answer {
        case decides(PaymentResult.Status)
        /// Of the first payment; the others are approved.
        case says(PaymentResult)
        case fails([BatchService.Fate])
    }

    @Test("each row of the table of answers is what becomes of stored payments", arguments: rows)
    func row(_ row: Row) async throws {
        for answer in Tier.few(try answers(of: row), 1) {
            try await play(answer, expecting: row.before, after: nil)
            // The lost call was taken, or it was not.
            for lost in [BatchService.Fate.unanswered, .lost] {
                try await play(answer, expecting: row.after, after: lost)
            }
        }
    }

    @Test("the table has every status")
    func everyStatus() throws {
        for status in ["200", "3xx", "4xx", "5xx", "none"] {
            #expect(Self.rows.contains { $0.status == status }, "\(status)")
        }
        // Those that it does not name mean what those that are played mean.
        let named = namedStatuses
        for status in 400..<500 where !named.contains(status) {
            #expect(PaymentServiceError(httpStatus: status, code: "x", message: "") == .refused(code: "x", message: ""))
            #expect(isNoAnswer(PaymentServiceError(httpStatus: status)))
        }
        for status in Array(300..<400) + Array(500..<600) {
            #expect(isNoAnswer(PaymentServiceError(httpStatus: status, code: "x", message: "")))
        }
    }

    private func isNoAnswer(_ error: PaymentServiceError) -> Bool {
        if case .noAnswer = error { true } else { false }
    }

    private var namedStatuses: Set<Int> {
        Set(Self.rows.flatMap { $0.status.split(separator: ", ").compactMap { Int($0) } })
    }

    private func answers(of row: Row) throws -> [Answer] {
        func said(
            _ key: String = Bench.name(0), _ amount: Decimal = 10, _ currency: String = "EUR",
            _ status: PaymentResult.Status = .approved
        ) -> Answer {
            .says(PaymentResult(id: "p", status: status, idempotencyKey: key, amount: amount, currency: currency))
        }
        func fails(_ status: Int, _ code: String?) -> Answer {
            let error = PaymentServiceError(httpStatus: status, code: code, message: code.map { _ in "No." })
            return .fails([.answers(error)])
        }
        let named = namedStatuses
        let statuses: [Int]
        switch row.status {
        case "none":
            try #require(row.body.isEmpty, "not understood: \(row)")
            return [.fails([.lost]), .fails([.unanswered])]
        case "3xx": statuses = [301, 302, 307]
        case "4xx": statuses = [400, 402, 405, 410, 415, 422, 451, 499].filter { !named.contains($0) }
        case "5xx": statuses = [500, 502, 503, 504, 599]
        default:
            statuses = row.status.split(separator: ", ").compactMap { Int($0) }
            try #require(!statuses.isEmpty, "not understood: \(row)")
        }
        switch row.body {
        case "approved or declined": return [.decides(.approved), .decides(.declined)]
        case "not final, or of another payment, amount or currency":
            return [
                said(Bench.name(0), 10, "EUR", .processing), said(Bench.name(1)), said(Bench.name(0), 100),
                said(Bench.name(0), 10, "USD"),
            ]
        case "a proxy's page": return statuses.map { fails($0, nil) }
        case "the service's own": return statuses.map { fails($0, "code") }
        case "any": return statuses.flatMap { [fails($0, nil), fails($0, "code")] }
        default:
            Issue.record("not understood: \(row)")
            return []
        }
    }

    /// - Parameter lost: what became of the call before; nil if there was none.
    private func play(_ answer: Answer, expecting cell: String, after lost: BatchService.Fate?) async throws {
        let context = "\(answer), after \(lost.map { "\($0)" } ?? "nothing"): \(cell)"
        let before = lost.map { [$0] } ?? []
        let status = if case .decides(let status) = answer { status } else { PaymentResult.Status.approved }
        let service = BatchService(before, decide: { _ in status })
        switch answer {
        case .decides: break
        case .says(let result): service.state.withLock { $0.says = [Bench.name(0): result] }
        case .fails(let fates):
            // What pauses is given for as long as it is asked; after any other answer the service is well again.
            let isLasting = cell == "stays stored; pause"
            service.state.withLock { $0.script += isLasting ? Array(repeating: fates[0], count: 50) : fates }
        }
        let bench = try await Bench(service, payments: Self.count)
        let terminal = bench.terminal()
        let ledger = bench.ledger(terminal)
        let forwarder = bench.forwarder(terminal)
        // Whether it gives up is the cell's.
        _ = try? await forwarder.forward()
        let (calls, lookups) = (service.calls, service.state.withLock { $0.lookups })
        let (played, left) = (before.count, try await ledger.payments())
        switch cell {
        case "deleted with the deletion token":
            let report = await forwarder.lastReport
            #expect(left.isEmpty && calls.count == played + 1 && lookups == 0, "\(context)")
            #expect((status == .approved ? report.approved : report.declined) == Self.count, "\(context)")
        case "stays stored; reported":
            #expect(left.map(\.id) == [Bench.name(0)], "\(context)")
            #expect(left.allSatisfy { $0.answer != .approved && $0.answer != .declined }, "\(context)")
            #expect(await forwarder.lastReport.undecided[Bench.name(0)] != nil, "\(context)")
            return
        case "stays stored; pause":
            #expect(left.count == Self.count && lookups == 0, "\(context)")
            #expect(try await ledger.summary().pause != nil, "\(context)")
            #expect(Set(calls.map(\.key)).count == 1, "\(context)")
            service.state.withLock { $0.script = [] }
            _ = try await forwarder.forward()
        case "stays stored; asked again":
            try #require(calls.count == played + 2, "\(context)")
            #expect(calls[played + 1].key == calls[played].key && lookups == 0, "\(context)")
            #expect(calls[played + 1].payments == calls[played].payments, "\(context)")
        case "stays stored; in a smaller batch":
            try #require(calls.count > played + 1, "\(context)")
            #expect(calls[played + 1].payments.count < Self.count && lookups == 0, "\(context)")
        case "the service is asked about each payment":
            #expect(lookups == Self.count, "\(context)")
            // What it knows is not sent again.
            if lost == .unanswered { #expect(calls.count == played + 1, "\(context)") }
        default: Issue.record("not understood: \(context)")
        }
        #expect(try await ledger.payments().isEmpty, "\(context)")
        #expect(bench.charges == Bench.once(0..<Self.count), "\(context)")
    }
}
