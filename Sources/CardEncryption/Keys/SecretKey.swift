/// A symmetric key in storage that is wiped when the last reference to it goes.  Prints nothing of itself.
public final class SecretKey: Sendable {
    private let storage: WipedStorage

    /// Number of bytes.
    public var count: Int { storage.bytes.count }

    /// A copy of `bytes`.  To wipe the original is the caller's part.
    public init(_ bytes: some Collection<UInt8>) {
        storage = WipedStorage(count: bytes.count)
        storage.bytes.copyBytes(from: bytes)
    }

    /// A key written in place, so that there is no copy to forget.
    ///
    /// - Parameter count: number of bytes: 1 to 4096.
    /// - Parameter fill: writes all of the buffer, which is zero before, and must not keep it.  Where it throws, what it wrote
    ///   is wiped.
    /// - Throws: ``DUKPTError/keyLength(_:)`` for another count; what `fill` throws.
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
    /// That it is a key, and its length.
    public var description: String { "key of \(count * 8) bits" }
    public var debugDescription: String { description }
    /// Has no children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}
