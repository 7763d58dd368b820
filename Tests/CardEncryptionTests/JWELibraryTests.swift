import Foundation
import TestSupport
import Testing

@testable import CardEncryption

/// Our JWE against those of two other libraries, each way.
struct JWELibraryTests {
    enum Library: String, CaseIterable {
        /// Debian's python3-jwcrypto.
        case jwcrypto
        /// From PyPI; Tests/install puts it there.
        case joserfc

        var path: String {
            let package = testFolder.deletingLastPathComponent().deletingLastPathComponent()
            return self == .joserfc ? package.appending(path: ".build/joserfc").path : ""
        }

        func callAsFunction(_ request: [String: Any]) async throws -> [String: Any] {
            let input = String(decoding: try JSONSerialization.data(withJSONObject: request), as: UTF8.self)
            let outcome = try await judged(by: "jwe.py", [rawValue], input: input, path: path)
            try #require(outcome.status == 0, "\(outcome)")
            return try #require(JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
        }
    }

    static let installed = Library.allCases.filter { pythonHas($0.rawValue, path: $0.path) }

    private let header = JWEHeader(
        type: "JOSE", contentType: "application/octet-stream", agreementPartyU: Array("reader".utf8),
        agreementPartyV: Array("service".utf8), fields: ["rdr": "ACR122U \"7\" \u{1F4B3}", "sid": "S-1"])

    private func check(_ library: Library, _ algorithm: JWEAlgorithm) async throws {
        let keys = try await library(["do": "generate", "alg": algorithm.rawValue, "kid": "k-1"])
        let (theirPrivate, theirPublic) = try (
            #require(keys["private"] as? String), #require(keys["public"] as? String)
        )

        // They open ours.
        let text = "# TEST \(algorithm.rawValue)"
        let sealed = try JWERecipient(jwk: theirPublic).seal(ClearCardData(Array(text.utf8)), header: header)
        let opened = try await library(["do": "open", "jwk": theirPrivate, "jwe": sealed.description])
        #expect(opened["text"] as? String == text)
        let members = try #require(opened["header"] as? [String: Any])
        for (name, value) in [
            "alg": algorithm.rawValue, "enc": "A256GCM", "kid": "k-1", "typ": "JOSE", "cty": "application/octet-stream",
            "apu": "cmVhZGVy", "apv": "c2VydmljZQ", "rdr": "ACR122U \"7\" \u{1F4B3}", "sid": "S-1",
        ] {
            #expect(members[name] as? String == value)
        }

        // We open theirs: with their key, and with ours.
        let ours = try JWEPrivateKey(generating: algorithm, keyID: "k-2")
        for (key, jwk) in [(try JWEPrivateKey(jwk: theirPrivate), theirPublic), (ours, ours.publicJWK)] {
            let request: [String: Any] = [
                "do": "seal", "jwk": jwk, "text": text,
                "header": ["alg": algorithm.rawValue, "enc": "A256GCM", "apu": "QWxpY2U", "apv": "Qm9i", "sid": "S-2"],
            ]
            let jwe = try CompactJWE(parsing: #require(try await library(request)["jwe"] as? String))
            #expect(jwe.header.fields == ["sid": "S-2"])
            #expect(jwe.header.agreementPartyU == Array("Alice".utf8))
            #expect(try key.open(jwe) { String(decoding: $0, as: UTF8.self) } == text)
        }
    }

    @Test(
        .enabled(if: installed.contains(.jwcrypto), "python3-jwcrypto is not installed"),
        arguments: JWEAlgorithm.allCases)
    func jwcryptoAgrees(algorithm: JWEAlgorithm) async throws { try await check(.jwcrypto, algorithm) }

    @Test(
        .enabled(if: installed.contains(.joserfc), "joserfc is not installed from PyPI"),
        // In the fast tier one library has all algorithms, and the other one of them.
        arguments: Tier.few(JWEAlgorithm.allCases, 1))
    func joserfcAgrees(algorithm: JWEAlgorithm) async throws { try await check(.joserfc, algorithm) }
}
