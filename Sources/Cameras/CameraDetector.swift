import Glibc

/// The machine's cameras, and whether this process may use them.
///
///     let result = CameraDetector.check()
///     for camera in result.cameras { print(camera.name) }
///     if !result.notPermitted.isEmpty { print("add this user to the group video") }
public enum CameraDetector {
    /// The answer to ``check()``.
    public struct Result: Hashable, Sendable {
        /// True if a camera is attached; one that may not be opened, or that another program uses, counts as well.
        public let hardwareAvailable: Bool
        /// The cameras that may be opened and have a format that can be used, in the order of their numbers.
        public let cameras: [CameraDevice]
        /// The paths of those cameras with which another program is taking images at the moment.
        public let inUse: [String]
        /// The paths of device files that may not be opened, in the order of their numbers.
        public let notPermitted: [String]

        package init(cameras: [CameraDevice], inUse: [String], notPermitted: [String]) {
            (self.cameras, self.inUse, self.notPermitted) = (cameras, inUse, notPermitted)
            hardwareAvailable = !(cameras.isEmpty && inUse.isEmpty && notPermitted.isEmpty)
        }
    }

    /// Looks for cameras: opens each video device, asks what it is, and closes it again.  Takes no image.
    ///
    /// It blocks for some milliseconds, longer where a camera must wake up; ``Camera/devices()`` does not block.
    public static func check() -> Result { check(KernelCameraSystem()) }

    static func check(_ system: any CameraSystem, _ limits: CameraLimits = CameraLimits()) -> Result {
        var (cameras, inUse, notPermitted) = ([CameraDevice](), [String](), [String]())
        for path in paths(system) {
            do throws(CameraError) {
                let node = try CameraNode(opening: path, system)
                guard let camera = try node.description(limits) else { continue }
                cameras.append(camera)
                if node.isInUse() { inUse.append(path) }
            } catch {
                switch error {
                case .notPermitted: notPermitted.append(path)
                // Some drivers admit one program at all.
                case .inUse: inUse.append(path)
                // No video device, or gone in the meantime.
                default: continue
                }
            }
        }
        return Result(cameras: cameras, inUse: inUse, notPermitted: notPermitted)
    }

    /// The kernel's list; and the device files, where a container has them without that.
    private static func paths(_ system: any CameraSystem) -> [String] {
        let listed = Set(["/sys/class/video4linux", "/dev"].flatMap(system.names))
        let numbers = listed.compactMap { name -> Int? in
            guard name.hasPrefix("video"), case let digits = name.dropFirst(5), 1...4 ~= digits.utf8.count,
                digits.utf8.allSatisfy({ 0x30...0x39 ~= $0 })
            else { return nil }
            return Int(digits)
        }
        return Set(numbers).sorted().prefix(CameraLimits.devices).map { "/dev/video\($0)" }
    }
}
