import CardReaderAdapter
import CardReceipts
import Foundation
import Synchronization
import Testing

/// A service on simulated readers, with a payment service that does as it is told.
struct AdapterBench {
    let readers: SimulatedReaders
    let processor: ScriptedProcessor
    /// In the shape that is tested.
    let service: any CardReaderService
    private let contactless: ContactlessReaderService
    let shop = Shop()

    init(
        _ list: [SimulatedReader] = [SimulatedReader(serial: "A")], script: [ScriptedProcessor.Answer] = [],
        limits: ContactlessReaderService.TimeLimits? = nil, on surface: Surface = .sequences,
        journal: JournalPlace = .memory,
        decided: (@Sendable (CardReaderDecision) async -> Void)? = nil
    ) {
        readers = SimulatedReaders(list)
        processor = ScriptedProcessor(script)
        var quick = ContactlessReaderService.TimeLimits()
        quick.reconnectionPauses = Array(repeating: .milliseconds(1), count: 5)
        contactless = ContactlessReaderService(
            processor: processor, backend: readers, journal: journal, limits: limits ?? quick, decided: decided)
        service = surface(contactless)
    }

    var activePaymentIntent: PaymentIntent? { get async { await contactless.activePaymentIntent } }

    /// Begins to search, and returns when a reader is found.
    func find(_ serial: String = "A") async throws -> CardReader {
        try service.start(shop, discoveryMethod: .simulated)
        for try await readers in service.discoveredReaders {
            if let reader = readers.first(where: { $0.serial == serial }) { return reader }
        }
        throw Missing()
    }

    @discardableResult
    func connect(
        _ serial: String = "A", options: CardReaderConnectionOptions? = nil
    ) async throws -> CardReader {
        try await service.connect(try await find(serial), options: options)
    }

    static let payment = PaymentIntentParameters(amount: 12.34, currency: "eur", metadata: ["order_id": "7"])

    func pay() async throws -> PaymentIntent { try await service.capturePayment(Self.payment) }

    /// Proves that nothing is left of what went before: the next payment works.
    func payOnceMore() async throws {
        readers.takeCard()
        await processor.follow([])
        if await service.connectedReaders.first(where: { _ in true })?.isEmpty != false {
            readers.plug(SimulatedReader(serial: "A"))
            try await connect()
        }
        readers.present(.approved(.visa))
        #expect(try await pay().status == .requiresCapture)
    }

    struct Missing: Error {}
}

/// A shop, which counts what it is asked.
final class Shop: CardReaderConfigProvider {
    enum Behavior: Sendable {
        case answers
        case fails(any Error)
        /// Says it again, and then the opposite.
        case answersTwice
        case silent
    }

    private let state = Mutex((tokens: 0, token: Behavior.answers, location: Behavior.answers))
    private let pending = Mutex<Pending?>(nil)

    private struct Pending {
        let answer: @Sendable () -> Void
    }

    var tokens: Int { state.withLock { $0.tokens } }
    func set(token: Behavior = .answers, location: Behavior = .answers) {
        state.withLock { ($0.token, $0.location) = (token, location) }
    }

    /// Gives the token that ``Behavior/silent`` kept back.
    func answerLate() { pending.withLock { $0 }?.answer() }
    var isAsked: Bool { pending.withLock { $0 != nil } }

    func fetchToken(completion: @escaping @Sendable (Result<String, any Error>) -> Void) {
        let (number, behavior) = state.withLock { state in
            state.tokens += 1
            return (state.tokens, state.token)
        }
        answer("token-\(number)", behavior, completion)
    }

    func fetchDefaultLocationID(completion: @escaping @Sendable (Result<String, any Error>) -> Void) {
        answer("shop-1", state.withLock { $0.location }, completion)
    }

    private func answer(
        _ text: String, _ behavior: Behavior, _ completion: @escaping @Sendable (Result<String, any Error>) -> Void
    ) {
        switch behavior {
        case .answers: completion(.success(text))
        case .fails(let error): completion(.failure(error))
        case .answersTwice:
            completion(.success(text))
            completion(.success(text))
            completion(.failure(CancellationError()))
        case .silent: pending.withLock { $0 = Pending { completion(.success(text)) } }
        }
    }
}

/// A payment service in this process.
actor ScriptedProcessor: PaymentProcessor {
    enum Answer: Sendable {
        case approved
        case status(PaymentIntentStatus)
        case fails(PaymentProcessorError.Reason)
        /// With the intent as it is now.
        case failsWith(PaymentProcessorError.Reason, PaymentIntentStatus)
        /// Another intent than was asked about.
        case wrong
        /// It was done, and the answer comes when the test is long over.
        case never
        /// The answer comes when the test says so.
        case held
    }

    struct Call: Hashable, Sendable {
        let kind: String
        let amount: UInt
        let key: String
    }

    private var script: [Answer]
    private(set) var calls: [Call] = []
    private(set) var intents: [PaymentIntent] = []
    var refundOutcome = RefundOutcome.succeeded
    var refundNeedsCard = false
    private var gates: [CheckedContinuation<Void, Never>] = []

    /// - Parameter script: the answers to calls of any kind, in their order; after the last all goes well.
    init(_ script: [Answer]) { self.script = script }

    func follow(_ script: [Answer]) { self.script = script }
    func setRefund(_ outcome: RefundOutcome, needsCard: Bool) {
        (refundOutcome, refundNeedsCard) = (outcome, needsCard)
    }
    func calls(of kind: String) -> [Call] { calls.filter { $0.kind == kind } }

    func release() {
        for gate in gates { gate.resume() }
        gates = []
    }
    var isHolding: Bool { !gates.isEmpty }

    func createIntent(
        _ parameters: PaymentIntentParameters, amount: UInt, idempotencyKey: String
    ) async throws -> PaymentIntent {
        calls.append(Call(kind: "create", amount: amount, key: idempotencyKey))
        let new = PaymentIntent(
            id: "intent-\(intents.count + 1)", status: .requiresPaymentMethod,
            created: Date(timeIntervalSince1970: 1_700_000_000), amount: amount, currency: parameters.currency,
            metadata: parameters.metadata)
        let intent = try await answer(about: new, ok: .requiresPaymentMethod)
        intents.append(intent)
        return intent
    }

    func process(_ intent: PaymentIntent, card: CollectedCard, idempotencyKey: String) async throws -> PaymentIntent {
        calls.append(Call(kind: "process", amount: intent.amount, key: idempotencyKey))
        let intent = try await answer(about: intent, ok: .requiresCapture)
        intents.append(intent)
        return intent
    }

    func cancel(_ intent: PaymentIntent) async throws {
        calls.append(Call(kind: "cancel", amount: intent.amount, key: intent.id))
        _ = try await answer(about: intent, ok: .canceled)
    }

    func retrieve(_ intent: PaymentIntent) async throws -> PaymentIntent {
        calls.append(Call(kind: "retrieve", amount: intent.amount, key: intent.id))
        return try await answer(about: intent, ok: intent.status)
    }

    /// Not among ``calls``: it moves no money.
    func needsCard(for refund: RefundParameters) async throws -> Bool {
        _ = try await answer(about: Self.none, ok: .unknown)
        return refundNeedsCard
    }

    func refund(
        _ parameters: RefundParameters, amount: UInt, card: CollectedCard?, idempotencyKey: String
    ) async throws -> RefundOutcome {
        calls.append(Call(kind: "refund", amount: amount, key: idempotencyKey))
        _ = try await answer(about: Self.none, ok: .unknown)
        return refundOutcome
    }

    /// For the answers to questions about no intent.
    private static let none = PaymentIntent(
        id: "none", status: .unknown, created: Date(timeIntervalSince1970: 0), amount: 0, currency: "eur")

    private func answer(about intent: PaymentIntent, ok: PaymentIntentStatus) async throws -> PaymentIntent {
        func with(_ status: PaymentIntentStatus, id: String? = nil) -> PaymentIntent {
            PaymentIntent(
                id: id ?? intent.id, status: status, created: intent.created, amount: intent.amount,
                currency: intent.currency, metadata: intent.metadata)
        }
        switch script.isEmpty ? .approved : script.removeFirst() {
        case .approved: return with(ok)
        case .status(let status): return with(status)
        case .fails(let reason): throw PaymentProcessorError(reason)
        case .failsWith(let reason, let status): throw PaymentProcessorError(reason, intent: with(status))
        case .wrong:
            return PaymentIntent(
                id: "another", status: ok, created: intent.created, amount: intent.amount + 1, currency: "usd")
        case .never:
            // Deaf to cancellation, as a library may be.
            await withCheckedContinuation { gates.append($0) }
            throw PaymentProcessorError(.noAnswer)
        case .held:
            await withCheckedContinuation { gates.append($0) }
            return with(ok)
        }
    }
}

/// What came through a stream, so far.
final class Seen<Element: Sendable>: Sendable {
    private let state = Mutex((elements: [Element](), isOver: false))
    private let task = Mutex<Task<Void, Never>?>(nil)

    init<S: AsyncSequence & Sendable>(_ stream: S) where S.Element == Element {
        let task = Task { [weak self] in
            do { for try await element in stream { self?.state.withLock { $0.elements.append(element) } } } catch {}
            self?.state.withLock { $0.isOver = true }
        }
        self.task.withLock { $0 = task }
    }

    deinit { task.withLock { $0?.cancel() } }

    var all: [Element] { state.withLock { $0.elements } }
    var isOver: Bool { state.withLock { $0.isOver } }
}

extension CardReaderEvent {
    /// The case, with what it carries where that has a name.
    var text: String {
        switch self {
        case .waitingForInput(let input): "waiting \(input.rawValue)"
        case .displayMessage(let message): "message \(message)"
        case .disconnected(let reason): "disconnected \(reason)"
        default: "\(self)"
        }
    }
}

/// The error that was thrown, as text; nil if none was.
func failure(isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Void) async -> String? {
    do {
        try await body()
        return nil
    } catch {
        return "\(error)".replacing("CardReaderAdapter.", with: "").replacing("UnderlyingError.", with: "")
    }
}
