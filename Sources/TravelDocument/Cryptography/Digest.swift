import CCryptoLegacy

/// A hash function of a travel document.
enum Digest: Sendable {
    case sha1, sha224, sha256, sha384, sha512

    var function: OpaquePointer? {
        switch self {
        case .sha1: EVP_sha1()
        case .sha224: EVP_sha224()
        case .sha256: EVP_sha256()
        case .sha384: EVP_sha384()
        case .sha512: EVP_sha512()
        }
    }

    func hash(_ message: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard EVP_Digest(message, message.count, &digest, &count, function, nil) == 1 else {
            preconditionFailure("libcrypto has no \(self)")
        }
        return Array(digest.prefix(Int(count)))
    }
}
