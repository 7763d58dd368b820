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
            Drawing(width: 3, height: 130), Drawing(components: 2), Drawing(components: 4),
        ], ["jp2", "j2k"])
    func lossless(_ drawing: Drawing, _ ending: String) async throws {
        let image = try await drawing.encoded(
            "opj_compress -i IN -o OUT -n 1", in: try TemporaryFolder(), as: "image.\(ending)")
        #expect(image.format == (ending == "jp2" ? .jp2 : .jpeg2000Codestream))
        let decoded = try image.decoded()
        #expect(decoded.width == drawing.width && decoded.height == drawing.height)
        // Opacity is not shown.
        let colors = drawing.components < 3 ? 1 : 3
        let samples = drawing.samples.indices.filter { $0 % drawing.components < colors }.map { drawing.samples[$0] }
        let picture = Netpbm(
            width: drawing.width, height: drawing.height, maximum: 1 << drawing.depth - 1, samples: samples)
        #expect(decoded.pixels == picture.pixels)
    }

    @Test(
        "An image is decoded as OpenJPEG decodes it",
        arguments: [
            "-r 20", "-I -r 10", "-I -r 40,20,10", "-q 30,40", "-t 16,16 -n 3", "-t 20,16 -T 3,5 -d 7,9 -n 4", "-d 13,7",
            "-c [32,32],[16,16] -p RPCL", "-p CPRL -TP C", "-SOP -EPH -TP R", "-b 16,16 -M 63", "-mct 0",
            "-n 3 -p PCRL",
            "-I -TLM", "-PLT", "-ROI c=0,U=2",
        ], [1, 3])
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
}
