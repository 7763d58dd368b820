import Crypto
import CryptoExtras

/// Card data under AES DUKPT keys: encrypted in CBC mode, then authenticated with a CMAC (NIST SP 800-38B).
///
/// | Offset | Bytes | |
/// |---|---|---|
/// | 0 | 1 | `01`: this format |
/// | 1 | 1 | length of the data key and of the MAC key in bytes: `10`, `18`, `20` |
/// | 2 | 2 | usage of the data key: `3000` encryption, `3001` decryption, `3002` both ways |
/// | 4 | 12 | key serial number |
/// | 16 | 16 | initialization vector |
/// | 32 | *n* | ciphertext: card data ‖ `80` ‖ `00` up to a whole block of 16 |
/// | 32 + *n* | 16 | AES-CMAC under the key of usage `2000`, over all of the above ‖ the bound data ‖ its number of bytes in 8 bytes, most significant first |
///
/// The bound data, such as the identifier of the read, is sent separately; by default there is none.
///
/// For acquirers whose messages have separate fields, use ``keySerialNumber``, ``initializationVector`` and
/// ``ciphertext``.  The MAC covers this envelope; there is none over an acquirer's message.
public struct AESDUKPTEnvelope: Hashable, Sendable {
    /// All bytes of the envelope.
    public let bytes: [UInt8]
    public let keySerialNumber: AESKeySerialNumber
    /// The length of the data key and the MAC key.
    public let keyLength: AESKeyLength
    public let dataKeyUsage: DataKeyUsage

    /// The usage with which the data key is derived (X9.24-3:2017, table 2); acquirers differ.
    public enum DataKeyUsage: UInt16, Hashable, Sendable, CaseIterable {
        /// The device encrypts, the host decrypts: the standard's usage for card data.
        case encryption = 0x3000
        /// The host encrypts, the device decrypts; for hosts that use one key for both directions.
        case decryption = 0x3001
        case bothWays = 0x3002

        var keyUsage: AESDUKPTKeyUsage {
            switch self {
            case .encryption: .dataEncryption
            case .decryption: .dataDecryption
            case .bothWays: .dataBothWays
            }
        }
    }

    /// The initialization vector, 16 bytes.
    public var initializationVector: [UInt8] { Array(bytes[16..<32]) }
    /// The ciphertext: whole blocks of 16 bytes, at least one.
    public var ciphertext: [UInt8] { Array(bytes[32..<(bytes.count - 16)]) }
    /// The MAC, 16 bytes.
    public var mac: [UInt8] { Array(bytes.suffix(16)) }

    static let version: UInt8 = 1
    private static let maximumCount = 32 + Padding.paddedCount(ClearCardData.maximumCount, blockLength: 16) + 16

    /// Parses an envelope.
    ///
    /// - Throws: ``DUKPTError/envelope(at:)``.
    public init(_ bytes: [UInt8]) throws(DUKPTError) {
        guard bytes.first == Self.version else { throw .envelope(at: 0) }
        guard bytes.count <= Self.maximumCount else { throw .envelope(at: Self.maximumCount) }
        guard bytes.count >= 64, bytes.count.isMultiple(of: 16) else { throw .envelope(at: bytes.count) }
        guard let length = AESKeyLength(byteCount: Int(bytes[1])) else { throw .envelope(at: 1) }
        guard let usage = DataKeyUsage(rawValue: UInt16(bytes[2]) << 8 | UInt16(bytes[3])) else {
            throw .envelope(at: 2)
        }
        guard let number = try? AESKeySerialNumber(bytes[4..<16]) else { throw .envelope(at: 4) }
        (self.bytes, keySerialNumber, keyLength, dataKeyUsage) = (bytes, number, length, usage)
    }

    /// Seals card data under the key of one transaction.
    ///
    /// - Parameter bound: the data to which the envelope is bound.
    /// - Parameter initializationVector: 16 bytes.
    static func seal(
        _ data: ClearCardData, boundTo bound: [UInt8], scheme: AESDUKPTScheme, counter: UInt32,
        transactionKey: SecretKey,
        dataKeyUsage: DataKeyUsage, keyLength: AESKeyLength, initializationVector: [UInt8]
    ) throws -> AESDUKPTEnvelope {
        let dataKey = try scheme.workingKey(
            dataKeyUsage.keyUsage, length: keyLength, counter: counter, transactionKey: transactionKey)
        let cipher = try BlockCipher.aes(dataKey)
        let ciphertext = try cipher.seal(data, iv: initializationVector)
        let number = try AESKeySerialNumber(initialKeyID: scheme.initialKeyID, counter: counter)
        let authenticated =
            [version, UInt8(keyLength.byteCount)] + dataKeyUsage.rawValue.bigEndianBytes + number.bytes
            + initializationVector + ciphertext
        let mac = try Self.mac(
            authenticated, boundTo: bound, scheme: scheme, counter: counter, transactionKey: transactionKey,
            keyLength: keyLength)
        return try AESDUKPTEnvelope(authenticated + Array(mac))
    }

    /// Opens the envelope with the key of its transaction.
    func open<Result>(
        boundTo bound: [UInt8], scheme: AESDUKPTScheme, transactionKey: SecretKey,
        _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        let mac = try Self.mac(
            bytes.dropLast(16), boundTo: bound, scheme: scheme, counter: keySerialNumber.counter,
            transactionKey: transactionKey, keyLength: keyLength)
        guard mac == self.mac else { throw DUKPTError.notAuthentic }
        let dataKey = try scheme.workingKey(
            dataKeyUsage.keyUsage, length: keyLength, counter: keySerialNumber.counter, transactionKey: transactionKey)
        return try BlockCipher.aes(dataKey).open(ciphertext, iv: initializationVector, body)
    }

    private static func mac(
        _ authenticated: some Collection<UInt8>, boundTo bound: [UInt8], scheme: AESDUKPTScheme, counter: UInt32,
        transactionKey: SecretKey, keyLength: AESKeyLength
    ) throws -> AES.CMAC.MAC {
        let key = try scheme.workingKey(
            .macGeneration, length: keyLength, counter: counter, transactionKey: transactionKey)
        var mac = try AES.CMAC(key: key.withUnsafeBytes { SymmetricKey(data: $0) })
        mac.update(data: Array(authenticated))
        mac.update(data: bound)
        // Without the length, a part of one could be passed off as a part of the other.
        mac.update(data: UInt64(bound.count).bigEndianBytes)
        return mac.finalize()
    }
}

extension BlockCipher {
    /// Pads and encrypts.
    func seal(_ data: ClearCardData, iv: [UInt8]? = nil) throws -> [UInt8] {
        try data.withUnsafeBytes { Padding.padded($0, blockLength: blockLength) }.withUnsafeBytes { bytes in
            try encrypt(bytes, iv: iv)
            return Array(bytes)
        }
    }

    /// Decrypts and removes the padding.
    ///
    /// - Parameter body: receives the bytes in storage that is wiped when it returns.
    func open<Result>(
        _ ciphertext: [UInt8], iv: [UInt8]? = nil, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        let storage = ciphertext.withUnsafeBytes { WipedStorage($0) }
        try decrypt(storage.bytes, iv: iv)
        guard let count = Padding.unpaddedCount(storage.readOnly, blockLength: blockLength) else {
            throw DUKPTError.notAuthentic
        }
        return try withExtendedLifetime(storage) {
            try body(UnsafeRawBufferPointer(rebasing: storage.readOnly.prefix(count)))
        }
    }
}
