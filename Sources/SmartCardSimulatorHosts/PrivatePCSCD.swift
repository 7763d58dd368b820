import Glibc
import Synchronization

/// A private pcscd next to the machine's service.
///
/// It sees virtual hardware only, and only programs that know its socket see it.
///
/// It runs in a mount namespace in which /run/pcscd is a temporary directory and USB is empty.  It therefore works as
/// root, and without root where the machine allows user namespaces.  A shell stands between this process and pcscd.
/// The shell stops pcscd and removes the remaining files when ``stop(keepsBus:)`` is called, and also when this process
/// ends in any other way.
///
/// The calls block: do not make them on a thread that others need.
public final class PrivatePCSCD: Sendable {
    /// The one kind of hardware that the service is to see.
    public enum Hardware: Sendable {
        /// The devices on a mock USB bus.
        case usb(UMockdevHost)
        /// vsmartcard's reader driver, listening on a TCP port of this machine; its second slot takes the port after it.
        case vpcd(port: UInt16)
    }

    /// The path of the service's socket.
    public let socket: String

    /// The variables that make libpcsclite use this service.
    public var environment: [String: String] { ["PCSCLITE_CSOCK_NAME": socket] }

    private let hardware: Hardware
    private let directory: String
    private let log: String
    /// The shell, and the end of the pipe that tells it to stop.
    private let process: Mutex<(shell: ChildProcess, lifeline: Int32)?>

    /// Starts it; it may not listen yet when this returns.
    ///
    /// - Parameters:
    ///   - hardware: the readers that this pcscd finds.
    ///   - log: a file for all messages of pcscd and its drivers, including APDUs; by default only errors are kept, for
    ///     ``HostError``.
    /// - Throws: ``HostError`` if a program is not installed or a namespace is not permitted.
    public init(_ hardware: Hardware, log: String? = nil) throws {
        self.hardware = hardware
        let pcscd = try Self.program("pcscd", package: "pcscd")
        let unshare = try Self.program("unshare", package: "util-linux")
        let namespace = try Self.namespaceOptions(unshare)
        var configuration = ""
        var mockBus: [String: String] = [:]
        switch hardware {
        case .usb(let host): mockBus = host.environment
        case .vpcd(let port): configuration = try Self.readerConfiguration(port: port)
        }

        directory = try temporaryDirectory(prefix: "virtual-reader")
        guard !directory.hasPrefix("/run/") || access("/run/pcscd", F_OK) == 0 else {
            removeDirectory(directory)
            throw HostError(
                "temporary files in /run are out of pcscd's sight", hint: "Set TMPDIR to a directory outside /run.")
        }
        socket = "\(directory)/run/pcscd.comm"
        self.log = log ?? "\(directory)/log"
        let logFile = open(self.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard logFile >= 0 else {
            let reason = String(cString: strerror(errno))
            removeDirectory(directory)
            throw HostError("\(self.log): \(reason)", hint: "Name a file that can be written.")
        }
        close(logFile)
        mkdir("\(directory)/run", 0o755)
        mkdir("\(directory)/reader.conf.d", 0o755)
        var pipe: (read: Int32, write: Int32) = (-1, -1)
        do {
            try writeFile("\(directory)/reader.conf.d/readers", configuration)
            pipe = try makePipe()
            defer { close(pipe.read) }
            let quiet = open("/dev/null", O_RDWR | O_CLOEXEC)
            defer { close(quiet) }
            var service = ["env"] + mockBus.map { "\($0.key)=\($0.value)" }
            service += [pcscd, "--foreground", "--config", "\(directory)/reader.conf.d"]
            if log != nil { service += ["--debug", "--apdu"] }
            if Self.knowsPolkit(pcscd) { service += ["--disable-polkit"] }
            let shell = try ChildProcess(
                [unshare] + namespace + ["sh", "-c", Self.script, "sh"]
                    + [directory, mockBus["UMOCKDEV_DIR"] ?? "", self.log] + service,
                environment: ChildProcess.environment.filter { $0.key != "LD_PRELOAD" && $0.key != "UMOCKDEV_DIR" },
                descriptors: [0: quiet, 1: quiet, 2: quiet, 3: pipe.read], ownGroup: true)
            process = Mutex((shell, pipe.write))
        } catch {
            if pipe.write >= 0 { close(pipe.write) }
            removeDirectory(directory)
            throw error
        }
    }

    deinit { stop() }

    /// Waits until the service lists a reader and, if asked, a card is on it.
    ///
    /// - Returns: the reader's name.
    /// - Throws: ``HostError`` with pcscd's last words, when it ends, the reader leaves or `limit` has passed.  A card
    ///   that is not seen within three seconds is no error: it may be mute.
    @discardableResult
    public func waitForReader(withCard: Bool = false, limit: Duration = .seconds(60)) throws -> String {
        let start = ContinuousClock.now
        var listed: ContinuousClock.Instant?
        while true {
            if let reader = PCSCDQuery.readers(at: socket)?.first {
                if listed == nil, case .usb(let host) = hardware { host.keepListeners() }
                let since = listed ?? .now
                listed = since
                if !withCard || reader.hasCard || since + .seconds(3) < .now { return reader.name }
            }
            if case .usb(let host) = hardware, !host.isPlugged { throw failure("the reader has left the bus") }
            guard isRunning else { throw failure("pcscd ended before it listed the reader") }
            guard start + limit > .now else { throw failure("pcscd lists no reader after \(limit)") }
            usleep(5000)
        }
    }

    /// Stops the service, closes the mock bus that it saw, and removes its files.  Returns when all is done; calls after
    /// the first do nothing.
    ///
    /// - Parameter keepsBus: the mock bus stays, for its owner to close.
    public func stop(keepsBus: Bool = false) {
        process.withLock { process in
            guard let (shell, lifeline) = process else { return }
            if keepsBus { try? writeFile("\(directory)/keep-bus", "") }
            // A line stops pcscd.  The shell stays until the lifeline ends, and then removes the remaining files,
            // including the bus if this process ends in between.
            _ = write(lifeline, "\n", 1)
            for _ in 0..<2500 where access("\(directory)/exited", F_OK) != 0 && shell.poll() == nil { usleep(2000) }
            if case .usb(let host) = hardware, !keepsBus { host.close() }
            close(lifeline)
            shell.wait()
            process = nil
            removeDirectory(directory)
        }
    }

    private var isRunning: Bool {
        process.withLock { $0 != nil && $0?.shell.poll() == nil } && access("\(directory)/exited", F_OK) != 0
    }

    private func failure(_ what: String) -> HostError {
        let words = readFile(log).split(separator: "\n").suffix(8).map { "  \($0)" }
        return HostError(
            ([what] + (words.isEmpty ? [] : ["its last words were:"] + words)).joined(separator: "\n"),
            hint: "Check that libccid is installed; a debug log of pcscd may tell more.")
    }

    // MARK: What it takes

    /// $1 is the directory, $2 the mock bus, $3 the log, and the rest the service.  Descriptor 3 is the lifeline.
    private static let script = """
        dir=$1 bus=$2 log=$3; shift 3
        {
            [ -d /run/pcscd ] || { mount -t tmpfs tmpfs /run && mkdir /run/pcscd; } &&
            mount --bind "$dir/run" /run/pcscd &&
            for usb in /sys/bus/usb /dev/bus/usb; do [ ! -d $usb ] || mount -t tmpfs tmpfs $usb || exit 1; done &&
            set -- "$@" || { : >"$dir/exited"; exit 1; }
            "$@" </dev/null 3<&- &
        } >>"$log" 2>&1
        pid=$!
        {
            read -r line <&3
            kill $pid
            n=0; while [ $n -lt 60 ] && kill -0 $pid; do n=$((n + 1)); sleep 0.05; done
            [ $n -lt 60 ] || kill -9 $pid
            read -r line <&3
        } >/dev/null 2>&1 &
        exec 3<&-
        wait $pid
        : >"$dir/exited"
        wait
        [ -e "$dir/keep-bus" ] || rm -rf "$bus"
        rm -rf "$dir"
        """

    private static func program(_ name: String, package: String) throws -> String {
        guard let path = ChildProcess.find(name) else {
            throw HostError("\(name) is not installed", hint: "Install it: sudo apt-get install \(package)")
        }
        return path
    }

    /// A mount namespace, with a user namespace around it where root is wanting.
    private static func namespaceOptions(_ unshare: String) throws -> [String] {
        let quiet = open("/dev/null", O_RDWR | O_CLOEXEC)
        defer { close(quiet) }
        for options in [["--mount"], ["--map-root-user", "--mount"]] where geteuid() == 0 || options.count > 1 {
            let trial = try ChildProcess(
                [unshare] + options + ["true"], environment: ChildProcess.environment, descriptors: [2: quiet])
            if trial.wait() == 0 { return options }
        }
        let settings = ["kernel.unprivileged_userns_clone=1", "user.max_user_namespaces=10000"].filter { setting in
            let name = setting.prefix { $0 != "=" }.map { $0 == "." ? "/" : $0 }
            return access("/proc/sys/\(String(name))", F_OK) == 0
        }
        throw HostError(
            "this machine does not permit a mount namespace for a pcscd of one's own",
            hint: geteuid() == 0
                ? "A plain chroot has none: use a container or pivot_root; with Docker, --cap-add SYS_ADMIN."
                : "Run as root, or permit user namespaces: sudo sysctl \(settings.joined(separator: " "))")
    }

    /// Returns true if pcscd consults polkit about clients, as 2.0 and later do; in a namespace polkit does not answer.
    private static func knowsPolkit(_ pcscd: String) -> Bool {
        guard let pipe = try? makePipe() else { return false }
        defer { close(pipe.read) }
        let help = try? ChildProcess(
            [pcscd, "--help"], environment: ChildProcess.environment, descriptors: [1: pipe.write])
        close(pipe.write)
        let text = readAll(pipe.read)
        help?.wait()
        return text.contains("disable-polkit")
    }

    /// A reader.conf(5) with vsmartcard's driver on another port than everybody's.
    private static func readerConfiguration(port: UInt16) throws -> String {
        let known = readFile("/etc/reader.conf.d/vpcd").split(separator: "\n")
            .map { $0.split(whereSeparator: \.isWhitespace) }
            .first { $0.first == "LIBPATH" }?.last.map(String.init)
        let driver = known ?? "/usr/lib/pcsc/drivers/serial/libifdvpcd.so"
        guard access(driver, R_OK) == 0 else {
            throw HostError(
                "vsmartcard's reader driver is not installed", hint: "Install it: sudo apt-get install vsmartcard-vpcd")
        }
        let channel = "0x" + String(port, radix: 16, uppercase: true)
        return """
            FRIENDLYNAME "Virtual PCD"
            DEVICENAME /dev/null:\(channel)
            LIBPATH \(driver)
            CHANNELID \(channel)

            """
    }
}
