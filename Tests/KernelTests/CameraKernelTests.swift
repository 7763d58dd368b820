import Foundation
import SmartCard
import TestSupport
import Testing

/// Cameras of the Linux kernel's `vivid` driver, which `camera-probe` uses as a kiosk does.
///
/// `Guest/camera-steps` has the commands; v4l2-ctl of v4l-utils and djpeg of libjpeg-turbo judge.
@Suite(
    .thorough(
        "a Linux kernel boots in QEMU; a camera that a test answers for, ioctl by ioctl, stays fast, in CamerasTests"
    ),
    .enabled(if: VirtualMachine.obstacle == nil, "\(VirtualMachine.obstacle ?? "")"))
struct CameraKernelTests {
    private func step(_ name: String, _ status: Int = 0) async throws -> VirtualMachine.Step {
        let step = try await VirtualMachine.cameras.value.step(name)
        #expect(step.status == status, "\(step.account("output: \(step.output.prefix(2000))\nerror: \(step.error)"))")
        return step
    }

    /// One thing that a run of camera-probe did: what it printed.
    private func thing(_ command: String, of run: String, _ status: Int = 0) async throws -> String {
        let step = try await VirtualMachine.cameras.value.step(run)
        let heading = try #require(step.output.range(of: "$ \(command)\n"), "\(step.account(step.error))")
        let rest = step.output[heading.upperBound...]
        let end = try #require(rest.firstMatch(of: #/(?m)^= (\d+)$/#), "\(step.account(step.error))")
        let output = String(rest[..<end.range.lowerBound])
        #expect(
            Int(end.1) == status, "\(command): \(step.account("output: \(output.prefix(2000))\nerror: \(step.error)"))")
        return output
    }

    @Test(
        "wrong usage of camera-probe",
        arguments: [
            [], ["list", "all"], ["capture"], ["capture", "-", "1", "a", "640"], ["until-in-use"], ["list", "--"],
            ["list", "--", "tour"],
        ])
    func wrongUsage(arguments: [String]) async throws {
        let outcome = try await Program.run([Program.built("camera-probe")] + arguments)
        #expect(outcome.status == 64 && outcome.output.isEmpty, "\(outcome)")
    }

    /// vivid has YUYV in every form, and no JPEG.
    @Test("cameras are listed with the sizes that v4l2-ctl lists, and nothing else is") func listed() async throws {
        for name in ["cameras", "camera-nodes"] { _ = try await step(name) }
        let sizes = try await step("camera-sizes").output.matches(of: #/Discrete (\d+)x(\d+)/#).compactMap { match in
            Int(match.1).flatMap { width in Int(match.2).map { (width: width, height: $0) } }
        }
        let fitting = sizes.filter { $0.width <= 1920 && $0.height <= 1440 }
            .sorted { $0.width * $0.height > $1.width * $1.height }
        #expect(fitting.count == 5 && sizes.count == 6)
        #expect(
            try await thing("list", of: "camera-images") == """
                /dev/video0: vivid, vivid, platform:vivid-000
                \(fitting.map { "  yuyv \($0.width)x\($0.height)" }.joined(separator: "\n"))
                /dev/video3: vivid, vivid, platform:vivid-002
                  yuyv 1920x1440
                available: true

                """)
        #expect(try await thing("list", of: "camera-none") == "available: false\n")
    }

    @Test(
        "an image has the size that was asked for, and the colors of vivid's bars",
        arguments: [
            ("camera-images", "capture /dev/video0 60 1 1280", 1280, 720),
            ("camera-images", "capture /dev/video3 60 1 720", 720, 576),
            ("camera-again", "capture - 60 0 640", 640, 480),
        ])
    func colors(run: String, command: String, width: Int, height: Int) async throws {
        let lines = try await thing(command, of: run).split(separator: "\n")
        try #require(lines.count == 3)
        #expect(lines[0].hasPrefix("image/jpeg, \(width) × \(height) pixels"))
        let numbers = lines[1].split(separator: " ").compactMap { Double($0) }
        #expect(numbers.count == 3 && numbers.allSatisfy { (0...1).contains($0) }, "\(lines[1])")
        #expect(numbers[1] < 0.05, "\(lines[1])")
        let picture = try await Self.decoded(Data([UInt8](hex: lines[2])))
        try #require(picture.starts(with: Array("P6\n\(width) \(height)\n255\n".utf8)))
        let pixels = picture.suffix(3 * width * height)
        // 75 % bars, three quarters down, where no text stands: white, yellow, cyan, green, magenta, red, blue, black.
        let colors = [[1, 1, 1], [1, 1, 0], [0, 1, 1], [0, 1, 0], [1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 0, 0]]
        for (bar, color) in colors.enumerated() {
            let start = pixels.startIndex + 3 * (height * 3 / 4 * width + (2 * bar + 1) * width / 16)
            for (channel, level) in color.enumerated() {
                let found = Int(pixels[start + channel])
                #expect(abs(found - 191 * level) <= 8, "\(command), bar \(bar): \(pixels[start..<start + 3])")
            }
        }
    }

    private static func decoded(_ jpeg: Data) async throws -> [UInt8] {
        let folder = FileManager.default.temporaryDirectory.appending(path: "camera-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (source, result) = (folder.appending(path: "jpeg"), folder.appending(path: "ppm"))
        try jpeg.write(to: source)
        let outcome = try await Program.run(["djpeg", "-outfile", result.path, source.path])
        try #require(outcome.status == 0 && outcome.error.isEmpty, "\(outcome)")
        return Array(try Data(contentsOf: result))
    }

    /// Buffers with several planes, metadata instead of images, and a size that is too large.
    @Test(
        "a device that is no camera for a kiosk says so",
        arguments: ["/dev/video2", "/dev/video1", "/dev/video3"])
    func unusable(path: String) async throws {
        let output = try await thing("capture \(path) 5 0 640", of: "camera-images", 3)
        #expect(output.hasPrefix("the camera has no format that can be used\n"))
    }

    @Test("without the group video the cameras are there, and the permission is denied") func denied() async throws {
        #expect(
            try await thing("list", of: "camera-denied") == """
                not permitted: /dev/video0
                not permitted: /dev/video1
                not permitted: /dev/video2
                not permitted: /dev/video3
                available: true

                """)
        #expect(
            try await thing("capture - 5 0 640", of: "camera-denied", 3) == """
                /dev/video0 may not be opened
                  Add the kiosk's user to the group video, and start its session anew.

                """)
    }

    @Test("a camera with which another program takes images is in use") func busy() async throws {
        let list = try await thing("list", of: "camera-busy")
        #expect(list.hasSuffix("\nin use: /dev/video0\navailable: true\n"), "\(list)")
        let capture = try await thing("capture /dev/video0 5 0 640", of: "camera-busy", 3)
        #expect(capture.hasPrefix("another program uses the camera /dev/video0\n"), "\(capture)")
    }

    @Test("a camera that is unplugged while it takes images says so, and works again when it is back")
    func unplugged() async throws {
        let unplugged = try await thing("capture /dev/video0 200 1000000 640", of: "camera-unplugged", 3)
        #expect(unplugged.hasPrefix("the camera was unplugged\n"), "\(unplugged)")
        _ = try await step("camera-again")
        _ = try await step("no-cameras")
        let capture = try await thing("capture - 5 0 640", of: "camera-none", 3)
        #expect(capture.hasPrefix("no camera is attached\n"), "\(capture)")
    }
}
