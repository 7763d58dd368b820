import CV4L2
import CameraTestSupport
import Foundation
import Synchronization
import TestSupport
import Testing
import Waiting

@testable import Cameras

/// Cameras over a driver that a test makes up.
@Suite struct CameraTests {
    /// 75 % color bars of ITU-R BT.601 in Y, Cb, Cr: white, yellow, cyan, green, magenta, red, blue, black (SMPTE EG 1).
    static let bars: [[UInt8]] = [
        [180, 128, 128], [162, 44, 142], [131, 156, 44], [112, 72, 58], [84, 184, 198], [65, 100, 212], [35, 212, 114],
        [16, 128, 128],
    ]

    /// The bars as an image of YUYV, 64 by 48 pixels, with some bytes between the rows.
    static func yuyv(stride: Int = 128) -> [UInt8] {
        let row = bars.flatMap { bar in (0..<4).flatMap { _ in [bar[0], bar[1], bar[0], bar[2]] } }
        return (0..<48).flatMap { _ in row + [UInt8](repeating: 0xAA, count: stride - 128) }
    }

    private static func camera(_ driver: CameraDriver, _ change: (inout CameraLimits) -> Void = { _ in }) -> Camera {
        var limits = CameraLimits()
        change(&limits)
        return Camera(path: "/dev/video0", limits: limits, CameraMachine(driver))
    }

    @Test("an image of YUYV comes as JPEG, after those in which the camera adapts; everything is given back")
    func takesAnImage() async throws {
        let driver = CameraDriver { _ in .init(bytes: Self.yuyv()) }
        let image = try await Self.camera(driver).capture(within: .seconds(600))
        #expect((image.mimeType, image.width, image.height) == ("image/jpeg", 64, 48))
        #expect(image.bytes.starts(with: [0xFF, 0xD8]) && image.bytes.suffix(2) == [0xFF, 0xD9])
        let state = driver.state.withLock { $0 }
        #expect(state.frames == 6 && state.openings == 1)
        #expect(!state.isOpen && !state.isStreaming && state.mapped == 0)
        #expect("\(image)" == "image/jpeg, 64 × 48 pixels, \(image.bytes.count) bytes")
    }

    @Test("the best mode is JPEG before YUYV, and then the largest within the limits")
    func chooses() throws {
        func modes(_ formats: [UInt32], _ sizes: [(UInt32, UInt32)]) -> [String] {
            let cameras = CameraDetector.check(CameraMachine(CameraDriver(formats: formats, sizes: sizes))).cameras
            return cameras.flatMap(\.modes).map { "\($0.encoding) \($0.width)x\($0.height)" }
        }
        let sizes: [(UInt32, UInt32)] = [(640, 480), (1920, 1080), (1600, 1200), (3840, 2160), (1280, 720)]
        #expect(
            modes([CV4L2_YUYV, CV4L2_MJPEG], sizes) == [
                "jpeg 1920x1080", "jpeg 1600x1200", "jpeg 1280x720", "jpeg 640x480", "yuyv 1920x1080", "yuyv 1600x1200",
                "yuyv 1280x720", "yuyv 640x480",
            ])
        // H.264, and RGB of 24 bits.
        #expect(modes([0x3436_3248, 0x3342_4752], sizes) == [])
        #expect(modes([CV4L2_YUYV], [(0, 0), (641, 480), (640, 0), (0xFFFF_FFFF, 0xFFFF_FFFF)]) == [])
        #expect(modes([CV4L2_JPEG, CV4L2_JPEG], [(8, 8), (8, 8)]) == ["jpeg 8x8"])
        // Where the driver has no list.
        #expect(modes([CV4L2_MJPEG], []) == ["jpeg 1920x1440"])
    }

    @Test(
        "a range of sizes gives the largest step within the limits",
        arguments: [
            ([16, 4096, 16], [16, 4096, 8], "1920x1440"), ([48, 1000, 2], [48, 700, 2], "1000x700"),
            ([100, 5000, 1000], [100, 5000, 500], "1100x1100"), ([2000, 4000, 2], [16, 4096, 2], nil),
            ([16, 4096, 0], [16, 4096, 2], nil), ([4096, 16, 2], [16, 4096, 2], nil),
            ([0, 0, 1], [0, 0, 1], nil), ([1, 0xFFFF_FFFF, 0xFFFF_FFFF], [2, 0xFFFF_FFFF, 1], nil),
        ] as [([UInt32], [UInt32], String?)])
    func steps(_ width: [UInt32], _ height: [UInt32], _ expected: String?) throws {
        let driver = CameraDriver(answer: { request, argument in
            guard request == CV4L2_ENUM_FRAMESIZES else { return nil }
            let size = argument.assumingMemoryBound(to: v4l2_frmsizeenum.self)
            size.pointee.type = V4L2_FRMSIZE_TYPE_STEPWISE.rawValue
            size.pointee.stepwise = v4l2_frmsize_stepwise(
                min_width: width[0], max_width: width[1], step_width: width[2], min_height: height[0],
                max_height: height[1], step_height: height[2])
            return 0
        })
        let modes = CameraDetector.check(CameraMachine(driver)).cameras.first?.modes
        #expect(modes?.map { "\($0.width)x\($0.height)" } == expected.map { [$0] })
    }

    @Test("lists of formats and sizes without an end are read so far and no further")
    func endless() throws {
        let driver = CameraDriver(answer: { request, argument in
            switch request {
            case CV4L2_ENUM_FMT:
                let format = argument.assumingMemoryBound(to: v4l2_fmtdesc.self)
                format.pointee.pixelformat = format.pointee.index % 2 == 0 ? CV4L2_MJPEG : format.pointee.index
            case CV4L2_ENUM_FRAMESIZES:
                let size = argument.assumingMemoryBound(to: v4l2_frmsizeenum.self)
                size.pointee.type = V4L2_FRMSIZE_TYPE_DISCRETE.rawValue
                size.pointee.discrete = v4l2_frmsize_discrete(width: 16 + size.pointee.index, height: 16)
            default: return nil
            }
            return 0
        })
        let modes = try #require(CameraDetector.check(CameraMachine(driver)).cameras.first?.modes)
        #expect(modes.count == 64 && modes.first?.width == 79)
        #expect(driver.state.withLock { $0.calls.count } < 200)
    }

    @Test(
        "a driver's lie, or a camera that cannot be used, is an error with a reason",
        arguments: [
            // The call, the answer's change or its error, and what comes of it.
            (CV4L2_REQBUFS, .fails(EBUSY), CameraError.inUse(path: "/dev/video0")),
            (CV4L2_S_FMT, .fails(EBUSY), .inUse(path: "/dev/video0")),
            (CV4L2_S_FMT, .fails(EIO), .failed(call: "VIDIOC_S_FMT", code: EIO)),
            (CV4L2_STREAMON, .fails(ENOSPC), .failed(call: "VIDIOC_STREAMON", code: ENOSPC)),
            (CV4L2_DQBUF, .fails(ENODEV), .disconnected), (CV4L2_QBUF, .fails(ENODEV), .disconnected),
            (CV4L2_DQBUF, .fails(EIO), .failed(call: "VIDIOC_DQBUF", code: EIO)),
            (CV4L2_S_FMT, .says { $0.format.fmt.pix.pixelformat = CV4L2_MJPEG }, .noUsableFormat),
            (CV4L2_S_FMT, .says { $0.format.fmt.pix.width = 1922 }, .noUsableFormat),
            (CV4L2_S_FMT, .says { $0.format.fmt.pix.height = 1441 }, .noUsableFormat),
            (CV4L2_S_FMT, .says { $0.format.fmt.pix.width = 0 }, .malformedAnswer("images of 0 × 48 pixels")),
            (
                CV4L2_S_FMT,
                .says {
                    $0.format.fmt.pix.width = .max
                    $0.format.fmt.pix.height = .max
                }, .malformedAnswer("images of 4294967295 × 4294967295 pixels")
            ),
            (CV4L2_S_FMT, .says { $0.format.fmt.pix.width = 63 }, .malformedAnswer("rows of 126 bytes")),
            (CV4L2_S_FMT, .says { $0.format.fmt.pix.bytesperline = 127 }, .malformedAnswer("rows of 127 bytes")),
            (
                CV4L2_S_FMT, .says { $0.format.fmt.pix.bytesperline = .max },
                .malformedAnswer("rows of 4294967295 bytes")
            ),
            // An image as large as that is not in the buffers.
            (CV4L2_S_FMT, .says { $0.format.fmt.pix.height = 49 }, .corruptFrames(100)),
            (CV4L2_REQBUFS, .says { $0.request.count = 0 }, .malformedAnswer("0 buffers")),
            (CV4L2_REQBUFS, .says { $0.request.count = 33 }, .malformedAnswer("33 buffers")),
            (CV4L2_QUERYBUF, .says { $0.buffer.length = 0 }, .malformedAnswer("a buffer of 0 bytes")),
            (CV4L2_QUERYBUF, .says { $0.buffer.length = .max }, .malformedAnswer("a buffer of 4294967295 bytes")),
        ] as [(UInt, Lie, CameraError)])
    func lies(_ request: UInt, _ lie: Lie, _ expected: CameraError) async throws {
        let driver = CameraDriver(
            frame: { _ in .init(bytes: Self.yuyv()) }, answer: { $0 == request ? lie.answer($0, $1) : nil })
        await #expect(throws: expected) { try await Self.camera(driver).capture(within: .seconds(600)) }
        let state = driver.state.withLock { $0 }
        #expect(!state.isOpen && !state.isStreaming && state.mapped == 0)
        #expect(!"\(expected)".isEmpty && expected.hint.hasSuffix("."))
    }

    /// What a driver does at a call.
    enum Lie: Sendable {
        case fails(Int32)
        /// It answers, with this changed.
        case says(@Sendable (inout Answer) -> Void)

        /// The structure that the call's argument points to.
        struct Answer {
            fileprivate let argument: UnsafeMutableRawPointer
            var format: v4l2_format {
                get { argument.load(as: v4l2_format.self) }
                nonmutating set { argument.storeBytes(of: newValue, as: v4l2_format.self) }
            }
            var request: v4l2_requestbuffers {
                get { argument.load(as: v4l2_requestbuffers.self) }
                nonmutating set { argument.storeBytes(of: newValue, as: v4l2_requestbuffers.self) }
            }
            var buffer: v4l2_buffer {
                get { argument.load(as: v4l2_buffer.self) }
                nonmutating set { argument.storeBytes(of: newValue, as: v4l2_buffer.self) }
            }
        }

        func answer(_ request: UInt, _ argument: UnsafeMutableRawPointer) -> Int32 {
            switch self {
            case .fails(let code): return code
            case .says(let change):
                var answer = Answer(argument: argument)
                change(&answer)
                return 0
            }
        }
    }

    @Test(
        "a buffer that cannot be is an error, and nothing is read beyond it",
        arguments: [
            (CameraDriver.Buffer(bytes: [], index: 4, used: 1), CameraError.malformedAnswer("the buffer 4 of 4")),
            (.init(bytes: [], index: .max, used: 1), .malformedAnswer("the buffer 4294967295 of 4")),
            (.init(bytes: [], used: 65_537), .malformedAnswer("65537 bytes in a buffer of 65536")),
            (.init(bytes: [], used: .max), .malformedAnswer("4294967295 bytes in a buffer of 65536")),
            (.init(bytes: [], used: 0), .corruptFrames(100)),
            (.init(bytes: yuyv(), flags: UInt32(V4L2_BUF_FLAG_ERROR)), .corruptFrames(100)),
            (.init(bytes: Array(yuyv().dropLast())), .corruptFrames(100)),
        ])
    func buffers(_ buffer: CameraDriver.Buffer, _ expected: CameraError) async throws {
        let driver = CameraDriver { _ in buffer }
        await #expect(throws: expected) { try await Self.camera(driver).capture(within: .seconds(600)) }
        #expect(driver.state.withLock { $0.mapped == 0 && !$0.isOpen })
    }

    @Test("damaged images between whole ones are passed over, and more of them than that do not matter")
    func damaged() async throws {
        let driver = CameraDriver { number in
            .init(bytes: Self.yuyv(), flags: number % 2 == 0 ? UInt32(V4L2_BUF_FLAG_ERROR) : 0)
        }
        #expect(try await Self.camera(driver).capture(within: .seconds(600)).width == 64)
        #expect(driver.state.withLock { $0.frames } == 12)
    }

    @Test("a camera that is unplugged after some images says so") func unplugged() async throws {
        let frames = CameraDriver { _ in .init(bytes: Self.yuyv()) }
        let driver = CameraDriver(frame: frames.frame) { request, _ in
            guard request == CV4L2_DQBUF else { return nil }
            return frames.state.withLock { state in
                state.frames += 1
                return state.frames > 3 ? ENODEV : nil
            }
        }
        await #expect(throws: CameraError.disconnected) { try await Self.camera(driver).capture(within: .seconds(600)) }
        #expect(driver.state.withLock { $0.mapped == 0 && !$0.isOpen })
    }

    @Test("where the camera is slow, the first image of the second half of the time is taken") func slow() async throws
    {
        // A clock that goes on with the images, a second each.
        let driver = CameraDriver { _ in .init(bytes: Self.yuyv()) }
        var limits = CameraLimits()
        limits.settlingFrames = 1_000_000
        let camera = Camera(path: "/dev/video0", limits: limits, CameraMachine(driver))
        let image = try await Time.$current.withValue(Time(FrameTime(driver))) {
            try await camera.capture(within: .seconds(600))
        }
        #expect(image.width == 64)
        #expect(driver.state.withLock { $0.frames } == 300)
    }

    @Test("images of one camera are taken one after the other") func twoAtOnce() async throws {
        let driver = CameraDriver { _ in .init(bytes: Self.yuyv()) }
        let isOpenTwice = Mutex(false)
        let watched = CameraDriver(
            frame: driver.frame,
            answer: { request, _ in
                guard request == CV4L2_QUERYCAP || request == CV4L2_STREAMOFF else { return nil }
                driver.state.withLock { state in
                    if request == CV4L2_QUERYCAP, state.isOpen { isOpenTwice.withLock { $0 = true } }
                    state.isOpen = request == CV4L2_QUERYCAP
                }
                return nil
            })
        let camera = Self.camera(watched)
        async let one = camera.capture(within: .seconds(600))
        async let other = camera.capture(within: .seconds(600))
        #expect(try await [one.width, other.width] == [64, 64])
        #expect(watched.state.withLock { $0.openings } == 2 && !isOpenTwice.withLock { $0 })
    }

    @Test("limits that admit nothing give nothing") func noLimits() async throws {
        for (width, height) in [(0, 0), (-1, 1440), (1920, 0), (63, 48), (64, 47)] {
            let driver = CameraDriver { _ in .init(bytes: Self.yuyv()) }
            let camera = Self.camera(driver) { ($0.width, $0.height) = (width, height) }
            await #expect(throws: CameraError.noUsableFormat) { try await camera.capture() }
        }
        let missing = Camera(path: "/dev/video7", CameraMachine(CameraDriver()))
        await #expect(throws: CameraError.noCamera) { try await missing.capture() }
    }

    @Test("a document is taken with the first camera that is free, or it is said why there is none")
    func document() async throws {
        let working = CameraDriver { _ in .init(bytes: Self.yuyv()) }
        let inUse = CameraDriver(answer: { request, _ in request == CV4L2_REQBUFS ? EBUSY : nil })
        let denied = CameraDriver(openError: EACCES)
        func take(_ drivers: [CameraDriver]) async throws -> CameraImage {
            let pairs = drivers.enumerated().map { ("/dev/video\($0)", $1) }
            let capture = CameraCapture(CameraMachine(Dictionary(uniqueKeysWithValues: pairs)))
            return try await capture.documentImage(within: .seconds(600)).image
        }
        #expect(try await take([denied, inUse, working]).width == 64)
        await #expect(throws: CameraError.inUse(path: "/dev/video1")) { try await take([denied, inUse]) }
        await #expect(throws: CameraError.notPermitted(path: "/dev/video0")) { try await take([denied]) }
        await #expect(throws: CameraError.noCamera) { try await take([]) }
    }

    @Test("a camera that gives nothing is waited for no longer than it was said") func silent() async throws {
        let driver = CameraDriver()
        await #expect(throws: CameraError.timedOut) {
            try await Self.camera(driver).capture(within: .milliseconds(200))
        }
        #expect(driver.state.withLock { $0.mapped == 0 && !$0.isOpen })
    }

    @Test("a canceled task waits no longer, and the camera is closed") func canceled() async throws {
        let driver = CameraDriver()
        let camera = Self.camera(driver)
        let task = Task { try await camera.capture(within: .seconds(600)) }
        try await wait(for: "stream") { driver.state.withLock { $0.isStreaming } }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(driver.state.withLock { $0.mapped == 0 && !$0.isOpen })
    }

    @Test("a driver that does not come back from a call holds up nobody for long") func stuck() async throws {
        let isOver = DispatchSemaphore(value: 0)
        defer { isOver.signal() }
        let driver = CameraDriver(answer: { request, _ in
            if request == CV4L2_S_FMT { isOver.wait() }
            return nil
        })
        await #expect(throws: CameraError.timedOut) { try await Self.camera(driver).capture(within: .zero) }
    }

    // MARK: Detection

    @Test("check tells cameras apart: usable, in use, not permitted, and what is no camera")
    func check() {
        let machine = CameraMachine(
            [
                "/dev/video10": CameraDriver(card: Array("Tenth\u{1B}[31m".utf8)),
                "/dev/video2": CameraDriver(card: [UInt8](repeating: 0x41, count: 32)),
                // Metadata of a UVC camera: the device captures video, this file does not.
                "/dev/video3": CameraDriver(deviceCapabilities: UInt32(V4L2_CAP_META_CAPTURE | V4L2_CAP_STREAMING)),
                "/dev/video4": CameraDriver(openError: EACCES),
                "/dev/video5": CameraDriver(answer: { request, _ in request == CV4L2_REQBUFS ? EBUSY : nil }),
                "/dev/video6": CameraDriver(answer: { _, _ in ENOTTY }),
                "/dev/video7": CameraDriver(openError: ENOENT),
                // An old driver, without capabilities of its own files.
                "/dev/video8": CameraDriver(capabilities: CameraDriver.ordinary, deviceCapabilities: 0),
            ], others: ["video", "videoX", "video99999", "vbi0", "video-1", "../video1"])
        let result = CameraDetector.check(machine)
        #expect(result.cameras.map(\.path) == ["/dev/video2", "/dev/video5", "/dev/video8", "/dev/video10"])
        #expect(result.cameras.last?.name == "Tenth?[31m")
        #expect(result.cameras.first?.name == String(repeating: "A", count: 32))
        #expect(result.inUse == ["/dev/video5"] && result.notPermitted == ["/dev/video4"])
        #expect(result.hardwareAvailable)
    }
}

/// A time that goes on with a camera's images, a second each.
private final class FrameTime: Time.Simulation {
    private let driver: CameraDriver
    private let start = Time.now

    init(_ driver: CameraDriver) { self.driver = driver }

    var now: Time.Instant { start + .seconds(driver.state.withLock { $0.frames }) }

    /// No deadline passes.
    func set(_ instant: Time.Instant, _ action: @escaping @Sendable () -> Void) -> UInt64 { 0 }
    func lift(_ number: UInt64) {}
}
