import Crypto
import Foundation
import SmartCard
import TestSupport
import Testing

@testable import WalletPasses

/// The encryption of Apple's passes against published captures, and against Python's `cryptography`.
@Suite struct VASCryptogramTests {
    /// Two taps of an iPhone, sniffed and published with the public demonstration key of the pass (proxmark3).  // TEST
    private static let demonstrationKey = "3D1547F23CD78AD052A58860F1219E8FB791EC4DFE33769F5B9BFA627A656CA1"
    private static let captures = [
        (
            "C0B77375EAE416B79449347F9FE838C05CDB57DC7470B97B93B806CB348771D9BFBE29D58538C7C7D7C3D015FA205B68BFCCD726"
                + "058A62F7F44085AC98DBF877120FD9059F1507B956E0A6D56D0A", "2023-07-09T14:39:50Z",
            "499g3sYcKCp7WVI9qVogyT"
        ),
        (
            "C0B77375D3F37956D84A538F28AC2A04B38DDC1A67D3647A4DD30ABD736EA1CEA8038388692E89DB99E4746D872DE782395640C5"
                + "36E79A75C47A9343DA0AF3937F06EECA7A865C4AD05A2C543AD2", "2023-07-09T16:35:58Z",
            "6d1UlFpnOc50iVKRaboDOK"
        ),
    ]

    static func key(_ text: String) throws -> P256.KeyAgreement.PrivateKey {
        try P256.KeyAgreement.PrivateKey(rawRepresentation: try [UInt8](hex: text))
    }

    @Test("Published captures decrypt to their messages and times", arguments: captures)
    func captured(_ bytes: String, _ date: String, _ message: String) throws {
        let merchant = try VASMerchant(passTypeIdentifier: "pass.com.passkit.pksamples.nfcdemo")
        let cryptogram = try #require(VASCryptogram(try [UInt8](hex: bytes)))
        let key = try Self.key(Self.demonstrationKey)
        let pass = try cryptogram.open(with: [P256.KeyAgreement.PrivateKey(), key], for: merchant)
        #expect(pass.data.text == message && pass.date.ISO8601Format() == date && !pass.isOlderVariant)
        #expect("\(pass.data)" == "pass data: 22 bytes" && !"\(pass)".contains(message))

        let other = try VASMerchant(passTypeIdentifier: "pass.com.passkit.pksamples.other")
        #expect(throws: VASCryptogram.Fault.notAuthentic) { try cryptogram.open(with: [key], for: other) }
        #expect(throws: VASCryptogram.Fault.unknownKey(identifier: [0xC0, 0xB7, 0x73, 0x75])) {
            try cryptogram.open(with: [P256.KeyAgreement.PrivateKey()], for: merchant)
        }
    }

    @Test("A cryptogram with any bit changed, or cut off, does not decrypt")
    func changed() throws {
        let merchant = try VASMerchant(passTypeIdentifier: "pass.com.passkit.pksamples.nfcdemo")
        let bytes = try [UInt8](hex: Self.captures[0].0)
        let key = try Self.key(Self.demonstrationKey)
        for index in bytes.indices {
            for bit in 0..<8 {
                var changed = bytes
                changed[index] ^= 1 << bit
                #expect(throws: VASCryptogram.Fault.self) {
                    try VASCryptogram(changed)?.open(with: [key], for: merchant)
                }
            }
            #expect(VASCryptogram(bytes.prefix(index)) == nil || index >= 56)
        }
        #expect(VASCryptogram([UInt8](repeating: 0, count: 313)) == nil)
    }

    @Test(
        "What Python's cryptography encrypts, in both variants, decrypts here",
        .enabled(if: Program.isInstalled("python3"), "python3 is not installed"))
    func python() async throws {
        let script = """
            import os, sys, hashlib
            from cryptography.hazmat.primitives.asymmetric import ec
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
            from cryptography.hazmat.primitives.kdf.x963kdf import X963KDF
            from cryptography.hazmat.primitives import hashes
            identifier, older, message = sys.argv[1], sys.argv[2] == "older", sys.argv[3].encode()
            merchant = ec.derive_private_key(int("33" * 32, 16), ec.SECP256R1()).public_key()
            phone = ec.generate_private_key(ec.SECP256R1())
            name = hashlib.sha256(identifier.encode()).digest()
            label = b"ApplePay encrypted VAS data"
            info = label if older else bytes([13]) + b"id-aes256-GCM" + label + name
            key = X963KDF(hashes.SHA256(), 32, info).derive(phone.exchange(ec.ECDH(), merchant))
            clear = bytes.fromhex("2f000000") + message
            sealed = AESGCM(key).encrypt(bytes(16), clear, name if older else None)
            x = lambda public: public.public_numbers().x.to_bytes(32, "big")
            print((hashlib.sha256(x(merchant)).digest()[:4] + x(phone.public_key()) + sealed).hex())
            """
        let merchant = try VASMerchant(passTypeIdentifier: "pass.example.kiosk.loyalty")
        // TEST
        let key = try Self.key(String(repeating: "33", count: 32))
        for (variant, message) in [("current", "MEMBER-0001"), ("older", "MEMBER-0002"), ("current", "")] {
            let outcome = try await Program.run(
                ["/usr/bin/python3", "-c", script, merchant.passTypeIdentifier, variant, message])
            let bytes = try [UInt8](hex: outcome.output.trimmingCharacters(in: .whitespacesAndNewlines))
            let cryptogram = try #require(VASCryptogram(bytes), "\(outcome)")
            let pass = try cryptogram.open(with: [key], for: merchant)
            #expect(pass.data.text == message && pass.isOlderVariant == (variant == "older"))
            #expect(pass.date == Date(timeIntervalSinceReferenceDate: 0x2F00_0000))
        }
    }

    @Test("A cryptogram counts once, and only while the clocks agree")
    func freshness() throws {
        let now = Date(timeIntervalSinceReferenceDate: 1_000_000)
        func cryptogram(_ number: UInt8) throws -> VASCryptogram {
            try #require(VASCryptogram([UInt8](repeating: number, count: 60)))
        }
        func message(_ seconds: Double) -> VASCryptogram.Message {
            .init(date: now + seconds, data: PassData([1]), isOlderVariant: false)
        }
        var freshness = VASFreshness(tolerance: 60, capacity: 3)
        #expect(freshness.judge(try cryptogram(1), message(0), at: now) == .fresh)
        #expect(freshness.judge(try cryptogram(1), message(0), at: now + 5) == .replayed)
        #expect(freshness.judge(try cryptogram(2), message(60), at: now) == .fresh)
        #expect(freshness.judge(try cryptogram(3), message(61), at: now) == .clockDiffers(seconds: 61))
        #expect(freshness.judge(try cryptogram(1), message(0), at: now + 61) == .clockDiffers(seconds: -61))
        #expect(freshness.count == 2)

        // After a restart it remembers.
        freshness = try JSONDecoder().decode(VASFreshness.self, from: JSONEncoder().encode(freshness))
        #expect(freshness.judge(try cryptogram(2), message(60), at: now + 61) == .replayed)
        #expect(freshness.count == 1, "what its date refuses is forgotten")

        // More than there is room for: what was forgotten is refused by its date.
        for number: UInt8 in 4...6 {
            #expect(freshness.judge(try cryptogram(number), message(60 + Double(number)), at: now + 61) == .fresh)
        }
        #expect(freshness.count == 3)
        #expect(freshness.judge(try cryptogram(2), message(60), at: now + 61) == .replayed)
        #expect(freshness.judge(try cryptogram(7), message(59), at: now + 61) == .replayed)
    }

    @Test("What was forgotten is refused after the clock is set back, and so is what is older than what is known")
    func clocks() throws {
        let now = Date(timeIntervalSinceReferenceDate: 1_000_000)
        func cryptogram(_ number: UInt8) throws -> VASCryptogram {
            try #require(VASCryptogram([UInt8](repeating: number, count: 60)))
        }
        func message(_ seconds: Double) -> VASCryptogram.Message {
            .init(date: now + seconds, data: PassData([1]), isOlderVariant: false)
        }
        var freshness = VASFreshness(tolerance: 60)
        #expect(freshness.judge(try cryptogram(1), message(0), at: now) == .fresh)
        #expect(freshness.judge(try cryptogram(2), message(70), at: now + 70) == .fresh)
        #expect(freshness.count == 1)
        #expect(freshness.judge(try cryptogram(1), message(0), at: now + 30) == .replayed)

        var unknown = VASFreshness(tolerance: 60, since: now)
        #expect(unknown.judge(try cryptogram(1), message(0), at: now) == .replayed)
        #expect(unknown.judge(try cryptogram(1), message(1), at: now) == .fresh)
    }

    @Test("Two that began with the same are added: neither forgets what the other has seen")
    func added() throws {
        let now = Date(timeIntervalSinceReferenceDate: 1_000_000)
        func see(_ number: UInt8, _ freshness: inout VASFreshness) throws -> VASFreshness.Verdict {
            let cryptogram = try #require(VASCryptogram([UInt8](repeating: number, count: 60)))
            let message = VASCryptogram.Message(
                date: now + Double(number), data: PassData([1]), isOlderVariant: false)
            return freshness.judge(cryptogram, message, at: now)
        }
        var first = VASFreshness(tolerance: 60, capacity: 4)
        #expect(try see(1, &first) == .fresh)
        var second = first
        #expect(try see(2, &first) == .fresh)
        #expect(try see(3, &second) == .fresh)
        first.add(second)
        #expect(first.count == 3)
        for number: UInt8 in 1...3 { #expect(try see(number, &first) == .replayed) }
        // With more than there is room for, the oldest are refused by their dates.
        for number: UInt8 in 4...6 { #expect(try see(number, &second) == .fresh) }
        first.add(second)
        #expect(first.count == 4)
        for number: UInt8 in 1...6 { #expect(try see(number, &first) == .replayed) }
    }
}
