public import TravelDocument

/// A decoded image, in the colors red, green and blue.
public struct RGBImage: Hashable, Sendable {
    /// The width in pixels, 1 or more.
    public let width: Int
    /// The height in pixels, 1 or more.
    public let height: Int
    /// Three bytes a pixel, red, green and blue; the rows from top to bottom, without padding.
    public let pixels: [UInt8]

    /// Creates an image; nil if it has no pixels, or `pixels` are not three bytes for each.
    public init?(width: Int, height: Int, pixels: [UInt8]) {
        let (area, overflow) = width.multipliedReportingOverflow(by: height)
        guard width > 0, height > 0, !overflow, pixels.count.isMultiple(of: 3), pixels.count / 3 == area else {
            return nil
        }
        self.init(checked: width, height, pixels)
    }

    init(checked width: Int, _ height: Int, _ pixels: [UInt8]) {
        (self.width, self.height, self.pixels) = (width, height, pixels)
    }

    /// Returns the image as large as it fits into `width` by `height` pixels, in its own proportions and never enlarged.
    ///
    /// Each pixel is the mean of those that it stands for.
    public func scaled(toFit width: Int, by height: Int) -> RGBImage {
        let (width, height) = (max(1, width), max(1, height))
        guard self.width > width || self.height > height else { return self }
        // The side that is cut down most decides; products of two sides fit into 64 bits.
        let isWide = self.width.multipliedFullWidth(by: height) > self.height.multipliedFullWidth(by: width)
        return isWide
            ? resampled(width, max(1, self.height * width / self.width))
            : resampled(max(1, self.width * height / self.height), height)
    }

    private func resampled(_ newWidth: Int, _ newHeight: Int) -> RGBImage {
        let columns = Self.spans(of: width, in: newWidth)
        var result: [UInt8] = []
        result.reserveCapacity(3 * newWidth * newHeight)
        for rows in Self.spans(of: height, in: newHeight) {
            for columns in columns {
                let count = rows.count * columns.count
                for color in 0..<3 {
                    var sum = count / 2
                    for row in rows {
                        for column in columns { sum += Int(pixels[3 * (row * width + column) + color]) }
                    }
                    result.append(UInt8(sum / count))
                }
            }
        }
        return RGBImage(checked: newWidth, newHeight, result)
    }

    /// The old pixels that each of the new ones stands for, on one axis; there are no more new ones than old.
    private static func spans(of length: Int, in count: Int) -> [Range<Int>] {
        (0..<count).map { $0 * length / count..<($0 + 1) * length / count }
    }
}

extension RGBImage: PersonalData {
    /// The width and the height.
    public var description: String { "image, \(width) × \(height) pixels" }
}
