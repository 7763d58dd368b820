import Foundation
import SmartCard
import TestSupport
import Testing

@testable import TravelDocument

/// Input of every kind, damaged: it is parsed or refused, and nothing traps.
@Suite struct BeliefInputTests {
    @Test("No truncation and no changed byte of a certificate, a list or a key traps", .computing)
    func damaged() async throws {
        let pki = try BeliefPKI()
        let csca = try await pki.makeAuthority("csca", .ec("brainpoolP256r1", explicit: true))
        try await pki.openssl(["pkey", "-in", "csca.key", "-pubout", "-outform", "DER", "-out", "csca.pub"])
        let revocations = try await pki.makeRevocationList(revoking: [5, 77])
        let publicKey = TLVTag(0x6F).encode(try pki.read("csca.pub"))
        for (bytes, parse) in [
            (
                csca.encoded,
                { (bytes: [UInt8]) in
                    let certificate = try Certificate(bytes)
                    _ = (certificate.isSelfSigned, "\(certificate.subject)", certificate.keyIdentifier)
                }
            ),
            (revocations, { _ = try RevocationList($0) }),
            (
                publicKey,
                { bytes in
                    var random = SeededRandomSource()
                    var active = try ActiveAuthentication(
                        publicKey: bytes, securityInfos: nil, longestResponse: 231, random: &random)
                    _ = active.next(nil)
                }
            ),
        ] as [([UInt8], ([UInt8]) throws -> Void)] {
            let step = Tier.stride(5)
            for end in stride(from: 0, to: bytes.count, by: step) {
                #expect(throws: MalformedObject.self) { try parse(Array(bytes[..<end])) }
            }
            for index in stride(from: 0, to: bytes.count, by: step) {
                for change: UInt8 in [0x01, 0x20, 0x80] {
                    var changed = bytes
                    changed[index] ^= change
                    do { try parse(changed) } catch { #expect(error is MalformedObject, "offset \(index)") }
                }
            }
        }
    }

    @Test("A certificate says the same twice about its algorithm, and each extension once")
    func contradictions() async throws {
        let pki = try BeliefPKI()
        let csca = try await pki.makeAuthority()
        // ecdsa-with-SHA256, inside and outside.
        let identifiers = csca.encoded.ranges(of: try hex("06082A8648CE3D040302"))
        expectEqual(identifiers.count, 2)
        var changed = csca.encoded
        changed[try #require(identifiers.last).upperBound - 1] = 0x03
        #expect(throws: MalformedObject.self) { try Certificate(changed) }
        // 1.2.3.4 becomes a second key usage.
        var twice = try await pki.makeSigner(extensions: "critical").encoded
        let other = try #require(twice.firstRange(of: try hex("06032A0304")))
        twice.replaceSubrange(other, with: try hex("0603551D0F"))
        let error = #expect(throws: MalformedObject.self) { try Certificate(twice) }
        expectEqual(error?.due, "an extension that is there once")
    }

    @Test("Lengths become definite and octet strings whole, and nothing else changes")
    func definite() throws {
        for (basic, definite) in [
            ("2406 0401AA 0401BB", "0402AABB"), ("2480 0401AA 0401BB 0000", "0402AABB"),
            ("3080 2406 0401AA 0401BB 0000", "3004 0402AABB"), ("3008 2406 0401AA 0401BB", "3004 0402AABB"),
            ("2480 2480 0401AA 0000 0401BB 0000", "0402AABB"), ("3080 020105 0000", "3003020105"),
            ("308103 020105", "308103020105"), ("040100", "040100"), ("3000", "3000"), ("3080 0000", "3000"),
        ] { try expectEqual(BasicEncoding.definite(hex(basic), "test"), hex(definite), "\(basic)") }
        for basic in [
            "2403 020101", "0480 0000", "3080", "3080 0000 00", "3080 0201", "1F8101 00", "3003 0202",
            String(repeating: "3080", count: 33) + String(repeating: "0000", count: 33),
        ] { #expect(throws: MalformedObject.self, "\(basic)") { try BasicEncoding.definite(hex(basic), "test") } }
    }

    @Test(
        "A moment is in universal time, and in the calendar",
        arguments: [
            ("170D3730303130313030303030305A", 0.0), ("170D3439313233313233353935395A", 2_524_607_999),
            ("170D3530303130313030303030305A", -631_152_000), ("180F32303030303232393132303030305A", 951_825_600),
            ("180F39393939313233313233353935395A", 253_402_300_799), ("170B323031303130303030305A", 1_602_288_000),
            ("170D3230313330313030303030305A", nil), ("180F30303030303130313030303030305A", nil),
            ("180F323030303032323931323030303058", nil), ("17115A", nil), ("170B373030313031303030305A", 0),
        ])
    func moments(_ text: String, _ seconds: Double?) throws {
        let bytes = try hex(text)
        var fields = ASN1Fields(bytes[...])
        let moment = try? fields.take("Time").moment("Time")
        expectEqual(moment, seconds.map { Date(timeIntervalSince1970: $0) })
        // Its day can be told.
        if let moment { #expect(!Finding.Reason.expired(moment).description.isEmpty) }
    }

    @Test("Object identifiers print as numbers, and come from them")
    func identifiers() throws {
        for (text, numbers) in [
            ("678108010101", OID("2.23.136.1.1.1")), ("2A864886F70D010702", OID("1.2.840.113549.1.7.2")),
            ("04007F00070302 01", OID("0.4.0.127.0.7.3.2.1")), ("883703", OID("2.999.3")),
        ] { expectEqual(OID(content: try hex(text)), numbers) }
        expectEqual(OID("2.999.3").description, "2.999.3")
        expectEqual(OID("1.2.840.113549.1.7.2").description, "1.2.840.113549.1.7.2")
        #expect(OID(content: [UInt8]()) == nil && OID(content: [0x80] as [UInt8]) == nil)
        let long = [UInt8](repeating: 0xFF, count: 20) + [0x01]
        expectEqual(OID(content: long)?.description, long.hex)
    }

    @Test("Every reason and every check has words")
    func words() {
        let name = try? DistinguishedName(ASN1([0x30, 0x00], 0x30, "Name"))
        #expect(name?.description == "" && name?.country == nil)
        let finding = Finding(.dataGroup(2), .failed(.digestDiffers))
        expectEqual(finding.description, "DG2: failed: the digest differs: somebody changed the contents")
        let flagged = Finding(.validity(.issuer(0)), .flagged(.keyUsageAbsent))
        expectEqual(
            flagged.description, "validity of the issuer: passed, but the certificate does not say what it is for")
    }
}
