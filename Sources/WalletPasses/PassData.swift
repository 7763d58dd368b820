/// The contents of a pass, as its issuer wrote them: a member number, most of the time.
///
/// They are personal data, and print as their length.
public struct PassData: Hashable, Sendable {
    public let bytes: [UInt8]

    public init(_ bytes: [UInt8]) { self.bytes = bytes }

    /// The contents as UTF-8 text; nil if they are none.
    public var text: String? { String(validating: bytes, as: UTF8.self) }
}

extension PassData: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "pass data: \(bytes.count) bytes" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}
