import Dispatch
import Waiting

/// The device side of AES DUKPT (ANSI X9.24-3:2017): a new key for each transaction, destroyed after it.
///
/// The keys are in wiped storage, and in a ``KeyFile``.  No counter is used twice, however the process ends: the disk
/// has a state without the key before the key is used.  Restoring an old copy of the file breaks this guarantee; see
/// the page on CardEncryption.
public final class AESDUKPTDevice: Sendable {
    private let state: DUKPTState<AESDUKPTScheme>

    /// The options for sealing card data; acquirers differ.  The envelope states them for its recipient.
    public struct Options: Hashable, Sendable {
        public var dataKeyUsage: AESDUKPTEnvelope.DataKeyUsage
        /// The length of the data key and the MAC key; nil for that of the initial key, which is the maximum.
        public var keyLength: AESKeyLength?
        public var initializationVector: DUKPTInitializationVector

        public init(
            dataKeyUsage: AESDUKPTEnvelope.DataKeyUsage = .encryption, keyLength: AESKeyLength? = nil,
            initializationVector: DUKPTInitializationVector = .random
        ) {
            self.dataKeyUsage = dataKeyUsage
            self.keyLength = keyLength
            self.initializationVector = initializationVector
        }
    }

    /// Loads an initial key, of 16, 24 or 32 bytes, into a new file.
    ///
    /// - Parameters:
    ///   - initialKey: 16, 24 or 32 bytes.
    ///   - initialKeyID: 8 bytes, with which the key serial numbers begin.
    ///   - file: a file that does not exist.
    /// - Throws: ``DUKPTError``; ``KeyFileError``, including `exists`.
    public init(loading initialKey: SecretKey, initialKeyID: [UInt8], into file: KeyFile) async throws {
        guard let length = AESKeyLength(byteCount: initialKey.count) else {
            throw DUKPTError.keyLength(initialKey.count)
        }
        guard initialKeyID.count == 8 else { throw DUKPTError.initialKeyIDLength(initialKeyID.count) }
        let scheme = AESDUKPTScheme(initialKeyID: initialKeyID, length: length)
        state = try await DispatchQueue(label: "card-encryption").blocking {
            try DUKPTState(
                loading: DerivationRegisters(scheme: scheme, initialKey: initialKey), into: file, kind: .aesDUKPT)
        }
    }

    /// Continues with the state that the previous process left.
    ///
    /// - Throws: ``KeyFileError``.
    public init(resuming file: KeyFile) async throws {
        state = try await DispatchQueue(label: "card-encryption").blocking {
            try DUKPTState(resuming: file, kind: .aesDUKPT, headerLength: 9) { header in
                AESKeyLength(byteCount: Int(header[8])).map {
                    AESDUKPTScheme(initialKeyID: Array(header.prefix(8)), length: $0)
                }
            }
        }
    }

    /// The number of remaining transactions.  After them, load a new initial key with another identifier.
    public var transactionsLeft: Int { get async { await state.transactionsLeft } }

    /// Checks that data can be sealed with these options, before there is any.
    ///
    /// - Throws: ``DUKPTError/workingKeyTooLong`` for keys longer than the initial key.
    public func check(_ options: Options) throws(DUKPTError) {
        guard (options.keyLength?.byteCount ?? 0) <= state.scheme.keyLength else { throw .workingKeyTooLong }
    }

    /// Seals card data under the key of the next transaction.  When this returns, the disk has the state after the
    /// transaction, and no longer the one before.
    ///
    /// - Parameters:
    ///   - data: the card data.
    ///   - bound: data to which the envelope is bound, such as the identifier of the read, so that it opens only with
    ///     the same data.  The envelope does not contain it.
    ///   - options: the usage and length of the keys.
    /// - Throws: ``DUKPTError``, including `exhausted`; ``KeyFileError``, after which the counter is lost and the next
    ///   call uses the next one.
    public func seal(
        _ data: ClearCardData, boundTo bound: [UInt8] = [], options: Options = Options()
    ) async throws -> SealedCardData {
        try check(options)
        return try await state.transact { scheme, counter, key in
            .aesDUKPT(
                try AESDUKPTEnvelope.seal(
                    data, boundTo: bound, scheme: scheme, counter: counter, transactionKey: key,
                    dataKeyUsage: options.dataKeyUsage,
                    keyLength: options.keyLength ?? scheme.length,
                    initializationVector: options.initializationVector.bytes(16)))
        }
    }
}

/// The initialization vector of a DUKPT envelope.
public enum DUKPTInitializationVector: Hashable, Sendable {
    /// A random vector, sent along.
    case random
    /// A zero vector, also sent along; no other message uses the same key.
    case zero

    func bytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in self == .zero ? 0 : generator.next() }
    }
}

/// The host side of AES DUKPT: it opens envelopes with the base derivation key and the key serial number.  For payment
/// services under development, and for tests; in production a hardware security module does this.
public struct AESDUKPTHost: Sendable {
    private let baseDerivationKey: SecretKey
    private let length: AESKeyLength

    /// Creates a host.
    ///
    /// - Parameter baseDerivationKey: 16, 24 or 32 bytes.
    public init(baseDerivationKey: SecretKey) throws(DUKPTError) {
        guard let length = AESKeyLength(byteCount: baseDerivationKey.count) else {
            throw .keyLength(baseDerivationKey.count)
        }
        (self.baseDerivationKey, self.length) = (baseDerivationKey, length)
    }

    /// Returns the key to load into a device, which has the base derivation key's length.
    ///
    /// - Parameter initialKeyID: 8 bytes.
    public func initialKey(_ initialKeyID: [UInt8]) throws(DUKPTError) -> SecretKey {
        try AESDUKPTScheme.initialKey(base: baseDerivationKey, initialKeyID: initialKeyID)
    }

    /// Returns a working key of one transaction.
    func workingKey(
        _ usage: AESDUKPTKeyUsage, length: AESKeyLength, for number: AESKeySerialNumber
    ) throws(DUKPTError) -> SecretKey {
        let (scheme, key) = try transactionKey(number)
        return try scheme.workingKey(usage, length: length, counter: number.counter, transactionKey: key)
    }

    /// Opens an envelope of a device.
    ///
    /// - Parameters:
    ///   - envelope: the sealed card data.
    ///   - bound: the data to which the device has bound the envelope.
    ///   - body: receives the card data in storage that is wiped when it returns.  It must not keep the buffer.
    /// - Throws: ``DUKPTError``; errors of `body`.
    public func open<Result>(
        _ envelope: AESDUKPTEnvelope, boundTo bound: [UInt8] = [], _ body: (UnsafeRawBufferPointer) throws -> Result
    ) throws -> Result {
        let (scheme, key) = try transactionKey(envelope.keySerialNumber)
        return try envelope.open(boundTo: bound, scheme: scheme, transactionKey: key, body)
    }

    func transactionKey(_ number: AESKeySerialNumber) throws(DUKPTError) -> (AESDUKPTScheme, SecretKey) {
        let scheme = AESDUKPTScheme(initialKeyID: number.initialKeyID, length: length)
        let initialKey = try initialKey(number.initialKeyID)
        return (scheme, try scheme.transactionKey(initialKey: initialKey, counter: number.counter))
    }
}

extension AESDUKPTDevice: CustomReflectable {
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension AESDUKPTHost: CustomReflectable {
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
