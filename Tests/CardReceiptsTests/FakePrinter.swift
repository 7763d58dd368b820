import Foundation
import Glibc
import Synchronization
import TestSupport

/// A receipt printer of software at the other end of a descriptor: it keeps what it is sent, and answers as it is told.
final class FakePrinter: Sendable {
    struct Behavior: Sendable {
        /// What DLE EOT 1 to 4 are answered with; none: it is silent.
        var status: [UInt8: UInt8]? = [1: 0x12, 2: 0x12, 3: 0x12, 4: 0x12]
        /// What they are answered with once it has got so many bytes.
        var statusAfter: (count: Int, status: [UInt8: UInt8]?)?
        /// What GS r is answered with.
        var paperSensor: UInt8? = 0x00
        /// Noise before each answer.
        var noise: [UInt8] = []
        /// It reads no further than this.
        var stopsReadingAfter: Int?
        /// It goes when it has got so many bytes.
        var leavesAfter: Int?
    }

    private struct State: Sendable {
        var received: [UInt8] = []
        var questions = 0
    }

    private let behavior: Behavior
    private let state = Mutex(State())
    /// Tells threads that something was received.
    private let arrival = NSCondition()

    init(_ behavior: Behavior = Behavior()) { self.behavior = behavior }

    /// What there was to print, without the questions.
    var received: [UInt8] { state.withLock { $0.received } }
    var questions: Int { state.withLock { $0.questions } }

    /// Keeps the thread until it has so much to print.
    func block(until count: Int) {
        arrival.withLock { while received.count < count { arrival.wait() } }
    }

    /// Serves until the other end closes, on the thread that calls.
    func serve(_ descriptor: Int32) {
        var pending: [UInt8] = []
        while true {
            let limit = behavior.stopsReadingAfter.map { $0 - received.count } ?? 4096
            guard limit > 0 else { return }
            var buffer = [UInt8](repeating: 0, count: min(limit, 4096))
            let count = read(descriptor, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { return }
            pending += buffer.prefix(count)
            while let first = pending.first {
                let question: [UInt8]? = [[0x10, 0x04], [0x1D, 0x72]].first { $0[0] == first }
                // The beginning of a question, perhaps.
                if let question, pending.count < 3, question.starts(with: pending.prefix(2)) { break }
                if let question, pending.starts(with: question) {
                    answer(pending[2], isRealTime: first == 0x10, descriptor)
                    pending.removeFirst(3)
                } else {
                    state.withLock { $0.received.append(first) }
                    pending.removeFirst()
                }
            }
            arrival.withLock { arrival.broadcast() }
            if let last = behavior.leavesAfter, received.count >= last { return }
        }
    }

    private func answer(_ number: UInt8, isRealTime: Bool, _ descriptor: Int32) {
        state.withLock { $0.questions += 1 }
        var status = behavior.status
        if let after = behavior.statusAfter, received.count >= after.count { status = after.status }
        guard let answer = isRealTime ? status?[number] : behavior.paperSensor else { return }
        let bytes = behavior.noise + [answer]
        _ = write(descriptor, bytes, bytes.count)
    }
}

/// A port that a ``FakePrinter`` listens on.
final class FakePort: Sendable {
    let number: UInt16
    /// The thread that accepts closes it, when it does not accept any more: a number that were free before would soon be
    /// another file's, and it would take that one's connections.
    private let listener: Int32

    /// - Parameter printer: one for each connection.
    init(_ printer: FakePrinter, holdsAfterEnd: Bool = true) throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        // As little as printers keep.
        var size: Int32 = 4096
        setsockopt(listener, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        let listener = listener
        guard withLocalAddress(0, { bind(listener, $0, $1) }) == 0, listen(listener, 8) == 0 else {
            throw POSIXError(.EADDRINUSE)
        }
        number = try localPort(of: listener)
        Thread.detachNewThread {
            defer { close(listener) }
            while true {
                let connection = accept(listener, nil, nil)
                // After shutdown(2), and then alone, the thread ends.
                if connection < 0, errno == EINVAL { return }
                guard connection >= 0 else { continue }
                Thread.detachNewThread {
                    printer.serve(connection)
                    // One that hangs keeps the line.
                    if holdsAfterEnd {
                        // POLLRDHUP: until the other end closes.
                        var line = pollfd(fd: connection, events: 0x2000, revents: 0)
                        poll(&line, 1, -1)
                    }
                    close(connection)
                }
            }
        }
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }
}

/// A device file that a ``FakePrinter`` is behind, for as long as somebody has the object.
final class FakeDevice: Sendable {
    let path: String

    /// - Parameter leavesAfter: it is unplugged when the printer has so many bytes.
    init(_ printer: FakePrinter, leavesAfter: Int = .max) throws {
        let master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var number: Int32 = 0, unlocked: Int32 = 0
        // TIOCSPTLCK and TIOCGPTN
        guard master >= 0, ioctl(master, 0x4004_5431, &unlocked) == 0, ioctl(master, 0x8004_5430, &number) == 0 else {
            throw POSIXError(.ENODEV)
        }
        path = "/dev/pts/\(number)"
        // A line that echoes until somebody opens it would tell the printer its own answers.
        var settings = termios()
        tcgetattr(master, &settings)
        cfmakeraw(&settings)
        tcsetattr(master, TCSANOW, &settings)
        Thread.detachNewThread { [weak self] in
            // Nobody has opened it yet, or has it open any more.
            while self != nil, printer.received.count < leavesAfter {
                printer.serve(master)
                usleep(20_000)
            }
            close(master)
        }
    }

}
