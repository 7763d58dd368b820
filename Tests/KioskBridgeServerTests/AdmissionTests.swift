import NIOCore
import TestSupport
import Testing

@testable import KioskBridgeServer

/// Who is admitted: tables over the decision, which does no I/O.
struct AdmissionTests {
    private static let own = "http://127.0.0.1:8780"

    /// A server on port 8780 that admits its own pages and one other, with a token for `origin`.
    private static func admission(
        admitsOwnPages: Bool = true, foreign: Set<String> = ["https://kiosk.example"], tokenOf origin: String = own
    ) -> (admission: Admission, token: String) {
        var admission = Admission(
            port: 8780, foreignOrigins: foreign, admitsOwnPages: admitsOwnPages, tokens: TokenBook())
        var random = SplitMix(state: 7)
        let token = admission.tokens.issue(to: origin, at: .zero, random: &random)
        return (admission, token)
    }

    private static func refusal(
        _ request: Admission.Request, _ admission: inout Admission, at now: Duration = .seconds(1)
    ) -> Admission.Refusal? {
        do throws(Admission.Refusal) {
            _ = try admission.admit(request, at: now)
            return nil
        } catch { return error }
    }

    private static func request(
        hosts: [String] = ["127.0.0.1:8780"], origins: [String] = [own], token: String
    ) -> Admission.Request {
        Admission.Request(hosts: hosts, origins: origins, subprotocols: ["kiosk.bridge.v1", "auth.\(token)"])
    }

    // MARK: C1

    private static let fakes: [[String]] = [
        [], [""], ["null"], ["NULL"], ["undefined"], ["*"], ["http://127.0.0.1"], ["http://127.0.0.1:80"],
        ["http://127.0.0.1:8781"], ["http://127.0.0.1:08780"], ["http://127.0.0.1:8780/"], ["http://127.0.0.1:8780."],
        ["http://127.0.0.1.:8780"], ["https://127.0.0.1:8780"], ["ws://127.0.0.1:8780"], ["file://"],
        ["HTTP://127.0.0.1:8780"], ["http://LOCALHOST:8780"], ["http://localhost.:8780"], ["http://localhost:8780 "],
        [" http://127.0.0.1:8780"], ["http://127.0.0.1:8780.evil.example"], ["http://127.0.0.1:87800"],
        ["http://evil127.0.0.1:8780"], ["http://x@127.0.0.1:8780"], ["http://127.0.0.1:8780@evil.example"],
        ["http://127.1:8780"], ["http://2130706433:8780"], ["http://0.0.0.0:8780"], ["http://[::]:8780"],
        ["http://[0:0:0:0:0:0:0:1]:8780"], ["http://[::ffff:127.0.0.1]:8780"], ["127.0.0.1:8780"],
        ["http://127.0.0.1:8780, http://evil.example"], ["http://evil.example", own], [own, "http://evil.example"],
        [own, own], ["http://127.0.0.2:8780"], ["https://kiosk.example."], ["https://kiosk.example:443"],
        ["http://kiosk.example"], ["https://kiosk.example.evil.example"], ["https://evilkiosk.example"],
        ["https://kiosk.example/"], ["https://KIOSK.example"], ["https://sub.kiosk.example"],
        ["http://127.0.0.1:8780\u{0}"], ["http://127.0.0.1:8780\u{301}"], ["http://127\u{2024}0.0.1:8780"],
    ]

    @Test("C1 an origin that is not exactly one of the list is refused, and takes no token", arguments: fakes)
    func fakeOrigin(origins: [String]) {
        var (admission, token) = Self.admission()
        #expect(Self.refusal(Self.request(origins: origins, token: token), &admission) == .origin)
        #expect(Self.refusal(Self.request(token: token), &admission) == nil, "the token is still good")
    }

    @Test(
        "C1 each origin of the list is admitted",
        arguments: [own, "http://localhost:8780", "http://[::1]:8780", "https://kiosk.example"])
    func origin(origin: String) {
        var (admission, token) = Self.admission(tokenOf: origin)
        #expect(Self.refusal(Self.request(origins: [origin], token: token), &admission) == nil)
    }

    @Test("C1 an empty list admits nobody", arguments: [[own], ["https://kiosk.example"], ["null"], [""], []])
    func emptyList(origins: [String]) {
        let origin = origins.first ?? ""
        var (admission, token) = Self.admission(admitsOwnPages: false, foreign: [], tokenOf: origin)
        #expect(Self.refusal(Self.request(origins: origins, token: token), &admission) == .origin)
    }

    @Test("C1 the server's own pages are admitted only if it says so")
    func ownPages() {
        var (admission, token) = Self.admission(admitsOwnPages: false)
        #expect(Self.refusal(Self.request(token: token), &admission) == .origin)
    }

    private static let fakeHosts: [[String]] = [
        [], [""], ["evil.example"], ["evil.example:8780"], ["127.0.0.1"], ["127.0.0.1:80"], ["127.0.0.1:8781"],
        ["127.0.0.1:08780"], ["127.0.0.1.:8780"], ["localhost"], ["LOCALHOST:8780"], ["localhost.:8780"],
        ["sub.localhost:8780"], ["0.0.0.0:8780"], ["[::]:8780"], ["::1:8780"], ["[::1]"], ["[0:0:0:0:0:0:0:1]:8780"],
        ["127.0.0.2:8780"], ["x@127.0.0.1:8780"], ["127.0.0.1:8780 "], ["127.0.0.1:8780, evil.example"],
        ["127.0.0.1:8780", "evil.example"], ["evil.example", "127.0.0.1:8780"], ["127.0.0.1:8780", "127.0.0.1:8780"],
        ["127.0.0.1:8780.evil.example"], ["127.0.0.1.nip.example:8780"],
    ]

    @Test("C1 another name that leads here is refused, before the origin is looked at", arguments: fakeHosts)
    func fakeHost(hosts: [String]) {
        var (admission, token) = Self.admission()
        #expect(Self.refusal(Self.request(hosts: hosts, origins: [], token: token), &admission) == .host)
        #expect(Self.refusal(Self.request(hosts: hosts, token: token), &admission) == .host)
    }

    @Test("C1 the server has three names", arguments: ["127.0.0.1:8780", "[::1]:8780", "localhost:8780"])
    func host(host: String) {
        var (admission, token) = Self.admission()
        #expect(Self.refusal(Self.request(hosts: [host], token: token), &admission) == nil)
    }

    @Test("C1 the checks come in their order: address, host, origin, handshake, token")
    func order() {
        var (admission, token) = Self.admission()
        var request = Admission.Request(isFromLoopback: false, hosts: [], origins: [], subprotocols: [])
        #expect(Self.refusal(request, &admission) == .address)
        request.isFromLoopback = true
        #expect(Self.refusal(request, &admission) == .host)
        request.hosts = ["127.0.0.1:8780"]
        #expect(Self.refusal(request, &admission) == .origin)
        request.origins = [Self.own]
        #expect(Self.refusal(request, &admission) == .handshake)
        request.subprotocols = ["kiosk.bridge.v1"]
        request.isHandshake = false
        #expect(Self.refusal(request, &admission) == .handshake)
        request.isHandshake = true
        #expect(Self.refusal(request, &admission) == .token)
        request.subprotocols.append("auth.\(token)")
        #expect(Self.refusal(request, &admission) == nil)
    }

    @Test("C1 every refusal has a status of its own")
    func statuses() {
        let refusals: [Admission.Refusal] = [.address, .host, .origin, .handshake, .token, .anotherPage]
        #expect(refusals.map(\.status) == [403, 421, 403, 400, 401, 409])
    }

    // MARK: C2

    @Test("C2 a missing, malformed or wrong token is refused")
    func wrongToken() {
        var (admission, token) = Self.admission()
        let wrong = [
            [], ["auth."], ["auth"], [token], ["auth.\(token.dropLast())"], ["auth.\(token)0"],
            ["auth.\(token.uppercased())"], ["auth.\(String(token.reversed()))"], ["Auth.\(token)"],
            ["auth.\(String(repeating: "0", count: 32))"], ["auth. \(token)"], ["auth.\(token)\u{0}"],
            ["auth.\(String(repeating: "f", count: 60_000))"], ["auth.\(token)\u{301}"],
        ]
        for subprotocols in wrong {
            let request = Admission.Request(
                hosts: ["127.0.0.1:8780"], origins: [Self.own], subprotocols: ["kiosk.bridge.v1"] + subprotocols)
            #expect(Self.refusal(request, &admission) == .token, "\(subprotocols)")
        }
        #expect(Self.refusal(Self.request(token: token), &admission) == nil, "the token is still good")
    }

    @Test("C2 two tokens are refused, even if one or both are good")
    func twoTokens() {
        var (admission, token) = Self.admission()
        for second in [token, "0"] {
            var request = Self.request(token: token)
            request.subprotocols.append("auth.\(second)")
            #expect(Self.refusal(request, &admission) == .token)
        }
    }

    @Test("C2 a token counts once")
    func reuse() {
        var (admission, token) = Self.admission()
        #expect(Self.refusal(Self.request(token: token), &admission) == nil)
        #expect(Self.refusal(Self.request(token: token), &admission) == .token)
    }

    @Test("C2 a token counts for 30 seconds")
    func expiry() {
        for (seconds, expected) in [(29.999, nil), (30, .token), (31, .token)] as [(Double, Admission.Refusal?)] {
            var (admission, token) = Self.admission()
            #expect(Self.refusal(Self.request(token: token), &admission, at: .seconds(seconds)) == expected)
        }
    }

    @Test("C2 a token of another admitted origin is refused, and used up")
    func otherOrigin() {
        var (admission, token) = Self.admission(tokenOf: "https://kiosk.example")
        #expect(Self.refusal(Self.request(token: token), &admission) == .token)
        let right = Self.request(origins: ["https://kiosk.example"], token: token)
        #expect(Self.refusal(right, &admission) == .token)
    }

    @Test("C2 the names of this server are different origins")
    func localhostIsAnotherOrigin() {
        var (admission, token) = Self.admission(tokenOf: "http://localhost:8780")
        #expect(Self.refusal(Self.request(token: token), &admission) == .token)
    }

    @Test("C2 the oldest token goes when there are too many, and expired ones go first")
    func capacity() {
        var random = SplitMix(state: 1)
        var book = TokenBook()
        let tokens = (0...TokenBook.capacity).map { _ in book.issue(to: "a", at: .zero, random: &random) }
        #expect(Set(tokens).count == TokenBook.capacity + 1)
        let taken = tokens.map { book.take($0, from: "a", at: .zero) }
        #expect(taken == [false] + Array(repeating: true, count: TokenBook.capacity))

        let kept = book.issue(to: "a", at: .seconds(31), random: &random)
        for _ in 1..<TokenBook.capacity { _ = book.issue(to: "a", at: .zero, random: &random) }
        _ = book.issue(to: "a", at: .seconds(32), random: &random)
        let isKept = book.take(kept, from: "a", at: .seconds(33))
        #expect(isKept, "those of the time before went")
    }

    @Test("C2 a token has 32 digits of 128 random bits")
    func digits() {
        var random = Seed.generator()
        var book = TokenBook()
        var seen = Array(repeating: Set<Character>(), count: 32)
        for _ in 0..<1_000 {
            let token = book.issue(to: "a", at: .zero, random: &random)
            #expect(token.utf8.count == 32)
            for (place, digit) in token.enumerated() { seen[place].insert(digit) }
        }
        #expect(seen.allSatisfy { $0 == Set("0123456789abcdef") })
    }

    // MARK: C3

    @Test(
        "C3 only addresses of loopback are of loopback",
        arguments: [
            ("127.0.0.1", true), ("127.255.255.254", true), ("126.255.255.255", false), ("128.0.0.1", false),
            ("0.0.0.0", false), ("10.0.0.1", false), ("192.168.1.1", false), ("1.0.0.127", false), ("::1", true),
            ("::", false), ("::2", false), ("fe80::1", false), ("::ffff:127.0.0.1", false), ("2001:db8::1", false),
        ])
    func loopback(address: String, expected: Bool) throws {
        #expect(try SocketAddress(ipAddress: address, port: 8780).isLoopback == expected)
    }

    @Test("C3 a Unix socket is not of loopback")
    func unixSocket() throws {
        #expect(try !SocketAddress(unixDomainSocketPath: "/run/x").isLoopback)
    }
}
