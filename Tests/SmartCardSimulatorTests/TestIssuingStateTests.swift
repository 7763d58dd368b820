import Foundation
import SmartCard
import TestSupport
import Testing

@testable import SmartCardSimulator

/// What the test issuing state signs, before OpenSSL.
@Suite(.enabled(if: Program.isInstalled("openssl"), "openssl is not installed")) struct TestIssuingStateTests {
    /// OpenSSL's answer to EF.SOD of a built-in card, at a time in seconds since 1970.
    private static func verify(_ card: String, at time: String) async throws -> Program.Outcome {
        let object = try TLVList(try #require(configuration(card).files[0x011D]), padding: [])
        return try await verify(Array(try #require(object[0x77]?.value)), at: time)
    }

    private static func configuration(_ card: String) throws -> PassportCard.Configuration {
        let text = try #require(VirtualCards.all.first { $0.name == card }).text
        guard case .passport(let configuration) = try CardFile(parsing: text).kind else {
            throw CardFileError(line: 1, reason: "")
        }
        return configuration
    }

    private static func verify(_ content: [UInt8], at time: String) async throws -> Program.Outcome {
        let folder = FileManager.default.temporaryDirectory.appending(path: "state-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data(content).write(to: folder.appending(path: "signed.der"))
        try Data(TestIssuingState.authorityCertificate).write(to: folder.appending(path: "csca.der"))
        let certificate = try await Program.run([
            "openssl", "x509", "-inform", "DER", "-in", folder.path + "/csca.der", "-out", folder.path + "/csca.pem",
        ])
        try #require(certificate.status == 0, "\(certificate)")
        // RFC 5652; the content is written to a file, since it is not text.
        return try await Program.run([
            "openssl", "cms", "-verify", "-inform", "DER", "-in", folder.path + "/signed.der", "-CAfile",
            folder.path + "/csca.pem", "-purpose", "any", "-attime", time, "-out", folder.path + "/content",
        ])
    }

    @Test("OpenSSL verifies the signature and its path", arguments: ["passport-bac", "passport-altered"])
    func verified(_ card: String) async throws {
        // 2026-01-01.
        let outcome = try await Self.verify(card, at: "1767225600")
        expectEqual(outcome.status, 0, "\(outcome)")
    }

    @Test("OpenSSL verifies EF.CardSecurity, whose public key is that of the chip's private key")
    func cardSecurity() async throws {
        let file = try #require(Self.configuration("passport-cam").cardSecurity)
        let outcome = try await Self.verify(file, at: "1767225600")
        expectEqual(outcome.status, 0, "\(outcome)")
        let publicKey = try #require(ChipCurve(13)?.publicKey(of: TestIssuingState.chipAuthenticationKey))
        #expect(file.hex.contains(publicKey.hex))
    }

    @Test("the signer that has expired was valid in 2019, and no longer")
    func expired() async throws {
        try await expectEqual(Self.verify("passport-expired-signer", at: "1550000000").status, 0)
        let late = try await Self.verify("passport-expired-signer", at: "1767225600")
        #expect(late.status != 0 && late.error.contains("expired"), "\(late)")
    }

    @Test("OpenSSL finds the chip's key of DG14 on its curve, which the key spells out", arguments: 8...18)
    func chipKey(_ curve: Int) async throws {
        let authentication = try #require(
            PassportChipAuthentication(.aes128, parameters: curve, document: "TEST", isCopy: false))
        let infos = try #require(authentication.securityInfos)
        // ChipAuthenticationPublicKeyInfo: the object identifier, then SubjectPublicKeyInfo.
        let key = try #require(try TLVList(infos[1], padding: []).first?.children.dropFirst().first)
        let file = FileManager.default.temporaryDirectory.appending(path: "key-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(key.encoded).write(to: file)
        let outcome = try await Program.run([
            "openssl", "pkey", "-pubin", "-inform", "DER", "-in", file.path, "-pubcheck", "-noout", "-text_pub",
        ])
        #expect(outcome.status == 0 && outcome.output.contains("Key is valid"), "\(outcome)")
        #expect(outcome.output.contains("Field Type: prime-field"), "\(outcome)")
    }
}
