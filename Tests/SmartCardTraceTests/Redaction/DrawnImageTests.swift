import Foundation
import SmartCard
import TestSupport
import Testing
import TravelDocument

@testable import SmartCardTrace

/// Pictures of nobody in place of faces.  The programs of libjpeg-turbo and OpenJPEG make the faces, and judge what has
/// become of them.
@Suite(.computing) struct DrawnImageTests {
    private static let noJPEG: Comment = "libjpeg-turbo-progs is not installed"
    private static let noJPEG2000: Comment = "libopenjp2-tools is not installed"
    private static let hasJPEG = ["cjpeg", "djpeg"].allSatisfy(Program.isInstalled)
    private static let hasJPEG2000 = ["opj_compress", "opj_decompress"].allSatisfy(Program.isInstalled)

    /// Runs `command` with the picture or the image IN and the file OUT.
    private func run(_ command: String, _ input: [UInt8], _ names: (String, String)) async throws -> [UInt8] {
        let folder = FileManager.default.temporaryDirectory.appending(path: "drawn-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let (from, to) = (folder.appending(path: names.0), folder.appending(path: names.1))
        try Data(input).write(to: from)
        let words = command.split(separator: " ").map {
            $0 == "IN" ? from.path : $0 == "OUT" ? to.path : String($0)
        }
        let outcome = try await Program.run(words)
        try #require(outcome.status == 0, "\(outcome)")
        return try Array(Data(contentsOf: to))
    }

    /// A colored picture, as a file of Netpbm.
    private func face(_ width: Int, _ height: Int) -> [UInt8] {
        var dice = SplitMix(state: 5)
        return Array("P6\n\(width) \(height)\n255\n".utf8)
            + (0..<3 * width * height).map {
                UInt8(truncatingIfNeeded: $0 / 7) & 0xF0 | UInt8.random(in: 0...3, using: &dice)
            }
    }

    /// DG2 with `image` in a face record (ISO/IEC 19794-5:2005, 5) after READ BINARY and redaction; the image in it.
    private func redacted(_ image: [UInt8], _ width: Int, _ height: Int) throws -> [UInt8] {
        func number(_ value: Int, _ count: Int) -> [UInt8] {
            (0..<count).reversed().map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
        }
        let isJPEG = image.starts(with: [0xFF, 0xD8])
        let block = number(32 + image.count, 4) + number(0, 16)
        let information = [0x01, isJPEG ? 0x00 : 0x01] + number(width, 2) + number(height, 2) + number(0, 6)
        let record =
            Array("FAC\0010\0".utf8) + number(14 + 32 + image.count, 4) + number(1, 2) + block + information + image
        let header = TLVTag(0xA1).encode([0x87, 0x02, 0x01, 0x01, 0x88, 0x02, 0x00, 0x08])
        let template = TLVTag(0x7F60).encode(header + TLVTag(0x5F2E).encode(record))
        let file = TLVTag(0x75).encode(TLVTag(0x7F61).encode([0x02, 0x01, 0x01] + template))
        let trace = DocumentReadings.trace(DocumentReadings.clear([(0x0102, file)], .odd))
        let redaction = TraceRedaction(key: Array(0..<16))
        let redacted = redaction.redacted(trace)
        #expect(redaction.redacted(redacted) == redacted)
        #expect(TraceRedaction().findings(in: redacted).isEmpty)
        let bytes = try #require(DocumentReadings.files(in: redacted).first)
        let parsed = try EncodedFaces(parsing: bytes)
        let face = try #require(parsed.faces.first)
        #expect(face.width == width && face.height == height)
        #expect(face.image.bytes.count == image.count)
        #expect(face.image.format == EncodedImage(image).format)
        return face.image.bytes
    }

    /// The size and the samples of a file of Netpbm in gray or color.
    private func netpbm(_ file: [UInt8]) throws -> (width: Int, height: Int, samples: [UInt8]) {
        let parts = file.split(separator: 0x0A, maxSplits: 3)
        // opj_decompress writes a comment in the second line.
        let lines =
            parts[1].first == 0x23
            ? Array(file.split(separator: 0x0A, maxSplits: 4).dropFirst(2)) : Array(parts.dropFirst())
        let size = String(decoding: lines[0], as: UTF8.self).split(separator: " ").compactMap { Int($0) }
        return (try #require(size.first), try #require(size.last), Array(lines[2]))
    }

    @Test(
        "a JPEG becomes a drawn one of the same length, width and height",
        .enabled(if: hasJPEG, noJPEG),
        arguments: [(413, 531), (240, 320), (60, 80), (61, 79), (16, 2_000), (1, 1)],
        ["", "-progressive", "-grayscale -restart 1"])
    func jpeg(_ size: (Int, Int), _ options: String) async throws {
        let image = try await run(
            "cjpeg -quality 30 \(options) -outfile OUT IN", face(size.0, size.1), ("face.ppm", "face.jpg"))
        let drawn = try redacted(image, size.0, size.1)
        let shown = try netpbm(try await run("djpeg -strict -pnm -outfile OUT IN", drawn, ("drawn.jpg", "drawn.pgm")))
        #expect(shown.width == size.0 && shown.height == size.1)
        #expect(shown.samples.count == size.0 * size.1)
        // The background, and the figure: a head in the middle, shoulders below, nothing between these and the edges.
        func sample(_ x: Int, _ y: Int) -> UInt8 {
            shown.samples[y * size.1 / 100 * size.0 + x * size.0 / 100]
        }
        #expect(Set(shown.samples).isSubset(of: [64, 192]))
        if size.0 >= 60 {
            #expect([sample(50, 40), sample(50, 90), sample(20, 95)] == [64, 64, 64])
            #expect([sample(5, 5), sample(95, 5), sample(10, 60), sample(50, 5)] == [192, 192, 192, 192])
        }
    }

    @Test(
        "a JPEG 2000 becomes a gray one of the same length, width and height, in boxes and without",
        .enabled(if: hasJPEG2000, noJPEG2000), arguments: [(413, 531), (60, 80), (61, 79)],
        [("jp2", 20), ("jp2", 41), ("j2k", 25), ("j2k", 33)])
    func jpeg2000(_ size: (Int, Int), _ form: (String, Int)) async throws {
        let (ending, rate) = form
        let image = try await run(
            "opj_compress -i IN -o OUT -r \(rate)", face(size.0, size.1), ("face.ppm", "face.\(ending)"))
        let drawn = try redacted(image, size.0, size.1)
        let shown = try netpbm(
            try await run("opj_decompress -quiet -i IN -o OUT", drawn, ("drawn.\(ending)", "drawn.pgm")))
        #expect(shown.width == size.0 && shown.height == size.1)
        #expect(shown.samples == Array(repeating: 128, count: size.0 * size.1))
    }
}
