package import Foundation
import JWTKit
import Logging

/// What a payment service says when it has taken a batch, verified: a JSON web token signed with ES256.
package struct DeletionToken: Sendable {
    /// `jti`
    let id: String
    let issuer: String
    /// The readers that it is for.
    let audience: [String]
    /// `bid`
    let batch: String
    /// `cnt`: of the batch's payments.
    let count: Int
    /// Of the batch's canonical form, SHA-256.
    let hash: Data
    /// `ids`: of the batch's payments, those that may be deleted; nil: all.
    let payments: [String]?
    let expiration: Date

    /// In UTF-8: a list of 10,000 payments has 400 kB.
    static let maximumLength = 1 << 20

    /// - Parameters:
    ///   - verifier: has the payment service's keys.
    ///   - issuer: nil: anyone who has the keys.
    /// - Throws: `StoreError` of the cases `storeAndForwardDeletionTokenInvalid` and `storeAndForwardDeletionTokenExpired`.
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
            // Clocks differ a little.
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
        /// In Base64url, without padding.
        let hash: String
        /// Seconds since 1970.
        let iat: Double
        let exp: Double
        let ids: [String]?

        /// The claims are verified against this terminal's clock and its batch, not here.
        func verify(using algorithm: some JWTAlgorithm) throws {
            guard algorithm.name == "ES256" else { throw JWTError.unsupportedAlgorithm(alg: algorithm.name) }
        }
    }
}
