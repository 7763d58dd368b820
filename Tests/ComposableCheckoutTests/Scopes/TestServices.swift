import CardEncryption
import ComposableCheckout
import Foundation
import Synchronization
import Waiting

/// A payment service in memory, whose answers a test sets.
final class TestService: ConfigurationRepository, PaymentMethodRepository, TokenizationRepository, PaymentRepository {
    enum Answer: Sendable {
        case result(PaymentResult.Status)
        /// The payment is made, and the answer is lost.
        case lost(PaymentResult.Status)
        case error(CheckoutError)
        case challenge
    }

    struct Books: Sendable {
        var configuration: CheckoutConfiguration
        /// For the next requests; then each payment succeeds.
        var answers: [Answer] = []
        /// For the next questions by key; then they are answered.
        var silences = 0
        var loadErrors: [CheckoutError] = []
        var requests: [(request: PaymentRequest, key: String)] = []
        var payments: [String: PaymentResult] = [:]
        var tokens: [(card: SealedCardData, key: String)] = []
        var questions = 0
        /// Holds payments up until it is called.
        var gate: Delivery<Void>?
    }

    static let key = try? JWEPrivateKey(generating: .ecdhES, keyID: "cards")
    private let books: Mutex<Books>

    init(
        card: CardConfiguration? = CardConfiguration(recipient: key?.publicJWK ?? ""),
        methods: [PaymentMethod] = [
            PaymentMethod(id: "card", kind: .card, networkSurcharges: [.amex: 2]),
            PaymentMethod(id: "tap", kind: .tap, surcharge: 0.5), PaymentMethod(id: "voucher", kind: .voucher),
        ]
    ) {
        books = Mutex(
            Books(
                configuration: CheckoutConfiguration(
                    session: "cs_1", amount: 10, currency: "EUR", country: "DE", methods: methods, card: card)))
    }

    var now: Books { books.withLock { $0 } }
    func set(_ change: (inout Books) -> Void) { books.withLock { change(&$0) } }

    func configuration() async throws(CheckoutError) -> CheckoutConfiguration {
        let (configuration, error) = books.withLock { books in
            (books.configuration, books.loadErrors.isEmpty ? nil : books.loadErrors.removeFirst())
        }
        if let error { throw error }
        return configuration
    }

    func paymentMethods() async throws(CheckoutError) -> [PaymentMethod] { now.configuration.methods }

    func tokenize(_ card: SealedCardData, idempotencyKey: String) async throws(CheckoutError) -> PaymentToken {
        set { $0.tokens.append((card, idempotencyKey)) }
        return PaymentToken(id: "tok_1", network: .visa, masked: "424242******4242")
    }

    func pay(_ request: PaymentRequest, idempotencyKey: String) async throws(CheckoutError) -> PaymentResult {
        if let gate = now.gate { try? await gate.receiveToTheEnd() }
        let (answer, before) = books.withLock { books -> (Answer, PaymentResult?) in
            books.requests.append((request, idempotencyKey))
            return (
                books.answers.isEmpty ? .result(.success) : books.answers.removeFirst(), books.payments[idempotencyKey]
            )
        }
        if let before { return before }
        var result = PaymentResult(
            paymentID: "pay_\(now.requests.count)", status: .success, amount: request.amount,
            currency: request.currency,
            method: request.voucher == nil ? .card : .voucher)
        switch answer {
        case .result(let status):
            result.status = status
            set { [result] in $0.payments[idempotencyKey] = result }
            return result
        case .lost(let status):
            result.status = status
            set { [result] in $0.payments[idempotencyKey] = result }
            throw .transport(reason: "lost", mayHaveHappened: true)
        case .challenge:
            (result.status, result.challenge) = (.pending, URL(string: "http://127.0.0.1/challenges/1"))
            set { [result] in $0.payments[idempotencyKey] = result }
            return result
        case .error(let error): throw error
        }
    }

    func result(for idempotencyKey: String) async throws(CheckoutError) -> PaymentResult? {
        let isSilent = books.withLock { books in
            books.questions += 1
            books.silences -= 1
            return books.silences >= 0
        }
        if isSilent { throw .transport(reason: "silence", mayHaveHappened: true) }
        return now.payments[idempotencyKey]
    }

    func completeChallenge(of paymentID: String) async throws(CheckoutError) -> PaymentResult {
        guard var result = now.payments.values.first(where: { $0.paymentID == paymentID }) else {
            throw .refused(code: "not_found", message: paymentID)
        }
        (result.status, result.challenge) = (.success, nil)
        return result
    }
}

/// A reader whose presence, messages and answers a test sets.
final class TestReader: TapReader {
    let present = Multicast<Bool>(true, keeping: .newest(4))
    let shown = Multicast<TapMessage>(keeping: .newest(16))
    /// The answer to the present wait for a card.
    private let waits = Mutex<[Delivery<Result<PaymentResult.Status, TapFailure>>]>([])
    private let charges = Mutex<[Decimal]>([])
    let resolved = Mutex<PaymentResult?>(nil)

    var presence: AsyncStream<Bool> { present.stream() }
    var messages: AsyncStream<TapMessage> { shown.stream() }
    var amounts: [Decimal] { charges.withLock { $0 } }

    func charge(amount: Decimal, currency: String) async throws(TapFailure) -> PaymentResult {
        let wait = Delivery<Result<PaymentResult.Status, TapFailure>>()
        charges.withLock { $0.append(amount) }
        waits.withLock { $0.append(wait) }
        let answer = (try? await wait.receiveToTheEnd()) ?? .failure(.cancelled)
        return PaymentResult(
            paymentID: "tap_1", status: try answer.get(), amount: amount, currency: currency, method: .tap)
    }

    func answer(_ result: Result<PaymentResult.Status, TapFailure>) {
        for wait in waits.withLock({ $0 }) { wait.deliver(.success(result)) }
    }

    func cancel() async -> Bool {
        answer(.failure(.cancelled))
        return true
    }

    func resolve(
        _ key: String, amount: Decimal, currency: String
    ) async throws(CheckoutError) -> PaymentResult? { resolved.withLock { $0 } }
}

/// Returns the first element that matches; nil if the sequence ends before.
func first<Element: Sendable>(
    _ stream: AsyncStream<Element>, where matches: @Sendable (Element) -> Bool
) async -> Element? {
    for await element in stream where matches(element) { return element }
    return nil
}
