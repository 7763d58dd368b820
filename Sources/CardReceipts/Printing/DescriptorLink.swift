import Dispatch
import Foundation
import Waiting

/// A device file: `/dev/usb/lp0` of the kernel's usblp, or a serial line.
struct DevicePort: PrinterPort {
    let path: String

    func open(within limit: Duration) async throws(PrinterCondition) -> any PrinterLink {
        // An ordinary file would accept the receipt, and lose its contents.
        let target = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
        let attributes = try? FileManager.default.attributesOfItem(atPath: target)
        guard attributes?[.type] as? FileAttributeType != .typeRegular else { throw .absent }
        let descriptor = Foundation.open(path, O_RDWR | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
        guard descriptor >= 0 else { throw PrinterCondition(opening: errno) }
        if isatty(descriptor) == 1 {
            // The line must not change the bytes.
            var settings = termios()
            tcgetattr(descriptor, &settings)
            cfmakeraw(&settings)
            tcsetattr(descriptor, TCSANOW, &settings)
        }
        return try DescriptorLink(descriptor)
    }
}

/// A network printer that accepts raw bytes on a port, usually 9100.
struct TCPPort: PrinterPort {
    let host: String
    let port: UInt16

    func open(within limit: Duration) async throws(PrinterCondition) -> any PrinterLink {
        let end = ContinuousClock.now + limit
        var condition = PrinterCondition.absent
        for address in await addresses(within: limit) {
            let descriptor = socket(
                Int32(address.family), Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
            guard descriptor >= 0 else { continue }
            let link = try DescriptorLink(descriptor)
            let status = address.bytes.withUnsafeBytes { bytes in
                bytes.withMemoryRebound(to: sockaddr.self) {
                    connect(descriptor, $0.baseAddress, socklen_t(bytes.count))
                }
            }
            guard status == 0 || errno == EINPROGRESS else {
                condition = PrinterCondition(opening: errno)
                continue
            }
            if let obstacle = await link.finishConnecting(until: end) { condition = obstacle } else { return link }
        }
        throw condition
    }

    private struct Address: Sendable {
        let family: UInt16
        let bytes: [UInt8]
    }

    /// Resolves the host name on its own thread, for as long as the resolver takes.
    private func addresses(within limit: Duration) async -> [Address] {
        let answer = Delivery<[Address]>()
        let addresses = try? await answer.receive(within: limit) {
            Thread.detachNewThread { [self] in answer.deliver(.success(resolve())) }
        }
        return addresses ?? []
    }

    private func resolve() -> [Address] {
        var hints = addrinfo()
        hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
        var list: UnsafeMutablePointer<addrinfo>?
        guard getaddrinfo(host, String(port), &hints, &list) == 0 else { return [] }
        defer { freeaddrinfo(list) }
        return sequence(first: list) { $0?.pointee.ai_next }.prefix { $0 != nil }.compactMap { entry in
            guard let entry = entry?.pointee, let address = entry.ai_addr else { return nil }
            let bytes = UnsafeRawBufferPointer(start: address, count: Int(entry.ai_addrlen))
            return Address(family: UInt16(clamping: entry.ai_family), bytes: Array(bytes))
        }
    }
}

/// A non-blocking file descriptor, and a thread that waits for it.
final class DescriptorLink: PrinterLink {
    private let descriptor: Int32
    /// A pipe that becomes readable when the task is canceled.
    private let cancelled: (reading: Int32, writing: Int32)
    private let queue = DispatchQueue(label: "printer")

    init(_ descriptor: Int32) throws(PrinterCondition) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else {
            let reason = String(cString: strerror(errno))
            Foundation.close(descriptor)
            throw .failed(reason)
        }
        for end in ends {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        self.descriptor = descriptor
        cancelled = (ends[0], ends[1])
    }

    deinit { for file in [descriptor, cancelled.reading, cancelled.writing] { Foundation.close(file) } }

    func close() async {
        // The last reference closes.  The printer learns of the end now, after the data still on its way.
        shutdown(descriptor, Int32(SHUT_WR))
    }

    func send(_ bytes: [UInt8], within limit: Duration) async -> (count: Int, condition: PrinterCondition?) {
        await blocking { [self] in
            var count = 0
            while count < bytes.count {
                let status = bytes.withUnsafeBytes { buffer in
                    write(UnsafeRawBufferPointer(rebasing: buffer[count...]))
                }
                if status > 0 {
                    count += status
                } else if status < 0, errno == EAGAIN {
                    if let condition = wait(for: POLLOUT, until: .now + limit) { return (count, condition) }
                } else if status == 0 || errno != EINTR {
                    return (count, PrinterCondition(using: errno))
                }
            }
            let condition = drain(limit)
            return (max(0, count - unsent), condition)
        }
    }

    /// Waits until the printer has taken the data that the kernel still holds.
    private func drain(_ limit: Duration) -> PrinterCondition? {
        var pending = outgoing
        var end = ContinuousClock.now + limit
        while true {
            // usblp is writable when its last transfer has ended.  Closing it cancels a transfer.
            if let condition = wait(for: POLLOUT, until: end) { return condition }
            let now = outgoing
            guard now > 0 else { return nil }
            if now < pending { end = .now + limit }
            pending = now
            guard ContinuousClock.now < end else { return .silent }
            usleep(10_000)
        }
    }

    /// The number of bytes that the printer has not acknowledged (TCP) or that have not left the machine; 0 if the
    /// kernel does not report it.
    private var outgoing: Int { queued(UInt(TIOCOUTQ)) ?? 0 }

    /// The number of bytes that have not left the machine.  A network printer may hold bytes that it has not
    /// acknowledged yet (Linux's SIOCOUTQNSD does not count those).
    private var unsent: Int { queued(0x894B) ?? outgoing }

    private func queued(_ request: UInt) -> Int? {
        var count: Int32 = 0
        return ioctl(descriptor, request, &count) == 0 ? Int(count) : nil
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> Int {
        let status = Foundation.send(descriptor, bytes.baseAddress, bytes.count, Int32(MSG_NOSIGNAL))
        guard status < 0, errno == ENOTSOCK else { return status }
        return Foundation.write(descriptor, bytes.baseAddress, bytes.count)
    }

    func receive(within limit: Duration) async throws(PrinterCondition) -> [UInt8] {
        let result: Result<[UInt8], PrinterCondition> = await blocking { [self] in
            if let condition = wait(for: POLLIN, until: .now + limit) {
                return condition == .silent ? .success([]) : .failure(condition)
            }
            var buffer = [UInt8](repeating: 0, count: 256)
            let count = read(descriptor, &buffer, buffer.count)
            if count > 0 { return .success(Array(buffer.prefix(count))) }
            return count < 0 && (errno == EAGAIN || errno == EINTR)
                ? .success([]) : .failure(count == 0 ? .disconnected : PrinterCondition(using: errno))
        }
        return try result.get()
    }

    /// Reads the port status with LPGETSTATUS of usblp (USB Printing Devices 1.1, 4.2.2).
    func condition() async -> PrinterCondition? {
        await blocking { [self] in
            var status: Int32 = 0
            guard ioctl(descriptor, 0x060B, &status) == 0 else { return nil }
            return PrinterCondition(portStatus: UInt8(truncatingIfNeeded: status))
        }
    }

    /// Waits until the connection is established.
    ///
    /// - Returns: nil on success.
    func finishConnecting(until end: ContinuousClock.Instant) async -> PrinterCondition? {
        await blocking { [self] in
            if let condition = wait(for: POLLOUT, until: end, failsOnError: false) {
                return condition == .silent ? .absent : condition
            }
            var error: Int32 = 0
            var length = socklen_t(MemoryLayout<Int32>.size)
            getsockopt(descriptor, SOL_SOCKET, SO_ERROR, &error, &length)
            return error == 0 ? nil : PrinterCondition(opening: error)
        }
    }

    /// Waits for events on the descriptor.
    ///
    /// - Returns: nil when `events` have occurred; ``PrinterCondition/silent`` when the time is over or the task is
    ///   canceled.
    private func wait(
        for events: Int32, until end: ContinuousClock.Instant, failsOnError: Bool = true
    ) -> PrinterCondition? {
        while true {
            var files = [
                pollfd(fd: descriptor, events: Int16(events), revents: 0),
                pollfd(fd: cancelled.reading, events: Int16(POLLIN), revents: 0),
            ]
            let rest = (end - .now) / .milliseconds(1)
            let count = poll(&files, 2, Int32(min(max(rest.rounded(.up), 0), 3_600_000)))
            if count < 0, errno != EINTR { return .failed(String(cString: strerror(errno))) }
            if count > 0, files[1].revents != 0 { return .silent }
            let seen = Int32(files[0].revents)
            let hasFailed = count > 0 && seen & (POLLERR | POLLHUP | POLLNVAL) != 0
            // Data that arrived before the end is still readable; nothing more can be written.
            if count > 0, seen & events != 0, events == POLLIN || !hasFailed { return nil }
            if hasFailed { return failsOnError ? .disconnected : nil }
            if ContinuousClock.now >= end { return .silent }
        }
    }

    /// Runs a blocking call outside Swift's threads.
    private func blocking<R: Sendable>(_ body: @escaping @Sendable () -> R) async -> R {
        await withTaskCancellationHandler {
            await queue.blocking(body)
        } onCancel: {
            var byte: UInt8 = 1
            _ = Foundation.write(cancelled.writing, &byte, 1)
        }
    }
}

extension PrinterCondition {
    /// Maps an error of opening a printer.
    init(opening error: Int32) {
        switch error {
        case ENOENT, ENODEV, ENXIO, ECONNREFUSED, EHOSTUNREACH, ENETUNREACH, EHOSTDOWN, ETIMEDOUT: self = .absent
        case EBUSY, EADDRINUSE: self = .busy
        case EACCES, EPERM: self = .permissionDenied
        default: self = .failed(String(cString: strerror(error)))
        }
    }

    /// Maps an error of reading or writing.
    init(using error: Int32) {
        switch error {
        // usblp returns this when the printer reports no paper.
        case ENOSPC: self = .paperOut
        case ENODEV, ENXIO, EIO, EPIPE, ECONNRESET, ETIMEDOUT, ESHUTDOWN: self = .disconnected
        case EBUSY: self = .busy
        default: self = .failed(String(cString: strerror(error)))
        }
    }

    /// Maps a port status.
    ///
    /// - Returns: nil if the printer is selected, has paper and reports no error.
    init?(portStatus status: UInt8) {
        // Bit 5: paper empty; bit 4: selected; bit 3: no error.
        if status & 0x20 != 0 {
            self = .paperOut
        } else if status & 0x10 == 0 {
            self = .offline
        } else if status & 0x08 == 0 {
            self = .failed("it reports an error")
        } else {
            return nil
        }
    }
}
