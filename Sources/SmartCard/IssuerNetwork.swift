/// A card network, with the first digits, the lengths and the security code of its account numbers.
///
/// ``all`` is the package's only list of issuer identification numbers (ISO/IEC 7812-1, 4.2): the checkout finds a number's
/// networks in it, and ``SensitiveData`` the digits with which any account number may begin.
package struct IssuerNetwork: Sendable {
    /// The network's identifier in configurations and messages.
    package let id: String
    /// The network's name for itself.
    package let name: String
    /// The first digits of its numbers: each range from the lower to the upper text, both of the same length.
    package let prefixes: [ClosedRange<String>]
    /// The lengths of its numbers in digits.
    package let lengths: [Int]
    /// The number of digits of its security code (CVV, CVC, CID).
    package let securityCodeLength: Int

    private init(
        _ id: String, _ name: String, _ prefixes: [ClosedRange<String>], _ lengths: some Sequence<Int>,
        securityCode: Int = 3
    ) {
        (self.id, self.name, self.prefixes) = (id, name, prefixes)
        (self.lengths, securityCodeLength) = (Array(lengths), securityCode)
    }

    /// The networks whose first digits are published.  Networks that share a range are both on a card of it, or either.
    package static let all: [IssuerNetwork] = [
        // Visa Core Rules, "Visa BIN"; 13 digits on old cards.
        IssuerNetwork("visa", "Visa", ["4"..."4"], [13, 16, 18, 19]),
        // Mastercard, "2-Series BIN" (222100 to 272099), beside 51 to 55.
        IssuerNetwork("mastercard", "Mastercard", ["51"..."55", "2221"..."2720"], [16]),
        // American Express, "Network Specifications"; the code on the front has four digits.
        IssuerNetwork("amex", "American Express", ["34"..."34", "37"..."37"], [15], securityCode: 4),
        // Discover Global Network, "IIN Ranges": Diners Club International.
        IssuerNetwork(
            "diners", "Diners Club", ["300"..."305", "3095"..."3095", "36"..."36", "38"..."39"], 14...19),
        // The same: Discover; with 622126 to 622925, which UnionPay shares.
        IssuerNetwork(
            "discover", "Discover", ["6011"..."6011", "622126"..."622925", "644"..."649", "65"..."65"], 16...19),
        // The same: JCB.
        IssuerNetwork("jcb", "JCB", ["3528"..."3589"], 16...19),
        // UnionPay International, "BIN"; 81 also in Discover's list.
        IssuerNetwork("unionpay", "UnionPay", ["62"..."62", "81"..."81"], 16...19),
        // Mastercard, "Maestro Global Rules".
        IssuerNetwork(
            "maestro", "Maestro",
            [
                "5018"..."5018", "5020"..."5020", "5038"..."5038", "5893"..."5893", "6304"..."6304", "6759"..."6759",
                "6761"..."6763",
            ], 12...19),
        // Nets: Dankort, and 4571 with Visa.
        IssuerNetwork("dankort", "Dankort", ["5019"..."5019", "4571"..."4571"], [16]),
        // NSPK: Mir.
        IssuerNetwork("mir", "Mir", ["2200"..."2204"], 16...19),
        // NPCI: RuPay; 353 and 356 with JCB, 65 with Discover.
        IssuerNetwork(
            "rupay", "RuPay",
            ["508"..."508", "60"..."60", "65"..."65", "81"..."81", "353"..."353", "356"..."356"], [16]),
        // BKM: Troy; 65 with Discover.
        IssuerNetwork("troy", "Troy", ["9792"..."9792", "65"..."65"], [16]),
    ]
}

extension IssuerNetwork {
    /// True if a number whose first digits are `digits`, each 0 to 9, may be this network's.  No digits are nobody's.
    package func issues(_ digits: some Collection<UInt8>) -> Bool { specificity(digits) != nil }

    /// The length of the longest prefix that matches `digits`, each 0 to 9; nil if none does, or if there are fewer
    /// digits than the prefix has.
    package func specificity(_ digits: some Collection<UInt8>) -> Int? {
        prefixes.compactMap { range in
            let count = range.lowerBound.utf8.count
            guard digits.count >= count else { return nil }
            let first = digits.prefix(count).lazy.map { $0 + UInt8(ascii: "0") }
            let isBelow = first.lexicographicallyPrecedes(range.lowerBound.utf8)
            return isBelow || range.upperBound.utf8.lexicographicallyPrecedes(first) ? nil : count
        }.max()
    }

    /// The industries whose cards pay, by a number's first digit (ISO/IEC 7812-1, table 1: major industry identifiers):
    /// airlines and financial, travel, banking, merchandising.  Networks have ranges all over them, most unpublished.
    private static let industries: ClosedRange<UInt8> = 2...6

    /// The beginnings of account numbers: the first digit for an industry whose cards pay, else a network's own first digits.
    package static let beginnings: [[UInt8]] = {
        var beginnings: Set<[UInt8]> = []
        for range in all.flatMap(\.prefixes) {
            // A range beyond the industries is a single beginning.
            let digits = range.lowerBound.utf8.map { $0 - UInt8(ascii: "0") }
            let isOfIndustry = digits.first.map(industries.contains) ?? true
            beginnings.insert(isOfIndustry ? Array(digits.prefix(1)) : digits)
        }
        return beginnings.sorted { $0.lexicographicallyPrecedes($1) }
    }()
}
