import CCryptoLegacy

/// AES and TDES in CBC mode, in place, so that no clear data is copied; libcrypto wipes its key schedule.
///
/// Only this file of the target calls libcrypto.
struct BlockCipher {
    private let cipher: OpaquePointer?
    private let key: SecretKey
    let blockLength: Int

    /// Creates AES with a key of 16, 24 or 32 bytes.
    static func aes(_ key: SecretKey) throws(DUKPTError) -> BlockCipher {
        switch key.count {
        case 16: BlockCipher(cipher: EVP_aes_128_cbc(), key: key, blockLength: 16)
        case 24: BlockCipher(cipher: EVP_aes_192_cbc(), key: key, blockLength: 16)
        case 32: BlockCipher(cipher: EVP_aes_256_cbc(), key: key, blockLength: 16)
        default: throw .keyLength(key.count)
        }
    }

    /// Creates DES-EDE with a key of 16 bytes; two equal halves make it single DES.
    static func tdes(_ key: SecretKey) throws(DUKPTError) -> BlockCipher {
        guard key.count == 16 else { throw .keyLength(key.count) }
        return BlockCipher(cipher: EVP_des_ede_cbc(), key: key, blockLength: 8)
    }

    /// Encrypts in place.
    ///
    /// - Parameter bytes: whole blocks.
    /// - Parameter iv: one block; nil for zeros, which for a single block equals ECB mode.
    func encrypt(_ bytes: UnsafeMutableRawBufferPointer, iv: [UInt8]? = nil) throws(DUKPTError) {
        try crypt(bytes, iv: iv, encrypting: true)
    }

    func decrypt(_ bytes: UnsafeMutableRawBufferPointer, iv: [UInt8]? = nil) throws(DUKPTError) {
        try crypt(bytes, iv: iv, encrypting: false)
    }

    private func crypt(
        _ bytes: UnsafeMutableRawBufferPointer, iv: [UInt8]?, encrypting: Bool
    ) throws(DUKPTError) {
        let iv = iv ?? [UInt8](repeating: 0, count: blockLength)
        guard bytes.count.isMultiple(of: blockLength), iv.count == blockLength,
            let length = Int32(exactly: bytes.count),
            let context = EVP_CIPHER_CTX_new()
        else {
            throw .cipher
        }
        defer { EVP_CIPHER_CTX_free(context) }
        let address = bytes.bindMemory(to: UInt8.self).baseAddress
        var count: Int32 = 0
        let done = key.withUnsafeBytes { key in
            EVP_CipherInit_ex(
                context, cipher, nil, key.bindMemory(to: UInt8.self).baseAddress, iv, encrypting ? 1 : 0) == 1
                && EVP_CIPHER_CTX_set_padding(context, 0) == 1
                && EVP_CipherUpdate(context, address, &count, address, length) == 1
        }
        guard done, count == length else { throw .cipher }
    }
}

/// The padding of ISO/IEC 7816-4: 80, followed by zeros to the end of the block.
enum Padding {
    /// Returns the length of `count` bytes with padding.
    static func paddedCount(_ count: Int, blockLength: Int) -> Int { (count / blockLength + 1) * blockLength }

    /// Returns `data` with padding, in separate storage.
    static func padded(_ data: UnsafeRawBufferPointer, blockLength: Int) -> WipedStorage {
        let storage = WipedStorage(count: paddedCount(data.count, blockLength: blockLength))
        storage.bytes.copyMemory(from: data)
        storage.bytes[data.count] = 0x80
        return storage
    }

    /// Returns the number of bytes before the padding; nil if there is none, or more than a block of it.
    static func unpaddedCount(_ padded: UnsafeRawBufferPointer, blockLength: Int) -> Int? {
        guard let end = padded.lastIndex(where: { $0 != 0 }), padded[end] == 0x80, end >= padded.count - blockLength
        else { return nil }
        return end
    }
}
