import Foundation
import KioskPage
import TestSupport
import Testing

@testable import KioskBridge

/// The conversation with a speech server, by the bytes of the protocol's manual and of speech-dispatcher 0.11.4.
struct SSIPTests {
    /// What is sent, as lines, and the ends of texts.
    private struct Step: Hashable, CustomStringConvertible {
        let description: String

        init(_ action: SSIPConversation.Action) {
            switch action {
            case .send(let bytes):
                description = String(decoding: bytes, as: UTF8.self).replacing("\r\n", with: "↵")
            case .end(let number, let end): description = "\(number) \(end)"
            }
        }
    }

    /// A conversation after the replies to its settings.
    private func opened(_ text: String = "Bonjour", _ language: String = "fr") throws -> SSIPConversation {
        var conversation = SSIPConversation()
        _ = conversation.say(text, number: 1, in: language)
        for reply in [
            "208 OK CLIENT NAME SET", "220 OK NOTIFICATION SET", "220 OK NOTIFICATION SET", "219 OK SSML MODE SET",
            "205 OK PUNCTUATION SET", "202 OK PRIORITY SET", "201 OK LANGUAGE SET",
        ] { _ = try conversation.receive("\(reply)\r\n".utf8) }
        return conversation
    }

    private func steps(_ conversation: inout SSIPConversation, _ text: String) throws -> [String] {
        try conversation.receive(text.replacing("↵", with: "\r\n").utf8).map { Step($0).description }
    }

    @Test("settings go first, each after the reply to the one before; then the text; its end is the notice's")
    func says() throws {
        var conversation = SSIPConversation()
        #expect(
            conversation.say("Hello", number: 1, in: "en").map { Step($0).description }
                == ["SET SELF CLIENT_NAME kiosk:kiosk-host:page↵"])
        for (reply, sent) in [
            ("208 OK CLIENT NAME SET↵", ["SET SELF NOTIFICATION END on↵"]),
            ("220 OK NOTIFICATION SET↵", ["SET SELF NOTIFICATION CANCEL on↵"]),
            ("220 OK NOTIFICATION SET↵", ["SET SELF SSML_MODE off↵"]),
            // An older server: what is not needed may be refused.
            ("500 ERR INVALID COMMAND↵", ["SET SELF PUNCTUATION none↵"]), ("205 OK", []),
            (" PUNCTUATION SET↵", ["SET SELF PRIORITY message↵"]), ("202 OK PRIORITY SET↵", ["SET SELF LANGUAGE en↵"]),
            ("201 OK LANGUAGE SET↵", ["SPEAK↵"]), ("230 OK RECEIVING DATA↵", ["Hello↵.↵"]),
            ("225-21↵225 OK MESSAGE QUEUED↵", []), ("701-21↵701-1↵701 BEGIN↵", []), ("702-20↵702-1↵702 END↵", []),
            ("702-21↵702-1↵", []), ("702 END↵", ["1 said"]),
        ] { #expect(try steps(&conversation, reply) == sent, "\(reply)") }
        // The language is known, and only what changes is sent.
        #expect(conversation.say("Bye", number: 2, in: "en").map { Step($0).description } == ["SPEAK↵"])
    }

    @Test(
        "the volume is set when it changes, from -100 to 100 (SSIP, 4.5)",
        arguments: [(0, "-100"), (50, "0"), (65, "30"), (100, "100")]) func volume(_ percent: Int, _ setting: String)
        throws
    {
        var conversation = try opened()
        _ = conversation.cancel()
        _ = try steps(&conversation, "230 OK RECEIVING DATA↵225-1↵225 OK MESSAGE QUEUED↵213 OK CANCELED↵")
        func say(_ number: Int, _ volume: Int?) -> [String] {
            conversation.say("x", number: number, in: "fr", volume: volume).map { Step($0).description }
        }
        #expect(say(2, percent) == ["SET SELF VOLUME \(setting)↵"])
        #expect(try steps(&conversation, "218 OK VOLUME SET↵") == ["SPEAK↵"])
        #expect(try steps(&conversation, "230 OK RECEIVING DATA↵") == ["x↵.↵"])
        #expect(try steps(&conversation, "225-2↵225 OK MESSAGE QUEUED↵702-2↵702-1↵702 END↵") == ["2 said"])
        #expect(say(3, nil) == ["SPEAK↵"])
        #expect(
            try steps(&conversation, "230 OK RECEIVING DATA↵225-3↵225 OK MESSAGE QUEUED↵702-3↵702-1↵702 END↵").last
                == "3 said")
        #expect(say(4, percent) == ["SPEAK↵"])
    }

    @Test(
        "a text in one line; a dot before a dot (SSIP, 4.1)",
        arguments: [
            ("Hello", "Hello\r\n.\r\n"), (".5", "..5\r\n.\r\n"), (".", "..\r\n.\r\n"), ("", ".\r\n"),
            ("a\r\n.\r\nQUIT\u{85}b", "a  .  QUIT b\r\n.\r\n"), ("5 €", "5 €\r\n.\r\n"),
        ]) func data(_ text: String, _ expected: String)
    {
        #expect(String(decoding: SSIPConversation.data(text), as: UTF8.self) == expected)
    }

    @Test("a new text cancels the one before, wherever that is") func replaces() throws {
        // Announced: the server waits for data, and gets none.
        var announced = try opened()
        #expect(
            announced.say("deux", number: 2, in: "fr").map { Step($0).description } == ["1 canceled"])
        #expect(try steps(&announced, "230 OK RECEIVING DATA↵") == [".↵"])
        #expect(try steps(&announced, "225-1↵225 OK MESSAGE QUEUED↵") == ["CANCEL SELF↵"])
        #expect(try steps(&announced, "703-1↵703-1↵703 CANCELED↵213 OK CANCELED↵") == ["SPEAK↵"])
        #expect(try steps(&announced, "230 OK RECEIVING DATA↵") == ["deux↵.↵"])
        // Being said; the notice about the old one ends nothing.
        #expect(try steps(&announced, "225-2↵225 OK MESSAGE QUEUED↵") == [])
        #expect(
            announced.say("drei", number: 3, in: "de").map { Step($0).description } == ["2 canceled", "CANCEL SELF↵"])
        #expect(try steps(&announced, "213 OK CANCELED↵703-2↵703-1↵703 CANCELED↵") == ["SET SELF LANGUAGE de↵"])
        #expect(try steps(&announced, "201 OK LANGUAGE SET↵") == ["SPEAK↵"])
        // Not announced yet: nothing of it is sent.
        var fresh = SSIPConversation()
        _ = fresh.say("one", number: 1, in: "en")
        #expect(fresh.cancel().map { Step($0).description } == ["1 canceled"])
        #expect(fresh.cancel() == [])
        var sent: [String] = []
        for _ in 0..<8 { sent += (try? steps(&fresh, "200 OK↵")) ?? ["violation"] }
        #expect(!sent.contains { $0.hasPrefix("SPEAK") || $0.hasPrefix("CANCEL") }, "\(sent)")
    }

    @Test("a notice before the reply that names the text counts") func early() throws {
        var conversation = try opened()
        #expect(try steps(&conversation, "230 OK RECEIVING DATA↵") == ["Bonjour↵.↵"])
        #expect(try steps(&conversation, "702-9↵702-1↵702 END↵") == [])
        #expect(try steps(&conversation, "225-9↵225 OK MESSAGE QUEUED↵") == ["1 said"])
    }

    @Test(
        "what a server refuses ends the text, and not the conversation",
        arguments: [
            ("300 ERR INTERNAL↵", 300), ("410 ERR↵", 410), ("513 ERR↵", 513), ("225 OK MESSAGE QUEUED↵", 225),
        ]) func refused(_ reply: String, _ code: Int) throws
    {
        var conversation = try opened()
        #expect(try steps(&conversation, reply) == ["1 refused(code: \(code))"])
        #expect(conversation.say("encore", number: 2, in: "fr").map { Step($0).description } == ["SPEAK↵"])
        #expect(try steps(&conversation, "230 OK RECEIVING DATA↵") == ["encore↵.↵"])
        #expect(try steps(&conversation, "408 ERR↵") == ["2 refused(code: 408)"])
    }

    @Test("a server without notices is of no use") func noNotices() throws {
        var conversation = SSIPConversation()
        _ = conversation.say("Hello", number: 1, in: "en")
        _ = try steps(&conversation, "208 OK CLIENT NAME SET↵")
        #expect(throws: SpeechError.refused(code: 501)) { try steps(&conversation, "501 ERR UNKNOWN↵") }
    }

    @Test(
        "what is not the protocol, with the offset",
        arguments: [
            ("HTTP/1.1 400 Bad Request↵", 0, "three digits, and a hyphen or a space"),
            ("↵", 0, "three digits, and a hyphen or a space"),
            ("20↵", 0, "three digits, and a hyphen or a space"),
            ("208_OK↵", 0, "three digits, and a hyphen or a space"),
            ("２０８ OK↵", 0, "three digits, and a hyphen or a space"), ("208 OK\n", 6, "CR before LF"),
            ("208 OK↵209 OK↵210 OK↵211 OK↵212 OK↵213 OK↵214 OK↵215 OK↵", 56, "no reply without a command"),
            (String(repeating: "x", count: 1025), 0, "the end of a line"),
            (String(repeating: "208-x↵", count: 65), 448, "the last line of a reply"),
            (String(repeating: "702-x↵", count: 65), 448, "the last line of a reply"),
        ]) func violations(_ text: String, _ offset: Int, _ due: String)
    {
        var conversation = SSIPConversation()
        _ = conversation.say("Hello", number: 1, in: "en")
        _ = conversation.cancel()
        #expect(throws: SpeechError.violation(offset: offset, due: due)) { try steps(&conversation, text) }
    }

    @Test("a queued text without a name") func nameless() throws {
        for reply in ["225 OK MESSAGE QUEUED↵", "225-↵225 OK↵", "225-\(String(repeating: "1", count: 21))↵225 OK↵"] {
            var conversation = try opened()
            _ = try steps(&conversation, "230 OK RECEIVING DATA↵")
            #expect(throws: SpeechError.self) { try steps(&conversation, reply) }
        }
    }

    @Test("no bytes bring it down, and each text ends at most once") func hostile() throws {
        var random = Seed.generator()
        let pieces = [
            "225-1↵", "225 OK↵", "230 OK↵", "702-1↵", "702-1↵702 END↵", "703-1↵703 X↵", "213 OK↵", "300 E↵", "7", "↵",
            "-",
        ]
        for _ in 0..<2000 {
            var conversation = SSIPConversation()
            var ends: [Int] = []
            var number = 0
            for _ in 0..<40 {
                let actions: [SSIPConversation.Action]
                switch Int.random(in: 0..<8, using: &random) {
                case 0:
                    number += 1
                    actions = conversation.say("x", number: number, in: "en")
                case 1: actions = conversation.cancel()
                default:
                    let text = pieces.randomElement(using: &random)?.replacing("↵", with: "\r\n") ?? ""
                    actions = (try? conversation.receive(text.utf8)) ?? []
                }
                ends += actions.compactMap { if case .end(let number, _) = $0 { number } else { nil } }
            }
            #expect(Set(ends).count == ends.count && ends == ends.sorted())
        }
    }
}

/// The texts of a page, and what may be said with them.
struct SpeechTextsTests {
    private static let page = KioskPage.files["/strings.js"]?.bytes ?? []

    @Test("the example page's table") func page() throws {
        let texts = try SpeechTexts(module: Self.page)
        #expect(texts.languages == ["en", "de", "fr", "es"])
        #expect(try texts.text("launcher.title", "de", [:]) == "Willkommen")
        #expect(try texts.text("order.pay", "fr", ["amount": "12,34 €"]) == "Payer 12,34 €")
        #expect(try texts.text("idle.lead", "es", ["seconds": "20"]) == "El quiosco se reinicia en 20 segundos.")
        // The last one, which a comma follows.
        #expect(try texts.text("idle.extend", "en", [:]) == "I need more time")
    }

    @Test(
        "what is said of an order is an amount",
        arguments: [
            "€12.34", "12,34 €", "12,34\u{A0}€", "1 234,50\u{202F}€", "-€1.00", "CHF 12.00", "12,34 $US", "¥500",
            "KWD 5.123", "R$ 1.234,56",
        ]) func amounts(_ amount: String) throws
    {
        #expect(try SpeechTexts(module: Self.page).text("order.pay", "en", ["amount": amount]) == "Pay \(amount)")
    }

    @Test(
        "nothing else is said",
        arguments: [
            ("order.pay", ["amount": "Erika Mustermann"]), ("order.pay", ["amount": "12.34"]),
            ("order.pay", ["amount": ""]),
            ("order.pay", ["amount": "€1234567890123"]), ("order.pay", ["amount": "C01X00T47 €"]), ("order.pay", [:]),
            ("order.pay", ["amount": "€1\r\n.\r\nQUIT"]), ("order.pay", ["amount": "€1", "name": "x"]),
            ("order.pay", ["amount": "€ABCD1"]), ("order.pay", ["amount": "€1;2"]), ("order.pay", ["amount": "€€1"]),
            ("idle.lead", ["seconds": "12345"]), ("idle.lead", ["seconds": "-1"]), ("idle.lead", ["seconds": "２"]),
            ("launcher.title", ["seconds": "2"]), ("reference", ["reference": "1001"]),
            ("pay.loyalty", ["member": "****1234", "saved": "€1.00"]), ("no.such.text", [:]), ("", [:]),
        ]) func refused(_ key: String, _ values: [String: String]) throws
    {
        let texts = try SpeechTexts(module: Self.page)
        #expect(throws: BridgeErrorPayload.self) { try texts.text(key, "en", values) }
    }

    @Test(
        "tables that are none",
        arguments: [
            ("", "const languages = {"), ("const languages = { en", "}"),
            ("const languages = { en: 1 };", "const rows = {"),
            (#"const languages = { en: 1 }; const rows = { "a": ["b"]"#, "\n};"),
            ("const languages = { en: 1 }; const rows = { \"a\": [\"b\", 1]\n};", "a list of texts for \"a\""),
            ("const languages = { en: 1 }; const rows = { \"a\": \"b\"\n};", "a list of texts for \"a\""),
            ("const languages = { en: 1, de: 2 }; const rows = { \"a\": [\"b\"]\n};", "a text for each language"),
            (
                "const languages = { english: 1 }; const rows = { \"a\": [\"b\"]\n};",
                "languages of two or three letters"
            ),
            ("const languages = {}; const rows = {\n};", "languages of two or three letters"),
        ]) func malformed(_ module: String, _ due: String)
    {
        #expect { try SpeechTexts(module: module.utf8) } throws: { ($0 as? SpeechTexts.Malformed)?.due == due }
    }

    @Test("the offset of what is no JSON is that in the file") func offset() {
        let module = "const languages = { en: 1 };\nconst rows = {\n  \"a\": [\"b\" x]\n};"
        let fault = #expect(throws: SpeechTexts.Malformed.self) { try SpeechTexts(module: module.utf8) }
        #expect(fault?.offset == module.utf8.count - 5)
    }

    @Test("texts and rows have limits") func limits() {
        #expect(throws: SpeechTexts.Malformed.self) {
            try SpeechTexts(languages: ["en"], rows: ["a": [String(repeating: "x", count: 2001)]])
        }
        #expect(throws: SpeechTexts.Malformed.self) {
            try SpeechTexts(module: [UInt8](repeating: 0x20, count: 1 << 20 + 1))
        }
    }

    @Test(
        "language tags (RFC 5646, 2.1)",
        arguments: [
            ("de", true), ("fr-FR", true), ("zh-Hant-TW", true), ("DE", true), ("pseudo", false), ("", false),
            ("-", false), ("d", false),
            ("de_DE", true), ("de.DE", false), ("de-", false), ("de-toolongpart", false), ("de--DE", false),
            ("dé", false),
            ("de-" + String(repeating: "a-", count: 20) + "a", false),
        ]) func tags(_ tag: String, _ isOne: Bool)
    {
        #expect((Locale(bcp47: tag) != nil) == isOne)
    }
}
