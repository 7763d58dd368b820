import Foundation
import Logging
import Waiting

/// Something that says texts.
public protocol SpeechOutput: Sendable {
    /// True if a text would be heard, as far as this is known without a try.
    nonisolated var isThere: Bool { get }

    /// Says a text in place of the one before, and waits for its end.  A canceled task ends it at once.
    ///
    /// - Parameters:
    ///   - text: what to say, in one line.
    ///   - language: the language, of two or three letters (ISO 639).
    ///   - volume: the volume in percent, 100 for the loudest; nil for that of the text before, or the output's own.
    /// - Throws: ``SpeechError``; `CancellationError` if the text was canceled, or another one took its place.
    func say(_ text: String, in language: String, volume: Int?) async throws
}

/// The speech server of this machine: speech-dispatcher, by its own protocol, SSIP, over its Unix socket.
///
/// It connects with the first text, stays connected, and connects again when the server is started anew.
public actor SpeechDispatcher: SpeechOutput {
    /// The path of the server's socket.
    public nonisolated let path: String
    private let limit: Duration
    private var conversation = SSIPConversation()
    private var socket: SpeechSocket?
    private var reading: Task<Void, Never>?
    /// The text that is being said.
    private var waiting: (number: Int, delivery: Delivery<SSIPConversation.End>)?
    private var number = 0

    /// - Parameters:
    ///   - path: the path of the server's socket.
    ///   - limit: the time for a text; a server that takes longer is left.
    public init(path: String = SpeechDispatcher.usualPath, limit: Duration = .seconds(25)) {
        (self.path, self.limit) = (path, limit)
    }

    deinit { reading?.cancel() }

    /// The path that speech-dispatcher's clients use: that of `SPEECHD_ADDRESS` (`unix_socket:` and a path), else
    /// `speech-dispatcher/speechd.sock` in the folder for the user's runtime files, or in that for caches without one.
    public static var usualPath: String {
        usualPath(ProcessInfo.processInfo.environment)
    }

    static func usualPath(_ environment: [String: String]) -> String {
        let method = "unix_socket:"
        if let address = environment["SPEECHD_ADDRESS"], address.hasPrefix(method), address.count > method.count {
            return String(address.dropFirst(method.count))
        }
        let folder =
            environment["XDG_RUNTIME_DIR"] ?? environment["XDG_CACHE_HOME"] ?? (environment["HOME"] ?? "") + "/.cache"
        return folder + "/speech-dispatcher/speechd.sock"
    }

    public nonisolated var isThere: Bool { access(path, W_OK) == 0 }

    public func say(_ text: String, in language: String, volume: Int? = nil) async throws {
        try Task.checkCancellation()
        number += 1
        let (number, delivery) = (number, Delivery<SSIPConversation.End>())
        try connect()
        perform(conversation.say(text, number: number, in: language, volume: volume))
        // Without a connection there is no end to wait for.
        guard socket != nil else { throw SpeechError.hungUp }
        waiting = (number, delivery)
        do {
            switch try await delivery.receive(within: limit, or: SpeechError.noAnswer, {}) {
            case .said: return
            case .canceled: throw CancellationError()
            case .refused(let code): throw SpeechError.refused(code: code)
            }
        } catch {
            switch error {
            case SpeechError.noAnswer: hangUp(.noAnswer)
            case is CancellationError where waiting?.number == number: perform(conversation.cancel())
            default: break
            }
            throw error
        }
    }

    private func connect() throws(SpeechError) {
        guard socket == nil else { return }
        let new = try SpeechSocket(path)
        socket = new
        conversation = SSIPConversation()
        reading = Task { [weak self] in
            for await bytes in new.received { await self?.take(bytes, from: new) }
            await self?.end(new)
        }
    }

    private func take(_ bytes: [UInt8], from socket: SpeechSocket) {
        guard socket === self.socket else { return }
        do throws(SpeechError) {
            perform(try conversation.receive(bytes))
        } catch {
            logger.warning("\(error)")
            hangUp(error)
        }
    }

    private func end(_ socket: SpeechSocket) {
        if socket === self.socket { hangUp(.hungUp) }
    }

    private func hangUp(_ reason: SpeechError) {
        reading?.cancel()
        (socket, reading) = (nil, nil)
        waiting?.delivery.deliver(.failure(reason))
        waiting = nil
    }

    private func perform(_ actions: [SSIPConversation.Action]) {
        for action in actions {
            switch action {
            case .send(let bytes): if socket?.send(bytes) != true { hangUp(.hungUp) }
            case .end(let number, let end):
                guard waiting?.number == number else { continue }
                waiting?.delivery.deliver(.success(end))
                waiting = nil
            }
        }
    }
}
