import Glibc

/// A camera that gives no image: the reason, without anything of the picture.
public enum CameraError: Error, Hashable, Sendable {
    /// No camera that the kiosk can use is attached.
    case noCamera
    /// The user of this process may not open the device file at this path.
    case notPermitted(path: String)
    /// Another program takes images with the camera at this path.
    case inUse(path: String)
    /// The camera was unplugged.
    case disconnected
    /// The camera gives neither JPEG nor YUYV, or only sizes beyond the limits.
    case noUsableFormat
    /// The time limit passed before there was an image.
    case timedOut
    /// The time limit passed, and all images until then, this many, were damaged.
    case corruptFrames(Int)
    /// The driver gave an answer that cannot be true; what it was about.
    case malformedAnswer(String)
    /// A call of the system failed: its name, and the number that `errno` had.
    case failed(call: String, code: Int32)
}

extension CameraError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .noCamera: "no camera is attached"
        case .notPermitted(let path): "\(path) may not be opened"
        case .inUse(let path): "another program uses the camera \(path)"
        case .disconnected: "the camera was unplugged"
        case .noUsableFormat: "the camera has no format that can be used"
        case .timedOut: "the camera gave no image in time"
        case .corruptFrames(let count): "the camera gave \(count) damaged images and no whole one in time"
        case .malformedAnswer(let what): "the camera's driver contradicts itself: \(what)"
        case .failed(let call, let code): "\(call) of the camera failed: \(String(cString: strerror(code)))"
        }
    }

    /// A sentence that tells a person what to do next.
    public var hint: String {
        switch self {
        case .noCamera: "Plug in a camera and check that /dev has a file video0."
        case .notPermitted: "Add the kiosk's user to the group video, and start its session anew."
        case .inUse: "End the program that uses the camera; fuser names it."
        case .disconnected: "Plug the camera in again."
        case .noUsableFormat, .malformedAnswer:
            "Try another camera; v4l2-ctl --list-formats-ext shows what this one has."
        case .timedOut: "Try again; if it stays so, plug the camera into another port."
        case .corruptFrames: "Use a shorter cable, or a port without a hub."
        case .failed: "Plug the camera in again, and look into the kernel's log with dmesg."
        }
    }
}
