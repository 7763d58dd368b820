import CardEncryption
import Foundation
import JWTKit

/// A verified reader token of a payment service: a JSON Web Token signed with ES256.
struct ReaderToken: Sendable {
    /// The maximum length of a token in its compact form, in characters.
    static let maximumLength = 16_384

    /// The token itself; nil for a reader that was prepared with it before.
    let token: PaymentCardReader.Token?
    let issuer: String
    /// The merchant, claim `mid`.
    let merchant: String
    /// The terminal profile, claim `tpid`.
    let terminalProfile: String?
    let expiration: Date
    /// The time of issue, claim `iat`; nil if absent.
    let issued: Date?
    /// True if payments may be stored after a preparation with the token: it contains its purpose (`typ`), its
    /// audience (`aud`), and its time of issue (`iat`).
    let isForStoring: Bool
    /// The recipient of sealed card data: `card_data_key`, a JWK; nil if the token names none.
    let recipient: JWERecipient?
    /// ``recipient`` as a JWK.
    let cardDataKey: String?

    /// Verifies a token.
    ///
    /// - Throws: ``PaymentCardReaderError`` of the cases `emptyReaderToken`, `invalidReaderToken`, `tokenExpired` and
    ///   `invalidMerchant`.
    init(_ token: PaymentCardReader.Token, for configuration: ProximityReaderSystem.ValidatedConfiguration) async throws
    {
        let text = token.rawValue
        guard !text.isEmpty else { throw PaymentCardReaderError.emptyReaderToken }
        guard text.utf8.count <= Self.maximumLength else { throw Self.invalid("it is too long") }
        let verified: TokenVerifier.Verified<Claims>
        do {
            verified = try await configuration.tokenVerifier.verify(text, as: Claims.self)
        } catch let error as JWTError {
            throw Self.invalid(Self.reasons[error.errorType] ?? "it is no JSON web token")
        } catch let error as DecodingError {
            throw Self.invalid(Self.reason(error))
        } catch is TokenVerifier.OtherPurpose {
            throw Self.invalid("it is for something else")
        } catch {
            throw Self.invalid("it is no JSON web token")
        }
        let claims = verified.claims
        guard verified.purpose != .deletion else { throw Self.invalid("it is a deletion token") }
        let now = configuration.now()
        expiration = Date(timeIntervalSince1970: claims.exp)
        guard expiration > now else { throw PaymentCardReaderError.tokenExpired }
        // A tolerance for the difference of the clocks.
        guard max(claims.nbf ?? 0, claims.iat ?? 0) <= now.timeIntervalSince1970 + 300 else {
            throw Self.invalid("it is from the future; check this machine's clock")
        }
        guard configuration.tokenIssuer.map({ $0 == claims.iss }) ?? true else {
            throw Self.invalid("it is from another issuer")
        }
        guard configuration.tokenAudience.map({ claims.aud?.values.contains($0) ?? false }) ?? true else {
            throw Self.invalid("it is for another audience")
        }
        guard !claims.mid.isEmpty, configuration.merchant.map({ $0 == claims.mid }) ?? true else {
            throw PaymentCardReaderError.invalidMerchant
        }
        guard configuration.terminalProfile.map({ $0 == claims.tpid }) ?? true else {
            throw Self.invalid("it is for another terminal profile")
        }
        do {
            // The claims as received: no object in them names a member twice.
            let key = try JWK(member: "card_data_key", of: verified.payload)
            recipient = try key.map { try JWERecipient($0) }
            cardDataKey = key?.description
        } catch {
            throw Self.invalid("its card data key cannot be used: \(loggable(error))")
        }
        self.token = token
        issued = claims.iat.map { Date(timeIntervalSince1970: $0) }
        issuer = claims.iss
        merchant = claims.mid
        terminalProfile = claims.tpid
        isForStoring =
            verified.purpose == .reading && claims.iat != nil && !claims.iss.isEmpty
            && claims.aud?.values.isEmpty == false
    }

    /// Restores the token with which the reader was prepared.
    ///
    /// - Throws: `JWKError`.
    init(_ preparation: Preparation) throws {
        token = nil
        issuer = preparation.issuer
        merchant = preparation.merchant
        terminalProfile = preparation.terminalProfile
        expiration = preparation.tokenExpiration
        issued = preparation.tokenIssued
        isForStoring = true
        cardDataKey = preparation.cardDataKey
        recipient = try preparation.cardDataKey.map { try JWERecipient(jwk: $0) }
    }

    private static func invalid(_ reason: String) -> PaymentCardReaderError { .invalidReaderToken(reason) }

    private static let reasons: [JWTError.ErrorType: String] = [
        .signatureVerificationFailed: "its signature is not its issuer's",
        .unknownKID: "it is signed with a key that is not known",
        .missingKIDHeader: "it does not name the key that it is signed with",
        .noKeyProvided: "it is signed with a key that is not known",
        .unsupportedAlgorithm: "it is not signed with ES256",
    ]

    private static func reason(_ error: DecodingError) -> String {
        switch error {
        case .keyNotFound(let key, _): "it has no \(key.stringValue)"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            "its \(context.codingPath.map(\.stringValue).joined(separator: ".")) is of another type"
        default: "it is no JSON web token"
        }
    }

    private struct Claims: JWTPayload {
        let iss: String
        let aud: Audience?
        /// Seconds since 1970, like the other times.
        let exp: Double
        let iat: Double?
        let nbf: Double?
        let mid: String
        let tpid: String?

        /// Does nothing: the caller verifies the claims against the terminal's clock and configuration.
        func verify(using algorithm: some JWTAlgorithm) throws {
            guard algorithm.name == "ES256" else { throw JWTError.unsupportedAlgorithm(alg: algorithm.name) }
        }
    }

    /// One audience, or a list of several (RFC 7519, section 4.1.3).
    struct Audience: Codable {
        let values: [String]

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            values = try (try? [container.decode(String.self)]) ?? container.decode([String].self)
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(values)
        }
    }
}
