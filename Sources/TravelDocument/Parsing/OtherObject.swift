public import SmartCard

/// A data object that the standard of its file does not have, as some issuers add them.
public struct OtherObject: Hashable, Sendable {
    public let tag: TLVTag
    public let value: [UInt8]

    init(_ object: TLV) { (tag, value) = (object.tag, Array(object.value)) }
}

extension OtherObject: PersonalData {
    /// The tag and the number of bytes.
    public var description: String { "\(tag), \(value.count) bytes" }
}
