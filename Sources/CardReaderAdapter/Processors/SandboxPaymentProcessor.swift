public import CardReceipts
import EMVContactless
public import Foundation
import FoundationNetworking
import SmartCard
import Synchronization

/// The payment service and the tokens of psp-sandbox, over HTTP.  No money moves.
///
///     let sandbox = SandboxPaymentProcessor(URL(string: "http://127.0.0.1:8790")!)
///     let service = ContactlessReaderService(processor: sandbox, configuration: configuration)
///     try service.start(sandbox, discoveryMethod: .usb)
///
/// psp-sandbox has payments and no intents.  The cards of an intent are charged under its identifier and a number:
/// ID.0, ID.1 and so on.  Any process can therefore ask for the state of an intent.  Only the fact that an intent was
/// captured is kept here, in memory.
public actor SandboxPaymentProcessor: PaymentProcessor {
    private nonisolated let http: SandboxConnection
    /// The identifiers of the captured intents.
    private var captured: Set<String> = []

    /// Creates a client of psp-sandbox.
    ///
    /// - Parameters:
    ///   - address: the address that psp-sandbox prints when it starts.
    ///   - patience: the time to wait for each answer.
    public init(_ address: URL, patience: Duration = .seconds(30)) {
        http = SandboxConnection(address: address, patience: patience)
    }

    public func createIntent(
        _ parameters: PaymentIntentParameters, amount: UInt, idempotencyKey: String
    ) async throws -> PaymentIntent {
        PaymentIntent(
            id: idempotencyKey, status: .requiresPaymentMethod, created: Date(), amount: amount,
            currency: parameters.currency, metadata: parameters.metadata)
    }

    private static func key(_ intent: PaymentIntent, _ number: Int) -> String { "\(intent.id).\(number)" }

    /// Returns the decisions about the cards of an intent, the newest last.
    private func decisions(about intent: PaymentIntent) async throws -> [SandboxConnection.Payment] {
        var decisions: [SandboxConnection.Payment] = []
        while true {
            let next: SandboxConnection.Decision = try await http.ask(
                "GET", "decision", key: Self.key(intent, decisions.count))
            guard let payment = next.payment else { return decisions }
            decisions.append(payment)
        }
    }

    public func process(
        _ intent: PaymentIntent, card: CollectedCard, idempotencyKey: String
    ) async throws -> PaymentIntent {
        let decisions = try await decisions(about: intent)
        // The last key is this card's if its answer was lost.  If it is another card's, it is refused.
        for number in [decisions.count - 1, decisions.count] where number >= 0 {
            do {
                let payment: SandboxConnection.Payment = try await http.ask(
                    "POST", "payments", key: Self.key(intent, number),
                    body: SandboxConnection.ChargeRequest(card, intent.amount, intent.currency))
                let now = payment.applied(to: intent)
                if let reason = payment.declineReason { throw PaymentProcessorError(.declined(reason), intent: now) }
                return now
            } catch let error as PaymentProcessorError where error.isKeyOfAnother {
                guard number < decisions.count else { throw PaymentProcessorError(.noAnswer) }
                let now = decisions[number].applied(to: intent)
                guard now.status == .requiresPaymentMethod else {
                    throw PaymentProcessorError(.unknownIntent, intent: now)
                }
            }
        }
        throw PaymentProcessorError(.noAnswer)
    }

    /// Captures an authorized payment: for the closure of
    /// ``CardReaderService/collectPayment(_:onProcessing:capture:)``.
    ///
    /// - Throws: ``PaymentProcessorError`` if the sandbox has no approved payment.
    public func capture(_ intent: PaymentIntent) async throws -> PaymentIntent {
        let now = try await retrieve(intent)
        guard now.status == .requiresCapture || now.status == .succeeded else {
            throw PaymentProcessorError(.unknownIntent, intent: now)
        }
        captured.insert(intent.id)
        return now.with(.succeeded)
    }

    public func retrieve(_ intent: PaymentIntent) async throws -> PaymentIntent {
        guard let payment = try await decisions(about: intent).last else {
            // A call that charges a card may still be on its way.  Whichever call arrives first takes the key.
            return intent.status == .requiresConfirmation ? intent : intent.with(.requiresPaymentMethod)
        }
        let now = payment.applied(to: intent)
        return captured.contains(intent.id) && now.status == .requiresCapture ? now.with(.succeeded) : now
    }

    public func cancel(_ intent: PaymentIntent) async throws {
        guard !captured.contains(intent.id) else {
            throw PaymentProcessorError(.unknownIntent, intent: intent.with(.succeeded))
        }
        var isReversed = false
        while !isReversed {
            let decisions = try await decisions(about: intent)
            // A declined payment stays declined; the reversal takes the next key, so that nothing is approved under it.
            let number = decisions.count - (decisions.last.map { $0.isApproved || $0.isReversed } == true ? 1 : 0)
            let answer: SandboxConnection.Decision = try await http.ask(
                "POST", "reversals", key: Self.key(intent, number),
                body: SandboxConnection.ReversalRequest(
                    amount: SandboxConnection.amount(intent.amount, of: intent.currency),
                    currency: intent.currency.uppercased()))
            isReversed = answer.payment?.isReversed == true
        }
    }

    /// Always true: psp-sandbox refunds to a card that is read for the purpose.
    public func needsCard(for refund: RefundParameters) async throws -> Bool { true }

    public func refund(
        _ parameters: RefundParameters, amount: UInt, card: CollectedCard?, idempotencyKey: String
    ) async throws -> RefundOutcome {
        guard let card else { throw PaymentProcessorError(.refused("a refund needs a card")) }
        let payment: SandboxConnection.Payment
        do {
            payment = try await http.ask(
                "POST", "refunds", key: idempotencyKey,
                body: SandboxConnection.ChargeRequest(card, amount, parameters.currency))
        } catch let error as PaymentProcessorError where error.isKeyOfAnother {
            // The card was read by an earlier run of the program, and the refund is decided.
            let known: SandboxConnection.Decision = try await http.ask("GET", "decision", key: idempotencyKey)
            guard let known = known.payment else { throw PaymentProcessorError(.noAnswer) }
            payment = known
        }
        return payment.declineReason.map { .failed($0) } ?? .succeeded
    }
}

extension SandboxPaymentProcessor: CardReaderConfigProvider {
    public nonisolated func fetchToken(completion: @escaping @Sendable (Result<String, any Error>) -> Void) {
        struct Answer: Decodable { let token: String }
        Task { [http] in
            do {
                let answer: Answer = try await http.ask("POST", "reader-tokens", body: [String: String]())
                completion(.success(answer.token))
            } catch {
                completion(.failure(error))
            }
        }
    }

    public nonisolated func fetchDefaultLocationID(
        completion: @escaping @Sendable (Result<String, any Error>) -> Void
    ) { completion(.success("sandbox")) }
}

/// The requests and answers on the wire: see `psp-sandbox --help`.
private struct SandboxConnection: Sendable {
    let address: URL
    let patience: Duration

    struct ChargeRequest: Encodable {
        let cardData: String, amount: String, currency: String
        let receiptFacts: ReceiptFacts?

        init(_ card: CollectedCard, _ amount: UInt, _ currency: String) {
            (cardData, receiptFacts) = (card.sealedData, card.facts)
            self.amount = SandboxConnection.amount(amount, of: currency)
            self.currency = currency.uppercased()
        }
    }

    struct ReversalRequest: Encodable { let amount: String, currency: String }

    static func amount(_ units: UInt, of currency: String) -> String {
        (Decimal(units) / (MinorUnits.multiplier(of: currency) ?? 1)).description
    }

    struct Payment: Decodable {
        let id: String, status: String, responseCode: String
        /// The account number, masked.
        let card: String?
        /// The time of the decision.
        let time: Date
        /// The facts that were sent with the card's data.
        let receiptFacts: ReceiptFacts?

        /// The reason for ISO 8583 field 39, the response code; nil for an approval.
        var declineReason: DeclineReason? {
            guard !isApproved else { return nil }
            return switch responseCode {
            case "05": .generic
            case "14": .invalidAccount
            case "51": .insufficientFunds
            case "54": .expiredCard
            case "91": .temporary
            default: .unknown
            }
        }

        var isApproved: Bool { status == "approved" }
        /// True if the payment was reversed.
        var isReversed: Bool { !isApproved && responseCode == "17" }

        func applied(to intent: PaymentIntent) -> PaymentIntent {
            guard isApproved else {
                return intent.with(isReversed ? .canceled : .requiresPaymentMethod)
            }
            // The sandbox does not report the expiry date of a card.
            let details = CardPresentTransactionDetails(
                last4: String((card ?? "").suffix(4)), expMonth: 0, expYear: 0,
                brand: CardBrand(applicationIdentifier: receiptFacts?.applicationIdentifier.hex ?? ""),
                receipt: receiptFacts.map {
                    ReceiptDetails($0, authorizationResponseCode: responseCode, accountType: "Default")
                },
                readMethod: receiptFacts.map(CardReadMethod.init))
            let charge = Charge(
                id: id, amount: intent.amount, currency: intent.currency, status: .succeeded, created: time,
                metadata: intent.metadata,
                paymentMethod: details.brand == .interac
                    ? .interacPresent(details: details) : .cardPresent(details: details))
            return PaymentIntent(
                id: intent.id, status: .requiresCapture, created: intent.created, amount: intent.amount,
                currency: intent.currency, metadata: intent.metadata,
                charges: [charge])
        }
    }

    struct Decision: Decodable { let payment: Payment? }

    private struct Failure: Decodable {
        struct Reason: Decodable { let code: String, message: String }
        let error: Reason
    }

    /// Sends a request and decodes the answer.
    ///
    /// - Throws: ``PaymentProcessorError``.
    func ask<Answer: Decodable>(
        _ method: String, _ resource: String, key: String? = nil, body: (any Encodable)? = nil
    ) async throws -> Answer {
        var request = URLRequest(url: address.appending(path: resource))
        request.httpMethod = method
        request.httpBody = try body.map { try JSONEncoder().encode($0) }
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        if let key { request.setValue(key, forHTTPHeaderField: "Idempotency-Key") }
        // Each request has its own session, and so its own connection.  A reused connection may break before the
        // answer; libcurl then resends the request, and Foundation no longer has a body for it.
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = TimeInterval(patience.components.seconds)
        let (data, response): (Data, URLResponse?)
        do { (data, response) = try await BoundedAnswer.fetch(request, configuration) } catch {
            let notSent: Set<URLError.Code> = [.cannotConnectToHost, .cannotFindHost, .notConnectedToInternet]
            throw PaymentProcessorError(
                (error as? URLError).map { notSent.contains($0.code) } == true ? .notConnected : .noAnswer)
        }
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        // The service has acted, whatever the answer means.
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        if status == 200, let answer = try? decoder.decode(Answer.self, from: data) { return answer }
        // Timeout, conflict, too early, too many requests: these say nothing about the calls before this one.
        guard (400..<500).contains(status), ![408, 409, 425, 429].contains(status),
            let reason = try? JSONDecoder().decode(Failure.self, from: data).error
        else { throw PaymentProcessorError(.noAnswer) }
        let isAboutAmount = reason.code == "invalid_amount" || reason.code == "amount_refused"
        throw PaymentProcessorError(isAboutAmount ? .invalidAmount : .refused("\(reason.code): \(reason.message)"))
    }
}

extension PaymentProcessorError {
    /// True if the key was used with another card before.
    fileprivate var isKeyOfAnother: Bool {
        if case .refused(let text) = reason { text.hasPrefix("idempotency_key_reused:") } else { false }
    }
}

/// An answer, received in pieces up to a length that no answer of the sandbox exceeds.
private final class BoundedAnswer: NSObject, URLSessionDataDelegate, Sendable {
    private static let longest = 1 << 20
    private let state: Mutex<(data: Data, waiter: CheckedContinuation<(Data, URLResponse?), any Error>?)>

    private init(_ waiter: CheckedContinuation<(Data, URLResponse?), any Error>) { state = Mutex((Data(), waiter)) }

    /// Performs a request.
    ///
    /// - Throws: `URLError`; `dataLengthExceedsMaximum` if the answer is too long.
    static func fetch(
        _ request: URLRequest, _ configuration: URLSessionConfiguration
    ) async throws -> (Data, URLResponse?) {
        try await withCheckedThrowingContinuation { waiter in
            let session = URLSession(configuration: configuration, delegate: Self(waiter), delegateQueue: nil)
            session.dataTask(with: request).resume()
            session.finishTasksAndInvalidate()
        }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let isTooLong = state.withLock { state in
            // One byte more than allowed marks the answer as too long: the rest may arrive in spite of the
            // cancellation.
            state.data.append(data.prefix(Self.longest + 1 - state.data.count))
            return state.data.count > Self.longest
        }
        if isTooLong { dataTask.cancel() }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let (data, waiter) = state.withLock { state in
            defer { state.waiter = nil }
            return (state.data, state.waiter)
        }
        if let error = data.count > Self.longest ? URLError(.dataLengthExceedsMaximum) : error {
            waiter?.resume(throwing: error)
        } else {
            waiter?.resume(returning: (data, task.response))
        }
    }
}
