import Foundation
import TestSupport
import Testing

@testable import KioskBridgeServer

/// Who may connect: the rules, without I/O.
@Suite(.computing) struct AdmissionTests {
    private static let own = "http://127.0.0.1:8780"

    private static func admission(foreign: Set<String> = [], own: Bool = true) -> Admission {
        var admission = Admission(foreignOrigins: foreign, admitsOwnPages: own, tokens: TokenBook())
        admission.port = 8780
        return admission
    }

    private static func request(
        host: [String] = ["127.0.0.1:8780"], origin: [String] = [own], token: String
    ) -> Admission.Request {
        Admission.Request(hosts: host, origins: origin, subprotocols: ["kiosk.bridge.v1", "auth.\(token)"])
    }

    private func refusal(_ admission: inout Admission, _ request: Admission.Request, at now: Duration = .zero)
        -> Admission.Refusal?
    {
        do {
            _ = try admission.admit(request, at: now)
            return nil
        } catch {
            return error
        }
    }

    @Test(
        "C1 An origin that is not in the list, letter by letter, is refused",
        arguments: [
            [], ["null"], [""], ["http://127.0.0.1"], ["http://127.0.0.1:8781"], ["http://127.0.0.1:87801"],
            ["http://127.0.0.1:8780/"], ["http://127.0.0.1:8780."], ["HTTP://127.0.0.1:8780"],
            ["https://127.0.0.1:8780"], ["http://localhost.:8780"], ["http://LOCALHOST:8780"],
            ["http://localhost:8780.evil.example"], ["http://evil.example"], ["http://evil.example:8780"],
            ["http://127.0.0.1:8780@evil.example"], ["http://evil.example#http://127.0.0.1:8780"],
            ["http://127.0.0.1:8780 "], [" http://127.0.0.1:8780"], ["http://127.0.0.2:8780"],
            ["http://0.0.0.0:8780"], ["http://[::]:8780"], ["ws://127.0.0.1:8780"], ["file://"], ["*"],
            ["chrome-extension://127.0.0.1:8780"], [own, own], [own, "http://evil.example"],
            ["http://127.0.0.1:8780, http://evil.example"],
        ])
    func origins(_ origins: [String]) {
        var admission = Self.admission()
        var random = SplitMix(state: 1)
        let token = admission.tokens.issue(to: Self.own, at: .zero, random: &random)
        #expect(refusal(&admission, Self.request(origin: origins, token: token)) == .origin)
        // The token is still good.
        #expect(refusal(&admission, Self.request(token: token)) == nil)
    }

    @Test("C1 An empty list admits nobody, and a listed origin is admitted")
    func lists() {
        var random = SplitMix(state: 1)
        var closed = Self.admission(own: false)
        let token = closed.tokens.issue(to: Self.own, at: .zero, random: &random)
        #expect(refusal(&closed, Self.request(token: token)) == .origin)
        var open = Self.admission(foreign: ["https://kiosk.example"], own: false)
        let foreign = open.tokens.issue(to: "https://kiosk.example", at: .zero, random: &random)
        #expect(refusal(&open, Self.request(origin: ["https://kiosk.example"], token: foreign)) == nil)
        for name in ["127.0.0.1", "localhost", "[::1]"] {
            var admission = Self.admission()
            let origin = "http://\(name):8780"
            let token = admission.tokens.issue(to: origin, at: .zero, random: &random)
            #expect(refusal(&admission, Self.request(host: ["\(name):8780"], origin: [origin], token: token)) == nil)
        }
    }

    @Test(
        "C1 A name that is not this server's is refused, whatever the origin",
        arguments: [
            [], [""], ["evil.example"], ["evil.example:8780"], ["127.0.0.1"], ["127.0.0.1:8781"], ["localhost"],
            ["LOCALHOST:8780"], ["localhost.:8780"], ["127.0.0.1:8780:8780"], ["127.1:8780"], ["0.0.0.0:8780"],
            ["127.0.0.1:8780", "127.0.0.1:8780"],
        ])
    func hosts(_ hosts: [String]) {
        var admission = Self.admission()
        var random = SplitMix(state: 1)
        let token = admission.tokens.issue(to: Self.own, at: .zero, random: &random)
        #expect(refusal(&admission, Self.request(host: hosts, token: token)) == .host)
    }

    @Test("C2 A token is good once, for its origin, for thirty seconds")
    func tokens() {
        var admission = Self.admission()
        var random = SplitMix(state: 1)
        let first = admission.tokens.issue(to: Self.own, at: .zero, random: &random)
        #expect(first.count == 32 && first.allSatisfy(\.isHexDigit))
        #expect(refusal(&admission, Self.request(token: first)) == nil)
        #expect(refusal(&admission, Self.request(token: first)) == .token)
        let late = admission.tokens.issue(to: Self.own, at: .seconds(100), random: &random)
        #expect(refusal(&admission, Self.request(token: late), at: .seconds(130)) == .token)
        let intime = admission.tokens.issue(to: Self.own, at: .seconds(200), random: &random)
        #expect(refusal(&admission, Self.request(token: intime), at: .seconds(229)) == nil)
        let other = admission.tokens.issue(to: "http://localhost:8780", at: .seconds(300), random: &random)
        #expect(refusal(&admission, Self.request(token: other), at: .seconds(300)) == .token)
        // A token that somebody else tried is used up.
        #expect(
            refusal(
                &admission,
                Self.request(host: ["localhost:8780"], origin: ["http://localhost:8780"], token: other),
                at: .seconds(300)) == .token)
        for wrong in ["", "0", String(repeating: "0", count: 32), first.uppercased(), first + "0"] {
            #expect(refusal(&admission, Self.request(token: wrong), at: .seconds(300)) == .token)
        }
    }

    @Test("C2 Without a token, with two, or without the bridge's subprotocol nobody is admitted")
    func subprotocols() {
        var admission = Self.admission()
        var random = SplitMix(state: 1)
        let token = admission.tokens.issue(to: Self.own, at: .zero, random: &random)
        func refused(_ subprotocols: [String]) -> Admission.Refusal? {
            refusal(
                &admission,
                Admission.Request(hosts: ["127.0.0.1:8780"], origins: [Self.own], subprotocols: subprotocols))
        }
        #expect(refused(["kiosk.bridge.v1"]) == .token)
        #expect(refused(["auth.\(token)"]) == .subprotocol)
        #expect(refused(["kiosk.bridge.v2", "auth.\(token)"]) == .subprotocol)
        #expect(refused(["kiosk.bridge.v1", "auth.\(token)", "auth.\(token)"]) == .token)
        #expect(refused(["auth.\(token)", "kiosk.bridge.v1"]) == nil)
    }

    @Test("C2 More tokens than the book has room for push out the oldest")
    func capacity() {
        var book = TokenBook()
        var random = SplitMix(state: 1)
        let tokens = (0..<TokenBook.capacity + 1).map { _ in book.issue(to: "o", at: .zero, random: &random) }
        #expect(Set(tokens).count == tokens.count)
        let taken = [0, 1, tokens.count - 1].map { book.take(tokens[$0], from: "o", at: .zero) }
        #expect(taken == [false, true, true])
    }

    @Test("C3 A peer that is not on this machine is refused first")
    func addresses() {
        var admission = Self.admission()
        var random = SplitMix(state: 1)
        let token = admission.tokens.issue(to: Self.own, at: .zero, random: &random)
        var request = Self.request(token: token)
        request.isFromLoopback = false
        #expect(refusal(&admission, request) == .address)
        #expect(refusal(&admission, Self.request(token: token)) == nil)
    }
}

/// The answers over HTTP: the rules, without I/O.
@Suite(.computing) struct PageRequestTests {
    private static let page = Array(#"<meta name="kiosk-token" content="">"#.utf8)
    private static let pages = PageRequests(files: [
        "/": .init(contentType: "text/html; charset=utf-8", bytes: page),
        "/app.js": .init(contentType: "text/javascript; charset=utf-8", bytes: [1, 2, 3]),
    ])

    private func answer(_ request: PageRequests.Request) -> (PageRequests.Answer, tokens: [String]) {
        var admission = Admission(tokens: TokenBook())
        admission.port = 8780
        var origins: [String] = []
        let answer = Self.pages.answer(request, admission) {
            origins.append($0)
            return "token-\(origins.count)"
        }
        return (answer, origins)
    }

    @Test(
        "A request gets its file, or a status that says why not",
        arguments: [
            ("GET", "/", 200), ("GET", "/?a=b", 200), ("GET", "/app.js", 200), ("GET", "/app.js#x", 200),
            ("GET", "/none.js", 404), ("GET", "/../etc/passwd", 404), ("GET", "//app.js", 404),
            ("GET", "/%61pp.js", 404), ("GET", "http://127.0.0.1:8780/app.js", 404), ("GET", "", 404),
            ("GET", "/bridge", 426), ("GET", "/token", 403), ("POST", "/", 405), ("HEAD", "/", 405),
            ("OPTIONS", "/token", 405), ("DELETE", "/app.js", 405),
        ] as [(String, String, UInt)])
    func statuses(_ method: String, _ target: String, _ status: UInt) {
        let (answer, _) = answer(.init(method: method, target: target, hosts: ["127.0.0.1:8780"]))
        #expect(answer.status == status)
    }

    @Test("A page of another origin gets no token: not from the page, and not from /token")
    func tokens() {
        let host = ["localhost:8780"]
        let (page, origins) = answer(.init(target: "/", hosts: host, fetchSite: "none"))
        #expect(String(decoding: page.bytes, as: UTF8.self) == #"<meta name="kiosk-token" content="token-1">"#)
        #expect(origins == ["http://localhost:8780"])
        for site in ["cross-site", "same-site"] {
            let (page, origins) = answer(.init(target: "/", hosts: host, fetchSite: site))
            #expect(page.bytes == Self.page && origins.isEmpty)
        }
        let (given, _) = answer(.init(target: "/token", hosts: host, fetchSite: "same-origin", isMarked: true))
        #expect(String(decoding: given.bytes, as: UTF8.self) == #"{"token":"token-1"}"#)
        for (site, isMarked) in [("same-origin", false), ("cross-site", true), (nil, true), ("none", true)] {
            let (answer, origins) = answer(
                .init(target: "/token", hosts: host, fetchSite: site, isMarked: isMarked))
            #expect(answer.status == 403 && origins.isEmpty)
        }
        let (body, none) = answer(.init(target: "/", hosts: host, hasBody: true))
        #expect(body.status == 400 && none.isEmpty)
        #expect(answer(.init(target: "/", hosts: ["evil.example"])).0.status == 421)
    }

    @Test("Every answer forbids what a page does not need")
    func fields() {
        let fields = Dictionary(PageRequests.securityFields(host: "127.0.0.1:8780")) { first, _ in first }
        let policy = Set((fields["Content-Security-Policy"] ?? "").split(separator: "; ").map(String.init))
        #expect(
            policy.isSuperset(of: [
                "default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'",
                "form-action 'none'", "connect-src 'self' ws://127.0.0.1:8780", "require-trusted-types-for 'script'",
            ]))
        #expect(fields["X-Content-Type-Options"] == "nosniff" && fields["Cache-Control"] == "no-store")
        #expect(fields["Cross-Origin-Resource-Policy"] == "same-origin")
        #expect(fields["Permissions-Policy"]?.contains("usb=()") == true)
    }

    @Test("A folder is served by its paths; hidden files, links and unknown kinds are left out")
    func folder() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "page-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        try FileManager.default.createDirectory(at: folder.appending(path: "img"), withIntermediateDirectories: true)
        for (name, text) in [
            ("index.html", "page"), ("img/a.png", "png"), (".secret.js", "no"), ("program.exe", "no"), ("a.js", "js"),
        ] { try Data(text.utf8).write(to: folder.appending(path: name)) }
        try FileManager.default.createSymbolicLink(
            at: folder.appending(path: "link.js"), withDestinationURL: URL(filePath: "/etc/passwd"))
        let files = try BridgeServer.File.all(in: folder)
        #expect(Set(files.keys) == ["/", "/index.html", "/img/a.png", "/a.js"])
        #expect(files["/img/a.png"]?.contentType == "image/png" && files["/"]?.bytes == Array("page".utf8))
        try FileManager.default.removeItem(at: folder.appending(path: "index.html"))
        #expect(throws: BridgeServer.File.Unservable.self) { try BridgeServer.File.all(in: folder) }
    }
}
