package import Foundation
import JWTKit
import Logging

extension DeletionToken {
    /// The maximum length in UTF-8 bytes: a list of 10,000 payments takes 400 kB.
    static let maximumLength = 1 << 20

    /// Verifies a token.
    ///
    /// - Parameters:
    ///   - verifier: the payment service's keys.
    ///   - issuer: the required issuer; nil accepts any holder of the keys.
    /// - Throws: `StoreError` of the cases `storeAndForwardDeletionTokenInvalid` and
    ///   `storeAndForwardDeletionTokenExpired`.
    package init(
        _ token: StoreAndForwardBatchDeletionToken, by verifier: TokenVerifier, issuer: String?, at now: Date
    ) async throws {
        typealias StoreError = PaymentCardReaderStore.StoreError
        let claims: Claims
        do {
            guard token.rawValue.utf8.count <= Self.maximumLength else {
                throw StoreError.storeAndForwardDeletionTokenInvalid
            }
            let verified = try await verifier.verify(token.rawValue, as: Claims.self)
            guard verified.purpose == .deletion else { throw TokenVerifier.OtherPurpose() }
            claims = verified.claims
        } catch {
            logger.warning(
                "a deletion token is refused: it is not signed by the payment service, is for something else, or lacks a claim"
            )
            throw StoreError.storeAndForwardDeletionTokenInvalid
        }
        guard let hash = Data(base64URL: claims.hash), hash.count == 32, !claims.jti.isEmpty,
            issuer.map({ $0 == claims.iss }) ?? true,
            // A tolerance for the difference of the clocks.
            claims.iat <= now.timeIntervalSince1970 + 300
        else { throw StoreError.storeAndForwardDeletionTokenInvalid }
        guard claims.exp > now.timeIntervalSince1970 else { throw StoreError.storeAndForwardDeletionTokenExpired }
        id = claims.jti
        self.issuer = claims.iss
        audience = claims.aud.values
        batch = claims.bid
        count = claims.cnt
        self.hash = hash
        payments = claims.ids
        expiration = Date(timeIntervalSince1970: claims.exp)
    }

    private struct Claims: JWTPayload {
        let iss: String
        let aud: ReaderToken.Audience
        let jti: String
        let bid: String
        let cnt: Int
        /// The hash in Base64url, without padding.
        let hash: String
        /// Seconds since 1970.
        let iat: Double
        let exp: Double
        let ids: [String]?

        /// Does nothing: the caller verifies the claims against the terminal's clock and its batch.
        func verify(using algorithm: some JWTAlgorithm) throws {
            guard algorithm.name == "ES256" else { throw JWTError.unsupportedAlgorithm(alg: algorithm.name) }
        }
    }
}
