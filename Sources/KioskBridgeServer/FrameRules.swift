import NIOCore
import NIOWebSocket

/// The rules for frames of a client that the decoder leaves to others.
final class StrictFrames: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias InboundOut = WebSocketFrame

    struct Violation: Error {}

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        // A client masks (RFC 6455, 5.1), and no extension was agreed on (5.2).
        guard frame.maskKey != nil, !frame.rsv1, !frame.rsv2, !frame.rsv3 else {
            return context.fireErrorCaught(Violation())
        }
        context.fireChannelRead(data)
    }
}

/// The body of a closing frame (RFC 6455, 5.5.1).
struct ClosingFrame {
    /// Empty, or a code and a reason.
    private(set) var data = ByteBuffer()

    private init() {}

    /// - Parameter reason: at most 123 bytes.
    init(code: UInt16, reason: String) {
        data.writeInteger(code)
        data.writeBytes(reason.utf8.prefix(123))
    }

    /// Answers a closing frame of the page: with its code, or with the code for its fault.
    init(answering theirs: ByteBuffer) {
        var reason = theirs
        guard theirs.readableBytes > 0 else {
            self = ClosingFrame()
            return
        }
        guard let code: UInt16 = reason.readInteger(), Self.areSent.contains(where: { $0.contains(code) }) else {
            self.init(code: 1002, reason: "PROTOCOL")
            return
        }
        guard String(validating: reason.readableBytesView, as: UTF8.self) != nil else {
            self.init(code: 1007, reason: "UTF8")
            return
        }
        self.init(code: code, reason: "")
    }

    /// The codes that an endpoint may send (RFC 6455, 7.4; registry of IANA, "WebSocket Close Code Number").
    private static let areSent: [ClosedRange<UInt16>] = [1000...1003, 1007...1014, 3000...4999]
}
