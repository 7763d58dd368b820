import SmartCard

/// A face record of ISO/IEC 19794-5:2005: a header of 14 bytes, and blocks of faces.  All numbers have their most significant
/// byte first.
public struct FaceRecord: Hashable, Sendable {
    public let faces: [FaceImage]
    /// The bytes that the record has beyond its own length field, 0 to ``tolerance``.  A right record has none; those of
    /// some states have one, or eight.
    public let excessLength: Int
    /// The bytes after the last face, 0 to ``tolerance``.  A right record has none.
    public let trailingByteCount: Int

    /// The most bytes by which a record may be longer than it says.
    public static let tolerance = 8

    /// `FAC` and `010`, each with a zero at its end.
    private static let beginning: [UInt8] = [0x46, 0x41, 0x43, 0x00, 0x30, 0x31, 0x30, 0x00]

    /// Parses object 5F2E.
    init(_ object: TLV, in file: ElementaryFile) throws(TravelDocumentFormatError) {
        var reader = RecordReader(object.value, in: file)
        guard object.value.starts(with: Self.beginning) else {
            throw reader.error(.element(.faceRecord))
        }
        _ = try reader.take(Self.beginning.count)
        // 5.4: the length of the record, and the number of faces.
        let lengthOffset = reader.offset
        let excess = object.value.count - (try reader.number(4))
        guard (0...Self.tolerance).contains(excess) else {
            let lengths = object.value.count - Self.tolerance...object.value.count
            throw TravelDocumentFormatError(file: file, offset: lengthOffset, due: .number(lengths))
        }
        excessLength = excess
        let countOffset = reader.offset
        let count = try reader.number(2)
        guard count > 0 else {
            throw TravelDocumentFormatError(file: file, offset: countOffset, due: .number(1...0xFFFF))
        }
        var faces: [FaceImage] = []
        for _ in 0..<count { faces.append(try FaceImage(&reader)) }
        self.faces = faces
        trailingByteCount = reader.count
        guard trailingByteCount <= Self.tolerance else { throw reader.error(.end) }
    }
}

extension FaceImage {
    /// The bytes of a face information block, of an image information block, and of a feature point.
    private static let (faceLength, imageLength, pointLength) = (20, 12, 8)

    /// Takes a face: information, feature points, information about the image, and the image (5.5 to 5.8).
    fileprivate init(_ reader: inout RecordReader) throws(TravelDocumentFormatError) {
        let offset = reader.offset
        let length = try reader.number(4)
        let points = try reader.number(2)
        let gender = try reader.number(1)
        let (eyes, hair) = (try reader.byte(), try reader.byte())
        let properties = try reader.number(3)
        let expression = try reader.number(2)
        let (angle, uncertainty) = (try reader.take(3), try reader.take(3))
        _ = try reader.take(points * Self.pointLength)
        let (type, dataType) = (try reader.byte(), try reader.byte())
        let (width, height) = (try reader.number(2), try reader.number(2))
        let (colorSpace, source) = (try reader.byte(), try reader.byte())
        let (device, quality) = (try reader.number(2), try reader.number(2))
        let imageCount = length - Self.faceLength - Self.imageLength - points * Self.pointLength
        guard imageCount > 0, imageCount <= reader.count else {
            let least = length - imageCount + 1
            throw reader.error(.number(least...max(least, length - imageCount + reader.count)), at: offset)
        }
        self.init(
            image: EncodedImage(try reader.take(imageCount)), width: width == 0 ? nil : width,
            height: height == 0 ? nil : height, gender: Gender(iso19794: gender),
            information: FaceInformation(
                featurePointCount: points, eyeColor: eyes, hairColor: hair,
                propertyMask: UInt32(truncatingIfNeeded: properties),
                expression: UInt16(truncatingIfNeeded: expression), poseAngle: angle,
                poseAngleUncertainty: uncertainty, faceImageType: type, imageDataType: dataType,
                imageColorSpace: colorSpace, sourceType: source, deviceType: UInt16(truncatingIfNeeded: device),
                quality: UInt16(truncatingIfNeeded: quality)))
    }
}

extension FaceImage.Gender {
    /// ISO/IEC 19794-5, 5.5.3.
    fileprivate init?(iso19794 number: Int) {
        switch number {
        case 0x00: self = .unspecified
        case 0x01: self = .male
        case 0x02: self = .female
        case 0xFF: self = .unknown
        default: return nil
        }
    }
}

extension FaceRecord: PersonalData {
    /// The number of faces.
    public var description: String { "face record: \(faces.count) faces" }
}
