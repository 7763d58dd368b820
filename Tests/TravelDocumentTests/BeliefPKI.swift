import Foundation
import SmartCard
import TestSupport
import Testing

@testable import TravelDocument

/// Authorities, signers and signatures, all made by OpenSSL's command line in a folder of their own.
final class BeliefPKI: Sendable {
    /// How a key is made, and what it signs with.
    struct Key: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var generation: [String]
        var digest = "sha256"
        /// Options of PSS, without the name of the command's option.
        var padding: [String] = []

        static func rsa(_ bits: Int = 2048, digest: String = "sha256") -> Key {
            Key(
                testDescription: "RSA-\(bits) \(digest)",
                generation: ["-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:\(bits)"], digest: digest)
        }

        static func pss(salt: Int, digest: String = "sha256") -> Key {
            var key = rsa(digest: digest)
            key.padding = ["rsa_padding_mode:pss", "rsa_pss_saltlen:\(salt)"]
            return Key(
                testDescription: "PSS \(digest), salt \(salt)", generation: key.generation, digest: digest,
                padding: key.padding)
        }

        static func ec(_ curve: String, explicit: Bool = false, digest: String = "sha256") -> Key {
            let encoding = explicit ? "explicit" : "named_curve"
            return Key(
                testDescription: "\(curve) \(encoding) \(digest)",
                generation: [
                    "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:\(curve)", "-pkeyopt",
                    "ec_param_enc:\(encoding)",
                ], digest: digest)
        }

        /// The options of a command that signs.
        func options(_ option: String) -> [String] { ["-\(digest)"] + padding.flatMap { [option, $0] } }
    }

    static let configuration = """
        [req]
        distinguished_name = name
        [name]
        [csca]
        basicConstraints = critical, CA:true, pathlen:0
        keyUsage = critical, keyCertSign, cRLSign
        subjectKeyIdentifier = hash
        authorityKeyIdentifier = keyid
        [without]
        basicConstraints = critical, CA:true
        keyUsage = critical, keyCertSign, cRLSign
        subjectKeyIdentifier = none
        [certificates]
        basicConstraints = critical, CA:true
        keyUsage = critical, keyCertSign
        subjectKeyIdentifier = none
        [dsc]
        keyUsage = critical, digitalSignature
        subjectKeyIdentifier = hash
        authorityKeyIdentifier = keyid
        2.23.136.1.1.6.2 = ASN1:SEQUENCE:documentTypeList
        [documentTypeList]
        version = INTEGER:0
        types = SET:documentTypes
        [documentTypes]
        one = PRINTABLESTRING:P
        two = PRINTABLESTRING:ID
        [plain]
        keyUsage = critical, digitalSignature
        [encipherment]
        keyUsage = critical, keyEncipherment
        [critical]
        keyUsage = critical, digitalSignature
        1.2.3.4 = critical, ASN1:NULL
        [masterlist]
        keyUsage = critical, digitalSignature
        extendedKeyUsage = critical, 2.23.136.1.1.3
        subjectKeyIdentifier = hash
        authorityKeyIdentifier = keyid
        [ca]
        default_ca = list
        [list]
        database = index.txt
        crlnumber = number.txt
        default_md = sha256
        default_crl_days = 30
        [issuing]
        database = index.txt
        serial = number.txt
        default_md = sha256
        policy = anything
        [anything]
        countryName = supplied
        organizationName = optional
        commonName = supplied
        """

    let directory: URL

    init() throws {
        directory = FileManager.default.temporaryDirectory.appending(path: "belief-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        try Data(Self.configuration.utf8).write(to: directory.appending(path: "openssl.cnf"))
    }

    deinit { try? FileManager.default.removeItem(at: directory) }

    func path(_ name: String) -> String { directory.appending(path: name).path }
    func read(_ name: String) throws -> [UInt8] { Array(try Data(contentsOf: directory.appending(path: name))) }
    func write(_ bytes: [UInt8], to name: String) throws {
        try Data(bytes).write(to: directory.appending(path: name))
    }

    @discardableResult func openssl(_ arguments: [String]) async throws -> Program.Outcome {
        let outcome = try await Program.run(
            ["env", "-C", directory.path, "OPENSSL_CONF=\(path("openssl.cnf"))", "openssl"] + arguments)
        try #require(outcome.status == 0, "openssl \(arguments.joined(separator: " ")): \(outcome.error)")
        return outcome
    }

    // MARK: Certificates

    /// Makes a key, unless it is there.
    func makeKey(_ name: String, _ key: Key) async throws {
        guard !FileManager.default.fileExists(atPath: path("\(name).key")) else { return }
        try await openssl(["genpkey"] + key.generation + ["-out", "\(name).key"])
    }

    /// Makes an authority's certificate, signed by its own key.
    @discardableResult func makeAuthority(
        _ name: String = "csca", _ key: Key = .ec("P-256"), subject: String = "/C=DE/O=bund/CN=csca",
        days: Int = 1000, extensions: String = "csca"
    ) async throws -> Certificate {
        try await makeKey(name, key)
        try await openssl(
            ["req", "-x509", "-new", "-key", "\(name).key", "-subj", subject, "-days", "\(days)", "-set_serial", "1"]
                + ["-extensions", extensions, "-out", "\(name).pem"] + key.options("-sigopt"))
        return try await certificate(name)
    }

    /// Makes a certificate that an authority signs.
    @discardableResult func makeSigner(
        _ name: String = "dsc", _ key: Key = .ec("P-256"), by issuer: String = "csca", _ issuerKey: Key = .ec("P-256"),
        subject: String = "/C=de/O=bund/CN=dsc", serial: Int = 77, days: Int = 100, extensions: String = "dsc"
    ) async throws -> Certificate {
        try await makeKey(name, key)
        try await openssl(["req", "-new", "-key", "\(name).key", "-subj", subject, "-out", "\(name).csr"])
        try await openssl(
            ["x509", "-req", "-in", "\(name).csr", "-CA", "\(issuer).pem", "-CAkey", "\(issuer).key"]
                + [
                    "-set_serial", "\(serial)", "-days", "\(days)", "-extfile", "openssl.cnf", "-extensions",
                    extensions,
                ]
                + ["-out", "\(name).pem"] + issuerKey.options("-sigopt"))
        return try await certificate(name)
    }

    func certificate(_ name: String) async throws -> Certificate {
        try await openssl(["x509", "-in", "\(name).pem", "-outform", "DER", "-out", "\(name).der"])
        return try Certificate(read("\(name).der"))
    }

    /// Makes a list that revokes these serial numbers.
    func makeRevocationList(by issuer: String = "csca", revoking serials: [Int]) async throws -> [UInt8] {
        let rows = serials.map { "R\t400101000000Z\t250101000000Z\t\(String(format: "%04X", $0))\tunknown\t/CN=x\n" }
        try write(Array(rows.joined().utf8), to: "index.txt")
        try write(Array("01\n".utf8), to: "number.txt")
        try await openssl(
            ["ca", "-gencrl", "-config", "openssl.cnf", "-keyfile", "\(issuer).key", "-cert", "\(issuer).pem"]
                + ["-out", "\(issuer).crl.pem"])
        try await openssl(["crl", "-in", "\(issuer).crl.pem", "-outform", "DER", "-out", "\(issuer).crl"])
        return try read("\(issuer).crl")
    }

    // MARK: Signatures

    /// Signs contents.
    func sign(
        _ content: [UInt8], type: String = "2.23.136.1.1.1", by signer: String = "dsc", _ key: Key = .ec("P-256"),
        options: [String] = []
    ) async throws -> [UInt8] {
        try write(content, to: "content")
        try await openssl(
            ["cms", "-sign", "-binary", "-nodetach", "-in", "content", "-econtent_type", type, "-md", key.digest]
                + ["-signer", "\(signer).pem", "-inkey", "\(signer).key"] + key.padding.flatMap { ["-keyopt", $0] }
                + options + ["-outform", "DER", "-out", "signed"])
        return try read("signed")
    }

    /// EF.SOD over these files.
    func makeSecurityObject(
        _ files: [Int: [UInt8]] = BeliefPKI.files, digest: TravelDocument.Digest = .sha256,
        type: String = "2.23.136.1.1.1", by signer: String = "dsc", _ key: Key = .ec("P-256"), options: [String] = []
    ) async throws -> [UInt8] {
        let content = Self.securityObject(files, digest)
        return TLVTag(0x77).encode(try await sign(content, type: type, by: signer, key, options: options))
    }

    static let files: [Int: [UInt8]] = [
        1: ChipTests.group(1, 93), 2: ChipTests.group(2, 3000), 14: ChipTests.group(14, 100),
    ]

    /// LDSSecurityObject, version 0.
    static func securityObject(
        _ files: [Int: [UInt8]], _ digest: TravelDocument.Digest, hasNull: Bool = true
    ) -> [UInt8] {
        let oid = TravelDocument.Digest.identifiers.first { $0.value == digest }?.key.content ?? []
        let sequence = TLVTag(0x30)
        let hashes = files.sorted { $0.key < $1.key }.flatMap { number, file in
            sequence.encode(objects: [0x02, 0x01, UInt8(number)], TLVTag(0x04).encode(digest.hash(file)))
        }
        return sequence.encode(
            objects: [0x02, 0x01, 0x00], sequence.encode(TLVTag(0x06).encode(oid) + (hasNull ? [0x05, 0x00] : [])),
            sequence.encode(hashes))
    }
}

extension TrustList {
    /// A list of these authorities.
    init(_ authorities: Certificate...) {
        self.init()
        for authority in authorities { add(authority: authority, source: "test", at: .now) }
    }
}

extension PassiveAuthentication {
    subscript(check: Finding.Check) -> Finding.Outcome? { findings.first { $0.check == check }?.outcome }

    var isBelieved: Bool { if case .believed = verdict { true } else { false } }
    var isUndecided: Bool { if case .undecided = verdict { true } else { false } }
    var isRefuted: Bool { if case .refuted = verdict { true } else { false } }
    /// The flags of what is believed; nil if it is not.
    var flags: [Finding]? { if case .believed(let flagged) = verdict { flagged } else { nil } }
}
