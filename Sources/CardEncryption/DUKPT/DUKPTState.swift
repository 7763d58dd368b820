import Dispatch
import Waiting

/// The state of a transaction-originating device: registers in wiped storage, and their copy on the disk.
///
/// Before a transaction's key is used, the disk has the state that follows the transaction, and the previous state is
/// overwritten there.  A kill in between loses a counter, and never repeats one.
final class DUKPTState<Scheme: DUKPTScheme>: @unchecked Sendable {
    private let registers: DerivationRegisters<Scheme>
    private let file: LockedKeyFile
    private let kind: KeyFile.Kind
    /// Only this queue accesses the properties above; it may block on the disk.
    private let queue = DispatchQueue(label: "dukpt")

    /// Writes the state after loading an initial key.
    init(loading registers: DerivationRegisters<Scheme>, into file: KeyFile, kind: KeyFile.Kind) throws {
        (self.kind, self.registers) = (kind, registers)
        self.file = try LockedKeyFile(file, isThere: false)
        try write(self.file.create)
    }

    /// Reads the state.
    ///
    /// - Parameter headerLength: the length of the beginning of the contents, from which `scheme` creates the key
    ///   scheme; nil if they are invalid.
    init(
        resuming file: KeyFile, kind: KeyFile.Kind, headerLength: Int,
        scheme: (UnsafeRawBufferPointer) -> Scheme?
    ) throws {
        self.kind = kind
        self.file = try LockedKeyFile(file, isThere: true)
        let contents = try self.file.read(kind: kind)
        let registers = withExtendedLifetime(contents) { () -> DerivationRegisters<Scheme>? in
            let bytes = contents.readOnly
            guard bytes.count >= headerLength,
                let scheme = scheme(UnsafeRawBufferPointer(rebasing: bytes.prefix(headerLength)))
            else { return nil }
            return DerivationRegisters(
                scheme: scheme, contents: UnsafeRawBufferPointer(rebasing: bytes.dropFirst(headerLength)))
        }
        guard let registers else { throw KeyFileError(.malformed, file.path) }
        self.registers = registers
    }

    private func write(
        _ put: (UnsafeRawBufferPointer, KeyFile.Kind) throws(KeyFileError) -> Void
    ) throws(KeyFileError) {
        let registers = registers.save()
        let header = self.registers.scheme.stateHeader
        let contents = WipedStorage(count: header.count + registers.bytes.count)
        contents.bytes.copyBytes(from: header)
        contents.bytes[header.count...].copyBytes(from: registers.bytes)
        try put(contents.readOnly, kind)
        withExtendedLifetime((contents, registers)) {}
    }

    var scheme: Scheme { registers.scheme }

    /// The number of remaining transactions.
    var transactionsLeft: Int {
        get async {
            await queue.blocking { Scheme.count(from: self.registers.counter) }
        }
    }

    /// Performs one transaction: `use` receives the key once the disk has the state without it; the key is then wiped.
    func transact<Result: Sendable>(
        _ use: @escaping @Sendable (Scheme, UInt32, SecretKey) throws -> Result
    ) async throws -> Result {
        try await queue.blocking { [self] in
            let (counter, key) = try registers.take()
            try write(file.replace)
            return try use(registers.scheme, counter, key)
        }
    }
}
