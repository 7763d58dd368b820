import ContactlessMetrics
import CoreMetrics
import Foundation
import TestSupport
import Testing

@Suite struct ExpositionTests {
    /// The lines of a metric's samples.
    private func lines(_ exposition: Exposition, _ name: String) -> [String] {
        exposition.text.split(separator: "\n").map(String.init).filter { $0.hasPrefix(name) }
    }

    @Test("A counter and a histogram are there with 0 from the start, a gauge once it is known")
    func start() {
        let exposition = Exposition()
        #expect(
            lines(exposition, "contactless_reversals_total") == [
                "contactless_reversals_total{result=\"confirmed\"} 0",
                "contactless_reversals_total{result=\"unconfirmed\"} 0",
            ])
        #expect(lines(exposition, "contactless_card_seconds_count") == ["contactless_card_seconds_count 0"])
        #expect(!exposition.text.contains("contactless_reader_present"))
        withMetricsFactory(exposition) { metrics.readerPresent.set(to: false) }
        #expect(lines(exposition, "contactless_reader_present") == ["contactless_reader_present 0.0"])
        #expect(exposition.text.contains("# TYPE contactless_reader_present gauge\ncontactless_reader_present 0.0\n"))
    }

    @Test("Each value is added to its own series")
    func values() {
        let exposition = Exposition()
        withMetricsFactory(exposition) {
            metrics.reads.add(.payment, .declined)
            metrics.reads.add(.payment, .declined, by: 4)
            metrics.reads.add(.pass, .completed)
            metrics.storeLevel.set(.setAside, to: 7)
            metrics.storeLevel.set(.setAside, to: 2)
        }
        let reads = lines(exposition, "contactless_reads_total").filter { !$0.hasSuffix(" 0") }
        #expect(
            reads == [
                "contactless_reads_total{request=\"payment\",result=\"declined\"} 5",
                "contactless_reads_total{request=\"pass\",result=\"completed\"} 1",
            ])
        #expect(
            lines(exposition, "contactless_store_payments") == [
                "contactless_store_payments{state=\"set_aside\"} 2.0"
            ])
    }

    @Test("A time counts in its bucket and in all above; a bound belongs to its bucket")
    func histogram() {
        let exposition = Exposition()
        withMetricsFactory(exposition) {
            for time in [50, 100, 101, 20_000] { metrics.cardTime.add(.milliseconds(time)) }
        }
        let name = "contactless_card_seconds"
        #expect(
            lines(exposition, name) == [
                "\(name)_bucket{le=\"0.1\"} 2", "\(name)_bucket{le=\"0.2\"} 3", "\(name)_bucket{le=\"0.3\"} 3",
                "\(name)_bucket{le=\"0.5\"} 3", "\(name)_bucket{le=\"0.75\"} 3", "\(name)_bucket{le=\"1.0\"} 3",
                "\(name)_bucket{le=\"2.0\"} 3", "\(name)_bucket{le=\"5.0\"} 3", "\(name)_bucket{le=\"15.0\"} 3",
                "\(name)_bucket{le=\"+Inf\"} 4", "\(name)_sum 20.251", "\(name)_count 4",
            ])
    }

    @Test("What is not in the table goes nowhere, whatever its name and its labels are")
    func foreign() {
        let exposition = Exposition()
        let before = exposition.text
        // TEST: a published account number.
        let number = "4761739001010010"
        withMetricsFactory(exposition) {
            Counter(label: "requests").increment()
            Counter(label: "contactless_reads_total", dimensions: [("card", number)]).increment()
            Counter(label: "contactless_reversals_total", dimensions: [("result", number)]).increment()
            Counter(label: "contactless_reversals_total").increment()
            Counter(label: "contactless_card_seconds\n\(number)").increment()
            Gauge(label: "contactless_card_seconds").record(1)
            Timer(label: "contactless_reader_present").recordNanoseconds(1)
            Meter(label: "contactless_card_seconds").set(1)
            FloatingPointCounter(label: "contactless_card_seconds").increment(by: 2.5)
            metrics.requests.add(MetricTable.Action(of: number), .error)
        }
        let other = "contactless_bridge_requests_total{action=\"other\",status=\"error\"}"
        #expect(exposition.text == before.replacing("\(other) 0\n", with: "\(other) 1\n"))
    }

    @Test("Values from many threads are all there")
    func threads() async {
        let exposition = Exposition()
        await withMetricsFactory(exposition) {
            await withTaskGroup { group in
                for _ in 0..<8 {
                    group.addTask {
                        for _ in 0..<1000 {
                            metrics.reversals.add(.confirmed)
                            metrics.storeTime.add(.milliseconds(250))
                        }
                    }
                }
            }
        }
        #expect(exposition.text.contains("contactless_reversals_total{result=\"confirmed\"} 8000\n"))
        #expect(exposition.text.contains("contactless_store_write_seconds_sum 2000.0\n"))
        #expect(exposition.text.contains("contactless_store_write_seconds_bucket{le=\"0.5\"} 8000\n"))
    }
}
