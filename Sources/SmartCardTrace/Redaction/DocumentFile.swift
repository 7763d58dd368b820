import SmartCard

/// The files of a travel document (ICAO 9303-10, 4), and the objects in them that redaction replaces.
///
/// A file may be cut off anywhere.  Its first object tells which it is.
struct DocumentFile {
    /// The way an object's value is replaced, by one of the same length.
    enum Treatment: Equatable {
        /// The value stays as it is.
        case none
        case zeros(TraceEvent.RedactedItem)
        /// Letters by `X`, digits by 0.
        case text
        /// By 1970-01-01.
        case date
        /// By the zone of nobody.
        case zone
        /// By a drawn one of the same format and size; by zeros behind its beginning where that cannot be drawn.
        case image
    }

    /// The objects of a file.
    private struct Row {
        /// The treatment of these objects and of all inside them, …
        var objects: [TLVTag: Treatment] = [:]
        /// … that of other primitive objects, …
        var others: Treatment = .zeros(.document)
        /// … the constructed objects that stay as they are, by the tags from the first object to them, …
        var kept: [TLVTag] = []
        /// … and the primitive object that holds others.
        var opened: [TLVTag] = []
    }

    /// Biometric templates: the header tells versions, types and the format (ICAO 9303-10, 4.7.2), not creator and dates.
    private static let biometric = Row(objects: [
        0x02: .none, 0x80: .none, 0x81: .none, 0x82: .none, 0x87: .none, 0x88: .none,
        0x5F2E: .image, 0x7F2E: .image,
    ])
    private static let portrait = Row(objects: [0x02: .none, 0x5F40: .image, 0x5F43: .image])
    /// Details of the holder and of the document.
    private static let details = Row(
        objects: [
            0x02: .none, 0x5C: .none,
            0x5F2B: .date, 0x5F26: .date, 0x5F55: .date, 0x5F50: .date,
            0x5F16: .image, 0x5F1D: .image, 0x5F1E: .image,
        ], others: .text)
    /// Security infos: public keys are bit strings.
    private static let publicKeys = Row(objects: [0x03: .zeros(.document)], others: .none)

    /// Signed data (RFC 5652, 5.1).  With a digest of a file, a guess of what is in it can be checked; with a signature, a
    /// guess of the digests.  The certificates are those of the issuer.
    private static func signed(behind root: [TLVTag]) -> Row {
        Row(
            objects: [0x04: .zeros(.certificate), 0x03: .zeros(.document), 0x17: .text, 0x18: .text], others: .none,
            kept: root + [0x30, 0xA0, 0x30, 0xA0], opened: root + [0x30, 0xA0, 0x30, 0x30, 0xA0, 0x04])
    }

    private static let files: [TLVTag: Row] = [
        0x60: Row(others: .none),  // EF.COM: versions and a list of tags
        0x61: Row(objects: [0x5F1F: .zone, 0x4F: .none, 0x50: .none]),  // DG1, and EF.DIR
        0x75: biometric, 0x63: biometric, 0x76: biometric,  // DG2 face, DG3 fingers, DG4 irises
        0x65: portrait, 0x67: portrait,  // DG5, DG7
        0x6B: details, 0x6C: details, 0x70: details,  // DG11, DG12, DG16
        0x6E: publicKeys, 0x6F: publicKeys, 0x31: publicKeys,  // DG14, DG15, EF.CardAccess
        0x77: signed(behind: [0x77]), 0x30: signed(behind: []),  // EF.SOD, EF.CardSecurity
    ]

    /// An object whose value is replaced.
    struct Object {
        /// The file's first tag, and the object's own.
        let file: TLVTag
        let tag: TLVTag
        /// The place of the value; its end may be missing.
        let place: Range<Int>
        let treatment: Treatment
    }

    private let bytes: [UInt8]
    private(set) var objects: [Object] = []

    init(_ bytes: [UInt8]) {
        self.bytes = bytes
        read(bytes.indices, behind: [])
    }

    /// The date of nobody: eight digits and the time.
    private static let date = Array("19700101000000".utf8)

    /// Returns the value in place of that of `object`.
    func replacement(of object: Object) -> [UInt8] {
        let value = bytes[object.place]
        switch object.treatment {
        case .none: return Array(value)
        case .zone: return DocumentZone(value)?.masked ?? Self.text(value)
        case .text: return Self.text(value)
        case .date:
            let packed = stride(from: 0, to: Self.date.count, by: 2).map {
                Self.date[$0] << 4 | Self.date[$0 + 1] & 0x0F
            }
            let date = value.count > packed.count ? Self.date : packed
            return date.prefix(value.count) + [UInt8](repeating: 0, count: max(0, value.count - date.count))
        case .zeros: return value.map { _ in 0 }
        case .image: return DocumentImage.replacement(of: Array(value))
        }
    }

    private static func text(_ value: ArraySlice<UInt8>) -> [UInt8] {
        let isText = value.allSatisfy { $0 >= 0x20 }
        return value.map { isText ? DocumentText.masked($0) : 0 }
    }

    // MARK: Objects

    /// Reads the objects at `place`, inside those with the tags `path`.
    private mutating func read(_ place: Range<Int>, behind path: [TLVTag]) {
        var next = place.lowerBound
        while next < place.upperBound {
            // Some chips fill a file up.
            guard bytes[next] != 0 || !path.isEmpty else {
                next += 1
                continue
            }
            let file = path.first
            guard path.count < TLVList.maximumDepth, objects.count < TLVList.maximumCount,
                let (tag, value) = header(at: next, before: place.upperBound),
                let row = Self.files[file ?? tag]
            else {
                add(file ?? 0, 0, next..<place.upperBound, .zeros(.document))
                return
            }
            let here = path + [tag]
            if let treatment = row.objects[tag], here != row.opened {
                add(file ?? tag, tag, value, treatment)
            } else if tag.isConstructed || here == row.opened {
                if here != row.kept { read(value, behind: here) }
            } else {
                add(file ?? tag, tag, value, row.others)
            }
            next = value.upperBound
        }
    }

    private mutating func add(_ file: TLVTag, _ tag: TLVTag, _ place: Range<Int>, _ treatment: Treatment) {
        guard treatment != .none, !place.isEmpty else { return }
        objects.append(Object(file: file, tag: tag, place: place, treatment: treatment))
    }

    /// Returns the tag at `start`, and the place of its value up to `end`; nil if they are not there whole.
    private func header(at start: Int, before end: Int) -> (tag: TLVTag, value: Range<Int>)? {
        var rest = bytes[start..<end]
        guard let first = rest.popFirst() else { return nil }
        var tag = UInt32(first)
        if first & 0x1F == 0x1F {
            repeat {
                guard tag <= 0xFF_FFFF, let next = rest.popFirst() else { return nil }
                tag = tag << 8 | UInt32(next)
            } while tag & 0x80 != 0
        }
        guard let length = rest.popFirst() else { return nil }
        guard length >= 0x80 else {
            return (TLVTag(rawValue: tag), rest.startIndex..<rest.startIndex + min(Int(length), rest.count))
        }
        let count = Int(length & 0x7F)
        // Without a length the object ends nobody knows where.
        guard (1...4).contains(count), rest.count >= count else { return nil }
        let value = rest.prefix(count).reduce(0) { $0 << 8 | Int($1) }
        rest = rest.dropFirst(count)
        return (TLVTag(rawValue: tag), rest.startIndex..<rest.startIndex + min(value, rest.count))
    }
}

/// An image in its record, and what is kept of them.
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

    /// Returns the record with a drawn image; zeros stand for all else that is not kept.
    static func replacement(of value: [UInt8]) -> [UInt8] {
        let (kept, image) = parts(of: value)
        var new = [UInt8](repeating: 0, count: value.count)
        for place in kept {
            new.replaceSubrange(place.clamped(to: value.indices), with: value[place.clamped(to: value.indices)])
        }
        guard let image, let drawn = DrawnImage.replacement(for: value[image]) else { return new }
        new.replaceSubrange(image, with: drawn)
        return new
    }

    /// Returns the places in `value` that stay, and that of the image.
    ///
    /// Of a face record (ISO/IEC 19794-5:2005, 5) this is the header, the lengths of the face's block and the image's
    /// format and size, but not sex, colors, expression, pose and feature points.
    private static func parts(of value: [UInt8]) -> (kept: [Range<Int>], image: Range<Int>?) {
        if value.starts(with: "FAC\0".utf8) {
            guard value.count >= 20, let length = value.dropFirst(14).number(4) else { return ([0..<4], nil) }
            let points = Int(value[18]) << 8 | Int(value[19])
            let information = 34 + 8 * points
            let start = information + 12
            let end = min(14 + length, value.count)
            return (
                [0..<20, information..<start, beginning(in: value, at: start)], start < end ? start..<end : nil
            )
        }
        // Finger and iris records (ISO/IEC 19794-4 and 19794-6).
        if value.starts(with: "FIR\0".utf8) || value.starts(with: "IIR\0".utf8) { return ([0..<8], nil) }
        guard
            let start = (0..<min(mostBytesBefore, value.count)).first(where: {
                !beginning(in: value, at: $0).isEmpty
            })
        else { return ([], nil) }
        return ([0..<beginning(in: value, at: start).upperBound], start..<end(of: start, in: value))
    }

    /// Returns the end of the object whose value begins at `start`, by the length before it (ISO/IEC 8825-1, 8.1.3.5), or
    /// that of `value`.
    private static func end(of start: Int, in value: [UInt8]) -> Int {
        for count in 1...4 where start > count + 1 && value[start - count - 1] == 0x80 | UInt8(count) {
            if let length = value[(start - count)...].number(count), length <= value.count - start {
                return start + length
            }
        }
        return value.count
    }

    /// Returns the place of the magic number that stands at `start`; an empty one if there is none.
    private static func beginning(in value: [UInt8], at start: Int) -> Range<Int> {
        let rest = value.dropFirst(start)
        return start..<start + (beginnings.first { rest.starts(with: $0) }?.count ?? 0)
    }
}
