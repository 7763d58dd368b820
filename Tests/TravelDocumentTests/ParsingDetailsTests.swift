import SmartCard
import TestSupport
import Testing

@testable import TravelDocument

/// EF.COM and the data groups with details: ICAO 9303-10, 4.6, 4.7 and appendix A.  Every person is of the standard.  // TEST
@Suite struct ParsingDetailsTests {
    private func date(_ year: Int?, _ month: Int?, _ day: Int?) throws -> DocumentDate {
        try #require(DocumentDate(year: year, month: month, day: day))
    }

    @Test("EF.COM of A.1, and one of a version to come")
    func com() throws {
        let com = try CommonDataElements(parsing: listing(ParsingFixtures.com))
        #expect(com.ldsVersion.description == "1.7" && com.unicodeVersion.description == "4.0.0")
        #expect(com.dataGroups == [1, 2, 4, 12].map(ElementaryFile.dataGroup) && com.otherTags.isEmpty)
        let later = try CommonDataElements(
            parsing: listing(#"60 1A 5F01 04 "1599" 5F36 06 "040000" 5C 08 61 75 7F61 77 5FFF01"#))
        #expect(later.ldsVersion.parts == [15, 99] && later.dataGroups == [.dataGroup(1), .dataGroup(2)])
        expectEqual(later.otherTags, [[0x7F, 0x61], [0x77], [0x5F, 0xFF, 0x01]])
    }

    @Test("Displayed images, and their formats by their first bytes")
    func displayedImages() throws {
        let portraits = try DisplayedPortraits(parsing: listing(ParsingFixtures.dg5))
        expectEqual(portraits.images.map(\.format), [.jpeg2000Codestream])
        expectEqual(portraits.images[0].bytes.hex, "FF4FFF51002F0000")
        let signatures = try DisplayedSignatures(parsing: listing(ParsingFixtures.dg7))
        expectEqual(signatures.images.map(\.format), [.jpeg, .jp2])
        for other in ["FFD8", "89504E470D0A1A0A", "FF4FFF52", "0000000C6A502021", ""] {
            try expectEqual(EncodedImage(hex(other)).format, nil)
        }
    }

    @Test("DG11 of A.5")
    func personalDetails() throws {
        let details = try AdditionalPersonalDetails(parsing: listing(ParsingFixtures.dg11))
        expectEqual(details.tagList, [0x5F0E, 0x5F11, 0x5F42, 0x5F12, 0x5F13])
        #expect(details.fullName?.primaryIdentifier == "SMITH" && details.fullName?.secondaryIdentifier == "JOHN J")
        expectEqual(details.fullName?.mayBeTruncated, false)
        expectEqual(details.placeOfBirth, ["ANYTOWN", "MN"])
        expectEqual(details.permanentAddress, ["123 MAPLE RD", "ANYTOWN", "MN"])
        #expect(details.telephone == "16125551212" && details.profession == "TRAVEL AGENT")
        #expect(details.title == nil && details.otherNames.isEmpty && details.otherObjects.isEmpty)
    }

    @Test("All other elements of DG11: in ISO/IEC 8859-1, in packed digits, empty, and of no standard")
    func otherPersonalDetails() throws {
        let details = try AdditionalPersonalDetails(parsing: listing(ParsingFixtures.dg11All))
        #expect(details.fullName?.primaryIdentifier == "MÜLLER" && details.fullName?.secondaryIdentifier == "BJÖRN")
        expectEqual(details.otherNames.map(\.primaryIdentifier), ["A B", "C D"])
        #expect(details.personalNumber == "1234" && details.telephone == nil && details.title == "DR")
        try expectEqual(details.fullDateOfBirth, date(1966, nil, nil))
        #expect(details.personalSummary == "A B" && details.proofOfCitizenship?.format == .jpeg)
        #expect(details.otherTravelDocumentNumbers == ["X1", "Y2", "Z"] && details.custodyInformation == "CÃ")
        expectEqual(details.otherObjects.map(\.tag), [0x5F9901])
    }

    @Test("DG11 of Chinese passports: the name in its script, and another without a template")
    func chinese() throws {
        let details = try AdditionalPersonalDetails(parsing: listing(ParsingFixtures.dg11China))
        expectEqual(details.fullName?.primaryIdentifier, "赵彬")
        expectEqual(details.otherNames.map(\.primaryIdentifier), ["ZHAO"])
        expectEqual(details.otherNames.map(\.secondaryIdentifier), ["BIN"])
    }

    @Test(
        "A date has eight digits in ASCII or packed; zeros are unknown parts",
        arguments: [
            (#"08 "19740812""#, 1974, 8, 12), ("04 19740812", 1974, 8, 12), (#"08 "19740000""#, 1974, nil, nil),
            (#"08 "00000812""#, nil, 8, 12), ("04 00000000", nil, nil, nil),
        ] as [(String, Int?, Int?, Int?)])
    func dates(_ text: String, _ year: Int?, _ month: Int?, _ day: Int?) throws {
        let object = try listing("5C 02 5F2B 5F2B" + text)
        let details = try AdditionalPersonalDetails(parsing: TLVTag(0x6B).encode(object))
        try expectEqual(details.fullDateOfBirth, date(year, month, day))
    }

    @Test(
        "What is not a date is refused at its offset",
        arguments: [
            #"08 "19741312""#, #"08 "1974081<""#, #"08 "1974-8-1""#, "04 1974081A", "04 19740230", "03 197408",
            #"07 "1974081""#,
        ])
    func noDates(_ text: String) throws {
        let bytes = try TLVTag(0x6B).encode(listing("5C 02 5F2B 5F2B" + text))
        // 6B L 5C 02 5F2B 5F2B L
        #expect(throws: TravelDocumentFormatError(file: .dataGroup(11), offset: 9, due: .element(.date))) {
            try AdditionalPersonalDetails(parsing: bytes)
        }
    }

    @Test("DG12: every element")
    func documentDetails() throws {
        let details = try AdditionalDocumentDetails(parsing: listing(ParsingFixtures.dg12))
        #expect(details.tagList.count == 9 && details.issuingAuthority == "UTOPIA")
        try expectEqual(details.dateOfIssue, date(2017, 9, 5))
        expectEqual(details.otherPersons.map(\.primaryIdentifier), ["SMITH"])
        expectEqual(details.otherPersons.map(\.secondaryIdentifier), ["BRENDA P"])
        #expect(details.endorsementsAndObservations == "SEE PAGE" && details.taxOrExitRequirements == "NONE")
        #expect(details.imageOfFront?.format == .jpeg && details.imageOfRear?.format == .jpeg2000Codestream)
        try expectEqual(
            details.timeOfPersonalization,
            DocumentTime(date: date(2016, 11, 15), hour: 1, minute: 36, second: 12))
        #expect(details.personalizationSystemSerialNumber == "N-4962" && details.otherObjects.isEmpty)
        // In ASCII, as ICAO 9303-10 has it.
        let other = try AdditionalDocumentDetails(
            parsing: listing(#"6C 15 5C 02 5F55 5F55 0E "20161115013612""#))
        expectEqual(other.timeOfPersonalization, details.timeOfPersonalization)
        #expect(throws: TravelDocumentFormatError(file: .dataGroup(12), offset: 9, due: .element(.time))) {
            try AdditionalDocumentDetails(parsing: listing(#"6C 15 5C 02 5F55 5F55 0E "20161115246000""#))
        }
    }

    @Test("DG13 is left as it is")
    func optionalDetails() throws {
        let details = try OptionalDetails(parsing: listing(ParsingFixtures.dg13))
        expectEqual(details.contents.hex, "01FF005F80")
        #expect(try OptionalDetails(parsing: [0x6D, 0x00]).contents.isEmpty)
    }

    @Test("DG16 of A.6")
    func personsToNotify() throws {
        let persons = try PersonsToNotify(parsing: listing(ParsingFixtures.dg16)).persons
        expectEqual(persons.map(\.name?.primaryIdentifier), ["SMITH", "BROWN"])
        expectEqual(persons.map(\.name?.secondaryIdentifier), ["CHARLES R", "MARY J"])
        try expectEqual(persons.map(\.dateRecorded), [date(2002, 1, 1), date(2002, 3, 15)])
        expectEqual(persons.map(\.telephone), ["19525551212", "14155551212"])
        expectEqual(persons[0].address, ["123 MAPLE RD", "ANYTOWN", "MN", "55100"])
        expectEqual(persons[1].address, ["49 REDWOOD LN", "OCEAN BREEZE", "CA", "94000"])
        try expectEqual(PersonsToNotify(parsing: hex("70 05 02 01 01 A1 00")).persons.first?.name, nil)
    }
}
