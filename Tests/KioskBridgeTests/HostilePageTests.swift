import CardEncryption
import Foundation
import TestSupport
import Testing

@_spi(Fuzzing) @testable import KioskBridge

/// Pages that lie: texts made of messages that are right and changed a little, against a model of what a
/// conversation may do.
@Suite(.computing) struct HostilePageTests {
    private static let texts = [
        #"{"v":1,"type":"request","correlationId":"r1","payload":{"action":"nfc.read","data":{"can":"123456"}}}"#,
        #"{"v":1,"type":"request","correlationId":"r2","payload":{"action":"payment.start","data":{"order":"1"}}}"#,
        #"{"v":1,"type":"event","correlationId":"e1","payload":{"action":"journey.complete","data":{"n":1.5e3}}}"#,
        #"{"v":1,"type":"request","correlationId":"r\#u{75}1","payload":{"action":"a","data":{"a":[{"b":null},[]]}}}"#,
        #"{"v":2,"type":"request","correlationId":"r3","payload":{"action":"a"}}"#,
        #"{"v":1,"type":"response","correlationId":"r1","payload":{"action":"a"},"status":"success"}"#,
    ].map { Array($0.utf8) }
    private static let pieces = [
        "{", "}", "[", "]", "\"", ",", ":", "\\", "\\u0000", "\\ud83d", "1e999", "-0", "9223372036854775808", "null",
        "true", "\u{0}", "\u{85}", "é", "e\u{301}", "\"v\":1,", "\"correlationId\":\"r1\",", "99999999999999999999",
    ].map { Array($0.utf8) }

    private static func text(_ random: inout SplitMix) -> String {
        var bytes = texts[Int.random(in: 0..<texts.count, using: &random)]
        for _ in 0..<max(0, Int.random(in: -6...3, using: &random)) {
            let place = Int.random(in: 0...bytes.count, using: &random)
            switch Int.random(in: 0..<4, using: &random) {
            case 0: bytes.insert(contentsOf: pieces[Int.random(in: 0..<pieces.count, using: &random)], at: place)
            case 1 where place < bytes.count: bytes[place] = UInt8.random(in: 0...255, using: &random)
            case 2: bytes.removeSubrange(place..<min(bytes.count, place + Int.random(in: 1...9, using: &random)))
            default: bytes.insert(contentsOf: bytes.suffix(bytes.count - place).prefix(20), at: place)
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test("No text traps; each request is answered at most once; what ends is silent", .timeLimit(.minutes(5)))
    func conversation() throws {
        var random = SplitMix(state: 2026)
        var counts = (performed: 0, refused: 0, ended: 0, noticed: 0)
        for _ in 0..<5_000 {
            var conversation = BridgeConversation(limits: BridgeLimits())
            var open: [String] = []
            for _ in 0..<20 {
                let wasEnded = conversation.isEnded
                let actions = conversation.receive(Self.text(&random))
                #expect(!wasEnded || actions.isEmpty)
                for action in actions {
                    switch action {
                    case .perform(let request):
                        counts.performed += 1
                        #expect(!open.contains(request.correlationId))
                        open.append(request.correlationId)
                    case .notice(let message):
                        counts.noticed += 1
                        #expect(message.type == BridgeMessageType.event)
                    case .send(let text):
                        counts.refused += 1
                        let json = try JSON(text.utf8, depth: 32)
                        let answer = try JSONValue(json).members
                        #expect(answer?["type"] == "response" && answer?["error"]?.members != nil)
                    case .close: #expect(conversation.isEnded)
                    case .refused: break
                    case .abandon(let correlationId): open.removeAll { $0 == correlationId }
                    }
                }
                if conversation.isEnded {
                    counts.ended += 1
                    break
                }
                #expect(open.count <= 16 && Set(open) == Set(conversation.open.keys))
                if let answered = open.randomElement(using: &random), Bool.random(using: &random) {
                    #expect(conversation.answer(answered, .success).count == 1)
                    #expect(conversation.answer(answered, .success).isEmpty)
                    open.removeAll { $0 == answered }
                }
            }
            #expect(Set(conversation.end()) == Set(open.map { .abandon(correlationId: $0) }) || conversation.isEnded)
        }
        // Each kind of answer was reached.
        #expect(
            counts.performed > 1_000 && counts.refused > 1_000 && counts.ended > 1_000 && counts.noticed > 1_000,
            "\(counts)")
    }

    @Test("A text that Foundation does not read is no message, and what is one is read by Foundation as well")
    func agreement() {
        var random = SplitMix(state: 7)
        var messages = 0
        for _ in 0..<20_000 {
            let text = Self.text(&random)
            guard (try? BridgeMessage(parsing: text, depth: 32)) != nil else { continue }
            messages += 1
            let object = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
            let hasName = object?["correlationId"] is String
            #expect(hasName, "\(text)")
        }
        #expect(messages > 1_000)
    }
}
