import SmartCard
import TestSupport
import Testing

/// The fuzzer's target with its published inputs, Fuzz/corpora, and with small changes of them: the same in every run.
@Suite(.computing) struct TravelDocumentImageFuzzTests {
    @Test(.timeLimit(.minutes(20)))
    func publishedInputs() throws {
        let corpus = try FuzzCorpus("travel-document-image")
        #expect(corpus.inputs.count > 10)
        for input in Tier.few(corpus.inputs + corpus.changed(1_000), 200) {
            do { try TravelDocumentImageFuzzTargets.image(input) } catch { Issue.record("\(error), for \(input.hex)") }
        }
    }
}
