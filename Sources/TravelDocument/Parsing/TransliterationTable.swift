extension Transliteration {
    /// A letter and the characters that stand for it in a zone (ICAO 9303-3, 6).
    struct Row {
        /// The letter as a capital.
        let letter: Character
        /// The recommended characters, in the standard's order.
        let characters: [String]
        /// The characters in languages that have others.
        var exceptions: [Exception] = []
    }

    struct Exception {
        let language: Language
        let characters: String
        /// True for the first letter of a word only.
        var isInitial = false
    }

    /// A. Latin letters.
    static let latin: [Row] = [
        Row(letter: "\u{00C0}", characters: ["A"]), Row(letter: "\u{00C1}", characters: ["A"]),
        Row(letter: "\u{00C2}", characters: ["A"]), Row(letter: "\u{00C3}", characters: ["A"]),
        Row(letter: "\u{00C4}", characters: ["AE", "A"]), Row(letter: "\u{00C5}", characters: ["AA", "A"]),
        Row(letter: "\u{00C6}", characters: ["AE"]), Row(letter: "\u{00C7}", characters: ["C"]),
        Row(letter: "\u{00C8}", characters: ["E"]), Row(letter: "\u{00C9}", characters: ["E"]),
        Row(letter: "\u{00CA}", characters: ["E"]), Row(letter: "\u{00CB}", characters: ["E"]),
        Row(letter: "\u{00CC}", characters: ["I"]), Row(letter: "\u{00CD}", characters: ["I"]),
        Row(letter: "\u{00CE}", characters: ["I"]), Row(letter: "\u{00CF}", characters: ["I"]),
        Row(letter: "\u{00D0}", characters: ["D"]), Row(letter: "\u{00D1}", characters: ["N", "NXX"]),
        Row(letter: "\u{00D2}", characters: ["O"]), Row(letter: "\u{00D3}", characters: ["O"]),
        Row(letter: "\u{00D4}", characters: ["O"]), Row(letter: "\u{00D5}", characters: ["O"]),
        Row(letter: "\u{00D6}", characters: ["OE", "O"]), Row(letter: "\u{00D8}", characters: ["OE"]),
        Row(letter: "\u{00D9}", characters: ["U"]), Row(letter: "\u{00DA}", characters: ["U"]),
        Row(letter: "\u{00DB}", characters: ["U"]), Row(letter: "\u{00DC}", characters: ["UE", "UXX", "U"]),
        Row(letter: "\u{00DD}", characters: ["Y"]), Row(letter: "\u{00DE}", characters: ["TH"]),
        Row(letter: "\u{0100}", characters: ["A"]), Row(letter: "\u{0102}", characters: ["A"]),
        Row(letter: "\u{0104}", characters: ["A"]), Row(letter: "\u{0106}", characters: ["C"]),
        Row(letter: "\u{0108}", characters: ["C"]), Row(letter: "\u{010A}", characters: ["C"]),
        Row(letter: "\u{010C}", characters: ["C"]), Row(letter: "\u{010E}", characters: ["D"]),
        Row(letter: "\u{0110}", characters: ["D"]), Row(letter: "\u{0112}", characters: ["E"]),
        Row(letter: "\u{0114}", characters: ["E"]), Row(letter: "\u{0116}", characters: ["E"]),
        Row(letter: "\u{0118}", characters: ["E"]), Row(letter: "\u{011A}", characters: ["E"]),
        Row(letter: "\u{011C}", characters: ["G"]), Row(letter: "\u{011E}", characters: ["G"]),
        Row(letter: "\u{0120}", characters: ["G"]), Row(letter: "\u{0122}", characters: ["G"]),
        Row(letter: "\u{0124}", characters: ["H"]), Row(letter: "\u{0126}", characters: ["H"]),
        Row(letter: "\u{0128}", characters: ["I"]), Row(letter: "\u{012A}", characters: ["I"]),
        Row(letter: "\u{012C}", characters: ["I"]), Row(letter: "\u{012E}", characters: ["I"]),
        Row(letter: "\u{0130}", characters: ["I"]), Row(letter: "\u{0131}", characters: ["I"]),
        Row(letter: "\u{0132}", characters: ["IJ"]), Row(letter: "\u{0134}", characters: ["J"]),
        Row(letter: "\u{0136}", characters: ["K"]), Row(letter: "\u{0139}", characters: ["L"]),
        Row(letter: "\u{013B}", characters: ["L"]), Row(letter: "\u{013D}", characters: ["L"]),
        Row(letter: "\u{013F}", characters: ["L"]), Row(letter: "\u{0141}", characters: ["L"]),
        Row(letter: "\u{0143}", characters: ["N"]), Row(letter: "\u{0145}", characters: ["N"]),
        Row(letter: "\u{0147}", characters: ["N"]), Row(letter: "\u{014A}", characters: ["N"]),
        Row(letter: "\u{014C}", characters: ["O"]), Row(letter: "\u{014E}", characters: ["O"]),
        Row(letter: "\u{0150}", characters: ["O"]), Row(letter: "\u{0152}", characters: ["OE"]),
        Row(letter: "\u{0154}", characters: ["R"]), Row(letter: "\u{0156}", characters: ["R"]),
        Row(letter: "\u{0158}", characters: ["R"]), Row(letter: "\u{015A}", characters: ["S"]),
        Row(letter: "\u{015C}", characters: ["S"]), Row(letter: "\u{015E}", characters: ["S"]),
        Row(letter: "\u{0160}", characters: ["S"]), Row(letter: "\u{0162}", characters: ["T"]),
        Row(letter: "\u{0164}", characters: ["T"]), Row(letter: "\u{0166}", characters: ["T"]),
        Row(letter: "\u{0168}", characters: ["U"]), Row(letter: "\u{016A}", characters: ["U"]),
        Row(letter: "\u{016C}", characters: ["U"]), Row(letter: "\u{016E}", characters: ["U"]),
        Row(letter: "\u{0170}", characters: ["U"]), Row(letter: "\u{0172}", characters: ["U"]),
        Row(letter: "\u{0174}", characters: ["W"]), Row(letter: "\u{0176}", characters: ["Y"]),
        Row(letter: "\u{0178}", characters: ["Y"]), Row(letter: "\u{0179}", characters: ["Z"]),
        Row(letter: "\u{017B}", characters: ["Z"]), Row(letter: "\u{017D}", characters: ["Z"]),
        Row(letter: "\u{1E9E}", characters: ["SS"]),
    ]

    /// B. Cyrillic letters.  For 0402 the standard shows the letter of 040B, which has no row; the number is taken.
    static let cyrillic: [Row] = [
        Row(letter: "\u{0401}", characters: ["E"], exceptions: [.init(language: .belarusian, characters: "IO")]),
        Row(letter: "\u{0402}", characters: ["D"]),
        Row(
            letter: "\u{0404}", characters: ["IE"],
            exceptions: [.init(language: .ukrainian, characters: "YE", isInitial: true)]),
        Row(letter: "\u{0405}", characters: ["DZ"]),
        Row(letter: "\u{0406}", characters: ["I"]),
        Row(
            letter: "\u{0407}", characters: ["I"],
            exceptions: [.init(language: .ukrainian, characters: "YI", isInitial: true)]),
        Row(letter: "\u{0408}", characters: ["J"]),
        Row(letter: "\u{0409}", characters: ["LJ"]),
        Row(letter: "\u{040A}", characters: ["NJ"]),
        Row(letter: "\u{040C}", characters: ["K"], exceptions: [.init(language: .macedonian, characters: "KJ")]),
        Row(letter: "\u{040E}", characters: ["U"]),
        Row(letter: "\u{040F}", characters: ["DZ"], exceptions: [.init(language: .macedonian, characters: "DJ")]),
        Row(letter: "\u{0410}", characters: ["A"]),
        Row(letter: "\u{0411}", characters: ["B"]),
        Row(letter: "\u{0412}", characters: ["V"]),
        Row(
            letter: "\u{0413}", characters: ["G"],
            exceptions: [
                .init(language: .belarusian, characters: "H"), .init(language: .serbian, characters: "H"),
                .init(language: .ukrainian, characters: "H"),
            ]),
        Row(letter: "\u{0414}", characters: ["D"]),
        Row(letter: "\u{0415}", characters: ["E"]),
        Row(letter: "\u{0416}", characters: ["ZH"], exceptions: [.init(language: .serbian, characters: "Z")]),
        Row(letter: "\u{0417}", characters: ["Z"]),
        Row(letter: "\u{0418}", characters: ["I"], exceptions: [.init(language: .ukrainian, characters: "Y")]),
        Row(
            letter: "\u{0419}", characters: ["I"],
            exceptions: [.init(language: .ukrainian, characters: "Y", isInitial: true)]),
        Row(letter: "\u{041A}", characters: ["K"]),
        Row(letter: "\u{041B}", characters: ["L"]),
        Row(letter: "\u{041C}", characters: ["M"]),
        Row(letter: "\u{041D}", characters: ["N"]),
        Row(letter: "\u{041E}", characters: ["O"]),
        Row(letter: "\u{041F}", characters: ["P"]),
        Row(letter: "\u{0420}", characters: ["R"]),
        Row(letter: "\u{0421}", characters: ["S"]),
        Row(letter: "\u{0422}", characters: ["T"]),
        Row(letter: "\u{0423}", characters: ["U"]),
        Row(letter: "\u{0424}", characters: ["F"]),
        Row(
            letter: "\u{0425}", characters: ["KH"],
            exceptions: [
                .init(language: .serbian, characters: "H"), .init(language: .macedonian, characters: "H"),
            ]),
        Row(
            letter: "\u{0426}", characters: ["TS"],
            exceptions: [
                .init(language: .serbian, characters: "C"), .init(language: .macedonian, characters: "C"),
            ]),
        Row(letter: "\u{0427}", characters: ["CH"], exceptions: [.init(language: .serbian, characters: "C")]),
        Row(letter: "\u{0428}", characters: ["SH"], exceptions: [.init(language: .serbian, characters: "S")]),
        Row(letter: "\u{0429}", characters: ["SHCH"], exceptions: [.init(language: .bulgarian, characters: "SHT")]),
        Row(letter: "\u{042A}", characters: ["IE"]),
        Row(letter: "\u{042B}", characters: ["Y"]),
        // The standard has no row for the soft sign.  It has no sound, and the recommendation's users leave it out.
        Row(letter: "\u{042C}", characters: [""]),
        Row(letter: "\u{042D}", characters: ["E"]),
        Row(
            letter: "\u{042E}", characters: ["IU"],
            exceptions: [.init(language: .ukrainian, characters: "YU", isInitial: true)]),
        Row(
            letter: "\u{042F}", characters: ["IA"],
            exceptions: [.init(language: .ukrainian, characters: "YA", isInitial: true)]),
        Row(letter: "\u{046A}", characters: ["U"]),
        Row(letter: "\u{0474}", characters: ["Y"]),
        Row(letter: "\u{0490}", characters: ["G"]),
        Row(letter: "\u{0492}", characters: ["G"], exceptions: [.init(language: .macedonian, characters: "GJ")]),
        Row(letter: "\u{04BA}", characters: ["C"]),
    ]
}
