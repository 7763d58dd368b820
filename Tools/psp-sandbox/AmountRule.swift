/// How the sandbox decides: by the last two digits of the amount in minor units, most of which are response codes of
/// ISO 8583 (field 39).
struct AmountRule: Sendable {
    enum Delivery: Int, Sendable {
        case now
        /// After the time of `--late`.
        case late
        /// The connection is closed without an answer.
        case never
    }

    /// The amount's last two digits; nil: all others.
    let ending: String?
    let responseCode: String
    let message: String
    var delivery = Delivery.now

    var isApproval: Bool { responseCode == "00" }

    static let table = [
        AmountRule(ending: "05", responseCode: "05", message: "Do not honour"),
        AmountRule(ending: "14", responseCode: "14", message: "Invalid card number"),
        AmountRule(ending: "51", responseCode: "51", message: "Insufficient funds"),
        AmountRule(ending: "54", responseCode: "54", message: "Expired card"),
        AmountRule(ending: "91", responseCode: "91", message: "Issuer unavailable"),
        AmountRule(ending: "96", responseCode: "00", message: "Approved", delivery: .never),
        AmountRule(ending: "98", responseCode: "00", message: "Approved", delivery: .late),
        AmountRule(ending: nil, responseCode: "00", message: "Approved"),
    ]

    /// For stored card data that cannot be opened, or are not for what they say.
    static let formatError = AmountRule(ending: nil, responseCode: "30", message: "Format error")

    static func forAmount(_ minorUnits: UInt64) -> AmountRule {
        let digits = String(minorUnits % 100)
        let ending = digits.count == 1 ? "0" + digits : digits
        return table.first { $0.ending == ending } ?? table[table.count - 1]
    }

    /// One line each, for `--help`.
    static var help: String {
        table.map { rule in
            let outcome = rule.isApproval ? "approved" : "declined, \(rule.responseCode) \(rule.message)"
            let delivery =
                switch rule.delivery {
                case .now: ""
                case .late: "; the first answer comes late"
                case .never: "; the connection is closed in place of the first answer"
                }
            return "  \(rule.ending.map { "…\($0)" } ?? "else")  \(outcome)\(delivery)"
        }.joined(separator: "\n")
    }
}
