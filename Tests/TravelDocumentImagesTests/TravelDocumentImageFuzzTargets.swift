import TravelDocument
import TravelDocumentImages

/// The fuzzer's target for the images of travel documents: it takes any input, and throws a finding.  Fuzz/ has libFuzzer
/// write the inputs; the tests take those of Fuzz/corpora, and change them a little.
public enum TravelDocumentImageFuzzTargets {
    /// Something that must not be.
    public struct Finding: Error, CustomStringConvertible {
        public let description: String
    }

    /// Few enough for thousands of images a second.
    private static let maximumPixels = 16_384

    /// An image from a chip: it is decoded to the size that was allowed, or refused with a reason.
    public static func image(_ input: [UInt8]) throws(Finding) {
        let image: RGBImage
        do { image = try EncodedImage(input).decoded(maximumPixels: maximumPixels) } catch {
            guard !error.description.isEmpty, !error.hint.isEmpty else { throw Finding(description: "no reason") }
            return
        }
        guard image.width > 0, image.height > 0, image.width * image.height <= maximumPixels,
            image.pixels.count == 3 * image.width * image.height
        else { throw Finding(description: "\(image), \(image.pixels.count) bytes") }
        let small = image.scaled(toFit: 16, by: 12)
        guard (1...16).contains(small.width), (1...12).contains(small.height) else {
            throw Finding(description: "\(image) scaled to \(small)")
        }
    }
}
