// The only file of this driver that calls C: termios, poll, a thread.

import Glibc
import SmartCard
import Synchronization
import Waiting

/// A serial device and its thread, which sleeps between exchanges until it is called or the device is gone.
final class SerialLine: Sendable {
    private struct Job {
        var exchange: HSUExchange
        let continuation: CheckedContinuation<Result<[UInt8], HSUFailure>, Never>
    }

    private struct State {
        var job: Job?
        var isCancelled = false
        var isClosed = false
        var isGone = false
        var whenGone: (@Sendable () -> Void)?
        /// True if the thread has ended.
        var isOver = true
    }

    private let descriptor: Int32
    /// A byte in this pipe wakes the thread.
    private let bell: (read: Int32, write: Int32)
    private let state = Mutex(State())
    private let ended = Signal()

    /// The kernel's time: it is at the other end of the line.
    static var now: ContinuousClock.Instant { .now }

    /// Opens `path` exclusively.
    ///
    /// - Throws: `CardError` of kind `noReader`, `permissionDenied`, `readerBusy` or `unsupported`, caused by a
    ///   ``SerialStatus``.
    init(_ path: String) throws {
        let descriptor = open(path, O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw SerialStatus.last.error(path) }
        var ends: [Int32] = [-1, -1]
        do {
            guard isatty(descriptor) == 1 else {
                throw CardError(
                    .unsupported, "\(path) is no serial line", hint: "Name the board's device, such as /dev/ttyUSB0.")
            }
            guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
                throw CardError(
                    .readerBusy, path, cause: SerialStatus.last, hint: "Close the other program that uses \(path).")
            }
            guard pipe(&ends) == 0 else { throw SerialStatus.last.error(path) }
            for end in ends {
                _ = fcntl(end, F_SETFD, FD_CLOEXEC)
                _ = fcntl(end, F_SETFL, O_NONBLOCK)
            }
        } catch {
            close(descriptor)
            throw error
        }
        self.descriptor = descriptor
        bell = (ends[0], ends[1])
    }

    deinit { for descriptor in [descriptor, bell.read, bell.write] { close(descriptor) } }

    /// Starts the thread.  It calls `whenGone` once if the device leaves.
    func start(whenGone: @escaping @Sendable () -> Void) throws {
        state.withLock { ($0.whenGone, $0.isOver) = (whenGone, false) }
        var thread = pthread_t()
        // The thread keeps the line alive until it is closed.
        let line = Unmanaged.passRetained(self)
        let status = pthread_create(
            &thread, nil,
            { argument in
                if let argument { Unmanaged<SerialLine>.fromOpaque(argument).takeRetainedValue().serve() }
                return nil
            }, line.toOpaque())
        guard status == 0 else {
            state.withLock { $0.isOver = true }
            line.release()
            throw CardError(.other, "the system starts no more threads", cause: SerialStatus(rawValue: status))
        }
        pthread_detach(thread)
    }

    /// Sets eight bits, no parity, one stop bit, no flow control, and this rate.
    func setRate(_ rate: SerialRate) throws {
        var settings = termios()
        guard tcgetattr(descriptor, &settings) == 0 else { throw SerialStatus.last.error(nil) }
        cfmakeraw(&settings)
        settings.c_cflag |= tcflag_t(CLOCAL) | tcflag_t(CREAD)
        settings.c_cflag &= ~(tcflag_t(CSTOPB) | tcflag_t(CRTSCTS))
        guard cfsetspeed(&settings, rate.speed) == 0, tcsetattr(descriptor, TCSADRAIN, &settings) == 0 else {
            throw SerialStatus.last.error(nil)
        }
    }

    /// Performs an exchange, one at a time.
    func perform(_ exchange: HSUExchange) async -> Result<[UInt8], HSUFailure> {
        state.withLock { $0.isCancelled = false }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let refusal: HSUFailure? = state.withLock { state in
                    guard !state.isGone else { return .gone }
                    guard !state.isClosed else { return .closed }
                    state.job = Job(exchange: exchange, continuation: continuation)
                    return nil
                }
                if let refusal { continuation.resume(returning: .failure(refusal)) } else { ring() }
            }
        } onCancel: {
            state.withLock { $0.isCancelled = true }
            ring()
        }
    }

    /// Sends bytes without an answer.
    func send(_ bytes: [UInt8]) { _ = write(bytes) }

    /// Ends the thread and the current exchange.  The device is closed with the last reference to the line.
    func end() {
        state.withLock { $0.isClosed = true }
        ring()
    }

    /// Waits until ``end()`` has finished; another program may then use the device.
    func waitForEnd() async {
        // A canceled task waits, too: the device is in use until then.
        try? await toTheEnd { [self] in await ended.wait { state.withLock { $0.isOver } } }
    }

    private func ring() { _ = Glibc.write(bell.write, [0x00], 1) }

    // MARK: The thread

    private func serve() {
        defer {
            flock(descriptor, LOCK_UN)
            state.withLock { $0.isOver = true }
            ended.send()
        }
        while true {
            let (job, isCancelled, isClosed) = state.withLock { state in
                defer { state.job = nil }
                return (state.job, state.isCancelled, state.isClosed)
            }
            if let job {
                let obstacle: HSUFailure? = isClosed ? .closed : isCancelled ? .cancelled : nil
                job.continuation.resume(returning: obstacle.map { .failure($0) } ?? carryOut(job.exchange))
            } else if isClosed {
                break
            } else if wait(until: nil, forBytes: false) == .gone {
                return leave()
            }
        }
    }

    private func leave() {
        let (job, whenGone) = state.withLock { state in
            state.isGone = true
            defer { (state.job, state.whenGone) = (nil, nil) }
            return (state.job, state.whenGone)
        }
        job?.continuation.resume(returning: .failure(.gone))
        whenGone?()
    }

    private func carryOut(_ exchange: HSUExchange) -> Result<[UInt8], HSUFailure> {
        var exchange = exchange
        // Earlier bytes do not answer this command.
        tcflush(descriptor, TCIFLUSH)
        var event = HSUExchange.Event.started
        while true {
            switch exchange.next(event, now: Self.now) {
            case .finish(let result, let leaving):
                if !leaving.isEmpty { _ = write(leaving) }
                return result
            case .send(let bytes):
                guard write(bytes) else { return .failure(.gone) }
            case .wait: break
            }
            switch wait(until: exchange.deadline, forBytes: true) {
            case .bytes:
                guard let bytes = read() else { return .failure(.gone) }
                event = .received(bytes)
            case .called:
                let (isCancelled, isClosed) = state.withLock { ($0.isCancelled, $0.isClosed) }
                event = isCancelled || isClosed ? .cancelled : .received([])
            case .timedOut: event = .timedOut
            case .gone: return .failure(.gone)
            }
        }
    }

    private enum Occurrence {
        case bytes, called, timedOut, gone
    }

    private func wait(until deadline: ContinuousClock.Instant?, forBytes: Bool) -> Occurrence {
        while true {
            var descriptors = [
                pollfd(fd: descriptor, events: forBytes ? Int16(POLLIN) : 0, revents: 0),
                pollfd(fd: bell.read, events: Int16(POLLIN), revents: 0),
            ]
            let rest = deadline.map { max(Self.now.duration(to: $0), .zero).components }
            // Rounded up, to avoid waking early again and again.
            let milliseconds = rest.map { $0.seconds * 1000 + $0.attoseconds / 1_000_000_000_000_000 + 1 } ?? -1
            let count = poll(&descriptors, nfds_t(descriptors.count), Int32(clamping: milliseconds))
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { return .gone }
            if descriptors[1].revents != 0 {
                var bytes = [UInt8](repeating: 0, count: 64)
                while Glibc.read(bell.read, &bytes, bytes.count) == bytes.count {}
                return .called
            }
            if descriptors[0].revents & Int16(POLLIN) != 0 { return .bytes }
            if descriptors[0].revents != 0 { return .gone }
            if count == 0 { return .timedOut }
        }
    }

    /// - Returns: nil if the device is gone.
    private func read() -> [UInt8]? {
        var buffer = [UInt8](repeating: 0, count: 512)
        let count = Glibc.read(descriptor, &buffer, buffer.count)
        if count < 0 && (errno == EAGAIN || errno == EINTR) { return [] }
        return count > 0 ? Array(buffer[..<count]) : nil
    }

    /// - Returns: false if the device is gone, or accepts nothing for a second.
    private func write(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if count < 0 && errno == EAGAIN {
                var descriptors = [pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)]
                guard poll(&descriptors, 1, 1000) > 0 else { return false }
            } else if count == 0 || errno != EINTR {
                return false
            }
        }
        return true
    }
}

/// The errno of a serial line.  Unknown values print as numbers.
public struct SerialStatus: RawRepresentable, Error, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: Int32

    public init(rawValue: Int32) { self.rawValue = rawValue }

    static var last: SerialStatus { SerialStatus(rawValue: errno) }

    /// `Permission denied (errno 13)`
    public var description: String { "\(String(cString: strerror(rawValue))) (errno \(rawValue))" }

    func error(_ path: String?) -> CardError {
        switch rawValue {
        case ENOENT, ENXIO, ENODEV:
            CardError(.noReader, path, cause: self, hint: "Plug in the board; ls /dev/tty* shows its device.")
        case EACCES, EPERM:
            CardError(
                .permissionDenied, path, cause: self,
                hint: "Join the group that owns the device, sudo usermod -aG dialout $USER, and log in again.")
        case EBUSY:
            CardError(.readerBusy, path, cause: self, hint: "Close the other program that uses the device.")
        default: CardError(.other, path ?? "the serial line fails", cause: self)
        }
    }
}

/// A rate of a PN532's serial line, by its code in SetSerialBaudRate (NXP UM0701-02, 7.2.8).
public enum SerialRate: UInt8, Hashable, Sendable, CaseIterable {
    case baud9600 = 0x00
    case baud19200 = 0x01
    case baud38400 = 0x02
    case baud57600 = 0x03
    /// The rate after a reset.
    case baud115200 = 0x04
    case baud230400 = 0x05
    case baud460800 = 0x06
    case baud921600 = 0x07

    var speed: speed_t {
        switch self {
        case .baud9600: speed_t(B9600)
        case .baud19200: speed_t(B19200)
        case .baud38400: speed_t(B38400)
        case .baud57600: speed_t(B57600)
        case .baud115200: speed_t(B115200)
        case .baud230400: speed_t(B230400)
        case .baud460800: speed_t(B460800)
        case .baud921600: speed_t(B921600)
        }
    }
}
