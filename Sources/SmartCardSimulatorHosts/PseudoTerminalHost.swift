import Glibc
public import SmartCardSimulator
import Waiting

/// Puts a software PN532 board at the other end of a pseudo-terminal, which programs open as they do `/dev/ttyUSB0`.
///
/// The line's rate counts: at another than the chip's nothing is understood.
public final class PseudoTerminalHost: Sendable {
    /// The device to open: `/dev/pts/3`.
    public let path: String

    private struct State {
        var frames: [(bytes: [UInt8], due: ContinuousClock.Instant)] = []
        var isOver = false
    }

    private let board: SoftwarePN532Board
    private let master: Int32
    /// Kept open, so that the line stays as it is between one program and the next.
    private let slave: Int32
    private let bell: (read: Int32, write: Int32)
    private let state = Lock(State())

    /// - Throws: ``HostError`` if no pseudo-terminal is available.
    public init(_ board: SoftwarePN532Board) throws {
        self.board = board
        var (master, slave): (Int32, Int32) = (-1, -1)
        var name = [CChar](repeating: 0, count: 256)
        guard openpty(&master, &slave, &name, nil, nil) == 0 else {
            throw HostError(
                "there is no pseudo-terminal: \(String(cString: strerror(errno)))",
                hint: "Check that /dev/pts is mounted.")
        }
        for end in [master, slave] { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        _ = fcntl(master, F_SETFL, O_NONBLOCK)
        path = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        (self.master, self.slave) = (master, slave)
        // Nothing is echoed or translated, regardless of which program opens it first.
        var settings = termios()
        tcgetattr(slave, &settings)
        cfmakeraw(&settings)
        cfsetspeed(&settings, speed_t(B115200))
        tcsetattr(slave, TCSANOW, &settings)
        bell = try makePipe()
        for end in [bell.read, bell.write] { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
        board.observe { [weak self] event in self?.take(event) }
        let context = Unmanaged.passRetained(self)
        var thread = pthread_t()
        let started = pthread_create(
            &thread, nil,
            { context in
                if let context { Unmanaged<PseudoTerminalHost>.fromOpaque(context).takeRetainedValue().serve() }
                return nil
            }, context.toOpaque())
        guard started == 0 else {
            context.release()
            throw HostError("the system starts no more threads", hint: "Close other programs.")
        }
        pthread_detach(thread)
    }

    deinit { for descriptor in [bell.read, bell.write] { Glibc.close(descriptor) } }

    /// Closes the line: a program that has it open sees it hang up.
    public func close() {
        state.withLock { $0.isOver = true }
        ring()
    }

    private func ring() { _ = write(bell.write, [0x00], 1) }

    private func take(_ event: SoftwarePN532Board.Event) {
        state.withLock { state in
            switch event {
            case .ready(let bytes, let delay):
                let due = ContinuousClock.now + delay
                state.frames.append((bytes, max(due, state.frames.last?.due ?? due)))
            case .withdrawn: state.frames.removeAll { $0.due > .now }
            case .unplugged: state.isOver = true
            }
        }
        ring()
    }

    // MARK: The thread

    private func serve() {
        defer {
            Glibc.close(slave)
            Glibc.close(master)
        }
        while true {
            let now = ContinuousClock.now
            let (due, next, isOver) = state.withLock { state in
                let due = state.frames.prefix { $0.due <= now }.flatMap(\.bytes)
                state.frames.removeAll { $0.due <= now }
                return (due, state.frames.first?.due, state.isOver)
            }
            guard !isOver else { return }
            send(due)
            let rest = next.map { max(now.duration(to: $0), .zero).components }
            let milliseconds = rest.map { $0.seconds * 1000 + $0.attoseconds / 1_000_000_000_000_000 + 1 } ?? -1
            var descriptors = [
                pollfd(fd: master, events: Int16(POLLIN), revents: 0),
                pollfd(fd: bell.read, events: Int16(POLLIN), revents: 0),
            ]
            guard poll(&descriptors, 2, Int32(clamping: milliseconds)) >= 0 || errno == EINTR else { return }
            if descriptors[1].revents != 0 {
                var bytes = [UInt8](repeating: 0, count: 64)
                while read(bell.read, &bytes, bytes.count) == bytes.count {}
            }
            if descriptors[0].revents != 0 {
                var bytes = [UInt8](repeating: 0, count: 1024)
                let count = read(master, &bytes, bytes.count)
                if count > 0 { board.receive(Array(bytes[..<count]), rate: rate) }
            }
        }
    }

    /// Sends bytes.  Bytes that do not fit are lost, as in any UART whose other end does not read.
    private func send(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(master, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// The line's rate, in baud.
    private var rate: Int? {
        var settings = termios()
        guard tcgetattr(slave, &settings) == 0 else { return nil }
        let rates: [speed_t: Int] = [
            speed_t(B9600): 9600, speed_t(B19200): 19200, speed_t(B38400): 38400, speed_t(B57600): 57600,
            speed_t(B115200): 115_200, speed_t(B230400): 230_400, speed_t(B460800): 460_800,
            speed_t(B921600): 921_600,
        ]
        return rates[cfgetospeed(&settings)] ?? 0
    }
}
