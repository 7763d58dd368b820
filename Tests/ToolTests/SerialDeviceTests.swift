import SmartCardSimulator
import SmartCardSimulatorHosts
import TestSupport
import Testing

/// `reader-probe --device`: a software PN532 board behind a pseudo-terminal, and no pcscd.
@Suite(.timeLimit(.minutes(5))) struct SerialDeviceTests {
    private func probe(_ arguments: [String]) async throws -> Program.Outcome {
        try await Program.run(
            [Program.built("reader-probe")] + arguments, environment: ["PCSCLITE_CSOCK_NAME": "/nonexistent"])
    }

    @Test("every subcommand reads a card on a named board")
    func everySubcommand() async throws {
        let board = SoftwarePN532Board()
        let host = try PseudoTerminalHost(board)
        defer { host.close() }
        board.insert(try #require(VirtualCards.named("visa")))
        for (command, sign) in [
            (["list"], "(serial)"), (["card"], "A0000000031010"), (["emv"], "476173******0010"),
            (["reader"], "NXP PN532 board"), (["apdu", "00A404000E325041592E5359532E444446303100"], "9000"),
            (["pay", "--amount", "1.00"], "online request"),
            (["pay", "--amount", "1.00", "--detect-collisions"], "online request"),
        ] {
            let outcome = try await probe(command + ["--device", host.path, "--timeout", "20"])
            #expect(outcome.status == 0 && outcome.error.isEmpty, "\(command): \(outcome)")
            #expect(outcome.output.contains(sign), "\(command): \(outcome)")
        }
        // It has no lights, and its chip no firmware that would know.
        let light = try await probe(["led", "red", "--device", host.path])
        #expect(light.status == 5 && light.error.contains("no command for the lights"), "\(light)")
    }

    @Test("cards on a board are watched")
    func watch() async throws {
        let board = SoftwarePN532Board()
        let host = try PseudoTerminalHost(board)
        defer { host.close() }
        let watch = try Program([Program.built("reader-probe"), "watch", "--device", host.path, "--json"])
        try await watch.wait(for: "board") { $0.output.contains("readerAttached") }
        board.insert(try #require(VirtualCards.named("visa")))
        try await watch.wait(for: "card") { $0.output.contains("cardInserted") }
        watch.signal(2)
        _ = try await watch.outcome()
    }

    @Test("a device without a board is reported, whatever else is attached")
    func noBoard() async throws {
        let missing = try await probe(["list", "--device", "/dev/none-such"])
        #expect(missing.status == 3 && missing.error.contains("/dev/none-such"), "\(missing)")
        let both = try await probe(["list", "--device", "/dev/none-such", "--backend", "usb"])
        #expect(both.status == 2, "\(both)")
    }
}
