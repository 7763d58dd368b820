import Foundation

/// The machine's own pcscd program with vsmartcard's virtual readers, started for a test: in a mount namespace of its own,
/// so that the pcscd of the machine is left alone, and with no USB driver, so that it takes nobody's reader.
public final class PrivatePCSCD: @unchecked Sendable {
    // Unchecked: the mutable properties are only touched with `lock` held.

    /// Why it cannot be had on this machine; nil if it can.
    public static let obstacle: String? = {
        for (path, package) in [
            ("/usr/sbin/pcscd", "pcscd"), ("/usr/bin/unshare", "util-linux"), (driver, "vsmartcard-vpcd"),
        ] where !FileManager.default.fileExists(atPath: path) {
            return "\(path) is missing: sudo apt-get install \(package)"
        }
        let probe = Process()
        probe.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
        probe.arguments = options + ["mount", "-t", "tmpfs", "tmpfs", "/run"]
        probe.standardError = FileHandle.nullDevice
        do { try probe.run() } catch { return "unshare does not start: \(error)" }
        probe.waitUntilExit()
        return probe.terminationStatus == 0 ? nil : "unshare is not permitted to make a mount namespace here"
    }()

    private static let driver = "/usr/lib/pcsc/drivers/serial/libifdvpcd.so"
    /// The options with which unshare makes a mount namespace.
    public static var options: [String] { getuid() == 0 ? ["-m"] : ["-rm"] }

    /// The socket, outside the namespace.
    public var socket: String { "\(folder)/run/pcscd.comm" }
    /// Where the card of the first virtual reader connects to; the second one has the next.
    public var port: UInt16 { ports[0].number }

    private let ports: [ReservedPort]
    private let folder: String
    private let shell = Process()
    /// Its end tells the shell that nobody needs pcscd any more, however this process ends.
    private let lifeline = Pipe()

    /// Starts it and waits until it listens.
    public init() async throws {
        folder = "\(PCSCSocket.folder)/\(UUID().uuidString.prefix(8))"
        let files = FileManager.default
        for name in ["run", "drivers", "conf"] {
            try files.createDirectory(atPath: "\(folder)/\(name)", withIntermediateDirectories: true)
        }
        ports = try Self.reservePorts()
        let port = ports[0].number
        try """
        FRIENDLYNAME "Virtual PCD"
        DEVICENAME /dev/null:\(port)
        LIBPATH \(Self.driver)
        CHANNELID \(port)

        """.write(toFile: "\(folder)/conf/vpcd", atomically: true, encoding: .utf8)
        shell.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
        shell.arguments =
            Self.options + [
                "sh", "-c",
                """
                mount -t tmpfs tmpfs /run && mkdir /run/pcscd && mount --bind "$1/run" /run/pcscd || exit 1
                PCSCLITE_HP_DROPDIR="$1/drivers" /usr/sbin/pcscd -f -c "$1/conf" </dev/null >"$1/log" 2>&1 &
                echo $! >"$1/pid"; read line; kill -9 $!; wait
                """, "sh", folder,
            ]
        shell.standardInput = lifeline
        try shell.run()
        let socket = socket
        try await wait(for: "pcscd") { Self.isListening(at: socket) }
    }

    /// The socket is there a little before anybody answers.
    private static func isListening(at socket: String) -> Bool {
        let descriptor = Foundation.socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(descriptor) }
        return withUnixAddress(socket) { connect(descriptor, $0, $1) } == 0
    }

    deinit { stop() }

    /// Ends pcscd as a crash would: at once, its socket left behind.
    public func kill() {
        if let pid = try? String(contentsOfFile: "\(folder)/pid", encoding: .utf8),
            let number = pid_t(pid.trimmingCharacters(in: .whitespacesAndNewlines))
        {
            Foundation.kill(number, SIGKILL)
        }
        stop()
    }

    public func stop() {
        try? lifeline.fileHandleForWriting.close()
        shell.waitUntilExit()
    }

    /// A port and the one after it: the driver must be told its port.
    private static func reservePorts() throws -> [ReservedPort] {
        while true {
            let first = try ReservedPort()
            if first.number < .max, let next = try? ReservedPort(first.number + 1) { return [first, next] }
        }
    }
}

/// A made-up card that connects to a virtual reader of vsmartcard-vpcd: u16 length, high byte first, then a control byte
/// (0 off, 1 on, 2 reset, 4 ATR) or an APDU.
public final class PrivatePCSCDCard: Sendable {
    private final class Socket: Sendable {
        let descriptor = Foundation.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        deinit { close(descriptor) }
    }

    private let socket = Socket()

    /// Puts the card in.
    ///
    /// - Parameter answer: the response to a command; nil hangs up, as a card that leaves.
    public init(
        port: UInt16, atr: [UInt8], onPower: @escaping @Sendable (UInt8) -> Void = { _ in },
        answer: @escaping @Sendable ([UInt8]) -> [UInt8]?
    ) async throws {
        let socket = socket
        try await wait(for: "virtual reader") { withLocalAddress(port) { connect(socket.descriptor, $0, $1) } == 0 }
        @Sendable func setOption(_ option: Int32) {
            var on: Int32 = 1
            setsockopt(
                socket.descriptor, Int32(IPPROTO_TCP), option, &on, socklen_t(MemoryLayout<Int32>.size))
        }
        setOption(TCP_NODELAY)
        Thread.detachNewThread {
            while let head = receive(socket.descriptor, 2) {
                setOption(TCP_QUICKACK)
                guard let message = receive(socket.descriptor, Int(head[0]) << 8 | Int(head[1])) else { break }
                let reply: [UInt8]?
                switch message {
                case [4]: reply = atr
                case [0], [1], [2]:
                    onPower(message[0])
                    continue
                default: reply = answer(message)
                }
                guard let reply else { break }
                let length = [UInt8(truncatingIfNeeded: reply.count >> 8), UInt8(truncatingIfNeeded: reply.count)]
                guard send(socket.descriptor, length + reply) else { break }
            }
            shutdown(socket.descriptor, Int32(SHUT_RDWR))
        }
    }

    deinit { remove() }

    /// Takes the card out.
    public func remove() { shutdown(socket.descriptor, Int32(SHUT_RDWR)) }
}
