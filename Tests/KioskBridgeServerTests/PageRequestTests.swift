import Foundation
import Testing

@testable import KioskBridgeServer

/// The answers over HTTP: tables over the decision, which does no I/O.
struct PageRequestTests {
    private static let page = #"<html><meta name="kiosk-token" content=""><body>"#
    private static let token = "0123456789abcdef0123456789abcdef"
    private static let admission = Admission(
        port: 8780, foreignOrigins: [], admitsOwnPages: true, tokens: TokenBook())

    /// The answer, and the origins that were given a token.
    private static func ask(_ request: PageRequests.Request) -> (answer: PageRequests.Answer, issued: [String]) {
        let html = BridgeServer.File(contentType: "text/html; charset=utf-8", bytes: Array(page.utf8))
        let requests = PageRequests(files: [
            "/": html, "/index.html": html, "/a/b.js": .init(contentType: "text/javascript", bytes: [1, 2]),
        ])
        var issued: [String] = []
        let answer = requests.answer(request, admission) {
            issued.append($0)
            return token
        }
        return (answer, issued)
    }

    private static func request(
        _ target: String, method: String = "GET", hosts: [String] = ["127.0.0.1:8780"], site: String? = nil,
        isMarked: Bool = false, hasBody: Bool = false
    ) -> PageRequests.Request {
        .init(
            method: method, target: target, hosts: hosts, fetchSite: site, isMarked: isMarked, hasBody: hasBody)
    }

    @Test(
        "C1 every request names this server, whatever it asks for",
        arguments: ["/", "/a/b.js", "/token", "/bridge", "/nothing"])
    func host(target: String) {
        for hosts in [[], ["evil.example:8780"], ["127.0.0.1"], ["127.0.0.1:8780", "127.0.0.1:8780"]] {
            for method in ["GET", "POST"] {
                let (answer, issued) = Self.ask(
                    Self.request(target, method: method, hosts: hosts, site: "same-origin", isMarked: true))
                #expect(answer.status == 421)
                #expect(issued == [])
            }
        }
    }

    @Test(
        "C1 nothing but GET is answered",
        arguments: ["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "CONNECT", "TRACE", "PATCH", "get", "G", ""])
    func method(method: String) {
        for target in ["/", "/token", "/bridge", "*"] {
            let (answer, issued) = Self.ask(Self.request(target, method: method, site: "same-origin", isMarked: true))
            #expect(answer.status == 405)
            #expect(issued == [])
        }
    }

    @Test("C1 a GET with a body is refused")
    func body() {
        #expect(Self.ask(Self.request("/", hasBody: true)).answer.status == 400)
    }

    @Test(
        "C1 nothing but the files is found",
        arguments: [
            "", "*", "/.", "/..", "//", "/a", "/a/", "/A/B.JS", "/a/b.js/", "/a//b.js", "/a/../a/b.js", "/./a/b.js",
            "/../etc/passwd", "/%2e%2e/etc/passwd", "/..%2fetc/passwd", "/a/b%2ejs", #"/..\..\etc\passwd"#,
            "/a/b.js%00", "/a/b.js\u{0}", "/index.html\u{301}", "http://127.0.0.1:8780/", "a/b.js", "/INDEX.html",
            "//evil.example/", "/token/", "/Token", "/bridge/", String(repeating: "/a", count: 40_000),
        ])
    func notFound(target: String) {
        #expect(Self.ask(Self.request(target)).answer.status == 404)
    }

    @Test(
        "C1 a file is served, with and without a query",
        arguments: ["/a/b.js", "/a/b.js?x=/../", "/a/b.js#x", "/a/b.js?"])
    func file(target: String) {
        let (answer, issued) = Self.ask(Self.request(target, site: "cross-site"))
        #expect(answer == PageRequests.Answer("text/javascript", [1, 2]))
        #expect(issued == [])
    }

    @Test("C1 /bridge without an upgrade is told so")
    func bridge() {
        #expect(Self.ask(Self.request("/bridge")).answer.status == 426)
    }

    @Test(
        "C2 the page gets a token for the origin it was asked by, when it is opened and not when another one asks",
        arguments: [
            (nil, true), ("none", true), ("same-origin", true), ("same-site", false), ("cross-site", false),
            ("", false), ("NONE", false), ("none, none", false),
        ] as [(String?, Bool)])
    func tokenInPage(site: String?, gets: Bool) {
        for target in ["/", "/index.html", "/?x"] {
            for host in ["127.0.0.1:8780", "localhost:8780", "[::1]:8780"] {
                let (answer, issued) = Self.ask(Self.request(target, hosts: [host], site: site))
                #expect(answer.status == 200)
                #expect(issued == (gets ? ["http://\(host)"] : []))
                let text = String(decoding: answer.bytes, as: UTF8.self)
                #expect(text.contains(#"<meta name="kiosk-token" content="\#(gets ? Self.token : "")">"#))
            }
        }
    }

    @Test("C2 a page without a place for the token is left as it is")
    func noPlace() {
        for text in ["", "<html>", #"<meta name="kiosk-token" content="#, "<META NAME=\"kiosk-token\" content=\"\">"] {
            let file = BridgeServer.File(contentType: "text/html", bytes: Array(text.utf8))
            #expect(file.carrying(Self.token) == file.bytes)
        }
    }

    @Test("C2 /token answers only its own page, by fetch")
    func tokenRules() {
        for site in ["same-origin", "same-site", "cross-site", "none", "", nil] {
            for isMarked in [true, false] {
                let (answer, issued) = Self.ask(Self.request("/token", site: site, isMarked: isMarked))
                let isOwn = site == "same-origin" && isMarked
                #expect(answer.status == (isOwn ? 200 : 403))
                #expect(issued == (isOwn ? ["http://127.0.0.1:8780"] : []))
                guard isOwn else { continue }
                #expect(answer.contentType == "application/json")
                let object = try? JSONSerialization.jsonObject(with: Data(answer.bytes)) as? [String: String]
                #expect(object == ["token": Self.token])
            }
        }
    }

    @Test("C2 /token tells a page that another one is connected")
    func occupied() throws {
        let files = ["/": BridgeServer.File(contentType: "text/html", bytes: [])]
        let admission = Admission(port: 8780, tokens: TokenBook())
        let answer = PageRequests(files: files).answer(
            Self.request("/token", site: "same-origin", isMarked: true), admission, isOccupied: true
        ) { _ in Self.token }
        #expect(answer.status == 200)
        #expect(String(decoding: answer.bytes, as: UTF8.self) == #"{"token":"\#(Self.token)","occupied":true}"#)
    }

    @Test("C1 what a page may do is named in every answer: scripts, frames and connections of its own only")
    func headers() throws {
        let fields = Dictionary(
            PageRequests.securityFields(host: "127.0.0.1:8780"), uniquingKeysWith: { first, _ in first })
        let policy = try #require(fields["Content-Security-Policy"]).split(separator: ";")
            .map { $0.trimmingCharacters(in: .whitespaces) }
        #expect(Set(policy).count == policy.count)
        for part in [
            "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' blob:",
            "connect-src 'self' ws://127.0.0.1:8780", "frame-ancestors 'none'", "base-uri 'none'",
            "form-action 'none'", "require-trusted-types-for 'script'",
        ] { #expect(policy.contains(part)) }
        #expect(!policy.contains { $0.contains("unsafe") || $0.contains("*") || $0.contains("http:") })
        #expect(fields["X-Content-Type-Options"] == "nosniff")
        #expect(fields["Referrer-Policy"] == "no-referrer")
        #expect(fields["Cross-Origin-Opener-Policy"] == "same-origin")
        #expect(fields["Cross-Origin-Resource-Policy"] == "same-origin")
        #expect(fields["Cache-Control"] == "no-store")
        #expect(fields["X-Frame-Options"] == "DENY")
        #expect(fields["Access-Control-Allow-Origin"] == nil)
        let features = try #require(fields["Permissions-Policy"]).split(separator: ",")
        #expect(features.allSatisfy { $0.hasSuffix("=()") })
    }
}
