/// The length of an AES key.
public enum AESKeyLength: Int, Hashable, Sendable, CaseIterable {
    case bits128 = 128
    case bits192 = 192
    case bits256 = 256

    var byteCount: Int { rawValue / 8 }
    /// X9.24-3:2017, table 2: the algorithm of the derived key.
    var algorithmIndicator: UInt16 {
        switch self {
        case .bits128: 2
        case .bits192: 3
        case .bits256: 4
        }
    }

    init?(byteCount: Int) { self.init(rawValue: byteCount * 8) }
}

/// The usage of a derived key (X9.24-3:2017, table 2), as far as it is needed here.
enum AESDUKPTKeyUsage: UInt16 {
    case pinEncryption = 0x1000
    /// The device generates MACs, the host verifies them.
    case macGeneration = 0x2000
    /// The device encrypts, the host decrypts.
    case dataEncryption = 0x3000
    /// The host encrypts, the device decrypts.
    case dataDecryption = 0x3001
    case dataBothWays = 0x3002
    /// For intermediate derivation keys and the initial key; never for a working key.
    case keyDerivation = 0x8000
    case initialKey = 0x8001
}

/// An AES DUKPT key serial number (X9.24-3:2017, 6.1): 8 bytes that identify the initial key, 4 bytes of transaction
/// counter.
public struct AESKeySerialNumber: Hashable, Sendable {
    /// The identifier of the base derivation key, 4 bytes, and the derivation identifier, 4 bytes.
    public let initialKeyID: [UInt8]
    public let counter: UInt32

    /// Parses a key serial number.
    ///
    /// - Throws: ``DUKPTError/keySerialNumber`` unless there are 12 bytes, the last four of which are the counter of a
    ///   transaction: not 0, and with at most 16 one bits.
    public init(_ bytes: some Collection<UInt8>) throws(DUKPTError) {
        guard bytes.count == 12 else { throw .keySerialNumber }
        try self.init(initialKeyID: Array(bytes.prefix(8)), counter: bytes.suffix(4).reduce(0) { $0 << 8 | UInt32($1) })
    }

    init(initialKeyID: [UInt8], counter: UInt32) throws(DUKPTError) {
        guard AESDUKPTScheme.isValid(counter) else { throw .keySerialNumber }
        (self.initialKeyID, self.counter) = (initialKeyID, counter)
    }

    /// The 12 bytes of the key serial number.
    public var bytes: [UInt8] { initialKeyID + counter.bigEndianBytes }
}

extension AESKeySerialNumber: CustomStringConvertible {
    /// The bytes as 24 hexadecimal digits.
    public var description: String { bytes.hex }
}

/// The key derivation of AES DUKPT (X9.24-3:2017, 6.3).
struct AESDUKPTScheme: DUKPTScheme {
    static let counterBits = 32
    static let maximumOneBits = 16

    /// The identifier of the initial key, 8 bytes.
    let initialKeyID: [UInt8]
    let length: AESKeyLength

    var keyLength: Int { length.byteCount }
    var stateHeader: [UInt8] { initialKeyID + [UInt8(keyLength)] }

    func derive(
        counter: UInt32, from parent: SecretKey, into child: UnsafeMutableRawBufferPointer
    ) throws(DUKPTError) {
        try Self.derive(
            .keyDerivation, length, context: initialKeyID.suffix(4) + counter.bigEndianBytes, from: parent, into: child)
    }

    /// Derives the initial key, which has the base derivation key's length.
    static func initialKey(base: SecretKey, initialKeyID: [UInt8]) throws(DUKPTError) -> SecretKey {
        guard let length = AESKeyLength(byteCount: base.count) else { throw .keyLength(base.count) }
        guard initialKeyID.count == 8 else { throw .initialKeyIDLength(initialKeyID.count) }
        return try SecretKey(count: base.count) { key throws(DUKPTError) in
            try derive(.initialKey, length, context: initialKeyID, from: base, into: key)
        }
    }

    /// Derives a working key.
    ///
    /// - Parameter workingLength: not more than the length of the transaction's key.
    func workingKey(
        _ usage: AESDUKPTKeyUsage, length workingLength: AESKeyLength, counter: UInt32, transactionKey: SecretKey
    ) throws(DUKPTError) -> SecretKey {
        guard workingLength.byteCount <= keyLength else { throw .workingKeyTooLong }
        return try SecretKey(count: workingLength.byteCount) { key throws(DUKPTError) in
            try Self.derive(
                usage, workingLength, context: initialKeyID.suffix(4) + counter.bigEndianBytes, from: transactionKey,
                into: key)
        }
    }

    /// Enciphers derivation data block by block (X9.24-3:2017, 6.3.2 and 6.3.3).
    ///
    /// - Parameter context: the last 8 bytes of the derivation data.
    private static func derive(
        _ usage: AESDUKPTKeyUsage, _ length: AESKeyLength, context: [UInt8], from parent: SecretKey,
        into key: UnsafeMutableRawBufferPointer
    ) throws(DUKPTError) {
        let cipher = try BlockCipher.aes(parent)
        func fill(_ block: UnsafeMutableRawBufferPointer, number: Int) throws(DUKPTError) {
            block.copyBytes(
                from: [0x01, UInt8(number)] + usage.rawValue.bigEndianBytes
                    + length.algorithmIndicator.bigEndianBytes + UInt16(length.rawValue).bigEndianBytes + context)
            try cipher.encrypt(block)
        }
        let whole = key.count / 16
        for i in 0..<whole {
            try fill(UnsafeMutableRawBufferPointer(rebasing: key[(i * 16)..<((i + 1) * 16)]), number: i + 1)
        }
        guard key.count > whole * 16 else { return }
        // A key of 192 bits uses half of its second block.
        let block = WipedStorage(count: 16)
        try fill(block.bytes, number: whole + 1)
        key[(whole * 16)...].copyBytes(from: block.bytes.prefix(key.count - whole * 16))
        withExtendedLifetime(block) {}
    }
}

extension FixedWidthInteger {
    var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian, Array.init) }
}

extension Sequence<UInt8> {
    /// The bytes as upper-case hexadecimal digits, two per byte.
    var hex: String {
        let digits = Array("0123456789ABCDEF")
        return String(flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] })
    }
}
