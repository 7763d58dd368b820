// swift-format-ignore-file
import KioskKit

protocol PaymentServiceProvider {
    func fetchReaderToken() async throws -> String
    func processPayment(cardData: String, amount: Decimal, currency: String) async throws -> PaymentResult
    func processRefund(cardData: String, amount: Decimal, currency: String) async throws -> RefundResult
}

class TapToPayService {
    private let psp: PaymentServiceProvider
    private let reader = PaymentCardReader()
    private var session: PaymentCardReaderSession?
    
    init(psp: PaymentServiceProvider) {
        self.psp = psp
    }
    
    func initialize() async throws {
        let jwt = try await psp.fetchReaderToken()
        let token = PaymentCardReader.Token(rawValue: jwt)
        
        if try await !reader.isAccountLinked(using: token) {
            try await reader.linkAccount(using: token)
        }
        
        session = try await PaymentCardReaderSession(reader: reader, token: token)
        try await session?.prepare()
    }
    
    func charge(amount: Decimal, currency: String) async throws -> PaymentResult {
        guard let session else { throw TapToPayError.notInitialized }
        
        let request = PaymentCardTransactionRequest(
            amount: amount,
            currencyCode: currency,
            type: .purchase
        )
        
        let readResult = try await session.readPaymentCard(request)
        
        guard let cardData = readResult.paymentCardData else {
            throw TapToPayError.noCardData
        }
        
        let paymentResult = try await psp.processPayment(
            cardData: cardData,
            amount: amount,
            currency: currency
        )
        
        // Re-prepare for next transaction
        try await session.prepare()
        
        return paymentResult
    }
}
