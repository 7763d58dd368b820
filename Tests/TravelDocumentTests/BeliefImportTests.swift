import Foundation
import SmartCard
import TestSupport
import Testing

@testable import TravelDocument

/// Trust lists: what is imported, what is not, and what a file keeps.
@Suite struct BeliefImportTests {
    /// CscaMasterList.
    private static func masterList(_ certificates: [[UInt8]]) -> [UInt8] {
        TLVTag(0x30).encode(objects: [0x02, 0x01, 0x00], TLVTag(0x31).encode(certificates.joined()))
    }

    private static func fold(_ line: String) -> String {
        var (rest, lines) = (Substring(line), [String]())
        while !rest.isEmpty {
            lines.append(String(rest.prefix(76)))
            rest = rest.dropFirst(76)
        }
        return lines.joined(separator: "\n ") + "\n"
    }

    /// Two authorities, a signer of master lists by the first, and a list of both.
    private static func make(
        _ pki: BeliefPKI, extensions: String = "masterlist", type: String = "2.23.136.1.1.2", options: [String] = []
    ) async throws -> (list: [UInt8], authorities: [Certificate]) {
        let first = try await pki.makeAuthority()
        let second = try await pki.makeAuthority("second", .rsa(), subject: "/C=FR/CN=second")
        try await pki.makeSigner("mls", subject: "/C=DE/CN=master list signer", extensions: extensions)
        let list = try await pki.sign(
            masterList([first.encoded, second.encoded]), type: type, by: "mls", options: options)
        return (list, [first, second])
    }

    @Test("A master list is imported with source and date, by an authority that is believed or by one of its own")
    func masterList() async throws {
        let pki = try BeliefPKI()
        let (list, authorities) = try await Self.make(pki)
        let date = Date(timeIntervalSince1970: Date.now.timeIntervalSince1970.rounded())
        var trust = TrustList()
        let result = try trust.add(list, source: "a master list", at: date)
        #expect(result.authorities == 2 && result.faults.isEmpty && trust.authorities == authorities)
        expectEqual(trust.origin(of: authorities[1]), .init(source: "a master list", date: date))
        let findings = try #require(result.masterLists.first).findings
        expectEqual(findings.filter { $0.check == .path }.map(\.outcome), [.flagged(.trustedByItselfAlone)])

        var believing = TrustList(authorities[0])
        let second = try believing.add(list, source: "a master list", at: date)
        #expect(second.authorities == 1 && second.known == 1)
        expectEqual(second.masterLists.first?.findings.first { $0.check == .path }?.outcome, .passed)

        let (streamed, _) = try await Self.make(BeliefPKI(), options: ["-stream"])
        try expectEqual(trust.add(streamed, source: "streamed", at: .now).authorities, 2)
        trust.remove(source: "streamed")
        expectEqual(trust.authorities, authorities)
    }

    @Test("What two sources contain stays until both are removed")
    func twoSources() async throws {
        let (list, authorities) = try await Self.make(BeliefPKI())
        var trust = TrustList()
        try trust.add(list, source: "a", at: .now)
        try expectEqual(trust.add(list, source: "b", at: .now).known, 2)
        #expect(trust.entries.count == 4 && trust.authorities == authorities)
        trust.remove(source: "a")
        expectEqual(trust.authorities, authorities)
        let file = FileManager.default.temporaryDirectory.appending(path: "trust-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: file) }
        try trust.write(to: file)
        trust = try TrustList(contentsOf: file)
        trust.remove(source: "b")
        #expect(trust.authorities.isEmpty && trust.entries.isEmpty)
    }

    private static let published = ProcessInfo.processInfo.environment["MASTER_LIST"]

    @Test(
        "A published master list, which MASTER_LIST names, is taken whole",
        .enabled(if: published != nil, "MASTER_LIST names no file"))
    func publishedMasterList() throws {
        let file = Array(try Data(contentsOf: URL(filePath: try #require(Self.published))))
        var trust = TrustList()
        let result = try trust.add(file, source: "published", at: .now)
        #expect(!result.masterLists.isEmpty && result.masterLists.allSatisfy(\.isAdded), "\(result.masterLists)")
        #expect(result.faults.isEmpty && result.authorities > 10 && result.signers == 0, "\(result)")
    }

    @Test("A master list that is changed, signed by another signer, or of another type adds nothing and is told")
    func refusedMasterLists() async throws {
        let (list, _) = try await Self.make(BeliefPKI())
        var changed = list
        changed[changed.count - 1] ^= 1
        let (plain, _) = try await Self.make(BeliefPKI(), extensions: "dsc")
        let (other, _) = try await Self.make(BeliefPKI(), type: "2.23.136.1.1.1")
        for (list, check) in [
            (changed, Finding.Check.signature), (plain, .keyUsage(.signer)), (other, .contentType),
        ] {
            var trust = TrustList()
            let result = try trust.add(list, source: "test", at: .now)
            #expect(trust.authorities.isEmpty && result.authorities == 0)
            expectEqual(result.masterLists.map(\.isAdded), [false])
            expectEqual(result.masterLists.first?.findings.filter(\.isFailure).map(\.check), [check])
        }
        // A signer whose authority is nowhere.
        let pki = try BeliefPKI()
        _ = try await Self.make(pki)
        let stranger = try await pki.makeAuthority("stranger", subject: "/C=SE/CN=stranger")
        let alone = try await pki.sign(Self.masterList([stranger.encoded]), type: "2.23.136.1.1.2", by: "mls")
        var trust = TrustList()
        try expectEqual(trust.add(alone, source: "test", at: .now).masterLists.map(\.isAdded), [false])
    }

    @Test("An entry of a master list that is no certificate is left out and told")
    func faultyEntry() async throws {
        let pki = try BeliefPKI()
        let (_, authorities) = try await Self.make(pki)
        let content = Self.masterList([authorities[0].encoded, [0x30, 0x03, 0x02, 0x01, 0x05], authorities[1].encoded])
        let list = try await pki.sign(content, type: "2.23.136.1.1.2", by: "mls")
        var trust = TrustList()
        let result = try trust.add(list, source: "test", at: .now)
        #expect(result.authorities == 2 && result.faults.map(\.due) == ["TBSCertificate"])
    }

    @Test("An LDIF file of the directory brings signers, authorities, revocation lists and master lists")
    func ldif() async throws {
        let pki = try BeliefPKI()
        let (list, authorities) = try await Self.make(pki)
        let dsc = try await pki.makeSigner()
        let revocations = try await pki.makeRevocationList(revoking: [77])
        func attribute(_ name: String, _ bytes: [UInt8]) -> String {
            Self.fold("\(name):: \(Data(bytes).base64EncodedString())")
        }
        let text =
            "version: 1\n# a comment\n\ndn: o=dsc,c=DE,dc=data,dc=download,dc=pkd,dc=icao,dc=int\n"
            + "objectClass: inetOrgPerson\n" + attribute("userCertificate;binary", dsc.encoded) + "\ndn: c=DE\n"
            + attribute("pkdMasterListContent", list) + "\ndn: c=DE\n"
            + attribute("certificateRevocationList;binary", revocations) + "\ndn: c=DE\n"
            + attribute("cscaCertificate", authorities[0].encoded) + attribute("userCertificate;binary", [0x30, 0x00])
        for text in [text, text.replacingOccurrences(of: "\n", with: "\r\n")] {
            var trust = TrustList()
            let result = try trust.add(Array(text.utf8), source: "pkd.ldif", at: .now)
            #expect(result.signers == 1 && result.authorities == 2 && result.revocationLists == 1 && result.known == 1)
            #expect(result.faults.count == 1 && result.masterLists.map(\.isAdded) == [true])
            let passive = try BeliefSignatureTests.verify(try await pki.makeSecurityObject(), trust)
            #expect(passive[.path] == .passed && passive.isRefuted)
        }
        var trust = TrustList()
        for text in ["", "no attribute", "a: b\nuserCertificate;binary:: %%%\n", "\n\n"] {
            #expect(throws: MalformedObject.self) { try trust.add(Array(text.utf8), source: "test", at: .now) }
        }
    }

    @Test("Single certificates and lists are imported, in DER and in PEM")
    func single() async throws {
        let pki = try BeliefPKI()
        let csca = try await pki.makeAuthority()
        let dsc = try await pki.makeSigner()
        let list = try await pki.makeRevocationList(revoking: [])
        var trust = TrustList()
        try expectEqual(trust.add(csca.encoded, source: "test", at: .now).authorities, 1)
        try expectEqual(trust.add(dsc.encoded, source: "test", at: .now).signers, 1)
        try expectEqual(trust.add(list, source: "test", at: .now).revocationLists, 1)
        var again = TrustList()
        let pem = try pki.read("csca.pem") + pki.read("dsc.pem") + pki.read("csca.crl.pem")
        let result = try again.add(pem, source: "test", at: .now)
        #expect(result.authorities == 1 && result.signers == 1 && result.revocationLists == 1)
        expectEqual(again.entries.map(\.object), trust.entries.map(\.object))
        #expect(throws: MalformedObject.self) { try trust.add([0x30, 0x00], source: "test", at: .now) }
        let broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
        try expectEqual(trust.add(Array(broken.utf8), source: "test", at: .now).faults.count, 1)
    }

    @Test("A list is kept in a file, whole, with sources and dates")
    func file() async throws {
        let pki = try BeliefPKI()
        let csca = try await pki.makeAuthority()
        try await pki.makeSigner()
        let date = Date(timeIntervalSince1970: 1_700_000_000)
        var trust = TrustList()
        try trust.add(csca.encoded, source: "one", at: date)
        try trust.add(pki.read("dsc.der"), source: "two", at: date)
        try trust.add(try await pki.makeRevocationList(revoking: [5]), source: "three", at: date)
        let url = pki.directory.appending(path: "trust.json")
        try trust.write(to: url)
        let read = try TrustList(contentsOf: url)
        #expect(read.entries == trust.entries && read.entries.map(\.origin.source) == ["one", "two", "three"])
        #expect(read.revocationLists.count == 1 && read.signers.count == 1 && read.authorities == [csca])
        // Written over, and nothing else is left in the folder.
        try TrustList().write(to: url)
        #expect(try TrustList(contentsOf: url).entries.isEmpty)
        for text in ["{}", #"{"version":2,"entries":[]}"#, "", #"{"version":1,"entries":[{"kind":"authority"}]}"#] {
            try pki.write(Array(text.utf8), to: "trust.json")
            #expect(throws: (any Error).self) { try TrustList(contentsOf: url) }
        }
        try pki.write(
            Array(
                #"{"version":1,"entries":[{"kind":"signer","origin":{"source":"x","date":0},"bytes":"MAA="}]}"#.utf8),
            to: "trust.json")
        #expect(throws: MalformedObject.self) { try TrustList(contentsOf: url) }
    }

    @Test("EF.CardSecurity is verified like EF.SOD")
    func cardSecurity() async throws {
        let pki = try BeliefPKI()
        let trust = TrustList(try await pki.makeAuthority())
        try await pki.makeSigner()
        // PACEInfo: ECDH-CAM-AES-128 with parameters 13.
        let infos = try hex("3114 3012 060A 04007F00070202040602 020102 02010D")
        let type = "0.4.0.127.0.7.3.2.1"
        let file = try await pki.sign(infos, type: type)
        let security = try CardSecurity(file)
        expectEqual(security.securityInfos.paceInfos.map(\.description), ["ECDH-CAM-AES-128, parameters 13"])
        let findings = security.verify(trust: trust, at: .now)
        #expect(!findings.contains { $0.isFailure || $0.isFlagged })
        expectEqual(findings.filter { $0.check == .path || $0.check == .signature }.map(\.outcome), [.passed, .passed])
        var changed = file
        changed[changed.count - 1] ^= 1
        try expectEqual(
            CardSecurity(changed).verify(trust: trust, at: .now).filter(\.isFailure).map(\.check), [.signature])
        let other = try CardSecurity(try await pki.sign(infos)).verify(trust: trust, at: .now)
        expectEqual(other.filter(\.isFailure).map(\.check), [.contentType])
    }
}
