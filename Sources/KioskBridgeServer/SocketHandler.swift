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

    /// The most frames of a message.
    private static let mostFragments = 64

    private let channel: any Channel
    private let limits: BridgeLimits
    private var connection: BridgeConnection?
    /// The messages that the host has not taken.
    private(set) var received: [String] = []
    private var isHostBusy = false
    /// False while the connection still speaks HTTP: orders of the host wait.
    private var isOpen = false
    private var waiting: [BridgeConnection.Output] = []
    private var isClosing = false
    /// The time of the last sign of life, and the watch for it.
    private var isAlive = true
    private var heartbeat: RepeatedTask?
    /// True while a pong waits for a slow page.
    private var isPongWaiting = false
    /// The bytes of texts that wait for a slow page.
    private let unsent = Atomic(0)
    private let patience: BridgeServer.Patience
    private let doors: Doors

    init(_ channel: any Channel, _ doors: Doors, _ limits: BridgeLimits, _ patience: BridgeServer.Patience) {
        (self.channel, self.doors, self.limits, self.patience) = (channel, doors, limits, patience)
    }

    /// Carries out an order of the host.  It never waits: a page that takes nothing off loses its connection.
    @Sendable func put(_ output: BridgeConnection.Output) {
        if case .text(let text) = output {
            let bytes = text.utf8.count
            guard unsent.add(bytes, ordering: .relaxed).newValue <= limits.unsentBytes else {
                unsent.subtract(bytes, ordering: .relaxed)
                return channel.eventLoop.execute { [self] in end(1008, "SLOW") }
            }
        }
        channel.eventLoop.execute { [self] in carryOut(output) }
    }

    /// Begins with the page, on the event loop; its end is told the host, once, and counts as ``Doors/hostEnds()``.
    func begin(with connection: BridgeConnection) {
        self.connection = connection
        doors.count(1)
        heartbeat = channel.eventLoop.scheduleRepeatedTask(
            initialDelay: patience.heartbeat, delay: patience.heartbeat
        ) { [weak self] _ in self?.beat() }
        channel.closeFuture.whenComplete { _ in
            self.heartbeat?.cancel()
            self.isClosing = true
            self.received = []
            // The connection has this handler as the way to its page.
            self.connection = nil
            Task { @MainActor in
                connection.close()
                self.doors.count(-1)
                self.doors.hostEnds()
            }
        }
    }

    /// Adds the handlers between the decoder of frames and this one, and carries out what has waited, now that the
    /// connection speaks WebSocket.
    func takeFrames() throws {
        try channel.pipeline.syncOperations.addHandlers([
            StrictFrames(),
            NIOWebSocketFrameAggregator(
                minNonFinalFragmentSize: 0, maxAccumulatedFrameCount: Self.mostFragments,
                maxAccumulatedFrameSize: limits.message), self,
        ])
        isOpen = true
        let orders = waiting
        waiting = []
        for order in orders { carryOut(order) }
        channel.read()
    }

    private func beat() {
        // Nothing is read from a page that is held back.
        guard isAlive || isHostBusy else {
            channel.close(promise: nil)
            return
        }
        guard isOpen else { return }
        isAlive = false
        write(.ping, ByteBuffer())
    }

    // MARK: To the page

    private func carryOut(_ output: BridgeConnection.Output) {
        guard isOpen else { return waiting.append(output) }
        switch output {
        case .text(let text):
            let bytes = text.utf8.count
            guard !isClosing, channel.isActive else {
                unsent.subtract(bytes, ordering: .relaxed)
                return
            }
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
        // There are no frames before the answer to the page's request.
        guard isOpen else {
            channel.close(promise: nil)
            return
        }
        received = []
        write(.connectionClose, ClosingFrame(code: code, reason: reason).data, promise: bidFarewell())
        channel.read()
    }

    /// Limits the time of the closing handshake.
    ///
    /// - Returns: a promise for the closing frame.
    private func bidFarewell() -> EventLoopPromise<Void> {
        isClosing = true
        let channel = channel
        let written = channel.eventLoop.makePromise(of: Void.self)
        let end = channel.eventLoop.scheduleTask(in: patience.farewell) { channel.close(promise: nil) }
        channel.closeFuture.whenComplete { _ in end.cancel() }
        return written
    }

    // MARK: From the page

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = unwrapInboundIn(data)
        isAlive = true
        switch frame.opcode {
        case .text where !isClosing: take(frame.unmaskedData)
        case .ping where !isClosing: answerPing(frame.unmaskedData)
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
        doors.hostBegins()
        Task { @MainActor in
            await connection.receive(text)
            channel.eventLoop.execute { [self] in
                isHostBusy = false
                // Nothing was read meanwhile: the page has a whole interval from now on.
                isAlive = true
                handOver()
                if !isHostBusy { channel.read() }
            }
            doors.hostEnds()
        }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        if !isHostBusy { context.read() }
    }

    /// Answers a ping, unless the page has not taken the last answer (RFC 6455, 5.5.3).
    private func answerPing(_ data: ByteBuffer) {
        guard !isPongWaiting else { return }
        isPongWaiting = true
        let written = channel.eventLoop.makePromise(of: Void.self)
        written.futureResult.whenComplete { _ in self.isPongWaiting = false }
        write(.pong, data, promise: written)
    }

    private func answerClose(_ data: ByteBuffer) {
        let channel = channel
        guard !isClosing else {
            channel.close(promise: nil)
            return
        }
        let written = bidFarewell()
        written.futureResult.whenComplete { _ in channel.close(promise: nil) }
        write(.connectionClose, ClosingFrame(answering: data).data, promise: written)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        // What follows a fault: the page shall read the reason before the connection is closed.
        case _ where isClosing: break
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
