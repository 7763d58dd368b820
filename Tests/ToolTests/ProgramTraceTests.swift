import Foundation
import SmartCard
import SmartCardTrace
import TestSupport
import Testing

/// `apdu-trace record -- PROGRAM` and `apdu-trace replay -- PROGRAM` with foreign programs.
@Suite struct ProgramTraceTests {
    private let tool = Program.built("apdu-trace")
    private let directory: URL

    init() throws {
        directory = FileManager.default.temporaryDirectory.appendingPathComponent("around-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    }

    private func path(_ name: String) -> String { directory.appendingPathComponent(name).path }

    private func file(_ name: String, _ text: String) throws -> String {
        try Data(text.utf8).write(to: URL(fileURLWithPath: path(name)))
        return path(name)
    }

    /// A program that selects the PPSE, in some language.
    enum Client: String, CaseIterable, CustomTestStringConvertible {
        /// Links libpcsclite.
        case linked
        /// C, opens libpcsclite by its name.
        case openSC
        /// Perl, the same.
        case scriptor
        /// Python with pyscard, the same.
        case python
        /// Java, opens libpcsclite by its path.
        case java

        var testDescription: String { rawValue }

        /// What is missing for those but Java.
        static var obstacle: String? {
            if !Program.isInstalled("opensc-tool") { return "opensc is not installed" }
            if !Program.isInstalled("scriptor") { return "pcsc-tools is not installed" }
            let hasPython = FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/smartcard")
            return hasPython ? nil : "python3-pyscard is not installed"
        }

        /// One that compiles.
        static var javaLauncher: String? {
            let folder = "/usr/lib/jvm"
            let machines = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
            return machines.map { "\(folder)/\($0)/bin" }
                .first { FileManager.default.isExecutableFile(atPath: "\($0)/javac") }.map { "\($0)/java" }
        }
    }

    private static let selectPPSE = "00A404000E325041592E5359532E444446303100"

    private func command(_ client: Client) throws -> [String] {
        switch client {
        case .linked:
            return [Program.built("first-program")]
        case .openSC:
            return ["opensc-tool", "--reader", "0", "--atr", "--send-apdu", Self.selectPPSE]
        case .scriptor:
            return ["scriptor", "-p", "T=1", try file("script", Self.selectPPSE + "\n")]
        case .python:
            let program = """
                from smartcard.System import readers
                card = readers()[0].createConnection()
                card.connect()
                print(card.getATR(), card.transmit(list(bytes.fromhex("\(Self.selectPPSE)"))))
                """
            return ["/usr/bin/python3", try file("client.py", program)]
        case .java:
            let program = """
                import javax.smartcardio.*;
                public class Client {
                    public static void main(String[] arguments) throws Exception {
                        var terminals = TerminalFactory.getDefault().terminals();
                        var card = terminals.list(CardTerminals.State.CARD_PRESENT).get(0).connect("*");
                        var name = "2PAY.SYS.DDF01".getBytes();
                        var response = card.getBasicChannel().transmit(new CommandAPDU(0, 0xA4, 4, 0, name, 256));
                        System.out.println(card + " " + java.util.HexFormat.of().formatHex(response.getBytes()));
                        card.disconnect(false);
                    }
                }
                """
            return [Client.javaLauncher ?? "java", try file("Client.java", program)]
        }
    }

    /// Runs a program with a card in vsmartcard's reader.
    private func withCard(_ command: [String], _ card: String = "visa") async throws -> Program.Outcome {
        try await Program.run([Program.built("virtual-reader"), "--host", "vpcd", "--card", card, "--"] + command)
    }

    @Test(
        "programs in every language are recorded and replayed without noticing",
        .enabled(if: ReaderProbeTests.hasService, "\(ReaderProbeTests.needsService)"),
        .enabled(if: Client.obstacle == nil, "\(Client.obstacle ?? "")"),
        arguments: Client.allCases.filter { $0 != .java })
    func everyLanguage(_ client: Client) async throws { try await recordAndReplay(client) }

    @Test(
        "so are programs in Java", .enabled(if: Client.javaLauncher != nil, "a compiler of Java is not installed"),
        .enabled(if: ReaderProbeTests.hasService, "\(ReaderProbeTests.needsService)"))
    func java() async throws { try await recordAndReplay(.java) }

    private func recordAndReplay(_ client: Client) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (command, trace) = (try command(client), path("x.apdu"))
        let plain = try await withCard(command)
        let recorded = try await withCard([tool, "record", "--clear", "-o", trace, "--"] + command)
        let remark = "apdu-trace: \(trace) will hold card data in the clear: apdu-trace redact takes it out\n"
        #expect(recorded.status == 0 && recorded.output == plain.output, "\(recorded)")
        #expect(recorded.error.replacing(remark, with: "") == plain.error, "\(recorded)")
        let events = try Trace(path: trace).events.map(\.what)
        #expect(events.dropFirst().first == .reader(ReaderIdentity(name: "Virtual PCD 00 00", backend: .pcsc)))
        // The card's own answer to reset; what it says of itself is in visa.card.
        let connections = events.filter { if case .connected = $0 { true } else { false } }
        #expect(!connections.isEmpty && events.contains { if case .disconnected = $0 { true } else { false } })
        let exchange = try #require(
            Trace(path: trace).exchanges().first { $0.command.hex == Self.selectPPSE }, "\(events)")
        guard case .bytes(let answer)? = exchange.answer else { throw TraceError(.notATrace) }
        #expect(answer.starts(with: [0x6F, 0x34, 0x84, 0x0E]) && answer.suffix(2) == [0x90, 0x00])
        #expect(exchange.duration > .zero)

        let replayed = try await Program.run([tool, "replay", trace, "--"] + command)
        #expect(replayed.status == 0 && replayed.output == plain.output && replayed.error == plain.error, "\(replayed)")
    }

    @Test(
        "a program that departs from the trace ends with 1, and is shown beside the trace",
        .enabled(if: ReaderProbeTests.hasService, "\(ReaderProbeTests.needsService)"),
        .enabled(if: Client.obstacle == nil, "\(Client.obstacle ?? "")"))
    func mismatch() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let trace = path("x.apdu")
        #expect(try await withCard([tool, "record", "--clear", "-o", trace, "--"] + command(.scriptor)).status == 0)
        let other = try file("other", "00A4040007A000000003101000\n")
        let replayed = try await Program.run([tool, "replay", trace, "--", "scriptor", "-p", "T=1", other])
        #expect(replayed.status == 1, "\(replayed)")
        #expect(replayed.error.contains("recorded") && replayed.error.contains("! \(Self.selectPPSE)"), "\(replayed)")
        // It has done nothing of what was recorded.
        let idle = try await Program.run([tool, "replay", trace, "--", "true"])
        #expect(idle.status == 1 && idle.error.contains("1 calls of the trace were not made"), "\(idle)")
        let failed = try await Program.run(
            [tool, "replay", trace, "--"] + ["sh", "-c", "\"$@\" && exit 9", "sh"] + command(.scriptor))
        #expect(failed.status == 9, "\(failed)")
    }

    @Test(
        "scriptor plays the script made from a trace, and the card answers as before",
        .enabled(if: ReaderProbeTests.hasService, "\(ReaderProbeTests.needsService)"),
        .enabled(if: Client.obstacle == nil, "\(Client.obstacle ?? "")"))
    func exportedScript() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let (trace, script) = (path("x.apdu"), path("y.script"))
        let commands = try file("x.script", Self.selectPPSE + "\n00A4040007A000000003101000\n80CA9F3600\n")
        #expect(
            try await withCard([tool, "record", "--clear", "-o", trace, "--", "scriptor", "-p", "T=1", commands]).status
                == 0)
        #expect(try await Program.run([tool, "convert", trace, "-o", script]).status == 0)
        let played = try await withCard(["scriptor", "-p", "T=1", script])
        let output = played.output.filter { !$0.isWhitespace }
        let exchanges = try Trace(path: trace).exchanges()
        #expect(played.status == 0 && exchanges.count == 3, "\(played)")
        for exchange in exchanges {
            guard case .bytes(let answer)? = exchange.answer else { throw TraceError(.notATrace) }
            #expect(output.contains(">\(exchange.command.hex)<\(answer.hex):"), "\(played)")
        }
    }

    @Test("the exit status, the input and the output are the program's")
    func foreground() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        func record(_ program: String..., input: String = "") async throws -> Program.Outcome {
            try await Program.run([tool, "record", "--force", "-o", path("x.apdu"), "--"] + program, input: input)
        }
        let cat = try await record("sh", "-c", "cat; exit 7", input: "in")
        #expect(cat.status == 7 && cat.output == "in", "\(cat)")
        #expect(cat.error == "apdu-trace: the program made no PC/SC call that could be recorded\n")
        #expect(try await record("sh", "-c", "kill -9 $$").status == 137)
        #expect(try await record(path("none")).status == 127)
        // Nothing is left in the way of another try.
        #expect(!FileManager.default.fileExists(atPath: path("x.apdu")))
        #expect(try await record(directory.path).status == 126)
        let there = try file("there.apdu", "apdu-trace 1\n")
        #expect(try await Program.run([tool, "record", "-o", there, "--", "true"]).status == 125)
    }

    @Test("signals from others reach the program, and ignored signals stay ignored")
    func signals() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let program = try Program([
            "sh", "-c", "trap '' HUP; exec \"$@\"", "sh", tool, "record", "-o", path("x.apdu"), "--", "sh", "-c",
            "trap 'exit 5' TERM; kill -HUP $$; echo ready; while :; do sleep 0.05; done",
        ])
        try await program.wait(for: "trap") { $0.output == "ready\n" }
        program.signal(SIGTERM)
        let outcome = try await program.outcome()
        #expect(outcome.status == 5, "\(outcome)")
    }

    // MARK: Programs in C

    private static let hasCompiler = Program.isInstalled("cc") && access("/usr/include/PCSC/winscard.h", R_OK) == 0

    private func compile(_ name: String, _ text: String, _ options: String...) async throws -> String {
        let source = try file("\(name).c", "#define _GNU_SOURCE\n" + text)
        let outcome = try await Program.run(
            ["cc", "-I/usr/include/PCSC", "-Wl,--no-as-needed", "-o", path(name), source] + options)
        try #require(outcome.status == 0, "\(outcome)")
        return path(name)
    }

    private static let invalidHandle = "80100003\n"

    @Test(
        "another library that replaces the same functions is called once, before or after",
        .enabled(if: hasCompiler, "cc with the headers of PC/SC is not installed"), arguments: [true, false])
    func otherInterposer(_ isBehind: Bool) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let other = try await compile(
            "other.so",
            """
            #include <PCSC/winscard.h>
            #include <dlfcn.h>
            #include <stdio.h>
            #include <stdlib.h>
            LONG SCardDisconnect(SCARDHANDLE card, DWORD disposition) {
                static int calls;
                if (calls++ > 0) _Exit(9);
                __typeof__(SCardDisconnect) *next = (__typeof__(next))dlsym(RTLD_NEXT, "SCardDisconnect");
                return next ? next(card, disposition) : -1;
            }
            """, "-shared", "-fPIC", "-ldl")
        let program = try await compile(
            "program",
            """
            #include <PCSC/winscard.h>
            #include <stdio.h>
            int main(void) { printf("%lx\\n", (unsigned long)SCardDisconnect(1, 0) & 0xFFFFFFFF); }
            """, "-lpcsclite")
        let outcome =
            if isBehind {
                try await Program.run(
                    [tool, "record", "-o", path("x.apdu"), "--", program], environment: ["LD_PRELOAD": other])
            } else {
                try await Program.run([
                    tool, "record", "-o", path("x.apdu"), "--", "sh", "-c", "LD_PRELOAD=$0:$LD_PRELOAD exec $1", other,
                    program,
                ])
            }
        #expect(outcome.status == 0 && outcome.output == Self.invalidHandle, "\(outcome)")
        #expect(outcome.error == "apdu-trace: the program has used no reader\n")
    }

    @Test(
        "libpcsclite remains available to a plug-in after the program has closed it",
        .enabled(if: hasCompiler, "cc with the headers of PC/SC is not installed"))
    func closedLibrary() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let plugin = try await compile(
            "plugin.so",
            """
            #include <PCSC/winscard.h>
            unsigned long plugin(void) { return (unsigned long)SCardDisconnect(1, 0) & 0xFFFFFFFF; }
            """, "-shared", "-fPIC", "-lpcsclite")
        // What is mapped where the library was makes sure that the plug-in's one is elsewhere.
        let program = try await compile(
            "program",
            """
            #include <dlfcn.h>
            #include <link.h>
            #include <stdio.h>
            #include <sys/mman.h>
            int main(int count, char **arguments) {
                void *library = dlopen("libpcsclite.so.1", RTLD_NOW);
                long (*disconnect)(long, unsigned long) = (long (*)(long, unsigned long))dlsym(library, "SCardDisconnect");
                struct link_map *map;
                dlinfo(library, RTLD_DI_LINKMAP, &map);
                void *place = (void *)map->l_addr;
                disconnect(1, 0);
                dlclose(library);
                mmap(place, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
                void *plugin = dlopen(arguments[count - 1], RTLD_NOW);
                printf("%lx\\n", ((unsigned long (*)(void))dlsym(plugin, "plugin"))());
            }
            """, "-ldl")
        let outcome = try await Program.run([tool, "record", "-o", path("x.apdu"), "--", program, plugin])
        #expect(outcome.status == 0 && outcome.output == Self.invalidHandle, "\(outcome)")
    }

    @Test(
        "calls after the last reported one are counted as missed",
        .enabled(if: hasCompiler, "cc with the headers of PC/SC is not installed"))
    func closedDescriptors() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let program = try await compile(
            "program",
            """
            #include <PCSC/winscard.h>
            #include <unistd.h>
            int main(void) {
                SCardDisconnect(1, 0);
                for (int i = 3; i < 1024; i++) close(i);
                SCardDisconnect(2, 0);
                SCardDisconnect(3, 0);
            }
            """, "-lpcsclite")
        let outcome = try await Program.run([tool, "record", "-o", path("x.apdu"), "--", program])
        #expect(outcome.status == 125, "\(outcome)")
        #expect(outcome.error.contains("2 calls are missing from the trace"), "\(outcome)")
    }

    /// A program in C, with a libpcsclite of its own: each card answers 9000; class FF never comes back, as when a signal
    /// handler leaves the call; ejecting fails; a reader is as the program says.
    private func recorded(
        _ program: String, _ options: String..., arguments: [String] = []
    ) async throws -> Program.Outcome {
        _ = try await compile(
            "libfake.so",
            """
            #include <PCSC/winscard.h>
            #include <setjmp.h>
            #include <string.h>
            sigjmp_buf *out;
            LONG SCardConnect(SCARDCONTEXT c, LPCSTR r, DWORD s, DWORD p, LPSCARDHANDLE card, LPDWORD protocol) {
                static SCARDHANDLE last;
                *card = __atomic_add_fetch(&last, 1, __ATOMIC_SEQ_CST);
                *protocol = SCARD_PROTOCOL_T1;
                return 0;
            }
            LONG SCardStatus(SCARDHANDLE c, LPSTR n, LPDWORD l, LPDWORD s, LPDWORD p, LPBYTE atr, LPDWORD length) {
                memcpy(atr, "\\x3B\\x80\\x80\\x01\\x01", *length = 5);
                return 0;
            }
            LONG SCardTransmit(
                SCARDHANDLE c, const SCARD_IO_REQUEST *s, LPCBYTE command, DWORD l, SCARD_IO_REQUEST *r, LPBYTE answer,
                LPDWORD length) {
                if (command[0] == 0xFF) siglongjmp(*out, 1);
                memcpy(answer, "\\x90", *length = 2);
                return 0;
            }
            LONG SCardDisconnect(SCARDHANDLE c, DWORD disposition) {
                return disposition == SCARD_EJECT_CARD ? SCARD_E_SHARING_VIOLATION : 0;
            }
            LONG SCardGetStatusChange(SCARDCONTEXT c, DWORD t, SCARD_READERSTATE *states, DWORD n) {
                states->dwEventState = states->dwCurrentState | SCARD_STATE_CHANGED;
                return 0;
            }
            """, "-shared", "-fPIC")
        let main = try await compile(
            "program",
            """
            #include <PCSC/winscard.h>
            #include <pthread.h>
            #include <setjmp.h>
            #include <stdlib.h>
            #include <sys/wait.h>
            #include <unistd.h>
            extern sigjmp_buf *out;
            static SCARDHANDLE open_card(const char *reader) {
                SCARDHANDLE card; DWORD protocol;
                SCardConnect(0, reader, 2, 2, &card, &protocol);
                return card;
            }
            static void send(SCARDHANDLE card, int first, int last) {
                BYTE command[] = {first, 0, 0, last}, answer[256]; DWORD length = sizeof answer;
                SCardTransmit(card, 0, command, sizeof command, 0, answer, &length);
            }
            \(program)
            """, path("libfake.so"), "-Wl,-rpath,\(directory.path)", "-lpcsclite", "-pthread")
        return try await Program.run([tool, "record", "-o", path("x.apdu")] + arguments + ["--", main])
    }

    @Test(
        "a program that leaves a call is still recorded, and one that fails to disconnect keeps the card",
        .enabled(if: hasCompiler, "cc with the headers of PC/SC is not installed"))
    func leftCalls() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let outcome = try await recorded(
            """
            int main(void) {
                sigjmp_buf place;
                SCARDHANDLE card = open_card("Reader A");
                out = &place;
                if (sigsetjmp(place, 1) == 0) send(card, 0xFF, 1);
                send(card, 0, 2);
                SCardDisconnect(card, SCARD_EJECT_CARD);
                send(card, 0, 3);
                SCardDisconnect(card, SCARD_LEAVE_CARD);
            }
            """)
        #expect(outcome.status == 0 && outcome.error == "", "\(outcome)")
        #expect(try exchanges() == ["apdu FF000001 cancelled", "apdu 00000002 9000", "apdu 00000003 9000"])
        let events = try Trace(path: path("x.apdu")).events.map(\.what)
        #expect(events.count { if case .disconnected = $0 { true } else { false } } == 1)
        #expect(events.last == .disconnected(.leave))
    }

    @Test(
        "a reader that was unplugged and returned is recorded with its new state",
        .enabled(if: hasCompiler, "cc with the headers of PC/SC is not installed"))
    func replugged() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let outcome = try await recorded(
            """
            int main(void) {
                SCARD_READERSTATE state = {.szReader = "Reader A"};
                for (int i = 0; i < 4; i++) {
                    state.dwCurrentState = i == 2 ? SCARD_STATE_UNKNOWN : SCARD_STATE_EMPTY;
                    SCardGetStatusChange(0, 0, &state, 1);
                }
            }
            """)
        #expect(outcome.status == 0, "\(outcome)")
        #expect(
            try Trace(path: path("x.apdu")).events.map(\.what).dropFirst(2)
                == [.slot(.empty), .failed(.slot, .init(.readerGone)), .slot(.empty)])
    }

    @Test(
        "a second reader's trace gets an unused name, which is reported",
        .enabled(if: hasCompiler, "cc with the headers of PC/SC is not installed"))
    func occupied() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let other = try file("x-2.apdu", "another recording")
        let program = #"int main(void) { send(open_card("Reader A"), 0, 1); send(open_card("Reader B"), 0, 2); }"#
        let outcome = try await recorded(program)
        #expect(outcome.status == 0, "\(outcome)")
        #expect(outcome.error == "apdu-trace: reader “Reader B” is in \(path("x-3.apdu"))\n")
        #expect(try exchanges("x-3.apdu") == ["apdu 00000002 9000"])
        #expect(try String(contentsOfFile: other, encoding: .utf8) == "another recording")
        let again = try await recorded(program, arguments: ["--force"])
        #expect(again.error == "apdu-trace: reader “Reader B” is in \(other)\n", "\(again)")
    }

    @Test(
        "no call is lost when many threads begin at once after a fork",
        .enabled(if: hasCompiler, "cc with the headers of PC/SC is not installed"))
    func threadsOfAChild() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let outcome = try await recorded(
            """
            static pthread_barrier_t barrier;
            static void *body(void *nothing) {
                pthread_barrier_wait(&barrier);
                SCardDisconnect(open_card("Reader A"), SCARD_LEAVE_CARD);
                return nothing;
            }
            int main(void) {
                open_card("Reader A");
                for (int i = 0; i < 40; i++) {
                    if (fork() == 0) {
                        pthread_t threads[8];
                        pthread_barrier_init(&barrier, 0, 8);
                        for (int k = 0; k < 8; k++) pthread_create(&threads[k], 0, body, 0);
                        for (int k = 0; k < 8; k++) pthread_join(threads[k], 0);
                        exit(0);
                    }
                    wait(0);
                }
            }
            """)
        #expect(outcome.status == 0 && outcome.error == "", "\(outcome)")
        let events = try Trace(path: path("x.apdu")).events.map(\.what)
        #expect(events.count { if case .connected = $0 { true } else { false } } == 321)
        #expect(events.count { if case .disconnected = $0 { true } else { false } } == 320)
    }

    @Test("record waits for a card on every reader")
    func everyReader() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let socket = "\(PCSCSocket.folder)/\(UUID().uuidString.prefix(8))"
        var behavior = FakePCSCD.Behavior()
        behavior.transmit = { _, _ in .data([0x6A, 0x82]) }
        let service = try FakePCSCD(
            path: socket,
            readers: [
                FakePCSCD.Reader("Reader A"), FakePCSCD.Reader("Reader B").inserting([0x3B, 0x80, 0x80, 0x01, 0x01]),
            ], behavior: behavior)
        defer { service.stop() }
        let outcome = try await Program.run(
            [tool, "record", "--backend", "pcsc", "--count", "1", "--timeout", "20", "-o", path("x.apdu")],
            environment: ["PCSCLITE_CSOCK_NAME": socket])
        #expect(outcome.status == 0, "\(outcome)")
        #expect(
            try Trace(path: path("x.apdu")).events.first?.what
                == .reader(ReaderIdentity(name: "Reader B", backend: .pcsc)))
    }

    @Test(
        "options without effect are refused",
        arguments: [
            (["replay", "FILE", "--config", "x", "--", "true"], "--config"),
            (["replay", "FILE", "--ca-keys=x", "--", "true"], "--ca-keys"),
            (["replay", "FILE", "--exception-file", "x", "--", "true"], "--exception-file"),
            (["replay", "FILE", "--json", "--", "true"], "--json"),
            (["replay", "FILE", "--currency", "EUR", "--", "true"], "--currency"),
            (["replay", "FILE", "--"], "no program behind --"),
            (["record", "-o", "FILE", "--"], "no program behind --"),
            (["replay", "FILE", "--currency", "EUR"], "--currency"), (["replay", "FILE", "--type", "cash"], "--type"),
            (["replay", "FILE", "--cashback", "1.00"], "--cashback"),
            (["replay", "FILE", "--unpredictable-number", "11223344"], "--unpredictable-number"),
        ])
    func ignoredOptions(_ arguments: [String], _ words: String) async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let trace = path("x.apdu")
        let outcome = try await Program.run([tool] + arguments.map { $0 == "FILE" ? trace : $0 })
        #expect(outcome.status == (arguments.contains("--") ? 125 : 2), "\(outcome)")
        #expect(outcome.error.contains(words) && !FileManager.default.fileExists(atPath: trace), "\(outcome)")
    }

    // MARK: A program in Perl, for what only a program that means it does

    private static let hasPerl =
        FileManager.default.fileExists(
            atPath: "/usr/lib/\(machine)-linux-gnu/perl5") && Program.isInstalled("scriptor")
    private static let machine: String = {
        var names = utsname()
        uname(&names)
        return withUnsafeBytes(of: &names.machine) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }()

    /// Connects to the readers of a made-up pcscd, records, and returns what became of the program.
    private func perl(
        _ program: String, readers: [String] = ["Reader A"], options: [String] = [],
        afterwards: () async throws -> Void = {}
    ) async throws -> Program.Outcome {
        var behavior = FakePCSCD.Behavior()
        behavior.control = { _, input in .data(input.reversed()) }
        behavior.transmit = { _, command in
            command.first == 0x80 ? .status(0x8010_0069) : .data([command.last ?? 0, 0x90, 0x00])
        }
        let socket = "\(PCSCSocket.folder)/\(UUID().uuidString.prefix(8))"
        let atr: [UInt8] = [0x3B, 0x80, 0x80, 0x01, 0x01]
        let service = try FakePCSCD(
            path: socket, readers: readers.map { FakePCSCD.Reader($0).inserting(atr) }, behavior: behavior)
        defer { service.stop() }
        let start = """
            use Chipcard::PCSC; use POSIX; $| = 1;
            my $context = new Chipcard::PCSC(); my @readers = $context->ListReaders();
            sub card { new Chipcard::PCSC::Card($context, shift) }
            my $card = card($readers[0]);

            """
        let outcome = try await Program.run(
            [tool, "record"] + options
                + ["-o", path("x.apdu"), "--", "perl", try file("client.pl", start + program)],
            environment: ["PCSCLITE_CSOCK_NAME": socket])
        try await afterwards()
        return outcome
    }

    private func exchanges(_ name: String = "x.apdu") throws -> [String] {
        try Trace(path: path(name)).exchanges().map { exchange in
            let answer =
                switch exchange.answer {
                case .bytes(let bytes)?: bytes.hex
                case .failure(let failure)?: failure.kind?.rawValue ?? "cancelled"
                case nil: "none"
                }
            return "\(exchange.layer) \(exchange.command.hex) \(answer)"
        }
    }

    @Test(
        "escape commands, errors and resets are in the trace", .enabled(if: hasPerl, "Perl with PC/SC is not installed")
    )
    func everyCall() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let outcome = try await perl(
            """
            $card->Transmit([0, 1, 2, 3]); $card->Transmit([0x80, 0, 0, 0]);
            $card->Control(0x42000001, [0xFF, 0, 0x48]); $card->Control(0x42000D48, [1, 2]);
            $card->Reconnect($Chipcard::PCSC::SCARD_SHARE_SHARED, $Chipcard::PCSC::SCARD_PROTOCOL_T1,
                $Chipcard::PCSC::SCARD_RESET_CARD);
            $card->Disconnect($Chipcard::PCSC::SCARD_UNPOWER_CARD);
            """)
        #expect(outcome.status == 0 && outcome.error == "", "\(outcome)")
        #expect(try exchanges() == ["apdu 00010203 039000", "apdu 80000000 cardRemoved", "escape FF0048 4800FF"])
        let events = try Trace(path: path("x.apdu")).events.map(\.what)
        #expect(events[1] == .redacted([]) && events[2] == .connected(ATR([0x3B, 0x80, 0x80, 0x01, 0x01]), .t1))
        #expect(events.suffix(3) == [.note("control code 42000D48: 2 bytes"), .reset, .disconnected(.powerOff)])
    }

    @Test("each reader has its own trace", .enabled(if: hasPerl, "Perl with PC/SC is not installed"))
    func severalReaders() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let outcome = try await perl(
            "my $other = card($readers[1]); $other->Transmit([0, 0, 0, 2]); $card->Transmit([0, 0, 0, 1]);",
            readers: ["Reader A", "Reader B"])
        #expect(outcome.error == "apdu-trace: reader “Reader B” is in \(path("x-2.apdu"))\n", "\(outcome)")
        #expect(try exchanges() == ["apdu 00000001 019000"])
        #expect(try exchanges("x-2.apdu") == ["apdu 00000002 029000"])
        let mode = try FileManager.default.attributesOfItem(atPath: path("x-2.apdu"))[.posixPermissions] as? Int
        #expect(mode == 0o600)
    }

    @Test("a program that forks is recorded on both sides", .enabled(if: hasPerl, "Perl with PC/SC is not installed"))
    func forks() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let outcome = try await perl(
            """
            $card->Transmit([0, 0, 0, 1]);
            if (fork() == 0) {
                my $parents = $context; $context = new Chipcard::PCSC(); my $mine = card($readers[0]);
                $mine->Transmit([0, 0, 0, 2]); POSIX::_exit(0);
            }
            wait(); $card->Transmit([0, 0, 0, 3]);
            """)
        #expect(outcome.status == 0 && outcome.error == "", "\(outcome)")
        let text = try String(contentsOfFile: path("x.apdu"), encoding: .utf8)
        #expect(
            try exchanges() == ["apdu 00000001 019000", "apdu 00000002 029000", "apdu 00000003 039000"], "\(text)")
    }

    @Test(
        "a program that reuses the library's descriptor keeps it",
        .enabled(if: hasPerl, "Perl with PC/SC is not installed")
    )
    func descriptors() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let outcome = try await perl(
            """
            use Socket; $card->Transmit([0, 0, 0, 1]);
            socketpair(my $a, my $b, AF_UNIX, SOCK_SEQPACKET, 0);
            die "not there" unless defined POSIX::dup2(fileno($a), 512);
            my $answer = $card->Transmit([0, 0, 0, 2]);
            close($a); POSIX::close(512);
            print join(" ", @$answer), "|", sysread($b, my $text, 100);
            """)
        #expect(outcome.output == "2 144 0|0", "\(outcome)")
        // The second command, its answer, and the end of the connection.
        #expect(outcome.status == 125 && outcome.error.contains(" calls are missing from the trace"), "\(outcome)")
        #expect(try exchanges() == ["apdu 00000001 019000"])
    }

    @Test("a program goes on when its recorder dies", .enabled(if: hasPerl, "Perl with PC/SC is not installed"))
    func recorderDies() async throws {
        defer { try? FileManager.default.removeItem(at: directory) }
        let done = path("done")
        let outcome = try await perl(
            """
            $SIG{PIPE} = sub { POSIX::_exit(3) }; $card->Transmit([0, 0, 0, 1]);
            select(undef, undef, undef, 0.01) until `cat '\(path("x.apdu"))'` =~ / < apdu /;
            my $recorder = getppid();
            die "not the recorder" unless readlink("/proc/$recorder/exe") =~ /apdu-trace$/;
            kill 9, $recorder;
            select(undef, undef, undef, 0.01) while getppid() == $recorder;
            my $answer = $card->Transmit([0, 0, 0, 2]);
            open(my $file, '>', '\(done).new'); print $file join(" ", @$answer); close($file);
            rename('\(done).new', '\(done)');
            """, options: ["--clear"]
        ) {
            for _ in 0..<4500 where !FileManager.default.fileExists(atPath: done) {
                try await Task.sleep(for: .milliseconds(10))
            }
        }
        #expect(try String(contentsOfFile: done, encoding: .utf8) == "2 144 0")
        #expect(outcome.status == 137)
        #expect(try exchanges().first == "apdu 00000001 019000")
    }
}
