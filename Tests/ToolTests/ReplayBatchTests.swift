import Foundation
import TestSupport
import Testing

/// `apdu-trace replay` of many traces, from outside.  The oracle is the virtual card's own recorded outcome.
@Suite struct ReplayBatchTests {
    private let tool = Program.built("apdu-trace")
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("batch-\(UUID().uuidString)")
        .path

    private func run(_ arguments: [String]) async throws -> Program.Outcome {
        try await Program.run([tool] + arguments)
    }

    /// A folder with payments: `visa.apdu`, which goes online, and `sub/declined.apdu`.
    private func withTraces(_ body: () async throws -> Void) async throws {
        try FileManager.default.createDirectory(atPath: "\(folder)/sub", withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        for (card, file) in [("visa", "visa"), ("visa-decline", "sub/declined")] {
            let paid = try await run([
                "pay", "--clear", "--card", card, "--amount", "12.34", "-o", "\(folder)/\(file).apdu",
            ])
            #expect(paid.status == 0, "\(paid)")
        }
        try await body()
    }

    private func text(_ file: String) throws -> String {
        try String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8)
    }

    private func write(_ text: String, to file: String) throws {
        try Data(text.utf8).write(to: URL(fileURLWithPath: "\(folder)/\(file)"))
    }

    @Test("each trace's transaction is performed again; unchanged ones are listed only on request")
    func passing() async throws {
        try await withTraces {
            #expect(try text("visa.apdu").contains(#" meta transaction.amount "1234""#))
            #expect(try text("sub/declined.apdu").contains(#" meta outcome.kind "declined""#))
            let quiet = try await run(["replay", folder])
            #expect(quiet.status == 0 && quiet.output == "2 traces: 2 as recorded\n", "\(quiet)")
            let listed = try await run(["replay", "-v", "--kernel", "test", "--exact", folder, "\(folder)/visa.apdu"])
            #expect(
                listed.output == """
                    ok      \(folder)/sub/declined.apdu
                    ok      \(folder)/visa.apdu
                    2 traces: 2 as recorded

                    """, "\(listed)")
        }
    }

    @Test(
        "the random numbers for relay resistance and mag-stripe mode are those of the trace",
        arguments: ["mastercard-advance", "mastercard-stripe"])
    func drawnNumbers(_ card: String) async throws {
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let paid = try await run(["pay", "--clear", "--card", card, "--amount", "12.34", "-o", "\(folder)/card.apdu"])
        #expect(paid.status == 0, "\(paid)")
        let exact = try await run(["replay", "--exact", folder])
        #expect(exact.status == 0 && exact.output == "1 trace: 1 as recorded\n", "\(exact)")
        let key = "transaction.further-numbers"
        try write(text("card.apdu").replacing(key, with: "transaction.other-numbers"), to: "card.apdu")
        #expect(try await run(["replay", "--exact", folder]).status == 1)
    }

    @Test("a different outcome, different commands and an invalid file each have their own message, and fail")
    func failing() async throws {
        try await withTraces {
            let good = try text("visa.apdu")
            try write(good.replacing(#"outcome.kind "onlineRequest""#, with: #"outcome.kind "approved""#), to: "a.apdu")
            try write(good.replacing(" 95=0000000000", with: " 95=8000000000"), to: "b.apdu")
            try write(good.replacing("> apdu 00B2010C00", with: "> apdu 00B2020C00"), to: "c.apdu")
            try write("apdu-trace 1\n0.0 x\n", to: "d.apdu")
            try write(
                good.split(separator: "\n").filter { !$0.contains(" meta ") }.joined(separator: "\n") + "\n",
                to: "e.apdu")
            let outcome = try await run(["replay", folder, "--junit", "\(folder)/report.xml"])
            #expect(outcome.status == 2, "\(outcome)")
            for part in [
                "differs \(folder)/a.apdu\n    another outcome: recorded | replayed\n    ! outcome.kind  approved | onlineRequest\n",
                "    ! outcome.data  95=8000000000 | -\n    ! outcome.data  - | 95=0000000000\n",
                "    the trace has 00B2020C00 -> 9000 here, the program asks for 00B2010C00\n",
                "error \(folder)/d.apdu\n    line 2: a time of seconds with nine decimals was due\n",
                "there is no “meta transaction.amount”",
                "7 traces: 2 as recorded, 3 differ, 2 cannot be replayed\n",
            ] {
                #expect(outcome.output.contains(part), "\(part) in \(outcome)")
            }
            // Whoever has written the file may have put an account number there: a published test number.
            try write(
                good.replacing(" 95=0000000000", with: " 5A=4761739001010010 C1=4761739001010010")
                    .replacing(#"outcome.cvm "none""#, with: #"outcome.cvm "4761739001010010""#)
                    .replacing(#"outcome.aid "A0000000031010""#, with: #"outcome.aid "4761739001010010""#), to: "g.apdu"
            )
            let masked = try await run(["replay", "\(folder)/g.apdu", "--junit", "\(folder)/g.xml"])
            #expect(masked.status == 1 && masked.output.contains("5A=476173******0010 | -"), "\(masked)")
            #expect(try !masked.output.contains("4761739001010010") && !text("g.xml").contains("4761739001010010"))
            #expect(masked.output.contains("outcome.cvm  (hidden) | none"), "\(masked)")
            // Of differences alone it is 1; one trace is one.
            let one = try await run(["replay", "\(folder)/a.apdu"])
            #expect(one.status == 1 && one.output.contains("1 trace: "), "\(one)")
            #expect(!one.output.contains("--kernel"))
            try write(
                try text("a.apdu").replacing(
                    #"transaction.configuration "test""#, with: #"transaction.configuration "offline.json""#),
                to: "f.apdu")
            let configured = try await run(["replay", "\(folder)/f.apdu"])
            #expect(
                configured.output.contains("recorded with a file called offline.json; give its path: --kernel PATH"),
                "\(configured)")
            let chosen = try await run(["replay", "--kernel", "test", "\(folder)/f.apdu"])
            #expect(chosen.status == 1 && !chosen.output.contains("offline.json"), "\(chosen)")
            let updated = try await run(["replay", "--update", "\(folder)/a.apdu", "\(folder)/b.apdu"])
            #expect(updated.status == 0, "\(updated)")
            #expect(try await run(["replay", "\(folder)/a.apdu", "\(folder)/b.apdu"]).status == 0)
            #expect(try text("a.apdu").split(separator: "\n").count == good.split(separator: "\n").count)
        }
    }

    /// Python's expat reads it; the order and the names of elements and attributes are those of the schema that Jenkins's
    /// xUnit plugin publishes as junit-10.xsd.
    private static let judge = """
        import sys, re, xml.etree.ElementTree as E
        allowed = {
            'testsuites': {'name', 'time', 'tests', 'failures', 'disabled', 'errors'},
            'testsuite': {'name', 'tests', 'failures', 'errors', 'time', 'disabled', 'skipped', 'timestamp', 'hostname',
                          'id', 'package'},
            'testcase': {'name', 'assertions', 'time', 'classname', 'status'},
            'failure': {'message', 'type'}, 'error': {'message', 'type'}}
        children = {'testsuites': {'testsuite'}, 'testsuite': {'testcase'}, 'testcase': {'failure', 'error'},
                    'failure': set(), 'error': set()}
        root = E.parse(sys.argv[1]).getroot()
        assert root.tag == 'testsuites'
        for element in root.iter():
            assert set(element.attrib) <= allowed[element.tag], element.attrib
            assert {child.tag for child in element} <= children[element.tag], element.tag
            for name in {'tests', 'failures', 'errors', 'skipped'} & set(element.attrib):
                assert element.attrib[name].isdigit()
            if 'time' in element.attrib: float(element.attrib['time'])
            if 'timestamp' in element.attrib:
                assert re.fullmatch(r'\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d', element.attrib['timestamp'])
        for suite in root:
            assert int(suite.attrib['tests']) == len(suite.findall('testcase'))
            assert int(suite.attrib['failures']) == len(suite.findall('testcase/failure'))
            assert int(suite.attrib['errors']) == len(suite.findall('testcase/error'))
            for case in suite:
                assert case.attrib['name'] and case.attrib['classname']
                for result in case: print(case.attrib['name'] + '|' + result.tag + '|' + result.text)
        """

    @Test(
        "the JUnit report is XML, whatever the traces' names and contents",
        .enabled(if: Program.isInstalled("python3"), "python3 is not installed"))
    func junit() async throws {
        try await withTraces {
            let name = "a<b>&\"c'\u{1B}]]>ü\n.apdu"
            let outcome = #"outcome.kind "]]> \u{1B} <x> \u{FFFF} & ]]]]>>""#
            try write(try text("visa.apdu").replacing(#"outcome.kind "onlineRequest""#, with: outcome), to: name)
            try write("apdu-trace 1\n0.0 x\n", to: "z.apdu")
            let report = "\(folder)/report.xml"
            #expect(try await run(["replay", folder, "--junit", report]).status == 2)
            let judged = try await Program.run(["python3", "-c", Self.judge, report])
            #expect(judged.status == 0, "\(judged)")
            #expect(
                judged.output.contains("a<b>&\"c']]>ü\n.apdu|failure|another outcome: recorded | replayed\n"),
                "\(judged)")
            #expect(judged.output.contains("! outcome.kind  ]]>  <x>  & ]]]]>> | onlineRequest\n"), "\(judged)")
            #expect(judged.output.contains("z.apdu|error|line 2: a time of seconds"), "\(judged)")
        }
    }

    @Test("shards are disjoint and complete, and independent of the folder's location")
    func shards() async throws {
        for place in ["one", "two/three"] {
            try FileManager.default.createDirectory(atPath: "\(folder)/\(place)", withIntermediateDirectories: true)
            for number in 0..<40 { try write("", to: "\(place)/\(number).apdu") }
        }
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func part(_ shard: String, of place: String) async throws -> [String] {
            let outcome = try await run(["replay", "--shard", shard, "--json", "\(folder)/\(place)"])
            let object = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any]
            let traces = object?["traces"] as? [[String: Any]] ?? []
            return traces.compactMap { ($0["file"] as? String)?.split(separator: "/").last.map(String.init) }
        }
        var all: [String] = []
        for index in 1...3 {
            let files = try await part("\(index)/3", of: "one")
            #expect(!files.isEmpty && files.count < 40)
            #expect(try await part("\(index)/3", of: "two/three") == files)
            all += files
        }
        #expect(all.count == 40 && Set(all).count == 40)
        // FNV-1a with 64 bits, computed in Python.
        let first = try await part("1/3", of: "one").filter { $0.count == "0.apdu".count }
        #expect(first == ["2.apdu", "3.apdu", "7.apdu"])

        for shard in ["0/3", "4/3", "1/0", "1", "x/y", "1/2/3"] {
            #expect(try await run(["replay", "--shard", shard, folder]).status == 2)
        }
    }

    @Test("no traces, a missing file, and incompatible options are usage errors")
    func usage() async throws {
        try await withTraces {
            try FileManager.default.createDirectory(atPath: "\(folder)/empty", withIntermediateDirectories: true)
            for (arguments, words) in [
                (["\(folder)/empty"], "no trace in"), (["\(folder)/none.apdu"], "does not exist"), ([], "file"),
                ([folder, "--amount", "1.00"], "is a directory"),
                ([folder, folder, "--amount", "1.00"], "for one trace"),
                (["\(folder)/visa.apdu", "--amount", "1.00", "--junit", "x"], "for one trace"),
                ([folder, "--kernel", "/nonexistent"], "cannot be read"),
                ([folder, "--junit", "/nonexistent/x"], "cannot be written"),
                ([folder, "--kernel", "test", "--config", "x"], "exclude each other"),
                ([folder, "--shard", "0/3"], "--shard 1/3"),
            ] {
                let outcome = try await run(["replay"] + arguments)
                #expect(outcome.status == 2 && outcome.error.contains(words), "\(arguments): \(outcome)")
            }
        }
    }
}
