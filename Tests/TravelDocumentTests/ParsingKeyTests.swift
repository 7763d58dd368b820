import Foundation
import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

@testable import TravelDocument

/// DG14 and DG15, encoded by OpenSSL, and what a reading does with them.
@Suite struct ParsingKeyTests {
    /// DG14 by OpenSSL's generator of ASN.1, with the key of a chip on P-256.
    private static func options(_ point: [UInt8]) -> String {
        """
        asn1 = EXPLICIT:14A,SET:infos
        [infos]
        a = SEQUENCE:pace
        b = SEQUENCE:chip
        c = SEQUENCE:key
        d = SEQUENCE:active
        e = SEQUENCE:terminal
        f = SEQUENCE:unknown
        g = SEQUENCE:own
        h = UTF8:stray
        [pace]
        oid = OID:0.4.0.127.0.7.2.2.4.2.2
        version = INTEGER:2
        parameters = INTEGER:13
        [chip]
        oid = OID:0.4.0.127.0.7.2.2.3.2.4
        version = INTEGER:1
        number = INTEGER:7
        [key]
        oid = OID:0.4.0.127.0.7.2.2.1.2
        key = SEQUENCE:spki
        number = INTEGER:7
        [spki]
        algorithm = SEQUENCE:algorithm
        bits = FORMAT:HEX,BITSTRING:\(point.hex)
        [algorithm]
        oid = OID:id-ecPublicKey
        curve = OID:prime256v1
        [active]
        oid = OID:2.23.136.1.1.5
        version = INTEGER:1
        algorithm = OID:0.4.0.127.0.7.1.1.4.1.3
        [terminal]
        oid = OID:0.4.0.127.0.7.2.2.2
        version = INTEGER:1
        [unknown]
        oid = OID:1.2.3.4
        value = FORMAT:UTF8,UTF8String:anything
        [own]
        oid = OID:0.4.0.127.0.7.2.2.1.2
        key = SEQUENCE:foreign
        [foreign]
        algorithm = SEQUENCE:ed25519
        bits = FORMAT:HEX,BITSTRING:00
        [ed25519]
        oid = OID:1.3.101.112
        """
    }

    @Test("DG14 of OpenSSL's making: every protocol with its parameters, and what is none beside them")
    func securityOptions() async throws {
        let pki = try BeliefPKI()
        let point = Array(try await BeliefChipAuthenticationTests.publicKey(pki, .ec("P-256")).suffix(65))
        try pki.write(Array(Self.options(point).utf8), to: "dg14.cnf")
        try await pki.openssl(["asn1parse", "-genconf", "dg14.cnf", "-noout", "-out", "dg14"])
        let file = try pki.read("dg14")
        let options = try SecurityOptions(parsing: file)
        try expectEqual(ParsedFile(parsing: file, of: .dataGroup(14)), .securityOptions(options))
        func details(_ identifier: StaticString) -> [SecurityInfo.Details] {
            options.infos.filter { $0.identifier == OID(identifier) }.map(\.details)
        }
        expectEqual(options.infos.count, 7)
        expectEqual(
            details("0.4.0.127.0.7.2.2.4.2.2"),
            [
                .pace(PACEInfo(.ecdhGenericMapping, .aes128, domainParameters: 13))
            ])
        guard case .chipAuthentication(let info)? = details("0.4.0.127.0.7.2.2.3.2.4").first else {
            Issue.record("no ChipAuthenticationInfo")
            return
        }
        #expect("\(info)" == "CA-ECDH-AES-256, key 07" && info.keyIdentifier == [7])
        // That of a group that is not standardized is no key.
        let keys = details("0.4.0.127.0.7.2.2.1.2")
        #expect(keys.count == 2 && keys.contains(.other))
        let key = try #require(
            keys.compactMap { if case .chipAuthenticationPublicKey(let key) = $0 { key } else { nil } }.first)
        #expect(key.value == point && key.domainParameters == 12 && key.keyIdentifier == [7])
        #expect(!"\(key)".contains(point.hex) && Set([key, key]).count == 1)
        expectEqual(
            details("2.23.136.1.1.5"), [.activeAuthentication(signatureAlgorithm: OID("0.4.0.127.0.7.1.1.4.1.3"))])
        expectEqual(details("0.4.0.127.0.7.2.2.2"), [.terminalAuthentication(version: 1)])
        expectEqual(details("1.2.3.4"), [.other])
        let unknown = try #require(options.infos.first { $0.identifier == OID("1.2.3.4") })
        expectEqual(unknown.parameters, [TLVTag(0x0C).encode(Array("anything".utf8))])
        expectEqual(options.otherElements, [TLVTag(0x0C).encode(Array("stray".utf8))])
        expectEqual("\(options)", "security options: 7 infos")
    }

    @Test("DG14 with the info of the worked example, ICAO 9303-11, G.1")
    func example() throws {
        let info = try hex("3012060A04007F0007020204020202010202010D")
        let options = try SecurityOptions(parsing: TLVTag(0x6E).encode(TLVTag(0x31).encode(info)))
        expectEqual(options.infos.map(\.details), [.pace(PACEInfo(.ecdhGenericMapping, .aes128, domainParameters: 13))])
        expectEqual(options.infos.first?.parameters.map(\.hex), ["020102", "02010D"])
    }

    private static func key(_ generation: [String]) async throws -> (file: [UInt8], pki: BeliefPKI) {
        let pki = try BeliefPKI()
        try await pki.makeKey("chip", .init(testDescription: "", generation: generation))
        try await pki.openssl(["pkey", "-in", "chip.key", "-pubout", "-outform", "DER", "-out", "chip.pub"])
        return (TLVTag(0x6F).encode(try pki.read("chip.pub")), pki)
    }

    @Test("DG15 with a key of OpenSSL's making: RSA, on a curve by name and by parameters, and of another kind")
    func publicKey() async throws {
        let rsa = try await Self.key(BeliefPKI.Key.rsa(2048).generation)
        let parsed = try ActiveAuthenticationPublicKey(parsing: rsa.file)
        let told = try await rsa.pki.openssl(["rsa", "-in", "chip.key", "-noout", "-modulus"]).output
        guard case .rsa(let modulus, [0x01, 0x00, 0x01]) = parsed.kind else {
            Issue.record("\(parsed)")
            return
        }
        #expect(told.contains("Modulus=\(modulus.hex)\n"))
        #expect("\(parsed)" == "RSA key, 2048 bits" && parsed.algorithm == OID("1.2.840.113549.1.1.1"))
        try expectEqual(parsed.subjectPublicKeyInfo, rsa.pki.read("chip.pub"))
        try expectEqual(
            ParsedFile(parsing: rsa.file, of: .dataGroup(15)), .activeAuthenticationPublicKey(parsed))

        for (key, name, length) in [
            (BeliefPKI.Key.ec("P-256"), "P-256", 65),
            (.ec("brainpoolP384r1", explicit: true), "brainpoolP384r1", 97),
        ] {
            let (file, pki) = try await Self.key(key.generation)
            let point = Array(try pki.read("chip.pub").suffix(length))
            let parsed = try ActiveAuthenticationPublicKey(parsing: file)
            #expect(parsed.kind == .elliptic(curve: name, point: point) && "\(parsed)" == "key on \(name)")
        }
        // A curve with a name of its own that is not in the table.
        let unknown = try await Self.key(BeliefPKI.Key.ec("secp256k1", explicit: true).generation)
        guard case .elliptic(nil, let point) = try ActiveAuthenticationPublicKey(parsing: unknown.file).kind else {
            Issue.record("a name")
            return
        }
        expectEqual(point.count, 65)
        let other = try await Self.key(["-algorithm", "ED25519"])
        let bits = Array(try other.pki.read("chip.pub").suffix(32))
        try expectEqual(ActiveAuthenticationPublicKey(parsing: other.file).kind, .other(bits))
    }

    @Test("A fault of DG14 or DG15 has its offset in the file")
    func faults() throws {
        func fault(_ file: ElementaryFile, _ bytes: [UInt8]) -> TravelDocumentFormatError? {
            do {
                _ = try ParsedFile(parsing: bytes, of: file)
                return nil
            } catch {
                return error
            }
        }
        let group14 = ElementaryFile.dataGroup(14)
        for (bytes, offset, due) in [
            ("6F00", 0, .object(0x6E)), ("6E00", 2, .object(0x31)), ("6E023000", 2, .object(0x31)),
            ("6E0431000500", 4, .end), ("6E0231000500", 4, .end), ("6E0431023005", 4, nil),
        ] as [(String, Int, TravelDocumentFormatError.Due?)] {
            let error = try #require(try fault(group14, hex(bytes)))
            guard let due else { continue }
            expectEqual(error, TravelDocumentFormatError(file: group14, offset: offset, due: due), "\(error)")
        }
        let rsa = "300D 06092A864886F70D010101 0500"
        for (bytes, offset, due) in [
            ("6F023100", 2, .object(0x30)), ("6F023000", 4, .value("SubjectPublicKeyInfo")),
            ("6F133011" + rsa + "0500", 19, .value("SubjectPublicKeyInfo")),
            ("6F143012" + rsa + "030101", 19, .value("SubjectPublicKeyInfo")),
            ("6F143012" + rsa + "030100", 22, .value("RSAPublicKey")),
            ("6F193017" + rsa + "0306 00 3003 020105", 27, .value("RSAPublicKey")),
            ("6F1C301A" + rsa + "0309 00 3006 020105 0201FF", 27, .value("RSAPublicKey")),
        ] as [(String, Int, TravelDocumentFormatError.Due)] {
            let error = try #require(try fault(.dataGroup(15), hex(bytes)), "\(bytes)")
            expectEqual(error, TravelDocumentFormatError(file: .dataGroup(15), offset: offset, due: due), "\(error)")
        }
    }

    // MARK: In a reading

    private static func read(_ card: any VirtualCard, _ dataGroups: Set<Int> = [1]) async throws -> DocumentReading {
        try await TravelDocumentChip(over: ReadingTests.Channel(card)).read(
            dataGroups: dataGroups, with: AccessKey(MachineReadableZone(ReadingTests.zone)))
    }

    @Test("A reading has the protocols and the key of a chip among its contents")
    func contents() async throws {
        let passport = try await Self.read(try #require(VirtualCards.named("passport")))
        guard case .securityOptions(let options)? = passport.contents[.dataGroup(14)] else {
            Issue.record("no DG14")
            return
        }
        #expect(options.infos.contains { if case .chipAuthentication = $0.details { true } else { false } })
        #expect(options.otherElements.isEmpty && passport.failures.isEmpty)
        let active = try await Self.read(try #require(VirtualCards.named("passport-active")))
        guard case .activeAuthenticationPublicKey(let key)? = active.contents[.dataGroup(15)] else {
            Issue.record("no DG15")
            return
        }
        if case .rsa = key.kind {} else { Issue.record("\(key)") }
        #expect(active.activeAuthentication == .genuine && active.failures.isEmpty)
    }

    @Test("A file of keys that is malformed is told once, and its proof is open", arguments: [14, 15])
    func malformed(_ number: Int) async throws {
        let file = ElementaryFile.dataGroup(number)
        let content = number == 14 ? "6E03 040100" : "6F03 040100"
        let card = try VirtualPassportTests.card("data-group \(number) {\n\(content)\n}\nsecurity-object signed")
        let reading = try await Self.read(card)
        expectEqual(
            reading.failures,
            [
                .init(
                    file: file,
                    reason: .malformedContents(
                        TravelDocumentFormatError(file: file, offset: 2, due: .object(number == 14 ? 0x31 : 0x30))))
            ])
        let check = number == 14 ? Finding.Check.chipAuthentication : .activeAuthentication
        let finding = try #require(
            reading.belief(trust: TrustList(), at: .now).findings.first { $0.check == check })
        expectEqual(finding.outcome, .notChecked(.malformed(MalformedObject(due: "DG\(number)", offset: 2))))
    }
}
