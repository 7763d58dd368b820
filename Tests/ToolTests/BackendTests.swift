import Foundation
import SmartCardSimulator
import SmartCardSimulatorHosts
import TestSupport
import Testing
import USBTestSupport

/// `reader-probe` directly over USB: a software reader on a mock bus, without pcscd.
@Suite(.preloaded, .serialized, .enabled(if: Preloaded.obstacle == nil, "\(Preloaded.obstacle ?? "")"))
struct BackendTests {
    private static let name = "ACS ACR122U PICC Interface 072F:2200@1-2#0"

    private func probe(_ arguments: [String]) async throws -> Program.Outcome {
        try await Program.run(
            [Program.built("reader-probe")] + arguments, environment: ["PCSCLITE_CSOCK_NAME": "/nonexistent"])
    }

    @Test func everySubcommandOverUSB() async throws {
        let host = try UMockdevHost()
        defer { host.close() }
        let device = SoftwareACR122U()
        try host.plug(device)
        device.insert(try #require(VirtualCards.named("visa")))
        for command in [
            ["list"], ["card"], ["emv"], ["apdu", "00A404000E325041592E5359532E444446303100"], ["apdu", "FF00480000"],
            ["reader"], ["beep"], ["led", "green"], ["reset"], ["pay", "--amount", "1.00"], [],
        ] {
            for backend in ["usb", "auto"] {
                let outcome = try await probe(command + ["--backend", backend])
                #expect(outcome.status == 0 && outcome.error.isEmpty, "\(command): \(outcome)")
                if command.first != "apdu" { #expect(outcome.output.contains(Self.name), "\(command): \(outcome)") }
            }
        }
        let card = try await probe(["emv", "--json"])
        #expect(card.output.contains("\"backend\" : \"usb\"") && card.output.contains("476173******0010"), "\(card)")
        let pcsc = try await probe(["list", "--backend", "pcsc"])
        #expect(pcsc.status == 6, "\(pcsc)")
    }

    /// Two cards, so that the field goes on looking; a signal; and what the reader is left with, from outside.
    @Test(arguments: [SIGTERM, SIGINT, SIGHUP])
    func aSignalLeavesTheReaderLooking(_ signal: Int32) async throws {
        let host = try UMockdevHost()
        defer { host.close() }
        let device = SoftwareACR122U()
        try host.plug(device)
        for card in ["visa", "mastercard"] { device.insert(try #require(VirtualCards.named(card))) }
        let pay = try Program(
            [
                Program.built("reader-probe"), "pay", "--amount", "1.00", "--detect-collisions", "--timeout", "600",
                "--backend", "usb", "-v",
            ], environment: ["PCSCLITE_CSOCK_NAME": "/nonexistent"])
        try await pay.wait(for: "the collision") { $0.error.contains("one card only, processingError") }
        pay.signal(signal)
        #expect(try await pay.outcome().status == 128 + signal)
        let after = try await probe(["apdu", "FF00500000", "--backend", "usb"])
        #expect(after.output.contains("< 90FF"), "\(after)")
    }

    @Test func aReaderThatWasLeftWithoutPolling() async throws {
        let host = try UMockdevHost()
        defer { host.close() }
        let device = SoftwareACR122U()
        try host.plug(device)
        device.insert(try #require(VirtualCards.named("visa")))
        let off = try await probe(["apdu", "FF00517F00", "--backend", "usb"])
        #expect(off.output.contains("< 907F"), "\(off)")
        let ill = try await probe(["doctor", "--backend", "usb", "--timeout", "0"])
        #expect(ill.status == 5 && ill.output.contains("$ reader-probe reset --backend usb\n"), "\(ill)")
        let reset = try await probe(["reset", "--backend", "usb", "--json"])
        #expect(reset.status == 0 && reset.output.contains("\"error\" : null"), "\(reset)")
        let well = try await probe(["doctor", "--backend", "usb", "--timeout", "5"])
        #expect(well.status == 0 && well.output.contains("it looks for cards by itself"), "\(well)")
    }

    @Test(arguments: [["beep"], ["led", "red"], ["reset"]])
    func whatIsDoneToAReaderAsJSON(_ command: [String]) async throws {
        let host = try UMockdevHost()
        defer { host.close() }
        try host.plug(SoftwareACR122U())
        let outcome = try await probe(command + ["--backend", "usb", "--json"])
        let object = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: [[String: Any]]]
        let reader = try #require(object?["readers"]?.first, "\(outcome)")
        #expect((reader["reader"] as? [String: Any])?["name"] as? String == Self.name && reader["error"] is NSNull)
    }

    /// One that answers nothing is listed with what is wrong, beside those that do; alone, it is what the program ends with.
    @Test func aReaderThatAnswersNothingIsListed() async throws {
        let host = try UMockdevHost()
        defer { host.close() }
        try host.plug(SoftwareACR122U(faults: [SoftwareReaderFault(.wrongSequence)]))
        let outcome = try await probe(["list", "--backend", "usb"])
        #expect(outcome.status == 5 && outcome.output.hasPrefix(Self.name), "\(outcome)")
        #expect(outcome.output.contains("\n  ! "), "\(outcome)")
        let json = try await probe(["list", "--backend", "usb", "--json"])
        #expect(json.output.contains("\"state\" : \"unknown\"") && !json.output.contains("\"error\" : null"))
    }

    /// The kernel's driver gets it back.
    @Test(arguments: [SIGINT, SIGTERM, SIGHUP])
    func aRecordingGivesTheReaderBack(_ signal: Int32) async throws {
        let host = try UMockdevHost()
        defer { host.close() }
        try host.plug(SoftwareACR122U())
        let file = FileManager.default.temporaryDirectory.appendingPathComponent("\(UUID().uuidString).apdu").path
        let program = try Program(
            [Program.built("apdu-trace"), "record", "--backend", "usb", "--timeout", "600", "-o", file],
            environment: ["PCSCLITE_CSOCK_NAME": "/nonexistent"])
        try await program.wait(for: "claim") { _ in host.isClaimed }
        program.signal(signal)
        let outcome = try await program.outcome()
        #expect(outcome.status == 128 + signal && outcome.error.isEmpty, "\(outcome)")
        #expect(!host.isClaimed && !FileManager.default.fileExists(atPath: file))
    }

    @Test func theDoctorReadsACardOverUSB() async throws {
        let host = try UMockdevHost()
        defer { host.close() }
        let device = SoftwareACR122U()
        try host.plug(device)
        let empty = try await probe(["doctor", "--backend", "usb", "--timeout", "0"])
        #expect(empty.status == 4, "\(empty)")
        device.insert(try #require(VirtualCards.named("visa")))
        let outcome = try await probe(["doctor", "--backend", "usb", "--timeout", "5"])
        #expect(outcome.status == 0 && outcome.output.contains("FFCA000000 was answered with 9000"), "\(outcome)")
        #expect(outcome.output.contains("takes commands to itself by CCID over USB"))
        let automatic = try await probe(["doctor", "--timeout", "0"])
        #expect(automatic.status == 6 && automatic.output.contains("service.running"), "\(automatic)")
    }

    @Test func cardsAreWatchedOverUSB() async throws {
        let host = try UMockdevHost()
        defer { host.close() }
        let device = SoftwareACR122U()
        try host.plug(device)
        let watch = try Program([Program.built("reader-probe"), "watch", "--backend", "usb", "--json"])
        try await watch.wait(for: "reader") {
            $0.output.contains("readerAttached") && $0.output.contains("cardRemoved")
        }
        device.insert(try #require(VirtualCards.named("visa")))
        try await watch.wait(for: "card") { $0.output.contains("cardInserted") }
        watch.signal(SIGINT)
        _ = try await watch.outcome()
    }

    /// What ends the program does not keep it from giving the interface back.  (The mock bus takes it from nobody who ends
    /// without.)
    @Test(arguments: [
        ("list", nil), ("watch", SIGINT), ("watch", SIGTERM), ("watch", SIGHUP), ("watch", SIGPIPE),
        ("card --timeout 600", SIGINT), ("emv --timeout 600", SIGTERM), ("led green", SIGTERM),
    ])
    func whoeverEndsItTheReaderIsGivenBack(_ command: String, _ signal: Int32?) async throws {
        let host = try UMockdevHost()
        defer { host.close() }
        // It answers the commands of `led` too late.
        let device = SoftwareACR122U(faults: command.hasPrefix("led") ? [SoftwareReaderFault(.slow, 600_000)] : [])
        try host.plug(device)
        let line = "\(Program.built("reader-probe")) \(command) --backend usb"
        let program = try Program(
            ["sh", "-c", signal == SIGPIPE ? "env --default-signal=PIPE \(line) | head -n 1" : "exec \(line)"],
            environment: ["PCSCLITE_CSOCK_NAME": "/nonexistent"])
        if signal != nil { try await program.wait(for: "claim") { _ in host.isClaimed } }
        switch signal {
        case nil: break
        case SIGPIPE?:
            try await program.wait(for: "first line") { $0.output.contains("\n") }
            device.insert(try #require(VirtualCards.named("visa")))
        case let signal?: program.signal(signal)
        }
        let outcome = try await program.outcome()
        let status = signal.map { $0 == SIGPIPE ? 0 : 128 + $0 } ?? 0
        #expect(outcome.status == status && outcome.error.isEmpty, "\(outcome)")
        // sh does not wait for the one that writes into the pipe.
        try await program.wait(for: "release", timeout: .promptly) { _ in !host.isClaimed }
    }
}
