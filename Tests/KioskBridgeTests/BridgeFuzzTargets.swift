import Foundation
@_spi(Fuzzing) import KioskBridge

/// The fuzzer's target for the bridge: it takes any input, and throws a finding.  Fuzz/ has libFuzzer write the inputs; the
/// tests take those of Fuzz/corpora, and change them a little.
public enum BridgeFuzzTargets {
    /// Something that must not be.
    public struct Finding: Error, CustomStringConvertible {
        public let description: String
    }

    /// A conversation, a line for each step: `=ID` and `!ID` answer a request, `>NAME` sends an event, `+` lets a second pass,
    /// `.` ends it, and each other line is a text of the page.
    public static func conversation(_ input: [UInt8]) throws(Finding) {
        var page = Page()
        for line in input.split(separator: 0x0A, maxSplits: 200) {
            // The server refuses what is no UTF-8 before it comes so far.
            guard let text = String(validating: line, as: UTF8.self) else { continue }
            let rest = String(text.dropFirst())
            switch text.first {
            case "=": try page.answer(rest) { $0.answer(rest, .success, data: ["text": .string(rest)]) }
            case "!": try page.answer(rest) { $0.answer(rest, .error, error: BridgeErrorPayload(.busy, rest)) }
            case ">": try page.take { $0.send(event: "journey.cancel", data: ["reason": .string(rest)]) }
            case "+": page.now += .seconds(1)
            case ".": try page.take { $0.end() }
            default: try page.receive(text)
            }
        }
        try page.take { $0.end() }
        guard page.waiting.isEmpty else { throw Finding(description: "requests are left") }
    }

    /// The page's knowledge of the conversation: what may come next.
    private struct Page {
        private static let limits = BridgeLimits()
        private var conversation = BridgeConversation(limits: limits)
        /// The requests that are carried out.
        private(set) var waiting: Set<String> = []
        private var sequence = 0
        var now: Duration = .zero
        private var received = 0

        mutating func receive(_ text: String) throws(Finding) {
            received += 1
            // As a page is held back, so many are taken at a time at most: a burst of one second, then the rate.
            let pause = conversation.count(at: now)
            let rate = Double(Self.limits.messagesPerSecond)
            let due = Double(received) - rate * (1 + now / .seconds(1))
            guard pause >= .zero, pause / .seconds(1) >= due / rate - 1e-6 else {
                throw Finding(description: "message \(received) waits for \(pause) at \(now)")
            }
            try take { $0.receive(text) }
        }

        /// An answer goes to a request that waits, once.
        mutating func answer(
            _ id: String, _ step: (inout BridgeConversation) -> [BridgeConversation.Action]
        ) throws(Finding) {
            let isDue = waiting.contains(id)
            var count = 0
            try take {
                let actions = step(&$0)
                count = actions.count
                return actions
            }
            guard count == (isDue ? 1 : 0), !waiting.contains(id) else {
                throw Finding(description: "\(count) answers to a request that \(isDue ? "waits" : "does not wait")")
            }
        }

        mutating func take(
            _ step: (inout BridgeConversation) -> [BridgeConversation.Action]
        ) throws(Finding) {
            let wasEnded = conversation.isEnded
            let actions = step(&conversation)
            guard !wasEnded || actions.isEmpty else { throw Finding(description: "it goes on after its end") }
            for action in actions { try take(action) }
            guard waiting == Set(conversation.open.keys) else { throw Finding(description: "other requests are open") }
            guard !conversation.isEnded || waiting.isEmpty else { throw Finding(description: "requests are left") }
        }

        private mutating func take(_ action: BridgeConversation.Action) throws(Finding) {
            switch action {
            case .send(let text): try read(text)
            case .close(let code, let reason):
                guard [1007, 1008].contains(code), reason.utf8.count <= 123, conversation.isEnded else {
                    throw Finding(description: "closed with \(code) \(reason)")
                }
            case .perform(let message):
                guard message.type == .request, waiting.insert(message.correlationId).inserted,
                    waiting.count <= Self.limits.requestsInFlight
                else { throw Finding(description: "a request too many: \(waiting.count)") }
                try inspect(message)
            case .notice(let message):
                guard message.type == .event else { throw Finding(description: "no event: \(message)") }
                try inspect(message)
            case .refused(let error):
                guard error.code == error.code.uppercased() else { throw Finding(description: error.code) }
            case .abandon(let id):
                guard waiting.remove(id) != nil else { throw Finding(description: "abandoned: nobody's request") }
            }
        }

        /// What is written is JSON to others, too.
        private mutating func read(_ text: String) throws(Finding) {
            let object = try? JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
            guard let object, object["v"] as? Int == 1, let id = object["correlationId"] as? String,
                let payload = object["payload"] as? [String: Any], payload["action"] is String
            else { throw Finding(description: "no message is sent") }
            switch object["type"] as? String {
            case "event":
                sequence += 1
                guard (payload["data"] as? [String: Any])?["sequence"] as? Int == sequence else {
                    throw Finding(description: "an event is missing")
                }
            case "response":
                guard (object["status"] as? String == "success") == (object["error"] == nil) else {
                    throw Finding(description: "an error, or none, against the status")
                }
                // A refusal of another request with this name leaves the open one as it is.
                if conversation.open[id] == nil { waiting.remove(id) }
            default: throw Finding(description: "neither event nor response")
            }
        }

        /// What the page wrote is masked where people read it.
        private func inspect(_ message: BridgeMessage) throws(Finding) {
            guard (1...64).contains(message.correlationId.utf8.count),
                (1...64).contains(message.payload.action.utf8.count)
            else { throw Finding(description: "a name of another length") }
            for value in (message.payload.data ?? [:]).values {
                guard let text = value.text, text.utf8.count > 80 else { continue }
                guard !"\(message)\(message.masked)".contains(text) else { throw Finding(description: "data is shown") }
            }
        }
    }
}
