import CardEncryption
import Foundation
import JWTKit

/// What a payment service says to this terminal, verified: a JSON web token signed with ES256.
struct ReaderToken: Sendable {
    /// Of a token in its compact form, in characters.
    static let maximumLength = 16_384

    /// The token itself; nil where the reader was prepared with it before.
    let token: PaymentCardReader.Token?
    let issuer: String
    /// `mid`
    let merchant: String
    /// `tpid`
    let terminalProfile: String?
    let expiration: Date
    /// `iat`; nil if it does not tell.
    let issued: Date?
    /// Whom card data are sealed for: `card_data_key`, a JWK; nil if it names nobody.
    let recipient: JWERecipient?
    /// ``recipient`` as a JWK.
    let cardDataKey: String?

    /// - Throws: ``PaymentCardReaderError`` of the cases `emptyReaderToken`, `invalidReaderToken`, `tokenExpired` and
    ///   `invalidMerchant`.
    init(_ token: PaymentCardReader.Token, for configuration: ProximityReaderSystem.ValidatedConfiguration) async throws
    {
        let text = token.rawValue
        guard !text.isEmpty else { throw PaymentCardReaderError.emptyReaderToken }
        guard text.utf8.count <= Self.maximumLength else { throw Self.invalid("it is too long") }
        let claims: Claims
        do {
            claims = try await configuration.tokenVerifier.claims(of: text)
        } catch let error as JWTError {
            throw Self.invalid(Self.reasons[error.errorType] ?? "it is no JSON web token")
        } catch let error as DecodingError {
            throw Self.invalid(Self.reason(error))
        } catch {
            throw Self.invalid("it is no JSON web token")
        }
        let now = configuration.now()
        expiration = Date(timeIntervalSince1970: claims.exp)
        guard expiration > now else { throw PaymentCardReaderError.tokenExpired }
        // Clocks differ a little.
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
            cardDataKey = try claims.cardDataKey.map { String(decoding: try JSONEncoder().encode($0), as: UTF8.self) }
            recipient = try cardDataKey.map { try JWERecipient(jwk: $0) }
        } catch {
            throw Self.invalid("its card data key cannot be used: \(error)")
        }
        self.token = token
        issued = claims.iat.map { Date(timeIntervalSince1970: $0) }
        issuer = claims.iss
        merchant = claims.mid
        terminalProfile = claims.tpid
    }

    /// The token that the reader was prepared with.
    ///
    /// - Throws: `JWKError`.
    init(_ preparation: Preparation) throws {
        token = nil
        issuer = preparation.issuer
        merchant = preparation.merchant
        terminalProfile = preparation.terminalProfile
        expiration = preparation.tokenExpiration
        issued = preparation.tokenIssued
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
        /// Seconds since 1970, as the others.
        let exp: Double
        let iat: Double?
        let nbf: Double?
        let mid: String
        let tpid: String?
        /// Any JSON object: keys have members of many kinds (RFC 7517, section 4).
        let cardDataKey: [String: JSONValue]?

        enum CodingKeys: String, CodingKey {
            case iss, aud, exp, iat, nbf, mid, tpid
            case cardDataKey = "card_data_key"
        }

        /// The claims are verified against this terminal's clock and configuration, not here.
        func verify(using algorithm: some JWTAlgorithm) throws {
            guard algorithm.name == "ES256" else { throw JWTError.unsupportedAlgorithm(alg: algorithm.name) }
        }
    }

    /// What a member of a JSON object may be.
    enum JSONValue: Codable, Sendable {
        case null
        case boolean(Bool)
        case number(Double)
        case string(String)
        case array([JSONValue])
        case object([String: JSONValue])

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if container.decodeNil() {
                self = .null
            } else if let value = try? container.decode(Bool.self) {
                self = .boolean(value)
            } else if let value = try? container.decode(Double.self) {
                self = .number(value)
            } else if let value = try? container.decode(String.self) {
                self = .string(value)
            } else if let value = try? container.decode([JSONValue].self) {
                self = .array(value)
            } else {
                self = .object(try container.decode([String: JSONValue].self))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch self {
            case .null: try container.encodeNil()
            case .boolean(let value): try container.encode(value)
            case .number(let value): try container.encode(value)
            case .string(let value): try container.encode(value)
            case .array(let values): try container.encode(values)
            case .object(let members): try container.encode(members)
            }
        }
    }

    /// One, or several in a list (RFC 7519, section 4.1.3).
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
