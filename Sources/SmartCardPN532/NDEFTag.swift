/// A tag that holds an NDEF message.
///
/// Every call throws ``TagError`` where the tag is not as it should be, ``NDEFError`` where its message is not, and
/// `CardError` where the link fails.
public protocol NDEFTag: Sendable {
    /// What the tag says of its NDEF data.
    func ndefStatus() async throws -> NDEFStatus

    /// The message on the tag, without records where it is empty.
    func readNDEF() async throws -> NDEFMessage

    /// Puts a message on the tag in place of the one there.
    ///
    /// The order of writes is the NFC Forum's, so that a tag that leaves in the middle holds an empty message and never
    /// half of one.  Nothing is written where the message has no room or a lock is in the way.
    func writeNDEF(_ message: NDEFMessage) async throws
}

/// What a tag says of its NDEF data.
public struct NDEFStatus: Hashable, Sendable {
    /// The mapping version, such as 1.0 on a Type 2 Tag or 2.0 on a Type 4 Tag.
    public let version: Version
    /// The longest message that it has room for, in bytes.
    public let capacity: Int
    /// How long the message on it is, in bytes.
    public let length: Int
    public let isWritable: Bool

    public struct Version: Hashable, Sendable, CustomStringConvertible {
        public let major: UInt8
        public let minor: UInt8

        init(_ byte: UInt8) { (major, minor) = (byte >> 4, byte & 0x0F) }

        public var description: String { "\(major).\(minor)" }
    }
}
