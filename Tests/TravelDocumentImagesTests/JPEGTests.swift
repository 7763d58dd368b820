import Foundation
import TestSupport
import Testing
import TravelDocument

@testable import TravelDocumentImages

/// JPEG, with libjpeg-turbo's programs as the other side.
@Suite(.needsLibJPEG) struct JPEGTests {
    @Test(
        "An image is decoded as djpeg decodes it",
        arguments: [
            "", "-quality 30", "-quality 95 -sample 1x1", "-sample 2x1", "-progressive", "-grayscale",
            "-grayscale -progressive", "-arithmetic", "-restart 1", "-optimize", "-rgb",
        ])
    func options(_ options: String) async throws {
        let folder = try TemporaryFolder()
        let image = try await Drawing().encoded("cjpeg \(options) -outfile OUT IN", in: folder, as: "image.jpg")
        #expect(image.format == .jpeg)
        let judged = try await folder.decoded(image, by: "djpeg -pnm -outfile OUT IN", as: "image.jpg")
        let decoded = try image.decoded()
        #expect(decoded.width == judged.width && decoded.height == judged.height)
        #expect(decoded.pixels == judged.pixels)
    }

    @Test(
        "CMYK is refused by its name", .enabled(if: Program.isInstalled("gs"), "ghostscript is not installed"))
    func cmyk() async throws {
        let folder = try TemporaryFolder()
        let page = folder.url.appending(path: "page.ps")
        try Data("0.5 0.2 0.1 0 setcmykcolor 0 0 400 400 rectfill showpage".utf8).write(to: page)
        let image = folder.url.appending(path: "image.jpg")
        try await folder.run("gs -q -dBATCH -dNOPAUSE -sDEVICE=jpegcmyk -r10 -o OUT IN", in: page, out: image)
        let encoded = EncodedImage(Array(try Data(contentsOf: image)))
        #expect(encoded.format == .jpeg)
        #expect(throws: ImageError.unsupported(.cmyk)) { try encoded.decoded() }
    }
}
