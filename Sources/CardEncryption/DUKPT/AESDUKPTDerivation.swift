/// Length of a key of AES.
public enum AESKeyLength: Int, Hashable, Sendable, CaseIterable {
    case bits128 = 128
    case bits192 = 192
    case bits256 = 256

    var byteCount: Int { rawValue / 8 }
    /// X9.24-3:2017, table 2: the algorithm that the derived key is for.
    var algorithmIndicator: UInt16 {
        switch self {
        case .bits128: 2
        case .bits192: 3
        case .bits256: 4
        }
    }

    init?(byteCount: Int) { self.init(rawValue: byteCount * 8) }
}

/// What a derived key is for (X9.24-3:2017, table 2), as far as it is used here.
enum AESDUKPTKeyUsage: UInt16 {
    case pinEncryption = 0x1000
    /// The device makes MACs, the host verifies them.
    case macGeneration = 0x2000
    /// The device encrypts, the host decrypts.
    case dataEncryption = 0x3000
    /// The host encrypts, the device decrypts.
    case dataDecryption = 0x3001
    case dataBothWays = 0x3002
    /// Of intermediate derivation keys, and the initial key; no working key has these.
    case keyDerivation = 0x8000
    case initialKey = 0x8001
}

/// Key serial number of AES DUKPT (X9.24-3:2017, 6.1): 8 bytes that name the initial key, 4 of transaction counter.
public struct AESKeySerialNumber: Hashable, Sendable {
    /// Identifier of the base derivation key, 4 bytes, and derivation identifier, 4 bytes.
    public let initialKeyID: [UInt8]
    public let counter: UInt32

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

    /// 12 bytes.
    public var bytes: [UInt8] { initialKeyID + counter.bigEndianBytes }
}

extension AESKeySerialNumber: CustomStringConvertible {
    /// 24 hexadecimal digits.
    public var description: String { bytes.hex }
}

/// Derivation of keys by AES DUKPT (X9.24-3:2017, 6.3).
struct AESDUKPTScheme: DUKPTScheme {
    static let counterBits = 32
    static let maximumOneBits = 16

    /// 8 bytes.
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

    /// The initial key, of the base derivation key's length.
    static func initialKey(base: SecretKey, initialKeyID: [UInt8]) throws(DUKPTError) -> SecretKey {
        guard let length = AESKeyLength(byteCount: base.count) else { throw .keyLength(base.count) }
        guard initialKeyID.count == 8 else { throw .initialKeyIDLength(initialKeyID.count) }
        return try SecretKey(count: base.count) { key throws(DUKPTError) in
            try derive(.initialKey, length, context: initialKeyID, from: base, into: key)
        }
    }

    /// - Parameter workingLength: not more than that of the transaction's key.
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

    /// Derivation data, enciphered block by block (X9.24-3:2017, 6.3.2 and 6.3.3).
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
        // A key of 192 bits takes half of its second block.
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
    /// Two digits a byte, capitals.
    var hex: String {
        let digits = Array("0123456789ABCDEF")
        return String(flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0xF)]] })
    }
}
