import Testing
import TravelDocumentImages

@Suite struct ScalingTests {
    private static func image(_ width: Int, _ height: Int, _ pixels: [UInt8]) throws -> RGBImage {
        try #require(RGBImage(width: width, height: height, pixels: pixels.flatMap { [$0, $0 / 2, 255 - $0] }))
    }

    @Test("Pixels that are not as many as width and height say make no image")
    func counts() {
        #expect(RGBImage(width: 2, height: 1, pixels: [1, 2, 3, 4, 5, 6]) != nil)
        for (width, height, count) in [
            (2, 1, 5), (2, 1, 7), (0, 0, 0), (-1, -1, 3), (1, 0, 0), (Int.max, 2, 6), (1 << 62, 4, 0),
        ] {
            #expect(RGBImage(width: width, height: height, pixels: [UInt8](repeating: 0, count: count)) == nil)
        }
    }

    @Test("Each pixel is the mean of those that it stands for")
    func means() throws {
        let image = try Self.image(4, 2, [0, 100, 10, 20, 200, 50, 30, 40])
        // (0 + 100 + 200 + 50) / 4 = 87.5 and (10 + 20 + 30 + 40) / 4 = 25; the halves 43.75 and 12.5 likewise.
        #expect(image.scaled(toFit: 2, by: 2).pixels == [88, 44, 168, 25, 13, 230])
        #expect(image.scaled(toFit: 1, by: 1).pixels.count == 3)
    }

    @Test(
        "The proportions stay, nothing is enlarged, and no side is lost",
        arguments: [
            (300, 400, 100, 100, 75, 100), (400, 300, 100, 100, 100, 75), (7, 5, 10, 10, 7, 5), (7, 5, 7, 5, 7, 5),
            (1, 90, 10, 10, 1, 10), (90, 1, 10, 10, 10, 1), (5, 5, 0, -3, 1, 1), (61, 47, 60, 60, 60, 46),
        ])
    func sizes(_ width: Int, _ height: Int, _ most: Int, _ tallest: Int, _ newWidth: Int, _ newHeight: Int) throws {
        let image = try Self.image(width, height, [UInt8](repeating: 77, count: width * height))
        let scaled = image.scaled(toFit: most, by: tallest)
        #expect((scaled.width, scaled.height) == (newWidth, newHeight))
        // A mean of equals.
        #expect(scaled == (try Self.image(newWidth, newHeight, [UInt8](repeating: 77, count: newWidth * newHeight))))
    }
}
