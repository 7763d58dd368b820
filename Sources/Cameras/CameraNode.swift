import CV4L2
import Glibc

/// An open video device: Video for Linux, version 2 (the kernel's userspace API, part I).  Only this file makes ioctls.
///
/// The driver's answers are believed only within bounds: one that cannot be true is an error.
struct CameraNode: ~Copyable {
    /// The images of a stream, as VIDIOC_S_FMT has settled them.
    struct Format: Hashable, Sendable {
        let encoding: CameraMode.Encoding
        let width: Int
        let height: Int
        /// Bytes from one row to the next; for YUYV.
        let stride: Int
        /// True if black is 0 and white 255; else they are 16 and 235.
        let isFullRange: Bool
    }

    /// The end of a wait for an image.
    enum Frame: Hashable, Sendable {
        case whole([UInt8])
        /// The driver knows that it is damaged.
        case corrupt
    }

    private let system: any CameraSystem
    private let file: Int32
    private let path: String
    private var buffers: [UnsafeMutableRawBufferPointer] = []
    private var isStreaming = false

    init(opening path: String, _ system: any CameraSystem) throws(CameraError) {
        (self.path, self.system) = (path, system)
        do { file = try system.open(path) } catch {
            switch error.code {
            case ENOENT, ENODEV, ENXIO: throw .noCamera
            default: throw CameraError(error, "open", path)
            }
        }
    }

    deinit {
        if isStreaming {
            var type = Self.capture
            try? system.control(file, CV4L2_STREAMOFF, &type)
        }
        for buffer in buffers { system.unmap(buffer) }
        system.close(file)
    }

    private static let capture = V4L2_BUF_TYPE_VIDEO_CAPTURE.rawValue
    private static let encodings: [UInt32: CameraMode.Encoding] = [
        CV4L2_MJPEG: .jpeg, CV4L2_JPEG: .jpeg, CV4L2_YUYV: .yuyv,
    ]

    private func control<Argument>(
        _ call: String, _ request: UInt, _ argument: inout Argument
    ) throws(CameraError) {
        do throws(CameraFault) {
            try withUnsafeMutablePointer(to: &argument) { pointer throws(CameraFault) in
                try system.control(file, request, UnsafeMutableRawPointer(pointer))
            }
        } catch { throw CameraError(error, call, path) }
    }

    // MARK: Description

    /// The camera with its modes; nil for a device that takes no images, or none that can be used.
    ///
    /// - Throws: ``CameraError``, also where the driver knows no VIDIOC_QUERYCAP.
    func description(_ limits: CameraLimits) throws(CameraError) -> CameraDevice? {
        var answer = v4l2_capability()
        try control("VIDIOC_QUERYCAP", CV4L2_QUERYCAP, &answer)
        // ioctl VIDIOC_QUERYCAP: device_caps are of this file, capabilities of the whole device.
        let hasOwn = answer.capabilities & V4L2_CAP_DEVICE_CAPS != 0
        let able = hasOwn ? answer.device_caps : answer.capabilities
        let needed = UInt32(V4L2_CAP_VIDEO_CAPTURE | V4L2_CAP_STREAMING)
        guard able & needed == needed else { return nil }
        let modes = CameraMode.ordered(modes(limits))
        guard !modes.isEmpty else { return nil }
        return CameraDevice(
            path: path, name: Self.text(answer.card), driver: Self.text(answer.driver), bus: Self.text(answer.bus_info),
            modes: modes)
    }

    /// Returns true if another program has the camera's buffers.  This one must have none.
    ///
    /// ioctl VIDIOC_REQBUFS: a count of zero frees what is there, and fails with EBUSY while another file owns it.
    func isInUse() -> Bool {
        var request = v4l2_requestbuffers()
        (request.type, request.memory) = (Self.capture, V4L2_MEMORY_MMAP.rawValue)
        do {
            try control("VIDIOC_REQBUFS", CV4L2_REQBUFS, &request)
            return false
        } catch { return error == .inUse(path: path) }
    }

    /// A driver ends each list with an error; one that does not is asked no further after some entries.
    private func modes(_ limits: CameraLimits) -> [CameraMode] {
        var modes: [CameraMode] = []
        var known: Set<UInt32> = []
        for index in 0..<CameraLimits.entries {
            var format = v4l2_fmtdesc()
            (format.index, format.type) = (index, Self.capture)
            do { try control("VIDIOC_ENUM_FMT", CV4L2_ENUM_FMT, &format) } catch { break }
            guard let encoding = Self.encodings[format.pixelformat], known.insert(format.pixelformat).inserted
            else { continue }
            let pixelFormat = format.pixelformat
            // Without a list the driver is asked for the largest size, and says what it makes of that.
            let found =
                sizes(of: pixelFormat)?.compactMap { $0.largest(within: limits) } ?? [(limits.width, limits.height)]
            for (width, height) in found where width > 0 && height > 0 {
                guard encoding == .jpeg || width.isMultiple(of: 2) else { continue }
                let mode = CameraMode(encoding, width: width, height: height, pixelFormat: pixelFormat)
                if !modes.contains(mode) { modes.append(mode) }
            }
        }
        return modes
    }

    /// Returns the sizes of a format; nil if the driver does not list them.
    private func sizes(of pixelFormat: UInt32) -> [FrameSizes]? {
        var sizes: [FrameSizes] = []
        for index in 0..<CameraLimits.entries {
            var size = v4l2_frmsizeenum()
            (size.index, size.pixel_format) = (index, pixelFormat)
            do { try control("VIDIOC_ENUM_FRAMESIZES", CV4L2_ENUM_FRAMESIZES, &size) } catch {
                return index == 0 ? nil : sizes
            }
            switch size.type {
            case V4L2_FRMSIZE_TYPE_DISCRETE.rawValue:
                sizes.append(.discrete(width: Int(size.discrete.width), height: Int(size.discrete.height)))
            case V4L2_FRMSIZE_TYPE_STEPWISE.rawValue, V4L2_FRMSIZE_TYPE_CONTINUOUS.rawValue:
                // There is one such entry, and no other.
                let range = size.stepwise
                guard range.min_width <= range.max_width, range.min_height <= range.max_height else { return sizes }
                // Steps of continuous sizes are 1.
                sizes.append(
                    .stepwise(
                        width: (Int(range.min_width)...Int(range.max_width), step: Int(range.step_width)),
                        height: (Int(range.min_height)...Int(range.max_height), step: Int(range.step_height))))
                return sizes
            default: return sizes
            }
        }
        return sizes
    }

    /// A driver's characters up to the first zero, without control characters.
    private static func text<Characters>(_ characters: Characters) -> String {
        let text = withUnsafeBytes(of: characters) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return String(text.unicodeScalars.map { $0.properties.generalCategory == .control ? "?" : Character($0) })
    }

    // MARK: Streaming

    /// Settles the format and starts to take images.
    mutating func start(_ mode: CameraMode, _ limits: CameraLimits) throws(CameraError) -> Format {
        var answer = v4l2_format()
        answer.type = Self.capture
        answer.fmt.pix.width = UInt32(clamping: mode.width)
        answer.fmt.pix.height = UInt32(clamping: mode.height)
        answer.fmt.pix.pixelformat = mode.pixelFormat
        answer.fmt.pix.field = V4L2_FIELD_NONE.rawValue
        try control("VIDIOC_S_FMT", CV4L2_S_FMT, &answer)
        let format = try Self.checked(answer.fmt.pix, mode)
        // A driver with sizes of its own need not keep to the one it was asked for.
        guard format.width <= limits.width, format.height <= limits.height else { throw .noUsableFormat }

        var request = v4l2_requestbuffers()
        (request.count, request.type, request.memory) = (4, Self.capture, V4L2_MEMORY_MMAP.rawValue)
        try control("VIDIOC_REQBUFS", CV4L2_REQBUFS, &request)
        guard 1...CameraLimits.buffers ~= Int(request.count) else {
            throw .malformedAnswer("\(request.count) buffers")
        }
        for index in 0..<request.count {
            var buffer = Self.buffer(index)
            try control("VIDIOC_QUERYBUF", CV4L2_QUERYBUF, &buffer)
            guard 1...CameraLimits.buffer ~= Int(buffer.length) else {
                throw .malformedAnswer("a buffer of \(buffer.length) bytes")
            }
            do throws(CameraFault) {
                buffers.append(try system.map(file, length: Int(buffer.length), offset: Int(buffer.m.offset)))
            } catch { throw CameraError(error, "mmap", path) }
            try queue(index)
        }
        var type = Self.capture
        try control("VIDIOC_STREAMON", CV4L2_STREAMON, &type)
        isStreaming = true
        return format
    }

    private static func checked(_ answer: v4l2_pix_format, _ mode: CameraMode) throws(CameraError) -> Format {
        // A driver that has not the format answers with one that it has.
        guard let encoding = encodings[answer.pixelformat], encoding == mode.encoding else { throw .noUsableFormat }
        let (width, height) = (Int(answer.width), Int(answer.height))
        let (area, overflow) = width.multipliedReportingOverflow(by: height)
        guard width > 0, height > 0, !overflow, area <= CameraLimits.pixels else {
            throw .malformedAnswer("images of \(width) × \(height) pixels")
        }
        // Zero where rows have no padding, or the images are compressed.
        let stride = answer.bytesperline == 0 ? 2 * width : Int(answer.bytesperline)
        if encoding == .yuyv {
            guard width.isMultiple(of: 2), stride >= 2 * width, stride * height <= CameraLimits.buffer else {
                throw .malformedAnswer("rows of \(stride) bytes")
            }
        }
        // V4L2_MAP_QUANTIZATION_DEFAULT.
        let isFullRange =
            answer.quantization == V4L2_QUANTIZATION_FULL_RANGE.rawValue
            || answer.quantization == V4L2_QUANTIZATION_DEFAULT.rawValue
                && answer.colorspace == V4L2_COLORSPACE_JPEG.rawValue
        return Format(encoding: encoding, width: width, height: height, stride: stride, isFullRange: isFullRange)
    }

    private static func buffer(_ index: UInt32) -> v4l2_buffer {
        var buffer = v4l2_buffer()
        (buffer.index, buffer.type, buffer.memory) = (index, capture, V4L2_MEMORY_MMAP.rawValue)
        return buffer
    }

    private func queue(_ index: UInt32) throws(CameraError) {
        var buffer = Self.buffer(index)
        try control("VIDIOC_QBUF", CV4L2_QBUF, &buffer)
    }

    /// Waits for an image, and takes a copy of it; nil if there was none in that time.
    func frame(within milliseconds: Int32) throws(CameraError) -> Frame? {
        do throws(CameraFault) {
            guard try system.wait(for: file, milliseconds: milliseconds) else { return nil }
        } catch { throw CameraError(error, "poll", path) }
        var buffer = Self.buffer(0)
        do throws(CameraError) {
            try control("VIDIOC_DQBUF", CV4L2_DQBUF, &buffer)
        } catch .failed(_, EAGAIN) {
            // It was said that there is one: a driver that says so without end does not use up the processor.
            usleep(1000)
            return nil
        }
        guard buffers.indices.contains(Int(buffer.index)) else {
            throw .malformedAnswer("the buffer \(buffer.index) of \(buffers.count)")
        }
        let memory = buffers[Int(buffer.index)]
        guard Int(buffer.bytesused) <= memory.count else {
            throw .malformedAnswer("\(buffer.bytesused) bytes in a buffer of \(memory.count)")
        }
        let isWhole = buffer.flags & UInt32(V4L2_BUF_FLAG_ERROR) == 0 && buffer.bytesused > 0
        let frame = isWhole ? Frame.whole(Array(memory.prefix(Int(buffer.bytesused)))) : .corrupt
        try queue(buffer.index)
        return frame
    }
}

extension CameraError {
    fileprivate init(_ fault: CameraFault, _ call: String, _ path: String) {
        self =
            switch fault.code {
            case ENODEV, ENXIO: .disconnected
            case EACCES, EPERM: .notPermitted(path: path)
            case EBUSY: .inUse(path: path)
            default: .failed(call: call, code: fault.code)
            }
    }
}
