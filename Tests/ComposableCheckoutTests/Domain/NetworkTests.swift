import CardReceipts
import ComposableCheckout
import SmartCard
import Testing

@Suite("D4 networks") struct NetworkTests {
    @Test("The networks are those of the one table, each with a name of its own, which receipts have, too")
    func names() {
        #expect(CardNetwork.known.count == IssuerNetwork.all.count)
        #expect(Set(CardNetwork.known.map(\.name)).count == CardNetwork.known.count)
        let brands = Set(CardBrand.allCases.compactMap(\.name))
        #expect(brands.isSuperset(of: CardNetwork.known.map(\.name)))
        #expect(
            [
                CardNetwork.visa, .mastercard, .amex, .diners, .discover, .jcb, .unionPay, .maestro, .dankort, .mir,
                .ruPay,
                .troy,
            ] == CardNetwork.known)
    }

    /// braintree/credit-card-type, lib/card-types.js, and Oracle's table 5-22, List of Standard U.S. Credit Card
    /// Preambles: first digits, network, lengths, size of the code.
    static let published: [([String], CardNetwork, [Int], Int)] = [
        (["4"], .visa, [16, 18, 19], 3),
        (["51", "55", "2221", "2229", "223", "229", "23", "26", "270", "271", "2720"], .mastercard, [16], 3),
        (["34", "37"], .amex, [15], 4),
        (["300", "305", "3095", "36", "38", "39"], .diners, [14, 16, 19], 3),
        (["6011", "644", "649", "65", "622126", "622925"], .discover, [16, 19], 3),
        (["3528", "3589"], .jcb, [16, 17, 18, 19], 3),
        (["620", "624", "626", "62100", "6270", "6282", "6292", "810", "8171"], .unionPay, [16, 17, 18, 19], 3),
    ]

    @Test("D4 published prefixes, lengths and code sizes are in the table", arguments: published)
    func prefixes(prefixes: [String], network: CardNetwork, lengths: [Int], codeSize: Int) throws {
        let facts = try #require(IssuerNetwork.all.first { $0.id == network.rawValue })
        for prefix in prefixes {
            // A prefix that is shorter than the table's is a range of it.
            let digits = (prefix + "000000").prefix(6).utf8.map { $0 - 0x30 }
            #expect(facts.issues(digits), "\(prefix)")
        }
        #expect(Set(network.numberLengths).isSuperset(of: lengths))
        #expect(network.securityCodeLength == codeSize)
    }

    @Test(
        "D4 neighbors of published ranges are not the network's",
        arguments: [
            ("2220", CardNetwork.mastercard), ("2721", .mastercard), ("50", .mastercard), ("56", .mastercard),
            ("3527", .jcb), ("3590", .jcb), ("306", .diners), ("3094", .diners), ("35", .amex), ("643", .discover),
            ("622125", .discover), ("622926", .discover), ("2205", .mir),
        ])
    func neighbors(prefix: String, network: CardNetwork) throws {
        let facts = try #require(IssuerNetwork.all.first { $0.id == network.rawValue })
        #expect(!facts.issues(prefix.utf8.map { $0 - 0x30 }))
    }

    @Test("A search for account numbers begins at the same digits as before there was a table")
    func beginnings() {
        for number in 0..<10_000 {
            let digits = [number / 1000, number / 100 % 10, number / 10 % 10, number % 10].map { UInt8($0) }
            let before = (2...6).contains(digits[0]) || digits.starts(with: [8, 1]) || digits == [9, 7, 9, 2]
            #expect(IssuerNetwork.beginnings.contains { digits.starts(with: $0) } == before, "\(digits)")
        }
        // Every prefix has one, and ranges have bounds of one length.
        for network in IssuerNetwork.all {
            for range in network.prefixes {
                #expect(range.lowerBound.count == range.upperBound.count)
                let first = range.lowerBound.utf8.map { $0 - 0x30 }
                #expect(IssuerNetwork.beginnings.contains { first.starts(with: $0) })
            }
        }
    }
}
