import Dispatch
import Waiting

/// A TDES DUKPT key serial number (X9.24-1:2009, A.1.1): 10 bytes, whose last 21 bits are the transaction counter.
public struct TDESKeySerialNumber: Hashable, Sendable {
    /// The 10 bytes of the key serial number.
    public let bytes: [UInt8]

    /// The 59 bits that identify the initial key, with zeros for the counter.
    public var initialKeyID: [UInt8] { Self.withoutCounter(bytes) }
    public var counter: UInt32 { bytes.suffix(3).reduce(0) { $0 << 8 | UInt32($1) } & TDESDUKPTScheme.counterMask }

    /// Parses a key serial number.
    ///
    /// - Throws: ``DUKPTError/keySerialNumber`` unless there are 10 bytes with the counter of a transaction: not 0,
    ///   and with at most 10 one bits.
    public init(_ bytes: some Collection<UInt8>) throws(DUKPTError) {
        guard bytes.count == 10 else { throw .keySerialNumber }
        self.bytes = Array(bytes)
        guard TDESDUKPTScheme.isValid(counter) else { throw .keySerialNumber }
    }

    static func withoutCounter(_ bytes: [UInt8]) -> [UInt8] { bytes.prefix(7) + [bytes[7] & 0xE0, 0, 0] }
}

extension TDESKeySerialNumber: CustomStringConvertible {
    /// The bytes as 20 hexadecimal digits.
    public var description: String { bytes.hex }
}

/// The key derivation of TDES DUKPT (X9.24-1:2009, Annex A).
struct TDESDUKPTScheme: DUKPTScheme {
    static let counterBits = 21
    static let maximumOneBits = 10
    static let counterMask: UInt32 = 0x1F_FFFF

    /// The identifier of the initial key: 10 bytes with the counter 0.
    let initialKeyID: [UInt8]

    var keyLength: Int { 16 }
    var stateHeader: [UInt8] { initialKeyID }

    func keySerialNumber(_ counter: UInt32) -> [UInt8] {
        var bytes = initialKeyID
        for (i, byte) in counter.bigEndianBytes.dropFirst().enumerated() { bytes[7 + i] |= byte }
        return bytes
    }

    /// Derives the initial key: the left 8 bytes of the key serial number, enciphered with the base derivation key and
    /// with its variant (X9.24-1:2009, A.6).
    static func initialKey(base: SecretKey, initialKeyID: [UInt8]) throws(DUKPTError) -> SecretKey {
        guard base.count == 16 else { throw .keyLength(base.count) }
        return try SecretKey(count: 16) { key throws(DUKPTError) in
            for (half, variant) in [(0, [UInt8](repeating: 0, count: 8)), (8, derivationVariant)] {
                let block = UnsafeMutableRawBufferPointer(rebasing: key[half..<(half + 8)])
                block.copyBytes(from: initialKeyID.prefix(8))
                try BlockCipher.tdes(base.combined(with: variant)).encrypt(block)
            }
        }
    }

    /// Performs non-reversible key generation (X9.24-1:2009, A.2): the right 64 bits of the key serial number,
    /// exclusive-or the right half of the key, enciphered with DES under the left half, exclusive-or the right half.  The
    /// key produces the right half of the new key, its variant the left half.
    func derive(
        counter: UInt32, from parent: SecretKey, into child: UnsafeMutableRawBufferPointer
    ) throws(DUKPTError) {
        let register = keySerialNumber(counter).suffix(8)
        do {
            for (half, variant) in [(8, [UInt8](repeating: 0, count: 8)), (0, Self.derivationVariant)] {
                let key = parent.combined(with: variant)
                let block = UnsafeMutableRawBufferPointer(rebasing: child[half..<(half + 8)])
                block.copyBytes(from: register)
                try key.withUnsafeBytes { key in
                    for i in 0..<8 { block[i] ^= key[8 + i] }
                    try BlockCipher.tdes(
                        SecretKey(count: 16) { double in
                            for i in 0..<16 { double[i] = key[i % 8] }
                        }
                    ).encrypt(block)
                    for i in 0..<8 { block[i] ^= key[8 + i] }
                }
            }
        } catch {
            throw .cipher
        }
    }

    /// Derives the data key: the variant of the transaction's key, enciphered with itself half by half (X9.24-1:2009,
    /// A.4.1).
    static func dataKey(
        _ variant: TDESDUKPTEnvelope.DataKeyVariant, of transactionKey: SecretKey
    ) throws(DUKPTError) -> SecretKey {
        let variant = transactionKey.combined(with: variant.mask)
        let cipher = try BlockCipher.tdes(variant)
        return try SecretKey(count: 16) { key throws(DUKPTError) in
            variant.withUnsafeBytes { key.copyMemory(from: $0) }
            for half in [0, 8] { try cipher.encrypt(UnsafeMutableRawBufferPointer(rebasing: key[half..<(half + 8)])) }
        }
    }

    private static let derivationVariant: [UInt8] = [0xC0, 0xC0, 0xC0, 0xC0, 0, 0, 0, 0]
}

extension SecretKey {
    /// Returns the key with each half exclusive-or `mask`, 8 bytes.
    fileprivate func combined(with mask: [UInt8]) -> SecretKey {
        SecretKey(count: count) { key in
            withUnsafeBytes { bytes in for i in 0..<count { key[i] = bytes[i] ^ mask[i % 8] } }
        }
    }
}

/// Card data under a TDES DUKPT key, encrypted in CBC mode and **not authenticated**, for acquirers that accept nothing
/// newer.  Only the key serial number binds it to a transaction.
///
/// | Offset | Bytes | |
/// |---|---|---|
/// | 0 | 1 | `02`: this format |
/// | 1 | 1 | variant of the data key: `01` request, `02` response |
/// | 2 | 10 | key serial number |
/// | 12 | 8 | initialization vector |
/// | 20 | *n* | ciphertext: card data ‖ `80` ‖ `00` up to a whole block of 8 |
public struct TDESDUKPTEnvelope: Hashable, Sendable {
    /// All bytes of the envelope.
    public let bytes: [UInt8]
    public let keySerialNumber: TDESKeySerialNumber
    public let dataKeyVariant: DataKeyVariant

    /// The variant that turns the transaction's key into the data key (X9.24-1:2009, A.4.1); acquirers differ.
    public enum DataKeyVariant: UInt8, Hashable, Sendable, CaseIterable {
        /// For data in requests, or in both directions: the standard's variant for card data.
        case request = 1
        /// For data in responses.
        case response = 2

        /// The mask of each half.
        var mask: [UInt8] {
            switch self {
            case .request: [0, 0, 0, 0, 0, 0xFF, 0, 0]
            case .response: [0, 0, 0, 0xFF, 0, 0, 0, 0]
            }
        }
    }

    /// The initialization vector, 8 bytes.
    public var initializationVector: [UInt8] { Array(bytes[12..<20]) }
    /// The ciphertext: whole blocks of 8 bytes, at least one.
    public var ciphertext: [UInt8] { Array(bytes[20...]) }

    static let version: UInt8 = 2
    private static let maximumCount = 20 + Padding.paddedCount(ClearCardData.maximumCount, blockLength: 8)

    /// Parses an envelope.
    ///
    /// - Throws: ``DUKPTError/envelope(at:)``.
    public init(_ bytes: [UInt8]) throws(DUKPTError) {
        guard bytes.first == Self.version else { throw .envelope(at: 0) }
        guard bytes.count <= Self.maximumCount else { throw .envelope(at: Self.maximumCount) }
        guard bytes.count >= 28, (bytes.count - 20).isMultiple(of: 8) else { throw .envelope(at: bytes.count) }
        guard let variant = DataKeyVariant(rawValue: bytes[1]) else { throw .envelope(at: 1) }
        guard let number = try? TDESKeySerialNumber(bytes[2..<12]) else { throw .envelope(at: 2) }
        (self.bytes, keySerialNumber, dataKeyVariant) = (bytes, number, variant)
    }
}

/// The device side of TDES DUKPT (ANSI X9.24-1:2009); otherwise like ``AESDUKPTDevice``.
public final class TDESDUKPTDevice: Sendable {
    private let state: DUKPTState<TDESDUKPTScheme>

    /// The options for sealing card data; acquirers differ.  The envelope states them for its recipient.
    public struct Options: Hashable, Sendable {
        public var dataKeyVariant: TDESDUKPTEnvelope.DataKeyVariant
        public var initializationVector: DUKPTInitializationVector

        public init(
            dataKeyVariant: TDESDUKPTEnvelope.DataKeyVariant = .request,
            initializationVector: DUKPTInitializationVector = .zero
        ) {
            self.dataKeyVariant = dataKeyVariant
            self.initializationVector = initializationVector
        }
    }

    /// Loads an initial key of 16 bytes into a new file.
    ///
    /// - Parameters:
    ///   - initialKey: 16 bytes.
    ///   - initialKeyID: 10 bytes: the initial key serial number, whose last 21 bits are ignored.
    ///   - file: a file that does not exist.
    /// - Throws: ``DUKPTError``; ``KeyFileError``, including `exists`.
    public init(loading initialKey: SecretKey, initialKeyID: [UInt8], into file: KeyFile) async throws {
        guard initialKeyID.count == 10 else { throw DUKPTError.initialKeyIDLength(initialKeyID.count) }
        let scheme = TDESDUKPTScheme(initialKeyID: TDESKeySerialNumber.withoutCounter(initialKeyID))
        state = try await DispatchQueue(label: "card-encryption").blocking {
            try DUKPTState(
                loading: DerivationRegisters(scheme: scheme, initialKey: initialKey), into: file, kind: .tdesDUKPT)
        }
    }

    /// Continues with the state that the previous process left.
    ///
    /// - Throws: ``KeyFileError``.
    public init(resuming file: KeyFile) async throws {
        state = try await DispatchQueue(label: "card-encryption").blocking {
            try DUKPTState(resuming: file, kind: .tdesDUKPT, headerLength: 10) { header in
                let identifier = TDESKeySerialNumber.withoutCounter(Array(header))
                return header.elementsEqual(identifier) ? TDESDUKPTScheme(initialKeyID: identifier) : nil
            }
        }
    }

    /// The number of remaining transactions, as in ``AESDUKPTDevice/transactionsLeft``.
    public var transactionsLeft: Int { get async { await state.transactionsLeft } }

    /// Seals card data under the key of the next transaction.  When this returns, the disk has the state after the
    /// transaction, and no longer the one before.
    ///
    /// - Throws: the errors of ``AESDUKPTDevice/seal(_:boundTo:options:)``.
    public func seal(_ data: ClearCardData, options: Options = Options()) async throws -> SealedCardData {
        try await state.transact { scheme, counter, key in
            let vector = options.initializationVector.bytes(8)
            let cipher = try BlockCipher.tdes(TDESDUKPTScheme.dataKey(options.dataKeyVariant, of: key))
            return .tdesDUKPT(
                try TDESDUKPTEnvelope(
                    [TDESDUKPTEnvelope.version, options.dataKeyVariant.rawValue] + scheme.keySerialNumber(counter)
                        + vector + cipher.seal(data, iv: vector)))
        }
    }
}

/// The host side of TDES DUKPT; otherwise like ``AESDUKPTHost``.
public struct TDESDUKPTHost: Sendable {
    private let baseDerivationKey: SecretKey

    /// Creates a host.
    ///
    /// - Parameter baseDerivationKey: 16 bytes.
    public init(baseDerivationKey: SecretKey) throws(DUKPTError) {
        guard baseDerivationKey.count == 16 else { throw .keyLength(baseDerivationKey.count) }
        self.baseDerivationKey = baseDerivationKey
    }

    /// Returns the key to load into a device.
    ///
    /// - Parameter initialKeyID: 10 bytes: the initial key serial number, whose last 21 bits are ignored.
    public func initialKey(_ initialKeyID: [UInt8]) throws -> SecretKey {
        guard initialKeyID.count == 10 else { throw DUKPTError.initialKeyIDLength(initialKeyID.count) }
        return try TDESDUKPTScheme.initialKey(
            base: baseDerivationKey, initialKeyID: TDESKeySerialNumber.withoutCounter(initialKeyID))
    }

    /// Returns the data key of one transaction.
    func dataKey(
        _ variant: TDESDUKPTEnvelope.DataKeyVariant, for number: TDESKeySerialNumber
    ) throws -> SecretKey {
        try TDESDUKPTScheme.dataKey(variant, of: transactionKey(number))
    }

    /// Opens an envelope of a device.  A changed envelope opens to other data, or throws because of its padding: the
    /// sender must not learn which.
    ///
    /// - Parameters:
    ///   - envelope: the sealed card data.
    ///   - body: receives the card data in storage that is wiped when it returns.  It must not keep the buffer.
    /// - Throws: ``DUKPTError``; errors of `body`.
    public func open<Result>(
        _ envelope: TDESDUKPTEnvelope, _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        try BlockCipher.tdes(dataKey(envelope.dataKeyVariant, for: envelope.keySerialNumber))
            .open(envelope.ciphertext, iv: envelope.initializationVector, body)
    }

    func transactionKey(_ number: TDESKeySerialNumber) throws -> SecretKey {
        let scheme = TDESDUKPTScheme(initialKeyID: number.initialKeyID)
        return try scheme.transactionKey(initialKey: initialKey(number.bytes), counter: number.counter)
    }
}

extension TDESDUKPTDevice: CustomReflectable {
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension TDESDUKPTHost: CustomReflectable {
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
