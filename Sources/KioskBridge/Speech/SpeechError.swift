/// The reason why a text is not said.
public enum SpeechError: Error, Hashable, Sendable {
    /// There is no server at this path, or it takes nobody.
    case noServer(path: String)
    /// The server refused with this reply code: 3xx for its own fault, 4xx and 5xx for ours (SSIP, chapter 5).
    case refused(code: Int)
    /// The server's bytes are not the protocol: the offset in all that it has sent, and what was due there.
    case violation(offset: Int, due: String)
    /// The server ended the connection.
    case hungUp
    /// The text was not said to its end in time.
    case noAnswer
}

extension SpeechError: CustomStringConvertible {
    /// The reason in English, with a hint.
    public var description: String {
        switch self {
        case .noServer(let path):
            "no speech server at \(path).  Install speech-dispatcher, and start it as this user: speech-dispatcher -d."
        case .refused(let code):
            "the speech server refused with \(code).  Check that a synthesizer is configured: spd-say test."
        case .violation(let offset, let due):
            "the speech server is not understood: at byte \(offset), \(due) is due.  Check what listens there."
        case .hungUp: "the speech server ended the connection.  It is tried again with the next text."
        case .noAnswer: "the speech server did not say a text in time.  Check that it is heard: spd-say test."
        }
    }
}
