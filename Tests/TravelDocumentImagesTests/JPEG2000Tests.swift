import Foundation
import TestSupport
import Testing
import TravelDocument

@testable import TravelDocumentImages

/// JPEG 2000, with OpenJPEG's programs as the other side.
@Suite(.needsOpenJPEG) struct JPEG2000Tests {
    @Test(
        "An image without losses is the picture, in boxes and without",
        arguments: [
            Drawing(), Drawing(components: 1), Drawing(depth: 12), Drawing(components: 1, depth: 16),
            Drawing(width: 1, height: 1),
            Drawing(width: 3, height: 130), Drawing(components: 2),
            Drawing(components: 4),
        ], ["jp2", "j2k"])
    func lossless(_ drawing: Drawing, _ ending: String) async throws {
        let image = try await drawing.encoded(
            "opj_compress -i IN -o OUT -n 1", in: try TemporaryFolder(), as: "image.\(ending)")
        #expect(image.format == (ending == "jp2" ? .jp2 : .jpeg2000Codestream))
        let decoded = try image.decoded()
        #expect(decoded.width == drawing.width && decoded.height == drawing.height)
        // Opacity is not shown.
        let colors = drawing.components < 3 ? 1 : 3
        let samples = drawing.samples.enumerated().filter { $0.offset % drawing.components < colors }.map(\.element)
        let picture = Netpbm(
            width: drawing.width, height: drawing.height, maximum: 1 << drawing.depth - 1, samples: samples)
        #expect(decoded.pixels == picture.pixels)
    }

    @Test(
        "An image is decoded as OpenJPEG decodes it",
        arguments: Tier.few(
            [
                "-r 20", "-I -r 10", "-I -r 40,20,10", "-q 30,40", "-t 16,16 -n 3", "-t 20,16 -T 3,5 -d 7,9 -n 4",
                "-d 13,7",
                "-c [32,32],[16,16] -p RPCL", "-p CPRL -TP C", "-SOP -EPH -TP R", "-b 16,16 -M 63", "-mct 0",
                "-n 3 -p PCRL",
                "-I -TLM", "-PLT", "-ROI c=0,U=2",
            ], 3), [1, 3])
    func options(_ options: String, _ components: Int) async throws {
        let folder = try TemporaryFolder()
        let options = components == 1 ? options.replacing("-mct 0", with: "") : options
        let image = try await Drawing(components: components).encoded(
            "opj_compress -i IN -o OUT \(options)", in: folder, as: "image.jp2")
        let judged = try await folder.decoded(image, by: "opj_decompress -i IN -o OUT", as: "image.jp2")
        let decoded = try image.decoded()
        #expect(decoded.width == judged.width && decoded.height == judged.height)
        #expect(decoded.pixels == judged.pixels)
    }

    /// Samples without a header: all of the first component, then those of the next.
    private static func raw(_ sizes: [(width: Int, height: Int)]) -> Data {
        Data(
            sizes.enumerated().flatMap { number, size in
                (0..<size.height).flatMap { y in
                    (0..<size.width).map { UInt8(($0 * 7 / (number + 1) + y * (5 + number) + 60 * number) & 0xFF) }
                }
            })
    }

    @Test(
        "Chroma with fewer samples becomes red, green and blue, as OpenJPEG has it",
        arguments: ["61,47,3,8,u@1x1:2x2:2x2", "61,47,3,8,u@1x1:2x1:2x1", "60,46,3,8,u@1x1:2x2:2x2", "61,47,3,8,u"],
        ["jp2", "j2k"])
    func chroma(_ form: String, _ ending: String) async throws {
        let folder = try TemporaryFolder()
        let factors = form.contains("2x2") ? (2, 2) : form.contains("2x1") ? (2, 1) : (1, 1)
        let (width, height) = form.hasPrefix("61") ? (61, 47) : (60, 46)
        let chroma = (width: width.dividedUp(by: factors.0), height: height.dividedUp(by: factors.1))
        let image = try await Drawing().encoded(
            "opj_compress -i IN -o OUT -mct 0 -F \(form)", in: folder, as: "image.\(ending)",
            from: Self.raw([(width, height), chroma, chroma]), named: "in.raw")
        let judged = try await folder.decoded(image, by: "opj_decompress -i IN -o OUT", as: "image.\(ending)")
        let decoded = try image.decoded()
        #expect(decoded.width == width && decoded.height == height)
        // OpenJPEG's program cuts off the fractions.
        #expect(try #require(difference(decoded.pixels, judged.pixels)) <= 1)
    }

    @Test(
        "Samples of 1 to 16 bits, signed and not, become bytes",
        arguments: [1, 2, 4, 7, 8, 12, 15, 16], [false, true])
    func depths(_ depth: Int, _ isSigned: Bool) async throws {
        let drawing = Drawing(components: 1, depth: depth)
        // The program encodes 8 bits or more, without a sign.  A sample's distance from the middle is always the same (G.1).
        let coded = max(8, depth)
        let samples = drawing.samples.flatMap { sample -> [UInt8] in
            let shifted = sample - 1 << (depth - 1) + 1 << (coded - 1)
            return coded > 8 ? [UInt8(shifted >> 8), UInt8(shifted & 0xFF)] : [UInt8(shifted)]
        }
        // PGX, the format of the conformance tests of JPEG 2000 (ISO/IEC 15444-4).
        var bytes = try await drawing.encoded(
            "opj_compress -i IN -o OUT", in: try TemporaryFolder(), as: "image.j2k",
            from: Data("PG ML + \(coded) 61 47\n".utf8) + Data(samples), named: "in.pgx"
        ).bytes
        // Ssiz.
        #expect(bytes[42] == UInt8(coded - 1))
        bytes[42] = (isSigned ? 0x80 : 0) | UInt8(depth - 1)
        let picture = Netpbm(width: 61, height: 47, maximum: 1 << depth - 1, samples: drawing.samples)
        #expect(try EncodedImage(bytes).decoded().pixels == picture.pixels)
    }

    /// A JP2 file with these boxes in its header.
    private static func file(_ codestream: [UInt8], components: UInt8, _ boxes: [[UInt8]]) -> EncodedImage {
        func box(_ type: String, _ contents: [UInt8]) -> [UInt8] {
            let length = contents.count + 8
            return [UInt8(length >> 24), UInt8(length >> 16 & 0xFF), UInt8(length >> 8 & 0xFF), UInt8(length & 0xFF)]
                + Array(type.utf8) + contents
        }
        // ihdr: height, width, components, 8 bits, compression 7.
        let header = box("ihdr", [0, 0, 0, 47, 0, 0, 0, 61, 0, components, 7, 7, 0, 0])
        let all = boxes.map { box(String(decoding: $0.prefix(4), as: UTF8.self), Array($0.dropFirst(4))) }
        return EncodedImage(
            box("jP  ", [0x0D, 0x0A, 0x87, 0x0A]) + box("ftyp", Array("jp2 \0\0\0\0jp2 ".utf8))
                + box("jp2h", header + all.flatMap { $0 }) + box("jp2c", codestream))
    }

    private static let sRGB = Array("colr".utf8) + [1, 0, 0, 0, 0, 0, 16]

    @Test(
        "Channel definitions put the colors in order, and set opacity aside",
        arguments: [
            // N, then Cn, Typ and Asoc: blue, green, red; opacity first.
            (3, [0, 3, 0, 0, 0, 0, 0, 3, 0, 1, 0, 0, 0, 2, 0, 2, 0, 0, 0, 1]),
            (4, [0, 4, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1, 0, 2, 0, 0, 0, 2, 0, 3, 0, 0, 0, 3]),
            (4, [0, 4, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 2, 0, 0, 0, 2, 0, 3, 0, 0, 0, 3]),
        ] as [(UInt8, [UInt8])])
    func channels(_ components: UInt8, _ definitions: [UInt8]) async throws {
        let folder = try TemporaryFolder()
        let drawing = Drawing(components: Int(components))
        let plain = try await drawing.encoded("opj_compress -i IN -o OUT -mct 0", in: folder, as: "image.j2k")
        let image = Self.file(plain.bytes, components: components, [Self.sRGB, Array("cdef".utf8) + definitions])
        // OpenJPEG's program writes each component into a file of its own, in the colors' order.
        try Data(image.bytes).write(to: folder.url.appending(path: "image.jp2"))
        try await folder.run(
            "opj_decompress -i IN -o OUT", in: folder.url.appending(path: "image.jp2"),
            out: folder.url.appending(path: "out.pgx"))
        let planes = try (0..<3).map { number in
            let file = try Data(contentsOf: folder.url.appending(path: "out_\(number).pgx"))
            return Array(file.suffix(61 * 47))
        }
        let judged = (0..<61 * 47).flatMap { pixel in planes.map { $0[pixel] } }
        #expect(try image.decoded().pixels == judged)
        #expect(try image.decoded().pixels != plain.decoded().pixels)
    }

    @Test("Color spaces, palettes and components that no document has are refused by name")
    func unsupported() async throws {
        let folder = try TemporaryFolder()
        let four = try await Drawing(components: 4).encoded("opj_compress -i IN -o OUT", in: folder, as: "image.j2k")
        func refusal(_ boxes: [[UInt8]]) -> ImageError? {
            #expect(throws: ImageError.self) { try Self.file(four.bytes, components: 4, boxes).decoded() }
        }
        #expect(refusal([Array("colr".utf8) + [1, 0, 0, 0, 0, 0, 12]]) == .unsupported(.cmyk))
        #expect(refusal([Array("colr".utf8) + [1, 0, 0, 0, 0, 0, 14]]) == .unsupported(.colorSpace))
        #expect(refusal([Self.sRGB, Array("pclr".utf8) + [0, 1, 1, 7, 0]]) == .unsupported(.palette))
        // The first color counts; an ICC profile says nothing.
        #expect(
            try Self.file(four.bytes, components: 4, [Self.sRGB, Array("colr".utf8) + [1, 0, 0, 0, 0, 0, 12]]).decoded()
                .width == 61)
        #expect(
            try Self.file(four.bytes, components: 4, [Array("colr".utf8) + [2, 0, 0, 1, 2, 3]]).decoded().width == 61)
        // A channel that has no component.
        #expect(refusal([Self.sRGB, Array("cdef".utf8) + [0, 1, 0, 4, 0, 0, 0, 1]]) != nil)
    }
}
