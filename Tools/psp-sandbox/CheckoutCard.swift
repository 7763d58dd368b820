import CardEncryption
import Foundation
import SmartCard

/// The facts that the sandbox keeps of a card entered by hand, none of which are secret, before it forgets the data.
struct CheckoutCard: Sendable {
    /// The account number, masked.
    let masked: String
    /// The networks that the number may be of, the likeliest first.
    let networks: [String]
    /// True for published test numbers whose holder is asked to confirm each payment.
    let needsChallenge: Bool

    /// Published numbers for payments with 3-D Secure (Stripe, "Testing": "3D Secure authentication": required;
    /// "Regulatory cards": always authenticate, authenticate unless set up).  TEST.
    private static let challenged: [[UInt8]] = [
        Array("4000000000003220".utf8), Array("4000002760003184".utf8), Array("4000002500003155".utf8),
    ]

    /// Opens a JWE whose content is the JSON text `{"number", "cvv", "expiryMonth", "expiryYear", "cardholderName"}`.
    ///
    /// - Parameters:
    ///   - accepted: the networks that are; empty: all.
    ///   - needsCode: true if a card without security code is refused.
    /// - Throws: ``Sandbox/Refusal``.
    init(
        opening cardData: String, with key: JWEPrivateKey, accepted: [String], needsCode: Bool, now: Date
    ) throws {
        guard let jwe = try? CompactJWE(parsing: cardData) else {
            throw Self.refusal("card_data", "The card data is no JWE.")
        }
        do {
            // Only facts leave the closure; copies of its bytes are wiped when they are freed (CWipedHeap).
            self = try key.open(jwe) { try CheckoutCard($0, accepted, needsCode, now) }
        } catch is JWEError {
            throw Self.refusal("card_data", "The card data is not sealed for this service's key.")
        }
    }

    private init(_ bytes: UnsafeRawBufferPointer, _ accepted: [String], _ needsCode: Bool, _ now: Date) throws {
        guard let members = try? JSON.object(bytes), members.values.allSatisfy({ $0.text != nil }),
            Set(members.keys).isSubset(of: Self.members)
        else { throw Self.refusal("card_data", "The sealed card data is not the JSON that is documented.") }
        func digits(_ name: JSON.Text, _ counts: ClosedRange<Int>) throws -> [UInt8] {
            let text = Array(members[name]?.text?.string.utf8 ?? "".utf8)
            guard counts.contains(text.count), text.allSatisfy({ (0x30...0x39).contains($0) }) else {
                throw Self.refusal(
                    "invalid_card", "“\(name.string)” must have \(counts.lowerBound) to \(counts.upperBound) digits.")
            }
            return text
        }
        let number = try digits("number", 12...19)
        let values = number.map { $0 - 0x30 }
        guard SensitiveData.checks(values) else {
            throw Self.refusal("invalid_card", "The check digit of “number” is wrong.")
        }
        let issuers = IssuerNetwork.all.filter { $0.issues(values) && $0.lengths.contains(number.count) }
            .filter { accepted.isEmpty || accepted.contains($0.id) }
            .sorted { ($0.specificity(values) ?? 0) > ($1.specificity(values) ?? 0) }
        guard accepted.isEmpty || !issuers.isEmpty else {
            throw Self.refusal("unsupported_network", "Cards of this network are not accepted.")
        }
        if needsCode || members["cvv"] != nil {
            let codes = Set(issuers.map(\.securityCodeLength))
            let code = try digits("cvv", (codes.min() ?? 3)...(codes.max() ?? 4))
            guard codes.isEmpty || codes.contains(code.count) else {
                throw Self.refusal("invalid_card", "“cvv” has not the length of its network's codes.")
            }
        }
        try Self.checkExpiry(try digits("expiryMonth", 2...2), try digits("expiryYear", 4...4), now)
        guard (members["cardholderName"]?.text?.string.utf8.count ?? 0) <= 255 else {
            throw Self.refusal("invalid_card", "“cardholderName” has more than 255 bytes.")
        }
        masked = SensitiveData.truncated(number)
        networks = issuers.map(\.id)
        needsChallenge = Self.challenged.contains(number)
    }

    private static let members: Set<JSON.Text> = ["number", "cvv", "expiryMonth", "expiryYear", "cardholderName"]

    /// Checks that the month is not over anywhere on Earth.
    private static func checkExpiry(_ month: [UInt8], _ year: [UInt8], _ now: Date) throws {
        func value(_ digits: [UInt8]) -> Int { digits.reduce(0) { $0 * 10 + Int($1 - 0x30) } }
        guard (1...12).contains(value(month)) else { throw refusal("invalid_card", "“expiryMonth” is no month.") }
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = TimeZone(secondsFromGMT: -12 * 3600) ?? .gmt
        let today = calendar.dateComponents([.year, .month], from: now)
        guard (value(year), value(month)) >= (today.year ?? 0, today.month ?? 0) else {
            throw refusal("expired_card", "The card has expired.")
        }
    }

    private static func refusal(_ code: String, _ message: String) -> Sandbox.Refusal {
        Sandbox.Refusal(status: 422, code: code, message: message)
    }
}
