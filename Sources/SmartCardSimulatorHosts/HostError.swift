/// Virtual hardware could not be set up.  Two lines for a person: what is wrong, and what to do.
public struct HostError: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, in one line.
    public let description: String
    /// What to do next, in one line.
    public let hint: String

    public init(_ description: String, hint: String) {
        self.description = description
        self.hint = hint
    }
}
