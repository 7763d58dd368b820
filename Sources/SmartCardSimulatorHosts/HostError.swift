/// An error in the setup of virtual hardware, in two lines: the problem, and the next step.
public struct HostError: Error, Hashable, Sendable, CustomStringConvertible {
    /// The problem, in one line.
    public let description: String
    /// The next step, in one line.
    public let hint: String

    public init(_ description: String, hint: String) {
        self.description = description
        self.hint = hint
    }
}
