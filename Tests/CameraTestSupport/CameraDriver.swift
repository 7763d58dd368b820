import CV4L2
package import Cameras
import Foundation
package import Synchronization

/// A camera's driver in this process: what the kernel would answer, with room for lies.
package final class CameraDriver: Sendable {
    /// One buffer as VIDIOC_DQBUF gives it.
    package struct Buffer: Sendable {
        package var bytes: [UInt8]
        package var flags: UInt32 = 0
        /// What the driver says instead of the truth.
        package var index: UInt32?
        package var used: UInt32?

        package init(bytes: [UInt8], flags: UInt32 = 0, index: UInt32? = nil, used: UInt32? = nil) {
            (self.bytes, self.flags, self.index, self.used) = (bytes, flags, index, used)
        }
    }

    /// An answer to an ioctl before the driver's own: an error, zero, or nil to leave it to the driver.
    package typealias Answer = @Sendable (_ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32?

    package struct State: Sendable {
        package var openings = 0
        package var isOpen = false
        package var isStreaming = false
        package var mapped = 0
        package var queued: [UInt32] = []
        package var frames = 0
        package var calls: [UInt] = []
    }

    package let state = Mutex(State())
    package let openError: Int32
    package let capabilities: UInt32
    package let deviceCapabilities: UInt32
    package let card: [UInt8]
    package let formats: [UInt32]
    package let sizes: [(UInt32, UInt32)]
    package let buffers: UInt32
    package let length: UInt32
    /// The image with this number; nil while there is none.
    package let frame: @Sendable (Int) -> Buffer?
    package let answer: Answer

    package static let ordinary = UInt32(V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING)
    package static let hasOwnCapabilities: UInt32 = 0x8000_0000

    package init(
        openError: Int32 = 0, capabilities: UInt32 = ordinary | hasOwnCapabilities,
        deviceCapabilities: UInt32 = ordinary, card: [UInt8] = Array("Camera".utf8),
        formats: [UInt32] = [CV4L2_YUYV], sizes: [(UInt32, UInt32)] = [(64, 48)], buffers: UInt32 = 4,
        length: UInt32 = 65_536, frame: @escaping @Sendable (Int) -> Buffer? = { _ in nil },
        answer: @escaping Answer = { _, _ in nil }
    ) {
        (self.openError, self.capabilities, self.deviceCapabilities) = (openError, capabilities, deviceCapabilities)
        (self.card, self.formats, self.sizes) = (card, formats, sizes)
        (self.buffers, self.length, self.frame, self.answer) = (buffers, length, frame, answer)
    }

    /// Answers an ioctl with an error or zero.
    ///
    /// - Parameter write: puts an image into the buffer at an offset.
    package func control(
        _ request: UInt, _ argument: UnsafeMutableRawPointer, write: (_ bytes: [UInt8], _ offset: Int) -> Void
    ) -> Int32 {
        state.withLock { $0.calls.append(request) }
        if let code = answer(request, argument) { return code }
        func structure<T>(_ type: T.Type) -> UnsafeMutablePointer<T> { argument.assumingMemoryBound(to: type) }
        switch request {
        case CV4L2_QUERYCAP:
            let answer = structure(v4l2_capability.self)
            (answer.pointee.capabilities, answer.pointee.device_caps) = (capabilities, deviceCapabilities)
            withUnsafeMutableBytes(of: &answer.pointee.card) { $0.copyBytes(from: card.prefix(32)) }
        case CV4L2_ENUM_FMT:
            let format = structure(v4l2_fmtdesc.self)
            guard format.pointee.index < formats.count else { return EINVAL }
            format.pointee.pixelformat = formats[Int(format.pointee.index)]
        case CV4L2_ENUM_FRAMESIZES:
            let size = structure(v4l2_frmsizeenum.self)
            guard size.pointee.index < sizes.count else { return EINVAL }
            size.pointee.type = V4L2_FRMSIZE_TYPE_DISCRETE.rawValue
            (size.pointee.discrete.width, size.pointee.discrete.height) = sizes[Int(size.pointee.index)]
        case CV4L2_S_FMT: break
        case CV4L2_REQBUFS:
            let buffers = structure(v4l2_requestbuffers.self)
            if buffers.pointee.count > 0 { buffers.pointee.count = self.buffers }
        case CV4L2_QUERYBUF:
            let buffer = structure(v4l2_buffer.self)
            (buffer.pointee.length, buffer.pointee.m.offset) = (length, buffer.pointee.index * length)
        case CV4L2_QBUF:
            state.withLock { $0.queued.append(structure(v4l2_buffer.self).pointee.index) }
        case CV4L2_DQBUF:
            let buffer = structure(v4l2_buffer.self)
            let (number, isQueued) = state.withLock { state in
                defer { state.frames += 1 }
                return (state.frames, !state.queued.isEmpty)
            }
            guard isQueued, let frame = frame(number) else { return EAGAIN }
            let index = state.withLock { $0.queued.removeFirst() }
            write(Array(frame.bytes.prefix(Int(length))), Int(index * length))
            buffer.pointee.index = frame.index ?? index
            buffer.pointee.bytesused = frame.used ?? UInt32(frame.bytes.count)
            buffer.pointee.flags = frame.flags
        case CV4L2_STREAMON: state.withLock { $0.isStreaming = true }
        case CV4L2_STREAMOFF: state.withLock { $0.isStreaming = false }
        default: return ENOTTY
        }
        return 0
    }
}

/// A machine with these video devices.
package final class CameraMachine: CameraSystem {
    private let drivers: [String: CameraDriver]
    private let others: [String]
    private let memory = Mutex<[String: [Int: Memory]]>([:])

    /// - Parameter others: further files in `/sys/class/video4linux`.
    package init(_ drivers: [String: CameraDriver], others: [String] = []) {
        (self.drivers, self.others) = (drivers, others)
    }

    package convenience init(_ driver: CameraDriver) { self.init(["/dev/video0": driver]) }

    private func path(_ file: Int32) -> String { drivers.keys.sorted()[Int(file) - 100] }

    package func names(in folder: String) -> [String] {
        folder == "/dev" ? ["null", "tty"] : drivers.keys.map { String($0.dropFirst(5)) } + others
    }

    package func open(_ path: String) throws(CameraFault) -> Int32 {
        guard let driver = drivers[path], let number = drivers.keys.sorted().firstIndex(of: path) else {
            throw CameraFault(code: ENOENT)
        }
        guard driver.openError == 0 else { throw CameraFault(code: driver.openError) }
        driver.state.withLock { state in
            state.openings += 1
            state.isOpen = true
        }
        return Int32(100 + number)
    }

    package func control(_ file: Int32, _ request: UInt, _ argument: UnsafeMutableRawPointer) throws(CameraFault) {
        let path = path(file)
        let code = drivers[path]?.control(request, argument) { bytes, offset in
            memory.withLock { $0[path]?[offset] }?.bytes.copyBytes(from: bytes)
        }
        guard code == 0 else { throw CameraFault(code: code ?? EBADF) }
    }

    package func wait(for file: Int32, milliseconds: Int32) throws(CameraFault) -> Bool {
        usleep(200)
        return true
    }

    package func map(_ file: Int32, length: Int, offset: Int) throws(CameraFault) -> UnsafeMutableRawBufferPointer {
        let path = path(file)
        let new = Memory(length)
        memory.withLock { $0[path, default: [:]][offset] = new }
        drivers[path]?.state.withLock { $0.mapped += 1 }
        return new.bytes
    }

    package func unmap(_ bytes: UnsafeMutableRawBufferPointer) {
        for driver in drivers.values { driver.state.withLock { $0.mapped -= 1 } }
    }

    package func close(_ file: Int32) { drivers[path(file)]?.state.withLock { $0.isOpen = false } }
}

/// A driver's buffer.
private final class Memory: @unchecked Sendable {
    // Unchecked: written and read on the cameras' thread alone.
    let bytes: UnsafeMutableRawBufferPointer
    init(_ length: Int) { bytes = .allocate(byteCount: length, alignment: 16) }
    deinit { bytes.deallocate() }
}
