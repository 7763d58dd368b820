import CCryptoLegacy
import SmartCard

/// The cipher of a session with the chip, with its MAC (ICAO 9303-11, 9.8).
enum SessionCipher: UInt8, Hashable, Sendable, CaseIterable {
    // The raw values are the last component of PACE's object identifiers (9.2.3).
    case tripleDES = 1
    case aes128, aes192, aes256

    var keyLength: Int {
        switch self {
        case .tripleDES, .aes128: 16
        case .aes192: 24
        case .aes256: 32
        }
    }

    /// `3DES`, `AES-128`
    var name: String { self == .tripleDES ? "3DES" : "AES-\(keyLength * 8)" }

    var blockLength: Int { self == .tripleDES ? 8 : 16 }

    /// The use of a derived key: the counter c of ICAO 9303-11, 9.7.1.
    enum KeyUse: UInt8 {
        case encryption = 1
        case authentication = 2
        /// Decryption of the nonce in PACE.
        case password = 3
    }

    /// Derives a key from a shared secret (ICAO 9303-11, 9.7.1).
    ///
    /// - Returns: ``keyLength`` bytes.  Parity bits of a DES key are as they come: libcrypto does not look at them.
    func deriveKey(_ secret: [UInt8], for use: KeyUse) -> [UInt8] {
        let digest: Digest = self == .aes192 || self == .aes256 ? .sha256 : .sha1
        return Array(digest.hash(secret + [0, 0, 0, use.rawValue]).prefix(keyLength))
    }

    // MARK: Encryption

    /// Encrypts or decrypts whole blocks by CBC, without padding.
    ///
    /// - Parameter iv: ``blockLength`` bytes; nil: zeros.
    /// - Returns: nil if `blocks` is not a whole number of blocks.
    func cbc(_ blocks: [UInt8], key: [UInt8], iv: [UInt8]? = nil, encrypting: Bool) -> [UInt8]? {
        let function =
            switch self {
            case .tripleDES: EVP_des_ede_cbc()
            case .aes128: EVP_aes_128_cbc()
            case .aes192: EVP_aes_192_cbc()
            case .aes256: EVP_aes_256_cbc()
            }
        return crypt(blocks, function, key: key, iv: iv, encrypting: encrypting)
    }

    /// Encrypts one block.
    func encrypt(block: [UInt8], key: [UInt8]) -> [UInt8]? { cbc(block, key: key, encrypting: true) }

    private func crypt(
        _ blocks: [UInt8], _ function: OpaquePointer?, key: [UInt8], iv: [UInt8]?, encrypting: Bool
    ) -> [UInt8]? {
        let iv = iv ?? [UInt8](repeating: 0, count: blockLength)
        guard blocks.count.isMultiple(of: blockLength), blocks.count <= 1 << 20, iv.count == blockLength,
            let context = EVP_CIPHER_CTX_new()
        else { return nil }
        defer { EVP_CIPHER_CTX_free(context) }
        var out = [UInt8](repeating: 0, count: blocks.count + blockLength)
        var count: Int32 = 0
        guard EVP_CipherInit_ex(context, function, nil, key, iv, encrypting ? 1 : 0) == 1,
            EVP_CIPHER_CTX_set_padding(context, 0) == 1,
            EVP_CipherUpdate(context, &out, &count, blocks, Int32(blocks.count)) == 1, Int(count) == blocks.count
        else { return nil }
        return Array(out.prefix(blocks.count))
    }

    // MARK: Authentication

    /// Returns the MAC of a message, 8 bytes: retail MAC for triple DES, CMAC cut to its first half for AES
    /// (ICAO 9303-11, 9.8.6.2 and 9.8.7.2).
    ///
    /// - Parameter message: not padded for AES; padded by the caller for triple DES.
    func mac(_ message: [UInt8], key: [UInt8]) -> [UInt8]? {
        self == .tripleDES ? retailMAC(message, key: key) : cmac(message, key: key)
    }

    /// ISO/IEC 9797-1, algorithm 3: single DES by CBC with the left half of the key, and triple DES at the end.
    private func retailMAC(_ message: [UInt8], key: [UInt8]) -> [UInt8]? {
        guard !message.isEmpty, message.count.isMultiple(of: 8), key.count == 16 else { return nil }
        // Under a key of two equal halves, triple DES is single DES.
        let left = Array(key.prefix(8))
        guard let chained = cbc(Array(message.dropLast(8)), key: left + left, encrypting: true) else { return nil }
        return cbc(Array(message.suffix(8)), key: key, iv: chained.isEmpty ? nil : chained.suffix(8), encrypting: true)
    }

    private func cmac(_ message: [UInt8], key: [UInt8]) -> [UInt8]? {
        var mac = [UInt8](repeating: 0, count: 16)
        var count = 0
        let name = "AES-\(keyLength * 8)-CBC"
        guard
            EVP_Q_mac(
                nil, "CMAC", nil, name, nil, key, key.count, message, message.count, &mac, mac.count, &count) != nil,
            count == 16
        else { return nil }
        return Array(mac.prefix(8))
    }

    // MARK: Padding

    /// Pads a message to whole blocks: `80`, then as many `00` as it takes (ISO/IEC 9797-1, padding method 2).
    func padded(_ message: [UInt8]) -> [UInt8] {
        BlockPadding.padded(message, blockLength: blockLength)
    }

    /// Removes the padding.
    ///
    /// - Returns: nil if there is none.
    func unpadded(_ blocks: [UInt8]) -> [UInt8]? {
        BlockPadding.unpadded(blocks, blockLength: blockLength)
    }
}
