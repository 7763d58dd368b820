import SmartCard
import TestSupport
import Testing

/// The fuzzer's target with its published inputs, Fuzz/corpora, and with small changes of them: the same in every run.
@Suite(.computing) struct PassFuzzTests {
    @Test(.timeLimit(.minutes(20)))
    func publishedInputs() throws {
        let corpus = try FuzzCorpus("passes")
        #expect(corpus.inputs.count > 5)
        for input in Tier.few(corpus.inputs + corpus.changed(1_000), 200) {
            do { try PassFuzzTargets.passes(input) } catch { Issue.record("\(error), for \(input.hex)") }
        }
    }
}
