/// The restart markers of a JPEG's scan (ISO/IEC 10918-1, B.2.1 and E.1.4): their numbers run from 0 to 7 and again, and their
/// count follows from the image's size.  A scan that has lost a part of some length has lost markers, too.
enum CameraRestarts {
    private enum Marker {
        static let restarts: ClosedRange<UInt8> = 0xD0...0xD7
        static let startOfScan: UInt8 = 0xDA
        static let restartInterval: UInt8 = 0xDD
        static let endOfImage: UInt8 = 0xD9
        /// SOF0 and SOF1, whose images have one scan.
        static let sequentialFrames: ClosedRange<UInt8> = 0xC0...0xC1
    }

    /// Returns true if the image has one scan with all its restart markers, in order, one or more.
    ///
    /// - Parameter units: the number of minimum coded units.
    static func areComplete(_ bytes: [UInt8], units: Int) -> Bool {
        guard let (interval, scan) = header(bytes), interval > 0 else { return false }
        let expected = (units + interval - 1) / interval - 1
        var (count, place) = (0, scan)
        while place + 1 < bytes.count {
            defer { place += 1 }
            guard bytes[place] == 0xFF else { continue }
            let marker = bytes[place + 1]
            if marker == Marker.endOfImage { return count == expected && count > 0 }
            guard Marker.restarts ~= marker else { continue }
            guard Int(marker - Marker.restarts.lowerBound) == count % 8 else { return false }
            count += 1
        }
        return false
    }

    /// The restart interval, and the place of the first coded byte; nil for an image with more than one scan.
    private static func header(_ bytes: [UInt8]) -> (interval: Int, scan: Int)? {
        // Behind SOI.
        var (place, interval, isSequential) = (2, 0, false)
        while place + 5 < bytes.count, bytes[place] == 0xFF {
            let (marker, length) = (bytes[place + 1], Int(bytes[place + 2]) << 8 | Int(bytes[place + 3]))
            guard length >= 2 else { return nil }
            switch marker {
            case Marker.sequentialFrames: isSequential = true
            case Marker.restartInterval: interval = Int(bytes[place + 4]) << 8 | Int(bytes[place + 5])
            case Marker.startOfScan: return isSequential ? (interval, place + 2 + length) : nil
            default: break
            }
            place += 2 + length
        }
        return nil
    }
}
