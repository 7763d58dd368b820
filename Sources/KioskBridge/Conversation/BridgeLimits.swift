/// The limits for one page, which the server and the conversation share.
public struct BridgeLimits: Hashable, Sendable {
    /// The length of one message from the page, in bytes of UTF-8.
    public var message = 65_536
    /// The nesting depth of a message's objects and arrays.
    public var depth = 32
    /// The requests of the page that are not answered yet.
    public var requestsInFlight = 16
    /// The messages from the page in one second.
    public var messagesPerSecond = 50
    /// The bytes of messages that wait for a slow page.
    public var unsentBytes = 16 * 1_048_576

    public init() {}
}
