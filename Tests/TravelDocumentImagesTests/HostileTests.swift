import Foundation
import TestSupport
import Testing
import TravelDocument

@testable import TravelDocumentImages

/// Images that somebody made to harm, or that a chip cut off.
@Suite(.needsOpenJPEG, .needsLibJPEG, .timeLimit(.minutes(5))) struct HostileTests {
    /// Small images, by the commands that make them.
    private static let commands = [
        "cjpeg -outfile OUT IN": "jpg", "cjpeg -progressive -outfile OUT IN": "jpg",
        "opj_compress -i IN -o OUT -n 2": "jp2", "opj_compress -i IN -o OUT -n 3 -t 8,8 -r 4,1 -TP R": "j2k",
        "opj_compress -i IN -o OUT -I -n 2 -r 3 -SOP -EPH -c [8,8]": "j2k",
    ]

    private static func image(_ command: String) async throws -> EncodedImage {
        try await Drawing(width: 13, height: 11).encoded(
            command, in: try TemporaryFolder(), as: "image.\(try #require(commands[command]))")
    }

    @Test("Every beginning of an image is an error, and nearly always that it is cut off", arguments: commands.keys)
    func truncated(_ command: String) async throws {
        let bytes = try await Self.image(command).bytes
        var errors: [ImageError] = []
        for count in 0..<bytes.count {
            let beginning = EncodedImage(Array(bytes.prefix(count)))
            let error = #expect(throws: ImageError.self, "\(count) of \(bytes.count)") { try beginning.decoded() }
            if let error { errors.append(error) }
        }
        #expect(errors.filter { $0 == .truncated }.count > bytes.count / 4, "\(errors)")
        #expect(errors.last == .truncated)
    }

    @Test("Each bit flipped: an image or an error", arguments: commands.keys)
    func flipped(_ command: String) async throws {
        let bytes = try await Self.image(command).bytes
        var refused = 0
        let step = Tier.stride(8)
        for index in stride(from: 0, to: bytes.count, by: step) {
            for bit in 0..<8 {
                var changed = bytes
                changed[index] ^= 1 << UInt8(bit)
                do {
                    let image = try EncodedImage(changed).decoded(maximumPixels: 10_000)
                    #expect(image.pixels.count == 3 * image.width * image.height && image.pixels.count <= 30_000)
                } catch {
                    refused += 1
                    #expect(!error.description.isEmpty && !error.hint.isEmpty)
                }
            }
        }
        #expect(refused > 200 / step)
    }

    @Test("Bytes replaced at random: an image or an error", arguments: commands.keys)
    func random(_ command: String) async throws {
        let bytes = try await Self.image(command).bytes
        var random = SplitMix(state: 7)
        var refused = 0
        let rounds = Tier.rounds(200, thorough: 2_000)
        for _ in 0..<rounds {
            var changed = bytes
            for _ in 0..<Int.random(in: 2...8, using: &random) {
                changed[Int.random(in: 8..<bytes.count, using: &random)] =
                    [0, 0xFF, UInt8.random(in: 1...254, using: &random)][
                        Int.random(in: 0...2, using: &random)]
            }
            if (try? EncodedImage(changed).decoded(maximumPixels: 10_000)) == nil { refused += 1 }
        }
        #expect(refused > rounds / 4)
    }

    @Test("A size beyond the limit is an error before anything is decoded")
    func size() async throws {
        let jpeg = try await Self.image("cjpeg -outfile OUT IN").bytes
        let frame = try #require(zip(jpeg, jpeg.dropFirst()).enumerated().first { $0.element == (0xFF, 0xC0) }?.offset)
        // SOF0: length, precision, height, width.  The library's own limit is 65,500.
        for side in [65_500, 65_535] {
            let (high, low) = (UInt8(side >> 8), UInt8(side & 0xFF))
            let large = Array(jpeg[..<(frame + 5)]) + [high, low, high, low] + jpeg[(frame + 9)...]
            let error = #expect(throws: ImageError.self) { try EncodedImage(large).decoded() }
            #expect(side > 65_500 || error == .tooLarge(width: side, height: side, maximumPixels: 4_000_000))
        }

        let error = ImageError.tooLarge(width: 65_535, height: 65_535, maximumPixels: 4_000_000)
        for command in Self.commands.keys where command.hasPrefix("opj") {
            var bytes = try await Self.image(command).bytes
            // SIZ: Lsiz, Rsiz, Xsiz, Ysiz.
            let start = try #require(bytes.indices.first { bytes[$0...].starts(with: [0xFF, 0x51]) })
            bytes.replaceSubrange(start + 6..<start + 14, with: [0, 0, 0xFF, 0xFF, 0, 0, 0xFF, 0xFF])
            #expect(throws: error) { try EncodedImage(bytes).decoded() }
            bytes.replaceSubrange(start + 6..<start + 14, with: repeatElement(0xFF, count: 8))
            #expect(
                throws: ImageError.tooLarge(width: .init(UInt32.max), height: .init(UInt32.max), maximumPixels: .max)
            ) {
                try EncodedImage(bytes).decoded(maximumPixels: .max)
            }
        }
        // The limit itself is not beyond.
        let image = try await Self.image("opj_compress -i IN -o OUT -n 2")
        #expect(try image.decoded(maximumPixels: 143).width == 13)
        #expect(throws: ImageError.tooLarge(width: 13, height: 11, maximumPixels: 142)) {
            try image.decoded(maximumPixels: 142)
        }
        #expect(throws: ImageError.self) { try image.decoded(maximumPixels: -1) }
    }

    /// SOC, SIZ, COD and EOC.
    private static func codestream(_ side: Int, tile: Int, components: UInt8 = 1, depth: UInt8 = 8, coding: [UInt8])
        -> [UInt8]
    {
        func number(_ number: Int) -> [UInt8] { (0..<4).map { UInt8(number >> (24 - 8 * $0) & 0xFF) } }
        return [0xFF, 0x4F, 0xFF, 0x51, 0x00, 0x26 + 3 * components, 0x00, 0x00] + number(side) + number(side)
            + number(0)
            + number(0) + number(tile) + number(tile) + number(0) + number(0) + [0x00, components]
            + (0..<components).flatMap { _ in [depth - 1, 0x01, 0x01] }
            + [0xFF, 0x52, 0x00, UInt8(coding.count + 2)] + coding + [0xFF, 0xD9]
    }

    @Test(
        "Divisions that ask for memory though no byte stands for them are refused",
        arguments: [
            // Scod, progression, layers, transformation; levels, code-blocks, style, wavelet; precincts.
            (2_000, 2_000, [0, 0, 0, 1, 0, 5, 4, 4, 0, 1], true),
            (2_000, 256, [0, 0, 0, 20, 0, 5, 4, 4, 0, 1], true),
            (2_000, 2_000, [1, 0, 0, 12, 0, 1, 4, 4, 0, 1, 0x77, 0x88], true),
            (2_000, 2_000, [1, 0, 0, 60, 0, 5, 4, 4, 0, 1, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88], true),
            // Ten thousand tiles; tiles of one pixel; all layers; precincts of one sample; code-blocks of 4 × 4.
            (2_000, 20, [0, 0, 0, 1, 0, 0, 4, 4, 0, 1], false),
            (2_000, 1, [0, 0, 0, 1, 0, 0, 4, 4, 0, 1], false),
            (2_000, 2_000, [0, 0, 0xFF, 0xFF, 0, 5, 4, 4, 0, 1], false),
            (2_000, 2_000, [1, 0, 0, 1, 0, 1, 4, 4, 0, 1, 0x77, 0x00], false),
            (2_000, 2_000, [1, 0, 0, 1, 0, 1, 4, 4, 0, 1, 0x00, 0x88], false),
            (2_000, 2_000, [1, 0, 0, 1, 0, 1, 4, 4, 0, 1, 0x77, 0x80], true),
            (2_000, 2_000, [1, 0, 0, 99, 0, 1, 4, 4, 0, 1, 0x77, 0x80], false),
            (2_000, 2_000, [1, 0, 0, 99, 0, 1, 4, 4, 0, 1, 0x77, 0x08], false),
            (2_100, 2_100, [0, 0, 0, 1, 0, 5, 0, 0, 0, 1], false),
            (1_100, 1_100, [0, 0, 0, 1, 0, 5, 0, 0, 0, 1], true),
        ] as [(Int, Int, [UInt8], Bool)])
    func divisions(_ side: Int, _ tile: Int, _ coding: [UInt8], _ isTaken: Bool) {
        let bytes = Self.codestream(side, tile: tile, coding: coding)
        let result = Result { () throws(ImageError) in try Codestream(parsing: bytes[...], maximumPixels: 5_000_000) }
        switch result {
        case .success(let codestream): #expect(isTaken && codestream.columns == 0..<side)
        case .failure(let error): #expect(!isTaken && error == .unsupported(.divisions))
        }
    }

    @Test("More than 4 components, and more than 16 bits, are refused by name")
    func forms() {
        let coding: [UInt8] = [0, 0, 0, 1, 0, 5, 4, 4, 0, 1]
        for (components, depth, error) in [
            (5, 8, ImageError.Feature.components), (70, 8, .components), (1, 17, .depth), (3, 38, .depth),
        ] as [(UInt8, UInt8, ImageError.Feature)] {
            let bytes = Self.codestream(16, tile: 16, components: components, depth: depth, coding: coding)
            #expect(throws: ImageError.unsupported(error)) { try EncodedImage(bytes).decoded() }
        }
    }

    @Test("A last tile-part of unknown length ends with the codestream")
    func unknownLength() async throws {
        let bytes = try await Self.image("opj_compress -i IN -o OUT -I -n 2 -r 3 -SOP -EPH -c [8,8]").bytes
        let start = try #require(bytes.indices.first { bytes[$0...].starts(with: [0xFF, 0x90]) })
        // SOT: Lsot, Isot, Psot.
        var open = bytes
        open.replaceSubrange(start + 6..<start + 10, with: [0, 0, 0, 0])
        #expect(try EncodedImage(open).decoded() == EncodedImage(bytes).decoded())
        for count in start + 14..<open.count {
            #expect(throws: ImageError.truncated) { try EncodedImage(Array(open.prefix(count))).decoded() }
        }
    }

    @Test("An image, an error and whatever is said of them print nothing of the picture")
    func printed() throws {
        let image = try #require(RGBImage(width: 2, height: 1, pixels: [11, 12, 13, 14, 15, 16]))
        var dumped = ""
        dump(image, to: &dumped)
        for text in ["\(image)", String(reflecting: image), dumped] {
            #expect(text.contains("2 × 1") && !text.contains("13"), "\(text)")
        }
    }
}
