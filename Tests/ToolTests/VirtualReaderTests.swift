import Foundation
import TestSupport
import Testing

/// `virtual-reader` from outside, judged by Debian's programs.
@Suite(
    .serialized,
    .enabled(
        if: ["pcscd", "opensc-tool", "pcsc_scan", "lsusb", "unshare"].allSatisfy(Program.isInstalled),
        "pcscd, opensc, pcsc-tools, usbutils or util-linux is not installed"))
struct VirtualReaderTests {
    private static let name = "ACS ACR122U PICC Interface 00 00"
    private let tool = Program.built("virtual-reader")

    private func run(_ arguments: String...) async throws -> Program.Outcome {
        try await Program.run([tool] + arguments)
    }

    // MARK: What programs see

    @Test("opensc-tool lists the reader, and no other") func openscToolListsTheReaderAndNoOther() async throws {
        let outcome = try await run("--card", "visa", "--", "opensc-tool", "--list-readers")
        #expect(outcome.status == 0, "\(outcome)")
        let readers = outcome.output.split(separator: "\n").filter { $0.first?.isNumber == true }
        #expect(readers.count == 1, "\(outcome)")
        // Number, card, features, name.
        let words = readers.first?.split(separator: " ", maxSplits: 2).map(String.init) ?? []
        #expect(words.prefix(2) == ["0", "Yes"])
        #expect(words.last?.trimmingCharacters(in: .whitespaces) == Self.name)
    }

    /// ATRs of the PC/SC workgroup's table for storage cards (PC/SC part 3 supplement, 1), and the examples of the ACS
    /// API v2.04: 3.1.2 for a type B card, `3B 8C 80 01`, the whole ATQB, TCK; 7.3 for FeliCa.
    @Test(
        "opensc-tool reads the ATR",
        arguments: [
            ("mifare-classic-1k", "3b:8f:80:01:80:4f:0c:a0:00:00:03:06:03:00:01:00:00:00:00:6a"),
            ("ntag213", "3b:8f:80:01:80:4f:0c:a0:00:00:03:06:03:00:03:00:00:00:00:68"),
            ("type-b", "3b:8c:80:01:50:12:23:45:56:12:53:54:4e:33:81:c3:55"),
            ("felica", "3b:8f:80:01:80:4f:0c:a0:00:00:03:06:03:f0:11:00:00:00:00:8a"),
        ])
    func openscToolReadsTheATR(card: String, atr: String) async throws {
        let outcome = try await run("--card", card, "--", "opensc-tool", "--atr")
        #expect(outcome.output == atr + "\n", "\(outcome)")
    }

    @Test("a log that cannot be written is reported at once") func aLogThatCannotBeWritten() async throws {
        let outcome = try await run("--card", "visa", "--pcscd-log", "/nonexistent/log", "--", "true")
        #expect(outcome.status == 125 && outcome.error.contains("/nonexistent/log: No such file"), "\(outcome)")
    }

    @Test("opensc-tool selects the payment directory") func openscToolSelectsThePaymentDirectory() async throws {
        let outcome = try await run(
            // SELECT 2PAY.SYS.DDF01 (EMV Book B, 3.3.2)
            "--card", "visa", "--", "opensc-tool", "--send-apdu", "00A404000E325041592E5359532E444446303100")
        #expect(outcome.output.contains("Received (SW1=0x90, SW2=0x00):"), "\(outcome)")
        #expect(outcome.output.contains("84 0E 32 50 41 59 2E 53 59 53 2E 44 44 46"), "\(outcome)")
    }

    @Test("a card removed and presented while pcsc_scan runs, a reader unplugged and plugged in")
    func aCardRemovedAndPresentedWhilePcscScanRunsAReaderUnpluggedAndPluggedIn() async throws {
        let socket = temporaryPath("control")
        let program = try Program([
            tool, "--card", "visa", "--control", socket, "--", "stdbuf", "-oL", "pcsc_scan", "-n",
        ])
        try await program.wait(for: "card") { $0.output.contains("Card inserted") }
        let control = try Control(socket)
        #expect(try control.send("remove") == "ok")
        try await program.wait(for: "removal") { $0.output.contains("Card removed") }
        #expect(try control.send("insert mifare-classic-1k") == "ok")
        try await program.wait(for: "other card") {
            $0.output.contains("MIFARE Classic 1K") || $0.output.contains("6A")
        }
        #expect(try control.send("unplug") == "ok")
        #expect(try control.send("unplug").hasPrefix("error: "))
        try await program.wait(for: "departure") { $0.output.contains("Waiting for the first reader") }
        #expect(try control.send("plug") == "ok")
        try await program.wait(for: "arrival") { $0.output.contains("found one") }
        #expect(try control.send("insert nothing").hasPrefix("error: no card is named 'nothing'"))
        #expect(try control.send("fault slow 20") == "ok")
        #expect(try control.send("fault haste").hasPrefix("error: "))
        #expect(try control.send("fault none") == "ok")
        #expect(try control.send("dance").hasPrefix("error: "))
        #expect(try control.send("quit") == "ok")
        #expect(try await program.outcome().status == 128 + SIGTERM)
        #expect(!FileManager.default.fileExists(atPath: socket))
    }

    /// More udev events than a listener's queue holds.  pcscd and libccid do not always come through that: what asks their
    /// thread to stop polling is lost where that does not poll yet (IFDHStopPolling of libccid 1.5.2 cancels a transfer, and
    /// there is none), so that a reader that pcscd takes in late and lets go at once keeps it until it leaves the bus.  It
    /// has to be pulled out until pcscd has seen that, and plugged in once more, as a person would.
    @Test("a reader plugged in and out faster than pcscd follows") func restlessReader() async throws {
        let socket = temporaryPath("control")
        let program = try Program([tool, "--card", "type-b", "--control", socket])
        try await program.wait(for: "readiness") { $0.error.contains("is ready") }
        let control = try Control(socket)
        let name = program.output.split(separator: "'").dropFirst().first.map(String.init) ?? ""
        /// What opensc-tool says as soon as it says `word`, and else in the end.
        func openscTool(_ option: String, until word: String, within patience: Duration) async throws -> String {
            let end = ContinuousClock.now + patience
            while true {
                let outcome = try await Program.run(
                    ["opensc-tool", option], environment: ["PCSCLITE_CSOCK_NAME": name])
                if outcome.output.contains(word) || .now > end { return "\(outcome)" }
            }
        }
        for _ in 0..<6 {
            #expect(try control.send("unplug") == "ok")
            #expect(try control.send("plug") == "ok")
        }
        let atr = "3b:8c:80:01:50:12:23:45:56:12:53:54:4e:33:81:c3:55"
        var seen = try await openscTool("--atr", until: atr, within: .seconds(15))
        if !seen.contains(atr) {
            #expect(try control.send("unplug") == "ok")
            let none = try await openscTool("--list-readers", until: "No smart card readers", within: .seconds(120))
            #expect(none.contains("No smart card readers"), "\(none)")
            #expect(try control.send("plug") == "ok")
            seen = try await openscTool("--atr", until: atr, within: .seconds(120))
        }
        #expect(seen.contains(atr))
        program.signal(SIGTERM)
        #expect(try await program.outcome().status == 0)
    }

    /// A program asks its device file after the device has left, and one opens the file at the last moment: what umockdev's
    /// library does then is done by hand (src/libumockdev-preload.c: `remote_emulate`; a request is three words, the first 1
    /// for an ioctl; 5 asks for memory, 3 gives the result and errno).
    @Test(
        "a program that holds the device file of a departed reader is notified",
        .enabled(if: Program.isInstalled("python3"), "python3 is not installed"))
    func fileOfAReaderThatHasLeft() async throws {
        let socket = temporaryPath("control")
        let outcome = try await run(
            "--usb", "--control", socket, "--", "/usr/bin/python3", "-c",
            """
            import fcntl, os, socket, struct, sys
            claim, node = 0x8004550F, "/dev/bus/usb/001/002"
            file = os.open(node, os.O_RDWR)
            control = socket.socket(socket.AF_UNIX)
            control.connect(sys.argv[1])
            control.send(b"unplug\\n")
            print(control.recv(9).decode(), end="")
            try: fcntl.ioctl(file, claim, bytearray(4))
            except OSError as error: print(error.errno)
            late = socket.socket(socket.AF_UNIX)
            late.connect(os.environ["UMOCKDEV_DIR"] + "/ioctl" + node)
            late.send(struct.pack("=3Q", 1, claim, 4096))
            kind, first, second = struct.unpack("=3Q", late.recv(24))
            if kind == 5:
                late.send(bytes(second))
                kind, first, second = struct.unpack("=3q", late.recv(24))
            print(kind, first, second)
            """, socket)
        // ENODEV.
        #expect(outcome.output == "ok\n19\n3 -1 19\n", "\(outcome)")
    }

    /// The device descriptor is that of a firmware 2.07 reader as captured (nfcpy issue 28), the class descriptor that
    /// of libccid's list of readers (readers/ACR122U_PICC.txt); lsusb spells `nMaxSlotIndex` and the like.
    @Test("lsusb reads the descriptors of an ACR122U") func lsusbReadsTheDescriptorsOfAnACR122U() async throws {
        let outcome = try await run("--usb", "--firmware", "2.07", "--", "lsusb", "-v", "-d", "072f:2200")
        let lines = Set(outcome.output.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") })
        for line in [
            "bcdUSB 1.10", "bMaxPacketSize0 8", "bcdDevice 2.07", "iManufacturer 1 ACS",
            "iProduct 2 ACR122U PICC Interface", "iSerial 0", "wTotalLength 0x005d", "bNumEndpoints 3",
            "bInterfaceClass 11 Chip/SmartCard", "dwProtocols 2 T=1", "dwMaxIFSD 256", "dwFeatures 00020040",
            "dwMaxCCIDMsgLen 271", "bEndpointAddress 0x81 EP 1 IN", "bEndpointAddress 0x02 EP 2 OUT",
            "bEndpointAddress 0x82 EP 2 IN",
        ] {
            #expect(lines.contains(line), "\(line) is missing in\n\(outcome)")
        }
    }

    @Test("a command without --usb sees no mock bus") func aCommandWithoutUsbSeesNoMockBus() async throws {
        let outcome = try await run("--", "sh", "-c", #"echo "$LD_PRELOAD$UMOCKDEV_DIR$VIRTUAL_READER_PRELOADED""#)
        #expect(outcome.output == "\n", "\(outcome)")
    }

    @Test("a bare card behind vpcd", .enabled(if: isVPCDInstalled, "vsmartcard-vpcd is not installed"))
    func aBareCardBehindVpcd() async throws {
        let list = try await run("--host", "vpcd", "--card", "type-b", "--", "opensc-tool", "--list-readers")
        #expect(list.output.contains("0    Yes             Virtual PCD 00 00"), "\(list)")
        #expect(!list.output.contains("ACR122U"), "\(list)")
        // Application data and protocol info of the ATQB in the ACS example, as PC/SC part 3, 3.1.3.2.3.1 has it.
        let atr = try await run("--host", "vpcd", "--card", "type-b", "--", "opensc-tool", "--atr")
        #expect(atr.output == "3b:88:80:01:12:53:54:4e:33:81:c3:00:23\n", "\(atr)")
        let apdu = try await run(
            "--host", "vpcd", "--card", "visa", "--", "opensc-tool", "--send-apdu",
            "00A404000E325041592E5359532E444446303100")
        #expect(apdu.output.contains("84 0E 32 50 41 59 2E 53 59 53 2E 44 44 46"), "\(apdu)")
    }

    @Test("a card removed and presented behind vpcd", .enabled(if: isVPCDInstalled, "vsmartcard-vpcd is not installed"))
    func aCardRemovedAndPresentedBehindVpcd() async throws {
        let socket = temporaryPath("control")
        let program = try Program([
            tool, "--host", "vpcd", "--control", socket, "--", "stdbuf", "-oL", "pcsc_scan", "-n",
        ])
        try await program.wait(for: "reader") { $0.output.contains("Virtual PCD 00 00") }
        let control = try Control(socket)
        #expect(try control.send("insert type-b") == "ok")
        try await program.wait(for: "card") { $0.output.contains("Card inserted") }
        #expect(try control.send("remove") == "ok")
        try await program.wait(for: "removal") { $0.output.components(separatedBy: "Card removed").count > 2 }
        #expect(try control.send("unplug").hasPrefix("error: "))
        #expect(try control.send("quit") == "ok")
        _ = try await program.outcome()
    }

    // MARK: Being a command's parent

    @Test("standard input, output, error and the exit status are the command's")
    func standardInputOutputErrorAndTheExitStatusAreTheCommandS() async throws {
        let outcome = try await Program.run(
            [tool, "--", "sh", "-c", "cat; echo trouble >&2; exit 7"], input: "two\nlines\n")
        #expect(outcome.status == 7)
        #expect(outcome.output == "two\nlines\n")
        #expect(outcome.error == "trouble\n")
    }

    @Test("a signal that ends the command shows in the exit status")
    func aSignalThatEndsTheCommandShowsInTheExitStatus() async throws {
        #expect(try await run("--", "sh", "-c", "kill -9 $$").status == 128 + SIGKILL)
    }

    @Test("signals reach the command", arguments: [SIGTERM, SIGINT, SIGHUP, SIGUSR1])
    func signalsReachTheCommand(signal: Int32) async throws {
        let program = try Program([
            tool, "--", "sh", "-c", "trap 'echo caught; exit 3' \(signal); echo ready; while :; do sleep 0.05; done",
        ])
        try await program.wait(for: "start") { $0.output.contains("ready") }
        program.signal(signal)
        let outcome = try await program.outcome()
        #expect(outcome.output == "ready\ncaught\n")
        #expect(outcome.status == 3)
    }

    @Test("without a command it says how to reach the reader, until it is interrupted")
    func withoutACommandItSaysHowToReachTheReaderUntilItIsInterrupted() async throws {
        let program = try Program([tool, "--card", "type-b"])
        try await program.wait(for: "readiness") { $0.error.contains("is ready") }
        let line = program.output.split(separator: "\n").first.map(String.init) ?? ""
        let socket = line.split(separator: "'").dropFirst().first.map(String.init) ?? ""
        #expect(line == "export PCSCLITE_CSOCK_NAME='\(socket)'")
        let other = try await Program.run(["opensc-tool", "--atr"], environment: ["PCSCLITE_CSOCK_NAME": socket])
        #expect(other.output == "3b:8c:80:01:50:12:23:45:56:12:53:54:4e:33:81:c3:55\n", "\(other)")
        program.signal(SIGINT)
        #expect(try await program.outcome().status == 0)
        #expect(!FileManager.default.fileExists(atPath: socket))
    }

    // MARK: What is left behind

    /// The machine's pcscd, if there is one, owns what is in /run/pcscd, and USB in the outer namespace is the kernel's.
    @Test("the machine's pcscd and its mounts are left alone") func theMachineSPcscdAndItsMountsAreLeftAlone()
        async throws
    {
        func state() throws -> [String] {
            let sockets = (try? FileManager.default.contentsOfDirectory(atPath: "/run/pcscd")) ?? []
            let identities = sockets.map { name in
                let attributes = try? FileManager.default.attributesOfItem(atPath: "/run/pcscd/\(name)")
                return "\(name) \(attributes?[.systemFileNumber] ?? 0)"
            }
            let mounts = try String(contentsOfFile: "/proc/self/mountinfo", encoding: .utf8)
            return identities.sorted() + mounts.split(separator: "\n").map(String.init)
        }
        let before = try state()
        let program = try Program([tool, "--card", "visa"])
        try await program.wait(for: "readiness") { $0.error.contains("is ready") }
        #expect(try state() == before)
        program.signal(SIGTERM)
        _ = try await program.outcome()
        #expect(try state() == before)
    }

    @Test("no process and no file outlives it", arguments: [SIGTERM, SIGKILL])
    func noProcessAndNoFileOutlivesIt(signal: Int32) async throws {
        let directory = temporaryPath("tmp")
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let program = try Program(
            [tool, "--card", "visa", "--", "sh", "-c", "echo ready; exec sleep 60"], environment: ["TMPDIR": directory])
        try await program.wait(for: "start") { $0.output.contains("ready") }
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory).count == 2)  // the mock bus, pcscd's
        #expect(processes(mentioning: directory).count >= 3)  // the tool, pcscd and its shell, the command
        program.signal(signal)
        _ = try await program.outcome()
        try await program.wait(for: "clean end") { _ in
            processes(mentioning: directory).isEmpty
                && (try? FileManager.default.contentsOfDirectory(atPath: directory)) == []
        }
    }

    /// libccid keeps a transfer pending on the interrupt endpoint and cancels it when it closes.  If the cancelled
    /// transfer did not come back, pcscd would have to be killed, after three seconds.
    @Test("pcscd ends in order") func pcscdEndsInPeace() async throws {
        let log = temporaryPath("log")
        defer { try? FileManager.default.removeItem(atPath: log) }
        let outcome = try await run("--pcscd-log", log, "--", "true")
        #expect(outcome.status == 0, "\(outcome)")
        let text = try String(contentsOfFile: log, encoding: .utf8)
        #expect(text.contains("ACS ACR122U"))
        // pcscd's last word, src/pcscdaemon.c.
        #expect(text.contains("cleaning /run/pcscd"), "\(text.suffix(500))")
    }

    @Test(
        "it works without root", .enabled(if: canDropRoot, "not root, or user namespaces are not permitted to others"))
    func itWorksWithoutRoot() async throws {
        // Others may be kept out of the build directory.
        let copy = temporaryPath("virtual-reader")
        defer { try? FileManager.default.removeItem(atPath: copy) }
        try await Program.copy(tool, to: copy)
        let outcome = try await Program.run(
            asNobody + [copy, "--card", "type-b", "--", "sh", "-c", "id -u && opensc-tool --atr"],
            environment: ["HOME": "/", "TMPDIR": "/tmp"])
        #expect(outcome.output == "65534\n3b:8c:80:01:50:12:23:45:56:12:53:54:4e:33:81:c3:55\n", "\(outcome)")
    }

    // MARK: Failures

    @Test("a card that does not exist") func aCardThatDoesNotExist() async throws {
        let outcome = try await run("--card", "vista", "--", "true")
        #expect(outcome.status == 125)
        let lines = outcome.error.split(separator: "\n")
        #expect(lines.count == 2)
        #expect(lines.first == "virtual-reader: no card is named 'vista'")
        #expect(lines.last?.contains("--list-cards") == true)
    }

    @Test("a card file with a mistake") func aCardFileWithAMistake() async throws {
        let file = temporaryPath("mistake.card")
        try "nonsense nonsense\n".write(toFile: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: file) }
        let outcome = try await run("--card", file, "--", "true")
        #expect(outcome.status == 125)
        #expect(outcome.error.hasPrefix("virtual-reader: \(file): line 1"), "\(outcome)")
    }

    @Test("a command that does not exist") func aCommandThatDoesNotExist() async throws {
        #expect(try await run("--", "no-such-command").status == 127)
        #expect(try await run("--", "/etc/passwd").status == 126)
    }

    @Test(
        "wrong usage",
        arguments: [
            ["--firmware", "3.0"], ["--fault", "haste"], ["--fault", "slow=fast"], ["--host", "qemu"], ["--nonsense"],
            ["--host", "vpcd", "--usb"], ["--host", "vpcd", "--fault", "slow"], ["--control", "/nowhere/socket"],
        ])
    func wrongUsage(arguments: [String]) async throws {
        let outcome = try await Program.run([tool] + arguments + ["--", "echo", "command has run"])
        #expect(outcome.status == 125, "\(outcome)")
        #expect(outcome.output.isEmpty)
        #expect(outcome.error.hasPrefix("virtual-reader: "))
    }

    @Test("a reader that leaves the bus during its first transfers")
    func aReaderThatLeavesTheBusDuringItsFirstTransfers() async throws {
        let outcome = try await run("--card", "visa", "--fault", "unplug=4", "--", "true")
        #expect(outcome.status == 125)
        #expect(outcome.error.hasPrefix("virtual-reader: the reader has left the bus\n"), "\(outcome)")
    }

    @Test(
        "opensc-tool ends whatever goes wrong",
        arguments: ["mute-card", "slow=10", "truncated-answers", "field-loss=1"])
    func openscToolComesToAnEndWhateverGoesWrong(fault: String) async throws {
        let outcome = try await run(
            "--card", "visa", "--fault", fault, "--", "timeout", "8", "opensc-tool", "--send-apdu",
            "00A404000E325041592E5359532E444446303100")
        // timeout(1) would say 124, and a crash 128 and more.
        #expect(outcome.status < 124, "\(outcome)")
    }

    @Test("lists of cards and faults") func listsOfCardsAndFaults() async throws {
        let cards = try await run("--list-cards")
        #expect(cards.status == 0)
        #expect(cards.output.split(separator: "\n").contains { $0.hasPrefix("mifare-classic-1k  ") })
        let faults = try await run("--list-faults")
        #expect(faults.output.split(separator: "\n").contains { $0.hasPrefix("slow=MILLISECONDS  ") })
        #expect(try await run("--help").status == 0)
        for (option, title, text) in [("--list-cards", "cards", cards), ("--list-faults", "faults", faults)] {
            let json = try await run(option, "--json")
            let rows = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: [[String: String]]]
            #expect(rows?[title]?.count == text.output.split(separator: "\n").count, "\(json)")
            #expect(rows?[title]?.allSatisfy { $0["name"] != nil && $0["summary"] != nil } == true)
        }
        let alone = try await run("--json", "--", "true")
        #expect(alone.status == 125 && alone.error.contains("--json goes with"), "\(alone)")
    }
}

private let isVPCDInstalled = FileManager.default.fileExists(atPath: "/usr/lib/pcsc/drivers/serial/libifdvpcd.so")

private let asNobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

private let canDropRoot: Bool = {
    let trial = Process()
    trial.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    trial.arguments = asNobody + ["unshare", "--map-root-user", "--mount", "true"]
    trial.standardError = FileHandle.nullDevice
    guard geteuid() == 0, (try? trial.run()) != nil else { return false }
    trial.waitUntilExit()
    return trial.terminationStatus == 0
}()

private func temporaryPath(_ name: String) -> String {
    FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString.prefix(8))-\(name)").path
}

/// The processes whose arguments or environment name a path; zombies have neither.
private func processes(mentioning path: String) -> [String] {
    let needle = Data(path.utf8)
    return ((try? FileManager.default.contentsOfDirectory(atPath: "/proc")) ?? []).filter { pid in
        guard Int(pid) != nil, Int(pid) != Int(ProcessInfo.processInfo.processIdentifier) else { return false }
        return ["cmdline", "environ"].contains { file in
            FileManager.default.contents(atPath: "/proc/\(pid)/\(file)")?.range(of: needle) != nil
        }
    }
}

/// The other end of a control socket.
private final class Control {
    struct Failure: Error {}
    private let descriptor: Int32

    init(_ path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw Failure() }
        var patience = timeval(tv_sec: 120, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit { close(descriptor) }

    func send(_ line: String) throws -> String {
        guard write(descriptor, line + "\n", line.utf8.count + 1) > 0 else { throw Failure() }
        var answer: [UInt8] = []
        var byte: UInt8 = 0
        while read(descriptor, &byte, 1) == 1 {
            if byte == UInt8(ascii: "\n") { return String(decoding: answer, as: UTF8.self) }
            answer.append(byte)
        }
        throw Failure()
    }
}
