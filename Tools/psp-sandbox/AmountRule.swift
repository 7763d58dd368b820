/// The simulated decision: the last two digits of the amount in minor units, most of which are response codes of ISO
/// 8583 (field 39).
struct AmountRule: Sendable {
    enum Delivery: Int, Sendable {
        case now
        /// After the time of `--late`.
        case late
        /// The connection is closed without an answer.
        case never
        /// The sandbox ends, as in a crash, after it has booked the payment.
        case crash
    }

    /// The amount's last two digits; nil: all others.
    let ending: String?
    let responseCode: String
    let message: String
    var delivery = Delivery.now

    /// True if the call is refused and nothing of it is done.
    var isRefusal = false

    /// The state of a payment in a checkout before its decision.
    enum Wait: Sendable {
        /// A card's holder is asked first.
        case challenge
        /// The payment is pending for the time of `--late`.
        case time
    }

    /// Applies in checkouts only; nil: it is decided at once.
    var wait: Wait?

    var isApproval: Bool { responseCode == "00" }

    static let table = [
        AmountRule(ending: "05", responseCode: "05", message: "Do not honor"),
        AmountRule(ending: "13", responseCode: "13", message: "Invalid amount", isRefusal: true),
        AmountRule(ending: "14", responseCode: "14", message: "Invalid card number"),
        AmountRule(ending: "33", responseCode: "00", message: "Approved", wait: .challenge),
        AmountRule(ending: "35", responseCode: "00", message: "Approved", wait: .time),
        AmountRule(ending: "51", responseCode: "51", message: "Insufficient funds"),
        AmountRule(ending: "54", responseCode: "54", message: "Expired card"),
        AmountRule(ending: "91", responseCode: "91", message: "Issuer unavailable"),
        AmountRule(ending: "96", responseCode: "00", message: "Approved", delivery: .never),
        AmountRule(ending: "97", responseCode: "00", message: "Approved", delivery: .crash),
        AmountRule(ending: "98", responseCode: "00", message: "Approved", delivery: .late),
        AmountRule(ending: nil, responseCode: "00", message: "Approved"),
    ]

    /// The rule of a fault that declines.
    static let declined = AmountRule(ending: nil, responseCode: "05", message: "Do not honor")

    /// The rule for a challenge that was not met.
    static let failedChallenge = AmountRule(ending: nil, responseCode: "05", message: "Authentication failed")

    /// The rules for vouchers by the beginning of their codes; nil: those that have been redeemed.
    static let vouchers: [(beginning: String?, rule: AmountRule)] = [
        ("UNKNOWN", AmountRule(ending: nil, responseCode: "14", message: "Unknown voucher")),
        ("EXPIRED", AmountRule(ending: nil, responseCode: "54", message: "Expired voucher")),
        (nil, AmountRule(ending: nil, responseCode: "51", message: "Redeemed voucher")),
    ]

    /// The rule for stored data that open but are not card data.
    static let formatError = AmountRule(ending: nil, responseCode: "30", message: "Format error")

    static func forAmount(_ minorUnits: UInt64) -> AmountRule {
        let digits = String(minorUnits % 100)
        let ending = digits.count == 1 ? "0" + digits : digits
        return table.first { $0.ending == ending } ?? table[table.count - 1]
    }

    /// One line each, for `--help`.
    static var help: String {
        table.map { rule in
            let outcome =
                rule.isRefusal
                ? "refused: neither the call nor its batch has any effect"
                : rule.isApproval ? "approved" : "declined, \(rule.responseCode) \(rule.message)"
            let delivery =
                switch rule.delivery {
                case .now: ""
                case .late: "; the first answer is late"
                case .never: "; the connection is closed instead of the first answer"
                case .crash: "; the sandbox exits instead of the first answer, also within a batch"
                }
            let wait =
                switch rule.wait {
                case nil: ""
                case .challenge: "; in a checkout, by card, after a challenge"
                case .time: "; in a checkout, pending at first, for the time of --late"
                }
            return "  \(rule.ending.map { "…\($0)" } ?? "else")  \(outcome)\(delivery)\(wait)"
        }.joined(separator: "\n")
    }
}
