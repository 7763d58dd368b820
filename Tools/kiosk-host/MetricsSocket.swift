import ContactlessMetrics
import Glibc
import NIOCore
import NIOHTTP1
import NIOPosix
import ToolSupport

/// The metrics over HTTP on a Unix socket: `GET /metrics`.
///
/// While nobody asks it does nothing.  Who may ask is decided by the socket's folder, and by its mode: the user and the group.
final class MetricsSocket: Sendable {
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let path: String

    /// - Throws: `ToolError` if the socket cannot be made, or another program answers at it.
    init(_ path: String, _ exposition: Exposition) async throws {
        self.path = path
        if let other = try? await ClientBootstrap(group: group).connect(unixDomainSocketPath: path).get() {
            try? await other.close()
            throw ToolError.usage("\(path) is in use", "End the program that listens there, or name another socket.")
        }
        do {
            // Nobody listens at the one that is there: its program was killed.
            _ = try await ServerBootstrap(group: group)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                        try channel.pipeline.syncOperations.addHandler(MetricsHandler(exposition))
                    }
                }
                .bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
        } catch {
            throw ToolError.usage("no socket \(path)", "Name one in a folder that this user can write to.")
        }
        chmod(path, 0o660)
    }

    /// Removes the socket.
    func remove() { unlink(path) }
}

/// Answers one request.
private final class MetricsHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    /// The time for a request and its answer.
    private static let patience = TimeAmount.seconds(10)

    private let exposition: Exposition
    private var request: HTTPRequestHead?
    private var deadline: Scheduled<Void>?

    init(_ exposition: Exposition) { self.exposition = exposition }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        deadline = context.eventLoop.scheduleTask(in: Self.patience) { channel.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(let head): request = head
        case .body: break
        case .end:
            guard let request else { return }
            self.request = nil
            answer(request, context)
        }
    }

    private func answer(_ request: HTTPRequestHead, _ context: ChannelHandlerContext) {
        let status: HTTPResponseStatus =
            request.uri != "/metrics" ? .notFound : [.GET, .HEAD].contains(request.method) ? .ok : .methodNotAllowed
        let text = status == .ok ? exposition.text : "\(status.code) \(status.reasonPhrase)\n"
        var fields = HTTPHeaders([
            ("Content-Type", status == .ok ? Exposition.contentType : "text/plain"),
            ("Content-Length", "\(text.utf8.count)"), ("Connection", "close"),
        ])
        if status == .methodNotAllowed { fields.add(name: "Allow", value: "GET, HEAD") }
        context.write(wrapOutboundOut(.head(.init(version: .http1_1, status: status, headers: fields))), promise: nil)
        if request.method != .HEAD {
            context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: text)))), promise: nil)
        }
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(.end(nil))).whenComplete { _ in channel.close(promise: nil) }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
