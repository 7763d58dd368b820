import SmartCard
import TestSupport
import Testing

@testable import TravelDocument

/// Specimens of ICAO 9303, parts 4 to 6 and 11, of nobody.  // TEST
@Suite struct MachineReadableZoneTests {
    static let td3 = """
        P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<
        L898902C36UTO7408122F1204159ZE184226B<<<<<10
        """
    static let td2 = """
        I<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<
        D231458907UTO7408122F1204159<<<<<<<6
        """
    static let td1 = """
        I<UTOD231458907<<<<<<<<<<<<<<<
        7408122F1204159UTO<<<<<<<<<<<6
        ERIKSSON<<ANNA<MARIA<<<<<<<<<<
        """

    @Test(
        "The specimens of all three formats", arguments: [(td1, "D23145890"), (td2, "D23145890"), (td3, "L898902C3")])
    func specimens(_ lines: String, _ number: String) throws {
        let zone = try MachineReadableZone(lines)
        expectEqual(zone.documentNumber, number)
        #expect(zone.dateOfBirth.characters == "740812" && zone.dateOfExpiry.characters == "120415")
        try expectEqual(MachineReadableZone(lines.filter { $0 != "\n" }), zone)
        try expectEqual(MachineReadableZone("  " + lines + "\r\n"), zone)
    }

    @Test("A document number of more than nine characters continues in the optional data (9303-11, D.2)")
    func longNumber() throws {
        let zone = try MachineReadableZone(
            """
            I<UTOD23145890<7349<<<<<<<<<<<
            3407127M9507122UTO<<<<<<<<<<<2
            STEVENSON<<PETER<JOHN<<<<<<<<<
            """)
        expectEqual(zone.documentNumber, "D23145890734")
        // The key is of the whole number, D23145890734, with its digit 9.
        expectEqual(AccessKey(zone).secret, Digest.sha1.hash(Array("D23145890734934071279507122".utf8)))
    }

    @Test("A key is of the number, the birth and the expiry, each with its digit (9303-11, D.2)")
    func key() throws {
        let key = try AccessKey(documentNumber: "L898902C", dateOfBirth: "690806", dateOfExpiry: "940623")
        expectEqual(key.secret.hex, "239AB9CB282DAF66231DC5A4DF6BFBAEDF477565")
        #expect(AccessKey(try MachineReadableZone(Self.td3)) != key)
    }

    @Test("Each character that a check digit is over is checked by it")
    func misread() throws {
        let fields: [(MachineReadableZoneError.Field, Range<Int>)] = [
            (.documentNumber, 44..<54), (.dateOfBirth, 57..<64), (.dateOfExpiry, 65..<72), (.personalNumber, 72..<87),
            (.composite, 87..<88),
        ]
        let text = Array(Self.td3.filter { $0 != "\n" })
        for (field, range) in fields {
            for index in range {
                var wrong = text
                wrong[index] = wrong[index] == "1" ? "2" : "1"
                // A change by a multiple of ten does not show.
                guard let before = CheckDigit.value(of: text[index].asciiValue!),
                    let after = CheckDigit.value(of: wrong[index].asciiValue!), (after - before) % 10 != 0
                else { continue }
                #expect(throws: MachineReadableZoneError.checkDigit(field)) { try MachineReadableZone(String(wrong)) }
            }
        }
    }

    @Test("What is not a zone is refused, and not repeated")
    func others() {
        #expect(throws: MachineReadableZoneError.length(0)) { try MachineReadableZone("") }
        #expect(throws: MachineReadableZoneError.length(87)) { try MachineReadableZone(Self.td3.dropLast()) }
        #expect(throws: MachineReadableZoneError.character) {
            try MachineReadableZone(Self.td3.replacing("ANNA", with: "anna"))
        }
        #expect(throws: MachineReadableZoneError.self) {
            try MachineReadableZone(Self.td3.replacing("ANNA", with: "ÄNNA"))
        }
    }

    @Test("Neither a zone nor a key shows itself")
    func masked() throws {
        let zone = try MachineReadableZone(Self.td3)
        for text in ["\(zone)", "\(AccessKey(zone))", String(reflecting: zone), String(reflecting: AccessKey(zone))] {
            #expect(!text.contains("L898902C") && !text.contains("ERIKSSON") && !text.contains("740812"))
        }
        var dumped = ""
        dump(zone, to: &dumped)
        dump(AccessKey(zone), to: &dumped)
        #expect(!dumped.contains("L898902C") && !dumped.contains("secret"))
    }

    @Test(
        "What a camera takes for something else is proposed",
        arguments: [
            // O for 0 and I for 1 among digits; 0 for O and 5 for S among letters; 8 for B in a number.
            (td3, ["L898902C36UTO7408122F": "L898902C36UTO74O8I22F"]), (td3, ["ERIKSSON": "ERIK5S0N", "<<10": "<<1O"]),
            (td3, ["ZE184226B": "ZE1842268"]), (td2, ["D231458907": "02314589O7"]), (td1, ["D231458907": "D23I4S8907"]),
        ])
    func misread(_ lines: String, _ mistakes: [String: String]) throws {
        let read = mistakes.reduce(lines) { $0.replacing($1.key, with: $1.value) }
        #expect(read != lines)
        let proposals = MachineReadableZone.proposals(for: read)
        let zone = try MachineReadableZone(lines)
        let proposal = try #require(proposals.first { $0.zone == zone })
        let (before, after) = (Array(lines.filter { $0 != "\n" }), Array(read.filter { $0 != "\n" }))
        expectEqual(proposal.changes, before.indices.filter { before[$0] != after[$0] })
        #expect(proposals.count <= 8 && proposals.map(\.changes.count) == proposals.map(\.changes.count).sorted())
        // Each is a zone whose check digits are right, and none prints.
        for proposal in proposals { expectEqual(proposal.zone.checkDigits.filter { !$0.isRight }, []) }
        #expect("\(proposals)".contains("ERIKSSON") == false && "\(proposals)".contains("D23") == false)
    }

    @Test("A zone whose check digits are right has proposals where they cannot tell, and is not among them")
    func undetected() throws {
        // The values of 6 and G differ by 10, and those of 1 and L by 20.
        let proposals = MachineReadableZone.proposals(for: Self.td2)
        let zone = try MachineReadableZone(Self.td2)
        #expect(!proposals.contains { $0.zone == zone })
        #expect(proposals.first?.changes == [39] && proposals.first?.zone.documentNumber == "D23L45890")
    }

    @Test(
        "Nothing is proposed for what is no zone, however long it takes to say so", arguments: ["", "P<UTO", "ÄÖ", "8"])
    func noProposals(_ text: String) {
        #expect(MachineReadableZone.proposals(for: text).isEmpty)
        for count in [72, 88, 90] {
            let worst = String(repeating: "8", count: count)
            #expect(MachineReadableZone.proposals(for: worst).count <= 8)
        }
    }
}
