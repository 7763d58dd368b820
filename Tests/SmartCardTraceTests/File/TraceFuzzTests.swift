import Foundation
import SmartCard
import SmartCardTrace
import TestSupport
import Testing

/// The fuzzer's targets with its published inputs, Fuzz/corpora, and with what little changes make of them: the same in
/// every run, in the fast tier some of them.  A trap ends the test process.
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

    @Test("publish what is read, refused and redacted", .timeLimit(.minutes(20)), arguments: Target.allCases)
    private func publishedInputs(_ target: Target) throws {
        let corpus = try FuzzCorpus(target.rawValue)
        #expect(corpus.inputs.count > 10)
        for input in Tier.few(corpus.inputs + corpus.changed(100), 30) {
            do { try target.take(input) } catch { Issue.record("\(error), for \(input.hex)") }
        }
    }

    @Test("have each importer among them, and files that it reads", arguments: ForeignFormat.all.filter(\.canImport))
    func importers(_ format: ForeignFormat) throws {
        let name = Array("\(format.name)\n".utf8)
        let files = try FuzzCorpus("import").inputs.filter { $0.starts(with: name) }.map {
            Array($0.dropFirst(name.count))
        }
        let read = files.filter { file in
            (try? Trace(reading: TraceImport(format, bytes: file)).events.isEmpty) == false
        }
        #expect(!read.isEmpty)
        let scripts = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../../Fuzz/corpus")
        let list = try String(contentsOf: scripts, encoding: .utf8).split(separator: "\n").first {
            $0.hasPrefix("formats=(")
        }
        #expect(list?.split { " ()".contains($0) }.contains(Substring(format.name)) == true)
    }
}
