/// Bytes that are not the object that they should be.
public struct MalformedObject: Error, Hashable, Sendable, CustomStringConvertible {
    /// The object that was due, in the standard's words.
    public let due: String
    /// The position, from zero, after indefinite lengths were made definite.
    public let offset: Int

    public var description: String { "malformed: \(due) was due at offset \(offset)" }
}
