import CCryptoLegacy

/// The one-way functions of integrated data storage (EMV Contactless Book C-2, 8.2, OWHF2, and 8.3, OWHF2AES): 8 bytes of 8.
enum DataStorageDigest {
    struct Key {
        /// DS ID, tag 9F5E: 8 to 11 bytes of digits.
        let identifier: [UInt8]
        /// DS Requested Operator ID, tag 9F5C: 8 bytes.
        let operatorIdentifier: [UInt8]
    }

    /// Computes the digest of data storage version 1: triple DES.
    ///
    /// - Returns: nil if a part has the wrong length.
    static func version1(_ input: [UInt8], _ key: Key) -> [UInt8]? {
        let (name, owner) = (key.identifier, key.operatorIdentifier)
        guard input.count == 8, (8...11).contains(name.count), owner.count == 8 else { return nil }
        // The first and the last six bytes, each pair of digits as a number, doubled.
        func half(_ digits: ArraySlice<UInt8>, _ rest: ArraySlice<UInt8>) -> [UInt8] {
            digits.map { (($0 >> 4) &* 10 &+ ($0 & 0x0F)) &* 2 } + rest
        }
        let left = half(name.prefix(6), owner[4..<6])
        let right = half(name.suffix(6), owner[6..<8])
        return encrypt(xor(owner, input), EVP_des_ede3_ecb(), left + right + left).map { xor($0, input) }
    }

    /// Computes the digest of data storage version 2: AES.
    ///
    /// - Returns: nil if a part has the wrong length.
    static func version2(_ input: [UInt8], _ key: Key) -> [UInt8]? {
        let (name, owner) = (key.identifier, key.operatorIdentifier)
        guard input.count == 8, (8...11).contains(name.count), owner.count == 8 else { return nil }
        let message = input + owner
        let filled = [UInt8](repeating: 0, count: 11 - name.count) + name
        return encrypt(message, EVP_aes_128_ecb(), filled + owner[4..<8] + [0x3F]).map {
            Array(xor($0, message).prefix(8))
        }
    }

    private static func xor(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] { zip(a, b).map { $0 ^ $1 } }

    private static func encrypt(_ message: [UInt8], _ cipher: OpaquePointer?, _ key: [UInt8]) -> [UInt8]? {
        guard let context = EVP_CIPHER_CTX_new() else { return nil }
        defer { EVP_CIPHER_CTX_free(context) }
        var result = [UInt8](repeating: 0, count: message.count + 32)
        var count: Int32 = 0
        guard EVP_EncryptInit_ex(context, cipher, nil, key, nil) == 1, EVP_CIPHER_CTX_set_padding(context, 0) == 1,
            EVP_EncryptUpdate(context, &result, &count, message, Int32(message.count)) == 1
        else { return nil }
        return Array(result.prefix(Int(count)))
    }
}
