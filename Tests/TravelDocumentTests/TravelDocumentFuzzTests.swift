import SmartCard
import TestSupport
import Testing

/// The fuzzer's targets with its published inputs, Fuzz/corpora, and with small changes of them: the same in every run.
@Suite(.computing) struct TravelDocumentFuzzTests {
    private enum Target: String, CaseIterable {
        case parsing = "travel-document"
        case chip = "travel-document-chip"

        func take(_ input: [UInt8]) async throws {
            switch self {
            case .parsing: try TravelDocumentFuzzTargets.parsing(input)
            case .chip: try await TravelDocumentFuzzTargets.chip(input)
            }
        }
    }

    @Test(.timeLimit(.minutes(20)), arguments: Target.allCases)
    private func publishedInputs(_ target: Target) async throws {
        let corpus = try FuzzCorpus(target.rawValue)
        #expect(corpus.inputs.count > 10)
        for input in Tier.few(corpus.inputs + corpus.changed(1_000), 200) {
            do { try await target.take(input) } catch { Issue.record("\(error), for \(input.hex)") }
        }
    }
}
