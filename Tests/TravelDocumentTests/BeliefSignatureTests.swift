import Foundation
import SmartCard
import TestSupport
import Testing

@testable import TravelDocument

/// Passive authentication of what OpenSSL signed: algorithms, forms, and the signature itself.
@Suite struct BeliefSignatureTests {
    static func verify(
        _ file: [UInt8], _ trust: TrustList, files: [Int: [UInt8]] = BeliefPKI.files, at date: Date = .now,
        documentType: String? = "P<", issuingState: String? = "D<<", lists: [RevocationList] = []
    ) throws -> PassiveAuthentication {
        PassiveAuthentication.verify(
            try SecurityObject(file), files: files, trust: trust, revocationLists: lists, at: date,
            documentType: documentType, issuingState: issuingState)
    }

    static let keys: [BeliefPKI.Key] = [
        .rsa(), .rsa(3072, digest: "sha512"), .pss(salt: 32), .pss(salt: 20), .pss(salt: 48, digest: "sha384"),
        .ec("P-224", digest: "sha224"), .ec("P-256"), .ec("P-521", digest: "sha512"),
        .ec("brainpoolP256r1"), .ec("brainpoolP384r1", explicit: true, digest: "sha384"),
        .ec("P-256", explicit: true), .ec("P-521", explicit: true, digest: "sha512"),
        .ec("brainpoolP224r1", explicit: true), .ec("brainpoolP512r1", explicit: true, digest: "sha512"),
    ]

    @Test(
        "A document is believed, whichever algorithm signed it and its signer's certificate",
        arguments: Tier.few(keys, 4))
    func algorithms(_ key: BeliefPKI.Key) async throws {
        let pki = try BeliefPKI()
        let csca = try await pki.makeAuthority("csca", key)
        let dsc = try await pki.makeSigner("dsc", key, by: "csca", key)
        let passive = try Self.verify(try await pki.makeSecurityObject(by: "dsc", key), TrustList(csca))
        expectEqual(passive.flags, [], "\(passive.findings)")
        #expect(passive.signer == dsc && passive.path == [csca])
        for check: Finding.Check in [
            .contentType, .messageDigest, .signerCertificate, .signature, .path, .validity(.signer), .country,
            .validity(.issuer(0)), .keyUsage(.signer), .keyUsage(.issuer(0)), .documentType, .digestAlgorithms,
            .dataGroup(1), .dataGroup(2), .dataGroup(14),
        ] { expectEqual(passive[check], .passed, "\(check)") }
        expectEqual(passive[.revocation], .notChecked(.noRevocationList))
    }

    @Test("A certificate signed in one way, and a file signed in another by its key, go together")
    func mixture() async throws {
        let pki = try BeliefPKI()
        let csca = try await pki.makeAuthority("csca", .pss(salt: 20))
        try await pki.makeSigner("dsc", .rsa(), by: "csca", .pss(salt: 20))
        for key in [BeliefPKI.Key.pss(salt: 64, digest: "sha512"), .rsa(digest: "sha224"), .pss(salt: 0)] {
            let file = try await pki.makeSecurityObject(digest: .sha384, by: "dsc", key)
            try expectEqual(Self.verify(file, TrustList(csca)).flags, [])
        }
    }

    @Test("SHA-1 is accepted, and each of its uses is told")
    func sha1() async throws {
        let pki = try BeliefPKI()
        let key = BeliefPKI.Key.rsa(digest: "sha1")
        let csca = try await pki.makeAuthority("csca", key)
        try await pki.makeSigner("dsc", key, by: "csca", key)
        let file = try await pki.makeSecurityObject(digest: .sha1, by: "dsc", key)
        let uses = ["the message digest", "the signature", "the signer's certificate", "the data groups"]
        try expectEqual(Self.verify(file, TrustList(csca)).flags, [Finding(.digestAlgorithms, .flagged(.sha1(uses)))])
    }

    @Test("Indefinite lengths, a signer named by its key, and NULL left out are all as good")
    func forms() async throws {
        let pki = try BeliefPKI()
        let trust = TrustList(try await pki.makeAuthority())
        try await pki.makeSigner()
        let streamed = try await pki.makeSecurityObject(options: ["-stream"])
        expectEqual(Array(streamed.dropFirst(4).prefix(2)), [0x30, 0x80])
        try expectEqual(Self.verify(streamed, trust).flags, [])
        let indefinite = [0x77, 0x80] + streamed.dropFirst(4) + [0x00, 0x00]
        try expectEqual(Self.verify(indefinite, trust).flags, [])

        let named = try await pki.makeSecurityObject(options: ["-keyid"])
        try expectEqual(Self.verify(named, trust).flags, [])

        let content = BeliefPKI.securityObject(BeliefPKI.files, .sha256, hasNull: false)
        try expectEqual(Self.verify(TLVTag(0x77).encode(try await pki.sign(content)), trust).flags, [])
    }

    @Test("Version 1 tells its versions")
    func versions() async throws {
        let pki = try BeliefPKI()
        try await pki.makeAuthority()
        try await pki.makeSigner()
        var content = Array(try TLVList(BeliefPKI.securityObject(BeliefPKI.files, .sha256)))[0].value
        content[content.startIndex + 2] = 1
        let info = TLVTag(0x30).encode(
            objects: TLVTag(0x13).encode(Array("0108".utf8)), TLVTag(0x13).encode(Array("040000".utf8)))
        let file = TLVTag(0x77).encode(try await pki.sign(TLVTag(0x30).encode(content + info)))
        let object = try SecurityObject(file)
        #expect(object.version == 1 && object.ldsVersion == "0108" && object.unicodeVersion == "040000")
        expectEqual(object.dataGroupDigests.keys.sorted(), [1, 2, 14])
        expectEqual(object.contentType.description, "2.23.136.1.1.1")
    }

    @Test("Types of contents seen in documents are flagged, and others fail")
    func contentTypes() async throws {
        let pki = try BeliefPKI()
        let trust = TrustList(try await pki.makeAuthority())
        try await pki.makeSigner()
        for type in ["1.2.840.113549.1.7.1", "1.3.27.1.1.1", "1.2.528.1.1006.1.20.1"] {
            let passive = try Self.verify(try await pki.makeSecurityObject(type: type), trust)
            expectEqual(passive.flags?.map(\.check), [.contentType])
        }
        let other = try Self.verify(try await pki.makeSecurityObject(type: "2.23.136.1.1.2"), trust)
        #expect(other[.contentType] == .failed(.otherContentType(OID("2.23.136.1.1.2"))) && other.isRefuted)
        // Contents of one type are not those of another, though the digest is the same.
        var moved = try await pki.makeSecurityObject(type: "2.23.136.1.1.2")
        let place = try #require(moved.firstRange(of: try hex("0606678108010102")))
        moved[place.upperBound - 1] = 0x01
        let passive = try Self.verify(moved, trust)
        #expect(passive[.contentType] == .failed(.contentTypeDiffers) && passive.isRefuted)
        // Plain data may be signed as it is; other contents may not.
        let bare = try await pki.makeSecurityObject(type: "1.2.840.113549.1.7.1", options: ["-noattr"])
        try expectEqual(Self.verify(bare, trust)[.messageDigest], .flagged(.noSignedAttributes))
        #expect(try Self.verify(bare, trust).isBelieved)
        let without = try await pki.makeSecurityObject(options: ["-noattr"])
        #expect(try Self.verify(without, trust).isRefuted)
    }

    @Test("A data group that was changed or is not signed refutes the document; one not read leaves it open")
    func dataGroups() async throws {
        let pki = try BeliefPKI()
        let trust = TrustList(try await pki.makeAuthority())
        try await pki.makeSigner()
        let file = try await pki.makeSecurityObject()
        var files = BeliefPKI.files
        files[2]?[1500] ^= 1
        var passive = try Self.verify(file, trust, files: files)
        #expect(passive[.dataGroup(2)] == .failed(.digestDiffers) && passive[.dataGroup(1)] == .passed)
        #expect(passive.isRefuted)

        files = BeliefPKI.files
        files[15] = ChipTests.group(15, 50)
        passive = try Self.verify(file, trust, files: files)
        #expect(passive[.dataGroup(15)] == .failed(.notSigned) && passive.isRefuted)

        passive = try Self.verify(file, trust, files: [1: ChipTests.group(1, 93)])
        #expect(passive[.dataGroup(2)] == .notChecked(.notRead) && passive.isBelieved)
        #expect(try Self.verify(file, trust, files: [:]).isUndecided)
    }

    @Test("A signature over something else, and contents changed after signing, refute the document")
    func altered() async throws {
        let pki = try BeliefPKI()
        let trust = TrustList(try await pki.makeAuthority())
        try await pki.makeSigner()
        let file = try await pki.makeSecurityObject()
        // The digest of DG1, in the signed contents.
        let digest = TravelDocument.Digest.sha256.hash(BeliefPKI.files[1] ?? [])
        let place = try #require(file.firstRange(of: digest))
        var changed = file
        changed[place.lowerBound] ^= 1
        var passive = try Self.verify(changed, trust)
        #expect(passive[.messageDigest] == .failed(.digestDiffers) && passive[.signature] == .passed)
        #expect(passive.isRefuted)
        // The signature is last.
        changed = file
        changed[changed.count - 1] ^= 1
        passive = try Self.verify(changed, trust)
        #expect(passive[.signature] == .failed(.wrongSignature) && passive.isRefuted)
        // With the attributes changed to fit, the signature no longer does.
        changed = file
        let signed = TravelDocument.Digest.sha256.hash(try SecurityObject(file).signedData.content)
        let attribute = try #require(file.firstRange(of: signed))
        changed[place.lowerBound] ^= 1
        let fitting = TravelDocument.Digest.sha256.hash(try SecurityObject(changed).signedData.content)
        changed.replaceSubrange(attribute, with: fitting)
        passive = try Self.verify(changed, trust)
        #expect(passive[.messageDigest] == .passed && passive[.signature] == .failed(.wrongSignature))
    }

    @Test("No truncation and no changed byte of a file traps, or makes a reader believe other contents", .computing)
    func everyByte() async throws {
        let pki = try BeliefPKI()
        let trust = TrustList(try await pki.makeAuthority())
        let signer = try await pki.makeSigner()
        // In places of no structure's length.
        let step = Tier.stride(15)
        for options in [[], ["-stream"]] {
            let file = try await pki.makeSecurityObject(options: options)
            let original = try SecurityObject(file)
            for end in stride(from: 0, to: file.count, by: step) {
                #expect(throws: MalformedObject.self) { try SecurityObject(Array(file[..<end])) }
            }
            var (malformed, refuted, believed) = (0, 0, 0)
            for index in stride(from: 0, to: file.count, by: step) {
                for change: UInt8 in [0x01, 0x80] {
                    var changed = file
                    changed[index] ^= change
                    guard let object = try? SecurityObject(changed) else {
                        malformed += 1
                        continue
                    }
                    let passive = PassiveAuthentication.verify(
                        object, files: BeliefPKI.files, trust: trust, at: .now, documentType: "P", issuingState: "D")
                    guard passive.isBelieved else {
                        refuted += 1
                        continue
                    }
                    // What is not signed may change: versions, sets of algorithms, the signer's name.
                    believed += 1
                    expectEqual(object.dataGroupDigests, original.dataGroupDigests, "offset \(index)")
                    expectEqual(passive.signer, signer, "offset \(index)")
                }
            }
            #expect(malformed > 0 && refuted > file.count / step && believed < file.count / step / 2)
        }
    }

    @Test("Each data group is there once, by its number, and there are two at least")
    func numbers() async throws {
        let pki = try BeliefPKI()
        try await pki.makeAuthority()
        try await pki.makeSigner()
        let content = BeliefPKI.securityObject(BeliefPKI.files, .sha256)
        let second = try #require(content.firstRange(of: [0x02, 0x01, 0x02, 0x04, 0x20]))
        for number: UInt8 in [0, 1, 16, 17] {
            var changed = content
            changed[second.lowerBound + 2] = number
            let file = TLVTag(0x77).encode(try await pki.sign(changed))
            if number == 16 {
                try expectEqual(SecurityObject(file).dataGroupDigests.keys.sorted(), [1, 14, 16])
            } else {
                let error = #expect(throws: MalformedObject.self) { try SecurityObject(file) }
                expectEqual(error?.due, "the number of a data group, once")
            }
        }
        let one = BeliefPKI.securityObject([1: [0x61, 0x00]], .sha256)
        let file = TLVTag(0x77).encode(try await pki.sign(one))
        #expect(throws: MalformedObject.self) { try SecurityObject(file) }
    }

    @Test("Files that are no signed data objects are told what was due")
    func malformed() throws {
        for (text, due) in [
            ("", "EF.SOD"), ("7700", "ContentInfo"), ("77023000", "ContentInfo"), ("770430020500", "ContentInfo"),
            ("771130 0F 06092A864886F70D010701 A0023000", "id-signedData"), ("6700", "EF.SOD"),
            (String(repeating: "3080", count: 40), "EF.SOD"), ("7784FFFFFFFF", "EF.SOD"),
        ] {
            let bytes = try hex(text)
            let error = #expect(throws: MalformedObject.self) { try SecurityObject(bytes) }
            expectEqual(error?.due, due, "\(text)")
        }
    }
}
