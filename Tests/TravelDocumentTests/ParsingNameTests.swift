import TestSupport
import Testing

@testable import TravelDocument

/// Transliteration and comparison of names (ICAO 9303-3, 4.6 and 6).
@Suite struct ParsingNameTests {
    @Test(
        "Punctuation (4.6) and letters (6) in a zone",
        arguments: [
            ("D'ARTAGNAN", "DARTAGNAN"), ("D\u{2019}Artagnan", "DARTAGNAN"), ("MARIE-ELISE", "MARIE<ELISE"),
            ("ANNA, MARIA", "ANNA<MARIA"), ("Dr. Anna", "DR<ANNA"), ("Müller", "MUELLER"), ("Weiß", "WEISS"),
            ("Ångström", "AANGSTROEM"), ("Þórður", "THORDUR"), ("Œuvre", "OEUVRE"), ("Ĳssel", "IJSSEL"),
            ("İnönü", "INOENUE"), ("Işık", "ISIK"), ("Łódź", "LODZ"), ("Muñoz", "MUNOZ"), ("Søren Ærø", "SOEREN<AEROE"),
            // Letter and mark, one after the other.
            ("Mu\u{0308}ller", "MUELLER"), (" Anna  - Maria ", "ANNA<MARIA"), ("", ""),
            ("Юрий", "IURII"), ("Щукин", "SHCHUKIN"), ("Подъячев", "PODIEIACHEV"), ("Игорь", "IGOR"),
            ("Ёлкин", "ELKIN"), ("Хрущёв", "KHRUSHCHEV"),
        ])
    func machineReadable(_ name: String, _ expected: String) {
        expectEqual(Transliteration.machineReadable(name), expected)
    }

    @Test(
        "Exceptions of languages",
        arguments: [
            ("Юлія", Transliteration.Language.ukrainian, "YULIIA"), ("Євген", .ukrainian, "YEVHEN"),
            ("Григорій", .ukrainian, "HRYHORII"), ("Йосип", .ukrainian, "YOSYP"),
            ("Їжакевич", .ukrainian, "YIZHAKEVYCH"),
            ("Ёлкін", .belarusian, "IOLKIN"), ("Щерев", .bulgarian, "SHTEREV"), ("Жика", .serbian, "ZIKA"),
            ("Ќурчиев", .macedonian, "KJURCHIEV"), ("Џон", .macedonian, "DJON"), ("Цветко", .macedonian, "CVETKO"),
        ])
    func languages(_ name: String, _ language: Transliteration.Language, _ expected: String) {
        expectEqual(Transliteration.machineReadable(name, language: language), expected)
    }

    @Test("Letters in no table, and digits, have no form", arguments: ["赵彬", "Ζωή", "Henry 8", "Ѓорѓи"])
    func others(_ name: String) {
        expectEqual(Transliteration.machineReadable(name), nil)
    }

    @Test("Each row of the tables has characters of a zone, and no letter has two rows")
    func tables() {
        let rows = Transliteration.latin + Transliteration.cyrillic
        // 6.A: 95 letters.  6.B: 48, and the soft sign.
        #expect(Transliteration.latin.count == 95 && Transliteration.cyrillic.count == 49)
        expectEqual(Set(rows.map(\.letter)).count, rows.count)
        for row in rows {
            let forms = row.characters + row.exceptions.map(\.characters)
            #expect(!row.characters.isEmpty && forms.joined().allSatisfy { ("A"..."Z").contains($0) })
            #expect(row.letter.uppercased() == String(row.letter) || row.letter == "\u{0131}")
        }
    }

    @Test(
        "A name in national characters agrees with the zone's in any of the recommended forms",
        arguments: [
            ("MÜLLER<<JÖRG", "MUELLER<<JOERG<<<<", NameAgreement.same),
            ("MÜLLER<<JÖRG", "MUXXLLER<<JORG<<<<", .same),
            ("MÜLLER<<JÖRG", "MULLER<<JOERG<<<<<", .same),
            ("MÜLLER<<JÖRG", "MILLER<<JOERG<<<<<", .different),
            ("MÜLLER<<JÖRG", "MUELLER<<JOERG<UWE<", .different),
            ("MÜLLER<<JÖRG<UWE", "MUELLER<<JOERG<<<", .different),
            ("Müller<<Jörg Uwe", "MUELLER<<JOERG<UWE<", .same),
            ("MARÍN-O'NEILL<<ANA", "MARIN<ONEILL<<ANA<", .same),
            ("ЄВТУШЕНКО<<ЮРІЙ", "YEVTUSHENKO<<YURII<", .same),
            ("ЄВТУШЕНКО<<ЮРІЙ", "IEVTUSHENKO<<IURII<", .same),
            ("赵彬", "ZHAO<<BIN<<<<<<<<<", .notComparable),
            // 9303-5, 4.2.3
            ("NILAVADHANANANDA<<CHAYAPA<DEJTHAMRONG<KRASUANG", "NILAVADHANANANDA<<CHAYAPA<DE<K", .truncated),
            (
                "BENNELONG<WOOLOOMOOLOO<WARRANDYTE<WARNAMBOOL<<DINGO<POTOROO", "BENNELONG<WOOLOOMOOLOO<W<W<<DI",
                .truncated
            ),
            (
                "BENNELONG<WOOLOOMOOLOO<WARRANDYTE<WARNAMBOOL<<DINGO<POTOROO", "BENNE<WOOLO<WARRA<WARNA<<DIN<P",
                .truncated
            ),
            ("NILAVADHANANANDA<<ARNPOL<PETCH<CHARONGUANG", "NILAVADHANANANDA<<CHAYAPA<DE<K", .different),
            // The same beginning does not agree where there was room.
            ("NILAVADHANANANDA<<CHAYAPA<DEJTHAMRONG", "NILAVADHANANANDA<<CHAYAPA<DE<<", .different),
            ("PAPANDROPOULOUS<<JONATHON<ALEC", "PAPANDROPOULOUS<<JONATHON<ALEC", .same),
            // A zone that was cut off has no name that the holder does not have.
            ("PAPANDROPOULOUS<<JONATHON", "PAPANDROPOULOUS<<JONATHON<ALEC", .different),
            // Cut off within the form of a letter.
            ("ABCDEFGHIJKLMNOPQRSTUVWXYZ<<ЩЕРБА", "ABCDEFGHIJKLMNOPQRSTUVWXYZ<<SH", .truncated),
        ])
    func agreement(_ name: String, _ field: String, _ expected: NameAgreement) {
        expectEqual(DocumentName(name).agreement(with: DocumentName(field, isWholeField: true)), expected)
    }

    @Test("A long name of letters with many forms is compared in little time")
    func manyForms() {
        let name = DocumentName(String(repeating: "Ü", count: 20_000) + "<<A")
        let zone = DocumentName(String(repeating: "UXX", count: 12) + "<<A", isWholeField: true)
        expectEqual(name.agreement(with: zone), .truncated)
    }
}
