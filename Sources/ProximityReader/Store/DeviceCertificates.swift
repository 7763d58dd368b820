import CardEncryption
import Crypto
import Foundation
import SwiftASN1
import X509

/// Certificates for a device's key, in the form in which a batch carries them.
///
/// The device makes them itself.  The intermediate certificate is self-signed with a key that is then discarded, so
/// that it vouches for this leaf alone.  A payment service imports it when the terminal is set up
/// (``ProximityReaderSystem/Ledger/certificates()``), and trusts it from then on.
enum DeviceCertificates {
    static func make(for key: DeviceKey) throws -> StoreDetail.Opened {
        let authority = P256.Signing.PrivateKey()
        let number = UUID().uuidString
        let authorityName = try DistinguishedName { CommonName("Terminal authority \(number)") }
        let name = try DistinguishedName { CommonName("Terminal \(number)") }
        // A terminal's clock may be wrong when it is set up.
        let start = Date(timeIntervalSince1970: 1_577_836_800)
        // RFC 5280, 4.1.2.5: no well-defined expiration.
        let end = Date(timeIntervalSince1970: 253_402_300_799)
        let identifier = SubjectKeyIdentifier(hash: Certificate.PublicKey(authority.publicKey))
        let intermediate = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: .init(authority.publicKey), notValidBefore: start,
            notValidAfter: end, issuer: authorityName, subject: authorityName, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try Certificate.Extensions {
                Critical(BasicConstraints.isCertificateAuthority(maxPathLength: 0))
                Critical(KeyUsage(keyCertSign: true))
                identifier
            }, issuerPrivateKey: .init(authority))
        let leaf = try Certificate(
            version: .v3, serialNumber: .init(), publicKey: .init(key.signer.publicKey), notValidBefore: start,
            notValidAfter: end, issuer: authorityName, subject: name, signatureAlgorithm: .ecdsaWithSHA256,
            extensions: try Certificate.Extensions {
                Critical(BasicConstraints.notCertificateAuthority)
                Critical(KeyUsage(digitalSignature: true))
                SubjectKeyIdentifier(hash: Certificate.PublicKey(key.signer.publicKey))
                AuthorityKeyIdentifier(keyIdentifier: identifier.keyIdentifier)
            }, issuerPrivateKey: .init(authority))
        return StoreDetail.Opened(
            leafCertificate: try base64(leaf), intermediateCertificate: try base64(intermediate))
    }

    /// DER in Base64.
    private static func base64(_ certificate: Certificate) throws -> String {
        var serializer = DER.Serializer()
        try serializer.serialize(certificate)
        return Data(serializer.serializedBytes).base64EncodedString()
    }
}
