import CCryptoLegacy
import SmartCard

/// AES with a key of 16, 24 or 32 bytes (FIPS 197), in the modes that travel documents and phones use.
struct AES: Hashable, Sendable {
    let key: [UInt8]

    /// - Returns: nil for a key of another length.
    init?(_ key: some Sequence<UInt8>) {
        self.key = Array(key)
        guard [16, 24, 32].contains(self.key.count) else { return nil }
    }

    /// Encrypts or decrypts whole blocks by CBC.
    func cbc(_ blocks: [UInt8], iv: [UInt8] = [UInt8](repeating: 0, count: 16), encrypting: Bool) -> [UInt8]? {
        let ciphers = [16: EVP_aes_128_cbc(), 24: EVP_aes_192_cbc(), 32: EVP_aes_256_cbc()]
        guard blocks.count.isMultiple(of: 16), blocks.count <= 1 << 20, iv.count == 16, let cipher = ciphers[key.count],
            let context = EVP_CIPHER_CTX_new()
        else { return nil }
        defer { EVP_CIPHER_CTX_free(context) }
        var out = [UInt8](repeating: 0, count: blocks.count + 16)
        var count: Int32 = 0
        guard EVP_CipherInit_ex(context, cipher, nil, key, iv, encrypting ? 1 : 0) == 1,
            EVP_CIPHER_CTX_set_padding(context, 0) == 1,
            EVP_CipherUpdate(context, &out, &count, blocks, Int32(blocks.count)) == 1, Int(count) == blocks.count
        else { return nil }
        return Array(out.prefix(blocks.count))
    }

    /// Returns the CMAC over a message of any length (NIST SP 800-38B, 6.2): 16 bytes.
    func cmac(_ message: [UInt8]) -> [UInt8]? {
        func doubled(_ block: [UInt8]) -> [UInt8] {
            var result = zip(block, block.dropFirst() + [0]).map { $0 << 1 | $1 >> 7 }
            if block[0] & 0x80 != 0 { result[15] ^= 0x87 }
            return result
        }
        guard let zero = cbc([UInt8](repeating: 0, count: 16), encrypting: true) else { return nil }
        let isWhole = !message.isEmpty && message.count.isMultiple(of: 16)
        let subkey = isWhole ? doubled(zero) : doubled(doubled(zero))
        var blocks = isWhole ? message : BlockPadding.padded(message, blockLength: 16)
        for index in 0..<16 { blocks[blocks.count - 16 + index] ^= subkey[index] }
        return cbc(blocks, encrypting: true).map { Array($0.suffix(16)) }
    }

    /// Encrypts by CTR, the counter a whole block, with a key of 16 bytes (NIST SP 800-38A, 6.5).
    func ctr(_ clear: [UInt8], counter: [UInt8]) -> [UInt8]? {
        guard key.count == 16, counter.count == 16, clear.count <= 1 << 20, let context = EVP_CIPHER_CTX_new() else {
            return nil
        }
        defer { EVP_CIPHER_CTX_free(context) }
        var out = [UInt8](repeating: 0, count: clear.count + 16)
        var count: Int32 = 0
        guard EVP_EncryptInit_ex(context, EVP_aes_128_ctr(), nil, key, counter) == 1,
            EVP_EncryptUpdate(context, &out, &count, clear, Int32(clear.count)) == 1, Int(count) == clear.count
        else { return nil }
        return Array(out.prefix(clear.count))
    }

    /// Encrypts by GCM without additional data, with a key of 32 bytes (NIST SP 800-38D, 7.1): the ciphertext, and a tag of 16
    /// bytes.
    func gcm(_ clear: [UInt8], iv: [UInt8]) -> [UInt8]? {
        guard key.count == 32, let context = EVP_CIPHER_CTX_new() else { return nil }
        defer { EVP_CIPHER_CTX_free(context) }
        var sealed = [UInt8](repeating: 0, count: clear.count)
        var tag = [UInt8](repeating: 0, count: 16)
        var count: Int32 = 0
        guard EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), nil, nil, nil) == 1,
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, Int32(iv.count), nil) == 1,
            EVP_EncryptInit_ex(context, nil, nil, key, iv) == 1,
            EVP_EncryptUpdate(context, &sealed, &count, clear, Int32(clear.count)) == 1, Int(count) == clear.count,
            EVP_EncryptFinal_ex(context, &tag, &count) == 1,
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, &tag) == 1
        else { return nil }
        return sealed + tag
    }
}
