import CCryptoLegacy
import SmartCard

/// A public key that verifies signatures (RFC 5280, 4.1.2.7).
struct SignatureKey: Sendable {
    enum Kind: Hashable, Sendable {
        /// RSA, with its modulus, which has no leading zeros.
        case rsa(modulus: [UInt8])
        case elliptic(NamedCurve)
    }

    /// A key that cannot be used.
    enum Fault: Error, Hashable {
        case malformed(MalformedObject)
        case unsupported(OID)
        /// The domain parameters are those of no curve with a name.
        case unknownCurve
    }

    let kind: Kind
    private let key: Key

    /// A key of libcrypto, which several threads may use at once.
    private final class Key: @unchecked Sendable {
        let pointer: OpaquePointer

        /// - Parameter info: SubjectPublicKeyInfo.
        init?(_ info: [UInt8]) {
            let pointer = info.withUnsafeBufferPointer { bytes -> OpaquePointer? in
                var next = bytes.baseAddress
                return d2i_PUBKEY(nil, &next, bytes.count)
            }
            ERR_clear_error()
            guard let pointer else { return nil }
            self.pointer = pointer
        }

        deinit { EVP_PKEY_free(pointer) }
    }

    /// The lengths of a modulus, in bytes.
    private static let modulusLengths = 128...1024

    /// Parses a SubjectPublicKeyInfo.
    init(_ info: ASN1) throws(Fault) {
        do {
            let due = "SubjectPublicKeyInfo"
            guard info.tag == ASN1.Tag.sequence else { throw info.fault(due) }
            var fields = info.fields
            let algorithm = try AlgorithmIdentifier(fields.take(due))
            let bits = try fields.take(ASN1.Tag.bitString, due).bits(due)
            try fields.end(due)
            switch algorithm.oid {
            case .rsaEncryption, .rsaPSS: (kind, key) = try Self.rsa(info, bits)
            case .ecPublicKey: (kind, key) = try Self.elliptic(info, algorithm, bits)
            default: throw Fault.unsupported(algorithm.oid)
            }
        } catch let error as MalformedObject {
            throw .malformed(error)
        } catch let fault as Fault {
            throw fault
        } catch {
            throw .malformed(info.fault("SubjectPublicKeyInfo"))
        }
    }

    /// The numbers of an RSA key without leading zeros (RFC 8017, A.1.1).
    static func rsaNumbers(
        _ bits: ArraySlice<UInt8>
    ) throws(MalformedObject) -> (modulus: [UInt8], exponent: [UInt8]) {
        let due = "RSAPublicKey"
        var fields = try ASN1(bits, ASN1.Tag.sequence, due).fields
        let modulus = try fields.take(ASN1.Tag.integer, due).natural(due)
        let exponent = try fields.take(ASN1.Tag.integer, due).natural(due)
        try fields.end(due)
        return (modulus, exponent)
    }

    private static func rsa(_ info: ASN1, _ bits: [UInt8]) throws -> (Kind, Key) {
        let (modulus, exponent) = try rsaNumbers(bits[...])
        guard modulusLengths.contains(modulus.count), (1...8).contains(exponent.count),
            (exponent.last ?? 0) & 1 == 1, exponent != [1], let key = Key(Array(info.encoded))
        else { throw info.fault("an RSA key of 1,024 to 8,192 bits") }
        return (.rsa(modulus: modulus), key)
    }

    /// The key that libcrypto gets has the curve's name, and nothing else of the parameters.
    private static func elliptic(
        _ info: ASN1, _ algorithm: AlgorithmIdentifier, _ point: [UInt8]
    ) throws -> (Kind, Key) {
        guard let parameters = algorithm.parameters, let curve = try NamedCurve(parameters) else {
            throw Fault.unknownCurve
        }
        let named = TLVTag(0x30).encode(
            objects: TLVTag(0x30).encode(
                objects: TLVTag(0x06).encode(algorithm.oid.content), TLVTag(0x06).encode(curve.oid.content)),
            TLVTag(0x03).encode([0x00] + point))
        // An encoding of infinity has one byte.
        guard point.count > curve.fieldLength, let key = Key(named) else { throw info.fault("a point of the curve") }
        return (.elliptic(curve), key)
    }

    /// Verifies a signature over a message.
    func verify(_ signature: [UInt8], of message: [UInt8], by algorithm: SignatureAlgorithm) -> Bool {
        var signature = signature
        switch (kind, algorithm.scheme) {
        case (.rsa, .rsaPKCS1), (.rsa, .rsaPSS), (.elliptic, .ecdsa): break
        case (.elliptic(let curve), .plainECDSA):
            guard signature.count == 2 * curve.orderLength else { return false }
            signature = Self.sequence(ofPlain: signature)
        default: return false
        }
        guard let context = EVP_MD_CTX_new() else { preconditionFailure("no memory") }
        defer {
            EVP_MD_CTX_free(context)
            ERR_clear_error()
        }
        return withExtendedLifetime(key) {
            var keyContext: OpaquePointer?
            guard EVP_DigestVerifyInit(context, &keyContext, algorithm.digest.function, nil, key.pointer) == 1 else {
                return false
            }
            if case .rsaPSS(let mask, let saltLength) = algorithm.scheme {
                guard EVP_PKEY_CTX_set_rsa_padding(keyContext, RSA_PKCS1_PSS_PADDING) == 1,
                    EVP_PKEY_CTX_set_rsa_mgf1_md(keyContext, mask.function) == 1,
                    EVP_PKEY_CTX_set_rsa_pss_saltlen(keyContext, Int32(saltLength)) == 1
                else { return false }
            } else if case .rsaPKCS1 = algorithm.scheme {
                guard EVP_PKEY_CTX_set_rsa_padding(keyContext, RSA_PKCS1_PADDING) == 1 else { return false }
            }
            return EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
        }
    }

    /// The r and s of a plain signature, as INTEGERs in a SEQUENCE (BSI TR-03111, 5.2.1).
    private static func sequence(ofPlain signature: [UInt8]) -> [UInt8] {
        let half = signature.count / 2
        let numbers = [signature.prefix(half), signature.suffix(half)].map { number -> [UInt8] in
            let bytes = Array(number.drop { $0 == 0 })
            return TLVTag(0x02).encode((bytes.first ?? 0x80) < 0x80 ? bytes : [0x00] + bytes)
        }
        return TLVTag(0x30).encode(numbers.joined())
    }

    /// Raises a signature to the public exponent (RFC 8017, 5.2.2, RSAVP1).
    ///
    /// - Returns: as many bytes as the modulus; nil for another kind of key, and for a signature that is no number
    ///   below it.
    func recover(_ signature: [UInt8]) -> [UInt8]? {
        guard case .rsa(let modulus) = kind, signature.count == modulus.count,
            let context = EVP_PKEY_CTX_new(key.pointer, nil)
        else { return nil }
        defer {
            EVP_PKEY_CTX_free(context)
            ERR_clear_error()
        }
        var message = [UInt8](repeating: 0, count: modulus.count)
        var count = message.count
        let isRecovered = withExtendedLifetime(key) {
            EVP_PKEY_verify_recover_init(context) == 1
                && EVP_PKEY_CTX_set_rsa_padding(context, RSA_NO_PADDING) == 1
                && EVP_PKEY_verify_recover(context, &message, &count, signature, signature.count) == 1
        }
        return isRecovered && count == modulus.count ? message : nil
    }
}
