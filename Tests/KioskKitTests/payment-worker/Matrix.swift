// Takes payments, stores others and forwards them, and gives money back, at random, until it is killed.
//
//     payment-worker FOLDER SEED matrix kiosk|adapter [drain]
//
// The payment service is this process, its books are a file: `books` in FOLDER.  It loses answers, before it has booked and after,
// answers later than it is waited for, and refuses the merchant for a while.  What the application knows is in `view`.  A line of
// either is on the disk before anybody is told of it:
//
//     +KEY CENTS, -KEY CENTS   a payment, a refund
//     reversed KEY, void KEY   taken back, to be taken back
//
// In one run of two it kills itself, at a point that SEED says.  With `drain` the payment service answers to everything, nothing
// new is begun, and it ends when nothing is open.
import CardReaderAdapter
import Foundation
import Glibc
import KioskKit
import ProximityReader
import Synchronization

/// SplitMix64: the same numbers for the same seed.
struct SeededGenerator: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}

final class Chance: Sendable {
    private let generator: Mutex<SeededGenerator>
    init(_ seed: UInt64) { generator = Mutex(SeededGenerator(state: seed)) }
    func number(_ range: ClosedRange<Int>) -> Int { generator.withLock { Int.random(in: range, using: &$0) } }
    func oneIn(_ count: Int) -> Bool { number(1...count) == 1 }
}

/// A file to which lines are added, each on the disk before anybody goes on.
final class Lines: Sendable {
    private let descriptor: Int32
    let before: [String]

    init(_ url: URL) {
        before = ((try? String(contentsOf: url, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
        descriptor = open(url.path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
    }

    func add(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        guard write(descriptor, bytes, bytes.count) == bytes.count, fsync(descriptor) == 0 else { abort() }
    }
}

/// Where the process ends, if anywhere: at the COUNTth time that it comes to POINT.
final class EndPoint: Sendable {
    private static let all = ["asked", "booked", "telling", "told", "writing", "removing", "reversing", "reversed"]
    private let point: String?
    private let left: Mutex<Int>

    init(_ chance: Chance, isDraining: Bool) {
        let isSet = chance.oneIn(2) && !isDraining
        point = isSet ? Self.all[chance.number(0...Self.all.count - 1)] : nil
        left = Mutex(chance.number(1...12))
    }

    func reach(_ name: String) {
        guard name == point else { return }
        let isHere = left.withLock { left in
            left -= 1
            return left == 0
        }
        if isHere { kill(getpid(), SIGKILL) }
    }
}

/// What both payment services below do: one set of books.
final class Bank: Sendable {
    private struct State {
        /// By key: of a refund less than nothing, of a decline nil.
        var decisions: [String: Int?] = [:]
        var reversed: Set<String> = []
        /// What was asked for, by key, as far as it was decided.
        var asked: [String: Int] = [:]
        /// How many calls the merchant is refused yet.
        var refusals = 0
    }

    private let state = Mutex(State())
    private let books: Lines
    private let chance: Chance
    private let end: EndPoint
    private let isWell: Bool

    init(_ folder: URL, _ chance: Chance, _ end: EndPoint, isWell: Bool) {
        books = Lines(folder.appending(path: "books"))
        (self.chance, self.end, self.isWell) = (chance, end, isWell)
        state.withLock { state in
            for line in books.before {
                let words = line.split(separator: " ").map(String.init)
                switch (words[0], Int(words.last ?? "")) {
                case ("reversed", _): state.reversed.insert(words[1])
                case ("declined", let cents?): (state.decisions[words[1]], state.asked[words[1]]) = (.some(nil), cents)
                case (let key, let cents?):
                    state.decisions[String(key.dropFirst())] = key.hasPrefix("-") ? -cents : cents
                    state.asked[String(key.dropFirst())] = cents
                default: abort()
                }
            }
        }
    }

    enum Mood: Error { case lost, refused }

    /// What happens to a call on its way here.
    private func come() async throws {
        end.reach("asked")
        guard !isWell else { return }
        let isRefused = state.withLock { state in
            if state.refusals == 0, chance.oneIn(40) { state.refusals = chance.number(1...20) }
            state.refusals = max(0, state.refusals - 1)
            return state.refusals > 0
        }
        if isRefused { throw Mood.refused }
        switch chance.number(0...11) {
        case 0, 1: throw Mood.lost
        // Deaf to cancellation, as calls on the way are.
        case 2: await Task { try? await Task.sleep(for: .milliseconds(60)) }.value
        case 3: await Task { try? await Task.sleep(for: .milliseconds(5)) }.value
        default: break
        }
    }

    /// What happens to the answer.
    private func leave() throws {
        end.reach("booked")
        if !isWell, chance.oneIn(6) { throw Mood.lost }
    }

    /// - Parameter cents: of a refund less than nothing.
    /// - Returns: whether it is approved, as it was the first time.
    func decide(_ key: String, _ cents: Int, note: String = "") async throws -> Bool {
        try await come()
        let isApproved = state.withLock { state in
            if state.reversed.contains(key) { return false }
            if let known = state.decisions[key] { return known != nil }
            let isApproved = !chance.oneIn(8)
            state.decisions[key] = isApproved ? .some(cents) : .some(nil)
            state.asked[key] = abs(cents)
            books.add(
                isApproved ? "\(cents < 0 ? "-" : "+")\(key) \(note)\(abs(cents))" : "declined \(key) \(abs(cents))")
            return isApproved
        }
        try leave()
        return isApproved
    }

    /// - Returns: nil where nothing was decided.
    func decision(_ key: String) async throws -> Bool? {
        try await come()
        defer { end.reach("booked") }
        return state.withLock { state in
            state.reversed.contains(key) ? false : state.decisions[key].map { $0 != nil }
        }
    }

    /// As ``decision(_:)``.
    func result(_ key: String) async throws -> PaymentResult? {
        let isApproved = try await decision(key)
        let cents = state.withLock { $0.asked[key] }
        return isApproved.map { .init(key, $0, cents) }
    }

    func reverse(_ key: String) async throws {
        end.reach("reversing")
        try await come()
        state.withLock { state in
            guard state.reversed.insert(key).inserted else { return }
            books.add("reversed \(key)")
        }
        end.reach("reversed")
        try leave()
    }
}

/// What the application knows, for good.
final class View: Sendable {
    private let lines: Lines
    private let end: EndPoint
    private let known: Mutex<[String]>
    /// Its lines, as words.
    var words: [[String]] { known.withLock { $0 }.map { $0.split(separator: " ").map(String.init) } }

    init(_ folder: URL, _ end: EndPoint) {
        (lines, self.end) = (Lines(folder.appending(path: "view")), end)
        known = Mutex(lines.before)
    }

    func add(_ line: String) {
        end.reach("telling")
        lines.add(line)
        known.withLock { $0.append(line) }
        end.reach("told")
    }
}

extension Decimal {
    fileprivate var cents: Int { NSDecimalNumber(decimal: self * 100).intValue }
}

extension PaymentResult {
    /// - Parameter cents: nil where only a reversal came under the key.
    fileprivate init(_ key: String, _ isApproved: Bool, _ cents: Int?) {
        self.init(
            id: key, status: isApproved ? .approved : .declined, idempotencyKey: key,
            amount: cents.map { Decimal($0) / 100 }, currency: "EUR")
    }
}

// MARK: KioskKit

struct BankProvider: PaymentServiceProvider {
    let bank: Bank

    private func answer<Value>(_ body: () async throws -> Value) async throws -> Value {
        do { return try await body() } catch Bank.Mood.refused {
            throw PaymentServiceError.notAuthorised("the merchant is suspended")
        } catch {
            throw PaymentServiceError.noAnswer("lost")
        }
    }

    func fetchReaderToken() async throws -> String { throw PaymentServiceError.noAnswer("there are no tokens") }

    func processPayment(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> PaymentResult {
        try await answer {
            PaymentResult(idempotencyKey, try await bank.decide(idempotencyKey, amount.cents), amount.cents)
        }
    }

    func processRefund(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> RefundResult {
        try await answer {
            PaymentResult(idempotencyKey, try await bank.decide(idempotencyKey, -amount.cents), amount.cents)
        }
    }

    func result(for idempotencyKey: String) async throws -> PaymentResult? {
        try await answer { try await bank.result(idempotencyKey) }
    }

    func reverse(idempotencyKey: String, amount: Decimal?, currency: String?) async throws {
        try await answer { try await bank.reverse(idempotencyKey) }
    }

    /// Gives no deletion token: what it says of each payment is all that counts.
    func submitBatch(_ batch: Data, from reader: String, idempotencyKey: String) async throws -> BatchResult {
        let payments = try JSONDecoder().decode(Stored.self, from: batch).payments
        return try await answer {
            var results: [String: PaymentResult] = [:]
            for payment in payments {
                let cents = Int(payment.paymentCardData) ?? 0
                results[payment.id] = PaymentResult(payment.id, try await bank.decide(payment.id, cents), cents)
            }
            return BatchResult(payments: results, deletionToken: nil)
        }
    }

    private struct Stored: Decodable {
        struct Payment: Decodable { let id: String, paymentCardData: String }
        let payments: [Payment]
    }
}

/// Payments that the terminal stores, as a read would leave them, and that are forwarded meanwhile.
struct Storing {
    private let store: RecordStore
    private let chance: Chance

    init(_ store: RecordStore, _ chance: Chance) { (self.store, self.chance) = (store, chance) }

    static func configuration(_ folder: URL) throws -> ProximityReaderSystem.ValidatedConfiguration {
        var configuration = ProximityReaderSystem.Configuration()
        configuration.folder = folder.appending(path: "state")
        configuration.storeAndForward = .init(limits: [:])
        return try configuration.validated()
    }

    static var pace: PaymentForwarder.Pace {
        var pace = PaymentForwarder.Pace()
        (pace.batchSize, pace.interval, pace.attempts) = (4, .zero, 2)
        (pace.pause, pace.longestPause) = (.milliseconds(1), .milliseconds(2))
        return pace
    }

    /// Stores a payment; its amount is what the card's data are here.
    func storeOne() async throws {
        if try await store.preparation() == nil {
            try await store.add(
                Preparation(
                    issuer: "bank", merchant: "merchant-1", terminalProfile: nil, cardDataKey: nil,
                    tokenExpiration: .distantFuture, time: Date(), uptime: 1, boot: "boot-1", reader: "reader-1"))
        }
        let cents = chance.number(1...10_000)
        try await store.add(
            RecordStore.Payment(
                id: UUID().uuidString, paymentCardData: "\(cents)", generalCardData: "", amount: Decimal(cents) / 100,
                currency: "EUR", issuer: "bank", merchant: "merchant-1"))
    }

    /// Until nothing is stored, and every decision is told.
    func drain(_ forwarder: PaymentForwarder) async throws {
        while true {
            for payment in try await store.payments() where payment.state == .setAside {
                try await store.putBack(payment.id)
            }
            _ = try? await forwarder.forward()
            guard try await store.count() > 0 else { return }
        }
    }
}

struct KioskApplication {
    let view: View
    let chance: Chance
    let service: TapToPayService
    let storing: Storing
    let forwarder: PaymentForwarder

    init(_ folder: URL, _ bank: Bank, _ view: View, _ chance: Chance, _ end: EndPoint) throws {
        (self.view, self.chance) = (view, chance)
        let reader = PaymentCardReader(terminal: PaymentTerminal(try Storing.configuration(folder)))
        storing = Storing(reader.terminal.store, chance)
        forwarder = PaymentForwarder(
            try reader.fetchPaymentCardReaderStore(), to: BankProvider(bank: bank), pace: Storing.pace,
            decided: { payment, result in
                if result.status == .approved { view.add("+\(payment.id) \(payment.amount.cents)") }
            })
        service = TapToPayService(
            psp: BankProvider(bank: bank), reader: reader,
            pauses: [.milliseconds(1)], reversalPause: .milliseconds(5), answerTime: .milliseconds(40),
            settlingTime: .milliseconds(100), disk: end.disk
        ) { payment, result in
            guard result.status == .approved, let amount = payment.amount else { return }
            view.add("\(payment.kind == .refund ? "-" : "+")\(payment.id) \(amount.cents)")
        }
    }

    func run() async throws {
        await start()
        while true {
            if chance.oneIn(4) { try await storing.storeOne() }
            if chance.oneIn(6) { _ = try? await forwarder.forward() }
            let card = PaymentCardReadResult(
                id: UUID().uuidString, paymentCardData: "SEALED-CARD-DATA", generalCardData: nil,
                applicationTypeIdentifier: nil, outcome: .success, cardEffectiveState: nil, cardExpirationState: nil)
            let amount = Decimal(chance.number(1...10_000)) / 100
            do {
                if chance.oneIn(3) {
                    _ = try await service.giveBack(card, amount: amount, currency: "EUR")
                } else {
                    let result = try await service.authorise(card, amount: amount, currency: "EUR")
                    guard result.status == .approved, chance.oneIn(4) else { continue }
                    // The goods stay in the machine.
                    view.add("void \(card.id)")
                    try await service.reverse(card.id)
                }
            } catch TapToPayError.outcomeUnknown(let key) {
                switch chance.number(0...2) {
                case 0: _ = try? await service.resolve(key)
                case 1: _ = try? await service.reverse(key)
                default: break
                }
            } catch {
                try? await Task.sleep(for: .milliseconds(1))
            }
        }
    }

    private func start() async {
        // It has no reader; what is left is settled before that is found out.
        try? await service.initialize()
        for line in view.words where line[0] == "void" { _ = try? await service.reverse(line[1]) }
    }

    func drain() async throws {
        await start()
        while await !service.unsettledPayments.isEmpty { try? await Task.sleep(for: .milliseconds(2)) }
        try await storing.drain(forwarder)
    }
}

// MARK: CardReaderAdapter

/// An intent is charged once, whatever card it is for: it is the bank's key, with the number of the card that it was declined for.
actor BankProcessor: PaymentProcessor {
    private let bank: Bank
    private let chance: Chance

    init(_ bank: Bank, _ chance: Chance) { (self.bank, self.chance) = (bank, chance) }

    private func answer<Value: Sendable>(_ body: @Sendable () async throws -> Value) async throws -> Value {
        do { return try await body() } catch Bank.Mood.refused {
            throw PaymentProcessorError(.refused("the merchant is suspended"))
        } catch Bank.Mood.lost {
            throw PaymentProcessorError(.noAnswer)
        }
    }

    private static func intent(_ intent: PaymentIntent, _ status: PaymentIntentStatus) -> PaymentIntent {
        PaymentIntent(
            id: intent.id, status: status, created: intent.created, amount: intent.amount, currency: intent.currency)
    }

    func createIntent(
        _ parameters: PaymentIntentParameters, amount: UInt, idempotencyKey: String
    ) async throws -> PaymentIntent {
        PaymentIntent(
            id: idempotencyKey, status: .requiresPaymentMethod, created: Date(), amount: amount,
            currency: parameters.currency)
    }

    func process(_ intent: PaymentIntent, card: CollectedCard, idempotencyKey: String) async throws -> PaymentIntent {
        try await answer {
            guard try await bank.decide(intent.id, Int(intent.amount)) else {
                throw PaymentProcessorError(.declined(.generic), intent: Self.intent(intent, .canceled))
            }
            return Self.intent(intent, .requiresCapture)
        }
    }

    func retrieve(_ intent: PaymentIntent) async throws -> PaymentIntent {
        try await answer {
            switch try await bank.decision(intent.id) {
            case true?: Self.intent(intent, .requiresCapture)
            case false?: Self.intent(intent, .canceled)
            case nil: Self.intent(intent, .requiresPaymentMethod)
            }
        }
    }

    func cancel(_ intent: PaymentIntent) async throws { try await answer { try await bank.reverse(intent.id) } }

    func needsCard(for refund: RefundParameters) async throws -> Bool { chance.oneIn(2) }

    func refund(
        _ parameters: RefundParameters, amount: UInt, card: CollectedCard?, idempotencyKey: String
    ) async throws -> RefundOutcome {
        try await answer {
            try await bank.decide(idempotencyKey, -Int(amount), note: "\(parameters.chargeId) ")
                ? .succeeded : .failed(.generic)
        }
    }
}

struct AdapterApplication {
    let view: View
    let chance: Chance
    let readers = SimulatedReaders([SimulatedReader(serial: "A")])
    let service: ContactlessReaderService
    let offline: OfflinePaymentProcessor
    let storing: Storing

    init(_ folder: URL, _ bank: Bank, _ view: View, _ chance: Chance, _ end: EndPoint) throws {
        (self.view, self.chance) = (view, chance)
        offline = try OfflinePaymentProcessor(
            BankProcessor(bank, chance), configuration: try Storing.configuration(folder),
            psp: BankProvider(bank: bank), pace: Storing.pace)
        storing = Storing(offline.store, chance)
        var limits = ContactlessReaderService.TimeLimits()
        limits.processor = .milliseconds(40)
        service = ContactlessReaderService(
            processor: offline, backend: readers,
            journal: .folder(folder.appending(path: "intents")),
            limits: limits, disk: end.disk
        ) { decision in
            switch decision {
            case .payment(let intent): view.add("+\(intent.id) \(intent.amount)")
            case .refund(let parameters, _, let key):
                view.add("-\(key) \(parameters.chargeId) \(parameters.amount.cents)")
            }
        }
    }

    private struct Shop: CardReaderConfigProvider {
        func fetchToken(completion: @escaping @Sendable (Result<String, any Error>) -> Void) {
            completion(.success("token"))
        }
        func fetchDefaultLocationID(completion: @escaping @Sendable (Result<String, any Error>) -> Void) {
            completion(.success("shop"))
        }
    }

    private func connect() async throws {
        try service.start(Shop(), discoveryMethod: .simulated)
        for try await list in service.discoveredReaders {
            if let reader = list.first { try await service.connect(reader, options: nil) }
        }
    }

    /// - Returns: whether it is known what became of it.
    private func giveBack(_ charge: String, _ cents: Int) async -> Bool {
        readers.present(.approved(.interac))
        do {
            _ = try await service.refundPayment(
                parameters: RefundParameters(chargeId: charge, amount: Decimal(cents) / 100, currency: "eur"))
        } catch CardReaderServiceError.refundPayment(.paymentDeclinedByPaymentProcessorAPI, _) {
            // It is not tried again.
        } catch {
            return false
        }
        view.add("done \(charge)")
        return true
    }

    /// The payment that was under way, and the refunds that the application has promised.
    private func finish() async {
        while let intent = await service.activePaymentIntent {
            readers.present(.approved(.visa))
            let isKnown = view.words.contains { $0[0] == "+\(intent.id)" }
            do {
                if isKnown || chance.oneIn(2) {
                    _ = try await service.retryActivePaymentIntent()
                } else {
                    try await service.cancelPaymentIntent()
                }
            } catch CardReaderServiceError.retryNotPossibleActivePaymentCancelled {
                try? await service.cancelPaymentIntent()
            } catch {
                try? await Task.sleep(for: .milliseconds(1))
            }
        }
        // What the books were told of is done, too.
        let done = Set(view.words.filter { $0[0] == "done" || $0.count == 3 && $0[0] != "want" }.map { $0[1] })
        for line in view.words where line[0] == "want" && !done.contains(line[1]) {
            while await !giveBack(line[1], Int(line[2]) ?? 0) { try? await Task.sleep(for: .milliseconds(1)) }
        }
    }

    /// Notes each decision about a stored payment, and only then acknowledges it.
    private func watchDecisions() async throws {
        for try await decision in offline.forwardingEvents {
            if case .forwarded(let intent, let stored) = decision { view.add("+\(stored) \(intent.amount)") }
            try await offline.acknowledge(decision.stored)
        }
    }

    func run() async throws {
        try await connect()
        await finish()
        let watch = Task { try await watchDecisions() }
        defer { watch.cancel() }
        while true {
            if chance.oneIn(4) { try await storing.storeOne() }
            if chance.oneIn(6) { _ = try? await offline.forwarder.forward() }
            let cents = chance.number(1...10_000)
            if chance.oneIn(3) {
                let charge = UUID().uuidString
                view.add("want \(charge) \(cents)")
                while await !giveBack(charge, cents) { try? await Task.sleep(for: .milliseconds(1)) }
                continue
            }
            readers.present(.approved(.visa))
            do {
                let intent = try await service.capturePayment(
                    PaymentIntentParameters(amount: Decimal(cents) / 100, currency: "eur"))
                guard intent.status == .requiresCapture else { abort() }
            } catch {
                await finish()
            }
        }
    }

    func drain() async throws {
        try await connect()
        await finish()
        try await storing.drain(offline.forwarder)
        let watch = Task { try await watchDecisions() }
        while try await offline.ledger.summary().unacknowledged > 0 { try await Task.sleep(for: .milliseconds(2)) }
        watch.cancel()
    }
}

extension EndPoint {
    var disk: PaymentJournal.Disk {
        var disk = PaymentJournal.Disk()
        let (write, remove) = (disk.write, disk.remove)
        disk.write = { [self] in
            reach("writing")
            return write($0, $1, $2)
        }
        disk.remove = { [self] in
            reach("removing")
            return remove($0)
        }
        return disk
    }
}

func runMatrix(_ folder: URL, seed: UInt64, surface: String, isDraining: Bool) async throws {
    let chance = Chance(seed)
    let end = EndPoint(chance, isDraining: isDraining)
    let view = View(folder, end)
    let bank = Bank(folder, chance, end, isWell: isDraining)
    print("started")
    fflush(nil)
    if surface == "kiosk" {
        let application = try KioskApplication(folder, bank, view, chance, end)
        if isDraining { try await application.drain() } else { try await application.run() }
    } else {
        let application = try AdapterApplication(folder, bank, view, chance, end)
        if isDraining { try await application.drain() } else { try await application.run() }
    }
}
