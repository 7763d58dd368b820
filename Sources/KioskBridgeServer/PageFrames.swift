public import KioskBridge
public import NIOCore
import NIOWebSocket

/// The frames of one page on any channel, with no host behind them: the messages stay where they are.
@_spi(Fuzzing)
public struct PageFrames {
    private let socket: SocketHandler

    /// Adds the handlers that a connection has once it speaks WebSocket.
    ///
    /// - Parameter channel: a channel without handlers, on its event loop.
    public init(on channel: any Channel, limits: BridgeLimits) throws {
        socket = SocketHandler(
            channel, Doors(Admission(tokens: TokenBook()), PageRequests(files: [:])), limits, BridgeServer.Patience())
        try channel.pipeline.syncOperations.addHandlers([
            WebSocketFrameEncoder(), ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: limits.message)),
        ])
        try socket.takeFrames()
    }

    /// The messages of the page, as the host would take them; none when the connection is closing after a fault.
    public var messages: [String] { socket.received }
}
