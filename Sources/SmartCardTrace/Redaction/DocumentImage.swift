/// An image of a travel document, with the record around it.
enum DocumentImage {
    /// JPEG, JPEG 2000 as a file and as a codestream, PNG.
    private static let beginnings: [[UInt8]] = [
        [0xFF, 0xD8, 0xFF],
        [0x00, 0x00, 0x00, 0x0C, 0x6A, 0x50, 0x20, 0x20, 0x0D, 0x0A, 0x87, 0x0A],
        [0xFF, 0x4F, 0xFF, 0x51],
        [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A],
    ]
    /// So many bytes may stand before an image: the objects of ISO/IEC 39794-5 around it.
    private static let mostBytesBefore = 64

    /// Returns what is in place of `value`: a picture of nobody instead of the image, and zeros instead of all else that
    /// is not the form of the record.
    static func replacement(of value: [UInt8]) -> [UInt8] {
        var result = [UInt8](repeating: 0, count: value.count)
        func keep(_ place: Range<Int>) {
            let place = place.clamped(to: value.indices)
            result.replaceSubrange(place, with: value[place])
        }
        func draw(_ place: Range<Int>) {
            let place = place.clamped(to: value.indices)
            if let drawn = DrawnImage.instead(of: Array(value[place])) {
                result.replaceSubrange(place, with: drawn)
            } else {
                keep(beginning(in: value, at: place.lowerBound))
            }
        }
        if value.starts(with: "FAC\0".utf8) {
            let record = FaceRecord(value)
            record.kept.forEach(keep)
            record.images.forEach(draw)
        } else if value.starts(with: "FIR\0".utf8) || value.starts(with: "IIR\0".utf8) {
            // Finger and iris records (ISO/IEC 19794-4 and 19794-6).
            keep(0..<8)
        } else if let start = (0..<min(mostBytesBefore, value.count)).first(where: {
            !beginning(in: value, at: $0).isEmpty
        }) {
            keep(0..<start)
            draw(start..<end(ofObjectWithValueAt: start, in: value))
        }
        return result
    }

    /// Returns the place of the magic number that stands at `start`; an empty one if there is none.
    private static func beginning(in value: [UInt8], at start: Int) -> Range<Int> {
        let rest = value.dropFirst(start)
        return start..<start + (beginnings.first { rest.starts(with: $0) }?.count ?? 0)
    }

    /// Returns the end of the object whose value begins at `start`, by the length in one to four bytes before that; the
    /// end of `bytes` if there is no such length, or it is larger.
    private static func end(ofObjectWithValueAt start: Int, in bytes: [UInt8]) -> Int {
        // ISO/IEC 8825-1, 8.1.3.5, in no more bytes than the length needs.
        for count in (1...4).reversed() where start > count && bytes[start - count - 1] == 0x80 | UInt8(count) {
            let length = bytes[start - count..<start].reduce(0) { $0 << 8 | Int($1) }
            let smallest = count == 1 ? 0x80 : 1 << (8 * (count - 1))
            if length >= smallest, length <= bytes.count - start { return start + length }
        }
        return bytes.count
    }

    /// The faces of a record of ISO/IEC 19794-5:2005, 5.
    private struct FaceRecord {
        /// The headers, the lengths of the blocks, the images' formats and sizes; not sex, colors, expression, pose and
        /// feature points.
        private(set) var kept: [Range<Int>] = []
        private(set) var images: [Range<Int>] = []

        /// The record's header, the facial information, a point, the image's information (5.1).
        private static let (header, information, point, image) = (14, 20, 8, 12)

        init(_ record: [UInt8]) {
            guard record.count >= Self.header + 6 else {
                kept = [0..<4]
                return
            }
            kept = [0..<Self.header]
            let count = Int(record[12]) << 8 | Int(record[13])
            var start = Self.header
            // There is one, whatever the record says.
            for _ in 0..<max(1, count) where start + 6 <= record.count {
                let length = record[start..<start + 4].reduce(0) { $0 << 8 | Int($1) }
                let points = Int(record[start + 4]) << 8 | Int(record[start + 5])
                let details = start + Self.information + Self.point * points
                let image = details + Self.image
                let end = start + length > image ? min(start + length, record.count) : record.count
                kept += [start..<start + 6, details..<image]
                if image < end { images.append(image..<end) }
                start = end
            }
        }
    }
}
