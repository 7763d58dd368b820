import Foundation
import KioskBridge

/// Shows the machine's cameras, and takes an image with one:
///
///     camera-probe list
///     camera-probe capture PATH SECONDS SETTLING WIDTH
///
/// PATH may be `-`, for the first.  The image is no wider than WIDTH; it is printed in base64, after a line about it.
@main
enum CameraProbe {
    static func main() async {
        let arguments = CommandLine.arguments.dropFirst()
        do {
            switch arguments.first {
            case "list" where arguments.count == 1: list()
            case "capture" where arguments.count == 5:
                let numbers = arguments.dropFirst(2).compactMap { Int($0) }
                guard numbers.count == 3 else { exit(64) }
                var limits = CameraLimits()
                (limits.settlingFrames, limits.width) = (numbers[1], numbers[2])
                try await capture(arguments[2], .seconds(numbers[0]), limits)
            default: exit(64)
            }
        } catch {
            let hint = (error as? CameraError)?.hint ?? ""
            FileHandle.standardError.write(Data("\(error)\n  \(hint)\n".utf8))
            exit(3)
        }
    }

    private static func list() {
        let result = CameraDetector.check()
        for camera in result.cameras {
            print("\(camera.path): \(camera.name), \(camera.driver), \(camera.bus)")
            for mode in camera.modes { print("  \(mode.encoding) \(mode.width)x\(mode.height)") }
        }
        for path in result.inUse { print("in use: \(path)") }
        for path in result.notPermitted { print("not permitted: \(path)") }
        print("available: \(result.hardwareAvailable), \(result.permissionState)")
    }

    private static func capture(_ path: String, _ time: Duration, _ limits: CameraLimits) async throws {
        let camera = path == "-" ? nil : Camera(path: path, limits: limits)
        let (image, quality) = try await CameraCapture(limits: limits).documentImage(from: camera, within: time)
        print("\(image)")
        print("\(quality.sharpness) \(quality.glare) \(quality.coverage)")
        print(Data(image.bytes).base64EncodedString())
    }
}
