import CameraTestSupport
import Cameras
import Glibc
import KioskBridge
import Testing

/// What a page is told of the permission for a device.
@Suite struct PermissionTests {
    @Test(
        "the permission is what the cameras that there are allow",
        arguments: [
            ([], false, PermissionState.unavailable), ([EACCES], true, .denied), ([EPERM, ENODEV], true, .denied),
            ([EBUSY], true, .granted), ([EACCES, 0], true, .granted), ([ENODEV], false, .unavailable),
        ] as [([Int32], Bool, PermissionState)])
    func permission(_ errors: [Int32], _ isThere: Bool, _ expected: PermissionState) async {
        let drivers = errors.enumerated().map { ("/dev/video\($0)", CameraDriver(openError: $1)) }
        let result = await CameraCapture(CameraMachine(Dictionary(uniqueKeysWithValues: drivers))).look()
        #expect((result.hardwareAvailable, result.permissionState) == (isThere, expected))
    }

    @Test("the words are those of the page") func words() {
        #expect(PermissionState.allCases.map(\.rawValue) == ["granted", "denied", "prompt", "unavailable"])
    }
}
