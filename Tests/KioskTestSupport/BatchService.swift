import Crypto
package import Foundation
package import JWTKit
package import KioskKit
package import Synchronization
package import Waiting

/// A payment service that takes batches, and fails as it is told.
///
/// It knows a batch by its key, and a payment by key and `id`: one that comes in two batches is charged twice, unless the first
/// was refused.  So nothing but its caller keeps a payment from being charged twice.
package final class BatchService: PaymentServiceProvider {
    /// What becomes of one call.
    package enum Fate: Hashable, Sendable {
        case taken
        /// Not seen; no answer.
        case lost
        /// Taken; no answer.
        case unanswered
        /// So many of its payments are taken; no answer.
        case partly(Int)
        /// Taken; the answer is something else.
        case garbled
        case refused
        case notAuthorized
        /// Taken; the token has expired.
        case expiredToken
        /// Taken; there is no token yet.
        case noToken
        /// Refused, whatever it has taken before.
        case disowned
        /// Taken; what it says is the opposite of what it has decided, and there is no token.
        case contradicted
        /// Taken; the answer never comes, and its caller is as good as ended.
        case endless
        /// Not seen; likewise.
        case endlessly
        /// Not seen; this is thrown.
        case answers(PaymentServiceError)
    }

    package struct Call: Hashable, Sendable {
        package let key: String, reader: String, payments: [String]
        package let time: Time.Instant
    }

    package struct State {
        package var script: [Fate] = []
        /// By payment: in which batches it was charged.
        package var charges: [String: [String]] = [:]
        package var calls: [Call] = []
        package var lookups = 0
        /// Whether it answers what it is asked of one payment.
        package var answersLookups = true
        /// What it says that payments come to.
        package var amount = Decimal(10)
        /// What it says of these payments, in place of what it has decided.
        package var says: [String: PaymentResult] = [:]
        /// A batch with these card data makes it fail.
        package var breaks: String?
        package var reversals: [String] = []
        /// What it says of what was taken back, and never came.
        package var never: [String: PaymentResult] = [:]
        /// What it throws at each call while it is set.
        package var refusal: PaymentServiceError?
        /// A call has come whose caller is as good as ended.
        package var hanging = false
        /// The calls that hang.
        package var hung: [CheckedContinuation<Void, any Error>] = []
    }

    package static let issuer = "https://payments.example"
    package let state = Mutex(State())
    /// What it decides of a payment, by its card data; nil: nothing, ever.
    private let decide: @Sendable (_ cardData: String) -> PaymentResult.Status?
    /// Whether it refuses every batch with these card data.
    private let refuses: @Sendable (_ cardData: String) -> Bool
    package let signer = ES256PrivateKey()

    package init(
        _ script: [Fate] = [],
        refuses: @escaping @Sendable (String) -> Bool = { _ in false },
        decide: @escaping @Sendable (String) -> PaymentResult.Status? = { _ in .approved }
    ) {
        self.decide = decide
        self.refuses = refuses
        state.withLock { $0.script = script }
    }

    package var calls: [Call] { state.withLock { $0.calls } }
    package var charges: [String: [String]] { state.withLock { $0.charges } }

    package var keySet: String {
        func url(_ text: String?) -> String {
            (text ?? "").replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        }
        let (x, y) = (url(signer.parameters?.x), url(signer.parameters?.y))
        return #"{"keys":[{"kty":"EC","crv":"P-256","alg":"ES256","kid":"service-1","x":"\#(x)","y":"\#(y)"}]}"#
    }

    private struct Batch: Decodable {
        struct Payment: Decodable { let id: String, paymentCardData: String, generalCardData: String }
        let id: String, count: Int
        let payments: [Payment]
    }

    package func submitBatch(_ data: Data, from reader: String, idempotencyKey: String) async throws -> BatchResult {
        let batch = try JSONDecoder().decode(Batch.self, from: data)
        let fate = state.withLock { state in
            state.calls.append(
                Call(key: idempotencyKey, reader: reader, payments: batch.payments.map(\.id), time: Time.now))
            return state.script.isEmpty ? .taken : state.script.removeFirst()
        }
        if let refusal = state.withLock({ $0.refusal }) { throw refusal }
        switch fate {
        case .lost: throw PaymentServiceError.noAnswer("lost")
        case .notAuthorized: throw PaymentServiceError.notAuthorized("who are you?")
        case .answers(let error): throw error
        case .endlessly: try await hang()
        case .disowned: throw PaymentServiceError.refused(code: "no", message: "Never seen.")
        case .refused where !isKnown(idempotencyKey): throw PaymentServiceError.refused(code: "no", message: "No.")
        default: break
        }
        if batch.payments.contains(where: { refuses($0.paymentCardData) }) {
            throw PaymentServiceError.refused(code: "poison", message: "Not with this one.")
        }
        if let breaks = state.withLock({ $0.breaks }), batch.payments.contains(where: { $0.paymentCardData == breaks })
        {
            throw PaymentServiceError(httpStatus: 500)
        }
        let count = if case .partly(let count) = fate { count } else { batch.count }
        state.withLock { state in
            for payment in batch.payments.prefix(count) where decide(payment.paymentCardData) != nil {
                if state.charges[payment.id]?.contains(idempotencyKey) != true, !state.reversals.contains(payment.id) {
                    state.charges[payment.id, default: []].append(idempotencyKey)
                }
            }
        }
        switch fate {
        case .unanswered, .partly: throw PaymentServiceError.noAnswer("unanswered")
        case .garbled: _ = try JSONDecoder().decode(Batch.self, from: Data("<html>".utf8))
        case .endless: try await hang()
        default: break
        }
        var results: [String: PaymentResult] = [:]
        for payment in batch.payments {
            if let status = decide(payment.paymentCardData) { results[payment.id] = result(payment.id, status) }
        }
        if results.isEmpty { throw PaymentServiceError.refused(code: "undecided", message: "None of them.") }
        if fate == .contradicted {
            return BatchResult(
                payments: Dictionary(
                    uniqueKeysWithValues: results.map {
                        ($0, result($0, $1.status == .approved ? .declined : .approved))
                    }),
                deletionToken: nil)
        }
        guard fate != .noToken else { return BatchResult(payments: results, deletionToken: nil) }
        return BatchResult(
            payments: results,
            deletionToken: try await token(
                batch, reader, Set(results.keys).subtracting(state.withLock { $0.says.keys }),
                hasExpired: fate == .expiredToken))
    }

    package var hangs: Bool { state.withLock { $0.hanging } }

    private func hang() async throws {
        try await withCheckedThrowingContinuation { continuation in
            state.withLock { ($0.hanging, $0.hung) = (true, $0.hung + [continuation]) }
        }
    }

    /// Ends the calls that hang, without an answer.
    package func letGo() {
        let hung = state.withLock { state in
            defer { state.hung = [] }
            return state.hung
        }
        for call in hung { call.resume(throwing: PaymentServiceError.noAnswer("ended")) }
    }

    private func isKnown(_ key: String) -> Bool { charges.values.contains { $0.contains(key) } }

    package func result(for idempotencyKey: String) async throws -> PaymentResult? {
        let (refusal, answers) = state.withLock { state in
            state.lookups += 1
            return (state.refusal, state.answersLookups)
        }
        if let refusal { throw refusal }
        guard answers else { throw PaymentServiceError.noAnswer("not asked") }
        guard charges[idempotencyKey] == nil else { return result(idempotencyKey, .approved) }
        return state.withLock { $0.never[idempotencyKey] }
    }

    /// What it says of a payment.
    package func result(_ payment: String, _ status: PaymentResult.Status) -> PaymentResult {
        state.withLock { state in
            state.says[payment]
                ?? .init(
                    id: "p", status: state.reversals.contains(payment) ? .declined : status, idempotencyKey: payment,
                    amount: state.amount, currency: "EUR")
        }
    }

    package func reverse(idempotencyKey: String, amount: Decimal?, currency: String?) async throws {
        state.withLock { state in
            state.reversals.append(idempotencyKey)
            state.never[idempotencyKey] = PaymentResult(
                id: "p", status: .declined, idempotencyKey: idempotencyKey, amount: amount, currency: currency)
        }
    }
    package func fetchReaderToken() async throws -> String { "" }

    package func processPayment(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> PaymentResult { throw PaymentServiceError.refused(code: "no", message: "No.") }

    package func processRefund(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> RefundResult { throw PaymentServiceError.refused(code: "no", message: "No.") }

    /// As the documentation of ProximityReader has it.
    private func token(
        _ batch: Batch, _ reader: String, _ decided: Set<String>, hasExpired: Bool
    ) async throws -> String {
        func hash(_ text: String) -> SHA256.Digest { SHA256.hash(data: Data(text.utf8)) }
        let lines = batch.payments.map { payment in
            let form =
                "swift-contactless payment 1\n\(payment.id)\n\(payment.paymentCardData)\n\(payment.generalCardData)\n"
            return "\(payment.id) \(hash(form).map { String(format: "%02x", $0) }.joined())\n"
        }
        let form = "swift-contactless batch 1\n\(batch.id)\n\(batch.count)\n\(lines.joined())"
        let digest = Data(hash(form)).base64EncodedString()
        let now = Date().timeIntervalSince1970.rounded()
        let claims = Claims(
            iss: Self.issuer, aud: reader, jti: UUID().uuidString, bid: batch.id, cnt: batch.count,
            hash: digest.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: ""), iat: now - 60,
            exp: hasExpired ? now - 30 : now + 3600, ids: decided.count == batch.count ? nil : decided.sorted())
        return try await JWTKeyCollection().add(ecdsa: signer, kid: "service-1")
            .sign(claims, kid: "service-1", header: ["typ": "deletion-token+jwt"])
    }

    private struct Claims: JWTPayload {
        let iss: String, aud: String, jti: String, bid: String
        let cnt: Int
        let hash: String
        let iat: Double, exp: Double
        let ids: [String]?
        func verify(using algorithm: some JWTAlgorithm) throws {}
    }
}
