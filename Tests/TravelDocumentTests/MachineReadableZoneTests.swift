import SmartCard
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
        #expect(zone.documentNumber == number)
        #expect(zone.dateOfBirth.characters == "740812" && zone.dateOfExpiry.characters == "120415")
        #expect(try MachineReadableZone(lines.filter { $0 != "\n" }) == zone)
        #expect(try MachineReadableZone("  " + lines + "\r\n") == zone)
    }

    @Test("A document number of more than nine characters continues in the optional data (9303-11, D.2)")
    func longNumber() throws {
        let zone = try MachineReadableZone(
            """
            I<UTOD23145890<7349<<<<<<<<<<<
            3407127M9507122UTO<<<<<<<<<<<2
            STEVENSON<<PETER<JOHN<<<<<<<<<
            """)
        #expect(zone.documentNumber == "D23145890734")
        // The key is of the whole number, D23145890734, with its digit 9.
        #expect(AccessKey(zone).secret == Digest.sha1.hash(Array("D23145890734934071279507122".utf8)))
    }

    @Test("A key is of the number, the birth and the expiry, each with its digit (9303-11, D.2)")
    func key() throws {
        let key = try AccessKey(documentNumber: "L898902C", dateOfBirth: "690806", dateOfExpiry: "940623")
        #expect(key.secret.hex == "239AB9CB282DAF66231DC5A4DF6BFBAEDF477565")
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
}
