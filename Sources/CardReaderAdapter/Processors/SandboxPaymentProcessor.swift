public import Foundation
import FoundationNetworking
import Synchronization

/// The payment service of psp-sandbox, over HTTP, and its tokens: no money moves.
///
///     let sandbox = SandboxPaymentProcessor(URL(string: "http://127.0.0.1:8790")!)
///     let service = ContactlessReaderService(processor: sandbox, configuration: configuration)
///     try service.start(sandbox, discoveryMethod: .usb)
///
/// psp-sandbox knows payments and no intents.  Those are kept here, for as long as this object lives: it is one per process.
public actor SandboxPaymentProcessor: PaymentProcessor {
    private struct Record {
        var intent: PaymentIntent
        /// Under which the sandbox was asked to charge a card for it, the last one last.
        var keys: [String] = []
    }

    private nonisolated let http: SandboxConnection
    private var records: [String: Record] = [:]

    /// - Parameters:
    ///   - address: where psp-sandbox listens: it prints it when it starts.
    ///   - patience: how long each answer is waited for.
    public init(_ address: URL, patience: Duration = .seconds(30)) {
        http = SandboxConnection(address: address, patience: patience)
    }

    public func createIntent(
        _ parameters: PaymentIntentParameters, amount: UInt, idempotencyKey: String
    ) async throws -> PaymentIntent {
        if let known = records[idempotencyKey] { return known.intent }
        let intent = PaymentIntent(
            id: idempotencyKey, status: .requiresPaymentMethod, created: Date(), amount: amount,
            currency: parameters.currency, metadata: parameters.metadata)
        records[intent.id] = Record(intent: intent)
        return intent
    }

    public func process(
        _ intent: PaymentIntent, card: CollectedCard, idempotencyKey: String
    ) async throws -> PaymentIntent {
        guard var record = records[intent.id] else { throw PaymentProcessorError(.unknownIntent) }
        if !record.keys.contains(idempotencyKey) {
            guard record.intent.status == .requiresPaymentMethod || record.intent.status == .requiresConfirmation else {
                throw PaymentProcessorError(.unknownIntent, intent: record.intent)
            }
            record.keys.append(idempotencyKey)
        }
        record.intent = record.intent.with(.requiresConfirmation)
        records[intent.id] = record
        let payment: SandboxConnection.Payment = try await http.ask(
            "POST", "payments", key: idempotencyKey,
            body: SandboxConnection.ChargeRequest(card, intent.amount, intent.currency))
        let now = payment.applied(to: record.intent, card: card)
        records[intent.id]?.intent = now
        if let reason = payment.declineReason { throw PaymentProcessorError(.declined(reason), intent: now) }
        return now
    }

    /// Captures a payment that was authorised: for the closure of ``CardReaderService/collectPayment(_:onProcessing:capture:)``.
    ///
    /// - Throws: ``PaymentProcessorError``, where the sandbox has no approved payment.
    public func capture(_ intent: PaymentIntent) async throws -> PaymentIntent {
        let now = try await retrieve(intent)
        guard now.status == .requiresCapture || now.status == .succeeded else {
            throw PaymentProcessorError(.unknownIntent, intent: now)
        }
        records[intent.id]?.intent = now.with(.succeeded)
        return now.with(.succeeded)
    }

    public func retrieve(_ intent: PaymentIntent) async throws -> PaymentIntent {
        guard let record = records[intent.id] else { throw PaymentProcessorError(.unknownIntent) }
        guard let key = record.keys.last, record.intent.status != .succeeded, record.intent.status != .canceled else {
            return record.intent
        }
        let decision: SandboxConnection.Decision = try await http.ask("GET", "decision", key: key)
        guard let payment = decision.payment else { return record.intent }
        let now = payment.applied(to: record.intent, card: nil)
        records[intent.id]?.intent = now
        return now
    }

    public func cancel(_ intent: PaymentIntent) async throws {
        guard let record = records[intent.id] else { throw PaymentProcessorError(.unknownIntent) }
        guard record.intent.status != .succeeded else {
            throw PaymentProcessorError(.unknownIntent, intent: record.intent)
        }
        // Under a key that the sandbox does not know yet, nothing will be approved.
        for key in record.keys {
            let _: SandboxConnection.Decision = try await http.ask("POST", "reversals", key: key)
        }
        records[intent.id]?.intent = record.intent.with(.canceled)
    }

    /// Always: psp-sandbox gives money back to a card that is read for it.
    public func needsCard(for refund: RefundParameters) async throws -> Bool { true }

    public func refund(
        _ parameters: RefundParameters, amount: UInt, card: CollectedCard?, idempotencyKey: String
    ) async throws -> RefundOutcome {
        guard let card else { throw PaymentProcessorError(.refused("a refund needs a card")) }
        let payment: SandboxConnection.Payment = try await http.ask(
            "POST", "refunds", key: idempotencyKey,
            body: SandboxConnection.ChargeRequest(card, amount, parameters.currency))
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

/// What goes over the wire: see `psp-sandbox --help`.
private struct SandboxConnection: Sendable {
    let address: URL
    let patience: Duration

    struct ChargeRequest: Encodable {
        let cardData: String, amount: String, currency: String

        init(_ card: CollectedCard, _ amount: UInt, _ currency: String) {
            cardData = card.sealedData
            self.amount = (Decimal(amount) / (MinorUnits.multiplier(of: currency) ?? 1)).description
            self.currency = currency.uppercased()
        }
    }

    struct Payment: Decodable {
        let id: String, status: String, responseCode: String
        /// The account number, masked.
        let card: String?

        /// By response code of ISO 8583, field 39; nil for an approval.
        var declineReason: DeclineReason? {
            guard status != "approved" else { return nil }
            return switch responseCode {
            case "05": .generic
            case "14": .invalidAccount
            case "51": .insufficientFunds
            case "54": .expiredCard
            case "91": .temporary
            default: .unknown
            }
        }

        /// - Parameter read: nil keeps the charges that the intent has.
        func applied(to intent: PaymentIntent, card read: CollectedCard?) -> PaymentIntent {
            guard status == "approved" else {
                // 17: taken back.
                return intent.with(responseCode == "17" ? .canceled : .requiresPaymentMethod)
            }
            // The sandbox does not tell when the card expires.
            let details = CardPresentTransactionDetails(
                last4: String((card ?? "").suffix(4)), expMonth: 0, expYear: 0,
                brand: CardBrand(applicationIdentifier: read?.applicationIdentifier ?? ""),
                receipt: read?.facts.map {
                    ReceiptDetails($0, authorizationResponseCode: responseCode, accountType: "Default")
                },
                readMethod: .contactlessEMV)
            let charge = Charge(
                id: id, amount: intent.amount, currency: intent.currency, status: .succeeded, created: Date(),
                metadata: intent.metadata,
                paymentMethod: details.brand == .interac
                    ? .interacPresent(details: details) : .cardPresent(details: details))
            return PaymentIntent(
                id: intent.id, status: .requiresCapture, created: intent.created, amount: intent.amount,
                currency: intent.currency, metadata: intent.metadata,
                charges: read == nil && !intent.charges.isEmpty ? intent.charges : [charge])
        }
    }

    struct Decision: Decodable { let payment: Payment? }

    private struct Failure: Decodable {
        struct Reason: Decodable { let code: String, message: String }
        let error: Reason
    }

    /// - Throws: ``PaymentProcessorError``.
    func ask<Answer: Decodable>(
        _ method: String, _ resource: String, key: String? = nil, body: (any Encodable)? = nil
    ) async throws -> Answer {
        var request = URLRequest(url: address.appending(path: resource))
        request.httpMethod = method
        request.httpBody = try body.map { try JSONEncoder().encode($0) }
        request.setValue("application/json", forHTTPHeaderField: "Content-Type")
        if let key { request.setValue(key, forHTTPHeaderField: "Idempotency-Key") }
        // A session, and so a connection, for each request.  One that was used before may break before it answers; then
        // libcurl sends the request again by itself, and Foundation has no body left to give it.
        let configuration = URLSessionConfiguration.ephemeral
        configuration.timeoutIntervalForRequest = TimeInterval(patience.components.seconds)
        let (data, response): (Data, URLResponse?)
        do { (data, response) = try await BoundedAnswer.fetch(request, configuration) } catch {
            let notSent: Set<URLError.Code> = [.cannotConnectToHost, .cannotFindHost, .notConnectedToInternet]
            throw PaymentProcessorError(
                (error as? URLError).map { notSent.contains($0.code) } == true ? .notConnected : .noAnswer)
        }
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        // What was done is done, whatever the answer means.
        if status == 200, let answer = try? JSONDecoder().decode(Answer.self, from: data) { return answer }
        // Timeout, conflict, too early, too many requests: nothing is known of the calls before this one.
        guard (400..<500).contains(status), ![408, 409, 425, 429].contains(status),
            let reason = try? JSONDecoder().decode(Failure.self, from: data).error
        else { throw PaymentProcessorError(.noAnswer) }
        let isAboutAmount = reason.code == "invalid_amount" || reason.code == "amount_refused"
        throw PaymentProcessorError(isAboutAmount ? .invalidAmount : .refused("\(reason.code): \(reason.message)"))
    }
}

/// An answer as it comes, up to a length that no answer of the sandbox has.
private final class BoundedAnswer: NSObject, URLSessionDataDelegate, Sendable {
    private static let longest = 1 << 20
    private let state: Mutex<(data: Data, waiter: CheckedContinuation<(Data, URLResponse?), any Error>?)>

    private init(_ waiter: CheckedContinuation<(Data, URLResponse?), any Error>) { state = Mutex((Data(), waiter)) }

    /// - Throws: `URLError`; of `cancelled` for an answer that is too long.
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
            state.data.append(data)
            return state.data.count > Self.longest
        }
        if isTooLong { dataTask.cancel() }
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        let (data, waiter) = state.withLock { state in
            defer { state.waiter = nil }
            return (state.data, state.waiter)
        }
        if let error { waiter?.resume(throwing: error) } else { waiter?.resume(returning: (data, task.response)) }
    }
}

extension CardBrand {
    /// By the registered provider that an AID begins with (ISO/IEC 7816-5); ``unknown`` for others.
    init(applicationIdentifier aid: String) {
        self = Self.providers[String(aid.uppercased().prefix(10))] ?? .unknown
    }

    private static let providers: [String: CardBrand] = [
        "A000000003": .visa, "A000000004": .masterCard, "A000000025": .amex, "A000000065": .jcb,
        "A000000152": .discover, "A000000277": .interac, "A000000333": .unionPay, "A000000384": .eftposAu,
    ]
}
