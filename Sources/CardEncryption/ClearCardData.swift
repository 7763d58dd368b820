/// Clear card data, such as the BER-TLV record of a transaction, in storage that is wiped when the last reference is
/// released.
///
/// It can be sealed and nothing else: no code outside this module can read the bytes, and nothing prints, compares or
/// encodes them.  Fill it in place, with ``init(capacity:filling:)``, so that no copy remains.
public final class ClearCardData: Sendable {
    /// The maximum number of bytes in one value: 65535.
    public static let maximumCount = 0xFFFF

    private let storage: WipedStorage
    private let count: Int

    /// Creates card data by writing it in place.
    ///
    /// - Parameter capacity: the number of bytes that `fill` may write.
    /// - Parameter fill: writes to the buffer, which it must not keep, and returns the number of bytes of card data,
    ///   from the first on.  If it throws, its bytes are wiped.
    /// - Throws: ``ClearCardDataError`` for no bytes or too many; errors of `fill`.
    public init(capacity: Int, filling fill: (UnsafeMutableRawBufferPointer) throws -> Int) throws {
        guard (1...Self.maximumCount).contains(capacity) else { throw ClearCardDataError.count(capacity) }
        storage = WipedStorage(count: capacity)
        count = try fill(storage.bytes)
        guard (1...capacity).contains(count) else { throw ClearCardDataError.count(count) }
    }

    /// Creates card data as a copy of `bytes`.  The caller must wipe the original.
    ///
    /// - Throws: ``ClearCardDataError`` for no bytes or too many.
    public convenience init(_ bytes: some Collection<UInt8>) throws {
        try self.init(capacity: bytes.count) { buffer in
            buffer.copyBytes(from: bytes)
            return bytes.count
        }
    }

    /// Lends the bytes for sealing; they must not be kept.
    func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try withExtendedLifetime(self) { try body(UnsafeRawBufferPointer(rebasing: storage.readOnly.prefix(count))) }
    }
}

extension ClearCardData: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// A fixed text that shows none of the data.
    public var description: String { "card data in the clear" }
    public var debugDescription: String { description }
    /// A mirror without children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// An error in creating ``ClearCardData``.
public enum ClearCardDataError: Error, Hashable, Sendable {
    /// The number of bytes is 0, or exceeds ``ClearCardData/maximumCount`` or the capacity.
    case count(Int)
}

extension ClearCardDataError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .count(let count): "\(count) bytes of card data: there must be 1 to \(ClearCardData.maximumCount)"
        }
    }
}
