import CCryptoLegacy
import SmartCard

/// DES with a double-length key, as cards and their issuers use it (ISO/IEC 18033-3; EMV Book 2, Annex A and B1).
///
/// This file, `AES.swift`, `ChipCurve.swift`, `ChipModularGroup.swift`, `Residue.swift` and `RSAKey.swift` are those of this
/// target that call libcrypto.
struct TripleDES: Hashable, Sendable {
    /// 16 bytes; parity bits are not looked at.
    let key: [UInt8]

    /// - Returns: nil unless there are 16 bytes.
    init?(_ key: [UInt8]) {
        guard key.count == 16 else { return nil }
        self.key = key
    }

    /// Encrypts blocks of 8 bytes, each separately.
    ///
    /// - Returns: nil if `blocks` is not a whole number of blocks, or libcrypto refuses.
    func encrypt(_ blocks: [UInt8]) -> [UInt8]? { Self.crypt(key, blocks, encrypting: true) }

    /// Encrypts blocks by CBC with an initial value of zeros.
    func encryptChained(_ blocks: [UInt8]) -> [UInt8]? {
        guard blocks.count.isMultiple(of: 8) else { return nil }
        var (out, previous): ([UInt8], [UInt8]) = ([], [UInt8](repeating: 0, count: 8))
        for start in stride(from: 0, to: blocks.count, by: 8) {
            guard let next = encrypt(zip(previous, blocks[start..<start + 8]).map { $0 ^ $1 }) else { return nil }
            out += next
            previous = next
        }
        return out
    }

    /// Reverses ``encryptChained(_:)``.
    func decryptChained(_ blocks: [UInt8]) -> [UInt8]? {
        let previous = [UInt8](repeating: 0, count: 8) + blocks
        return Self.crypt(key, blocks, encrypting: false).map { zip($0, previous).map { $0 ^ $1 } }
    }

    /// Derives the card's key from this issuer key by option A (EMV Book 2, Annex A1.4.1).
    ///
    /// The rightmost 16 digits of the account number and its sequence number are encrypted as they are and inverted.
    ///
    /// - Parameters:
    ///   - pan: the digits of the account number.
    ///   - sequence: PAN sequence number, two digits in a byte.
    func cardKey(pan: [UInt8], sequence: UInt8) -> TripleDES? {
        let digits = pan + [sequence >> 4, sequence & 0x0F]
        let last = [UInt8](repeating: 0, count: max(0, 16 - digits.count)) + digits.suffix(16)
        let y = stride(from: 0, to: 16, by: 2).map { last[$0] << 4 | last[$0 + 1] & 0x0F }
        return encrypt(y + y.map { ~$0 }).flatMap { TripleDES($0.map(Self.withOddParity)) }
    }

    static func withOddParity(_ byte: UInt8) -> UInt8 {
        (byte & 0xFE).nonzeroBitCount.isMultiple(of: 2) ? byte | 0x01 : byte & 0xFE
    }

    /// Single DES with a key of 8 bytes, over whole blocks.
    static func single(_ key: [UInt8], _ blocks: [UInt8], encrypting: Bool = true) -> [UInt8]? {
        guard key.count == 8 else { return nil }
        // Two equal halves make triple DES single: E(D(E(x))) = E(x).
        return crypt(key + key, blocks, encrypting: encrypting)
    }

    /// Returns the MAC of ISO/IEC 9797-1, algorithm 3, over `message`, which is already padded to whole blocks.
    ///
    /// Single DES runs in CBC mode with the left half of the key; the last block is then decrypted with the right half
    /// and encrypted with the left half.
    ///
    /// - Returns: 8 bytes; nil if `message` is empty or not whole blocks, or libcrypto refuses.
    func mac(_ message: [UInt8]) -> [UInt8]? {
        guard !message.isEmpty, message.count.isMultiple(of: 8) else { return nil }
        let left = Array(key[..<8])
        let right = Array(key[8...])
        var block = [UInt8](repeating: 0, count: 8)
        for start in stride(from: 0, to: message.count, by: 8) {
            for i in 0..<8 { block[i] ^= message[start + i] }
            guard let next = Self.single(left, block) else { return nil }
            block = next
        }
        guard let inner = Self.single(right, block, encrypting: false) else { return nil }
        return Self.single(left, inner)
    }

    /// The padding of a message to whole blocks (ISO/IEC 9797-1, 6.3).
    enum Padding: String, CaseIterable, Sendable {
        /// Method 1: as many `00` as it takes, possibly none.
        case zeros
        /// Method 2: `80`, then as many `00` as it takes.
        case marker = "80"
    }

    /// Returns the MAC over `message`, after it is padded.
    func mac(_ message: [UInt8], padding: Padding) -> [UInt8]? {
        switch padding {
        case .zeros: mac(message + [UInt8](repeating: 0, count: (8 - message.count % 8) % 8))
        case .marker: mac(BlockPadding.padded(message, blockLength: 8))
        }
    }

    /// DES-EDE in ECB mode, without padding.
    private static func crypt(_ key: [UInt8], _ blocks: [UInt8], encrypting: Bool) -> [UInt8]? {
        guard blocks.count.isMultiple(of: 8), blocks.count <= 1 << 20, let context = EVP_CIPHER_CTX_new() else {
            return nil
        }
        defer { EVP_CIPHER_CTX_free(context) }
        var out = [UInt8](repeating: 0, count: blocks.count + 8)
        var count: Int32 = 0
        guard EVP_CipherInit_ex(context, EVP_des_ede(), nil, key, nil, encrypting ? 1 : 0) == 1,
            EVP_CIPHER_CTX_set_padding(context, 0) == 1,
            EVP_CipherUpdate(context, &out, &count, blocks, Int32(blocks.count)) == 1,
            Int(count) == blocks.count
        else { return nil }
        return Array(out.prefix(blocks.count))
    }
}
