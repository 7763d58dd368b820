import Foundation
import TestSupport
import Testing
import TravelDocument

/// A drawn picture, no face: a gradient with edges in each component.
struct Drawing: Sendable, CustomTestStringConvertible {
    var width = 61
    var height = 47
    var components = 3
    /// Bits of a sample.
    var depth = 8

    var testDescription: String { "\(width) × \(height), \(components) components of \(depth) bits" }

    /// The samples, pixel by pixel.
    var samples: [Int] {
        (0..<height).flatMap { y in
            (0..<width).flatMap { x in
                (0..<components).map {
                    ((x * 5 + y * ($0 + 1) * 3 + $0 * 40) << (depth - 8) | x & 1) & (1 << depth - 1)
                }
            }
        }
    }

    /// A file in one of Netpbm's formats: P5, P6, or P7 with opacity.
    var netpbm: Data {
        let maximum = 1 << depth - 1
        let header =
            switch components {
            case 1: "P5\n\(width) \(height)\n\(maximum)\n"
            case 3: "P6\n\(width) \(height)\n\(maximum)\n"
            default:
                "P7\nWIDTH \(width)\nHEIGHT \(height)\nDEPTH \(components)\nMAXVAL \(maximum)\n"
                    + "TUPLTYPE \(components == 2 ? "GRAYSCALE_ALPHA" : "RGB_ALPHA")\nENDHDR\n"
            }
        return Data(header.utf8)
            + Data(samples.flatMap { depth > 8 ? [UInt8($0 >> 8), UInt8($0 & 0xFF)] : [UInt8($0)] })
    }

    /// The picture as another program encodes it.
    ///
    /// - Parameter encoder: the program and its arguments, among them `IN` and `OUT`.
    func encoded(
        _ encoder: String, in folder: TemporaryFolder, as name: String, from input: Data? = nil,
        named inputName: String? = nil
    ) async throws
        -> EncodedImage
    {
        let source = folder.url.appending(
            path: inputName ?? (components == 1 ? "in.pgm" : components == 3 ? "in.ppm" : "in.pam"))
        try (input ?? netpbm).write(to: source)
        let image = folder.url.appending(path: name)
        try await folder.run(encoder, in: source, out: image)
        return EncodedImage(Array(try Data(contentsOf: image)))
    }
}

/// A decoded image in P5 or P6 of Netpbm, as other programs write it.
struct Netpbm {
    let width: Int
    let height: Int
    let maximum: Int
    /// One or three a pixel.
    let samples: [Int]

    init(width: Int, height: Int, maximum: Int, samples: [Int]) {
        (self.width, self.height, self.maximum, self.samples) = (width, height, maximum, samples)
    }

    init(_ data: Data) throws {
        var rest = Array(data)[...]
        var fields: [String] = []
        while fields.count < 4 {
            let line = rest.prefix { $0 != 0x0A }
            rest = rest.dropFirst(line.count + 1)
            if line.first != UInt8(ascii: "#") {
                fields += String(decoding: line, as: UTF8.self).split(separator: " ").map(String.init)
            }
        }
        try #require(fields[0] == "P5" || fields[0] == "P6")
        (width, height, maximum) = try (#require(Int(fields[1])), #require(Int(fields[2])), #require(Int(fields[3])))
        let bytes = Array(rest)
        samples =
            maximum < 256
            ? bytes.map(Int.init)
            : stride(from: 0, to: bytes.count, by: 2).map { Int(bytes[$0]) << 8 | Int(bytes[$0 + 1]) }
        try #require(samples.count == width * height * (fields[0] == "P5" ? 1 : 3))
    }

    var pixels: [UInt8] {
        let bytes = samples.map { UInt8((Double($0) * 255 / Double(maximum)).rounded()) }
        let count = bytes.count / (width * height)
        return (0..<width * height).flatMap { pixel in
            (0..<3).map { bytes[pixel * count + (count < 3 ? 0 : $0)] }
        }
    }
}

/// A folder that is gone after the test.
final class TemporaryFolder: Sendable {
    let url = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)

    init() throws { try FileManager.default.createDirectory(at: url, withIntermediateDirectories: false) }

    deinit { try? FileManager.default.removeItem(at: url) }

    /// Runs a program with `IN` and `OUT` among its arguments.
    func run(_ command: String, in source: URL, out: URL) async throws {
        let arguments = command.split(separator: " ").map {
            $0 == "IN" ? source.path : $0 == "OUT" ? out.path : String($0)
        }
        let outcome = try await Program.run(arguments)
        try #require(outcome.status == 0, "\(outcome)")
    }

    /// The image as another program decodes it.
    func decoded(_ image: EncodedImage, by decoder: String, as name: String) async throws -> Netpbm {
        let (source, result) = (url.appending(path: name), url.appending(path: "out.ppm"))
        try Data(image.bytes).write(to: source)
        try await run(decoder, in: source, out: result)
        return try Netpbm(Data(contentsOf: result))
    }
}

/// Skips where a program is missing.
extension Trait where Self == ConditionTrait {
    static var needsOpenJPEG: Self {
        .enabled(if: Program.isInstalled("opj_compress"), "libopenjp2-tools is not installed")
    }
    static var needsLibJPEG: Self {
        .enabled(if: Program.isInstalled("cjpeg"), "libjpeg-turbo-progs is not installed")
    }
}

/// The largest difference of two images' bytes; nil if there are not as many.
func difference(_ one: [UInt8], _ other: [UInt8]) -> Int? {
    one.count == other.count ? zip(one, other).map { abs(Int($0) - Int($1)) }.max() : nil
}
