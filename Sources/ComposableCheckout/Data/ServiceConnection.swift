import Foundation
import FoundationNetworking
import Waiting

/// Requests to a payment service over HTTP: each on a connection of its own, within a time, with an answer of bounded
/// length, and without following a redirect.
struct ServiceConnection: Sendable {
    let address: URL
    /// The longest wait for a whole answer.
    let patience: Duration

    /// The greatest length of an answer in bytes.
    static let maximumLength = 256 << 10

    /// - Throws: ``CheckoutError/configuration(_:)`` for an address that would send tokens in the clear.
    init(address: URL, patience: Duration) throws(CheckoutError) {
        guard Self.isConfidential(address) else {
            throw .configuration("the payment service's address must begin with https, or be on this machine")
        }
        (self.address, self.patience) = (address, patience)
    }

    /// True for HTTPS, and for HTTP on this machine.
    static func isConfidential(_ url: URL) -> Bool {
        guard let host = url.host(percentEncoded: false)?.lowercased(), !host.isEmpty else { return false }
        return switch url.scheme?.lowercased() {
        case "https": true
        case "http": host == "localhost" || host == "::1" || host.wholeMatch(of: #/127(\.\d{1,3}){3}/#) != nil
        default: false
        }
    }

    struct Request: Sendable {
        let method: String
        /// Under the address, each checked by ``Answer/isName(_:)``.
        let path: [String]
        var key: String?
        var body: String?
        /// True if it may have an effect, or if what it asks about may have had one.
        let isAboutPayment: Bool
    }

    /// Sends a request.
    ///
    /// - Returns: the answer's text.
    /// - Throws: ``CheckoutError/transport(reason:mayHaveHappened:)``, ``CheckoutError/refused(code:message:)``.
    func ask(_ request: Request) async throws(CheckoutError) -> Answer {
        var url = address
        for part in request.path { url.append(path: part) }
        var message = URLRequest(url: url)
        message.httpMethod = request.method
        message.httpBody = request.body.map { Data($0.utf8) }
        message.setValue("application/json", forHTTPHeaderField: "Content-Type")
        message.setValue("application/json", forHTTPHeaderField: "Accept")
        if let key = request.key { message.setValue(key, forHTTPHeaderField: "Idempotency-Key") }
        let (status, body): (Int, Data)
        do {
            (status, body) = try await Exchange.perform(message, within: patience)
        } catch {
            // Nothing was sent.
            let unsent: Set<URLError.Code> = [.cannotConnectToHost, .cannotFindHost, .notConnectedToInternet]
            let isUnsent = (error as? URLError).map { unsent.contains($0.code) } ?? false
            throw .transport(reason: Self.reason(error), mayHaveHappened: request.isAboutPayment && !isUnsent)
        }
        do {
            guard status != 200 else { return try Answer(body) }
            // Timeout, too early, too many requests: they may be a gateway's, and say nothing about what it passed on.
            if (400..<500).contains(status), ![408, 425, 429].contains(status) {
                let error = try Answer(body).object("error")
                throw CheckoutError.refused(
                    code: try error.name("code"), message: try error.text("message", 0...1024))
            }
        } catch let error as CheckoutError {
            throw error
        } catch {
            throw .transport(
                reason: "status \(status), an answer that is none: \(error)", mayHaveHappened: request.isAboutPayment)
        }
        throw .transport(reason: "status \(status)", mayHaveHappened: request.isAboutPayment)
    }

    private static func reason(_ error: any Error) -> String {
        switch error {
        case is TimeLimitPassed: "no answer in time"
        case is CancellationError: "the request was canceled"
        case let error as URLError where error.code == .dataLengthExceedsMaximum:
            "an answer of more than \(maximumLength) bytes"
        case let error as URLError: "network error \(error.code.rawValue)"
        default: "\(type(of: error))"
        }
    }
}

/// One request and its answer, in pieces up to a length.
private final class Exchange: NSObject, URLSessionDataDelegate, Sendable {
    private let delivery: Delivery<(Int, Data)>
    private let body = Lock(Data())

    private init(_ delivery: Delivery<(Int, Data)>) { self.delivery = delivery }

    /// - Throws: `URLError`, `TimeLimitPassed`, `CancellationError`.
    static func perform(_ request: URLRequest, within limit: Duration) async throws -> (Int, Data) {
        let delivery = Delivery<(Int, Data)>()
        // Each request has a session, and so a connection, of its own.  A reused connection may break before the answer;
        // libcurl then sends the request again by itself, and Foundation no longer has a body for it.
        let configuration = URLSessionConfiguration.ephemeral
        configuration.urlCache = nil
        configuration.httpCookieStorage = nil
        configuration.httpShouldSetCookies = false
        // The limit of the whole exchange is below; Foundation's is one of silence.
        let (seconds, attoseconds) = limit.components
        configuration.timeoutIntervalForRequest = TimeInterval(seconds) + TimeInterval(attoseconds) / 1e18 + 1
        let session = URLSession(configuration: configuration, delegate: Exchange(delivery), delegateQueue: nil)
        let task = session.dataTask(with: request)
        defer { session.invalidateAndCancel() }
        return try await delivery.receive(within: limit) { task.resume() }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        // No answer of a payment service is elsewhere.  The handler is not called: swift-corelibs-foundation 6.3 traps in
        // it where the exchange has ended meanwhile, and this ends it.
        delivery.deliver(.success((response.statusCode, Data())))
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        let isTooLong = body.withLock { body in
            body.append(data.prefix(ServiceConnection.maximumLength + 1 - body.count))
            return body.count > ServiceConnection.maximumLength
        }
        guard isTooLong else { return }
        delivery.deliver(.failure(URLError(.dataLengthExceedsMaximum)))
        dataTask.cancel()
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        if let error {
            delivery.deliver(.failure(error))
        } else {
            let status = (task.response as? HTTPURLResponse)?.statusCode ?? 0
            delivery.deliver(.success((status, body.withLock { $0 })))
        }
    }
}
