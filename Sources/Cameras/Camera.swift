import Dispatch
import Synchronization
import Waiting

/// A camera of the machine, which takes single images.
///
/// It is open, and its light is on, only while an image is taken.  Nothing is written to a disk.  Each camera has a thread
/// of its own, outside Swift's pool, and takes its images one after the other.
///
///     if let device = await Camera.devices().first {
///         let image = try await Camera(device).capture(within: .seconds(5))
///     }
public struct Camera: Sendable {
    /// The device file.
    public let path: String
    /// The limits for what it sends.
    public let limits: CameraLimits
    private let system: any CameraSystem
    private let thread = DispatchQueue(label: "camera")

    /// The quality of JPEG that is made from YUYV, of 100.
    private static let quality: Int32 = 90
    /// The longest wait in the driver before it is looked whether the caller still waits.
    private static let slice: Int32 = 50
    /// A driver that does not come back from a call is waited for no longer than this after the time limit.
    private static let grace = Duration.seconds(2)

    /// Creates a camera; nothing is opened yet.
    ///
    /// - Parameters:
    ///   - device: one of ``devices()``.
    ///   - limits: for the images.
    public init(_ device: CameraDevice, limits: CameraLimits = CameraLimits()) {
        self.init(path: device.path, limits: limits)
    }

    /// Creates a camera; nothing is opened yet.
    ///
    /// - Parameters:
    ///   - path: the device file, such as `/dev/video0`, or a link to it in `/dev/v4l/by-id`.
    ///   - limits: for the images.
    public init(path: String, limits: CameraLimits = CameraLimits()) {
        self.init(path: path, limits: limits, KernelCameraSystem())
    }

    init(path: String, limits: CameraLimits = CameraLimits(), _ system: any CameraSystem) {
        (self.path, self.limits, self.system) = (path, limits, system)
    }

    /// Returns the cameras that may be opened and have a format that can be used, in the order of their numbers.
    public static func devices() async -> [CameraDevice] {
        await DispatchQueue(label: "cameras").blocking { CameraDetector.check().cameras }
    }

    /// Takes an image, in the best mode that the camera has within the limits.
    ///
    /// - Parameter limit: the longest time, with all that goes before the image.
    /// - Throws: ``CameraError``; `CancellationError` when the task is canceled, as soon as the camera is closed, which takes
    ///   some hundredths of a second.
    public func capture(within limit: Duration = .seconds(10)) async throws -> CameraImage {
        let deadline = Deadline(after: limit)
        let isCanceled = Flag()
        let delivery = Delivery<CameraImage>()
        return try await withTaskCancellationHandler {
            try await toTheEnd {
                try await delivery.receive(within: deadline.limit + Self.grace, or: CameraError.timedOut) {
                    thread.async {
                        delivery.deliver(Result { try image(until: deadline) { isCanceled.isSet } })
                    }
                }
            }
        } onCancel: {
            isCanceled.set()
        }
    }

    /// Set when nobody waits any longer; shared with the thread.
    private final class Flag: Sendable {
        private let value = Atomic(false)
        var isSet: Bool { value.load(ordering: .relaxed) }
        func set() { value.store(true, ordering: .relaxed) }
    }

    /// The end of the time for an image.
    private struct Deadline: Sendable {
        let limit: Duration
        /// The camera's thread has no task.
        private let time = Time.current
        private let start = Time.now

        init(after limit: Duration) { self.limit = max(limit, .zero) }

        var passed: Duration { time.now - start }
        var isHalfPassed: Bool { passed * 2 >= limit }

        /// Milliseconds that remain, `most` at most; nil if none do.
        func remaining(_ most: Int32) -> Int32? {
            let rest = limit - passed
            guard rest > .zero else { return nil }
            return rest >= .milliseconds(Int(most)) ? most : Int32(rest / .milliseconds(1)) + 1
        }
    }

    /// Opens the camera, takes an image and closes it.  Blocks.
    private func image(until deadline: Deadline, isCanceled: () -> Bool) throws -> CameraImage {
        var node = try CameraNode(opening: path, system)
        guard let mode = try node.description(limits)?.modes.first else {
            throw CameraError.noUsableFormat
        }
        let format = try node.start(mode, limits)
        var (good, corrupt) = (0, 0)
        while corrupt < CameraLimits.corruptFrames, let time = deadline.remaining(Self.slice) {
            if isCanceled() { throw CancellationError() }
            guard let frame = try node.frame(within: time) else { continue }
            guard case .whole(let bytes) = frame else {
                corrupt += 1
                continue
            }
            good += 1
            guard good > limits.settlingFrames || deadline.isHalfPassed else { continue }
            do throws(CameraJPEG.Damage) {
                let image =
                    switch format.encoding {
                    case .jpeg: try CameraJPEG.whole(bytes)
                    case .yuyv: try CameraJPEG.compressed(bytes, format, quality: Self.quality)
                    }
                guard image.bytes.count <= limits.bytes else { throw CameraJPEG.Damage(reason: "too long") }
                return image
            } catch { corrupt += 1 }
        }
        throw corrupt > 0 ? CameraError.corruptFrames(corrupt) : .timedOut
    }
}

/// The capture of documents: an image, with its quality in numbers.
public struct CameraCapture: Sendable {
    /// The limits for the images of a camera that is looked for.
    public var limits: CameraLimits
    private let system: any CameraSystem

    /// Creates a capture.
    public init(limits: CameraLimits = CameraLimits()) { self.init(limits: limits, KernelCameraSystem()) }

    package init(limits: CameraLimits = CameraLimits(), _ system: any CameraSystem) {
        (self.limits, self.system) = (limits, system)
    }

    /// Takes an image of a document and measures it.
    ///
    /// - Parameters:
    ///   - camera: the camera; nil for the first one of the machine that is free.
    ///   - limit: the longest time for the image.
    /// - Throws: ``CameraError``, which says why there is no camera, where that is known; `CancellationError` when the task
    ///   is canceled.
    public func documentImage(
        from camera: Camera? = nil, within limit: Duration = .seconds(10)
    ) async throws -> (image: CameraImage, quality: DocumentImageQuality) {
        let chosen = if let camera { camera } else { try await firstCamera() }
        let image = try await chosen.capture(within: limit)
        let quality = await DispatchQueue(label: "image").blocking {
            (try? CameraJPEG.gray(image)).flatMap {
                DocumentImageQuality(gray: $0, width: image.width, height: image.height)
            }
        }
        guard let quality else {
            throw CameraError.malformedAnswer("an image of \(image.width) × \(image.height) pixels")
        }
        return (image, quality)
    }

    /// Looks for cameras.
    package func look() async -> CameraDetector.Result {
        let (system, limits) = (system, limits)
        return await DispatchQueue(label: "cameras").blocking { CameraDetector.check(system, limits) }
    }

    private func firstCamera() async throws -> Camera {
        let result = await look()
        if let first = result.cameras.first(where: { !result.inUse.contains($0.path) }) {
            return Camera(path: first.path, limits: limits, system)
        }
        if let path = result.inUse.first { throw CameraError.inUse(path: path) }
        throw result.notPermitted.first.map { CameraError.notPermitted(path: $0) } ?? .noCamera
    }
}
