import CardReaders
import SmartCard
import Synchronization
import TestSupport
import Testing

/// The commands of the documents in `Model.functions`, and missing commands.
@Suite(.simulatedTime) struct ReaderCommandsTests {
    /// Sends back what a reader of escape commands would, and notes what comes.
    private final class Noting: ReaderLink {
        let sent = Mutex<[String]>([])
        private let values: [String: String]

        init(_ values: [String: String]) { self.values = values }

        func transmit(_ command: [UInt8]) async throws -> [UInt8] {
            let hex = command.hex(separator: " ")
            sent.withLock { $0.append(hex) }
            if let value = values[hex] { return bytes(value) }
            // What is set is sent back.
            return [0xE1, 0x00, 0x00, 0x00] + command.dropFirst(4)
        }

        func close() async {}
    }

    private func commands(_ name: String, _ link: Noting) throws -> ReaderCommands {
        ReaderCommands(of: try #require(Model.of(name: name, id: nil)), over: link)
    }

    /// ACM1252U-Y3 reference manual v1.03, 5.3.1; ACR1255U-J1 v1.01, 6.6.1; ACR1281U-C1 API v1.08, 5.3.1: the examples there.
    @Test(arguments: [
        ("ACR1252 Dual", "E1 00 00 00 0F 41 43 52 31 32 35 32 55 5F 56 32 30 32 2E 32", "ACR1252U_V202.2"),
        (
            "ACR1255", "E1 00 00 00 14 41 43 52 31 32 35 35 55 2D 4A 31 20 53 57 56 20 31 2E 30 35",
            "ACR1255U-J1 SWV 1.05"
        ),
        ("ACR1281U", "E1 00 00 00 0F 41 43 52 31 32 38 31 55 5F 56 35 30 33 2E 31", "ACR1281U_V503.1"),
    ])
    func firmware(_ name: String, _ answer: String, _ version: String) async throws {
        let link = Noting(["E0 00 00 18 00": answer])
        #expect(try await commands(name, link).firmwareVersion() == version)
    }

    /// ACM1252U-Y3, 5.3.2: red 01, green 02; ACR1255U-J1, 6.6.3: green 01, red 02, blue 04; ACR1281U-C1, 5.3.2: red 01, green
    /// 02; acr1552u, 6.2.7: blue 01, green 02.
    @Test(
        arguments: [
            ("ACR1252 Dual", [.red], "01"), ("ACR1252 Dual", [.red, .green], "03"), ("ACR1255", [.red], "02"),
            ("ACR1255", [.blue], "04"), ("ACR1281U", [.green], "02"), ("ACR1552", [.blue], "01"), ("ACR1552", [], "00"),
        ] as [(String, Set<Model.Light>, String)])
    func lights(_ name: String, _ lights: Set<Model.Light>, _ bits: String) async throws {
        let link = Noting([:])
        try await commands(name, link).setLights(lights)
        #expect(link.sent.withLock { $0 } == ["E0 00 00 29 01 \(bits)"])
    }

    /// In units of 10 ms (ACM1252U-Y3, 5.3.4; ACR1255U-J1, 6.6.5; ACR1281U-C1, 5.3.4).
    @Test(arguments: ["ACR1252 Dual", "ACR1255", "ACR1281U", "ACR1552"]) func buzzer(_ name: String) async throws {
        let link = Noting([:])
        try await commands(name, link).beep(times: 2)
        #expect(link.sent.withLock { $0 } == ["E0 00 00 28 01 0A", "E0 00 00 28 01 0A"])
    }

    @Test("a missing command is named, and nothing is sent")
    func lacks() async throws {
        let link = Noting([:])
        for (body, words) in [
            ({ try await $0.beep(times: 1) }, "buzzer of the ACS ACR1251U"),
            ({ try await $0.setLights([.red]) }, "lights of the ACS ACR1251U"),
        ] as [((ReaderCommands) async throws -> Void, String)] {
            let error = await #expect(throws: CardError.self) { try await body(try commands("ACR1251", link)) }
            #expect(error?.kind == .unsupported && error?.description.contains(words) == true)
        }
        let error = await #expect(throws: CardError.self) { try await commands("ACR1552", link).setLights([.red]) }
        #expect(error?.description.contains("no red light") == true)
        #expect(link.sent.withLock { $0 }.isEmpty)
    }

    /// Bit 0 of 23 (ACM1252U-Y3, 5.3.9), bits 0 and 1 of 20 (5.3.11).
    @Test(arguments: [("8B", "1F", true, true), ("8A", "1F", false, true), ("8B", "1D", true, false)])
    func polling(_ polling: String, _ cards: String, _ isOn: Bool, _ findsPaymentCards: Bool) async throws {
        let link = Noting([
            "E0 00 00 23 00": "E1 00 00 00 01 \(polling)", "E0 00 00 20 00": "E1 00 00 00 01 \(cards)",
        ])
        let told = try await commands("ACR1252 Dual", link).polling()
        #expect(told.isOn == isOn && told.findsPaymentCards == findsPaymentCards)
        #expect(told.told.contains("(E000002300) is \(polling)") && told.told.contains("(E000002000) is \(cards)"))
    }

    /// ACM1252U-Y3, 5.3.9 and 5.3.11; ACR1281U-C1, 5.3.11, which has no default of 20; acr1552u, 6.1.6, none of 23.
    @Test(arguments: [
        ("ACR1252 Dual", ["E0 00 00 25 01 01", "E0 00 00 20 01 1F", "E0 00 00 23 01 8B"]),
        ("ACR1281U", ["E0 00 00 20 00", "E0 00 00 20 01 03", "E0 00 00 23 01 8F"]),
        ("ACR1552", ["E0 00 00 25 01 01", "E0 00 01 20 02 07 05", "E0 00 00 23 00", "E0 00 00 23 01 83"]),
    ])
    func defaults(_ name: String, _ sent: [String]) async throws {
        let link = Noting(["E0 00 00 20 00": "E1 00 00 00 01 03", "E0 00 00 23 00": "E1 00 00 00 01 82"])
        try await commands(name, link).restoreDefaults()
        #expect(link.sent.withLock { $0 } == sent)
    }

    @Test("each command has a source, and each reader of ACS has commands")
    func table() {
        for model in Model.all {
            #expect([.none, .chip].contains(model.commands) == model.functions.isEmpty, "\(model.name)")
            #expect((model.functions[.lights] == nil) == model.lights.isEmpty, "\(model.name)")
            for (function, command) in model.functions {
                #expect(!command.source.isEmpty && (command.get ?? command.set) != nil, "\(model.name) \(function)")
                for prefix in [command.get, command.set].compactMap({ $0 }) {
                    #expect(
                        [0xE0, 0xFF].contains(prefix[0]) && (prefix[0] == 0xFF || prefix.count == 4),
                        "\(model.name) \(function)")
                }
            }
        }
    }
}

private func bytes(_ hex: String) -> [UInt8] {
    hex.split(separator: " ").compactMap { UInt8($0, radix: 16) }
}
