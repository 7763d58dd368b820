import KioskBridge
@_spi(Fuzzing) import KioskBridgeServer
import NIOCore
import NIOEmbedded

/// The fuzzer's target for frames: it takes any input, and throws a finding.  Fuzz/ has libFuzzer write the inputs; the tests
/// take those of Fuzz/corpora, and change them a little.
public enum FrameFuzzTargets {
    /// Something that must not be.
    public struct Finding: Error, CustomStringConvertible {
        public let description: String
    }

    /// What a page sends after the handshake, in pieces: the first byte is their length, 0 for one piece.
    ///
    /// The answers are compared with those of ``Reading``, which has the whole input at once.
    public static func frames(_ input: [UInt8]) throws {
        guard let first = input.first else { return }
        var limits = BridgeLimits()
        limits.message = 1_024
        let channel = EmbeddedChannel()
        try channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).wait()
        let page = try PageFrames(on: channel, limits: limits)

        var rest = input.dropFirst()
        let length = first == 0 ? max(1, rest.count) : Int(first)
        while !rest.isEmpty {
            // What comes when the connection is closed reaches nobody.
            guard channel.isActive else { break }
            try channel.writeInbound(ByteBuffer(bytes: rest.prefix(length)))
            rest = rest.dropFirst(length)
        }
        var answers: [UInt8] = []
        while let buffer = try channel.readOutbound(as: ByteBuffer.self) { answers += buffer.readableBytesView }

        let expected = Reading(input.dropFirst(), limit: limits.message)
        try expect(answers == expected.answers, "answers", answers, expected.answers)
        try expect(page.messages == expected.messages, "messages", page.messages, expected.messages)
        // After a fault the page may still close, and that ends the connection.
        if !expected.isFault {
            try expect(channel.isActive != expected.isClosed, "open", channel.isActive, !expected.isClosed)
        }
        _ = try channel.finish(acceptAlreadyClosed: true)
    }

    private static func expect<Value>(
        _ isTrue: Bool, _ name: String, _ value: Value, _ expected: Value
    ) throws(Finding) {
        if !isTrue { throw Finding(description: "\(name): \(value), not \(expected)") }
    }
}

/// RFC 6455, sections 5 to 7, for what a client has sent in whole: a second reading, with nothing of the first.
private struct Reading {
    private(set) var messages: [String] = []
    private(set) var answers: [UInt8] = []
    private(set) var isClosed = false
    private(set) var isFault = false

    private var input: ArraySlice<UInt8>
    private let limit: Int
    /// The message whose last frame has not come.
    private var fragments: (opcode: UInt8, count: Int, data: [UInt8])?

    private enum Fault: UInt16, Error {
        case protocolError = 1002, binary, noText = 1007, tooLong = 1009

        var reason: String {
            switch self {
            case .protocolError: "PROTOCOL"
            case .binary: "TEXT_ONLY"
            case .noText: "UTF8"
            case .tooLong: "TOO_LONG"
            }
        }
    }

    init(_ input: ArraySlice<UInt8>, limit: Int) {
        (self.input, self.limit) = (input, limit)
        do throws(Fault) {
            while !isClosed, let frame = try nextFrame() { try take(frame.opcode, frame.isFinal, frame.data) }
        } catch {
            (isFault, messages) = (true, [])
            close(error)
        }
    }

    /// The next frame that is complete and has no fault of its own.
    private mutating func nextFrame() throws(Fault) -> (opcode: UInt8, isFinal: Bool, data: [UInt8])? {
        guard let start = take(2) else { return nil }
        let (isFinal, opcode, isMasked) = (start[0] & 0x80 != 0, start[0] & 0x0F, start[1] & 0x80 != 0)
        var length = UInt64(start[1] & 0x7F)
        if length >= 126 {
            guard let bytes = take(length == 126 ? 2 : 8) else { return nil }
            length = bytes.reduce(0) { $0 << 8 | UInt64($1) }
        }
        // These are seen before the rest of the frame is there.
        guard length <= UInt64(limit) else { throw .tooLong }
        guard opcode < 8 || (isFinal && length <= 125) else { throw .protocolError }
        guard let mask = take(isMasked ? 4 : 0), let data = take(Int(length)) else { return nil }
        guard isMasked, start[0] & 0x70 == 0 else { throw .protocolError }
        return (opcode, isFinal, data.enumerated().map { $1 ^ mask[$0 % 4] })
    }

    private mutating func take(_ count: Int) -> [UInt8]? {
        guard input.count >= count else { return nil }
        defer { input = input.dropFirst(count) }
        return Array(input.prefix(count))
    }

    private mutating func take(_ opcode: UInt8, _ isFinal: Bool, _ data: [UInt8]) throws(Fault) {
        switch opcode {
        case 0:
            guard let begun = fragments else { throw .protocolError }
            try add(begun.opcode, begun.count + 1, begun.data + data, isFinal)
        case 1, 2:
            guard fragments == nil else { throw .protocolError }
            try add(opcode, 1, data, isFinal)
        case 8: close(answering: data)
        case 9: answer(10, data)
        case 10: break
        default: throw .protocolError
        }
    }

    private mutating func add(_ opcode: UInt8, _ count: Int, _ data: [UInt8], _ isFinal: Bool) throws(Fault) {
        // The 64th frame of a message is its last one.
        guard data.count <= limit, count < (isFinal ? 65 : 64) else { throw .tooLong }
        fragments = isFinal ? nil : (opcode, count, data)
        guard isFinal else { return }
        guard opcode == 1 else { throw .binary }
        guard let text = String(validating: data, as: UTF8.self) else { throw .noText }
        messages.append(text)
    }

    private mutating func close(answering data: [UInt8]) {
        isClosed = true
        guard !data.isEmpty else { return answer(8, []) }
        guard data.count > 1 else { return close(.protocolError) }
        switch UInt16(data[0]) << 8 | UInt16(data[1]) {
        case 1000...1003, 1007...1014, 3000...4999:
            guard String(validating: data.dropFirst(2), as: UTF8.self) != nil else { return close(.noText) }
            answer(8, Array(data.prefix(2)))
        default: close(.protocolError)
        }
    }

    private mutating func close(_ fault: Fault) {
        answer(8, [UInt8(fault.rawValue >> 8), UInt8(fault.rawValue & 0xFF)] + fault.reason.utf8)
    }

    /// A server does not mask, and its frames here are short.
    private mutating func answer(_ opcode: UInt8, _ data: [UInt8]) {
        answers += [0x80 | opcode, UInt8(data.count)] + data
    }
}
