import Foundation
import SmartCardSimulator
import SmartCardSimulatorHosts
import TestSupport
import Testing
import USBTestSupport

/// `reader-probe` straight over USB: a software reader on a mock bus, and no pcscd.
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
            ["reader"], ["beep"], ["led", "green"], ["pay", "--amount", "1.00"], [],
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
        let device = SoftwareACR122U(faults: command.hasPrefix("led") ? [ACR122UFault(.slow, 600_000)] : [])
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
