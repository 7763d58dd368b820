import SmartCard
import SmartCardSimulator
import Testing
import TravelDocument

/// The reader's side against the passports that a card file describes, which are written apart from it.
@Suite struct VirtualPassportTests {
    private static let zone = """
        P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<
        L898902C36UTO7408122F1204159ZE184226B<<<<<10
        """

    private static func card(
        _ statements: String = "", zone: [String] = zone.split(separator: "\n").map(String.init)
    ) throws -> any VirtualCard {
        try CardFile(
            parsing: """
                card passport {
                    type-a {
                        uid  08 4A 5B 6C
                        atqa 0008
                        sak  20
                        ats  05 78 77 80 02
                    }
                    mrz "\(zone.joined(separator: "\" \""))"
                    data-group 13 {
                        6D 03 01 02 03
                    }
                    \(statements)
                }
                """
        ).makeCard()
    }

    /// Answers as the card does, at once.
    private struct Channel: CardChannel {
        let card: any VirtualCard
        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
            try ResponseAPDU(try #require(card.exchange(command.bytes)))
        }
    }

    @Test(
        "each cipher with each curve opens the chip, with the zone and with the number",
        arguments: ["3des", "aes-128", "aes-192", "aes-256"], 8...18)
    func opens(_ cipher: String, _ curve: Int) async throws {
        let card = try Self.card("can 123456\npace ecdh-gm \(cipher) \(curve)\nbac no")
        let chip = TravelDocumentChip(over: Channel(card: card))
        for key in [AccessKey(try MachineReadableZone(Self.zone)), try AccessKey("123456", kind: .cardAccessNumber)] {
            card.reset()
            let access = try await chip.open(with: key)
            #expect("\(access.method)".contains(cipher.uppercased()) && !access.isDowngraded)
            #expect(try await chip.read(.dataGroup(13)) == [0x6D, 0x03, 0x01, 0x02, 0x03])
            #expect(try MachineReadableZone(parsing: try await chip.read(.dataGroup(1))).documentNumber == "L898902C3")
        }
    }

    @Test("a chip without the older protocol opens with no other number and no other zone")
    func closed() async throws {
        let chip = TravelDocumentChip(
            over: Channel(card: try Self.card("can 123456\npace ecdh-gm aes-128 12\nbac no")))
        for number in ["123457", "12345", "1234566"] {
            let error = await #expect(throws: AccessError.self) {
                try await chip.open(with: AccessKey(number, kind: .cardAccessNumber), allowingDowngrade: true)
            }
            #expect(error?.failures.first?.refusal == .wrongKey(triesLeft: nil))
        }
        await #expect(throws: AccessError.self) {
            try await chip.open(
                with: AccessKey(documentNumber: "L898902C4", dateOfBirth: "740812", dateOfExpiry: "120415"),
                allowingDowngrade: true)
        }
    }

    @Test("a long document number of a card continues in the optional data")
    func longNumber() async throws {
        // ICAO 9303-5, appendix C.2: the number D23145890734.
        let lines = [
            "I<UTOD23145890<7349<<<<<<<<<<<", "3407127M9507122UTO<<<<<<<<<<<2", "STEVENSON<<PETER<JOHN<<<<<<<<<",
        ]
        let chip = TravelDocumentChip(over: Channel(card: try Self.card(zone: lines)))
        let key = try AccessKey(documentNumber: "D23145890734", dateOfBirth: "340712", dateOfExpiry: "950712")
        #expect(try await chip.open(with: key).method == .basicAccessControl)
    }

    // MARK: Proofs of being the original

    @Test(
        "chip authentication with each cipher and each curve goes on in a session of its own, and tells a copy",
        arguments: ["3des", "aes-128", "aes-192", "aes-256"], 8...18)
    func chipAuthentication(_ cipher: String, _ curve: Int) async throws {
        for (copied, verdict) in [("", ChipAuthentication.Verdict.genuine), ("copied", .notGenuine)] {
            let card = try Self.card("chip-authentication \(cipher) \(curve) \(copied)")
            let chip = TravelDocumentChip(over: Channel(card: card))
            try await chip.open(with: AccessKey(try MachineReadableZone(Self.zone)))
            let infos = try await chip.read(.dataGroup(14))
            #expect(try await chip.authenticateChip(securityInfos: infos) == verdict)
            guard verdict == .genuine else { continue }
            #expect(try await chip.read(.dataGroup(13)) == [0x6D, 0x03, 0x01, 0x02, 0x03])
            // Once more, from the new session.
            #expect(try await chip.authenticateChip(securityInfos: infos) == .genuine)
        }
    }

    /// A variant of the built-in passport, read with all of its proofs.
    private static func read(_ parameters: String) async throws -> DocumentReading {
        let card = try CardFile(parsing: "variant passport {\n\(parameters)\n}").makeCard()
        let chip = TravelDocumentChip(over: Channel(card: card))
        return try await chip.read(dataGroups: [1, 2], with: AccessKey(try MachineReadableZone(zone)))
    }

    @Test("active authentication is asked for where chip authentication has proved nothing, and tells a copy")
    func activeAuthentication() async throws {
        let both = try await Self.read("chip aes-256 17")
        #expect(both.chipAuthentication == .genuine && both.activeAuthentication == nil)
        #expect(both.bytes(of: .dataGroup(2)) != nil)
        let active = try await Self.read("chip none")
        #expect(active.chipAuthentication == nil && active.activeAuthentication == .genuine)
        let copy = try await Self.read("chip none\noriginal copied")
        #expect(copy.activeAuthentication == .wrongSignature)
    }
}
