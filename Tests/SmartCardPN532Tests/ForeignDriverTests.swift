import Foundation
import Synchronization
import TestSupport
import Testing

/// libnfc and nfcpy, written against real readers, drive the software ones.  Where they disagree with these, these are wrong.
/// In the fast tier each has one card on each reader.
@Suite(.timeLimit(.minutes(10)), .serialized) struct ForeignDriverTests {
    /// nfcpy, as Tests/install installs it, and what has it read a card.
    private static let nfcpy = FileManager.default.currentDirectoryPath + "/.build/nfcpy"
    private static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("Judges/nfcpy-read.py").path

    private static let nfcpyObstacle =
        FileManager.default.fileExists(atPath: nfcpy + "/nfc")
        ? nil : "nfcpy is not installed from PyPI"
    private static let umockdevObstacle =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"].contains {
            FileManager.default.fileExists(atPath: $0 + "/libumockdev-preload.so.0")
        } ? nil : "umockdev is not installed"

    /// What a driver says that has waited in vain for an acknowledgment, for 100 ms.
    private static let impatience = [
        "Unable to read ACK", "waiting for ack", "No such device", "Connection timed out",
    ]
    private static let secondStarts = Mutex(0)

    /// Runs a program with a card on a virtual reader.
    ///
    /// A driver that lost patience with a busy machine, and says so, is started a second time, and two of them in all: of 280
    /// starts, eight at a time, none did.  Any other failure, and the second, counts.
    ///
    /// - Returns: what it wrote, to both of its outputs.
    private func run(
        _ card: String, on reader: [String], _ command: [String], until isDone: (String) -> Bool = { _ in true }
    ) async throws -> String {
        func start() async throws -> Program.Outcome {
            try await Program.run(
                [Program.built("virtual-reader"), "--card", card] + reader + ["--"] + command,
                environment: ["PYTHONPATH": Self.nfcpy, "LIBNFC_LOG_LEVEL": "3"])
        }
        var outcome = try await start()
        if !isDone(outcome.output), Self.impatience.contains(where: (outcome.output + outcome.error).contains) {
            let count = Self.secondStarts.withLock { count in
                count += 1
                return count
            }
            print("second start \(count), of \(command) with \(card), after:\n\(outcome.error.suffix(2000))")
            #expect(count <= 2, "a driver that loses patience so often has a reason")
            outcome = try await start()
        }
        return outcome.output + outcome.error
    }

    /// What the card files have.
    @Test(
        .enabled(if: Program.isInstalled("nfc-list"), "libnfc-bin is not installed"),
        arguments: Tier.first(
            [("visa", ["ISO14443A", "04  5a  3c  12  7e  61  80", "ATS: 78  80  70  02  20  63  cb  b6  80  0f"])],
            then: [
                ("ntag213", ["ISO14443A", "04  6d  2a  91  5c  70  80", "SAK (SEL_RES): 00"]),
                ("mifare-classic-1k", ["ISO14443A", "5e  8a  31  c4", "SAK (SEL_RES): 08"]),
                ("type-b", ["ISO14443B", "PUPI: 12  23  45  56"]),
                ("felica", ["Felica (212 kbps)", "Felica (424 kbps)", "02  fe  00  01  02  03  04  05"]),
            ]))
    func libnfcListsCards(_ card: String, _ expected: [String]) async throws {
        let output = try await run(card, on: ["--host", "pty"], ["nfc-list"]) { $0.contains("target(s) found") }
        for text in expected { #expect(output.contains(text), "\(output)") }
        #expect(!output.contains("error\tlibnfc.driver"), "\(output)")
    }

    /// It polls by InAutoPoll, and then waits until the card does not answer any more.
    @Test(
        .enabled(if: Program.isInstalled("nfc-poll"), "libnfc-examples is not installed"),
        arguments: Tier.few(
            [("type-b", "PUPI: 12  23  45  56"), ("visa", "5a  3c  12"), ("felica", "02  fe  00  01")], 1))
    func libnfcPollsForCards(_ card: String, _ expected: String) async throws {
        let control = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString.prefix(8)).control"
        let program = try Program([
            Program.built("virtual-reader"), "--host", "pty", "--control", control, "--", "stdbuf", "-o0", "nfc-poll",
        ])
        try await program.wait(for: "polling") { $0.output.contains("will poll") }
        try VirtualReaderProcess.perform("insert \(card)", at: control)
        try await program.wait(for: "the card") { $0.output.contains("Waiting for card removing") }
        #expect(program.output.contains(expected), "\(program.output)")
        try VirtualReaderProcess.perform("remove", at: control)
        let outcome = try await program.outcome()
        #expect(outcome.output.contains("done."), "\(outcome)")
    }

    private static let cards: [(String, [String])] = [
        ("ntag213", ["046D2A915C7080", "NTAG213", "https://swift.org"]),
        ("mifare-classic-1k", ["sdd_res=5E8A31C4", "sel_res=08"]),
        ("ndef-type4", ["Type4ATag", "https://swift.org"]),
        ("felica", ["Type3Tag", "02FE000102030405", "https://swift.org"]),
    ]

    @Test(
        .enabled(if: nfcpyObstacle == nil, "\(nfcpyObstacle ?? "")"),
        arguments: Tier.few(cards + [("type-b", ["sensb_res=501223455612", "Type4BTag"])], 1))
    func nfcpyReadsTagsOnABoard(_ card: String, _ expected: [String]) async throws {
        let read = "exec /usr/bin/python3 '\(Self.script)' tty \"$VIRTUAL_READER_DEVICE\""
        let output = try await run(card, on: ["--host", "pty"], ["sh", "-c", read]) { output in
            expected.allSatisfy { output.contains($0) }
        }
        for text in ["chipset PN532v1.6"] + expected { #expect(output.contains(text), "\(output)") }
    }

    @Test(
        .enabled(if: nfcpyObstacle == nil, "\(nfcpyObstacle ?? "")"),
        .enabled(if: umockdevObstacle == nil, "\(umockdevObstacle ?? "")"), arguments: Tier.few(cards, 1))
    func nfcpyReadsTagsOnAnACR122U(_ card: String, _ expected: [String]) async throws {
        let output = try await run(card, on: ["--no-pcscd"], ["/usr/bin/python3", Self.script, "usb"]) { output in
            expected.allSatisfy { output.contains($0) }
        }
        for text in expected { #expect(output.contains(text), "\(output)") }
    }

    // MARK: Debian's libccid, on a reader with two slots

    private static let slots = [
        "ACS ACR1252 Dual Reader [ACR1252 Dual Reader PICC] 00 00",
        "ACS ACR1252 Dual Reader [ACR1252 Dual Reader SAM] 01 00",
    ]

    @Test(.enabled(if: Program.isInstalled("opensc-tool"), "opensc is not installed"))
    func openscToolSeesBothSlots() async throws {
        let output = try await run("visa", on: ["--model", "acr1252u"], ["opensc-tool", "--list-readers"])
        let lines = output.split(separator: "\n").filter { $0.first?.isNumber == true }
        #expect(lines.map { $0.split(separator: " ", maxSplits: 2).prefix(2) } == [["0", "Yes"], ["1", "No"]])
        for (line, name) in zip(lines, Self.slots) { #expect(line.hasSuffix(name), "\(output)") }
    }

    @Test(.enabled(if: Program.isInstalled("pcsc_scan"), "pcsc-tools are not installed"))
    func pcscScanSeesBothSlots() async throws {
        let program = try Program([
            Program.built("virtual-reader"), "--model", "acr1252u", "--card", "visa", "--", "stdbuf", "-oL",
            "pcsc_scan",
            "-n",
        ])
        try await program.wait(for: "both slots") {
            $0.output.contains("Card inserted") && $0.output.contains("Card removed")
        }
        for name in Self.slots { #expect(program.output.contains(": \(name)"), "\(program.output)") }
        #expect(program.output.contains("ATR: 3B 86 80 01 20 63 CB B6 80 0F B6"), "\(program.output)")
        program.signal(SIGTERM)
    }

    @Test(.enabled(if: Program.isInstalled("scriptor"), "pcsc-tools are not installed"))
    func scriptorSpeaksToTheCard() async throws {
        let script = FileManager.default.temporaryDirectory.path + "/\(UUID().uuidString.prefix(8)).script"
        try "reset\n00A404000E325041592E5359532E444446303100\n".write(toFile: script, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: script) }
        let output = try await run("visa", on: ["--model", "acr1252u"], ["scriptor", "-r", Self.slots[0], script])
        #expect(output.contains("< OK: 3B 86 80 01 20 63 CB B6 80 0F B6"), "\(output)")
        #expect(output.contains("84 0E 32 50 41 59 2E 53 59 53 2E 44 44 46"), "\(output)")
        #expect(output.contains("90 00 : Normal processing."), "\(output)")
    }
}
