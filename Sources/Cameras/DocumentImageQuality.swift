/// The quality of a document's image, in numbers that a page can show or compare.
///
/// The image is first made smaller by a whole number, so that its longer side has 1,280 pixels at most: the same document
/// has about the same numbers whatever the camera.
public struct DocumentImageQuality: Hashable, Sendable {
    /// The sharpness: 0 for a surface without any detail, 0.5 at the border between blurred and readable, towards 1 for
    /// crisp print.
    ///
    /// It is *v* / (*v* + 100), where *v* is the variance of the Laplacian within the document's rectangle, in squares of
    /// 1/255 (Pech-Pacheco and others, Diatom autofocusing in brightfield microscopy, 2000).
    public let sharpness: Double
    /// The share of the document's rectangle that is lost in light: pixels of 250 or more of 255; 0 is best.
    public let glare: Double
    /// The document's share of the image: the area of the rectangle around nearly all strong edges; 0 if there are none.
    public let coverage: Double

    /// Measures a gray image; nil if `gray` is not one byte for each pixel, or a side has fewer than 3 pixels.
    ///
    /// - Parameters:
    ///   - gray: one byte a pixel, 0 for black, the rows from top to bottom without padding.
    ///   - width: the width in pixels.
    ///   - height: the height in pixels.
    public init?(gray: [UInt8], width: Int, height: Int) {
        let (area, overflow) = width.multipliedReportingOverflow(by: height)
        guard width >= 3, height >= 3, !overflow, gray.count == area else { return nil }
        let image = GrayImage(gray, width, height).reduced()
        let document = image.document()
        let rectangle = document ?? (0..<image.width, 0..<image.height)
        let variance = image.laplacianVariance(rectangle)
        sharpness = variance / (variance + 100)
        glare = image.saturation(rectangle)
        let covered = document.map { $0.columns.count * $0.rows.count } ?? 0
        coverage = Double(covered) / Double(image.width * image.height)
    }
}

/// A gray image, and what is measured on it.
private struct GrayImage {
    typealias Rectangle = (columns: Range<Int>, rows: Range<Int>)

    let pixels: [UInt8]
    let width: Int
    let height: Int

    init(_ pixels: [UInt8], _ width: Int, _ height: Int) {
        (self.pixels, self.width, self.height) = (pixels, width, height)
    }

    /// Each pixel is the mean of the square that it stands for; spare columns and rows at the end are left out.
    func reduced() -> GrayImage {
        let factor = (max(width, height) + 1279) / 1280
        guard factor > 1, width / factor >= 3, height / factor >= 3 else { return self }
        let (newWidth, newHeight) = (width / factor, height / factor)
        var sums = [Int](repeating: 0, count: newWidth * newHeight)
        pixels.withUnsafeBufferPointer { pixels in
            for row in 0..<newHeight * factor {
                let (from, to) = (row * width, row / factor * newWidth)
                for column in 0..<newWidth * factor { sums[to + column / factor] += Int(pixels[from + column]) }
            }
        }
        return GrayImage(sums.map { UInt8($0 / (factor * factor)) }, newWidth, newHeight)
    }

    /// The rectangle around strong edges, without the outermost two-hundredth of them on each side, which may be dirt; nil
    /// without edges.
    func document() -> Rectangle? {
        var columns = [Int](repeating: 0, count: width)
        var rows = [Int](repeating: 0, count: height)
        pixels.withUnsafeBufferPointer { pixels in
            for row in 1..<height - 1 {
                for column in 1..<width - 1 {
                    let here = row * width + column
                    let across = abs(Int(pixels[here + 1]) - Int(pixels[here - 1]))
                    let down = abs(Int(pixels[here + width]) - Int(pixels[here - width]))
                    if across + down >= Self.strongEdge {
                        columns[column] += 1
                        rows[row] += 1
                    }
                }
            }
        }
        guard let columns = Self.middle(columns), let rows = Self.middle(rows) else { return nil }
        return (columns, rows)
    }

    /// A change of brightness over two pixels that print and the border of a document have.
    private static let strongEdge = 40

    /// The places between which 99 hundredths of all are, and one more on each side.
    private static func middle(_ counts: [Int]) -> Range<Int>? {
        let spare = counts.reduce(0, +) / 200
        guard counts.contains(where: { $0 > 0 }) else { return nil }
        func place(_ indices: some Sequence<Int>) -> Int {
            var seen = 0
            for index in indices {
                seen += counts[index]
                if seen > spare { return index }
            }
            return 0
        }
        let first = max(0, place(counts.indices) - 1)
        let last = min(counts.count - 1, place(counts.indices.reversed()) + 1)
        return first..<last + 1
    }

    func laplacianVariance(_ rectangle: Rectangle) -> Double {
        var (sum, squares, count) = (0, 0, 0)
        pixels.withUnsafeBufferPointer { pixels in
            for row in rectangle.rows.clamped(to: 1..<height - 1) {
                for column in rectangle.columns.clamped(to: 1..<width - 1) {
                    let here = row * width + column
                    let value =
                        Int(pixels[here - 1]) + Int(pixels[here + 1]) + Int(pixels[here - width])
                        + Int(pixels[here + width]) - 4 * Int(pixels[here])
                    sum += value
                    squares += value * value
                    count += 1
                }
            }
        }
        guard count > 0 else { return 0 }
        let mean = Double(sum) / Double(count)
        return max(0, Double(squares) / Double(count) - mean * mean)
    }

    func saturation(_ rectangle: Rectangle) -> Double {
        var count = 0
        pixels.withUnsafeBufferPointer { pixels in
            for row in rectangle.rows {
                for column in rectangle.columns where pixels[row * width + column] >= 250 { count += 1 }
            }
        }
        return Double(count) / Double(rectangle.columns.count * rectangle.rows.count)
    }
}
