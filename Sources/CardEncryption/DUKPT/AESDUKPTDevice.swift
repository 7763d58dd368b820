/// The side of the device in AES DUKPT (ANSI X9.24-3:2017): a new key for each transaction, which is gone after it.
///
/// The keys are in wiped storage, and in a ``KeyFile``.  No counter is used twice, whatever stops the process: the disk has
/// the state without a key before the key is used.  Restoring an old copy of the file breaks this promise; see the page on
/// CardEncryption.
public final class AESDUKPTDevice: Sendable {
    private let state: DUKPTState<AESDUKPTScheme>

    /// How card data is sealed; acquirers differ.  The envelope says it, so that whoever opens it needs no more than that.
    public struct Options: Hashable, Sendable {
        public var dataKeyUsage: AESDUKPTEnvelope.DataKeyUsage
        /// Of the data key and the MAC key; nil for as long as the initial key, which is the longest.
        public var keyLength: AESKeyLength?
        public var initialisationVector: DUKPTInitialisationVector

        public init(
            dataKeyUsage: AESDUKPTEnvelope.DataKeyUsage = .encryption, keyLength: AESKeyLength? = nil,
            initialisationVector: DUKPTInitialisationVector = .random
        ) {
            self.dataKeyUsage = dataKeyUsage
            self.keyLength = keyLength
            self.initialisationVector = initialisationVector
        }
    }

    /// Loads an initial key, of 16, 24 or 32 bytes, into a file that is not there yet.
    ///
    /// - Parameter initialKeyID: 8 bytes: what the key serial numbers begin with.
    /// - Throws: ``DUKPTError``; ``KeyFileError``, among them `exists`.
    public init(loading initialKey: SecretKey, initialKeyID: [UInt8], into file: KeyFile) async throws {
        guard let length = AESKeyLength(byteCount: initialKey.count) else {
            throw DUKPTError.keyLength(initialKey.count)
        }
        guard initialKeyID.count == 8 else { throw DUKPTError.initialKeyIDLength(initialKeyID.count) }
        let scheme = AESDUKPTScheme(initialKeyID: initialKeyID, length: length)
        state = try await onQueue {
            try DUKPTState(
                loading: DerivationRegisters(scheme: scheme, initialKey: initialKey), into: file, kind: .aesDUKPT)
        }
    }

    /// Goes on where the process before ended.
    ///
    /// - Throws: ``KeyFileError``.
    public init(resuming file: KeyFile) async throws {
        state = try await onQueue {
            try DUKPTState(resuming: file, kind: .aesDUKPT, headerLength: 9) { header in
                AESKeyLength(byteCount: Int(header[8])).map {
                    AESDUKPTScheme(initialKeyID: Array(header.prefix(8)), length: $0)
                }
            }
        }
    }

    /// How many transactions there are keys for.  After them, a new initial key must be loaded, with another identifier.
    public var transactionsLeft: Int { get async { await state.transactionsLeft } }

    /// Checks that data can be sealed so, before there is any.
    ///
    /// - Throws: ``DUKPTError/workingKeyTooLong`` for keys longer than the initial key.
    public func check(_ options: Options) throws(DUKPTError) {
        guard (options.keyLength?.byteCount ?? 0) <= state.scheme.keyLength else { throw .workingKeyTooLong }
    }

    /// Seals card data under the key of the next transaction.  When it returns, the disk has the state after it, and no
    /// longer the one before it.
    ///
    /// - Parameter bound: what the envelope is bound to, such as the identifier of the read, so that it opens with nothing
    ///   else.  It is not in the envelope.
    /// - Throws: ``DUKPTError``, among them `exhausted`; ``KeyFileError``, upon which the counter is lost and the next call
    ///   takes the next.
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
                    initialisationVector: options.initialisationVector.bytes(16)))
        }
    }
}

/// The initialisation vector of an envelope of DUKPT.
public enum DUKPTInitialisationVector: Hashable, Sendable {
    /// Random, and sent along.
    case random
    /// Zeros, which no other message under the same key shares; sent along as well.
    case zero

    func bytes(_ count: Int) -> [UInt8] {
        var generator = SystemRandomNumberGenerator()
        return (0..<count).map { _ in self == .zero ? 0 : generator.next() }
    }
}

/// The side of the host in AES DUKPT: from the base derivation key and a key serial number to what was sealed.  For payment
/// services under development, and tests; in production a hardware security module does this.
public struct AESDUKPTHost: Sendable {
    private let baseDerivationKey: SecretKey
    private let length: AESKeyLength

    /// - Parameter baseDerivationKey: 16, 24 or 32 bytes.
    public init(baseDerivationKey: SecretKey) throws(DUKPTError) {
        guard let length = AESKeyLength(byteCount: baseDerivationKey.count) else {
            throw .keyLength(baseDerivationKey.count)
        }
        (self.baseDerivationKey, self.length) = (baseDerivationKey, length)
    }

    /// The key that is loaded into a device, as long as the base derivation key.
    ///
    /// - Parameter initialKeyID: 8 bytes.
    public func initialKey(_ initialKeyID: [UInt8]) throws(DUKPTError) -> SecretKey {
        try AESDUKPTScheme.initialKey(base: baseDerivationKey, initialKeyID: initialKeyID)
    }

    /// A working key of one transaction.
    func workingKey(
        _ usage: AESDUKPTKeyUsage, length: AESKeyLength, for number: AESKeySerialNumber
    ) throws(DUKPTError) -> SecretKey {
        let (scheme, key) = try transactionKey(number)
        return try scheme.workingKey(usage, length: length, counter: number.counter, transactionKey: key)
    }

    /// Opens what a device sealed.
    ///
    /// - Parameter bound: what the device has bound it to.
    /// - Parameter body: is given the card data, in storage that is wiped when it returns.  It must not keep the buffer.
    /// - Throws: ``DUKPTError``; what `body` throws.
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
    /// Has no children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

extension AESDUKPTHost: CustomReflectable {
    /// Has no children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
