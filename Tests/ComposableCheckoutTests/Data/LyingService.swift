import ComposableCheckout
import FlyingFox
import FlyingSocks
import Foundation
import FoundationNetworking
import Synchronization

/// A payment service that answers as a test wants, whatever it is asked.
final class LyingService: Sendable {
    let address: URL
    private let running: Task<Void, any Error>
    private let handler: Handler

    /// The requests so far: method, path and key.
    var requests: [String] { handler.requests.withLock { $0 } }

    /// How many of them have their answers, be they heard or not.
    var answers: Int { handler.answers.withLock { $0 } }

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
    func client(patience: Duration = .seconds(60), challengePatience: Duration = .seconds(60)) throws
        -> HTTPCheckoutRepository
    {
        try HTTPCheckoutRepository(
            address: address, session: "s", patience: patience, pollInterval: .milliseconds(20),
            challengePatience: challengePatience)
    }

    private struct Unlistening: Error {}

    private final class Handler: HTTPHandler {
        let requests = Mutex<[String]>([])
        let answers = Mutex(0)
        private let answer: @Sendable (HTTPRequest) async throws -> HTTPResponse

        init(_ answer: @escaping @Sendable (HTTPRequest) async throws -> HTTPResponse) { self.answer = answer }

        func handleRequest(_ request: HTTPRequest) async throws -> HTTPResponse {
            // A closure may read it more than once.
            var request = request
            request.setBodyData(try await request.bodyData)
            let key = request.headers[HTTPHeader("Idempotency-Key")] ?? ""
            requests.withLock { $0.append("\(request.method.rawValue) \(request.path) \(key)") }
            defer { answers.withLock { $0 += 1 } }
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

    /// Has a service answer a request.
    static func forward(_ request: HTTPRequest, to address: String) async throws -> HTTPResponse {
        guard let url = URL(string: address + request.path) else { throw Unlistening() }
        var message = URLRequest(url: url)
        message.httpMethod = request.method.rawValue
        message.httpBody = try await request.bodyData
        for header in ["Idempotency-Key", "Content-Type"] {
            message.setValue(request.headers[HTTPHeader(header)], forHTTPHeaderField: header)
        }
        let session = URLSession(configuration: .ephemeral)
        defer { session.finishTasksAndInvalidate() }
        let (body, response) = try await session.data(for: message)
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        return HTTPResponse(statusCode: HTTPStatusCode(status, phrase: "Status"), body: body)
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
