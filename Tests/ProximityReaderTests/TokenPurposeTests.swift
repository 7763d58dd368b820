import CardEncryption
import Crypto
import Foundation
import JWTKit
import ProximityReader
import TestSupport
import Testing

/// What a reader token is for, and what its claims are.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct TokenPurposeTests {
    @Test(
        "a token that says it is for something else prepares no reader",
        arguments: ["deletion-token+jwt", "application/deletion-token+jwt", "at+jwt", ""])
    func otherPurpose(_ type: String) async throws {
        let bench = try await Bench()
        await expect("invalidReaderToken") {
            _ = try await bench.reader.prepare(using: bench.token(type: type))
        }
    }

    @Test(
        "a token says what it is for as the standard has it, or not at all",
        arguments: ["reader-token+jwt", "application/Reader-Token+JWT", "JWT", nil])
    func purpose(_ type: String?) async throws {
        let bench = try await Bench()
        _ = try await bench.reader.prepare(using: bench.token(type: type))
    }

    @Test("payments are stored only after a token that says what it is for, for whom and since when")
    func storing() async throws {
        let bench = try await Bench { $0.storeAndForward = .init(limits: ["EUR": .init(perPayment: 50, total: 100)]) }
        var claims = try claims(bench)
        for (header, missing) in [(#""typ":"JWT","#, nil), (reader, "iat"), ("", nil)] as [(String, String?)] {
            var short = claims
            if let missing { short[missing] = nil }
            _ = try await bench.reader.prepare(using: token(short, header: header, bench))
            await expect("storeAndForwardNotAllowed") { _ = try await bench.reader.prepareStoreAndForward() }
        }
        claims["jti"] = #""2""#
        _ = try await bench.reader.prepare(using: token(claims, header: reader, bench))
        _ = try await bench.reader.prepareStoreAndForward()
    }

    @Test(
        "where the configuration names neither issuer nor audience, payments are stored only after a token that names both"
    )
    func storingForSomebody() async throws {
        let bench = try await Bench {
            $0.storeAndForward = .init(limits: ["EUR": .init(perPayment: 50, total: 100)])
            ($0.tokenIssuer, $0.tokenAudience) = (nil, nil)
        }
        let claims = try claims(bench)
        for (claim, value) in [("aud", nil), ("aud", "[]"), ("iss", #""""#)] as [(String, String?)] {
            var short = claims
            short[claim] = value
            let token = try token(short, header: reader, bench)
            if try await !bench.reader.isAccountLinked(using: token) {
                try await bench.reader.linkAccount(using: token)
            }
            _ = try await bench.reader.prepare(using: token)
            await expect("storeAndForwardNotAllowed") { _ = try await bench.reader.prepareStoreAndForward() }
        }
        var none = claims
        none["iss"] = nil
        await expect("invalidReaderToken") {
            _ = try await bench.reader.prepare(using: token(none, header: reader, bench))
        }
        _ = try await bench.reader.prepare(using: token(claims, header: reader, bench))
        _ = try await bench.reader.prepareStoreAndForward()
    }

    @Test("a token in which a member stands twice names no key, whichever of the two is good")
    func duplicates() async throws {
        let bench = try await Bench()
        let claims = try claims(bench)
        let key = try #require(claims["card_data_key"])
        for twice in [
            key.replacing(#""kty":"EC""#, with: #""kty":"EC","kty":"EC""#),
            key.replacing(#""kty":"EC""#, with: #""x":"AAAA","kty":"EC""#), key + #","card_data_key":"# + key,
        ] {
            var claims = claims
            claims["card_data_key"] = twice
            let token = try token(claims, header: reader, bench)
            await expect("invalidReaderToken") { _ = try await bench.reader.prepare(using: token) }
        }
        _ = try await bench.reader.prepare(using: token(claims, header: reader, bench))
    }

    private let reader = #""typ":"reader-token+jwt","#

    /// Those of a good token, each as JSON.
    private func claims(_ bench: Bench) throws -> [String: String] {
        let now = bench.configuration.now().timeIntervalSince1970
        return [
            "iss": #""https://payments.example""#, "aud": #""terminals""#, "exp": "\(now + 3600)", "iat": "\(now)",
            "mid": #""merchant-1""#, "card_data_key": bench.cardDataKey.publicJWK,
        ]
    }

    /// ES256 by hand (RFC 7515, section 5.1), since no library writes such claims.
    private func token(
        _ claims: [String: String], header: String, _ bench: Bench
    ) throws -> PaymentCardReader.Token {
        func url(_ data: Data) -> String {
            data.base64EncodedString().replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        }
        let body = "{" + claims.map { "\"\($0.key)\":\($0.value)" }.joined(separator: ",") + "}"
        let text = url(Data(#"{\#(header)"alg":"ES256","kid":"service-1"}"#.utf8)) + "." + url(Data(body.utf8))
        let key = try P256.Signing.PrivateKey(pemRepresentation: bench.signer.pemRepresentation)
        return .init(rawValue: "\(text).\(url(try key.signature(for: Data(text.utf8)).rawRepresentation))")
    }
}
