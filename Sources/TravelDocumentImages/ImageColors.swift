/// The way from the components of a codestream to red, green and blue.
struct ImageColors {
    private enum Model { case gray, rgb, ycc }

    private let model: Model
    /// The components that are colors, in the colors' order, by their numbers.
    private let colors: [(number: Int, component: Codestream.Component)]

    init(_ file: JP2File, _ components: [Codestream.Component]) throws(ImageError) {
        if file.colorSpace == .cmyk { throw .unsupported(.cmyk) }
        var numbers = file.channels.filter { $0.type == 0 && $0.color > 0 }.sorted { $0.color < $1.color }
            .map(\.component)
        // Without definitions the colors come first; a second or fourth component is opacity.
        if file.channels.isEmpty { numbers = Array(components.indices.prefix(components.count < 3 ? 1 : 3)) }
        guard !numbers.isEmpty, numbers.allSatisfy(components.indices.contains) else {
            throw .damaged("channels without a component")
        }
        let isColored = numbers.count >= 3 && file.colorSpace != .gray
        colors = numbers.prefix(isColored ? 3 : 1).map { ($0, components[$0]) }
        // As OpenJPEG's programs have it: where nothing is said, fewer samples of the second color mean that it is chroma.
        let isSubsampled = isColored && colors[1].component.dx > colors[0].component.dx
        model = !isColored ? .gray : file.colorSpace == .sYCC || file.colorSpace == nil && isSubsampled ? .ycc : .rgb
    }

    /// - Parameter samples: the samples of all components, each with the rows from top to bottom.
    func image(_ samples: [[Int32]]) -> RGBImage {
        let grid = colors[0].component
        let planes = colors.map { $0.component.plane(samples[$0.number], on: grid) }
        var pixels: [UInt8] = []
        pixels.reserveCapacity(3 * planes[0].count)
        for index in planes[0].indices {
            switch model {
            case .gray: pixels.append(contentsOf: repeatElement(planes[0][index], count: 3))
            case .rgb: for plane in planes { pixels.append(plane[index]) }
            case .ycc:
                let (y, cb, cr) = (planes[0][index], planes[1][index], planes[2][index])
                pixels.append(contentsOf: Self.rgb(Double(y), Double(cb) - 128, Double(cr) - 128))
            }
        }
        return RGBImage(checked: grid.columns.count, grid.rows.count, pixels)
    }

    /// IEC 61966-2-1, annex F: sYCC with the coefficients of ITU-R BT.601.
    private static func rgb(_ y: Double, _ cb: Double, _ cr: Double) -> [UInt8] {
        [y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb].map {
            UInt8(min(max($0, 0), 255).rounded())
        }
    }
}

extension Codestream.Component {
    /// Returns the samples as numbers of 8 bits, one for each sample of `grid`; the nearest where there are fewer.
    fileprivate func plane(_ samples: [Int32], on grid: Self) -> [UInt8] {
        let places = grid.columns.map { Self.place($0 * grid.dx / dx, in: columns) }
        let most = 1 << depth - 1
        let zero = isSigned ? 1 << (depth - 1) : 0
        var plane: [UInt8] = []
        plane.reserveCapacity(grid.columns.count * grid.rows.count)
        for row in grid.rows {
            let start = Self.place(row * grid.dy / dy, in: rows) * columns.count
            for place in places {
                let sample = min(max(Int(samples[start + place]) + zero, 0), most)
                plane.append(UInt8((sample * 255 + most / 2) / most))
            }
        }
        return plane
    }

    /// The index of the sample at `position`, or of the nearest that there is.
    private static func place(_ position: Int, in range: Range<Int>) -> Int {
        min(max(position, range.lowerBound), range.upperBound - 1) - range.lowerBound
    }
}
