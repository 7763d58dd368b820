/// Telephone numbers: calling codes, trunk prefixes and lengths, by country.
enum PhoneNumbers {
    struct Plan: Sendable {
        let callingCode: String
        /// The prefix of national calls, which is no part of the number; empty: none.
        let trunkPrefix: String
        /// The numbers of digits behind the calling code.
        let lengths: Set<Int>
    }

    /// The longest number, with its calling code (ITU-T E.164, 6.1).
    static let maximumLength = 15
    /// The shortest number that is accepted where the country is not known.
    static let minimumLength = 7

    /// Returns true if a telephone number is possible.
    ///
    /// - Parameters:
    ///   - digits: ASCII digits, for an international number with the calling code.
    ///   - isInternational: true if it was written with a `+`, or `00`.
    ///   - country: the ISO 3166-1 alpha-2 code of the country to which a national number belongs; nil: not known.
    static func accept(_ digits: String, isInternational: Bool, country: String?) -> Bool {
        if isInternational {
            guard digits.count <= maximumLength else { return false }
            return plans.values.contains { plan in
                digits.hasPrefix(plan.callingCode) && plan.lengths.contains(digits.count - plan.callingCode.count)
            }
        }
        guard let plan = country.flatMap({ plans[$0] }) else {
            return (minimumLength...maximumLength).contains(digits.count)
        }
        if plan.lengths.contains(digits.count) { return true }
        return !plan.trunkPrefix.isEmpty && digits.hasPrefix(plan.trunkPrefix)
            && plan.lengths.contains(digits.count - plan.trunkPrefix.count)
    }

    static let plans: [String: Plan] = {
        var plans: [String: Plan] = [:]
        for line in table.split(separator: "\n") {
            let columns = line.split(separator: "|")
            let facts = columns[0].split(separator: " ")
            var lengths: Set<Int> = []
            for range in facts[2].split(separator: ",") {
                let bounds = range.split(separator: "-").compactMap { Int($0) }
                if let first = bounds.first, let last = bounds.last { lengths.formUnion(first...last) }
            }
            let plan = Plan(
                callingCode: String(facts[0]), trunkPrefix: facts[1] == "-" ? "" : String(facts[1]), lengths: lengths)
            for country in columns.last?.split(separator: " ") ?? [] { plans[String(country)] = plan }
        }
        return plans
    }()

    /// Calling code, trunk prefix, lengths of national numbers, and the countries that have these.
    ///
    /// From the metadata of Google's libphonenumber 8.12.57 (Debian: python3-phonenumbers): country code, national prefix,
    /// possible lengths.
    private static let table = """
        1 1 10 | AG AI AS BB BM BS DM DO GD GU JM KN KY LC MP MS PR SX TC TT US VC VG VI
        1 1 7,10 | CA
        7 8 10,14 | KZ RU
        20 0 8-10 | EG
        27 0 5-10 | ZA
        30 - 10-12 | GR
        31 0 5-11 | NL
        32 0 8-9 | BE
        33 0 9 | FR
        34 - 9 | ES
        36 06 8-9 | HU
        39 - 6-12 | IT VA
        40 0 6,9 | RO
        41 0 9,12 | CH
        43 0 4-13 | AT
        44 0 10 | IM JE
        44 0 7,9-10 | GB GG
        45 - 8 | DK
        46 0 6-10,12 | SE
        47 - 5,8 | NO SJ
        48 - 6-10 | PL
        49 0 4-15 | DE
        51 0 8-9 | PE
        52 01 10-11 | MX
        53 0 6-8,10 | CU
        54 0 10-11 | AR
        55 0 8-11 | BR
        56 - 9-11 | CL
        57 0 10-11 | CO
        58 0 10 | VE
        60 0 8-10 | MY
        61 0 5-10,12 | AU
        61 0 6-10,12 | CC CX
        62 0 7-13 | ID
        63 0 6,8-13 | PH
        64 0 5-10 | NZ
        65 - 8,10-11 | SG
        66 0 8-10,13 | TH
        81 0 8-17 | JP
        82 0 5-6,8-14 | KR
        84 0 7-10 | VN
        86 0 7-12 | CN
        90 0 7,10,12-13 | TR
        91 0 8-13 | IN
        92 0 8-12 | PK
        93 0 9 | AF
        94 0 9 | LK
        95 0 6-10 | MM
        98 0 4-7,10 | IR
        211 0 9 | SS
        212 0 9 | EH MA
        213 0 8-9 | DZ
        216 - 8 | TN
        218 0 9 | LY
        220 - 7 | GM
        221 - 9 | SN
        222 - 8 | MR
        223 - 8 | ML
        224 - 8-9 | GN
        225 - 10 | CI
        226 - 8 | BF
        227 - 8 | NE
        228 - 8 | TG
        229 - 8 | BJ
        230 - 7-8,10 | MU
        231 0 7-9 | LR
        232 0 8 | SL
        233 0 8-9 | GH
        234 0 7-8,10-14 | NG
        235 - 8 | TD
        236 - 8 | CF
        237 - 8-9 | CM
        238 - 7 | CV
        239 - 7 | ST
        240 - 9 | GQ
        241 - 7-8 | GA
        242 - 9 | CG
        243 0 7,9 | CD
        244 - 9 | AO
        245 - 7,9 | GW
        246 - 7 | IO
        248 - 7 | SC
        249 0 9 | SD
        250 0 8-9 | RW
        251 0 9 | ET
        252 0 6-9 | SO
        253 - 8 | DJ
        254 0 7-10 | KE
        255 0 9 | TZ
        256 0 9 | UG
        257 - 8 | BI
        258 - 8-9 | MZ
        260 0 9 | ZM
        261 0 9 | MG
        262 0 9 | RE YT
        263 0 5-10 | ZW
        264 0 8-9 | NA
        265 0 7,9 | MW
        266 - 8 | LS
        267 - 7-8,10 | BW
        268 - 8-9 | SZ
        269 - 7 | KM
        290 - 4-5 | SH
        291 0 7 | ER
        297 - 7 | AW
        298 - 6 | FO
        299 - 6 | GL
        350 - 8 | GI
        351 - 9 | PT
        352 - 4-11 | LU
        353 0 7-10 | IE
        354 - 7,9 | IS
        355 0 6-9 | AL
        356 - 8 | MT
        357 - 8 | CY
        358 0 5-12 | AX FI
        359 0 6-9 | BG
        370 8 8 | LT
        371 - 8 | LV
        372 - 7-8,10 | EE
        373 0 8 | MD
        374 0 8 | AM
        375 8 6-11 | BY
        376 - 6,8-9 | AD
        377 0 8-9 | MC
        378 - 8,10 | SM
        380 0 9-10 | UA
        381 0 6-12 | RS
        382 0 8-9 | ME
        385 0 6-9 | HR
        386 0 5-8 | SI
        387 0 8-9 | BA
        389 0 8 | MK
        420 - 9-12 | CZ
        421 0 6-7,9 | SK
        423 0 7,9 | LI
        500 - 5 | FK
        501 - 7,11 | BZ
        502 - 8,11 | GT
        503 - 7-8,11 | SV
        504 - 8,11 | HN
        505 - 8 | NI
        506 - 8,10 | CR
        507 - 7-8,10-11 | PA
        508 0 6,9 | PM
        509 - 8 | HT
        590 0 9 | BL GP MF
        591 0 8-9 | BO
        592 - 7 | GY
        593 0 8-11 | EC
        594 0 9 | GF
        595 0 6-11 | PY
        596 0 9 | MQ
        597 - 6-7 | SR
        598 0 7-8,10 | UY
        599 - 7 | BQ
        599 - 7-8 | CW
        670 - 7-8 | TL
        672 - 6 | NF
        673 - 7 | BN
        674 - 7 | NR
        675 - 7-8 | PG
        676 - 5,7 | TO
        677 - 5,7 | SB
        678 - 5,7 | VU
        679 - 7,11 | FJ
        680 - 7 | PW
        681 - 6,9 | WF
        682 - 5 | CK
        683 - 4,7 | NU
        685 - 5-7,10 | WS
        686 0 5,8 | KI
        687 - 6 | NC
        688 - 5-7 | TV
        689 - 6,8-9 | PF
        690 - 4-7 | TK
        691 - 7 | FM
        692 1 7 | MH
        850 0 8,10 | KP
        852 - 5-9,11 | HK
        853 - 7-8 | MO
        855 0 8-10 | KH
        856 0 8-10 | LA
        880 0 6-10 | BD
        886 0 7-11 | TW
        960 - 7,10 | MV
        961 0 7-8 | LB
        962 0 8-9 | JO
        963 0 8-9 | SY
        964 0 8-10 | IQ
        965 - 7-8 | KW
        966 0 9-10 | SA
        967 0 7-9 | YE
        968 - 7-9 | OM
        970 0 8-10 | PS
        971 0 5-12 | AE
        972 0 7-12 | IL
        973 - 8 | BH
        974 - 7-9 | QA
        975 - 7-8 | BT
        976 0 8-10 | MN
        977 0 8,10-11 | NP
        992 - 9 | TJ
        993 8 8 | TM
        994 0 9 | AZ
        995 0 9 | GE
        996 0 9-10 | KG
        998 8 9 | UZ
        """
}
