import CPCSCEvents
import Foundation
import ToolSupport

/// The socket to which programs with libpcsc-preload report their PC/SC calls.  For one thread.
final class EventSocket {
    /// One message.
    struct Message {
        let head: pcsc_event
        /// The reader's name, where there is one.
        let text: String
        let data: [UInt8]
    }

    /// A process that tells.
    struct Process: Hashable {
        fileprivate let descriptor: Int32
        /// Descriptors are used again.
        fileprivate let number: Int
    }

    /// A receiver of a process's messages; nil when the process has ended, or runs another program.
    typealias Listener = (Process, Message?) -> Void

    private let directory: String
    private let listener: Int32
    private let receive: Listener
    private var isClosed = false
    private var processes: [Int32: (process: Process, received: UInt32, told: UInt32)] = [:]
    private var buffer = [UInt8](repeating: 0, count: headSize + Int(PCSC_EVENTS_MAXIMUM))

    /// The number of processes that have sent a message.
    private(set) var processCount = 0
    /// True while no descriptor is left for a new connection, until a process ends.
    private var isFull = false
    /// The number of messages lost because this program was too slow, a process closed its end, or there were too many
    /// processes.
    private(set) var lostCount = 0

    private static let headSize = MemoryLayout<pcsc_event>.size

    init(_ receive: @escaping Listener) throws {
        self.receive = receive
        directory = try Self.makeDirectory()
        listener = socket(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: "\(directory)/events".utf8.prefix(107)) }
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let isBound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(listener, $0, size) }
        }
        guard isBound == 0, listen(listener, 128) == 0 else {
            let reason = String(cString: strerror(errno))
            close()
            throw ToolError.usage(
                "cannot listen in \(directory): \(reason)", "Set TMPDIR to a folder with a short path.")
        }
    }

    deinit { close() }

    /// Returns the variables with which a program reports its calls.
    func environment() throws -> [String: String] {
        let library = try Self.library()
        let others = ProcessInfo.processInfo.environment["LD_PRELOAD"].map { ":\($0)" } ?? ""
        return ["LD_PRELOAD": library + others, PCSC_EVENTS_SOCKET: "\(directory)/events"]
    }

    /// The descriptors to wait for.
    var descriptors: [Int32] { (isFull ? [] : [listener]) + processes.keys }

    /// Takes all messages received so far, without waiting, and passes them on in the order of time across processes.
    ///
    /// - Returns: true if there was any.
    @discardableResult
    func take() -> Bool {
        accept()
        var told: [(time: UInt64, process: Process, message: Message?)] = []
        for (process, _, _) in processes.values {
            var count = 0
            while count < Self.maximumBatch, let message = next(of: process) {
                count += 1
                told.append((message?.head.time ?? .max, process, message))
                if message == nil { break }
            }
        }
        told.sort { $0.time < $1.time }
        for (_, process, message) in told {
            receive(process, message)
            if message == nil { forget(process) }
        }
        return !told.isEmpty
    }

    /// The maximum number of messages of a process that are held for ordering.
    private static let maximumBatch = 256

    private func accept() {
        while true {
            var ready = pollfd(fd: listener, events: Int16(POLLIN), revents: 0)
            guard poll(&ready, 1, 0) > 0 else { return }
            let descriptor = Glibc.accept(listener, nil, nil)
            guard descriptor >= 0 else {
                let isShort = errno == EMFILE || errno == ENFILE
                if isShort, Self.raiseDescriptorLimit() { continue }
                isFull = isShort
                return
            }
            isFull = false
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            processCount += 1
            processes[descriptor] = (Process(descriptor: descriptor, number: processCount), 0, 0)
        }
    }

    /// Raises the descriptor limit, only when needed: the program that is run inherits the limit, and should have the
    /// original.
    ///
    /// - Returns: true if there may be more descriptors now.
    private static func raiseDescriptorLimit() -> Bool {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < limit.rlim_max
        else { return false }
        limit.rlim_cur = limit.rlim_max
        return setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
    }

    /// - Returns: nil if there is nothing now; `.some(nil)` if nothing more comes.
    private func next(of process: Process) -> Message?? {
        while true {
            let count = recv(
                process.descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT) | Int32(MSG_TRUNC))
            if count < 0, errno == EINTR { continue }
            if count < 0, errno == EAGAIN { return nil }
            guard count > 0 else { return .some(nil) }
            guard let message = message(count) else { continue }
            note(message, of: process)
            return message
        }
    }

    private func note(_ message: Message, of process: Process) {
        guard var entry = processes[process.descriptor] else { return }
        entry.received &+= 1
        entry.told = max(entry.told, message.head.sequence &+ 1)
        processes[process.descriptor] = entry
    }

    private func forget(_ process: Process) {
        guard let (_, received, told) = processes.removeValue(forKey: process.descriptor) else { return }
        lostCount += Int(told) - min(Int(told), Int(received))
        Glibc.close(process.descriptor)
        isFull = false
    }

    /// The first `count` bytes of the buffer; nil if they are no message.
    private func message(_ count: Int) -> Message? {
        guard count >= Self.headSize, count <= buffer.count else { return nil }
        let head = buffer.withUnsafeBytes { $0.loadUnaligned(as: pcsc_event.self) }
        let lengths = (Int(head.text_length), Int(head.data_length))
        guard lengths.0 + lengths.1 == count - Self.headSize else { return nil }
        let body = buffer[Self.headSize..<count]
        return Message(
            head: head, text: String(decoding: body.prefix(lengths.0), as: UTF8.self),
            data: Array(body.dropFirst(lengths.0)))
    }

    /// Nothing more is taken.
    func close() {
        guard !isClosed else { return }
        isClosed = true
        for (process, _, _) in processes.values { forget(process) }
        // Who found no descriptor until the end.
        accept()
        for (process, _, _) in processes.values {
            while case .some(.some) = next(of: process) { lostCount += 1 }
            forget(process)
        }
        Glibc.close(listener)
        unlink("\(directory)/events")
        rmdir(directory)
    }

    // MARK: What it takes

    /// A new folder for this user alone, whose name is short enough for a socket's.
    private static func makeDirectory() throws -> String {
        let wanted = ProcessInfo.processInfo.environment["TMPDIR"] ?? "/tmp"
        for folder in [wanted, "/tmp"] where folder.utf8.count < 70 {
            var template = Array("\(folder)/apdu-trace.XXXXXX".utf8CString)
            if mkdtemp(&template) != nil {
                return String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
            }
        }
        throw ToolError.usage(
            "cannot make a folder in \(wanted): \(String(cString: strerror(errno)))",
            "Set TMPDIR to a writable folder.")
    }

    /// Returns the path of libpcsc-preload.so: next to this program, as built, or in ../lib, as installed.
    private static func library() throws -> String {
        let program = (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? ""
        let folder = URL(fileURLWithPath: program).deletingLastPathComponent()
        let places = [folder, folder.deletingLastPathComponent().appendingPathComponent("lib")]
            .map { $0.appendingPathComponent("libpcsc-preload.so").path }
        guard let path = places.first(where: { access($0, R_OK) == 0 }) else {
            throw ToolError.usage(
                "libpcsc-preload.so is neither next to this program nor in ../lib",
                "Build the whole package: swift build")
        }
        // What ld.so takes for the end of a name, or for a variable.
        guard !path.contains(where: { " :$\t\n".contains($0) }) else {
            throw ToolError.usage(
                "\(path) cannot be preloaded", "Put it into a folder without space, colon or dollar sign in its name.")
        }
        return path
    }
}
