import Foundation

/// A picture as a terminal shows it, in characters and escape sequences: to be written with ``Terminal/write(_:)``.
package struct TerminalPicture {
    private let width: Int
    private let height: Int
    private let pixels: [UInt8]

    /// - Parameter pixels: three bytes a pixel, red, green and blue; the rows from top to bottom.
    package init(width: Int, height: Int, pixels: [UInt8]) {
        precondition(width > 0 && height > 0 && pixels.count == 3 * width * height)
        (self.width, self.height, self.pixels) = (width, height, pixels)
    }

    /// The picture for a terminal that shows it by `form`.
    package func text(_ form: PictureProtocol) -> String {
        switch form {
        case .kitty: kitty
        case .sixel: sixel
        }
    }

    // MARK: kitty

    /// The terminal graphics protocol of kitty: `ESC _ G keys ; payload ESC \`, several of them for a long payload.
    ///
    /// Of its keys: a=T transmits and displays, f=24 is red, green and blue, s and v are width and height, q=2 wants no
    /// answer, m=1 has more following.
    private var kitty: String {
        let payload = Array(Data(pixels).base64EncodedString().utf8)
        var text = ""
        for start in stride(from: 0, to: payload.count, by: Self.chunk) {
            let part = payload[start...].prefix(Self.chunk)
            let first = start == 0 ? "a=T,f=24,s=\(width),v=\(height),q=2," : ""
            let hasMore = part.endIndex < payload.count
            text += "\u{1B}_G\(first)m=\(hasMore ? 1 : 0);\(String(decoding: part, as: UTF8.self))\u{1B}\\"
        }
        return text
    }

    /// The longest payload of one escape sequence, in bytes; all but the last are a multiple of 4.
    private static let chunk = 4096

    // MARK: sixel

    /// Sixel graphics (DEC STD 070, chapter 9): `ESC P 0;1 q`, raster attributes, colors, bands of six rows, `ESC \`.
    ///
    /// The colors are a cube of six steps for red, green and blue; ordered dithering makes up for the others.
    private var sixel: String {
        let colors = dithered
        var text = "\u{1B}P0;1q\"1;1;\(width);\(height)"
        for color in Set(colors).sorted() {
            let steps = [color / 36, color / 6 % 6, color % 6]
            text += "#\(color);2;" + steps.map { String($0 * 20) }.joined(separator: ";")
        }
        for top in stride(from: 0, to: height, by: 6) {
            let rows = top..<min(top + 6, height)
            // Each color draws its dots from the left margin on: $ goes back there, - to the next band.
            let bands = Set(colors[rows.lowerBound * width..<rows.upperBound * width]).sorted().map { color in
                let dots = (0..<width).map { column in
                    rows.reduce(0) { $0 | (colors[$1 * width + column] == color ? 1 << ($1 - top) : 0) }
                }
                return "#\(color)" + Self.runs(of: dots)
            }
            text += bands.joined(separator: "$") + "-"
        }
        return text + "\u{1B}\\"
    }

    /// The colors of the pixels, as numbers from 0 to 215.
    private var dithered: [Int] {
        (0..<width * height).map { pixel in
            // From 1 to 31 of 32, after Bayer.
            let threshold = 2 * Self.thresholds[pixel / width % 4 * 4 + pixel % width % 4] + 1
            return pixels[3 * pixel..<3 * pixel + 3].reduce(0) { $0 * 6 + (Int($1) * 5 * 32 / 255 + threshold) / 32 }
        }
    }

    private static let thresholds = [0, 8, 2, 10, 12, 4, 14, 6, 3, 11, 1, 9, 15, 7, 13, 5]

    /// Characters for columns of six dots, bit 0 at the top; `!` and a number stand before one that is repeated.
    private static func runs(of dots: [Int]) -> String {
        var text = ""
        var rest = dots[...]
        while let first = rest.first {
            let run = rest.prefix { $0 == first }.count
            let character = String(UnicodeScalar(UInt8(0x3F + first)))
            text += run > 3 ? "!\(run)\(character)" : String(repeating: character, count: run)
            rest = rest.dropFirst(run)
        }
        return text
    }
}
