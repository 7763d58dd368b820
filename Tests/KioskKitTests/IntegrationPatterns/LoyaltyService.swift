// swift-format-ignore-file
import KioskKit

/// What the application records of a visit.
public protocol VisitRecorder: Sendable {
    func recordVisit(identifier: String) async throws
}

/// The payment service, whose decision the guide's function does not look at.
public protocol ChargingService: Sendable {
    @discardableResult
    func processPayment(cardData: String, amount: Decimal, currency: String) async throws -> PaymentResult
}

/// The guide's function for a payment with loyalty.  Where it has `session?` after `guard let session`, which does not compile,
/// this has `session`.
class LoyaltyService {
    private let session: PaymentCardReaderSession?
    private let psp: any ChargingService
    private let loyaltyService: any VisitRecorder

    init(session: PaymentCardReaderSession?, psp: any ChargingService, loyaltyService: any VisitRecorder) {
        self.session = session
        self.psp = psp
        self.loyaltyService = loyaltyService
    }

    func chargeWithLoyalty(
        amount: Decimal,
        currency: String,
        loyaltyPassIdentifier: String
    ) async throws -> (PaymentCardReadResult, VASReadResult?) {
        guard let session else { throw TapToPayError.notInitialized }

        let paymentRequest = PaymentCardTransactionRequest(
            amount: amount,
            currencyCode: currency,
            type: .purchase
        )

        let vasRequest = VASRequest(
            merchantIdentifier: loyaltyPassIdentifier,
            localizedDescription: "Scan your loyalty card"
        )

        // Single tap reads both payment AND loyalty card
        let result = try await session.readPaymentCard(
            paymentRequest,
            vasRequest: vasRequest
        )

        // Process payment
        if let cardData = result.paymentCardData {
            try await psp.processPayment(cardData: cardData, amount: amount, currency: currency)
        }

        // Process loyalty (may be nil if customer has no matching pass)
        if let vasResult = result.vasReadResult {
            for entry in vasResult.entries where entry.status == .success {
                try await loyaltyService.recordVisit(identifier: entry.identifier)
            }
        }

        try await session.prepare()

        return (result, result.vasReadResult)
    }
}
