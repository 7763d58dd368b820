import CTestProcess
import Foundation
import Synchronization

/// A pcscd made for a test: a socket that speaks pcsc-lite's protocol 4:4 (pcsc-lite 1.9.9, winscard_msg.h), and behaves
/// as badly as the test wants.  The libpcsclite in front of it is the real one.
public final class FakePCSCD: @unchecked Sendable {
    // Unchecked: `state` is only touched with `lock` held.

    /// What a client sees of a reader, as in READER_STATE.
    public struct Reader: Sendable {
        public var name: String
        public var eventCounter: UInt32 = 0
        /// 2 absent, 4 present, 8 swallowed, 10 powered, 20 negotiable.
        public var state: UInt32 = 0x02
        /// 0 nobody, n connections, -1 exclusive.
        public var sharing: Int32 = 0
        public var atr: [UInt8] = []
        /// Where it is to differ from the length of `atr`.
        public var atrLength: UInt32?
        public var cardProtocol: UInt32 = 0

        public init(_ name: String) { self.name = name }

        /// The same reader after a card came.
        public func inserting(_ atr: [UInt8], atrLength: UInt32? = nil) -> Reader {
            var reader = self
            (reader.state, reader.atr, reader.atrLength) = (0x34, atr, atrLength)
            reader.eventCounter += 1
            return reader
        }

        /// The same reader after its card went.
        public func removing() -> Reader {
            var reader = self
            (reader.state, reader.atr, reader.atrLength) = (0x02, [], nil)
            reader.eventCounter += 1
            return reader
        }
    }

    /// What it does with a client that has just connected.
    public enum Welcome: Sendable {
        case serve
        /// Hangs up when the first message is there, unread: the client sees a connection reset.
        case reset
        /// Hangs up after the first message: the client sees the end of the stream.
        case hangUp
        /// Reads and never answers.
        case silence
    }

    /// What it does with a request.
    public enum Reply: Sendable {
        case status(UInt32)
        /// Success with these bytes.
        case data([UInt8])
        /// Success with these bytes, and another count of them.
        case dataClaiming(UInt32, [UInt8])
        case hangUp
        /// No answer, until the daemon stops.
        case silence
    }

    /// A request that has come in.
    public struct Request: Sendable, Equatable {
        /// 01 establish, 02 release, 04 connect, 05 reconnect, 06 disconnect, 07 begin, 08 end, 09 transmit, 0A control,
        /// 0B status, 0D cancel, 0F get attribute, 11 version, 12 readers, 13 wait, 14 stop waiting.
        public let command: UInt32
        public let client: Int
        public let body: [UInt8]
    }

    public struct Behavior: Sendable {
        public var welcome = Welcome.serve
        /// The rv of VERSION.
        public var version: UInt32 = 0
        public var connect: @Sendable (_ reader: String, _ shareMode: UInt32, _ protocols: UInt32) -> Reply = {
            _, _, _ in .status(0)
        }
        public var activeProtocol: UInt32 = 2
        public var transmit: @Sendable (_ protocol: UInt32, _ command: [UInt8]) -> Reply = { _, _ in
            .data([0x90, 0x00])
        }
        public var control: @Sendable (_ code: UInt32, _ input: [UInt8]) -> Reply = { _, _ in .status(0x8010_0016) }
        public var attribute: @Sendable (_ id: UInt32) -> Reply = { _ in .status(0x8010_001F) }
        public var begin: @Sendable () -> Reply = { .status(0) }
        public var end: @Sendable (_ disposition: UInt32) -> Reply = { _ in .status(0) }
        public var reconnect: @Sendable (_ initialization: UInt32) -> Reply = { _ in .status(0) }
        /// Called when a client has registered for events, before it is told the readers.
        public var beforeWait: @Sendable (FakePCSCD) -> Void = { _ in }

        public init() {}
    }

    private struct State {
        var readers: [Reader]
        var behavior: Behavior
        var clients: [Int32: Int] = [:]
        var clientCount = 0
        var waiting: Set<Int32> = []
        var contexts: [UInt32: Int32] = [:]
        /// Of contexts and cards.
        var nextHandle = FakePCSCD.firstHandle.withLock { first -> UInt32 in
            first += 0x1_0000
            return first
        }
        var requests: [Request] = []
        var isStopped = false
    }

    /// Libpcsclite looks a handle up among all it has, those of an earlier daemon too: each daemon begins with others.
    private static let firstHandle = Mutex<UInt32>(0x4_0000)

    public let path: String
    private let listener: Int32
    private let lock = NSLock()
    private var state: State

    /// Listens on a socket at `path`.
    public init(path: String, readers: [Reader] = [], behavior: Behavior = Behavior()) throws {
        self.path = path
        state = State(readers: readers, behavior: behavior)
        unlink(path)
        listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        let status = withUnixAddress(path) { bind(listener, $0, $1) }
        guard status == 0, listen(listener, 16) == 0 else { throw POSIXError(.EADDRINUSE) }
        let socket = listener
        Thread.detachNewThread { [weak self] in
            while true {
                let client = accept(socket, nil, nil)
                guard client >= 0, let daemon = self else {
                    if client >= 0 { close(client) }
                    close(socket)
                    return
                }
                Thread.detachNewThread { daemon.serve(client) }
            }
        }
    }

    deinit { stop() }

    /// Hangs up on everybody and takes the socket away.
    public func stop() { stop(keepingSocket: false) }

    /// As a crash: the socket file stays.
    public func stopKeepingSocket() { stop(keepingSocket: true) }

    private func stop(keepingSocket: Bool) {
        lock.withLock {
            guard !state.isStopped else { return }
            state.isStopped = true
            if !keepingSocket { unlink(path) }
            shutdown(listener, Int32(SHUT_RDWR))
            for client in state.clients.keys { shutdown(client, Int32(SHUT_RDWR)) }
        }
    }

    public var behavior: Behavior {
        get { lock.withLock { state.behavior } }
        set { lock.withLock { state.behavior = newValue } }
    }

    /// The readers.  Setting them tells every client that waits.
    public var readers: [Reader] {
        get { lock.withLock { state.readers } }
        set {
            lock.withLock {
                state.readers = newValue
                signal(Array(state.waiting), 0)
            }
        }
    }

    /// Changes the readers without telling anybody.
    public func setReadersSilently(_ readers: [Reader]) { lock.withLock { state.readers = readers } }

    public var requests: [Request] { lock.withLock { state.requests } }
    public func count(of command: UInt32) -> Int { requests.count { $0.command == command } }
    /// The clients connected at this moment.
    public var clientCount: Int { lock.withLock { state.clients.count } }
    /// The clients that wait for an event at this moment.
    public var waitingCount: Int { lock.withLock { state.waiting.count } }

    /// With `lock` held.
    private func signal(_ clients: [Int32], _ status: UInt32) {
        for client in clients where state.waiting.remove(client) != nil {
            _ = send(client, bytes(0) + bytes(status))
        }
    }

    // MARK: One client

    private func serve(_ client: Int32) {
        let (number, welcome): (Int, Welcome?) = lock.withLock {
            state.clientCount += 1
            state.clients[client] = state.clientCount
            return (state.clientCount, state.isStopped ? nil : state.behavior.welcome)
        }
        defer {
            lock.withLock {
                state.clients[client] = nil
                state.waiting.remove(client)
                state.contexts = state.contexts.filter { $0.value != client }
                close(client)
            }
        }
        switch welcome {
        case nil:
            return
        case .serve:
            break
        case .reset:
            var ready = pollfd(fd: client, events: Int16(POLLIN), revents: 0)
            poll(&ready, 1, 5000)
            usleep(20_000)
            return
        case .hangUp:
            if let header = receive(client, 8) { _ = receive(client, Int(number32(header, 0))) }
            return
        case .silence:
            while receive(client, 1) != nil {}
            return
        }
        while let header = receive(client, 8) {
            let (size, command) = (Int(number32(header, 0)), number32(header, 4))
            guard size <= 4096, let body = receive(client, size) else { return }
            lock.withLock { state.requests.append(Request(command: command, client: number, body: body)) }
            guard answer(client, command, body) else { return }
        }
    }

    /// False to hang up.
    private func answer(_ client: Int32, _ command: UInt32, _ body: [UInt8]) -> Bool {
        let behavior = behavior
        switch command {
        case 0x11:  // VERSION: major, minor, rv
            return send(client, bytes(4) + bytes(4) + bytes(behavior.version))
        case 0x01:  // ESTABLISH: scope, context, rv
            let context: UInt32 = lock.withLock {
                state.nextHandle += 1
                state.contexts[state.nextHandle] = client
                return state.nextHandle
            }
            return send(client, Array(body.prefix(4)) + bytes(context) + bytes(0))
        case 0x02:  // RELEASE: context, rv
            return send(client, Array(body.prefix(4)) + bytes(0))
        case 0x12:  // GET_READERS_STATE
            return send(client, readerStates())
        case 0x13:  // WAIT_READER_STATE_CHANGE: the states now, a word later
            behavior.beforeWait(self)
            return lock.withLock {
                state.waiting.insert(client)
                return send(client, Self.encode(state.readers))
            }
        case 0x14:  // STOP_WAITING: an answer only if still registered
            return lock.withLock {
                guard state.waiting.remove(client) != nil else { return true }
                return send(client, bytes(0) + bytes(0))
            }
        case 0x0D:  // CANCEL: context, rv; on another connection
            return lock.withLock {
                let target = state.contexts[number32(body, 0)]
                let isWaiting = target.map { state.waiting.contains($0) } ?? false
                if let target, isWaiting { signal([target], 0x8010_0002) }
                return send(client, Array(body.prefix(4)) + bytes(isWaiting ? 0 : 0x8010_0003))
            }
        case 0x04:  // CONNECT: context, name 128, share, preferred, handle, active, rv
            let name = String(decoding: body[4..<132].prefix(while: { $0 != 0 }), as: UTF8.self)
            let handle: UInt32 = lock.withLock {
                state.nextHandle += 1
                return state.nextHandle
            }
            return reply(client, behavior.connect(name, number32(body, 132), number32(body, 136))) { status, _ in
                Array(body.prefix(140)) + bytes(handle) + bytes(behavior.activeProtocol) + bytes(status)
            }
        case 0x05:  // RECONNECT: handle, share, preferred, initialization, active, rv
            return reply(client, behavior.reconnect(number32(body, 12))) { status, _ in
                Array(body.prefix(16)) + bytes(behavior.activeProtocol) + bytes(status)
            }
        case 0x06:  // DISCONNECT: handle, disposition, rv
            return send(client, Array(body.prefix(8)) + bytes(0))
        case 0x07:  // BEGIN: handle, rv
            return reply(client, behavior.begin()) { status, _ in Array(body.prefix(4)) + bytes(status) }
        case 0x08:  // END: handle, disposition, rv
            return reply(client, behavior.end(number32(body, 4))) { status, _ in Array(body.prefix(8)) + bytes(status)
            }
        case 0x0B:  // STATUS: handle, rv
            return send(client, Array(body.prefix(4)) + bytes(0))
        case 0x09:  // TRANSMIT: handle, protocol, length, cbSend, protocol, length, pcbRecv, rv; then the command
            guard let command = receive(client, Int(number32(body, 12))) else { return false }
            return reply(client, behavior.transmit(number32(body, 4), command)) { status, count in
                Array(body.prefix(24)) + bytes(count) + bytes(status)
            }
        case 0x0A:  // CONTROL: handle, code, cbSend, cbRecv, returned, rv; then the input
            guard let input = receive(client, Int(number32(body, 8))) else { return false }
            return reply(client, behavior.control(number32(body, 4), input)) { status, count in
                Array(body.prefix(16)) + bytes(count) + bytes(status)
            }
        case 0x0F:  // GET_ATTRIB: handle, id, value 264, length, rv
            switch behavior.attribute(number32(body, 4)) {
            case .status(let status): return send(client, Array(body.prefix(272)) + bytes(264) + bytes(status))
            case .data(let value):
                let padded = value + [UInt8](repeating: 0, count: 264 - value.count)
                return send(client, Array(body.prefix(8)) + padded + bytes(UInt32(value.count)) + bytes(0))
            case .dataClaiming, .hangUp: return false
            case .silence: return true
            }
        default:
            return false
        }
    }

    private func reply(
        _ client: Int32, _ reply: Reply, _ head: (_ status: UInt32, _ count: UInt32) -> [UInt8]
    ) -> Bool {
        switch reply {
        case .status(let status): send(client, head(status, 0))
        case .data(let data): send(client, head(0, UInt32(data.count)) + data)
        case .dataClaiming(let count, let data): send(client, head(0, count) + data)
        case .hangUp: false
        case .silence: true
        }
    }

    private func readerStates() -> [UInt8] { lock.withLock { Self.encode(state.readers) } }

    /// 16 entries of 184 bytes.
    private static func encode(_ readers: [Reader]) -> [UInt8] {
        var out: [UInt8] = []
        for reader in readers.prefix(16) {
            let name = Array(reader.name.utf8.prefix(127))
            out += name + [UInt8](repeating: 0, count: 128 - name.count)
            out += bytes(reader.eventCounter) + bytes(reader.state) + bytes(UInt32(bitPattern: reader.sharing))
            let atr = Array(reader.atr.prefix(33))
            out += atr + [UInt8](repeating: 0, count: 36 - atr.count)
            out += bytes(reader.atrLength ?? UInt32(atr.count)) + bytes(reader.cardProtocol)
        }
        return out + [UInt8](repeating: 0, count: 16 * 184 - out.count)
    }
}

// MARK: - Bytes

private func bytes(_ number: UInt32) -> [UInt8] { withUnsafeBytes(of: number) { Array($0) } }

private func number32(_ bytes: [UInt8], _ offset: Int) -> UInt32 {
    guard bytes.count >= offset + 4 else { return 0 }
    return bytes[offset..<offset + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) }
}

func receive(_ socket: Int32, _ count: Int) -> [UInt8]? {
    var buffer = [UInt8](repeating: 0, count: count)
    var filled = 0
    while filled < count {
        let got = buffer.withUnsafeMutableBytes { bytes in
            let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[filled...])
            return read(socket, rest.baseAddress, rest.count)
        }
        guard got > 0 else { return nil }
        filled += got
    }
    return buffer
}

func send(_ socket: Int32, _ data: some Collection<UInt8>) -> Bool {
    let data = Array(data)
    var sent = 0
    while sent < data.count {
        let got = data.withUnsafeBytes { bytes in
            let rest = UnsafeRawBufferPointer(rebasing: bytes[sent...])
            return Foundation.send(socket, rest.baseAddress, rest.count, Int32(MSG_NOSIGNAL))
        }
        guard got > 0 else { return false }
        sent += got
    }
    return true
}

/// Calls `body` with the address of the socket file at `path`, cut off at 107 bytes.
func withUnixAddress<R>(_ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> R) -> R {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix(107)) }
    return withUnsafePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
    }
}

/// The one path at which the libpcsclite of this process looks for pcscd, from its start to its end.  So it is a link, which
/// a test points to the daemon it means; tests that do are `.pcscExclusive`.
public enum PCSCSocket {
    /// Makes libpcsclite talk to the daemon that listens at `socket`.
    public static func point(to socket: String) {
        _ = folder
        unlink(link)
        symlink(socket, link)
    }

    /// No daemon at all.
    public static func pointNowhere() { unlink(link) }

    /// A folder of this process, for sockets; it goes with the process.
    public static let folder: String = {
        let folder = URL(fileURLWithPath: link).deletingLastPathComponent().path
        guard mkdir(folder, 0o700) == 0 else { fatalError("no folder for sockets: \(folder)") }
        atexit {
            // FileManager stops at a link that leads nowhere.
            PCSCSocket.pointNowhere()
            try? FileManager.default.removeItem(atPath: PCSCSocket.folder)
        }
        return folder
    }()

    /// The path that libpcsclite has; child processes inherit it.
    private static let link = String(cString: test_pcscd_socket())
}
