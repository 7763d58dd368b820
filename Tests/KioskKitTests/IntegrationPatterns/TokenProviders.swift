// swift-format-ignore-file
import KioskKit

/// The guide's blocks for tokens of two payment services, in functions: what they call is the application's.
struct TokenProviders {
    let reader: PaymentCardReader
    let fetchStripeReaderToken: @Sendable () async throws -> String
    let fetchAdyenReaderToken: @Sendable () async throws -> String

    func sessionWithStripe() async throws -> PaymentCardReaderSession {
        // Using ProximityReader directly with Stripe token
        // 1. Get token from your backend (which calls Stripe's API)
        let stripeToken = try await fetchStripeReaderToken()
        let token = PaymentCardReader.Token(rawValue: stripeToken)

        // 2. Standard ProximityReader flow
        let session = try await PaymentCardReaderSession(reader: reader, token: token)
        // ... continue with normal flow
        return session
    }

    func tokenOfAdyen() async throws -> PaymentCardReader.Token {
        // Adyen provides their own iOS Mobile SDK
        // But the token can also be used directly with ProximityReader
        let adyenToken = try await fetchAdyenReaderToken()
        let token = PaymentCardReader.Token(rawValue: adyenToken)
        return token
    }
}
