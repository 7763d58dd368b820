import ComposableCheckout
import FlyingFox
import FlyingSocks
import Foundation
import Synchronization

/// A payment service that answers as a test wants, whatever it is asked.
final class LyingService: Sendable {
    let address: URL
    private let running: Task<Void, any Error>
    private let handler: Handler

    /// The requests so far: method, path and key.
    var requests: [String] { handler.requests.withLock { $0 } }

    init(_ answer: @escaping @Sendable (HTTPRequest) async throws -> HTTPResponse) async throws {
        handler = Handler(answer)
        let server = HTTPServer(
            address: try .inet(ip4: "127.0.0.1", port: 0), timeout: 600, logger: .disabled, handler: handler)
        running = Task { try await server.run() }
        try await server.waitUntilListening()
        guard case .ip4(_, let port) = await server.listeningAddress, let url = URL(string: "http://127.0.0.1:\(port)")
        else { throw Unlistening() }
        address = url
    }

    /// A service that says one thing.
    convenience init(_ text: String, status: HTTPStatusCode = .ok) async throws {
        try await self.init { _ in HTTPResponse(statusCode: status, body: Data(text.utf8)) }
    }

    deinit { running.cancel() }

    /// A client of the session "s".
    func client(patience: Duration = .seconds(60)) throws -> HTTPCheckoutRepository {
        try HTTPCheckoutRepository(
            address: address, session: "s", patience: patience, pollInterval: .milliseconds(20),
            challengePatience: .seconds(1))
    }

    private struct Unlistening: Error {}

    private final class Handler: HTTPHandler {
        let requests = Mutex<[String]>([])
        private let answer: @Sendable (HTTPRequest) async throws -> HTTPResponse

        init(_ answer: @escaping @Sendable (HTTPRequest) async throws -> HTTPResponse) { self.answer = answer }

        func handleRequest(_ request: HTTPRequest) async throws -> HTTPResponse {
            _ = try await request.bodyData
            let key = request.headers[HTTPHeader("Idempotency-Key")] ?? ""
            requests.withLock { $0.append("\(request.method.rawValue) \(request.path) \(key)") }
            return try await answer(request)
        }
    }

    /// Closes the connection without an answer: FlyingFox asks it for frames before it writes anything.
    struct NoAnswer: WSHandler {
        struct Refused: Error {}
        func makeFrames(for client: AsyncThrowingStream<WSFrame, any Error>) async throws -> AsyncStream<WSFrame> {
            throw Refused()
        }
    }

    /// A body without an end.
    struct Endless: AsyncBufferedSequence, AsyncBufferedIteratorProtocol, Sendable {
        typealias Element = UInt8
        func makeAsyncIterator() -> Endless { self }
        mutating func next() async throws -> UInt8? { UInt8(ascii: " ") }
        mutating func nextBuffer(suggested count: Int) async throws -> [UInt8]? {
            [UInt8](repeating: UInt8(ascii: " "), count: count)
        }
    }
}
