import CV4L2
import CameraTestSupport
import Foundation
import TestSupport
import Testing

@testable import Cameras

/// JPEG from a camera, and JPEG made of YUYV; cjpeg and djpeg of libjpeg-turbo make and judge it.
@Suite(.enabled(if: Program.isInstalled("djpeg"), "libjpeg-turbo-progs is not installed"))
struct CameraImageTests {
    /// A folder for the programs' files.
    private struct Folder: ~Copyable {
        let url: URL

        init() throws {
            url = FileManager.default.temporaryDirectory.appending(path: "camera-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        }

        deinit { try? FileManager.default.removeItem(at: url) }

        /// Runs a program that reads `in` and writes `out`.
        func run(_ command: [String], _ input: [UInt8]) async throws -> [UInt8] {
            let (source, result) = (url.appending(path: "in"), url.appending(path: "out"))
            try Data(input).write(to: source)
            let outcome = try await Program.run(command + ["-outfile", result.path, source.path])
            try #require(outcome.status == 0 && outcome.error.isEmpty, "\(outcome)")
            return Array(try Data(contentsOf: result))
        }
    }

    /// A picture of 64 by 48 pixels without two equal blocks, as PPM.
    private static let picture: [UInt8] = {
        var bytes = Array("P6\n64 48\n255\n".utf8)
        for row in 0..<48 {
            for column in 0..<64 { bytes += [UInt8(column * 4), UInt8(row * 5), UInt8((column * row) % 251)] }
        }
        return bytes
    }()

    private static func jpeg(_ options: [String] = []) async throws -> [UInt8] {
        try await Folder().run(["cjpeg", "-quality", "90"] + options, picture)
    }

    private static func pixels(_ jpeg: [UInt8]) async throws -> [UInt8] {
        try await Folder().run(["djpeg", "-dct", "int"], jpeg)
    }

    /// The segments before the scan (ISO/IEC 10918-1, B.1.1.4), each with its marker; then all the rest.
    private static func segments(_ jpeg: [UInt8]) -> [[UInt8]] {
        var (segments, place) = ([Array(jpeg.prefix(2))], 2)
        while jpeg[place + 1] != 0xDA {
            let length = 2 + Int(jpeg[place + 2]) << 8 + Int(jpeg[place + 3])
            segments.append(Array(jpeg[place..<place + length]))
            place += length
        }
        return segments + [Array(jpeg[place...])]
    }

    private static func capture(_ frame: [UInt8], _ format: UInt32 = CV4L2_MJPEG) async throws -> CameraImage {
        let driver = CameraDriver(formats: [format]) { _ in .init(bytes: frame) }
        return try await Camera(path: "/dev/video0", CameraMachine(driver)).capture(within: .seconds(600))
    }

    @Test(
        "an image that the camera compressed comes out with the same picture, without what stands around it",
        arguments: [[], ["-grayscale"], ["-sample", "1x1"], ["-restart", "1"], ["-progressive"]])
    func keepsThePicture(_ options: [String]) async throws {
        let jpeg = try await Self.jpeg(options)
        // A camera's own segment, and the rest of a buffer.
        var frame = Array(jpeg.prefix(2)) + [0xFF, 0xE4, 0x00, 0x08] + Array("serial".utf8) + Array(jpeg.dropFirst(2))
        frame += [UInt8](repeating: 0, count: 100)
        let image = try await Self.capture(frame, CV4L2_JPEG)
        #expect((image.width, image.height) == (64, 48))
        #expect(image.bytes.suffix(2) == [0xFF, 0xD9] && !image.bytes.contains(Array("serial".utf8)))
        #expect(try await Self.pixels(image.bytes) == Self.pixels(jpeg))
    }

    /// Microsoft's Motion JPEG, which UVC has: the tables of ISO/IEC 10918-1, annex K.3 are meant where there are none.
    @Test("Motion JPEG without Huffman tables gets them") func tables() async throws {
        let jpeg = try await Self.jpeg()
        let bare = Self.segments(jpeg).filter { $0[1] != 0xC4 }.flatMap(\.self)
        #expect(bare.count < jpeg.count - 400)
        let image = try await Self.capture(bare)
        #expect(Self.segments(image.bytes).contains { $0[1] == 0xC4 })
        #expect(try await Self.pixels(image.bytes) == Self.pixels(jpeg))
    }

    /// https://github.com/libjpeg-turbo/libjpeg-turbo/issues/157
    @Test("spare bytes before a marker do no harm") func spareBytes() async throws {
        let jpeg = try await Self.jpeg(["-restart", "1"])
        let restart = try #require(jpeg.indices.dropLast().first { jpeg[$0] == 0xFF && jpeg[$0 + 1] == 0xD1 })
        var frame = jpeg
        frame.insert(contentsOf: [0x12, 0x34], at: restart)
        let image = try await Self.capture(frame)
        #expect(try await Self.pixels(image.bytes) == Self.pixels(jpeg))
    }

    @Test("a cut or damaged image is none") func damaged() async throws {
        let jpeg = try await Self.jpeg(["-restart", "1"])
        let end: [UInt8] = [0xFF, 0xD9]
        var frames: [[UInt8]] = [[], [0xFF], [0xFF, 0xD8], [0xFF, 0xD8, 0xFF, 0xD9], [0x00] + jpeg]
        frames += (1..<jpeg.count).map { Array(jpeg.prefix($0)) }
        // Cut, and then an end of its own, as a driver that joins packets makes it.
        frames += stride(from: 3, to: jpeg.count - 3, by: 7).map { Array(jpeg.prefix($0)) + end }
        // Packets that were lost on the way.
        let scan = jpeg.count - (Self.segments(jpeg).last?.count ?? 0) + 20
        let holes = stride(from: scan, to: jpeg.count - 302, by: 11).map { start in
            var lost = jpeg
            lost.removeSubrange(start..<start + 300)
            return lost
        }
        frames += holes
        for frame in frames {
            #expect(throws: CameraJPEG.Damage.self, "\(frame.count) bytes") { try CameraJPEG.whole(frame) }
        }
        #expect(try CameraJPEG.whole(jpeg).width == 64)
        await #expect(throws: CameraError.corruptFrames(100)) { try await Self.capture(holes[0]) }
    }

    /// ISO/IEC 10918-1, B.2.1: RST0 to RST7, and again.
    @Test("restart markers are counted, and their order is looked at") func restarts() async throws {
        // One unit of 8 by 8 pixels between two: 48 in all.
        let jpeg = try await Self.jpeg(["-sample", "1x1", "-restart", "1B"])
        let scan = jpeg.count - (Self.segments(jpeg).last?.count ?? 0)
        let places = jpeg.indices.dropLast().filter {
            $0 > scan && jpeg[$0] == 0xFF && 0xD0...0xD7 ~= jpeg[$0 + 1]
        }
        try #require(places.count == 47)
        #expect(CameraRestarts.areComplete(jpeg, units: 48))
        for units in [0, 1, 47, 49, 480] { #expect(!CameraRestarts.areComplete(jpeg, units: units)) }
        var swapped = jpeg
        swapped.swapAt(places[20] + 1, places[21] + 1)
        #expect(!CameraRestarts.areComplete(swapped, units: 48))
        for count in 0..<jpeg.count { #expect(!CameraRestarts.areComplete(Array(jpeg.prefix(count)), units: 48)) }
        let without = try await Self.jpeg()
        #expect(!CameraRestarts.areComplete(without, units: 12))
        let progressive = try await Self.jpeg(["-progressive", "-restart", "1B"])
        #expect(!CameraRestarts.areComplete(progressive, units: 12))
    }

    @Test("whatever the bytes are, nothing worse than an error comes of them") func flipped() async throws {
        let jpeg = try await Self.jpeg()
        var random = SplitMix(state: 19)
        for _ in 0..<2000 {
            var frame = jpeg
            for _ in 0...Int.random(in: 0..<4, using: &random) {
                frame[Int.random(in: 2..<frame.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            guard let image = try? CameraJPEG.whole(frame) else { continue }
            #expect(image.width * image.height <= 16_777_216)
            _ = try? CameraJPEG.gray(image)
        }
    }

    /// A size is believed only within bounds, before anything has memory.
    @Test("an image that says it is enormous is none") func enormous() async throws {
        var jpeg = try await Self.jpeg()
        // B.2.2: SOF0, its length, the precision, and then the number of lines and of samples a line.
        let frame = try #require(jpeg.indices.dropLast().first { jpeg[$0] == 0xFF && jpeg[$0 + 1] == 0xC0 })
        jpeg.replaceSubrange(frame + 5..<frame + 9, with: [0x40, 0x00, 0x40, 0x00])
        #expect(throws: CameraJPEG.Damage(reason: "16384 × 16384 pixels")) { try CameraJPEG.whole(jpeg) }
    }

    @Test("an image beyond the limit of bytes is not handed on") func long() async throws {
        let jpeg = try await Self.jpeg()
        var limits = CameraLimits()
        limits.bytes = 100
        let driver = CameraDriver(formats: [CV4L2_MJPEG]) { _ in .init(bytes: jpeg) }
        let camera = Camera(path: "/dev/video0", limits: limits, CameraMachine(driver))
        await #expect(throws: CameraError.corruptFrames(100)) { try await camera.capture(within: .seconds(600)) }
    }

    /// The bars of 75 % have 191 of 255 in each color, or nothing.
    @Test(
        "colors of YUYV are those of ITU-R BT.601 in the range 16...235, with and without padding",
        arguments: [UInt32(0), 128, 160])
    func colors(_ stride: UInt32) async throws {
        let driver = CameraDriver(
            frame: { _ in .init(bytes: CameraTests.yuyv(stride: max(128, Int(stride)))) },
            answer: { request, argument in
                guard request == CV4L2_S_FMT else { return nil }
                argument.assumingMemoryBound(to: v4l2_format.self).pointee.fmt.pix.bytesperline = stride
                return 0
            })
        let image = try await Camera(path: "/dev/video0", CameraMachine(driver)).capture(within: .seconds(600))
        let pixels = try await Self.pixels(image.bytes).suffix(64 * 48 * 3)
        let colors = [
            [1, 1, 1], [1, 1, 0], [0, 1, 1], [0, 1, 0], [1, 0, 1], [1, 0, 0], [0, 0, 1], [0, 0, 0],
        ]
        for (bar, color) in colors.enumerated() {
            let start = pixels.startIndex + 3 * (20 * 64 + 8 * bar + 3)
            for (channel, level) in color.enumerated() {
                #expect(abs(Int(pixels[start + channel]) - 191 * level) <= 6, "bar \(bar), channel \(channel)")
            }
        }
    }

    @Test("a full range is left as it is") func fullRange() async throws {
        let driver = CameraDriver(
            frame: { _ in .init(bytes: (0..<64 * 48).flatMap { _ in [235, 128] as [UInt8] }) },
            answer: { request, argument in
                guard request == CV4L2_S_FMT else { return nil }
                argument.assumingMemoryBound(to: v4l2_format.self).pointee.fmt.pix.colorspace =
                    V4L2_COLORSPACE_JPEG.rawValue
                return 0
            })
        let image = try await Camera(path: "/dev/video0", CameraMachine(driver)).capture(within: .seconds(600))
        #expect(try CameraJPEG.gray(image).allSatisfy { abs(Int($0) - 235) <= 1 })
    }

    @Test("an image prints without its bytes") func prints() async throws {
        let image = try await Self.capture(try await Self.jpeg())
        var dumped = ""
        dump(image, to: &dumped)
        for text in ["\(image)", String(reflecting: image), dumped] {
            #expect(text.contains("64 × 48") && !text.contains("216") && !text.contains("[255"), "\(text)")
        }
    }
}

/// Numbers for a document's image.
@Suite(
    .enabled(
        if: FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/PIL"), "python3-pil is not installed"
    ))
struct DocumentImageQualityTests {
    /// Pillow draws and spoils the images.
    private static let qualities = Task {
        let folder = FileManager.default.temporaryDirectory.appending(path: "quality-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Judges/document_images.py")
        let outcome = try await Program.run(["/usr/bin/python3", script.path, folder.path])
        try #require(outcome.status == 0, "\(outcome)")
        var qualities: [String: DocumentImageQuality] = [:]
        for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
            let file = Array(try Data(contentsOf: folder.appending(path: name)))
            let header = file.split(separator: 0x0A, maxSplits: 3)
            let size = String(decoding: header[1], as: UTF8.self).split(separator: " ").compactMap { Int($0) }
            qualities[name.replacing(".pgm", with: "")] =
                DocumentImageQuality(gray: Array(header[3]), width: size[0], height: size[1])
        }
        return qualities
    }

    private func quality(_ name: String) async throws -> DocumentImageQuality {
        try #require(try await Self.qualities.value[name])
    }

    @Test("the more an image is blurred, the less sharp it is") func sharpness() async throws {
        var values: [Double] = []
        for name in ["sharp", "blur-1", "blur-2", "blur-4", "blur-8"] {
            values.append(try await quality(name).sharpness)
        }
        #expect(values == values.sorted(by: >) && Set(values).count == 5, "\(values)")
        #expect(values[0] > 0.85 && values[2] < 0.5 && values[4] < 0.1, "\(values)")
        #expect(try await quality("desk").sharpness == 0)
    }

    @Test("glare is the share of the document that is lost in light") func glare() async throws {
        #expect(try await quality("sharp").glare == 0)
        #expect(abs(try await quality("glare").glare - 0.1) < 0.01)
    }

    @Test("coverage is the document's share of the image") func coverage() async throws {
        for name in ["sharp", "blur-2", "glare", "noise", "speck", "double"] {
            #expect(abs(try await quality(name).coverage - 0.703) < 0.04, "\(name)")
        }
        #expect(abs(try await quality("small").coverage - 0.0694) < 0.01)
        #expect(try await quality("desk").coverage == 0)
    }

    @Test("a camera with more pixels has about the same numbers") func scale() async throws {
        let (one, other) = (try await quality("sharp"), try await quality("double"))
        #expect(abs(one.sharpness - other.sharpness) < 0.1 && other.glare == 0, "\(one) \(other)")
    }

    @Test("numbers stay between 0 and 1, and what is no image has none") func bounds() {
        var random = SplitMix(state: 3)
        for (width, height) in [(3, 3), (3, 400), (64, 48), (1281, 7), (4, 2600)] {
            for levels in [0...0, 255...255, 0...255, 249...251] as [ClosedRange<UInt8>] {
                let gray = (0..<width * height).map { _ in UInt8.random(in: levels, using: &random) }
                let quality = DocumentImageQuality(gray: gray, width: width, height: height)
                for value in [quality?.sharpness, quality?.glare, quality?.coverage] {
                    #expect(value.map { (0...1).contains($0) } == true, "\(width) × \(height): \(value ?? -1)")
                }
            }
        }
        // A parabola's Laplacian is the same everywhere.
        let row = (0..<16).map { (column: Int) -> UInt8 in UInt8(column * column) }
        let parabola = (0..<16).flatMap { _ in row }
        #expect(DocumentImageQuality(gray: parabola, width: 16, height: 16)?.sharpness == 0)
        for (level, glare) in [(UInt8(249), 0.0), (250, 1), (255, 1)] {
            let gray = [UInt8](repeating: level, count: 64 * 48)
            #expect(DocumentImageQuality(gray: gray, width: 64, height: 48)?.glare == glare)
        }
        #expect(DocumentImageQuality(gray: [], width: 0, height: 0) == nil)
        #expect(DocumentImageQuality(gray: [1, 2, 3, 4], width: 2, height: 2) == nil)
        #expect(DocumentImageQuality(gray: [UInt8](repeating: 0, count: 8), width: 3, height: 3) == nil)
        #expect(DocumentImageQuality(gray: [], width: .max, height: .max) == nil)
        #expect(DocumentImageQuality(gray: [], width: -3, height: -3) == nil)
    }
}
