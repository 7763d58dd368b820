import Foundation

/// The answers to requests over HTTP, without I/O: the page's files, and tokens for its connections.
struct PageRequests {
    /// A request, as far as it matters here.
    struct Request: Hashable, Sendable {
        var method = "GET"
        /// The target in origin form (RFC 9112, 3.2.1).
        var target: String
        var hosts: [String]
        /// The field `Sec-Fetch-Site`, which pages cannot set.
        var fetchSite: String?
        /// The field `X-Kiosk-Bridge`: a page of another origin could only send it after a preflight, which nobody answers.
        var isMarked = false
        var hasBody = false
    }

    struct Answer: Hashable, Sendable {
        var status: UInt
        var contentType = "text/plain; charset=utf-8"
        var bytes: [UInt8] = []

        init(_ status: UInt, _ text: String) { (self.status, bytes) = (status, Array((text + "\n").utf8)) }

        init(_ contentType: String, _ bytes: [UInt8]) {
            (status, self.contentType, self.bytes) = (200, contentType, bytes)
        }
    }

    let files: [String: BridgeServer.File]

    /// - Parameters:
    ///   - isOccupied: true while a page is connected, so that another one is refused (409), which it cannot see.
    ///   - issue: makes a token for an origin.
    func answer(
        _ request: Request, _ admission: borrowing Admission, isOccupied: Bool = false, issue: (String) -> String
    ) -> Answer {
        guard admission.names(request.hosts), let host = request.hosts.first else {
            return Answer(421, "This is not the server of that name.")
        }
        guard request.method == "GET" else { return Answer(405, "Only GET.") }
        guard !request.hasBody else { return Answer(400, "A GET has no body here.") }
        let path = String(request.target.prefix { $0 != "?" && $0 != "#" })
        let origin = "http://\(host)"
        if path == "/token" {
            guard request.fetchSite == "same-origin", request.isMarked else { return Answer(403, "Only for the page.") }
            let occupied = isOccupied ? #","occupied":true"# : ""
            return Answer("application/json", Array("{\"token\":\"\(issue(origin))\"\(occupied)}".utf8))
        }
        if path == "/bridge" { return Answer(426, "Only for a WebSocket.") }
        guard let file = files[path] else { return Answer(404, "There is no such file.") }
        guard path == "/" || path == "/index.html" else { return Answer(file.contentType, file.bytes) }
        // Another page that shows this one in a frame, or fetches it, gets no token.
        let isOwn = ["none", "same-origin", nil].contains(request.fetchSite)
        return Answer(file.contentType, isOwn ? file.carrying(issue(origin)) : file.bytes)
    }

    /// The header fields of every answer.
    ///
    /// - Parameter host: that of the request.
    static func securityFields(host: String?) -> [(String, String)] {
        let socket = host.map { " ws://\($0)" } ?? ""
        let policy = [
            "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' blob:", "font-src 'self'",
            "media-src 'self'", "connect-src 'self'\(socket)", "frame-ancestors 'none'", "base-uri 'none'",
            "form-action 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'",
        ]
        let features = [
            "accelerometer", "autoplay", "camera", "display-capture", "fullscreen", "geolocation", "gyroscope", "hid",
            "magnetometer", "microphone", "midi", "payment", "publickey-credentials-get", "serial", "usb",
        ]
        return [
            ("Content-Security-Policy", policy.joined(separator: "; ")), ("X-Content-Type-Options", "nosniff"),
            ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Opener-Policy", "same-origin"),
            ("Cross-Origin-Resource-Policy", "same-origin"), ("Cross-Origin-Embedder-Policy", "require-corp"),
            ("X-Frame-Options", "DENY"), ("Cache-Control", "no-store"),
            ("Permissions-Policy", features.map { "\($0)=()" }.joined(separator: ", ")),
        ]
    }
}
