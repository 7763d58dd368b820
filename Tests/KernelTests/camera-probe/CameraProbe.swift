import Cameras
import Glibc

/// Shows the machine's cameras and takes images with them, one thing after the other:
///
///     camera-probe THING [-- THING]...
///
///     list
///     capture PATH SECONDS SETTLING WIDTH
///     until-in-use PATH
///
/// PATH may be `-` for a capture: the first camera.  The image is no wider than WIDTH; it is printed in hexadecimal, after
/// two lines about it.  The last thing waits until another program takes images with the camera.
///
/// Each thing prints a line `$ THING`, what came of it, and a line `= STATUS`: 3 for an error of the camera.  The program's
/// status is the last of them.
///
/// It stands on `Cameras` alone: the virtual machine's processor is an emulated one, and takes seconds to load Foundation.
@main
enum CameraProbe {
    private enum Thing {
        case list
        case capture(path: String?, time: Duration, limits: CameraLimits)
        case untilInUse(path: String)

        init?(_ words: ArraySlice<String>) {
            let (name, rest) = (words.first, words.dropFirst())
            switch (name, rest.count) {
            case ("list", 0): self = .list
            case ("capture", 4):
                let numbers = rest.dropFirst().compactMap { Int($0) }
                guard let path = rest.first, numbers.count == 3 else { return nil }
                var limits = CameraLimits()
                (limits.settlingFrames, limits.width) = (numbers[1], numbers[2])
                self = .capture(path: path == "-" ? nil : path, time: .seconds(numbers[0]), limits: limits)
            case ("until-in-use", 1): self = .untilInUse(path: rest.joined())
            default: return nil
            }
        }
    }

    static func main() async {
        let lists = CommandLine.arguments.dropFirst().split(separator: "--", omittingEmptySubsequences: false)
        let things = lists.compactMap { Thing($0) }
        guard things.count == lists.count else { exit(64) }
        var status: Int32 = 0
        for (thing, words) in zip(things, lists) {
            print("$ \(words.joined(separator: " "))")
            do {
                try await perform(thing)
                status = 0
            } catch {
                print("\(error)\n  \((error as? CameraError)?.hint ?? "")")
                status = 3
            }
            print("= \(status)")
            // What was done is seen though the next thing never ends.
            fflush(nil)
        }
        exit(status)
    }

    private static func perform(_ thing: Thing) async throws {
        switch thing {
        case .list: list()
        case .capture(let path, let time, let limits):
            let camera = path.map { Camera(path: $0, limits: limits) }
            let (image, quality) = try await CameraCapture(limits: limits).documentImage(from: camera, within: time)
            print("\(image)")
            print("\(quality.sharpness) \(quality.glare) \(quality.coverage)")
            print(hexadecimal(image.bytes))
        case .untilInUse(let path):
            while !CameraDetector.check().inUse.contains(path) { usleep(50_000) }
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
        print("available: \(result.hardwareAvailable)")
    }

    private static func hexadecimal(_ bytes: [UInt8]) -> String {
        let digits = Array("0123456789ABCDEF".utf8)
        return String(decoding: bytes.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
    }
}
