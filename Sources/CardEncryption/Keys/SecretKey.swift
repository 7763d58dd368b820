/// A symmetric key in storage that is wiped when the last reference is released.  It prints only its length.
public final class SecretKey: Sendable {
    private let storage: WipedStorage

    /// The number of bytes.
    public var count: Int { storage.bytes.count }

    /// Creates a key as a copy of `bytes`.  The caller must wipe the original.
    public init(_ bytes: some Collection<UInt8>) {
        storage = WipedStorage(count: bytes.count)
        storage.bytes.copyBytes(from: bytes)
    }

    /// Creates a key by writing it in place, so that no copy remains.
    ///
    /// - Parameter count: the number of bytes: 1 to 4096.
    /// - Parameter fill: writes all of the buffer, which is initially zero, and must not keep it.  If it throws, its
    ///   bytes are wiped.
    /// - Throws: ``DUKPTError/keyLength(_:)`` for any other count; errors of `fill`.
    public convenience init(byteCount count: Int, filling fill: (UnsafeMutableRawBufferPointer) throws -> Void) throws {
        guard (1...4096).contains(count) else { throw DUKPTError.keyLength(count) }
        try self.init(count: count, filling: fill)
    }

    init<Failure>(
        count: Int, filling fill: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
    ) throws(Failure) {
        storage = WipedStorage(count: count)
        try fill(storage.bytes)
    }

    package func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try withExtendedLifetime(self) { try body(storage.readOnly) }
    }
}

extension SecretKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The length of the key, and nothing else.
    public var description: String { "key of \(count * 8) bits" }
    public var debugDescription: String { description }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
