import Foundation
import TestSupport
import Testing

/// `kiosk-host` from outside: the tool, and its page in Debian's Chromium.
@Suite(.timeLimit(.minutes(5))) struct KioskHostTests {
    /// A kiosk-host that is running, with a folder for what it keeps.
    private final class Running: Sendable {
        let address: String
        private let program: Program
        private let folder = FileManager.default.temporaryDirectory.appending(path: "kiosk-host-\(UUID().uuidString)")

        /// Without privileges, as the unit starts it.
        private static let unprivileged = getuid() == 0 ? ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] : []

        init() async throws {
            program = try Program(
                Self.unprivileged + [Program.built("kiosk-host"), "--virtual", "--port", "0"],
                environment: [
                    "XDG_STATE_HOME": folder.path, "XDG_DATA_HOME": folder.path, "STATE_DIRECTORY": "",
                    "PCSCLITE_CSOCK_NAME": "/nonexistent",
                ])
            try await program.wait(for: "address") { $0.output.contains("\n") }
            address = try #require(program.output.split(separator: "\n").first.map(String.init), "\(program.error)")
        }

        /// What it has told the person who started it.
        var remarks: String { program.error }

        /// Ends it as a service manager does.
        func end() async throws {
            program.signal(SIGTERM)
            try await program.wait(for: "end") { !$0.isRunning }
        }

        deinit { try? FileManager.default.removeItem(at: folder) }
    }

    @Test(
        "C13 In Chromium a virtual passport is read, an order is paid with a phone's pass and card, and a receipt is printed",
        .enabled(if: Program.isInstalled("chromium"), "chromium is not installed"))
    func tour() async throws {
        let host = try await Running()
        let judge = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Judges/host_tour.py").path
        let outcome = try await Program.run(
            ["/usr/bin/python3", judge, host.address], environment: ["PYTHONDONTWRITEBYTECODE": "1"],
            timeout: .seconds(200))
        #expect(outcome.status == 0, "\(outcome)")
        for text in [
            "ANNA MARIA ERIKSSON", "The document has expired.", "€11.11", "****0001", "€1.23", "bridge over HTTP: 426",
        ] {
            #expect(outcome.output.contains(text), "\(text) is missing: \(outcome)")
        }
        #expect(!outcome.output.contains("MEMBER-0001"))
        // The receipt, as the card networks want it.
        for text in ["Example Kiosk", "Visa **** 0010", "A0000000031010", "11.11 EUR", "-1.23", "Response code"] {
            #expect(host.remarks.contains(text), "\(text) is missing: \(host.remarks)")
        }
        #expect(!host.remarks.contains("4761739001010010"))
        try await host.end()
    }

    /// Runs a trial of `Judges/host_trials.py`.
    private func trial(_ arguments: String...) async throws -> Program.Outcome {
        let judge = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Judges/host_trials.py").path
        let programs = URL(filePath: Program.built("kiosk-host")).deletingLastPathComponent().path
        let outcome = try await Program.run(
            ["/usr/bin/python3", judge, programs] + arguments, environment: ["PYTHONDONTWRITEBYTECODE": "1"],
            timeout: .seconds(280))
        print(outcome.output, terminator: "")
        #expect(outcome.status == 0, "\(outcome)")
        return outcome
    }

    @Test(
        "C13 A service that is killed during a tap pays nothing twice: the page says what is not known, and the next customer pays",
        .enabled(if: Program.isInstalled("chromium"), "chromium is not installed"),
        arguments: Tier.first(
            [("before the approval", "declined")],
            then: [
                ("before the card", "nothing"), ("while the card is read", "nothing"),
                ("after the approval", "declined"),
            ]))
    func killed(_ moment: String, _ booked: String) async throws {
        let outcome = try await trial("killed", moment)
        let line =
            "killed \(moment): “The payment may have happened”; booked: \(booked); then paid: ['11.11']"
        #expect(outcome.output.contains(line), "\(outcome)")
    }

    @Test(
        "C13 The second of two pages says so, and comes in when the first is closed",
        .enabled(if: Program.isInstalled("chromium"), "chromium is not installed"))
    func pages() async throws {
        #expect(
            try await trial("pages").output.contains(
                "second: This kiosk cannot be used This page is open in another window."))
    }

    @Test(
        "A reader that is unplugged at the checkout takes its way to pay along, and brings it back; a tap fails with it",
        .thorough(
            "a tour with a pcscd that looks for readers in its own time; the selection stays with KioskBridgeTests"),
        .enabled(if: Program.isInstalled("chromium"), "chromium is not installed"),
        .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"))
    func unplugged() async throws {
        let outcome = try await trial("unplugged")
        let lines = [
            "at the start: method.tap,method.voucher", "unplugged during the selection: method.voucher",
            "plugged in: method.tap,method.voucher", "after the failure: method.voucher",
            "plugged in again: method.tap,method.voucher",
        ]
        for line in lines { #expect(outcome.output.contains(line + "\n"), "\(line) is missing: \(outcome)") }
        #expect(outcome.output.contains("unplugged during the tap: The payment was not made."))
    }

    @Test(
        "C11 A payment is made while 10,000 messages of its page wait; a kiosk with nothing to do does not wake up",
        .enabled(if: Program.isInstalled("chromium"), "chromium is not installed"),
        arguments: ["flood", "idle"])
    func numbers(_ name: String) async throws {
        #expect(try await trial(name).output.contains("\(name): "))
    }

    @Test(
        "C13 Neither page nor service grow with their customers",
        .thorough("sixty customers; that the next one finds nothing of the last stays with PageTests"),
        .enabled(if: Program.isInstalled("chromium"), "chromium is not installed"))
    func customers() async throws {
        // Benchmarks/run bridge has 1,000 of them.
        #expect(try await trial("customers", "60").output.contains("60 customers in"))
    }

    @Test(
        "C13 With the managed policies Chromium opens the kiosk's page and nothing else",
        .enabled(if: Program.isInstalled("chromium"), "chromium is not installed"),
        .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"))
    func policies() async throws {
        let host = try await Running()
        let folder = URL(filePath: #filePath).deletingLastPathComponent()
        let policies = folder.appending(path: "../../Tools/kiosk-host/chromium-policies.json").path
        let outcome = try await Program.run(
            ["unshare"] + PrivatePCSCD.options + [
                "/usr/bin/python3", folder.appending(path: "Judges/host_policies.py").path,
                host.address, policies,
            ], environment: ["PYTHONDONTWRITEBYTECODE": "1"], timeout: .seconds(200))
        #expect(
            outcome.output == """
                kiosk: open
                other: net::ERR_BLOCKED_BY_ADMINISTRATOR
                file: net::ERR_BLOCKED_BY_ADMINISTRATOR

                """, "\(outcome)")
        try await host.end()
    }

    @Test("The page is served to its own name alone, and the tool ends with a signal")
    func served() async throws {
        let host = try await Running()
        let page = try await Program.run(["curl", "-sf", "-m", "60", host.address])
        #expect(page.output.contains(#"<meta name="kiosk-token" content=""#) && page.status == 0)
        let other = try await Program.run([
            "curl", "-s", "-m", "60", "-o", "/dev/null", "-w", "%{http_code}", "-H", "Host: evil.example", host.address,
        ])
        #expect(other.output == "421")
        for file in ["kiosk-bridge.js", "kiosk-bridge.d.ts", "app.js"] {
            #expect(try await Program.run(["curl", "-sf", "-m", "60", host.address + file]).status == 0)
        }
        try await host.end()
        #expect(try await Program.run(["curl", "-s", "-m", "60", host.address]).status == 7)
    }

    @Test("Cards are put on the virtual reader by hand, and each line is answered when that is done")
    func byHand() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "kiosk-host-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let lines = ["insert visa", "remove", "fault slow 5", "fault none", "fault odd", "insert nothing", "plug"]
        let program = try Program(
            [Program.built("kiosk-host"), "--virtual", "--port", "0", "--by-hand"],
            environment: [
                "XDG_STATE_HOME": folder.path, "XDG_DATA_HOME": folder.path, "STATE_DIRECTORY": "",
                "PCSCLITE_CSOCK_NAME": "/nonexistent",
            ], input: lines.map { $0 + "\n" }.joined())
        let isAnswer: @Sendable (Substring) -> Bool = { $0 == "ok" || $0.hasPrefix("error: ") }
        try await program.wait(for: "answers") {
            $0.output.split(separator: "\n").count(where: isAnswer) == lines.count
        }
        let answers = program.output.split(separator: "\n").filter(isAnswer)
        #expect(answers.prefix(4) == ["ok", "ok", "ok", "ok"])
        let reasons = ["odd", "no card “nothing”", "the commands are"]
        for (answer, reason) in zip(answers.dropFirst(4), reasons) { #expect(answer.contains(reason), "\(answer)") }
        program.signal(SIGTERM)
        try await program.wait(for: "end") { !$0.isRunning }
    }

    @Test(
        "As the first process of a container it ends with a signal, too",
        .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"))
    func firstProcess() async throws {
        let script = """
            unshare "$1" --pid --fork --mount-proc "$2" --virtual --port 0 >"$3/address" & parent=$!
            until [ -s "$3/address" ] || ! kill -0 $parent; do sleep 0.1; done
            kill -TERM $(cat /proc/$parent/task/$parent/children)
            wait $parent
            echo "status $?"
            """
        let folder = FileManager.default.temporaryDirectory.appending(path: "kiosk-host-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let outcome = try await Program.run(
            ["sh", "-c", script, "sh", PrivatePCSCD.options[0], Program.built("kiosk-host"), folder.path],
            environment: ["XDG_STATE_HOME": folder.path, "XDG_DATA_HOME": folder.path], timeout: .seconds(120))
        #expect(outcome.output == "status 143\n", "\(outcome)")
    }

    @Test(
        "Wrong usage is told with what is right",
        arguments: [
            (["--port", "65536"], "--port takes 0 to 65535"), (["--amount", "0"], "is no amount"),
            (["--amount", "1.234"], "is no amount"), (["--currency", "XXQ"], "is no currency"),
            (["--virtual", "--document", "none"], "no card “none”"), (["--pause", "-1"], "--pause"),
            (["--virtual", "--fault", "none"], "no fault is called 'none'"), (["--fault", "hung"], "--virtual"),
            (["--by-hand"], "--virtual"), (["--virtual", "--by-hand", "--card", "visa"], "not with --by-hand"),
            (["--document", "passport"], "go with --virtual"),
            (["--checkout"], "--checkout and --card-entry go with --service or --virtual"),
            (["--currency", "JPY"], "“12.34” is no amount in JPY: 1234 is one"), (["--currency", "XXX"], "costs"),
            (["--browser-argument", "x"], "--browser-argument goes with --browser"),
            (["--page", "/nonexistent"], "/nonexistent"),
            (["--merchant", "/nonexistent"], "/nonexistent cannot be read"),
            (["--merchant", #filePath], "is no merchant: it is no JSON"),
        ])
    func usage(_ arguments: [String], _ message: String) async throws {
        let outcome = try await Program.run([Program.built("kiosk-host")] + arguments)
        #expect(outcome.status == 2 || outcome.status == 64, "\(outcome)")
        #expect(outcome.error.contains(message), "\(outcome)")
    }

    @Test(
        "A browser that cannot begin is told, with what it needs",
        .enabled(if: Program.isInstalled("chromium"), "chromium is not installed"))
    func browser() async throws {
        let outcome = try await Program.run(
            [Program.built("kiosk-host"), "--virtual", "--port", "0", "--browser"],
            environment: ["DISPLAY": "", "WAYLAND_DISPLAY": ""])
        #expect(outcome.status == 5 && outcome.error.contains("It needs a display"), "\(outcome)")
    }

    @Test("A signal ends the browser, too, and removes its profile")
    func browserEnds() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "browser-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        // A browser by name, which says who it is, and that its profile is there.
        try await Program.write(
            script: #"ls -d "$TMPDIR"/kiosk-host-* >/dev/null && echo $$ > "$TMPDIR/pid"; exec sleep 600"#,
            to: folder.appending(path: "chromium").path)
        let program = try Program(
            [Program.built("kiosk-host"), "--virtual", "--port", "0", "--browser"],
            environment: [
                "PATH": "\(folder.path):/usr/bin:/bin", "TMPDIR": folder.path, "XDG_STATE_HOME": folder.path,
                "PCSCLITE_CSOCK_NAME": "/nonexistent",
            ])
        let file = folder.appending(path: "pid")
        try await program.wait(for: "browser") { _ in
            (try? String(contentsOf: file, encoding: .utf8))?.hasSuffix("\n") == true
        }
        let text = try String(contentsOf: file, encoding: .utf8).trimmingCharacters(in: .newlines)
        let browser = try #require(Int32(text))
        program.signal(SIGTERM)
        try await program.wait(for: "end") { !$0.isRunning }
        #expect(kill(browser, 0) == -1)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).allSatisfy { !$0.hasPrefix("kiosk-host-") }
        )
    }

    @Test("A port that is in use is named")
    func portInUse() async throws {
        let host = try await Running()
        let port = try #require(URL(string: host.address)?.port)
        let outcome = try await Program.run([Program.built("kiosk-host"), "--virtual", "--port", "\(port)"])
        #expect(outcome.status != 0 && outcome.error.contains("port \(port) is in use"), "\(outcome)")
        try await host.end()
    }
}
