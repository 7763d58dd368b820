import Foundation
import SmartCard

/// The methods and the card fields of checkouts: the file of `--checkout-configuration`.
struct CheckoutConfiguration: Codable, Sendable {
    struct Method: Codable, Sendable {
        let id: String
        /// `card`, `tap`, `voucher`, or another one, which this service does not accept.
        let kind: String
        /// The networks of its cards; nil: all.
        let networks: [String]?
        /// The amount added, in the currency's major unit; nil: none.
        let surcharge: String?
        /// The amount added for a network, in place of ``surcharge``.
        let networkSurcharges: [String: String]?

        /// Returns the amount added for a card of `network`, in the currency's major unit.
        func surcharge(for network: String?) -> String {
            network.flatMap { networkSurcharges?[$0] } ?? surcharge ?? "0"
        }
    }

    struct Card: Codable, Sendable {
        /// The accepted networks; empty: all.
        let networks: [String]
        let fields: [String]
        let billingFields: [String]
    }

    let methods: [Method]
    /// For cards entered by hand; nil: they are not accepted.
    let card: Card?

    struct Invalid: Error, CustomStringConvertible {
        let description: String
    }

    private static let maximumLength = 64 << 10

    /// - Parameter path: of a JSON file.
    /// - Throws: ``Invalid``.
    init(file path: String) throws {
        guard let file = FileHandle(forReadingAtPath: path),
            let data = try? file.read(upToCount: Self.maximumLength + 1)
        else { throw Invalid(description: "\(path): it cannot be read.") }
        guard data.count <= Self.maximumLength else {
            throw Invalid(description: "\(path): it has more than \(Self.maximumLength) bytes.")
        }
        do {
            self = try JSONDecoder().decode(Self.self, from: data)
        } catch DecodingError.keyNotFound(let key, _) {
            throw Invalid(description: "\(path): “\(key.stringValue)” is missing.")
        } catch DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context) {
            let place = context.codingPath.map(\.stringValue).joined(separator: ".")
            throw Invalid(description: "\(path): “\(place)” has the wrong type.")
        } catch {
            throw Invalid(description: "\(path): it is no JSON.")
        }
        if let reason { throw Invalid(description: "\(path): \(reason)") }
    }

    private init(methods: [Method], card: Card?) { (self.methods, self.card) = (methods, card) }

    /// The reason for which it is not accepted; nil if there is none.
    private var reason: String? {
        guard (1...32).contains(methods.count), Set(methods.map(\.id)).count == methods.count else {
            return "there must be 1 to 32 methods, each with another id."
        }
        for method in methods {
            guard Self.isName(method.id), Self.isName(method.kind) else {
                return "“id” and “kind” of a method must be 1 to 64 letters, digits, “-”, “_” and “.”."
            }
            let surcharges = [method.surcharge].compactMap { $0 } + (method.networkSurcharges ?? [:]).values
            guard surcharges.allSatisfy({ $0.wholeMatch(of: #/[0-9]{1,9}(\.[0-9]{1,4})?/#) != nil }) else {
                return "a surcharge of “\(method.id)” is no amount, as in “0.30”."
            }
        }
        guard card != nil || !methods.contains(where: { $0.kind == "card" }) else {
            return "a method of the kind “card” needs “card”."
        }
        let names =
            methods.flatMap { ($0.networks ?? []) + ($0.networkSurcharges ?? [:]).keys } + (card?.networks ?? [])
        guard names.allSatisfy(Self.isName) else { return "a network's name is none." }
        guard let card else { return nil }
        guard card.fields.contains("CARD_NUMBER"), (card.fields + card.billingFields).allSatisfy(Self.isName),
            Set(card.fields + card.billingFields).count == card.fields.count + card.billingFields.count
        else { return "“fields” must have CARD_NUMBER, and no field twice." }
        return nil
    }

    static func isName(_ text: String) -> Bool { text.wholeMatch(of: #/[A-Za-z0-9._-]{1,64}/#) != nil }

    /// The configuration without a file.
    static let standard = CheckoutConfiguration(
        methods: [
            Method(id: "tap", kind: "tap", networks: nil, surcharge: nil, networkSurcharges: nil),
            Method(
                id: "card", kind: "card", networks: nil, surcharge: nil, networkSurcharges: ["amex": "0.50"]),
            Method(id: "voucher", kind: "voucher", networks: nil, surcharge: nil, networkSurcharges: nil),
        ],
        card: Card(
            networks: ["visa", "mastercard", "amex", "discover", "diners", "jcb", "unionpay", "maestro"],
            fields: ["CARD_NUMBER", "EXPIRY_DATE", "CVV", "CARDHOLDER_NAME"],
            billingFields: ["COUNTRY_CODE", "POSTAL_CODE"]))
}
