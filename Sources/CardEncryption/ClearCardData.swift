/// Card data in the clear, such as the BER-TLV record of a transaction, in storage that is wiped when the last reference to
/// it goes.
///
/// It can be sealed and nothing else: nothing outside this module reads the bytes, and nothing prints, compares or encodes
/// them.  Fill it in place, with ``init(capacity:filling:)``, and there is no copy to forget.
public final class ClearCardData: Sendable {
    /// The most bytes that one value holds: 65535.
    public static let maximumCount = 0xFFFF

    private let storage: WipedStorage
    private let count: Int

    /// Card data written in place.
    ///
    /// - Parameter capacity: how many bytes `fill` may write.
    /// - Parameter fill: writes to the buffer, which it must not keep, and returns how many bytes, counted from the first,
    ///   are card data.  Where it throws, what it wrote is wiped.
    /// - Throws: ``ClearCardDataError`` for no bytes or too many; what `fill` throws.
    public init(capacity: Int, filling fill: (UnsafeMutableRawBufferPointer) throws -> Int) throws {
        guard (1...Self.maximumCount).contains(capacity) else { throw ClearCardDataError.count(capacity) }
        storage = WipedStorage(count: capacity)
        count = try fill(storage.bytes)
        guard (1...capacity).contains(count) else { throw ClearCardDataError.count(count) }
    }

    /// A copy of `bytes`.  To wipe the original is the caller's part.
    ///
    /// - Throws: ``ClearCardDataError`` for no bytes or too many.
    public convenience init(_ bytes: some Collection<UInt8>) throws {
        try self.init(capacity: bytes.count) { buffer in
            buffer.copyBytes(from: bytes)
            return bytes.count
        }
    }

    /// The bytes, for sealing; not to be kept.
    func withUnsafeBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try withExtendedLifetime(self) { try body(UnsafeRawBufferPointer(rebasing: storage.readOnly.prefix(count))) }
    }
}

extension ClearCardData: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// That it is card data, and nothing of it.
    public var description: String { "card data in the clear" }
    public var debugDescription: String { description }
    /// Has no children.
    public var customMirror: Mirror { Mirror(self, children: [:]) }
}

/// What cannot be ``ClearCardData``.
public enum ClearCardDataError: Error, Hashable, Sendable {
    /// No bytes, or more than ``ClearCardData/maximumCount`` or than there was room for.
    case count(Int)
}

extension ClearCardDataError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .count(let count): "\(count) bytes of card data: there must be 1 to \(ClearCardData.maximumCount)"
        }
    }
}
