import CUMockdev
import CV4L2
import CameraTestSupport
import Foundation
import Synchronization
import Testing
import USBTestSupport

@testable import Cameras

// What umockdev cannot play is poll(2): its device files are always ready.  KernelTests have a driver of the kernel.

/// `/dev/video0`: umockdev answers its ioctls as a ``CameraDriver`` does; the device file's bytes are the buffers.
private final class MockCamera: @unchecked Sendable {
    // Unchecked: umockdev locks its own, and calls the handler on a thread of its own.
    private let testbed: UnsafeMutablePointer<UMockdevTestbed>?
    private let driver: CameraDriver
    private let file: FileHandle

    init(_ driver: CameraDriver) throws {
        self.driver = driver
        testbed = umockdev_testbed_new()
        var error: UnsafeMutablePointer<GError>?
        let added = umockdev_testbed_add_from_string(
            testbed,
            """
            P: /devices/pci0000:00/0000:00:14.0/usb1/1-3/1-3:1.0/video4linux/video0
            N: video0
            E: DEVNAME=/dev/video0
            E: SUBSYSTEM=video4linux

            """, &error)
        try #require(added != 0)
        let directory = try #require(umockdev_testbed_get_root_dir(testbed))
        defer { g_free(directory) }
        // In place of the pseudo-terminal that umockdev makes: what is mapped is an ordinary file.
        let node = String(cString: directory) + "/dev/video0"
        unlink(node)
        try #require(FileManager.default.createFile(atPath: node, contents: nil))
        file = try FileHandle(forWritingTo: URL(filePath: node))
        try file.truncate(atOffset: UInt64(driver.buffers * driver.length))
        let handler = try #require(umockdev_ioctl_base_new())
        defer { g_object_unref(handler) }
        cumockdev_on_ioctl(
            handler,
            { _, client, context in
                guard let client, let context else { return 0 }
                Unmanaged<MockCamera>.fromOpaque(context).takeUnretainedValue().answer(client)
                return 1
            }, Unmanaged.passUnretained(self).toOpaque(), { _, _ in })
        try #require(umockdev_testbed_attach_ioctl(testbed, "/dev/video0", handler, &error) != 0)
    }

    deinit { g_object_unref(testbed) }

    private func answer(_ client: UnsafeMutablePointer<UMockdevIoctlClient>) {
        let request = umockdev_ioctl_client_get_request(client)
        let size = cumockdev_ioctl_size(request)
        guard size > 0, let argument = umockdev_ioctl_client_get_arg(client),
            let memory = umockdev_ioctl_data_resolve(argument, 0, size, nil), let data = memory.pointee.data
        else {
            umockdev_ioctl_client_complete(client, -1, ENOTTY)
            return
        }
        defer { g_object_unref(memory) }
        let code = driver.control(UInt(request), UnsafeMutableRawPointer(data)) { bytes, offset in
            try? file.seek(toOffset: UInt64(offset))
            try? file.write(contentsOf: Data(bytes))
        }
        umockdev_ioctl_client_complete(client, code == 0 ? 0 : -1, code)
    }
}

/// The system's own calls, on a device file whose driver is umockdev's.
@Suite(.preloaded, .serialized, .enabled(if: Preloaded.obstacle == nil, "\(Preloaded.obstacle ?? "")"))
struct CameraDeviceTests {
    @Test("a camera is found in sysfs, and its image goes through ioctls and mapped buffers") func captures()
        async throws
    {
        let driver = CameraDriver { _ in .init(bytes: CameraTests.yuyv()) }
        let mock = try MockCamera(driver)
        #expect(await Camera.devices().map(\.path) == ["/dev/video0"])
        let result = CameraDetector.check()
        #expect(result.hardwareAvailable && result.notPermitted == [] && result.inUse == [])
        #expect(result.cameras.first?.name == "Camera")
        let (image, quality) = try await CameraCapture().documentImage(within: .seconds(600))
        #expect((image.width, image.height) == (64, 48) && quality.glare == 0)
        // Luma of the bars from the range 16...235: white 180, black 16.
        let gray = try CameraJPEG.gray(image)
        #expect(abs(Int(gray[20 * 64 + 3]) - 191) <= 4 && gray[20 * 64 + 60] <= 4)
        #expect(driver.state.withLock { !$0.isStreaming })
        withExtendedLifetime(mock) {}
    }

    @Test("in use, unplugged, and nothing there") func troubles() async throws {
        let trouble = Mutex((request: UInt(0), code: Int32(0)))
        let driver = CameraDriver(
            frame: { _ in .init(bytes: CameraTests.yuyv()) },
            answer: { request, _ in trouble.withLock { $0.request == request ? $0.code : nil } })
        let mock = try MockCamera(driver)
        trouble.withLock { $0 = (CV4L2_REQBUFS, EBUSY) }
        await #expect(throws: CameraError.inUse(path: "/dev/video0")) {
            try await CameraCapture().documentImage(within: .seconds(600))
        }
        trouble.withLock { $0 = (CV4L2_DQBUF, ENODEV) }
        await #expect(throws: CameraError.disconnected) {
            try await CameraCapture().documentImage(within: .seconds(600))
        }
        trouble.withLock { $0 = (CV4L2_QUERYCAP, ENOTTY) }
        await #expect(throws: CameraError.noCamera) { try await CameraCapture().documentImage(within: .seconds(600)) }
        withExtendedLifetime(mock) {}
    }
}
