import KioskBridge
import NIOCore
import NIOWebSocket
import Synchronization

/// The frames of one page (RFC 6455): text to the host, one message at a time, and its orders to the page.
///
/// It lives on its channel's event loop; the host's orders come from elsewhere, through ``put(_:)``.
final class SocketHandler: ChannelInboundHandler, @unchecked Sendable {
    // Unchecked: all state but `unsent` belongs to the event loop.
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    private let channel: any Channel
    private let limits: BridgeLimits
    private var connection: BridgeConnection?
    private var received: [String] = []
    private var isHostBusy = false
    /// False while the connection still speaks HTTP: orders of the host wait.
    private var isOpen = false
    private var waiting: [BridgeConnection.Output] = []
    private var isClosing = false
    /// The time of the last sign of life, and the watch for it.
    private var isAlive = true
    private var heartbeat: RepeatedTask?
    private let unsent = Atomic(0)

    /// The pause between two pings; a page that has not answered by the next one is gone.
    static let heartbeat = TimeAmount.seconds(20)
    /// The time for the page's half of the closing handshake (RFC 6455, 7.1.1).
    private static let farewell = TimeAmount.seconds(2)

    init(_ channel: any Channel, _ limits: BridgeLimits) { (self.channel, self.limits) = (channel, limits) }

    /// Carries out an order of the host.  It never waits: a page that takes nothing off loses its connection.
    @Sendable func put(_ output: BridgeConnection.Output) {
        if case .text(let text) = output {
            let bytes = text.utf8.count
            guard unsent.add(bytes, ordering: .relaxed).newValue <= limits.unsentBytes else {
                return channel.eventLoop.execute { [self] in end(1008, "SLOW") }
            }
        }
        channel.eventLoop.execute { [self] in carryOut(output) }
    }

    /// Begins with the page, on the event loop.
    func begin(with connection: BridgeConnection) {
        self.connection = connection
        heartbeat = channel.eventLoop.scheduleRepeatedTask(
            initialDelay: Self.heartbeat, delay: Self.heartbeat
        ) { [weak self] _ in self?.beat() }
        channel.closeFuture.whenComplete { _ in
            self.heartbeat?.cancel()
            Task { @MainActor in connection.close() }
        }
    }

    /// Carries out what has waited, now that the connection speaks WebSocket.
    func open() {
        isOpen = true
        let orders = waiting
        waiting = []
        for order in orders { carryOut(order) }
    }

    private func beat() {
        guard isAlive else {
            channel.close(promise: nil)
            return
        }
        isAlive = false
        write(.ping, ByteBuffer())
    }

    // MARK: To the page

    private func carryOut(_ output: BridgeConnection.Output) {
        guard isOpen else { return waiting.append(output) }
        switch output {
        case .text(let text):
            let bytes = text.utf8.count
            guard !isClosing, channel.isActive else { return }
            let written = channel.eventLoop.makePromise(of: Void.self)
            written.futureResult.whenComplete { _ in self.unsent.subtract(bytes, ordering: .relaxed) }
            write(.text, ByteBuffer(string: text), promise: written)
        case .close(let code, let reason): end(code, reason)
        }
    }

    private func write(_ opcode: WebSocketOpcode, _ data: ByteBuffer, promise: EventLoopPromise<Void>? = nil) {
        channel.writeAndFlush(WebSocketFrame(fin: true, opcode: opcode, data: data), promise: promise)
    }

    private func end(_ code: UInt16, _ reason: String) {
        guard !isClosing else { return }
        isClosing = true
        received = []
        var data = ByteBuffer()
        data.writeInteger(code)
        data.writeString(String(decoding: reason.utf8.prefix(123), as: UTF8.self))
        write(.connectionClose, data)
        let channel = channel
        channel.eventLoop.scheduleTask(in: Self.farewell) { channel.close(promise: nil) }
        channel.read()
    }

    // MARK: From the page

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        isAlive = true
        switch frame.opcode {
        case .text where !isClosing: take(frame.unmaskedData)
        case .ping where !isClosing: write(.pong, frame.unmaskedData)
        case .connectionClose: answerClose(frame.unmaskedData)
        case .pong, .text, .ping: break
        case .binary: end(1003, "TEXT_ONLY")
        default: end(1002, "PROTOCOL")
        }
    }

    private func take(_ data: ByteBuffer) {
        guard let text = String(validating: data.readableBytesView, as: UTF8.self) else { return end(1007, "UTF8") }
        received.append(text)
        handOver()
    }

    /// Hands the next message to the host.  Nothing more is read before the host has taken it.
    private func handOver() {
        guard !isHostBusy, let connection, !received.isEmpty else { return }
        let text = received.removeFirst()
        isHostBusy = true
        let loop = channel.eventLoop
        Task { @MainActor in
            await connection.receive(text)
            loop.execute { [self] in
                isHostBusy = false
                handOver()
                if !isHostBusy { channel.read() }
            }
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if !isHostBusy { context.read() }
    }

    private func answerClose(_ data: ByteBuffer) {
        let channel = channel
        guard !isClosing else {
            channel.close(promise: nil)
            return
        }
        isClosing = true
        let code = data.getSlice(at: data.readerIndex, length: min(2, data.readableBytes)) ?? ByteBuffer()
        let answer = WebSocketFrame(fin: true, opcode: .connectionClose, data: code)
        channel.writeAndFlush(answer).whenComplete { _ in channel.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case NIOWebSocketFrameAggregator.Error.tooManyFragments,
            NIOWebSocketFrameAggregator.Error.accumulatedFrameSizeIsTooLarge,
            NIOWebSocketError.invalidFrameLength:
            end(1009, "TOO_LONG")
        case is NIOWebSocketError, is NIOWebSocketFrameAggregator.Error, is StrictFrames.Violation:
            end(1002, "PROTOCOL")
        default: context.close(promise: nil)
        }
    }
}

/// The rules for a client's frames that the decoder leaves to others.
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
