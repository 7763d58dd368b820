import ContactlessMetrics
import CoreMetrics
import Foundation
import TestSupport
import Testing

@Suite struct MetricTableTests {
    private static let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..").standardized

    @Test("Names are those of Prometheus' conventions, each once, and no label has a value that needs an escape")
    func names() {
        let rows = metrics.rows
        #expect(rows.count > 15 && Set(rows.map(\.name)).count == rows.count)
        for row in rows {
            #expect(row.name.wholeMatch(of: #/contactless_[a-z_]+/#) != nil, "\(row.name)")
            #expect((row.kind == .counter) == row.name.hasSuffix("_total"), "\(row.name)")
            #expect((row.kind == .histogram) == !row.bounds.isEmpty && row.bounds == row.bounds.sorted())
            #expect(row.help.wholeMatch(of: #/[0-9A-Z][^\\\n]+\./#) != nil, "\(row.help)")
            for (name, value) in row.series.joined() {
                #expect(name.wholeMatch(of: #/[a-z]+/#) != nil && value.wholeMatch(of: #/[a-z_.]+/#) != nil, "\(value)")
            }
        }
    }

    @Test("The article has the table of the code")
    func article() throws {
        let page = try String(
            contentsOf: Self.root.appending(
                path: "Sources/ContactlessMetrics/Documentation.docc/ContactlessMetrics.md"), encoding: .utf8)
        let rows = page.matches(of: #/(?m)^\| `(contactless_\w+)` \| (\w+) \| (.*?) \| (.*?) \|$/#)
        let written = rows.map { "\($0.1) \($0.2) \($0.3) \($0.4)" }
        let meant = metrics.rows.map { row in
            let names = row.series.first?.map(\.name) ?? []
            let labels = names.map { name in
                var values: [String] = []
                for case let (label, value) in row.series.joined() where label == name && !values.contains(value) {
                    values.append(value)
                }
                return "`\(name)`: \(values.map { "`\($0)`" }.joined(separator: ", "))"
            }
            return "\(row.name) \(row.kind) \(labels.joined(separator: "; ")) \(row.help)"
        }
        #expect(written == meant)
    }
}

/// The text and the alerts, judged by Prometheus' own program.
@Suite(.enabled(if: Promtool.isInstalled, "promtool is not installed")) struct PromtoolTests {
    @Test("promtool reads the text, and has nothing to say against it")
    func text() async throws {
        let exposition = Exposition()
        withMetricsFactory(exposition) {
            for state in MetricTable.StoreState.all { metrics.storeLevel.set(state, to: 1.5) }
            metrics.oldestPayment.set(to: 1_790_000_000.25)
            metrics.serviceTime.add(.batch, .milliseconds(1500))
        }
        let outcome = try await Promtool.run("check", "metrics", input: exposition.text)
        #expect(outcome.status == 0 && (outcome.output + outcome.error).isEmpty, "\(outcome)")
        // It does say what is wrong.
        let wrong = exposition.text.replacing("# TYPE contactless_card_seconds histogram\n", with: "")
        #expect(try await Promtool.run("check", "metrics", input: wrong).status != 0)
    }

    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../Examples/monitoring").standardized

    @Test("The alerts are valid, and are raised when they should be and not otherwise")
    func alerts() async throws {
        let (rules, test) = (
            Self.folder.appending(path: "kiosk.rules.yml").path, Self.folder.appending(path: "kiosk.test.yml").path
        )
        let checked = try await Promtool.run("check", "rules", "--lint=all", "--lint-fatal", rules)
        #expect(checked.status == 0, "\(checked)")
        let tested = try await Promtool.run("test", "rules", test)
        #expect(tested.status == 0, "\(tested)")
    }

    @Test("Each alert is tested raised and not raised, and names metrics and values of the table")
    func coverage() throws {
        func text(_ name: String) throws -> String {
            try String(contentsOf: Self.folder.appending(path: name), encoding: .utf8)
        }
        let (rules, test) = (try text("kiosk.rules.yml"), try text("kiosk.test.yml"))
        let alerts = rules.matches(of: #/- alert: (\w+)/#).map { String($0.1) }
        #expect(alerts.count > 5)
        for alert in alerts {
            #expect(test.contains("alertname: \(alert)\n        exp_alerts:\n"), "\(alert) is never raised")
            #expect(test.contains("alertname: \(alert)}\n"), "\(alert) is always raised")
        }
        let series = Dictionary(uniqueKeysWithValues: metrics.rows.map { ($0.name, Array($0.series.joined())) })
        for match in (rules + test).matches(of: #/(contactless_\w+)(?:\{(.*?)\})?/#) {
            let labels = try #require(series[String(match.1)], "\(match.1)")
            for label in (match.2 ?? "").matches(of: #/(\w+)(?:=|!=|=~|!~)"(.*?)"/#) where label.1 != "instance" {
                for value in label.2.split(separator: "|") {
                    #expect(labels.contains { $0 == (String(label.1), String(value)) }, "\(match.0): \(value)")
                }
            }
        }
    }
}
