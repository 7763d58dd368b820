import Foundation
import SmartCard
import TestSupport
import Testing

@testable import TravelDocument

/// Whether the signer is to be believed: its authority, its dates, its country, what it signs, and whether it was
/// revoked.
@Suite struct BeliefTrustTests {
    private static let day: TimeInterval = 86_400

    private static func verify(
        _ file: [UInt8], _ trust: TrustList, days: Double = 0, documentType: String? = "P<",
        issuingState: String? = "D<<", lists: [RevocationList] = []
    ) throws -> PassiveAuthentication {
        try BeliefSignatureTests.verify(
            file, trust, at: .now + days * day, documentType: documentType, issuingState: issuingState, lists: lists)
    }

    @Test("Another authority of the same name refutes the signer, and one of another name or key leaves it open")
    func authorities() async throws {
        let pki = try BeliefPKI()
        let csca = try await pki.makeAuthority(extensions: "without")
        let sameName = try await pki.makeAuthority("other", extensions: "without")
        let otherName = try await pki.makeAuthority("third", subject: "/C=DE/O=bund/CN=third")
        try await pki.makeSigner("dsc", extensions: "plain")
        let file = try await pki.makeSecurityObject()
        #expect(try Self.verify(file, TrustList(csca)).isBelieved)
        try expectEqual(Self.verify(file, TrustList(sameName))[.path], .failed(.wrongSignature))
        #expect(try Self.verify(file, TrustList(sameName)).isRefuted)
        // The right one is found among those of its name.
        try expectEqual(Self.verify(file, TrustList(otherName, sameName, csca)).path, [csca])
        for trust in [TrustList(), TrustList(otherName)] {
            let passive = try Self.verify(file, trust)
            #expect(passive[.path] == .notChecked(.unknownIssuer(csca.subject)) && passive.isUndecided)
        }
        // A signer in the list of trust is no authority.
        var trust = TrustList()
        trust.add(.signer(csca), .init(source: "test", date: .now))
        #expect(try Self.verify(file, trust).isUndecided)
    }

    @Test("The search for an authority ends: of those with one name, the first 64 are tried")
    func sameNames() async throws {
        let pki = try BeliefPKI()
        let csca = try await pki.makeAuthority(extensions: "without")
        try await pki.makeSigner("dsc", extensions: "plain")
        let file = try await pki.makeSecurityObject()
        var others: [Certificate] = []
        // With one key, which takes long to make.
        for number in 0..<64 {
            if number > 0 {
                try FileManager.default.copyItem(
                    atPath: pki.path("other-0.key"), toPath: pki.path("other-\(number).key"))
            }
            others.append(try await pki.makeAuthority("other-\(number)", extensions: "without"))
        }
        func trust(_ authorities: [Certificate]) -> TrustList {
            var trust = TrustList()
            for authority in authorities { trust.add(authority: authority, source: "test", at: .now) }
            return trust
        }
        try expectEqual(Self.verify(file, trust(others.dropLast() + [csca])).path, [csca])
        let passive = try Self.verify(file, trust(others + [csca]))
        #expect(passive[.path] == .notChecked(.tooManyCertificates) && passive.isUndecided)
    }

    @Test("An authority with the name and the key identifier of another is not taken for it")
    func keyIdentifiers() async throws {
        let pki = try BeliefPKI()
        let csca = try await pki.makeAuthority()
        let other = try await pki.makeAuthority("other")
        try await pki.makeSigner()
        let file = try await pki.makeSecurityObject()
        try expectEqual(Self.verify(file, TrustList(other))[.path], .notChecked(.unknownIssuer(csca.subject)))
        try expectEqual(Self.verify(file, TrustList(other, csca)).path, [csca])
        // One that does not tell its key's identifier is tried.
        try FileManager.default.copyItem(atPath: pki.path("csca.key"), toPath: pki.path("silent.key"))
        let silent = try await pki.makeAuthority("silent", extensions: "without")
        try expectEqual(Self.verify(file, TrustList(other, silent)).path, [silent])
    }

    @Test("A name is the same in capitals, and with more blanks")
    func names() async throws {
        let pki = try BeliefPKI()
        let key = BeliefPKI.Key.ec("P-256")
        let csca = try await pki.makeAuthority("csca", key, subject: "/C=DE/O=The  Bund/CN=CSCA", extensions: "without")
        // Another certificate of the same key, its name written differently.
        try await pki.makeAuthority("written", key, subject: "/C=de/O=the bund/CN=csca", extensions: "without")
        try FileManager.default.copyItem(atPath: pki.path("csca.key"), toPath: pki.path("again.key"))
        try await pki.makeAuthority("again", key, subject: "/C=de/O=the bund/CN=csca", extensions: "without")
        try await pki.makeSigner("dsc", by: "again", extensions: "plain")
        try expectEqual(Self.verify(try await pki.makeSecurityObject(), TrustList(csca)).flags, [])
    }

    @Test("A link certificate leads from a new authority to the one that is trusted; without it, nothing does")
    func links() async throws {
        let pki = try BeliefPKI()
        let old = try await pki.makeAuthority("old")
        let new = try await pki.makeAuthority("new", subject: "/C=DE/O=bund/CN=csca 2")
        try FileManager.default.copyItem(atPath: pki.path("new.key"), toPath: pki.path("link.key"))
        let link = try await pki.makeSigner(
            "link", by: "old", subject: "/C=DE/O=bund/CN=csca 2", serial: 5, days: 500, extensions: "csca")
        try await pki.makeSigner("dsc", by: "new")
        let file = try await pki.makeSecurityObject()
        try expectEqual(Self.verify(file, TrustList(old, link)).path, [link, old])
        try expectEqual(Self.verify(file, TrustList(old, link)).flags, [])
        try expectEqual(Self.verify(file, TrustList(new)).path, [new])
        #expect(try Self.verify(file, TrustList(old)).isUndecided)
        // A link whose end is not trusted leads nowhere.
        try expectEqual(Self.verify(file, TrustList(link))[.path], .notChecked(.unknownIssuer(old.subject)))
        // Two authorities that certify each other are no end, either.
        try FileManager.default.copyItem(atPath: pki.path("old.key"), toPath: pki.path("back.key"))
        let back = try await pki.makeSigner(
            "back", by: "new", subject: "/C=DE/O=bund/CN=csca", serial: 6, extensions: "csca")
        #expect(try Self.verify(file, TrustList(link, back)).isUndecided)
    }

    @Test("A signer that was valid when it signed is accepted and flagged; one that was not is refuted")
    func dates() async throws {
        let pki = try BeliefPKI()
        let csca = try await pki.makeAuthority(days: 300)
        let dsc = try await pki.makeSigner(days: 100)
        let file = try await pki.makeSecurityObject()
        let trust = TrustList(csca)
        try expectEqual(Self.verify(file, trust, days: 99).flags, [])
        let later = try Self.verify(file, trust, days: 200)
        expectEqual(later.flags, [Finding(.validity(.signer), .flagged(.expiredSince(dsc.notAfter)))])
        let muchLater = try Self.verify(file, trust, days: 400)
        expectEqual(muchLater.flags?.map(\.check), [.validity(.signer), .validity(.issuer(0))])
        let before = try Self.verify(file, trust, days: -1)
        #expect(before[.validity(.signer)] == .failed(.notYetValid(dsc.notBefore)) && before.isRefuted)

        // A signer that had expired when it signed.
        try pki.write([], to: "index.txt")
        try pki.write(Array("50\n".utf8), to: "number.txt")
        try await pki.openssl(
            ["ca", "-batch", "-config", "openssl.cnf", "-name", "issuing", "-keyfile", "csca.key", "-cert", "csca.pem"]
                + ["-in", "dsc.csr", "-out", "dsc.pem", "-extensions", "dsc", "-outdir", "."]
                + ["-startdate", "20150101000000Z", "-enddate", "20160101000000Z", "-notext"])
        let expired = try Self.verify(try await pki.makeSecurityObject(), trust)
        guard case .failed(.notValidWhenUsed) = expired[.validity(.signer)] else {
            Issue.record("\(expired.findings)")
            return
        }
        #expect(expired.isRefuted && expired[.signature] == .passed && expired[.path] == .passed)
        // Without a signing time, nothing says when; the date of issue does.
        let bare = try await pki.makeSecurityObject(type: "1.2.840.113549.1.7.1", options: ["-noattr"])
        let unknown = try Self.verify(bare, trust)
        guard case .failed(.expired) = unknown[.validity(.signer)] else {
            Issue.record("\(unknown.findings)")
            return
        }
        let issued = PassiveAuthentication.verify(
            try SecurityObject(bare), files: BeliefPKI.files, trust: trust, at: .now,
            issued: Date(timeIntervalSince1970: 1_430_000_000))
        guard case .flagged(.expiredSince) = issued[.validity(.signer)] else {
            Issue.record("\(issued.findings)")
            return
        }
    }

    @Test("A certificate for something else, an authority as a signer, and an unknown critical extension refute")
    func keyUsage() async throws {
        let pki = try BeliefPKI()
        let csca = try await pki.makeAuthority()
        for (extensions, outcome) in [
            ("encipherment", Finding.Outcome.failed(.otherKeyUsage)), ("csca", .failed(.otherKeyUsage)),
            ("critical", .failed(.unknownCriticalExtensions([OID("1.2.3.4")]))),
        ] {
            try await pki.makeSigner(extensions: extensions)
            let passive = try Self.verify(try await pki.makeSecurityObject(), TrustList(csca))
            #expect(passive[.keyUsage(.signer)] == outcome && passive.isRefuted)
        }
        let noAuthority = try await pki.makeAuthority("plain", subject: "/C=DE/CN=plain", extensions: "plain")
        try await pki.makeSigner("dsc", by: "plain")
        let passive = try Self.verify(try await pki.makeSecurityObject(), TrustList(noAuthority))
        #expect(passive[.keyUsage(.issuer(0))] == .failed(.otherKeyUsage) && passive.isRefuted)
    }

    @Test("Signer, authority and document are of one country, and the signer signs such documents")
    func document() async throws {
        let pki = try BeliefPKI()
        let trust = TrustList(try await pki.makeAuthority())
        try await pki.makeSigner()
        let file = try await pki.makeSecurityObject()
        try expectEqual(
            Self.verify(file, trust, issuingState: "FRA")[.country], .failed(.countriesDiffer(["DE", "FR"])))
        #expect(try Self.verify(file, trust, issuingState: "FRA").isRefuted)
        try expectEqual(Self.verify(file, trust, issuingState: "DEU")[.country], .passed)
        try expectEqual(Self.verify(file, trust, issuingState: "QQQ")[.country], .notChecked(.unknownIssuingState))
        try expectEqual(Self.verify(file, trust, issuingState: nil)[.country], .notChecked(.issuingStateNotGiven))
        for (type, outcome) in [
            ("P<", Finding.Outcome.passed), ("ID", .passed), ("PO", .flagged(.documentTypeByFirstLetter)),
            ("V<", .failed(.otherDocumentTypes(["P", "ID"]))), ("I<", .failed(.otherDocumentTypes(["P", "ID"]))),
        ] { try expectEqual(Self.verify(file, trust, documentType: type)[.documentType], outcome, "\(type)") }
        #expect(try Self.verify(file, trust, documentType: "V<").isRefuted)
        try expectEqual(Self.verify(file, trust, documentType: nil)[.documentType], .notChecked(.documentTypeNotGiven))

        try await pki.makeSigner(subject: "/C=FR/CN=dsc")
        let foreign = try Self.verify(try await pki.makeSecurityObject(), trust)
        #expect(foreign[.country] == .failed(.countriesDiffer(["DE", "FR"])) && foreign.isRefuted)
    }

    @Test("A revoked signer is refuted, by a list that its authority signed and by no other")
    func revocation() async throws {
        let pki = try BeliefPKI()
        let csca = try await pki.makeAuthority()
        let forger = try await pki.makeAuthority("forger")
        try await pki.makeSigner()
        let file = try await pki.makeSecurityObject()
        let trust = TrustList(csca)
        func outcome(_ bytes: [UInt8], days: Double = 0) throws -> Finding.Outcome? {
            try Self.verify(file, trust, days: days, lists: [RevocationList(bytes)])[.revocation]
        }
        let clear = try await pki.makeRevocationList(revoking: [1234])
        try expectEqual(outcome(clear), .passed)
        let next = try #require(try RevocationList(clear).nextUpdate)
        try expectEqual(outcome(clear, days: 40), .flagged(.revocationListOutdated(next)))
        let revoking = try await pki.makeRevocationList(revoking: [1234, 77])
        let revoked = Date(timeIntervalSince1970: 1_735_689_600)
        try expectEqual(outcome(revoking), .failed(.revoked(revoked)))
        #expect(try Self.verify(file, trust, lists: [RevocationList(revoking)]).isRefuted)
        // The authority's own number.
        try expectEqual(outcome(try await pki.makeRevocationList(revoking: [1])), .failed(.revoked(revoked)))
        let forged = try await pki.makeRevocationList(by: "forger", revoking: [77])
        try expectEqual(outcome(forged), .notChecked(.revocationListNotAuthentic))
        // The same list by a key that is believed, the newest of the state: it is for all of its signers.
        let newer = try Self.verify(file, TrustList(csca, forger), lists: [RevocationList(forged)])
        expectEqual(newer[.revocation], .failed(.revoked(revoked)))
        // One whose certificate says that it signs no lists.
        let other = try await pki.makeAuthority("certifier", extensions: "certificates")
        let unfit = try RevocationList(try await pki.makeRevocationList(by: "certifier", revoking: [77]))
        try expectEqual(
            Self.verify(file, TrustList(csca, other), lists: [unfit])[.revocation],
            .notChecked(.revocationListNotAuthentic))
        var changed = revoking
        changed[changed.count - 1] ^= 1
        try expectEqual(outcome(changed), .notChecked(.revocationListNotAuthentic))
        // A list in the trust list counts as well.
        var both = trust
        try both.add(revoking, source: "test", at: .now)
        #expect(try Self.verify(file, both).isRefuted)
    }

    @Test("A signer that the file does not name is taken if it is the only one, and flagged")
    func soleCertificate() async throws {
        let pki = try BeliefPKI()
        let trust = TrustList(try await pki.makeAuthority())
        try await pki.makeSigner(serial: 0x1234_5678)
        var file = try await pki.makeSecurityObject()
        let places = file.ranges(of: [0x02, 0x04, 0x12, 0x34, 0x56, 0x78])
        expectEqual(places.count, 2)
        file[try #require(places.last).upperBound - 1] ^= 1
        try expectEqual(Self.verify(file, trust).flags, [Finding(.signerCertificate, .flagged(.soleCertificate))])

        // With another beside it, nobody knows which.
        try await pki.makeSigner("other", serial: 99)
        var two = try await pki.makeSecurityObject(options: ["-certfile", "other.pem"])
        try expectEqual(Self.verify(two, trust).flags, [])
        let last = try #require(two.ranges(of: [0x02, 0x04, 0x12, 0x34, 0x56, 0x78]).last)
        two[last.upperBound - 1] ^= 1
        let passive = try Self.verify(two, trust)
        #expect(passive[.signerCertificate] == .failed(.noSignerCertificate) && passive.isRefuted)

        // A file without its certificate finds it in the list of trust.
        let without = try await pki.makeSecurityObject(options: ["-nocerts"])
        #expect(try Self.verify(without, trust).isRefuted)
        var more = trust
        try more.add(pki.read("dsc.der"), source: "test", at: .now)
        try expectEqual(Self.verify(without, more).flags, [])
    }

    /// CurveBall: who chooses the generator knows a private key for any public key.
    @Test("A signer whose curve has another generator is refuted, though its signature fits")
    func otherGenerator() async throws {
        let pki = try BeliefPKI()
        let csca = try await pki.makeAuthority()
        try await pki.makeKey("honest", .ec("P-256", explicit: true))
        try await pki.openssl(["ec", "-in", "honest.key", "-outform", "DER", "-out", "honest.ec"])
        // The public key becomes the generator, and 1 the private key.
        var forged = try pki.read("honest.ec")
        let fields = try #require(try TLVList(forged, padding: []).first).children
        let privateKey = try #require(fields.first { $0.tag == 0x04 })
        let point = try #require(fields.first { $0.tag == 0xA1 }?.children.first).value.dropFirst()
        let base = try #require(fields.first { $0.tag == 0xA0 }?.children.first).children.first {
            $0.tag == 0x04 && $0.value.count == point.count
        }
        let generator = try #require(base)
        forged.replaceSubrange(generator.value.indices, with: point)
        forged.replaceSubrange(
            privateKey.value.indices, with: [UInt8](repeating: 0, count: privateKey.value.count - 1) + [1])
        try pki.write(forged, to: "forged.ec")
        try await pki.openssl(["ec", "-inform", "DER", "-in", "forged.ec", "-out", "dsc.key"])
        try await pki.makeSigner()
        let file = try await pki.makeSecurityObject()
        // OpenSSL alone believes it.
        try pki.write(Array(file.dropFirst(4)), to: "forged.cms")
        try await pki.openssl(["cms", "-verify", "-noverify", "-inform", "DER", "-in", "forged.cms", "-out", "unused"])
        let passive = try Self.verify(file, TrustList(csca))
        #expect(passive[.signature] == .failed(.unknownCurve) && passive.isRefuted)
    }
}
