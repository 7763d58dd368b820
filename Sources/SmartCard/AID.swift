/// An application identifier (ISO/IEC 7816-4, 12.2.3; EMV Book 1, 12.2.1): 5 to 16 bytes, RID then PIX.
public struct AID: Hashable, Sendable {
    public let bytes: [UInt8]

    /// - Returns: nil unless there are 5 to 16 bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        guard (5...16).contains(bytes.count) else { return nil }
        self.bytes = Array(bytes)
    }

    /// The registered application provider identifier: the first five bytes.
    public var rid: ArraySlice<UInt8> { bytes.prefix(5) }
    /// The proprietary application identifier extension: the bytes after the RID, possibly none.
    public var pix: ArraySlice<UInt8> { bytes.dropFirst(5) }

    /// True if this AID begins with all bytes of `other`: partial selection (EMV Book 1, 12.3.1).
    public func matches(prefix other: AID) -> Bool { bytes.starts(with: other.bytes) }
}

extension AID: CustomStringConvertible {
    /// Upper-case hexadecimal: `A0000000031010`.
    public var description: String { bytes.hex }
}
