import SmartCard
import TestSupport
import Testing

@testable import TravelDocument

/// DG1, and the fields of zones: ICAO 9303-3 to -6 and -10.  Every person is of the standard.  // TEST
@Suite struct ParsingZoneTests {
    private func zone(_ text: String) throws -> MachineReadableZone {
        try MachineReadableZone(parsing: listing(text))
    }

    @Test("The specimen passport (9303-4, appendix B)")
    func passport() throws {
        let zone = try zone(ParsingFixtures.dg1TD3)
        #expect(zone.format == .td3 && zone.documentCode == "P" && zone.issuingState == "UTO")
        #expect(zone.name.primaryIdentifier == "ERIKSSON" && zone.name.secondaryIdentifier == "ANNA MARIA")
        #expect(!zone.name.mayBeTruncated)
        #expect(zone.documentNumber == "L898902C3" && zone.nationality == "UTO" && zone.sex == .female)
        #expect(zone.dateOfBirth.yearOfCentury == 74 && zone.dateOfBirth.month == 8 && zone.dateOfBirth.day == 12)
        #expect(zone.dateOfExpiry.yearOfCentury == 12 && zone.dateOfExpiry.month == 4 && zone.dateOfExpiry.day == 15)
        expectEqual(zone.optionalData, ["ZE184226B"])
        expectEqual(
            zone.checkDigits.map(\.field),
            [
                .documentNumber, .dateOfBirth, .dateOfExpiry, .personalNumber, .composite,
            ])
        #expect(zone.checkDigits.allSatisfy { $0.isRight })
        #expect(zone.lines.count == 2 && zone.lines[1] == "L898902C36UTO7408122F1204159ZE184226B<<<<<10")
        try expectEqual(MachineReadableZone(MachineReadableZoneTests.td3), zone)
    }

    @Test("The specimen card of the larger size (9303-6, appendix A)")
    func td2() throws {
        let zone = try zone(ParsingFixtures.dg1TD2)
        #expect(zone.format == .td2 && zone.documentCode == "I" && zone.documentNumber == "D23145890")
        #expect(zone.name.primaryIdentifier == "ERIKSSON" && zone.name.secondaryIdentifier == "ANNA MARIA")
        #expect(zone.issuingState == "UTO" && zone.nationality == "UTO" && zone.sex == .female)
        #expect(zone.optionalData == [""] && zone.checkDigits.count == 4 && zone.checkDigits.allSatisfy(\.isRight))
    }

    @Test("The card of 9303-10, A.2.1")
    func td1() throws {
        let zone = try zone(ParsingFixtures.dg1TD1)
        #expect(zone.format == .td1 && zone.documentCode == "I" && zone.issuingState == "NLD")
        #expect(zone.documentNumber == "XI85935F8" && zone.optionalData == ["999999990", ""])
        #expect(zone.dateOfBirth.characters == "720814" && zone.sex == .female)
        #expect(zone.dateOfExpiry.characters == "110826" && zone.nationality == "NLD")
        expectEqual(zone.name.primaryComponents, ["VAN", "DER", "STEEN"])
        // The field is full: the name may have been cut off, or not.
        #expect(zone.name.secondaryIdentifier == "MARIANNE LOUISE" && zone.name.mayBeTruncated)
        // The standard's example has 4 where 8 follows from 9303-5, 4.2.4.
        expectEqual(zone.checkDigits.filter { !$0.isRight }.map(\.field), [.composite])
    }

    @Test("A long document number ends in the optional data, and what follows it there is not part of it")
    func longNumbers() throws {
        let card = try MachineReadableZone(
            "I<UTOD23145890<7349<<<<<<<<<<<3407127M9507122UTO<<<<<<<<<<<2STEVENSON<<PETER<JOHN<<<<<<<<<")
        #expect(card.documentNumber == "D23145890734" && card.optionalData == ["", ""])
        // Check digits by hand.
        for (rest, optional) in [("7349<<<8", ""), ("7349<AB5", "AB")] {
            let zone = try MachineReadableZone(
                "I<UTONILAVADHANANANDA<<CHAYAPA<DEJ<K\nD23145890<UTO3407127M9507122\(rest)")
            #expect(zone.documentNumber == "D23145890734" && zone.optionalData == [optional])
        }
    }

    @Test(
        "A filler within a document number belongs to it, and to the key; unknown parts of a birth; a filler for a sex")
    func oddities() throws {
        // Check digits by hand.
        let text = "P<D<<ARKFREITH<<<<<<<<<<<<<<<<<<<<<<<<<<<<<<"
        let zone = try MachineReadableZone(text + "AB<1234568D<<66<<<<0<3001019<<<<<<<<<<<<<<<4")
        #expect(zone.documentNumber == "AB<123456" && zone.issuingState == "D" && zone.nationality == "D")
        #expect(zone.dateOfBirth.yearOfCentury == 66 && zone.dateOfBirth.month == nil && zone.dateOfBirth.day == nil)
        #expect(zone.sex == .unspecified && zone.optionalData == [""])
        #expect(zone.name.primaryIdentifier == "ARKFREITH" && zone.name.secondaryComponents.isEmpty)
        try expectEqual(
            AccessKey(zone),
            AccessKey(documentNumber: "AB<123456", dateOfBirth: "66<<<<", dateOfExpiry: "300101"))
    }

    @Test(
        "A chip's zone may have a wrong check digit; it is told",
        arguments: [
            (53, [MachineReadableZoneError.Field.documentNumber, .composite]), (63, [.dateOfBirth, .composite]),
            (71, [.dateOfExpiry, .composite]), (86, [.personalNumber, .composite]), (87, [.composite]),
        ])
    func wrongDigits(_ index: Int, _ fields: [MachineReadableZoneError.Field]) throws {
        var bytes = try listing(ParsingFixtures.dg1TD3)
        bytes[5 + index] = bytes[5 + index] == 0x35 ? 0x33 : 0x35
        let zone = try MachineReadableZone(parsing: bytes)
        expectEqual(zone.checkDigits.filter { !$0.isRight }.map(\.field), fields)
        #expect("\(zone.checkDigits)".contains("wrong"))
        // Somebody who types it is told instead.
        #expect(throws: MachineReadableZoneError.checkDigit(fields[0])) { try MachineReadableZone(zone.text) }
    }

    @Test(
        "Names that were cut off, and one that was not (9303-5, 4.2.3)",
        arguments: [
            ("NILAVADHANANANDA<<CHAYAPA<DE<K", ["NILAVADHANANANDA"], ["CHAYAPA", "DE", "K"], true),
            ("BENNELONG<WOOLOOMOOLOO<W<W<<DI", ["BENNELONG", "WOOLOOMOOLOO", "W", "W"], ["DI"], true),
            ("PAPANDROPOULOUS<<JONATHON<ALEC", ["PAPANDROPOULOUS"], ["JONATHON", "ALEC"], true),
            ("AL<BASRI<<HUDA<MUHAMMAD<JAWAD<", ["AL", "BASRI"], ["HUDA", "MUHAMMAD", "JAWAD"], false),
            ("SATRIYA<SUDARPA<<<<<<<<<<<<<<<", ["SATRIYA", "SUDARPA"], [], false),
        ])
    func names(_ field: String, _ primary: [String], _ secondary: [String], _ mayBeTruncated: Bool) throws {
        let name = DocumentName(field, isWholeField: true)
        #expect(name.primaryComponents == primary && name.secondaryComponents == secondary)
        expectEqual(name.mayBeTruncated, mayBeTruncated)
    }

    @Test(
        "The century of a birth: the latest one that is not after the day of reading",
        arguments: [
            ("740812", 1974, 8, 12), ("240505", 2024, 5, 5), ("240506", 1924, 5, 6), ("240601", 1924, 6, 1),
            ("24<<<<", 2024, nil, nil), ("2406<<", 1924, 6, nil), ("250101", 1925, 1, 1), ("000229", 2000, 2, 29),
            ("420712", 1942, 7, 12), ("660000", 1966, nil, nil), ("<<0812", nil, 8, 12), ("<<<<<<", nil, nil, nil),
            ("000000", nil, nil, nil), ("00<<<<", 2000, nil, nil),
        ] as [(String, Int?, Int?, Int?)])
    func births(_ characters: String, _ year: Int?, _ month: Int?, _ day: Int?) throws {
        let today = try #require(DocumentDate(year: 2024, month: 5, day: 5))
        let date = TwoDigitDate(characters).birth(notAfter: today)
        #expect(date != nil && date == DocumentDate(year: year, month: month, day: day))
    }

    @Test(
        "The century of an expiry: from 50 years before the day of reading to 49 years after it",
        arguments: [
            ("120415", 2012, 4, 15), ("731231", 2073, 12, 31), ("740101", 1974, 1, 1), ("991231", 1999, 12, 31),
            ("240101", 2024, 1, 1), ("<<<<<<", nil, nil, nil), ("000000", nil, nil, nil),
        ] as [(String, Int?, Int?, Int?)])
    func expiries(_ characters: String, _ year: Int?, _ month: Int?, _ day: Int?) throws {
        let today = try #require(DocumentDate(year: 2024, month: 5, day: 5))
        let date = TwoDigitDate(characters).expiry(near: today)
        #expect(date != nil && date == DocumentDate(year: year, month: month, day: day))
    }

    @Test("Dates that no calendar has are none")
    func impossibleDates() throws {
        let dates: [(Int?, Int?, Int?)] = [
            (2023, 2, 29), (1900, 2, 29), (nil, 2, 30), (2024, 4, 31), (2024, 13, 1), (2024, 0, 1), (0, 1, 1),
            (10_000, 1, 1), (nil, nil, 32),
        ]
        for (year, month, day) in dates { expectEqual(DocumentDate(year: year, month: month, day: day), nil) }
        #expect(DocumentDate(year: nil, month: 2, day: 29) != nil && DocumentDate(year: 2000, month: 2, day: 29) != nil)
        let early = try #require(DocumentDate(year: 1950, month: 1, day: 1))
        expectEqual(TwoDigitDate("000229").birth(notAfter: early), nil)
        #expect(TwoDigitDate("741399").month == nil && TwoDigitDate("74A112").month == nil)
        let timeless = try #require(DocumentDate(year: nil, month: 1, day: 1))
        expectEqual(TwoDigitDate("740812").birth(notAfter: timeless), nil)
        expectEqual(TwoDigitDate("740812").expiry(near: timeless), nil)
        // A reference of the first century must not trap.
        let first = try #require(DocumentDate(year: 1, month: 1, day: 1))
        expectEqual(TwoDigitDate("740812").birth(notAfter: first), nil)
        expectEqual(TwoDigitDate("740812").expiry(near: first), nil)
    }
}
