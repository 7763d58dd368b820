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
        // Sources: [B] braintree/credit-card-type, lib/card-types.js; [O] Oracle Retail, List of Standard U.S. Credit Card
        // Preambles; [W] Wikipedia, Payment card number, Issuer identification number (2024-07).

        // [B], [O], [W]; 13 digits on old cards: [W].
        IssuerNetwork("visa", "Visa", ["4"..."4"], [13, 16, 18, 19]),
        // [B], [O], [W].
        IssuerNetwork("mastercard", "Mastercard", ["51"..."55", "2221"..."2720"], [16]),
        // [B], [O], [W]; four digits of the code on the front: [B].
        IssuerNetwork("amex", "American Express", ["34"..."34", "37"..."37"], [15], securityCode: 4),
        // [O], with 3095; [B] without it; lengths: [W].
        IssuerNetwork(
            "diners", "Diners Club", ["300"..."305", "3095"..."3095", "36"..."36", "38"..."39"], 14...19),
        // [W], with 622126 to 622925, which UnionPay shares; [B] and [O] have parts of it.
        IssuerNetwork(
            "discover", "Discover", ["6011"..."6011", "622126"..."622925", "644"..."649", "65"..."65"], 16...19),
        // [B], [O], [W]; 1800 and 2131 of [B] are of an older numbering with 15 digits.
        IssuerNetwork("jcb", "JCB", ["3528"..."3589"], 16...19),
        // [W]; [B] has parts of it.
        IssuerNetwork("unionpay", "UnionPay", ["62"..."62", "81"..."81"], 16...19),
        // [W].
        IssuerNetwork(
            "maestro", "Maestro",
            [
                "5018"..."5018", "5020"..."5020", "5038"..."5038", "5893"..."5893", "6304"..."6304", "6759"..."6759",
                "6761"..."6763",
            ], 12...19),
        // [W]; 4571 is shared with Visa.
        IssuerNetwork("dankort", "Dankort", ["5019"..."5019", "4571"..."4571"], [16]),
        // [W].
        IssuerNetwork("mir", "Mir", ["2200"..."2204"], 16...19),
        // [W]; 353 and 356 are shared with JCB, 65 with Discover.
        IssuerNetwork(
            "rupay", "RuPay",
            ["508"..."508", "60"..."60", "65"..."65", "81"..."81", "353"..."353", "356"..."356"], [16]),
        // [W]; 65 is shared with Discover.
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
