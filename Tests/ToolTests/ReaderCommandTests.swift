import Foundation
import Synchronization
import TestSupport
import Testing

/// `reader-probe reader`, `beep` and `led`, with a pcscd that records their commands.
@Suite struct ReaderCommandTests {
    private let tool = Program.built("reader-probe")

    private func run(
        _ machine: DoctorMachine, _ arguments: [String]
    ) async throws -> (outcome: Program.Outcome, commands: [[UInt8]]) {
        let sent = Sent()
        try machine.startService { behavior in
            behavior.transmit = { _, command in
                sent.commands.withLock { $0.append(command) }
                // Firmware; lights: 90 and their state (ACS API v2.04, 6.3 and 6.2).
                return command[2] == 0x48 ? .data(Array("ACR122U207".utf8)) : .data([0x90, 0x02])
            }
            // SCARD_ATTR_VENDOR_NAME and CM_IOCTL_GET_FEATURE_REQUEST: escape, with its code (PC/SC part 10).
            behavior.attribute = { $0 == 0x0001_0100 ? .data(Array("ACS\0".utf8)) : .status(0x8010_001F) }
            behavior.control = { code, _ in
                code == 0x4200_0D48 ? .data([0x13, 0x04, 0x42, 0x00, 0x00, 0x01]) : .status(0x8010_0016)
            }
        }
        let outcome = try await Program.run(
            [tool] + arguments, environment: ["PCSCLITE_CSOCK_NAME": machine.socket])
        return (outcome, sent.commands.withLock { $0 })
    }

    private final class Sent: Sendable {
        let commands = Mutex<[[UInt8]]>([])
    }

    /// ACS API v2.04, 6.2: P2, T1, T2, repetitions, buzzer.
    @Test(arguments: [
        (["beep"], "FF 00 40 00 04 01 01 02 01"),
        (["beep", "--times", "3"], "FF 00 40 00 04 01 01 03 01"),
        (["led", "red"], "FF 00 40 0D 04 00 00 00 00"),
        (["led", "green"], "FF 00 40 0E 04 00 00 00 00"),
        (["led", "off"], "FF 00 40 0C 04 00 00 00 00"),
        (["led", "orange", "--blink", "2"], "FF 00 40 FF 04 02 02 02 00"),
    ])
    func lightsAndSound(_ arguments: [String], _ command: String) async throws {
        let (outcome, commands) = try await run(DoctorMachine(), arguments)
        #expect(outcome.status == 0, "\(outcome)")
        #expect(outcome.output == "ACS ACR122U PICC Interface 00 00\n")
        // Whether the driver passes commands on is asked first.
        #expect(
            commands.map { $0.map { String(format: "%02X", $0) }.joined(separator: " ") }
                == ["FF CA 00 00 00", command])
    }

    @Test func whatTheReaderIs() async throws {
        let (outcome, _) = try await run(DoctorMachine(), ["reader", "--json"])
        #expect(outcome.status == 0, "\(outcome)")
        let report = try #require(
            try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: [[String: Any]]])
        let reader = try #require(report["readers"]?.first)
        #expect(reader["firmware"] as? String == "ACR122U207")
        #expect(reader["features"] as? [String] == ["escape"])
        #expect(reader["route"] as? String == "SCardTransmit on a direct connection")
        #expect((reader["attributes"] as? [String: String])?["vendor"] == "ACS")
    }

    @Test(arguments: [["led"], ["led", "violet"], ["led", "red", "--blink", "0"], ["beep", "--times", "21"]])
    func nonsenseIsRefused(_ arguments: [String]) async throws {
        let outcome = try await Program.run([tool] + arguments, environment: ["PCSCLITE_CSOCK_NAME": "/nonexistent"])
        #expect(outcome.status == 2 && outcome.output.isEmpty, "\(outcome)")
    }

    @Test(arguments: ["doctor", "reader", "beep", "led", "reset"]) func help(_ subcommand: String) async throws {
        let outcome = try await Program.run([tool, subcommand, "--help"])
        #expect(outcome.status == 0 && outcome.output.contains("USAGE: reader-probe \(subcommand)"), "\(outcome)")
    }

    @Test(arguments: ["reader", "beep"]) func withoutAnyReader(_ command: String) async throws {
        let machine = try DoctorMachine()
        try machine.startService(readers: [])
        let outcome = try await Program.run(
            [tool, command, "--backend", "pcsc"], environment: ["PCSCLITE_CSOCK_NAME": machine.socket])
        #expect(outcome.status == 3 && outcome.output.isEmpty, "\(outcome)")
    }
}
