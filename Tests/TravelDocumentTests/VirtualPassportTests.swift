import Foundation
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

    private static let ciphers = ["3des", "aes-128", "aes-192", "aes-256"]

    /// ICAO 9303-11, 9.5.1, table 6, with its notes: P-224, number 10, has no integrated mapping.
    private static let variants: [String] = {
        let mappings: [(String, [Int])] = [
            ("ecdh-gm", Array(8...18)), ("ecdh-im", [8, 9] + Array(11...18)), ("ecdh-cam", Array(8...18)),
            ("dh-gm", [0, 1, 2]), ("dh-im", [0, 1, 2]),
        ]
        var variants: [String] = []
        for (mapping, numbers) in mappings {
            // Chip authentication mapping is of AES alone (9.2.1).
            for cipher in ciphers where mapping != "ecdh-cam" || cipher != "3des" {
                variants += numbers.map { "\(mapping) \(cipher) \($0)" }
            }
        }
        return variants
    }()

    @Test("each variant of PACE opens the chip, with the zone and with the number", arguments: variants)
    func opens(_ variant: String) async throws {
        let card = try Self.card("can 123456\npace \(variant)\nbac no")
        let chip = TravelDocumentChip(over: Channel(card: card), longestAPDU: nil)
        let words = variant.uppercased().split(separator: " ")
        for key in [AccessKey(try MachineReadableZone(Self.zone)), try AccessKey("123456", kind: .cardAccessNumber)] {
            card.reset()
            let access = try await chip.open(with: key)
            #expect("\(access.method)".contains("\(words[0])-\(words[1]), parameters \(words[2])"))
            #expect(!access.isDowngraded && (access.chipAuthenticationMapping != nil) == (words[0] == "ECDH-CAM"))
            #expect(try await chip.read(.dataGroup(13)) == [0x6D, 0x03, 0x01, 0x02, 0x03])
            #expect(try MachineReadableZone(parsing: try await chip.read(.dataGroup(1))).documentNumber == "L898902C3")
        }
    }

    @Test("chip authentication mapping proves the chip, with the test authority trusted", arguments: 8...18)
    func chipAuthenticationMapping(_ curve: Int) async throws {
        var trust = TrustList()
        try trust.add(TestIssuingState.authorityCertificate, source: "test", at: .now)
        let card = try Self.card("pace ecdh-cam aes-256 \(curve)\nsecurity-object signed")
        let chip = TravelDocumentChip(over: Channel(card: card))
        let reading = try await chip.read(dataGroups: [1], with: AccessKey(try MachineReadableZone(Self.zone)))
        let belief = reading.belief(trust: trust, at: .now)
        #expect(belief.findings.contains { $0.check == .chipAuthenticationMapping && $0.outcome == .passed })
        #expect(belief.isOriginal)
    }

    @Test("EF.CardSecurity is read in the session and not before")
    func cardSecurity() throws {
        let card = try Self.card("pace ecdh-cam aes-128 12")
        // READ BINARY with the short identifiers 1D and 1C.
        #expect(card.exchange([0x00, 0xB0, 0x9D, 0x00, 0x00]) == [0x69, 0x82])
        #expect(card.exchange([0x00, 0xB0, 0x9C, 0x00, 0x00])?.first == 0x31)
        #expect(try Self.card("pace ecdh-gm aes-128 12").exchange([0x00, 0xB0, 0x9D, 0x00, 0x00]) == [0x6A, 0x82])
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
}
