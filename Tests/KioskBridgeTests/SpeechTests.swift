import Foundation
import KioskPage
import Synchronization
import TestSupport
import Testing

@testable import KioskBridge

/// The connection with a speech server: an honest one, lying ones, and the real one.
@Suite(.timeLimit(.minutes(5))) struct SpeechDispatcherTests {
    @Test("a text is said, and the next one over the same connection") func says() async throws {
        let server = try FakeSpeechServer(FakeSpeechServer.honest)
        let speech = SpeechDispatcher(path: server.path)
        #expect(speech.isThere)
        try await speech.say("Hello", in: "en")
        try await speech.say(".de", in: "de")
        #expect(
            server.lines.filter { !$0.hasPrefix("SET ") } == ["SPEAK", "Hello", ".", "SPEAK", "..de", "."],
            "\(server.lines)")
        #expect(server.lines.count { $0.contains("CLIENT_NAME") } == 1)
        #expect(server.lines.filter { $0.contains("LANGUAGE") } == ["SET SELF LANGUAGE en", "SET SELF LANGUAGE de"])
    }

    /// What a lying server does, and what is made of it.
    private static let lying: [(String, FakeSpeechServer.Answer, SpeechError)] = [
        (
            "another protocol", { _ in "HTTP/1.1 400 Bad Request↵" },
            .violation(offset: 0, due: "three digits, and a hyphen or a space")
        ),
        (
            "an endless line", { _ in String(repeating: "2", count: 1_000_000) },
            .violation(offset: 0, due: "the end of a line")
        ),
        (
            "an endless reply", { _ in String(repeating: "208-x↵", count: 1000) },
            .violation(offset: 448, due: "the last line of a reply")
        ),
        ("a hang-up", { _ in nil }, .hungUp),
        ("no name", { $0 == "." ? nil : FakeSpeechServer.honest($0) }, .hungUp),
        ("a wrong code", { $0 == "SPEAK" ? "231 HAPPY HACKING↵" : FakeSpeechServer.honest($0) }, .refused(code: 231)),
        ("no synthesizer", { $0 == "." ? "300 ERR↵" : FakeSpeechServer.honest($0) }, .refused(code: 300)),
        ("no notices", { $0.contains("NOTIFICATION") ? "500 ERR↵" : FakeSpeechServer.honest($0) }, .refused(code: 500)),
        ("silence", { _ in "" }, .noAnswer),
        ("no end", { $0 == "." ? "225-1↵225 OK↵" : FakeSpeechServer.honest($0) }, .noAnswer),
    ]

    @Test("a lying server is left, and asked again with the next text", arguments: lying.indices)
    func lies(_ index: Int) async throws {
        let (name, lie, expected) = Self.lying[index]
        let isHonest = Mutex(false)
        let server = try FakeSpeechServer { line in
            isHonest.withLock { $0 } ? FakeSpeechServer.honest(line) : lie(line)
        }
        let limit: Duration = expected == .noAnswer ? .seconds(2) : .seconds(60)
        let speech = SpeechDispatcher(path: server.path, limit: limit)
        let error = await #expect(throws: SpeechError.self, "\(name)") { try await speech.say("Hello", in: "en") }
        #expect(error == expected, "\(name)")
        #expect(error?.description.isEmpty == false)
        isHonest.withLock { $0 = true }
        // A hang-up may be seen only with the next command.
        for _ in 0..<3 where (try? await speech.say("Hello", in: "en")) != nil { return }
        Issue.record("\(name): no text after it")
    }

    @Test("nobody there; a path too long; a folder") func nobody() async throws {
        for path in ["/tmp/speech-nobody", "/" + String(repeating: "x", count: 200), "/tmp", ""] {
            let speech = SpeechDispatcher(path: path)
            await #expect(throws: SpeechError.noServer(path: path)) { try await speech.say("Hello", in: "en") }
        }
        #expect(!SpeechDispatcher(path: "/tmp/speech-nobody").isThere)
    }

    @Test(
        "the path that speech-dispatcher's clients use",
        arguments: [
            (["XDG_RUNTIME_DIR": "/run/user/7"], "/run/user/7/speech-dispatcher/speechd.sock"),
            (["HOME": "/k"], "/k/.cache/speech-dispatcher/speechd.sock"),
            (["HOME": "/k", "XDG_CACHE_HOME": "/c"], "/c/speech-dispatcher/speechd.sock"),
            (["SPEECHD_ADDRESS": "unix_socket:/x/y", "XDG_RUNTIME_DIR": "/r"], "/x/y"),
            (["SPEECHD_ADDRESS": "unix_socket", "XDG_RUNTIME_DIR": "/r"], "/r/speech-dispatcher/speechd.sock"),
            (
                ["SPEECHD_ADDRESS": "inet_socket:127.0.0.1", "XDG_RUNTIME_DIR": "/r"],
                "/r/speech-dispatcher/speechd.sock"
            ),
        ]) func path(_ environment: [String: String], _ expected: String)
    {
        #expect(SpeechDispatcher.usualPath(environment) == expected)
    }

    @Test(
        "speech-dispatcher says texts in their language; a new one ends the one before, in the middle of it",
        .enabled(if: RealSpeechServer.isInstalled, "speech-dispatcher is not installed"))
    func real() async throws {
        let server = try await RealSpeechServer(seconds: 1)
        let speech = SpeechDispatcher(path: server.path)
        #expect(speech.isThere)
        // The end is told after it has been said, and not when it was queued.
        try await speech.say(".5 – Total: 12,34 €; $HOME 'x'", in: "de")
        #expect(server.said == ["german .5 – Total: 12,34 €; $HOME 'x'", "end"])
        let first = Task { try await speech.say("One", in: "en") }
        try await server.waitForLine("english One")
        try await speech.say("Two", in: "en")
        await #expect(throws: CancellationError.self) { try await first.value }
        #expect(server.said.suffix(3) == ["english One", "english Two", "end"], "\(server.said)")
        // A canceled task ends its text.
        let second = Task { try await speech.say("Three", in: "en") }
        try await server.waitForLine("english Three")
        second.cancel()
        await #expect(throws: CancellationError.self) { try await second.value }
        try await speech.say("Four", in: "en")
        #expect(server.said.suffix(3) == ["english Three", "english Four", "end"], "\(server.said)")
        try await server.stop()
        await #expect(throws: SpeechError.self) { try await speech.say("Five", in: "en") }
    }
}

/// The page's requests for speech.
@Suite(.timeLimit(.minutes(5))) @MainActor struct SpeechCapabilityTests {
    /// An output that writes down what it is to say, and says it until it is let go.
    private final class Notebook: SpeechOutput {
        let said = Mutex<[String]>([])
        let volumes = Mutex<[Int?]>([])
        let canceled = Mutex<[String]>([])
        let isSlow = Mutex(false)
        let fault = Mutex<SpeechError?>(nil)
        let isThere = true

        func say(_ text: String, in language: String, volume: Int?) async throws {
            said.withLock { $0.append("\(language): \(text)") }
            volumes.withLock { $0.append(volume) }
            if let fault = fault.withLock({ $0 }) { throw fault }
            guard isSlow.withLock({ $0 }) else { return }
            do { try await waitUntilCanceled() } catch {
                canceled.withLock { $0.append(text) }
                throw error
            }
        }
    }

    private let host = BridgeHost(hostVersion: "1.0.0")
    private let notebook = Notebook()
    private let jack: AsyncStream<Bool>.Continuation
    private let page: Page

    init() throws {
        let (states, jack) = AsyncStream<Bool>.makeStream()
        self.jack = jack
        let texts = try SpeechTexts(module: KioskPage.files["/strings.js"]?.bytes ?? []).withCheckout()
        host.register(SpeechCapability(texts, output: notebook, headphones: KioskHeadphones { states }))
        page = try #require(Page(host))
    }

    private func plug(_ isIn: Bool) async throws {
        jack.yield(isIn)
        try await page.wait("host.headphones") { page.events("host.headphones").last?["connected"] as? Bool == isIn }
    }

    @Test("the page is told of the headphone when it connects, and of each change") func headphones() async throws {
        try await page.wait("host.headphones") { page.events("host.headphones").count == 1 }
        #expect(page.events("host.headphones").first?["connected"] as? Bool == false)
        #expect(page.events("host.headphones").first?["sequence"] as? Int == 2)
        try await plug(true)
        page.leave()
        let second = try #require(Page(host))
        try await second.wait("host.headphones") { !second.events("host.headphones").isEmpty }
        #expect(second.events("host.headphones").first?["connected"] as? Bool == true)
    }

    @Test("texts are said in the language of the page, or that of the kiosk") func languages() async throws {
        try await plug(true)
        host.setLocale(Locale(identifier: "fr_FR"))
        for (data, said) in [
            (#"{"key":"launcher.title","values":{"locale":"de"}}"#, "de: Willkommen"),
            (#"{"key":"launcher.title","values":{"locale":"es-MX"}}"#, "es: Bienvenido"),
            (#"{"key":"launcher.title","values":{"locale":"it"}}"#, "fr: Bienvenue"),
            (#"{"key":"launcher.title"}"#, "fr: Bienvenue"),
            (#"{"key":"order.pay","values":{"amount":"12,34 €"}}"#, "fr: Payer 12,34 €"),
            (#"{"key":"checkout.total","values":{"amount":"12,34 €","locale":"de"}}"#, "de: Summe: 12,34 €"),
        ] {
            #expect(try await page.request("speech.say", data).status == "success")
            #expect(notebook.said.withLock { $0.last } == said)
        }
    }

    @Test(
        "what is no request for a text is refused, and nothing is said",
        arguments: [
            "{}", #"{"key":1}"#, #"{"key":""}"#, #"{"key":"nothing"}"#, #"{"text":"Hello"}"#,
            #"{"key":"launcher.title","values":[]}"#, #"{"key":"launcher.title","values":{"a":"b"}}"#,
            #"{"key":"order.pay","values":{"amount":12}}"#, #"{"key":"order.pay","values":{"amount":"Erika"}}"#,
            #"{"key":"launcher.title","volume":101}"#, #"{"key":"launcher.title","volume":-1}"#,
            #"{"key":"launcher.title","volume":"50"}"#, #"{"key":"launcher.title","volume":0.5}"#,
        ]) func refused(_ data: String) async throws
    {
        try await plug(true)
        #expect(try await page.request("speech.say", data).code == "INVALID_REQUEST")
        #expect(notebook.said.withLock { $0 } == [])
    }

    @Test("a text is as loud as the page says, from silence on") func volume() async throws {
        try await plug(true)
        for volume in [100, 0, 60] {
            let data = #"{"key":"launcher.title","volume":\#(volume)}"#
            #expect(try await page.request("speech.say", data).status == "success")
        }
        #expect(try await page.request("speech.say", #"{"key":"launcher.title"}"#).status == "success")
        #expect(notebook.volumes.withLock { $0 } == [100, 0, 60, nil])
    }

    @Test("without a headphone nobody hears anything") func privacy() async throws {
        let answer = try await page.request("speech.say", #"{"key":"launcher.title"}"#)
        #expect(answer.code == "PERMISSION_DENIED" && answer.isRecoverable == true)
        try await plug(true)
        #expect(try await page.request("speech.say", #"{"key":"launcher.title"}"#).status == "success")
        try await plug(false)
        #expect(try await page.request("speech.say", #"{"key":"launcher.title"}"#).code == "PERMISSION_DENIED")
        // A watch that has ended does not keep the last state.
        try await plug(true)
        jack.finish()
        try await page.wait("the end of the watch") {
            page.events("host.headphones").last?["connected"] as? Bool == false
        }
        #expect(notebook.said.withLock { $0.count } == 1)
    }

    @Test("a text ends with the next one, the headphone, the page, and the kiosk's being used") func ends() async throws
    {
        notebook.isSlow.withLock { $0 = true }
        try await plug(true)
        func begin(_ page: Page, _ key: String) async throws -> String {
            let count = notebook.said.withLock { $0.count }
            let id = await page.begin("speech.say", #"{"key":"\#(key)"}"#)
            try await page.wait(key) { notebook.said.withLock { $0.count } > count }
            return id
        }
        func isCanceled(_ id: String) async throws {
            try await page.wait("an answer") { !page.responses(to: id).isEmpty }
            #expect(page.responses(to: id).map(\.code) == ["CANCELLED"])
        }
        let first = try await begin(page, "launcher.title")
        let second = try await begin(page, "launcher.lead")
        try await isCanceled(first)
        try await plug(false)
        try await isCanceled(second)
        try await plug(true)
        let third = try await begin(page, "complete.title")
        await host.enterBackground()
        try await isCanceled(third)
        #expect(try await page.request("speech.say", #"{"key":"launcher.title"}"#).code == "CANCELLED")
        await host.enterForeground()
        let fourth = try await begin(page, "action.back")
        #expect(try await page.request("speech.stop").status == "success")
        try await isCanceled(fourth)
        #expect(try await page.request("speech.stop").status == "success")
        _ = try await begin(page, "complete.lead")
        page.leave()
        try await page.wait("its end") { notebook.canceled.withLock { $0.count } == 5 }
        #expect(
            notebook.canceled.withLock { $0 } == [
                "Welcome", "What would you like to do?", "Thank you", "Back", "Please take everything that is yours.",
            ])
    }

    @Test(
        "the server's faults are told by their kinds",
        arguments: [
            (SpeechError.noServer(path: "/x"), "UNSUPPORTED", "unsupported"), (.noAnswer, "TIMEOUT", "error"),
            (.refused(code: 300), "SPEECH_FAILED", "error"), (.hungUp, "SPEECH_FAILED", "error"),
            (.violation(offset: 1, due: "x"), "SPEECH_FAILED", "error"),
        ]) func faults(_ fault: SpeechError, _ code: String, _ status: String) async throws
    {
        try await plug(true)
        notebook.fault.withLock { $0 = fault }
        let answer = try await page.request("speech.say", #"{"key":"launcher.title"}"#)
        #expect((answer.code, answer.status) == (code, status))
    }

    @Test("a kiosk with a handset speaks to whoever is there") func everybody() async throws {
        page.leave()
        let host = BridgeHost(hostVersion: "1.0.0")
        let texts = try SpeechTexts(languages: ["en"], rows: ["hello": ["Hello"]])
        host.register(
            SpeechCapability(texts, output: notebook, headphones: .init { .init { _ in } }, audience: .everybody))
        let page = try #require(Page(host))
        try await page.wait("host.headphones") { !page.events("host.headphones").isEmpty }
        #expect(page.events("host.headphones").first?["connected"] as? Bool == true)
        #expect(try await page.request("speech.say", #"{"key":"hello","values":{"locale":"de"}}"#).status == "success")
        #expect(notebook.said.withLock { $0 } == ["en: Hello"])
    }

    @Test(
        "from the page's request to speech-dispatcher's synthesizer",
        .enabled(if: RealSpeechServer.isInstalled, "speech-dispatcher is not installed"))
    func real() async throws {
        let server = try await RealSpeechServer(seconds: 0.3)
        let host = BridgeHost(hostVersion: "1.0.0")
        let texts = try SpeechTexts(module: KioskPage.files["/strings.js"]?.bytes ?? [])
        let states = AsyncStream<Bool>.makeStream()
        host.register(
            SpeechCapability(
                texts, output: SpeechDispatcher(path: server.path), headphones: KioskHeadphones { states.stream }))
        #expect(host.capabilities["speech.say"]?.isSupported == true)
        let page = try #require(Page(host))
        states.continuation.yield(true)
        try await page.wait("the headphone") { page.events("host.headphones").count == 2 }
        let data = #"{"key":"order.pay","values":{"locale":"de","amount":"12,34 €"}}"#
        #expect(try await page.request("speech.say", data).status == "success")
        #expect(server.said == ["german 12,34 € bezahlen", "end"])
        // Pulled out in the middle of it.
        let id = await page.begin("speech.say", #"{"key":"launcher.title"}"#)
        try await server.waitForLine("english Welcome")
        states.continuation.yield(false)
        try await page.wait("an answer") { !page.responses(to: id).isEmpty }
        #expect(page.responses(to: id).first?.code == "CANCELLED")
        try await server.stop()
        #expect(host.capabilities["speech.say"]?.isSupported == false)
    }
}
