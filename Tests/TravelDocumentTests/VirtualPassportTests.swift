import CardReaders
import Foundation
import SmartCard
import SmartCardSimulator
import TestSupport
import Testing
import TravelDocument
import Waiting

/// The reader's side against the passports that a card file describes, which are written apart from it.
@Suite struct VirtualPassportTests {
    private static let zone = """
        P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<
        L898902C36UTO7408122F1204159ZE184226B<<<<<10
        """

    static func card(
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
            try await expectEqual(chip.read(.dataGroup(13)), [0x6D, 0x03, 0x01, 0x02, 0x03])
            try expectEqual(
                MachineReadableZone(parsing: try await chip.read(.dataGroup(1))).documentNumber, "L898902C3")
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
        expectEqual(card.exchange([0x00, 0xB0, 0x9D, 0x00, 0x00]), [0x69, 0x82])
        expectEqual(card.exchange([0x00, 0xB0, 0x9C, 0x00, 0x00])?.first, 0x31)
        try expectEqual(Self.card("pace ecdh-gm aes-128 12").exchange([0x00, 0xB0, 0x9D, 0x00, 0x00]), [0x6A, 0x82])
    }

    @Test("a chip without the older protocol opens with no other number and no other zone")
    func closed() async throws {
        let chip = TravelDocumentChip(
            over: Channel(card: try Self.card("can 123456\npace ecdh-gm aes-128 12\nbac no")))
        for number in ["123457", "12345", "1234566"] {
            let error = await #expect(throws: AccessError.self) {
                try await chip.open(with: AccessKey(number, kind: .cardAccessNumber), allowingDowngrade: true)
            }
            expectEqual(error?.failures.first?.refusal, .wrongKey(triesLeft: nil))
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
        try await expectEqual(chip.open(with: key).method, .basicAccessControl)
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
            try await expectEqual(chip.authenticateChip(securityInfos: infos), verdict)
            guard verdict == .genuine else { continue }
            try await expectEqual(chip.read(.dataGroup(13)), [0x6D, 0x03, 0x01, 0x02, 0x03])
            // Once more, from the new session.
            try await expectEqual(chip.authenticateChip(securityInfos: infos), .genuine)
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
        expectEqual(copy.activeAuthentication, .wrongSignature)
    }

    // MARK: Faults

    /// The session begins with SELECT of the application; then EF.SOD is read.
    @Test(
        "a response that was changed or repeated, one without protection, and a chip that forgets end the session",
        arguments: [
            ("wrong-mac 2", SecureMessagingError.notAuthenticated), ("replay 3", .notAuthenticated),
            ("bare-status 4 9000", .ended(.success)), ("bare-status 2 6988", .ended(0x6988)),
            // Without a session, a protected command is not allowed.
            ("ends-session 3", .ended(0x6982)),
        ])
    func attacked(_ fault: String, _ error: SecureMessagingError) async throws {
        await #expect(throws: error) { try await Self.read("fault \(fault)") }
    }

    @Test("responses are counted on after chip authentication") func attackedLater() async throws {
        // Before DG2 there are SELECT, some ten READ BINARY, two commands of chip authentication, and EF.COM.
        let reading = try await Self.read("fault wrong-mac 1000")
        expectEqual(reading.chipAuthentication, .genuine)
        await #expect(throws: SecureMessagingError.notAuthenticated) { try await Self.read("fault wrong-mac 18") }
    }

    @Test("a chip that does not know the key of Basic Access Control is not believed") func stranger() async throws {
        let error = await #expect(throws: AccessError.self) {
            try await Self.read("pace none\nfault does-not-know-key")
        }
        expectEqual(error?.failures.map(\.refusal), [.chipNotAuthenticated])
    }

    @Test("a chip that refuses to be asked for bytes beyond the end is read whole") func strict() async throws {
        #expect(try await Self.read("fault refuses-beyond-end").failures.isEmpty)
    }

    @Test("a file that was cut off is told, and the others are read", arguments: [0, 1, 100, 900])
    func truncated(_ bytes: Int) async throws {
        let reading = try await Self.read("truncated 2 \(bytes)")
        expectEqual(reading.zone?.documentNumber, "L898902C3")
        let failure = try #require(reading.failures.first)
        #expect(reading.failures.count == 1 && failure.file == .dataGroup(2))
        if bytes >= 100 { expectEqual(failure.reason, .notRead(.truncated)) }
    }

    @Test("a slow chip is waited for", .simulatedTime) func slow() async throws {
        let device = SoftwareACR122U()
        let reader = VirtualReader(device)
        device.insert(try CardFile(parsing: "variant passport {\ndelay 100\nchip none\noriginal none\n}").makeCard())
        _ = try await reader.waitForCard()
        let card = try await reader.connect()
        let chip = TravelDocumentChip(over: Stack(for: reader).over(card), connection: card)
        let start = Time.now
        let reading = try await chip.read(dataGroups: [1], with: AccessKey(try MachineReadableZone(Self.zone)))
        expectEqual(reading.zone?.documentNumber, "L898902C3")
        // EF.CardAccess takes one command, PACE five, SELECT one, EF.SOD six and EF.DG1 one.
        #expect(Time.now - start == .milliseconds(14 * 100))
    }

    @Test("wrong numbers are counted until the chip blocks them; a right one before that counts for all")
    func tries() async throws {
        let card = try Self.card("can 123456\npin 654321\ntries 3\npace ecdh-gm aes-128 12")
        func refusal(_ number: String, _ kind: AccessKey.Kind = .cardAccessNumber) async throws -> AccessRefusal? {
            card.reset()
            do {
                try await TravelDocumentChip(over: Channel(card: card)).open(with: AccessKey(number, kind: kind))
                return nil
            } catch let error as AccessError { return error.failures.first?.refusal }
        }
        try await expectEqual(refusal("000000"), .wrongKey(triesLeft: 2))
        try await expectEqual(refusal("000000"), .wrongKey(triesLeft: 1))
        try await expectEqual(refusal("123456"), nil)
        for left in [2, 1, 0, 0] { try await expectEqual(refusal("000000"), .wrongKey(triesLeft: left)) }
        try await expectEqual(refusal("123456"), .wrongKey(triesLeft: 0))
        // The other number, and the zone, are not blocked with it.
        try await expectEqual(refusal("654321", .pin), nil)
        let chip = TravelDocumentChip(over: Channel(card: card))
        #expect(try await !chip.open(with: AccessKey(try MachineReadableZone(Self.zone))).isDowngraded)
    }

    @Test("a chip opens with the number that unblocks the holder's, by its reference of its own") func puk()
        async throws
    {
        let card = try Self.card("pin 654321\npuk 0123456789\npace ecdh-gm aes-128 12\nbac no")
        let chip = TravelDocumentChip(over: Channel(card: card))
        try await chip.open(with: AccessKey("0123456789", kind: .puk))
        try await expectEqual(chip.read(.dataGroup(1)).first, 0x61)
        for (digits, kind) in [("0123456789", AccessKey.Kind.pin), ("654321", .puk)] {
            card.reset()
            await #expect(throws: AccessError.self) { try await chip.open(with: AccessKey(digits, kind: kind)) }
        }
    }

    @Test("a chip may have its own word for a blocked number") func blocked() async throws {
        let card = try Self.card("can 123456\ntries 1 6983\npace ecdh-gm aes-128 12\nbac no")
        let chip = TravelDocumentChip(over: Channel(card: card))
        for number in ["000000", "123456"] {
            let error = await #expect(throws: AccessError.self) {
                try await chip.open(with: AccessKey(number, kind: .cardAccessNumber))
            }
            expectEqual(error?.failures.map(\.refusal), [.wrongKey(triesLeft: 0)])
        }
    }
}
