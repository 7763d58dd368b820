/// A camera of the machine, as its driver describes it.
public struct CameraDevice: Hashable, Sendable {
    /// The device file, such as `/dev/video0`.
    public let path: String
    /// The camera's name, for people.
    public let name: String
    /// The name of the kernel's driver, such as `uvcvideo`.
    public let driver: String
    /// The place on the bus, such as `usb-0000:00:14.0-3`: the same after a restart, as long as nobody plugs it elsewhere.
    public let bus: String
    /// The formats and sizes that can be used, best first; never empty.
    public let modes: [CameraMode]

    init(path: String, name: String, driver: String, bus: String, modes: [CameraMode]) {
        (self.path, self.name, self.driver, self.bus, self.modes) = (path, name, driver, bus, modes)
    }
}

/// A format and size of a camera's images.
public struct CameraMode: Hashable, Sendable {
    /// The form in which the camera sends its images.
    public enum Encoding: String, CaseIterable, Hashable, Sendable {
        /// JPEG or Motion JPEG: each image is compressed by the camera.
        case jpeg
        /// YUYV, 16 bits a pixel, uncompressed.
        case yuyv
    }

    /// The form of the images.
    public let encoding: Encoding
    /// The width in pixels.
    public let width: Int
    /// The height in pixels.
    public let height: Int
    /// The driver's number of the format.
    let pixelFormat: UInt32

    init(_ encoding: Encoding, width: Int, height: Int, pixelFormat: UInt32) {
        (self.encoding, self.width, self.height, self.pixelFormat) = (encoding, width, height, pixelFormat)
    }

    /// Returns the modes with the best one first: JPEG before YUYV, which has few images a second over USB, and larger
    /// ones before smaller ones.
    static func ordered(_ modes: [CameraMode]) -> [CameraMode] {
        modes.sorted { one, other in
            guard one.encoding == other.encoding else { return one.encoding == .jpeg }
            return (one.width * one.height, one.width) > (other.width * other.height, other.width)
        }
    }
}

/// The limits for what a camera's driver says and sends.
public struct CameraLimits: Hashable, Sendable {
    /// The greatest width of an image in pixels.
    public var width = 1920
    /// The greatest height of an image in pixels.
    public var height = 1440
    /// The greatest length of an image in bytes, as JPEG.
    public var bytes = 8 * 1_048_576
    /// The images that are passed over first, while the camera adapts to the light; fewer where half of the time has
    /// passed.
    public var settlingFrames = 5

    /// Creates the limits that suit a document in front of a kiosk's camera.
    public init() {}

    /// The size that no image may exceed, whatever the driver made of the size it was asked for.
    static let pixels = 16_777_216
    /// The formats, and the sizes of one, that a driver is asked for.
    static let entries: UInt32 = 64
    /// The devices that are looked at.
    static let devices = 64
    /// The length of one buffer.
    static let buffer = 64 * 1_048_576
    /// Buffers of a stream: VIDEO_MAX_FRAME of the kernel's header.
    static let buffers = 32
    /// Damaged images after which nothing more is expected.
    static let corruptFrames = 100
}

/// The sizes of a format, as VIDIOC_ENUM_FRAMESIZES lists them.
enum FrameSizes: Sendable {
    case discrete(width: Int, height: Int)
    /// From, to and step; a step of 1 where every size will do.
    case stepwise(width: (ClosedRange<Int>, step: Int), height: (ClosedRange<Int>, step: Int))

    /// Returns the largest size within the limits; nil if there is none.
    func largest(within limits: CameraLimits) -> (width: Int, height: Int)? {
        switch self {
        case .discrete(let width, let height):
            width <= limits.width && height <= limits.height ? (width, height) : nil
        case .stepwise(let width, let height):
            if let width = Self.largest(width, limits.width), let height = Self.largest(height, limits.height) {
                (width, height)
            } else {
                nil
            }
        }
    }

    private static func largest(_ side: (range: ClosedRange<Int>, step: Int), _ limit: Int) -> Int? {
        let most = min(side.range.upperBound, limit)
        guard side.step > 0, most >= side.range.lowerBound, most > 0 else { return nil }
        let side = most - (most - side.range.lowerBound) % side.step
        return side > 0 ? side : nil
    }
}
