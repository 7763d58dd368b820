import CardEncryption
import Crypto
import Foundation
import Testing

@testable import WalletPasses

@Suite struct PassConfigurationTests {
    private let folder: URL

    init() throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "passes-\(UUID())")
        try FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    }

    /// The example of the documentation.
    private static func example() throws -> String {
        let article = URL(filePath: #filePath).deletingLastPathComponent().appending(
            path: "../../Sources/WalletPasses/Documentation.docc/MerchantsAndTheirKeys.md"
        ).standardizedFileURL
        let text = try String(contentsOf: article, encoding: .utf8)
        let start = try #require(text.range(of: "```json\n")).upperBound
        return String(text[start..<(try #require(text[start...].range(of: "```"))).lowerBound])
    }

    // TEST: the published key of Google's sample application, as OpenSSL writes it.
    private static let pem = """
        -----BEGIN EC PARAMETERS-----
        BggqhkjOPQMBBw==
        -----END EC PARAMETERS-----
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIIJtF+UHZ7FlsOTZ4zL40dHiAiQoT7Ta8eUKAyRucHl9oAoGCCqGSM49
        AwEHoUQDQgAEchyXj869zfmKhRi9xP7f2AK07kEo4lE7ZlWTN14jh4YBTny+hRGR
        XcUzevV9zSSPJlPHpqqu5pEwlv1xyFvE1w==
        -----END EC PRIVATE KEY-----
        """

    private func write(_ name: String, _ text: String, mode: Int = 0o600) throws -> String {
        let path = folder.appending(path: name).path
        #expect(
            FileManager.default.createFile(
                atPath: path, contents: Data(text.utf8), attributes: [.posixPermissions: mode]))
        return path
    }

    @Test("The documentation's example is read with its key files")
    func example() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        for name in ["apple-2025.pem", "apple-2023.pem", "google-1.pem"] { _ = try write(name, Self.pem) }
        // One that is kept as this package writes it.
        try MerchantKey().save(to: KeyFile(folder.appending(path: "google-2.pem").path))
        let configuration = try PassConfiguration(contentsOf: write("passes.json", Self.example()))
        let merchant = try #require(configuration.merchant("pass.com.example.loyalty"))
        #expect(merchant.apple?.keys.count == 2 && merchant.apple?.signUpURL == "https://example.com/join")
        let google = try #require(merchant.google)
        #expect(google.collectorID == 20_180_608 && google.services == [.loyalty, .giftCard])
        #expect(google.newestKey?.version == 2 && google.terminalID == "Kiosk 3")
        #expect(
            try google.keys[1]?.signing.rawRepresentation.map { $0 } == SmartTapVector.bytes(SmartTapVector.longTermKey)
        )
        #expect(configuration.capabilities == .kiosk && configuration.clockTolerance == 300)
        #expect(throws: PassConfigurationError.self) { try configuration.request(for: "other") }
        #expect(!"\(merchant)".contains("82"), "keys print masked")
    }

    @Test("A key file that others can read, or that contains something else, is refused with its place")
    func keyFiles() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        for name in ["apple-2025.pem", "google-1.pem", "google-2.pem"] { _ = try write(name, Self.pem) }
        let path = try write("passes.json", Self.example())
        for (text, mode, part) in [
            (Self.pem, 0o644, "only its owner"), ("secret", 0o600, "not a known key file"),
            ("-----BEGIN PRIVATE KEY-----\nsecret", 0o600, "contradict"),
        ] {
            _ = try write("apple-2023.pem", text, mode: mode)
            let error = #expect(throws: PassConfigurationError.self) { try PassConfiguration(contentsOf: path) }
            #expect(error?.place == "merchants[0].apple.keys[1]")
            #expect("\(error.map { "\($0)" } ?? "")".contains(part))
            #expect(error.map { "\($0)".contains("secret") } == false)
            try FileManager.default.removeItem(at: folder.appending(path: "apple-2023.pem"))
        }
    }

    @Test(
        "Each fault is named with its place",
        arguments: [
            ("20180608", "0", "merchants[0].google.collectorID: a collector identifier is not 0"),
            ("20180608", "4294967296", "merchants[0].google.collectorID: a number of at most 32 bits is due"),
            ("\"1\"", "\"01\"", "merchants[0].google.keys: a version as the name of a key file is due"),
            ("giftCard", "gift", "merchants[0].google.services[1]: one of"),
            ("\"giftCard\"", "\"loyalty\"", "merchants[0].google.services: named twice"),
            ("Store 12", "123456789012345678901234567890123", "merchants[0].google.locationID: 1 to 32 bytes"),
            ("https://", "http://", "merchants[0].apple.signUpURL: a sign-up URL"),
            ("Identifier\": \"pass.com", "Identifier\": \"com", "merchants[0].apple.passTypeIdentifier: a pass type"),
            ("\"apple-2025.pem\", \"apple-2023.pem\"", "", "merchants[0].apple.keys: no private key"),
            ("\"id\"", "\"ID\"", "merchants[0].\"ID\": none of this name"), ("300", "0", "clockTolerance: a tolerance"),
            ("unattended", "x", "terminal.system[0]: one of"),
            ("\"payment\",\n    \"sys", "\"y\",\n    \"sys", "terminal.type"),
            ("\"merchants\": [", "\"merchants\": [],\"a\": [", "\"a\": none"), ("300\n}", "300", "at byte"),
        ])
    func faults(_ part: String, _ other: String, _ message: String) throws {
        let text = try Self.example().replacing(part, with: other, maxReplacements: 1)
        let error = #expect(throws: PassConfigurationError.self) {
            try PassConfiguration(json: Array(text.utf8)) { _ throws(KeyFileError) in MerchantKey() }
        }
        #expect(error.map { "\($0)".contains(message) } == true, "\(error.map { "\($0)" } ?? "none")")
        try? FileManager.default.removeItem(at: folder)
    }

    @Test("A merchant is named once, has a wallet, and not too many are asked")
    func merchants() throws {
        let apple = PassMerchant.Apple(passTypeIdentifier: "pass.a.b", keys: [MerchantKey()])
        let one = PassMerchant(id: "a", apple: apple)
        for (merchants, reason) in [
            ([], .merchantCount(0)), ([one, one], .duplicate), ([PassMerchant(id: "b")], .noWallet),
            ([PassMerchant(id: "", apple: apple)], .identifier),
            ([PassMerchant](repeating: one, count: 17), .merchantCount(17)),
        ] as [([PassMerchant], PassConfigurationError.Reason)] {
            let error = #expect(throws: PassConfigurationError.self) { try PassConfiguration(merchants: merchants) }
            #expect(error?.reason == reason)
        }
        var google = try SmartTapVector.google(services: SmartTapService.allCases)
        _ = try PassConfiguration(merchants: [PassMerchant(id: "g", google: google)])
        let text = String(repeating: "a", count: 32)
        (google.locationID, google.terminalID, google.merchantName) = (text, text, text)
        let error = #expect(throws: PassConfigurationError.self) {
            try PassConfiguration(merchants: [PassMerchant(id: "g", google: google)])
        }
        #expect(error?.reason == .tooLong && error?.place == "merchants[0].google")
        let configuration = try PassConfiguration(merchants: [one])
        #expect(throws: PassConfigurationError.self) { try configuration.request(for: "a", signUpURL: "http://x") }
        #expect(
            try configuration.request(for: "a", signUpURL: "https://x", sendsURLOnly: true).vas?.sendsURLOnly == true)
    }

    @Test("What was seen survives a restart, in a file of its owner")
    func freshness() throws {
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = VASFreshnessFile(folder.appending(path: "seen.json").path)
        var freshness = try file.load(tolerance: 60)
        #expect(freshness.count == 0 && freshness.tolerance == 60)
        let cryptogram = try #require(VASCryptogram([UInt8](repeating: 7, count: 60)))
        let now = Date(timeIntervalSinceReferenceDate: 1000)
        let message = VASCryptogram.Message(date: now, data: PassData([]), isOlderVariant: false)
        #expect(freshness.judge(cryptogram, message, at: now) == .fresh)
        try file.save(freshness)
        try file.save(freshness)
        var restarted = try file.load(tolerance: 60)
        #expect(restarted.judge(cryptogram, message, at: now) == .replayed)
        // The tolerance is wider after the restart: what is no longer remembered stays refused.
        let later = VASCryptogram.Message(date: now.addingTimeInterval(100), data: PassData([]), isOlderVariant: false)
        let other = try #require(VASCryptogram([UInt8](repeating: 8, count: 60)))
        #expect(restarted.judge(other, later, at: now.addingTimeInterval(100)) == .fresh)
        try file.save(restarted)
        var wider = try file.load(tolerance: 6000)
        #expect(wider.judge(cryptogram, message, at: now.addingTimeInterval(101)) == .replayed)
        let mode = try FileManager.default.attributesOfItem(atPath: file.path)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        try Data("{}".utf8).write(to: URL(filePath: file.path))
        #expect(throws: VASFreshnessFile.Failure.self) { try file.load(tolerance: 60) }
    }
}
