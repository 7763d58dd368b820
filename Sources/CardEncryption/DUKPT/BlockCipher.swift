import CCryptoLegacy

/// AES and TDES in CBC mode, in place, so that nothing in the clear is copied; libcrypto wipes its key schedule.
///
/// The only file of this target that calls libcrypto.
struct BlockCipher {
    private let cipher: OpaquePointer?
    private let key: SecretKey
    let blockLength: Int

    /// AES with a key of 16, 24 or 32 bytes.
    static func aes(_ key: SecretKey) throws(DUKPTError) -> BlockCipher {
        switch key.count {
        case 16: BlockCipher(cipher: EVP_aes_128_cbc(), key: key, blockLength: 16)
        case 24: BlockCipher(cipher: EVP_aes_192_cbc(), key: key, blockLength: 16)
        case 32: BlockCipher(cipher: EVP_aes_256_cbc(), key: key, blockLength: 16)
        default: throw .keyLength(key.count)
        }
    }

    /// DES-EDE with a key of 16 bytes; with two equal halves it is single DES.
    static func tdes(_ key: SecretKey) throws(DUKPTError) -> BlockCipher {
        guard key.count == 16 else { throw .keyLength(key.count) }
        return BlockCipher(cipher: EVP_des_ede_cbc(), key: key, blockLength: 8)
    }

    /// - Parameter bytes: whole blocks.
    /// - Parameter iv: one block; nil for zeros, which makes of a single block that of ECB mode.
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

/// Padding of ISO/IEC 7816-4: 80, then zeros to the end of the block.
enum Padding {
    /// How long `count` bytes are when they are padded.
    static func paddedCount(_ count: Int, blockLength: Int) -> Int { (count / blockLength + 1) * blockLength }

    /// `data`, padded, in storage of its own.
    static func padded(_ data: UnsafeRawBufferPointer, blockLength: Int) -> WipedStorage {
        let storage = WipedStorage(count: paddedCount(data.count, blockLength: blockLength))
        storage.bytes.copyMemory(from: data)
        storage.bytes[data.count] = 0x80
        return storage
    }

    /// How many bytes are before the padding; nil if there is none, or more than a block of it.
    static func unpaddedCount(_ padded: UnsafeRawBufferPointer, blockLength: Int) -> Int? {
        guard let end = padded.lastIndex(where: { $0 != 0 }), padded[end] == 0x80, end >= padded.count - blockLength
        else { return nil }
        return end
    }
}
