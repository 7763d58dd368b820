import Crypto
import Foundation
import SwiftASN1
import X509

/// The terminals that have been set up with this service, and whom their batches are believed by.
struct Terminals {
    /// Certificates of a batch: DER in Base64.
    struct Certificates: Codable, Sendable {
        let leafCertificate: String
        let intermediateCertificate: [String]
    }

    /// The roots to which a batch's signatures must lead.
    struct Trust: Sendable {
        let root: Certificate
        let key: Certificate.PublicKey
    }

    private var enrolled: [String: Trust] = [:]

    /// - Returns: nil for a reader that is not enrolled.
    subscript(reader: String) -> Trust? { enrolled[reader] }

    /// Takes a terminal's own certificates in.
    ///
    /// - Throws: ``Sandbox/Refusal`` for certificates of which one does not vouch for the next, and for a terminal that has
    ///   others.
    mutating func enrol(_ reader: String, with certificates: Certificates) async throws {
        guard let leaf = try? Certificate(base64: certificates.leafCertificate),
            let root = try? certificates.intermediateCertificate.last.map(Certificate.init(base64:)),
            await leaf.isVouchedFor(by: root, through: certificates.intermediateCertificate.dropLast())
        else {
            throw Sandbox.Refusal(
                status: 422, code: "certificate",
                message: "Send the leaf certificate, and those that vouch for it, in DER and Base64.")
        }
        try pin(Trust(root: root, key: leaf.publicKey), to: reader)
    }

    /// Has a terminal's key certified.
    ///
    /// - Parameter request: PKCS #10 (RFC 2986), DER in Base64.
    mutating func enrol(_ reader: String, request: String) throws -> Certificates {
        guard let bytes = Data(base64Encoded: request),
            let request = try? CertificateSigningRequest(derEncoded: Array(bytes)),
            P256.Signing.PublicKey(request.publicKey) != nil,
            request.publicKey.isValidSignature(request.signature, for: request)
        else {
            throw Sandbox.Refusal(
                status: 422, code: "certificate_request",
                message: "Send a certificate request (PKCS #10) for a key on P-256, signed by it, in DER and Base64.")
        }
        let authority = try TestAuthority()
        try pin(Trust(root: authority.certificate, key: request.publicKey), to: reader)
        return Certificates(
            leafCertificate: try authority.issue(request).base64,
            intermediateCertificate: [try authority.certificate.base64])
    }

    private mutating func pin(_ trust: Trust, to reader: String) throws {
        guard enrolled[reader].map({ $0.key == trust.key }) ?? true else {
            throw Sandbox.Refusal(
                status: 409, code: "enrolled", message: "This reader is enrolled with another key: it stays so.")
        }
        enrolled[reader] = trust
    }
}

/// Certifies terminals' keys, for tests: its own key is published, as the one that tokens are signed with.
struct TestAuthority {
    // TEST: a published key.  Trusting it means trusting everyone.
    private static let scalar: [UInt8] = Array("psp-sandbox: test authority key.".utf8)

    let certificate: Certificate
    private let key: P256.Signing.PrivateKey
    private let name: DistinguishedName
    private let identifier: SubjectKeyIdentifier

    init() throws {
        let key = try P256.Signing.PrivateKey(rawRepresentation: Self.scalar)
        self.key = key
        let identifier = SubjectKeyIdentifier(hash: Certificate.PublicKey(key.publicKey))
        self.identifier = identifier
        name = try DistinguishedName { CommonName("psp-sandbox test authority") }
        certificate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: .init(key.publicKey), notValidBefore: Self.start,
            notValidAfter: Self.end, issuer: name, subject: name, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                Critical(KeyUsage(keyCertSign: true))
                identifier
            }, issuerPrivateKey: .init(key))
    }

    func issue(_ request: CertificateSigningRequest) throws -> Certificate {
        try Certificate(
            version: .v3, serialNumber: .init(), publicKey: request.publicKey, notValidBefore: Self.start,
            notValidAfter: Self.end, issuer: name, subject: request.subject, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try Certificate.Extensions {
                Critical(BasicConstraints.notCertificateAuthority)
                Critical(KeyUsage(digitalSignature: true))
                SubjectKeyIdentifier(hash: request.publicKey)
                AuthorityKeyIdentifier(keyIdentifier: identifier.keyIdentifier)
            }, issuerPrivateKey: .init(key))
    }

    // A terminal's clock may be wrong.
    private static let start = Date(timeIntervalSince1970: 1_577_836_800)
    // RFC 5280, 4.1.2.5: no well-defined end.
    private static let end = Date(timeIntervalSince1970: 253_402_300_799)
}

extension Certificate {
    /// - Parameter text: DER in Base64.
    init(base64 text: String) throws {
        guard let bytes = Data(base64Encoded: text) else { throw CocoaError(.coderInvalidValue) }
        try self.init(derEncoded: Array(bytes))
    }

    var base64: String {
        get throws {
            var serializer = DER.Serializer()
            try serializer.serialize(self)
            return Data(serializer.serializedBytes).base64EncodedString()
        }
    }

    /// - Parameter others: DER in Base64.
    func isVouchedFor(by root: Certificate, through others: some Sequence<String>) async -> Bool {
        guard let others = try? others.map(Certificate.init(base64:)) else { return false }
        var verifier = Verifier(rootCertificates: CertificateStore([root])) { RFC5280Policy() }
        guard case .validCertificate = await verifier.validate(leaf: self, intermediates: CertificateStore(others))
        else { return false }
        return true
    }
}
