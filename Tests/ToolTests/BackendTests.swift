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
}
