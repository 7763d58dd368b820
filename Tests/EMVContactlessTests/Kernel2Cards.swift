import EMVContactless
import SmartCard
import Testing

/// A card in mag-stripe mode, whose discretionary data are nines.  The account number is one that Mastercard publishes.
struct MagStripeCard {
    var aip = "00 00"
    /// CVC3 in bits 2 to 4; unpredictable number in bits 5 to 7, counter in bits 10 to 12.
    var track2 = "9F 65 02 00 0E  9F 66 02 0E 70  9F 67 01 03"
    var track1 = "9F 62 06 00 00 00 00 00 0E  9F 63 06 00 00 00 00 0E 70  9F 64 01 03"
    /// 13 digits.
    var discretionary = "9999999999999"
    var hasTrack1 = true
    var more = ""

    var processingOptions: String { get throws { try template(0x77, "82 02", aip, "94 04  08 01 01 00") } }

    var record: String {
        get throws {
            let first = Array("B5413330089010434^TAPPER/TESSA^3112201\(discretionary)".utf8)
            let digits = "5413330089010434D3112201" + discretionary
            let second = try wire(digits + (digits.count % 2 == 0 ? "" : "F"))
            return try template(
                0x70, TLVTag(0x9F6B).encode(second).hex, track2,
                hasTrack1 ? TLVTag(0x56).encode(first).hex + track1 : "", more)
        }
    }

    var read: [String] { get throws { try [processingOptions, record] } }

    /// To COMPUTE CRYPTOGRAPHIC CHECKSUM: 4660 for track 2, 3000 for track 1, and the 66th transaction.
    static func checksum(_ more: String = "", without tags: Set<String> = []) throws -> String {
        let objects = [("9F61", "9F 61 02 12 34"), ("9F60", "9F 60 02 0B B8"), ("9F36", "9F 36 02 00 42")]
        return try template(0x77, objects.filter { !tags.contains($0.0) }.map(\.1).joined(separator: " "), more)
    }
}

/// One transaction from its first state to its last, and what it comes to.
struct Kernel2Walk: Sendable, CustomStringConvertible {
    let name: String
    /// The instructions that the card is sent.
    let instructions: String
    let kind: Outcome.Kind
    /// DF8115.
    var error = "0000000000FF"
    let play: @Sendable () throws -> Kernel2Bench.Run

    var description: String { name }

    init(
        _ name: String, _ instructions: String, _ kind: Outcome.Kind, _ error: String = "0000000000FF",
        _ play: @escaping @Sendable () throws -> Kernel2Bench.Run
    ) {
        (self.name, self.instructions, self.kind, self.error, self.play) = (name, instructions, kind, error, play)
    }
}

/// What the terminal says to a kernel that asks.
func answer(_ objects: (TLVTag, String)...) throws -> DataRecord {
    DataRecord(try objects.map { .init($0.0, try wire($0.1)) })
}

/// A card with one record, which may be torn: its DRDOL asks for the unpredictable number and the amount.
struct ShortCard {
    var options = ""
    var more = "9F 51 06  9F 37 04  9F 02 06"
    var locator = "10 01 01 00"

    var processingOptions: String {
        get throws { try template(0x77, "82 02 18 80", TLVTag(0x94).encode(try wire(locator)).hex, options) }
    }
    var record: String { get throws { try template(0x70, Kernel2Vectors.record, more) } }
    var read: [String] { get throws { try [processingOptions, record] } }
}

extension Kernel2Bench {
    /// A terminal that reads tag 9F70 while the card's only record is on its way, and what else its first answer says.
    static func reading(_ more: (TLVTag, String)..., data: [String: String?] = [:]) throws -> Kernel2Bench {
        var bench = Kernel2Bench()
        bench.data = data.merging(["DF8112": ""]) { $1 }
        bench.answers = [
            DataRecord([.init(0xDF8112, [0x9F, 0x70])] + (try more.map { .init($0.0, try wire($0.1)) }))
        ]
        return bench
    }

    /// A terminal that reads what the card does not give, and says something when it is told so.
    static func speaking(_ data: [String: String?] = [:]) throws -> Kernel2Bench {
        var bench = Kernel2Bench()
        bench.data = data.merging(["DF8112": "9F6E"]) { $1 }
        bench.answers = [try answer((0xDF8110, "01"))]
        return bench
    }

    /// A terminal that writes so many objects before GENERATE AC, and after it.
    static func writing(before: Int = 0, after: Int = 0) -> Kernel2Bench {
        func list(_ count: Int) -> String { (0..<count).map { "9F7\($0 + 5)02AA0\($0)" }.joined() }
        var bench = Kernel2Bench()
        bench.data = ["FF8102": before > 0 ? list(before) : nil, "FF8103": after > 0 ? list(after) : nil]
        return bench
    }

    /// A terminal that wants to know the balance, of a card that has one.
    static func balance(before: Bool = false, after: Bool = false) -> Kernel2Bench {
        var bench = Kernel2Bench()
        bench.discretionary = "9F 5D 03 01 02 00"
        bench.data = ["DF8104": before ? "" : nil, "DF8105": after ? "" : nil]
        return bench
    }

    /// The same, for a card that left while it made its cryptogram.
    var torn: Kernel2Bench {
        get throws {
            let lost = try Kernel2Bench().run(try ShortCard().read + ["-"])
            var bench = self
            bench.tornTransactions = try #require(lost.outcome.tornTransactions)
            return bench
        }
    }
}
