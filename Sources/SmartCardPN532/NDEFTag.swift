public import SmartCard

/// A tag that contains an NDEF message.
///
/// Every call throws ``TagError`` for a fault of the tag, `NDEFError` for a fault of its message, and `CardError` for
/// a failure of the link.
public protocol NDEFTag: Sendable {
    /// Returns the state of the tag's NDEF data.
    func ndefStatus() async throws -> NDEFStatus

    /// Reads the message on the tag; an empty tag has a message without records.
    func readNDEF() async throws -> NDEFMessage

    /// Replaces the message on the tag.
    ///
    /// The order of writes is the NFC Forum's: a tag that leaves too early contains an empty message, never a partial
    /// one.  Nothing is written if the message does not fit or a lock prevents it.
    func writeNDEF(_ message: NDEFMessage) async throws
}

/// The state of a tag's NDEF data.
public struct NDEFStatus: Hashable, Sendable {
    /// The mapping version, such as 1.0 on a Type 2 Tag or 2.0 on a Type 4 Tag.
    public let version: Version
    /// The longest message that fits, in bytes.
    public let capacity: Int
    /// The length of the present message, in bytes.
    public let length: Int
    public let isWritable: Bool

    public struct Version: Hashable, Sendable, CustomStringConvertible {
        public let major: UInt8
        public let minor: UInt8

        init(_ byte: UInt8) { (major, minor) = (byte >> 4, byte & 0x0F) }

        public var description: String { "\(major).\(minor)" }
    }
}
