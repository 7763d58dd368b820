import CardEncryption

/// Messages as JSON text: one object with `v`, `type`, `correlationId`, `payload`, and in responses `status` and `error`.
extension BridgeMessage {
    /// A text that is no message of a page.
    struct Malformed: Error, Hashable {
        /// The request to answer; nil if that cannot be read.
        var request: (correlationId: String, action: String)?
        var error: BridgeErrorPayload

        static func == (a: Self, b: Self) -> Bool {
            a.request?.correlationId == b.request?.correlationId && a.error == b.error
        }

        func hash(into hasher: inout Hasher) { hasher.combine(error) }
    }

    /// Parses a message of a page.
    ///
    /// - Parameter depth: the maximum nesting depth of objects and arrays.
    init(parsing text: String, depth: Int) throws(Malformed) {
        let json: JSON
        do { json = try JSON(text.utf8, depth: depth) } catch {
            throw Malformed(error: .init(.invalidRequest, "no JSON: \(error.due) is due at byte \(error.offset)"))
        }
        guard let members = json.object else { throw Malformed(error: .init(.invalidRequest, "no JSON object")) }
        let correlationId = members["correlationId"]?.text?.string
        let payload = members["payload"]?.object
        let action = payload?["action"]?.text?.string
        func malformed(_ message: String, _ code: BridgeErrorCode = .invalidRequest) -> Malformed {
            var malformed = Malformed(error: .init(code, message))
            // Anything else than an event of a page waits for an answer.
            if let correlationId, Self.isCorrelationId(correlationId), members["type"]?.text != "event" {
                malformed.request = (correlationId, action.flatMap { Self.isAction($0) ? $0 : nil } ?? "unknown")
            }
            return malformed
        }
        guard case .number(let version)? = members["v"] else { throw malformed("v: a number is due") }
        guard version == "\(Self.protocolVersion)" else {
            throw malformed("this host speaks version \(Self.protocolVersion)", .versionMismatch)
        }
        guard let correlationId, Self.isCorrelationId(correlationId) else {
            throw malformed("correlationId: 1 to 64 letters, digits, - and _ are due")
        }
        guard let type = (members["type"]?.text?.string).flatMap(BridgeMessageType.init), type != .response else {
            throw malformed("type: request or event is due")
        }
        guard let action, Self.isAction(action) else {
            throw malformed("payload.action: 1 to 64 letters, digits and dots are due")
        }
        var data: [String: JSONValue]?
        if let member = payload?["data"], member != .null {
            do throws(JSONValue.Unsuitable) {
                guard case .object(let members) = try JSONValue(member) else {
                    throw JSONValue.Unsuitable(due: "an object")
                }
                data = members
            } catch {
                throw malformed("payload.data: \(error.due) is due")
            }
        }
        self.init(correlationId: correlationId, type: type, payload: BridgePayload(action: action, data: data))
    }

    private static func isCorrelationId(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: "-") || $0 == UInt8(ascii: "_") }
    }

    private static func isAction(_ text: String) -> Bool {
        (1...64).contains(text.utf8.count) && text.utf8.allSatisfy { isLetterOrDigit($0) || $0 == UInt8(ascii: ".") }
    }

    private static func isLetterOrDigit(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"):
            true
        default: false
        }
    }

    /// The message as JSON text.
    var written: String {
        var members: [String: JSONValue] = [
            "v": JSONValue(Int64(Self.protocolVersion)), "type": .string(type.rawValue),
            "correlationId": .string(correlationId),
        ]
        var payload: [String: JSONValue] = ["action": .string(self.payload.action)]
        if let data = self.payload.data { payload["data"] = .object(data) }
        members["payload"] = .object(payload)
        if let status { members["status"] = .string(status.rawValue) }
        if let error {
            members["error"] = [
                "code": .string(error.code), "message": .string(error.message),
                "recoverable": .bool(error.recoverable),
            ]
        }
        return JSONValue.object(members).description
    }
}
