import EMVContactless
import Foundation
import SmartCard
import TestSupport
import Testing

@Suite("Annotated trees")
struct AnnotationTests {
    /// The FCI of a Visa card, as in published transcripts.
    static let fci = """
        6F 2B
           84 07 A0 00 00 00 03 10 10
           A5 20
              50 0A 56 49 53 41 20 44 45 42 49 54
              87 01 01
              9F 38 03 9F 66 04
              5F 2D 04 65 6E 66 72
              9F 11 01 01
        """

    @Test("A tree says names, text and bits, and takes the scheme from the DF name")
    func tree() throws {
        let bytes = try [UInt8](hex: Self.fci)
        let root = try Annotation(#require(TLVList(bytes + [UInt8]()).first))
        expectEqual(root.name, "File Control Information (FCI) Template")
        expectEqual(
            root.children.map(\.name),
            [
                "Dedicated File (DF) Name", "File Control Information (FCI) Proprietary Template",
            ])
        expectEqual(root.children[0].text(), "Visa: Visa Debit or Credit")
        let inside = root.children[1].children
        expectEqual(inside.map { $0.text() }, ["VISA DEBIT", nil, nil, "English, French", "1"])
        expectEqual(inside[2].bits.map(\.meaning), ["9F66 Terminal Transaction Qualifiers (TTQ), length 4"])
        expectEqual(root.hex(reveal: true), bytes.dropFirst(2).hex)
        expectEqual(root.hex(), bytes.dropFirst(2).hex)
    }

    @Test("What is sensitive is masked until it is asked for")
    func reveal() throws {
        let record = try [UInt8](
            hex: """
                70 2C
                   57 10 47 61 73 90 01 01 00 10 D2 51 22 01 12 34 56 78
                   5F 20 09 54 45 53 54 2F 43 41 52 44
                   5A 08 47 61 73 90 01 01 00 10
                   5F 34 01 01
                """)
        let root = try Annotation(#require(TLVList(record).first))
        #expect(!root.hex().contains("900101"))
        #expect(!root.hex().contains("54455354"))
        let masked = root.children.map { $0.text() }
        expectEqual(masked, ["476173******0010D***************", nil, "476173******0010", "1"])
        let clear = root.children.map { $0.text(reveal: true) }
        expectEqual(
            clear,
            [
                "4761739001010010, expires 2025-12, service code 201", "TEST/CARD", "4761739001010010", "1",
            ])
        expectEqual(root.children[2].hex(reveal: true), "4761739001010010")
    }

    @Test("A template whose inside is not known shows nothing")
    func opaque() {
        expectEqual(Annotation(tag: 0x70, value: [0x5A, 0x02, 0x47, 0x61]).hex(), "********")
    }

    @Test("An ambiguous tag has all its names, one in a scheme's directory entry has that scheme's")
    func ambiguous() throws {
        #expect(Annotation(tag: 0x9F6E, value: [0, 0, 0, 0]).name.contains("Form Factor Indicator (FFI) or"))
        expectEqual(Annotation(tag: 0xDF7F, value: [0]).name, "unknown")
        let entry = try TLVList([UInt8](hex: "61 11 4F 07 A0 00 00 00 04 10 10 9F 6E 05 08 26 00 00 00"))
        try expectEqual(Annotation(#require(entry.first)).children[1].name, "Third Party Data")
    }

    @Test("A directory entry that asks for a kernel is read as that kernel has it")
    func kernelOfEntry() throws {
        // Cartes Bancaires, Kernel 3: the registered provider has no kernel of its own.
        let entry = try TLVList(
            [UInt8](hex: "61 12 4F 07 A0 00 00 00 42 10 10 9F 2A 01 03 9F 6E 02 23 88"))
        try expectEqual(Annotation(#require(entry.first)).children[2].name, "Form Factor Indicator (FFI)")
    }

    @Test("The answer to a data object list is cut into its elements: a log record as its format has it")
    func logRecord() throws {
        // The log format of a published D-PAS profile, shortened.
        let format = try DataObjectList([UInt8](hex: "9F 02 06 5F 2A 02 9A 03 9F 36 02"))
        let record = try [UInt8](hex: "00 00 00 00 12 34 05 24 25 12 31 00 2A")
        let elements = try #require(format.elements(of: record))
        expectEqual(elements.map(\.tag), [0x9F02, 0x5F2A, 0x9A, 0x9F36])
        expectEqual(elements.map { $0.text() }, ["1234", "NPR Nepalese Rupee", "2025-12-31", "42"])
        #expect(format.elements(of: record.dropLast()) == nil)
        #expect(format.elements(of: record + [0]) == nil)
    }

    @Test("Values as a person writes them")
    func values() throws {
        func text(_ tag: TLVTag, _ hex: String, _ scope: DataElement.Scope = .common, _ currency: String = "EUR") throws
            -> String?
        {
            Annotation(tag: tag, value: try [UInt8](hex: hex), scope: scope).text(currency: Currency[currency])
        }
        try expectEqual(text(0x9F02, "00 00 00 00 12 34"), "12.34 EUR")
        try expectEqual(text(0x9F02, "00 00 00 00 12 34", .common, "JPY"), "1234 JPY")
        try expectEqual(text(0x9F02, "00 00 00 00 12 34", .common, "KWD"), "1.234 KWD")
        try expectEqual(text(0x9F02, "00 00 00 00 00 05"), "0.05 EUR")
        expectEqual(Annotation(tag: 0x9F02, value: [0, 0, 0, 0, 0x12, 0x34]).text(), "1234")
        try expectEqual(text(0x9F02, "00 00 00 00 12 3A"), nil)
        try expectEqual(text(0x9F5D, "00 00 00 00 50 00", .visa), "50.00 EUR")
        try expectEqual(text(0x9F5D, "00 01 00", .mastercard), nil)
        try expectEqual(text(0x9A, "25 12 31"), "2025-12-31")
        try expectEqual(text(0x9F21, "19 36 37"), "19:36:37")
        try expectEqual(text(0x5F2A, "08 40"), "USD US Dollar")
        try expectEqual(text(0x5F2A, "09 97"), "USN US Dollar (Next day)")
        try expectEqual(text(0x9F1A, "08 26"), "GB United Kingdom")
        try expectEqual(text(0x5F28, "0A 26"), nil)
        try expectEqual(text(0x5F55, "44 45"), "DE Germany")
        try expectEqual(text(0x9F36, "03 56"), "854")
        try expectEqual(text(0x9F2A, "03"), "Kernel 3 (Visa)")
        try expectEqual(text(0x9F1C, "31 31 32 32 33 33 34 34"), "11223344")
        try expectEqual(text(0x50, "56 49 53 41 00 00"), "VISA")
        try expectEqual(text(0x50, "56 1B 5B"), nil)
    }

    @Test("Response Message Template Format 1")
    func format1() throws {
        let options = try #require(ResponseFormat1.processingOptions.annotations(of: [UInt8](hex: "5C 00 08 01 01 00")))
        expectEqual(options.map(\.tag), [0x82, 0x94])
        expectEqual(options[1].bits.map(\.meaning), ["SFI 1, record 1"])
        #expect(ResponseFormat1.processingOptions.annotations(of: [0x5C]) == nil)
        let cryptogram = try #require(
            ResponseFormat1.applicationCryptogram.annotations(
                of: [UInt8](hex: "80 00 01 C6 D4 E5 59 DC 29 5C 0B 06 01 0A 03 A0 00 00"), scope: .visa))
        expectEqual(cryptogram.map(\.tag), [0x9F27, 0x9F36, 0x9F26, 0x9F10])
        expectEqual(cryptogram[0].bits.map(\.meaning), ["ARQC"])
        #expect(ResponseFormat1.applicationCryptogram.annotations(of: [0x80]) == nil)
    }
}

@Suite("ISO codes")
struct ISOCodeTests {
    static let folder = "/usr/share/iso-codes/json/"
    static let isInstalled = FileManager.default.fileExists(atPath: folder + "iso_4217.json")

    private func entries(_ name: String, _ key: String) throws -> [[String: Any]] {
        let data = try Data(contentsOf: URL(fileURLWithPath: Self.folder + name))
        let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
        return try #require(object[key] as? [[String: Any]])
    }

    // The installed package may be newer than the tables: what was withdrawn since is no error, what is new neither.
    @Test(
        "The tables agree with Debian's iso-codes",
        .enabled(if: isInstalled, "the iso-codes package is not installed"))
    func tables() throws {
        let currencies = try entries("iso_4217.json", "4217")
        #expect(currencies.count > 150)
        let knownCurrencies = currencies.filter { Currency[$0["alpha_3"] as? String ?? ""] != nil }
        #expect(knownCurrencies.count > currencies.count * 9 / 10)
        for entry in knownCurrencies {
            let found = try #require(Currency[entry["alpha_3"] as? String ?? ""])
            expectEqual(found.numericCode, entry["numeric"] as? String)
        }
        let countries = try entries("iso_3166-1.json", "3166-1")
        #expect(countries.count > 240)
        for entry in countries {
            let found = try #require(Country[entry["alpha_2"] as? String ?? ""])
            expectEqual(found.alpha3, entry["alpha_3"] as? String)
            expectEqual(found.numericCode, entry["numeric"] as? String)
        }
        let languages = try entries("iso_639-2.json", "639-2").compactMap { $0["alpha_2"] as? String }
        #expect(languages.count > 180)
        #expect(languages.allSatisfy { Language[$0] != nil })
    }

    @Test("Every line of the tables is read, and no code stands twice")
    func unique() {
        #expect(Currency.all.count > 170)
        expectEqual(Set(Currency.all.map(\.code)).count, Currency.all.count)
        expectEqual(Set(Currency.all.map(\.numericCode)).count, Currency.all.count)
        expectEqual(Country.all.count, 249)
        expectEqual(Set(Country.all.map(\.alpha2)).count, 249)
        expectEqual(Set(Country.all.map(\.alpha3)).count, 249)
        expectEqual(Set(Language.all.map(\.code)).count, Language.all.count)
    }

    @Test("Minor units of ISO 4217")
    func exponents() {
        let expected: [String: Int] = [
            "USD": 2, "EUR": 2, "HUF": 2, "MGA": 2, "JPY": 0, "KRW": 0, "ISK": 0, "VND": 0, "CLP": 0, "KWD": 3,
            "BHD": 3, "TND": 3, "CLF": 4, "UYW": 4,
        ]
        for (code, exponent) in expected { expectEqual(Currency[code]?.exponent, exponent, "\(code)") }
        for code in ["XAU", "XXX", "XDR"] { #expect(Currency[code] != nil && Currency[code]?.exponent == nil) }
    }

    @Test("Packed codes")
    func packed() {
        expectEqual(Currency[packed: [0x09, 0x78]]?.code, "EUR")
        expectEqual(Country[packed: [0x02, 0x50]]?.alpha2, "FR")
        expectEqual(Currency[packed: [0x09]], nil)
        expectEqual(Currency[packed: [0x19, 0x78]], nil)
        expectEqual(Currency[packed: [0xFF, 0xFF]], nil)
        expectEqual(Language["EN"]?.name, "English")
        expectEqual(Currency["EUR"]?.format("000000000000"), "0.00 EUR")
        expectEqual(Currency["JPY"]?.format("000000000000"), "0 JPY")
    }
}
