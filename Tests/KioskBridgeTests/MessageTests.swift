import CardEncryption
import Foundation
import Testing

@_spi(Fuzzing) @testable import KioskBridge

@Suite struct MessageTests {
    @Test(
        "C14 A value survives the way to JSON and back, and Foundation reads the same",
        arguments: [
            .null, true, false, "", "ü\u{2028}\u{0}\"\\/\u{1F600}", 0, -1, 9_007_199_254_740_992, 9_007_199_254_740_993,
            -9_223_372_036_854_775_808, .number(0.1), .number(-2.5e-300), .number(1e300),
            .number(1_152_921_504_606_846_976),
            [], [1, [2, [nil]]], [:], ["a": ["b": [true, nil, "c"]], "": 1.5],
        ] as [JSONValue])
    func roundTrip(_ value: JSONValue) throws {
        let text = value.description
        #expect(try JSONValue(JSON(text.utf8, depth: 32)) == value)
        let foreign = try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
        let again = try JSONSerialization.data(withJSONObject: [foreign])
        #expect(try JSONValue(JSON(again, depth: 32)) == [value])
    }

    @Test("C14 A whole number beyond 2^53 keeps its digits")
    func precision() throws {
        #expect(try JSONValue(JSON("9007199254740993".utf8)) == .integer(9_007_199_254_740_993))
        #expect(JSONValue.integer(9_007_199_254_740_993).description == "9007199254740993")
        #expect(try JSONValue(JSON("9007199254740991".utf8)) == .number(9_007_199_254_740_991))
        #expect(JSONValue.number(.nan).description == "null")
        #expect(JSONValue.number(.infinity).description == "null")
    }

    @Test(
        "C4 A text that is no message is refused",
        arguments: [
            ("", true), ("{", true), ("[]", false), ("{}", false), ("null", false), (#"{"v":1}"#, false),
            (#"{"v":1,"v":1}"#, true), (#"{"a":NaN}"#, true), (#"{"a":Infinity}"#, true), (#"{"a":01}"#, true),
            (#"{"a":1,}"#, true), (#"{"a":"\#u{0001}"}"#, true), (#"{"a":"\ud800"}"#, true), ("{'a':1}", true),
            (#"{"v":1,"type":"request","correlationId":"","payload":{"action":"a"}}"#, false),
            (#"{"v":1,"type":"request","correlationId":"ä","payload":{"action":"a"}}"#, false),
            (#"{"v":1,"type":"event","correlationId":"a","payload":{"action":""}}"#, false),
        ])
    func malformed(_ text: String, isNoJSON: Bool) throws {
        var conversation = BridgeConversation(limits: BridgeLimits())
        let actions = conversation.receive(text)
        #expect(
            actions.contains { if case .close(let code, _) = $0 { code == (isNoJSON ? 1007 : 1008) } else { false } })
        #expect(conversation.isEnded)
        #expect(conversation.receive(text).isEmpty)
    }

    @Test(
        "C6 A message whose sender can be answered is answered",
        arguments: [
            (#""v":2,"type":"request","payload":{"action":"a"}"#, "VERSION_MISMATCH"),
            (#""type":"request","payload":{"action":"a"}"#, "INVALID_REQUEST"),
            (#""v":"1","type":"request","payload":{"action":"a"}"#, "INVALID_REQUEST"),
            (#""v":1,"type":"question","payload":{"action":"a"}"#, "INVALID_REQUEST"),
            (#""v":1,"type":"response","payload":{"action":"a"}"#, "INVALID_REQUEST"),
            (#""v":1,"type":"request","payload":{"action":"a b"}"#, "INVALID_REQUEST"),
            (#""v":1,"type":"request","payload":{}"#, "INVALID_REQUEST"),
            (#""v":1,"type":"request","payload":{"action":"a","data":[]}"#, "INVALID_REQUEST"),
            (#""v":1,"type":"request","payload":{"action":"a","data":{"n":1e999}}"#, "INVALID_REQUEST"),
            (#""v":1,"type":"request","payload":{"action":"a","data":{"n":9223372036854775808}}"#, "INVALID_REQUEST"),
            (
                "\"v\":1,\"type\":\"request\",\"payload\":{\"action\":\"a\",\"data\":{\"\u{E9}\":1,\"e\u{301}\":1}}",
                "INVALID_REQUEST"
            ),
        ])
    func answered(_ members: String, _ code: String) throws {
        var conversation = BridgeConversation(limits: BridgeLimits())
        let actions = conversation.receive(#"{"correlationId":"x-1",\#(members)}"#)
        guard case .send(let text) = try #require(actions.last) else { throw Unexpected(actions: actions) }
        #expect(text.contains(#""correlationId":"x-1""#) && text.contains(code), "\(text)")
        #expect(!conversation.isEnded)
    }

    struct Unexpected: Error { let actions: [BridgeConversation.Action] }

    @Test("C4 Objects nested deeper than the limit, and messages longer than it, end the connection")
    func bounds() {
        for text in [
            String(repeating: #"{"a":"#, count: 33) + "1" + String(repeating: "}", count: 33),
            String(repeating: "[", count: 60_000),
            #"{"a":"# + String(repeating: "[", count: 32) + String(repeating: "]", count: 32) + "}",
            #"{"a":""# + String(repeating: "a", count: 65_536) + #""}"#,
        ] {
            var conversation = BridgeConversation(limits: BridgeLimits())
            #expect(conversation.receive(text).contains { if case .close = $0 { true } else { false } })
        }
        var conversation = BridgeConversation(limits: BridgeLimits())
        let data = String(repeating: #"{"a":"#, count: 29) + "1" + String(repeating: "}", count: 29)
        let deepest = #"{"v":1,"type":"event","correlationId":"e","payload":{"action":"a","data":\#(data)}}"#
        #expect(conversation.receive(deepest).count == 1)
    }
}

@Suite struct ConversationTests {
    private func request(_ id: String) -> String {
        #"{"v":1,"type":"request","correlationId":"\#(id)","payload":{"action":"a"}}"#
    }

    @Test("C5 Each request has one answer, in any order, and none after the page has gone")
    func answers() {
        var conversation = BridgeConversation(limits: BridgeLimits())
        for id in ["a", "b", "c"] { #expect(conversation.receive(request(id)).count == 1) }
        #expect(conversation.answer("b", .success).count == 1)
        #expect(conversation.answer("b", .success).isEmpty)
        #expect(conversation.answer("nobody", .success).isEmpty)
        #expect(conversation.answer("a", .error).count == 1)
        #expect(conversation.end() == [.abandon(correlationId: "c")])
        #expect(conversation.answer("c", .success).isEmpty)
        #expect(conversation.send(event: "e", data: [:]).isEmpty)
        #expect(conversation.end().isEmpty)
    }

    @Test("C5 A name that is in use is refused, and can be used again after its answer")
    func names() {
        var conversation = BridgeConversation(limits: BridgeLimits())
        _ = conversation.receive(request("a"))
        let again = conversation.receive(request("a"))
        #expect(again.contains { if case .send(let text) = $0 { text.contains("INVALID_REQUEST") } else { false } })
        #expect(conversation.answer("a", .success).count == 1)
        #expect(conversation.receive(request("a")).count == 1)
    }

    @Test("C11 Requests beyond the limit are answered BUSY, and the earlier ones stay")
    func inFlight() {
        var conversation = BridgeConversation(limits: BridgeLimits())
        for number in 0..<16 { _ = conversation.receive(request("\(number)")) }
        let refused = conversation.receive(request("16"))
        #expect(refused.contains { if case .send(let text) = $0 { text.contains("BUSY") } else { false } })
        #expect(conversation.open.count == 16)
        _ = conversation.answer("3", .success)
        #expect(conversation.receive(request("16")).count == 1)
    }

    @Test("C11 A page that sends ten thousand messages a second is held back to fifty")
    func rate() {
        var conversation = BridgeConversation(limits: BridgeLimits())
        var now = Duration.zero
        var held = Duration.zero
        for number in 0..<1_000 {
            let pause = conversation.count(at: now)
            if number < 50 { #expect(pause == .zero) }
            held += pause
            now += pause + .microseconds(100)
        }
        // The first fifty are free.
        #expect(now > .seconds(18.9) && now < .seconds(19.2), "\(now), held for \(held)")
        #expect(conversation.count(at: now + .seconds(10)) == .zero)
        // A clock that goes back is no gift, nor is its coming again.
        let later = now + .seconds(10)
        for _ in 1..<50 { _ = conversation.count(at: later) }
        #expect(conversation.count(at: .zero) > .zero)
        #expect(conversation.count(at: later) > .zero)
    }

    @Test("Events are numbered from 1")
    func sequence() {
        var conversation = BridgeConversation(limits: BridgeLimits())
        for number in 1...3 {
            guard case .send(let text)? = conversation.send(event: "e", data: ["sequence": 99]).first else { continue }
            #expect(text.contains(#""sequence":\#(number)"#))
        }
        #expect(conversation.send(event: "e", data: [:]).count == 1)
    }
}
