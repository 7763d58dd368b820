import SmartCard
import TestSupport
import Testing

/// The fuzzer's targets with its published inputs, Fuzz/corpora, and with what little changes make of them: the same in
/// every run.  A trap ends the test process.
@Suite(.computing) struct TraceFuzzTests {
    private enum Target: String, CaseIterable {
        case imported = "import"
        case trace, redaction

        func take(_ input: [UInt8]) throws {
            switch self {
            case .imported: try TraceFuzzTargets.imported(input)
            case .trace: try TraceFuzzTargets.trace(input)
            case .redaction: try TraceFuzzTargets.redaction(input)
            }
        }
    }

    @Test("publish what is read, refused and redacted", .timeLimit(.minutes(5)), arguments: Target.allCases)
    private func publishedInputs(_ target: Target) throws {
        let corpus = try FuzzCorpus(target.rawValue)
        #expect(corpus.inputs.count > 10)
        for input in corpus.inputs + corpus.changed(100) {
            do { try target.take(input) } catch { Issue.record("\(error), for \(input.hex)") }
        }
    }
}
