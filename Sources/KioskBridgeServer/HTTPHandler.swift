import NIOCore
import NIOHTTP1
import NIOWebSocket

/// Answers requests over HTTP on one connection, within a time for each.
final class HTTPHandler: ChannelInboundHandler, RemovableChannelHandler, @unchecked Sendable {
    // Unchecked: all state belongs to the event loop.
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private let doors: Doors
    private var head: HTTPRequestHead?
    private var hasBody = false
    /// True after an answer that ends the connection: what follows is no request (RFC 9112, 9.6).
    private var isOver = false
    private var deadline: Scheduled<Void>?

    private let patience: TimeAmount

    /// - Parameter patience: the time for a request, and between two.
    init(_ doors: Doors, patience: TimeAmount) { (self.doors, self.patience) = (doors, patience) }

    func handlerAdded(context: ChannelHandlerContext) { watch(context) }

    func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

    /// A peer has so long to send a request, from the first byte to the last.
    private func watch(_ context: ChannelHandlerContext) {
        deadline?.cancel()
        let channel = context.channel
        deadline = context.eventLoop.scheduleTask(in: patience) { channel.close(promise: nil) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isOver else { return }
        switch unwrapInboundIn(data) {
        case .head(let head): (self.head, hasBody) = (head, false)
        case .body: hasBody = true
        case .end:
            guard let head else { return }
            self.head = nil
            answer(head, context)
        }
    }

    private func answer(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        let host = head.headers["Host"].first
        let answer = doors.answer(
            PageRequests.Request(
                method: head.method.rawValue, target: head.uri, hosts: head.headers["Host"],
                fetchSite: head.headers["Sec-Fetch-Site"].first, isMarked: head.headers["X-Kiosk-Bridge"] == ["1"],
                hasBody: hasBody), on: context.channel)
        let staysOpen = head.isKeepAlive && answer.status == 200
        isOver = !staysOpen
        var fields = HTTPHeaders([
            ("Content-Type", answer.contentType), ("Content-Length", "\(answer.bytes.count)"),
            ("Connection", staysOpen ? "keep-alive" : "close"),
        ])
        // A host that is not this server's is not repeated.
        for (name, value) in PageRequests.securityFields(host: answer.status == 421 ? nil : host) {
            fields.add(name: name, value: value)
        }
        if answer.status == 405 { fields.add(name: "Allow", value: "GET") }
        let status = HTTPResponseStatus(statusCode: Int(answer.status))
        context.write(wrapOutboundOut(.head(.init(version: .http1_1, status: status, headers: fields))), promise: nil)
        // RFC 9110, 9.3.2
        if head.method != .HEAD {
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: answer.bytes)))), promise: nil)
        }
        let end = context.writeAndFlush(wrapOutboundOut(.end(nil)))
        watch(context)
        let channel = context.channel
        if !staysOpen { end.whenComplete { _ in channel.close(promise: nil) } }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A refused upgrade is reported before its request comes here to be answered.
        guard !(error is NIOWebSocketUpgradeError), !(error is HTTPServerUpgradeErrors) else { return }
        context.close(promise: nil)
    }
}
