import CardReceipts
import Foundation
import Synchronization

/// The payment service of simulated cards: each card determines its own result.
actor SimulatedPaymentProcessor: PaymentProcessor {
    private let owner: SimulatedReaders
    private var answers: [String: Result<PaymentIntent, PaymentProcessorError>] = [:]
    private var intents = 0
    private var states: [String: PaymentIntent] = [:]

    init(_ owner: SimulatedReaders) { self.owner = owner }

    /// Returns the data that a simulated card passes on.
    static func seal(_ card: SimulatedCard) -> CollectedCard {
        let data =
            switch card {
            case .approved(let brand): "approved \(brand.rawValue)"
            case .declined(let reason): "declined \(reason.rawValue)"
            default: ""
            }
        return CollectedCard(id: UUID().uuidString, sealedData: data)
    }

    func createIntent(
        _ parameters: PaymentIntentParameters, amount: UInt, idempotencyKey: String
    ) async throws -> PaymentIntent {
        try answering {
            intents += 1
            return PaymentIntent(
                id: "simulated-\(intents)", status: .requiresPaymentMethod, created: Date(), amount: amount,
                currency: parameters.currency, metadata: parameters.metadata)
        }
    }

    func process(_ intent: PaymentIntent, card: CollectedCard, idempotencyKey: String) async throws -> PaymentIntent {
        try answering {
            let answer = answers[idempotencyKey] ?? Self.decide(intent, card)
            answers[idempotencyKey] = answer
            if let intent = try? answer.get() { states[intent.id] = intent }
            return try answer.get()
        }
    }

    private static func decide(
        _ intent: PaymentIntent, _ card: CollectedCard
    ) -> Result<PaymentIntent, PaymentProcessorError> {
        let words = card.sealedData.split(separator: " ").map(String.init)
        func charged(_ status: PaymentIntentStatus, _ charges: [Charge]) -> PaymentIntent {
            PaymentIntent(
                id: intent.id, status: status, created: intent.created, amount: intent.amount,
                currency: intent.currency, metadata: intent.metadata, charges: charges)
        }
        guard words.count == 2, words[0] == "approved", let brand = CardBrand(rawValue: words[1]) else {
            let reason = words.count == 2 ? DeclineReason(rawValue: words[1]) : nil
            return .failure(
                PaymentProcessorError(.declined(reason ?? .unknown), intent: charged(.requiresPaymentMethod, [])))
        }
        let details = CardPresentTransactionDetails(
            last4: "4242", expMonth: 12, expYear: 2034, brand: brand,
            // An identifier that nobody has registered (ISO/IEC 7816-5).  TEST.
            receipt: ReceiptDetails(
                applicationPreferredName: "SIMULATED CARD", dedicatedFileName: "F053494D5501",
                authorizationResponseCode: "00", accountType: "Default", cardholderVerificationMethod: .noCVM),
            readMethod: .contactlessEMV)
        let method =
            brand == .interac ? PaymentMethod.interacPresent(details: details) : .cardPresent(details: details)
        let charge = Charge(
            id: "charge-\(intent.id)", amount: intent.amount, currency: intent.currency, status: .succeeded,
            created: Date(), metadata: intent.metadata, paymentMethod: method)
        return .success(charged(.requiresCapture, [charge]))
    }

    func retrieve(_ intent: PaymentIntent) async throws -> PaymentIntent {
        try answering { states[intent.id] ?? intent }
    }

    func cancel(_ intent: PaymentIntent) async throws { try answering { states[intent.id] = intent.with(.canceled) } }

    func needsCard(for refund: RefundParameters) async throws -> Bool { false }

    func refund(
        _ parameters: RefundParameters, amount: UInt, card: CollectedCard?, idempotencyKey: String
    ) async throws -> RefundOutcome {
        try answering { .succeeded }
    }

    private func answering<Result>(_ body: () throws -> Result) throws -> Result {
        let answer = owner.answerToQuestion()
        guard answer != .notConnected else { throw PaymentProcessorError(.notConnected) }
        let result = try body()
        guard answer == .given else { throw PaymentProcessorError(.noAnswer) }
        return result
    }
}
