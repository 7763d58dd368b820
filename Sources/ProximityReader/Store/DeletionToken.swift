import Foundation

/// A verified deletion token, with which a payment service confirms a batch: a JSON Web Token signed with ES256.
package struct DeletionToken: Sendable {
    /// The token's identifier, claim `jti`.
    let id: String
    let issuer: String
    /// The readers for which the token is valid.
    let audience: [String]
    /// The batch's identifier, claim `bid`.
    let batch: String
    /// The number of payments in the batch, claim `cnt`.
    let count: Int
    /// The SHA-256 of the batch's canonical form.
    let hash: Data
    /// The payments of the batch that may be deleted, claim `ids`; nil stands for all.
    let payments: [String]?
    let expiration: Date
}
