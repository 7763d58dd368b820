import CardEncryption
import Crypto
import EMVContactless
import Foundation
import SmartCard

/// The books of the payment service: what was asked for, and what was answered.  In memory: they end with the process.
actor Sandbox {
    enum Kind: String, Codable {
        case payment
        case refund
    }

    /// What a payment or a refund is asked for with.
    struct Charge: Decodable {
        /// As `PaymentCardReadResult.paymentCardData` has it.
        let cardData: String
        /// In the currency's major unit: `12.34`.
        let amount: String
        /// Of ISO 4217: `EUR`.
        let currency: String
    }

    /// What was answered; nothing of it is secret.
    struct Payment: Encodable {
        let id: String
        let kind: Kind
        let status: String
        let responseCode: String
        let message: String
        /// In the currency's major unit; nil for stored card data that could not be opened, as the next two.
        let amount: String?
        let currency: String?
        /// The account number, masked.
        let card: String?
        let idempotencyKey: String
    }

    /// Stored payments, as `StoreAndForwardBatch` encodes them.  Signatures and certificates are not looked at.
    struct Batch: Decodable {
        struct Stored: Decodable {
            let id: String
            let paymentCardData: String
            let generalCardData: String?
        }
        let id: String
        let count: Int
        let payments: [Stored]

        /// What the hash of a deletion token is made of, as ProximityReader's store makes it.
        var canonicalForm: String {
            "swift-contactless batch 1\n\(id)\n\(payments.count)\n"
                + payments.map { payment in
                    let form =
                        [
                            "swift-contactless payment 1", payment.id, payment.paymentCardData,
                            payment.generalCardData ?? "",
                        ].joined(separator: "\n") + "\n"
                    let hash = SHA256.hash(data: Data(form.utf8)).map { String(format: "%02x", $0) }.joined()
                    return "\(payment.id) \(hash)\n"
                }.joined()
        }
    }

    struct BatchAnswer: Encodable {
        let deletionToken: String
        let payments: [Payment]
    }

    /// Why nothing was done.
    struct Refusal: Error {
        let status: Int
        let code: String
        let message: String
    }

    /// An answer, and how it goes out: only the first to a key is late or lost.
    struct Reply<Body: Encodable & Sendable>: Sendable {
        let body: Body
        let delivery: AmountRule.Delivery
    }

    private let keys: SandboxKeys
    /// By idempotency key: what was asked for, hashed, and what was answered.
    private var payments: [String: (request: SHA256Digest, payment: Payment)] = [:]
    private var batches: [String: (request: SHA256Digest, answer: BatchAnswer)] = [:]
    private var order: [String] = []

    init(keys: SandboxKeys) { self.keys = keys }

    /// Every payment and refund, the first first.
    var all: [Payment] { order.compactMap { payments[$0]?.payment } }

    // MARK: Payments

    func decide(_ kind: Kind, key: String, _ charge: Charge) throws -> Reply<Payment> {
        let request = Self.hash(kind.rawValue, charge.cardData, charge.amount, charge.currency)
        if let known = payments[key] {
            guard known.request == request else { throw Self.reusedKey }
            return Reply(body: known.payment, delivery: .now)
        }
        let card = try card(of: charge.cardData)
        guard let currency = Currency[charge.currency], let units = Self.minorUnits(charge.amount, of: currency) else {
            throw Refusal(
                status: 422, code: "invalid_amount",
                message: "No amount of a currency: send amount as “12.34”, currency as “EUR”.")
        }
        guard card.kind == kind, card.units == units, card.currency == currency else {
            throw Refusal(
                status: 422, code: "mismatch",
                message: "The card has agreed to another amount, currency or type: read it again for this one.")
        }
        let rule = AmountRule.forAmount(units)
        return Reply(body: book(kind, card, rule, key: key, request), delivery: rule.delivery)
    }

    private func book(
        _ kind: Kind, _ card: Card?, _ rule: AmountRule, key: String, _ request: SHA256Digest
    ) -> Payment {
        let payment = Payment(
            id: UUID().uuidString, kind: kind, status: rule.isApproval ? "approved" : "declined",
            responseCode: rule.responseCode, message: rule.message, amount: card?.amount, currency: card?.currency.code,
            card: card?.account, idempotencyKey: key)
        payments[key] = (request, payment)
        order.append(key)
        return payment
    }

    // MARK: Batches

    /// Decides each payment of a batch under its own identifier as key: one that comes in two batches is made once.
    ///
    /// - Parameter reader: the one that stored them, which the deletion token is for.
    func take(_ batch: Batch, from reader: String, key: String) async throws -> Reply<BatchAnswer> {
        let hash = SHA256.hash(data: Data(batch.canonicalForm.utf8))
        if let known = batches[key] {
            guard known.request == hash else { throw Self.reusedKey }
            return Reply(body: known.answer, delivery: .now)
        }
        guard batch.count == batch.payments.count, !batch.id.isEmpty, Set(batch.payments.map(\.id)).count == batch.count
        else {
            throw Refusal(
                status: 422, code: "invalid_batch",
                message: "The batch has no id, a count that is not that of its payments, or one of them twice.")
        }
        var answers: [Payment] = []
        var delivery = AmountRule.Delivery.now
        for stored in batch.payments {
            if let known = payments[stored.id]?.payment {
                answers.append(known)
                continue
            }
            let card = try? card(of: stored.paymentCardData)
            let rule = card.map { AmountRule.forAmount($0.units) } ?? .formatError
            if rule.delivery.rawValue > delivery.rawValue { delivery = rule.delivery }
            let request = Self.hash(
                (card?.kind ?? .payment).rawValue, stored.paymentCardData, card?.amount ?? "", card?.currency.code ?? ""
            )
            answers.append(book(card?.kind ?? .payment, card, rule, key: stored.id, request))
        }
        let token = try await keys.deletionToken(
            for: reader, batch: batch.id, count: batch.count, hash: Data(hash).base64URL)
        let answer = BatchAnswer(deletionToken: token, payments: answers)
        // Somebody else may have sent it meanwhile.
        if let known = batches[key] { return Reply(body: known.answer, delivery: .now) }
        batches[key] = (hash, answer)
        return Reply(body: answer, delivery: delivery)
    }

    private static let reusedKey = Refusal(
        status: 422, code: "idempotency_key_reused",
        message: "This Idempotency-Key came with another request: use a new one for each payment.")

    // MARK: Card data

    /// What the sandbox makes of card data, before it forgets them.
    private struct Card {
        let kind: Kind
        let units: UInt64
        let amount: String
        let currency: Currency
        /// Masked.
        let account: String
    }

    private func card(of cardData: String) throws -> Card {
        let data: [TLVTag: [UInt8]]
        do {
            guard case .jwe(let jwe) = try SealedCardData(parsing: cardData) else {
                throw Refusal(status: 422, code: "card_data", message: "The card data are no JWE.")
            }
            data = try keys.cardDataKey.open(jwe) { bytes in
                let objects = try TLVList(Array(bytes)).flattened.filter { Self.tags.contains($0.tag) }
                return Dictionary(objects.map { ($0.tag, Array($0.value)) }) { first, _ in first }
            }
        } catch let error as JWEError {
            throw Refusal(status: 422, code: "card_data", message: "The card data cannot be opened: \(error)")
        } catch let error as Refusal {
            throw error
        } catch {
            throw Refusal(status: 422, code: "card_data", message: "The card data are no BER-TLV.")
        }
        guard let units = data[0x9F02].flatMap({ UInt64($0.hex) }),
            let currency = data[0x5F2A].flatMap({ Currency[packed: $0] }),
            let kind = data[0x9C].flatMap({ Self.kinds[$0] }), let track = data[0x57]
        else {
            throw Refusal(
                status: 422, code: "card_data",
                message: "The card data lack an amount (9F02), a currency (5F2A), a type (9C) or a track (57).")
        }
        let account = SensitiveData.masked(track, of: 0x57).prefix { $0 != "D" }
        return Card(
            kind: kind, units: units, amount: Self.majorUnits(units, of: currency), currency: currency,
            account: String(account))
    }

    private static let tags: Set<TLVTag> = [0x9F02, 0x5F2A, 0x9C, 0x57]
    /// Tag 9C: the first digits of the processing code of ISO 8583.
    private static let kinds: [[UInt8]: Kind] = [[0x00]: .payment, [0x20]: .refund]

    /// - Returns: nil for what is no amount of the currency.
    private static func minorUnits(_ text: String, of currency: Currency) -> UInt64? {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        let (exponent, decimals) = (currency.exponent ?? 0, parts.count == 2 ? parts[1] : "")
        guard parts.allSatisfy({ !$0.isEmpty && $0.utf8.allSatisfy { (0x30...0x39).contains($0) } }),
            decimals.count <= exponent
        else { return nil }
        return UInt64(parts[0] + decimals + String(repeating: "0", count: exponent - decimals.count))
    }

    private static func majorUnits(_ units: UInt64, of currency: Currency) -> String {
        let exponent = currency.exponent ?? 0
        guard exponent > 0 else { return String(units) }
        let digits = String(repeating: "0", count: max(0, exponent + 1 - String(units).count)) + String(units)
        return digits.dropLast(exponent) + "." + digits.suffix(exponent)
    }

    /// Of the texts, each behind its length.
    private static func hash(_ texts: [String]) -> SHA256Digest {
        var hash = SHA256()
        for text in texts { hash.update(data: Data("\(text.utf8.count):\(text)".utf8)) }
        return hash.finalize()
    }

    private static func hash(_ texts: String...) -> SHA256Digest { hash(texts) }
}

extension Data {
    /// RFC 4648, section 5, without padding.
    fileprivate var base64URL: String {
        base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
    }
}
