import ContactlessMetrics
import CoreMetrics
import Foundation
import KioskKit
import KioskTestSupport
import ProximityReader
import Synchronization
import TestSupport
import Testing

/// A backend as an application has its own: it notes every name and every label that it is given.
final class NotingBackend: MetricsFactory {
    private let exposition = Exposition()
    private let names = Mutex<Set<String>>([])

    /// The series that it was given.
    var series: Set<String> { names.withLock { $0 } }

    /// The samples that are not 0, but for the times themselves, which are no test's to know.
    var samples: [String] {
        exposition.text.split(separator: "\n").map(String.init).filter {
            !$0.hasPrefix("#") && !$0.contains(#/ 0(\.0)?$|_bucket\{|_sum|_timestamp_seconds|write_seconds/#)
        }
    }

    /// The lines of a metric, whatever they are.
    func lines(_ name: String) -> [String] {
        exposition.text.split(separator: "\n").map(String.init).filter { $0.hasPrefix(name) }
    }

    private func note(_ label: String, _ dimensions: [(String, String)]) {
        names.withLock { _ = $0.insert("\(label) \(dimensions.map { "\($0.0)=\($0.1)" }.joined(separator: ","))") }
    }

    func makeCounter(label: String, dimensions: [(String, String)]) -> any CounterHandler {
        note(label, dimensions)
        return exposition.makeCounter(label: label, dimensions: dimensions)
    }

    func makeRecorder(label: String, dimensions: [(String, String)], aggregate: Bool) -> any RecorderHandler {
        note(label, dimensions)
        return exposition.makeRecorder(label: label, dimensions: dimensions, aggregate: aggregate)
    }

    func makeTimer(label: String, dimensions: [(String, String)]) -> any TimerHandler {
        note(label, dimensions)
        return exposition.makeTimer(label: label, dimensions: dimensions)
    }

    func destroyCounter(_ handler: any CounterHandler) {}
    func destroyRecorder(_ handler: any RecorderHandler) {}
    func destroyTimer(_ handler: any TimerHandler) {}

    /// Expects that everything that it was given is in the table.
    func expectOnlyTheTable() {
        let table = metrics.rows.flatMap { row in
            row.series.map { "\(row.name) \($0.map { "\($0.name)=\($0.value)" }.joined(separator: ","))" }
        }
        #expect(series.count > 5 && series.subtracting(table).isEmpty)
    }
}

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct MetricTests {
    @Test("A payment, a refusal, a refund and an unknown outcome are counted, and a backend gets nothing of the card")
    func payments() async throws {
        let backend = NotingBackend()
        try await withMetricsFactory(backend) {
            let bench = try await KioskBench(script: [.approved, .declined, .refused, .lost, .lost, .lost])
            func charge() async throws {
                // TEST: the published card 4761739001010010.
                try bench.insert("visa")
                _ = try await bench.service.charge(amount: 12.34, currency: "EUR")
            }
            try await charge()
            try bench.insert("visa")
            #expect(try await bench.service.refund(amount: 5, currency: "EUR").status == .declined)
            await #expect(throws: PaymentServiceError.self) { try await charge() }
            #expect(backend.lines("contactless_unsettled_payments") == ["contactless_unsettled_payments 0.0"])
            var key = ""
            do { try await charge() } catch TapToPayError.outcomeUnknown(let unknown) { key = unknown }
            let counts = [
                #"contactless_reader_present 1.0"#,
                #"contactless_preparations_total{result="prepared"} 1"#,
                #"contactless_reads_total{request="payment",result="completed"} 4"#,
                #"contactless_card_seconds_count 4"#,
                #"contactless_payments_total{kind="payment",result="approved"} 1"#,
                #"contactless_payments_total{kind="payment",result="refused"} 1"#,
                #"contactless_payments_total{kind="payment",result="unknown"} 1"#,
                #"contactless_payments_total{kind="refund",result="declined"} 1"#,
                #"contactless_unsettled_payments 1.0"#,
                #"contactless_service_calls_total{call="token",result="answered"} 1"#,
                #"contactless_service_calls_total{call="payment",result="answered"} 1"#,
                #"contactless_service_calls_total{call="payment",result="refused"} 1"#,
                #"contactless_service_calls_total{call="payment",result="no_answer"} 3"#,
                #"contactless_service_calls_total{call="refund",result="answered"} 1"#,
                #"contactless_service_call_seconds_count{call="token"} 1"#,
                #"contactless_service_call_seconds_count{call="payment"} 5"#,
                #"contactless_service_call_seconds_count{call="refund"} 1"#,
            ]
            #expect(backend.samples == counts)
            await bench.psp.failReversals(1)
            #expect(try await bench.service.reverse(key))
            #expect(
                Set(backend.samples).subtracting(counts) == [
                    #"contactless_reversals_total{result="confirmed"} 1"#,
                    #"contactless_reversals_total{result="unconfirmed"} 1"#,
                    #"contactless_service_calls_total{call="reversal",result="answered"} 1"#,
                    #"contactless_service_calls_total{call="reversal",result="no_answer"} 1"#,
                    #"contactless_service_call_seconds_count{call="reversal"} 2"#,
                ])
            #expect(backend.lines("contactless_unsettled_payments") == ["contactless_unsettled_payments 0.0"])
        }
        backend.expectOnlyTheTable()
        #expect(!backend.series.contains { $0.contains(#/[0-9]/#) })
    }

    @Test("Reads that end without a payment are counted by why they did")
    func reads() async throws {
        let backend = NotingBackend()
        try await withMetricsFactory(backend) {
            let bench = try await KioskBench()
            let events = bench.reader.events
            let cancelled = Task { try await bench.service.charge(amount: 1, currency: "EUR") }
            // Before that there is no read, and none to count.
            for await event in events { if case .readyForTap = event { break } }
            #expect(await bench.service.cancelRead())
            _ = await cancelled.result
            try bench.insert("visa-decline")
            _ = await thrown { _ = try await bench.service.charge(amount: 1, currency: "EUR") }
            #expect(
                backend.lines("contactless_reads_total").filter { !$0.hasSuffix(" 0") } == [
                    #"contactless_reads_total{request="payment",result="declined"} 1"#,
                    #"contactless_reads_total{request="payment",result="cancelled"} 1"#,
                ])
            #expect(backend.lines("contactless_card_seconds_count") == ["contactless_card_seconds_count 1"])
        }
    }

    @Test("Forwarded payments are counted, and the store is as empty as it is")
    func forwarding() async throws {
        let backend = NotingBackend()
        try await withMetricsFactory(backend) {
            let bench = try await ForwarderBench(
                BatchService(decide: { $0 == "sealed-3" ? .declined : .approved }), payments: 7)
            let terminal = bench.terminal()
            // What is stored is known once somebody uses the store.
            _ = try await bench.ledger(terminal).payments()
            #expect(
                backend.samples == [
                    #"contactless_stored_payments_total{event="stored"} 7"#,
                    #"contactless_store_payments{state="stored"} 7.0"#,
                ])
            let oldest = try #require(backend.lines("contactless_store_oldest_payment_timestamp_seconds").first)
            #expect(abs(Double(oldest.split(separator: " ")[1])! - Date().timeIntervalSince1970) < 600)
            _ = try await bench.forwarder(terminal, batchSize: 3).forward()
            #expect(
                backend.samples == [
                    #"contactless_service_calls_total{call="batch",result="answered"} 3"#,
                    #"contactless_service_call_seconds_count{call="batch"} 3"#,
                    #"contactless_stored_payments_total{event="stored"} 7"#,
                    #"contactless_stored_payments_total{event="resolved"} 7"#,
                    #"contactless_forwarded_payments_total{result="approved"} 6"#,
                    #"contactless_forwarded_payments_total{result="declined"} 1"#,
                ])
            #expect(backend.lines("contactless_store_payments").allSatisfy { $0.hasSuffix(" 0.0") })
            #expect(backend.lines("contactless_store_oldest").last?.hasSuffix("_seconds 0.0") == true)
            #expect(backend.lines("contactless_forwarding_paused") == ["contactless_forwarding_paused 0.0"])
        }
        backend.expectOnlyTheTable()
    }

    @Test(
        "A pause of forwarding is seen until it goes on; a payment that is withdrawn or set aside is counted")
    func pause() async throws {
        let backend = NotingBackend()
        try await withMetricsFactory(backend) {
            let bench = try await ForwarderBench(BatchService(), payments: 3)
            let terminal = bench.terminal()
            let forwarder = bench.forwarder(terminal)
            bench.service.state.withLock { $0.refusal = .notAuthorized("who are you?") }
            _ = await thrown { try await forwarder.forward() }
            #expect(backend.lines("contactless_forwarding_paused") == ["contactless_forwarding_paused 1.0"])
            bench.service.state.withLock { $0.refusal = nil }
            #expect(try await forwarder.forward().approved == 3)
            #expect(
                backend.samples.filter { $0.contains("batch") } == [
                    #"contactless_service_calls_total{call="batch",result="answered"} 1"#,
                    #"contactless_service_calls_total{call="batch",result="not_authorized"} 1"#,
                    #"contactless_service_call_seconds_count{call="batch"} 2"#,
                ])
            #expect(backend.lines("contactless_forwarding_paused") == ["contactless_forwarding_paused 0.0"])
            for number in 3..<5 { try await ForwarderBench.store(number, in: terminal) }
            #expect(try await forwarder.cancel(ForwarderBench.name(3)) == .cancelled)
            try await bench.ledger(terminal).setAside(payment: ForwarderBench.name(4), reason: "a test")
            #expect(
                backend.samples.filter { $0.contains("stored_payments") || $0.contains("store_payments") } == [
                    #"contactless_stored_payments_total{event="stored"} 5"#,
                    #"contactless_stored_payments_total{event="withdrawn"} 1"#,
                    #"contactless_stored_payments_total{event="set_aside"} 1"#,
                    #"contactless_stored_payments_total{event="resolved"} 3"#,
                    #"contactless_store_payments{state="set_aside"} 1.0"#,
                ])
        }
        backend.expectOnlyTheTable()
    }

    @Test("A store that is damaged is counted as that")
    func damaged() async throws {
        let backend = NotingBackend()
        let bench = try await ForwarderBench(BatchService(), payments: 1)
        try FileManager.default.removeItem(at: bench.folder.appending(path: "store.head"))
        await withMetricsFactory(backend) {
            _ = await thrown { _ = try await bench.ledger(bench.terminal()).payments() }
        }
        #expect(backend.samples == [#"contactless_store_failures_total{reason="damaged"} 1"#])
    }
}
