import SmartCard
import TestSupport
import Testing
import TravelDocument
import TravelDocumentImages

@testable import SmartCardTrace

/// Images that redaction draws in place of a face, judged by the programs of libjpeg-turbo and OpenJPEG.
@Suite(.needsOpenJPEG, .needsLibJPEG, .timeLimit(.minutes(5))) struct DrawnImageTests {
    struct Format: Sendable, CustomTestStringConvertible {
        let encoder: String
        let decoder: String
        let name: String

        var testDescription: String { encoder }

        static let all = [
            Format(encoder: "cjpeg -quality 90 -outfile OUT IN", decoder: "djpeg -outfile OUT IN", name: "image.jpg"),
            Format(
                encoder: "cjpeg -progressive -restart 1 -outfile OUT IN", decoder: "djpeg -outfile OUT IN",
                name: "image.jpg"),
            Format(
                encoder: "opj_compress -i IN -o OUT -n 5", decoder: "opj_decompress -i IN -o OUT", name: "image.jp2"),
            Format(
                encoder: "opj_compress -i IN -o OUT -n 5 -r 20", decoder: "opj_decompress -i IN -o OUT",
                name: "image.j2k"),
        ]
    }

    @Test("A drawn image has the format, size and length of the other", arguments: Format.all)
    func drawn(_ format: Format) async throws {
        let folder = try TemporaryFolder()
        for (width, height) in Tier.few([(240, 320), (413, 531), (64, 64), (301, 17)], 2) {
            let drawing = Drawing(width: width, height: height)
            let face = try await drawing.encoded(format.encoder, in: folder, as: format.name)
            let drawn = try #require(DrawnImage.replacement(for: face.bytes[...]), "\(width) × \(height)")
            #expect(drawn.count == face.bytes.count)
            #expect(DrawnImage.replacement(for: drawn[...]) == drawn)
            let judged = try await folder.decoded(EncodedImage(drawn), by: format.decoder, as: format.name)
            #expect((judged.width, judged.height) == (width, height))
            let image = try EncodedImage(drawn).decoded()
            #expect((image.width, image.height) == (width, height))
            // Background and figure, where there is room for more than one tile.
            let grays = Set(judged.pixels)
            #expect(grays.contains(128) && grays.isSubset(of: [64, 128]), "\(grays)")
            if width >= 240 && height >= 240 {
                let center = (height / 2 * width + width / 2) * 3
                #expect(judged.pixels[center] == 64 && judged.pixels[0] == 128)
            }
        }
    }

    @Test("An image is not drawn where its bytes do not suffice, and never is another length", arguments: Format.all)
    func cutOff(_ format: Format) async throws {
        let folder = try TemporaryFolder()
        let face = try await Drawing(width: 60, height: 80).encoded(format.encoder, in: folder, as: format.name).bytes
        var drawnFrom = 0
        for count in Array(stride(from: 0, to: min(700, face.count), by: Tier.rounds(21, thorough: 3))) + [
            face.count - 1, face.count,
        ] {
            guard let drawn = DrawnImage.replacement(for: face.prefix(count)) else { continue }
            drawnFrom = drawnFrom == 0 ? count : drawnFrom
            #expect(drawn.count == count)
            #expect(DrawnImage.replacement(for: drawn[...]) == drawn)
            #expect((try? EncodedImage(drawn).decoded())?.width == 60, "\(count) of \(face.count)")
        }
        #expect((60...600).contains(drawnFrom), "\(drawnFrom)")
    }

    @Test("An image that claims to be larger than its bytes can draw is not drawn")
    func hostile() {
        let frame: [UInt8] = [0xFF, 0xD8, 0xFF, 0xC0, 0x00, 0x0B, 0x08, 0x40, 0x00, 0x40, 0x00, 0x01, 0x01, 0x11, 0x00]
        #expect(DrawnImage.replacement(for: (frame + [UInt8](repeating: 0, count: 10_000))[...]) == nil)
        var stream: [UInt8] = [0xFF, 0x4F, 0xFF, 0x51, 0x00, 0x29, 0x00, 0x00] + [UInt8](repeating: 0xFF, count: 40)
        #expect(DrawnImage.replacement(for: (stream + [UInt8](repeating: 0, count: 10_000))[...]) == nil)
        // Offsets that leave nothing.
        stream = [0xFF, 0x4F, 0xFF, 0x51, 0x00, 0x29, 0x00, 0x00] + [0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 9]
        #expect(DrawnImage.replacement(for: (stream + [UInt8](repeating: 0, count: 10_000))[...]) == nil)
        // A codestream's box that ends before its long length.
        let signature: [UInt8] = [0, 0, 0, 12, 0x6A, 0x50, 0x20, 0x20, 0x0D, 0x0A, 0x87, 0x0A]
        #expect(DrawnImage.replacement(for: (signature + [0, 0, 0, 1] + Array("jp2c".utf8))[...]) == nil)
        // A box of no length.
        let box: [UInt8] =
            [0, 0, 0, 12, 0x6A, 0x50, 0x20, 0x20, 0x0D, 0x0A, 0x87, 0x0A] + [UInt8](repeating: 0, count: 99)
        #expect(DrawnImage.replacement(for: box[...]) == nil)
    }
}
