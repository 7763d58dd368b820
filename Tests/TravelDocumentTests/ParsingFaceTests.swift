import SmartCard
import TestSupport
import Testing

@testable import TravelDocument

/// DG2: ICAO 9303-10, 4.7.2, with records of ISO/IEC 19794-5 and blocks of ISO/IEC 39794-5.
@Suite struct ParsingFaceTests {
    @Test("A record of ISO/IEC 19794-5 with two faces: feature points are skipped by their number")
    func old() throws {
        let group = try EncodedFaces(parsing: listing(ParsingFixtures.dg2Old))
        let template = try #require(group.templates.first)
        // 9303-10, A.3
        let header = template.header
        #expect(header.version == [1, 1] && header.biometricType == [2] && header.biometricSubtype == nil)
        #expect(header.creationTime?.hex == "20020315133000" && header.validityPeriod?.hex == "2002040120070331")
        #expect(header.creator == [0, 1, 0, 1] && header.formatOwner == 0x0101 && header.formatType == 0x0008)

        guard case .iso19794(let record) = template.encoding else {
            Issue.record("not a face record")
            return
        }
        #expect(record.excessLength == 0 && record.trailingByteCount == 0 && record.faces.count == 2)
        let face = record.faces[0]
        #expect(face.image.bytes.hex == "FFD8FFE00010" && face.image.format == .jpeg)
        #expect(face.width == 413 && face.height == 531 && face.gender == .female)
        let information = try #require(face.information)
        #expect(information.featurePointCount == 2 && information.eyeColor == 3 && information.hairColor == 4)
        #expect(information.propertyMask == 6 && information.expression == 1)
        #expect(information.poseAngle == [10, 11, 12] && information.poseAngleUncertainty == [1, 2, 3])
        #expect(information.faceImageType == 1 && information.imageDataType == 0 && information.imageColorSpace == 1)
        #expect(information.sourceType == 2 && information.deviceType == 3 && information.quality == 100)
        #expect(record.faces[1].image.bytes.hex == "0000000C6A5020200D0A" && record.faces[1].image.format == .jp2)
        #expect(record.faces[1].width == 240 && record.faces[1].height == 320)
        #expect(record.faces[1].gender == .unspecified && group.faces == record.faces)
    }

    @Test("A block of ISO/IEC 39794-5")
    func new() throws {
        let group = try EncodedFaces(parsing: listing(ParsingFixtures.dg2New))
        #expect(group.templates.count == 1 && group.templates[0].header.formatType == 0x002A)
        let face = try #require(group.faces.first)
        #expect(group.faces.count == 1 && face.image.bytes.hex == "FFD8FFE0" && face.image.format == .jpeg)
        #expect(face.width == 412 && face.height == 528 && face.gender == .female && face.information == nil)
    }

    /// A block with this image representation and metadata.
    private func block(_ information: String, _ metadata: String) throws -> [UInt8] {
        let image = try TLVTag(0xA1).encode(
            TLVTag(0xA0).encode(TLVTag(0xA0).encode(hex("80 03 FFD8FF") + TLVTag(0xA1).encode(hex(information)))))
        let representation = try TLVTag(0x30).encode(hex("80 01 00") + image + hex(metadata))
        let block = try TLVTag(0x65).encode(hex("A0 00") + TLVTag(0xA1).encode(representation))
        let template = try TLVTag(0x7F60).encode(
            hex("A1 08 87 02 0101 88 02 002A") + TLVTag(0x7F2E).encode(TLVTag(0xA1).encode(block)))
        return try TLVTag(0x75).encode(TLVTag(0x7F61).encode(hex("02 01 01") + template))
    }

    @Test("The gender may be a choice's code, as the base standard has it, and elements to come are skipped")
    func choices() throws {
        for (code, gender) in [(0, FaceImage.Gender.unknown), (1, .other), (2, .male), (3, .female)] {
            let metadata = "A8 05 A0 03 80 01 0\(code)"
            try expectEqual(EncodedFaces(parsing: block("A0 03 80 01 02", metadata)).faces[0].gender, gender)
        }
        try expectEqual(EncodedFaces(parsing: block("", "A8 05 A0 03 80 01 09")).faces[0].gender, nil)
        let face = try EncodedFaces(parsing: block("A7 09 80 03 00FFFF 81 02 0010 BF 22 00", "A8 00 BF 21 02 80 00"))
            .faces[0]
        #expect(face.width == 65_535 && face.height == 16 && face.gender == nil)
    }

    @Test("A number that is negative or too large is refused", arguments: ["80 01 FF", "80 03 010000", "80 00"])
    func numbers(_ width: String) throws {
        let size = try TLVTag(0xA7).encode(hex(width + "81 01 01")).hex
        let bytes = try block(size, "")
        #expect(throws: TravelDocumentFormatError.self) { try EncodedFaces(parsing: bytes) }
    }

    /// A template around a record with this many bytes after it, which says that it is this much shorter.
    private func record(claiming difference: Int, trailing: Int) throws -> [UInt8] {
        let face = try hex("00000023 0000 010000 000000 0000 000000 000000 01 00 0001 0001 01 02 0000 0000 FFD8FF")
        let count = 14 + face.count + trailing
        let length = [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: (count - difference) >> $0) }
        let record = try hex("46414300 30313000") + length + [0, 1] + face + [UInt8](repeating: 0, count: trailing)
        let template = try TLVTag(0x7F60).encode(
            hex("A1 08 87 02 0101 88 02 0008") + TLVTag(0x5F2E).encode(record))
        return try TLVTag(0x75).encode(TLVTag(0x7F61).encode(hex("02 01 01") + template))
    }

    @Test("A record that is longer than it says, by eight bytes at most, is read, and told")
    func lengths() throws {
        for (difference, trailing) in [(0, 0), (1, 0), (8, 0), (8, 8), (0, 8), (1, 1)] {
            let template = try EncodedFaces(parsing: record(claiming: difference, trailing: trailing)).templates[0]
            guard case .iso19794(let record) = template.encoding else {
                Issue.record("not a face record")
                continue
            }
            #expect(record.excessLength == difference && record.trailingByteCount == trailing)
            expectEqual(record.faces.map(\.image.bytes.hex), ["FFD8FF"])
        }
        for (difference, trailing) in [(-1, 0), (9, 0), (0, 9), (9, 9)] {
            #expect(throws: TravelDocumentFormatError.self) {
                try EncodedFaces(parsing: record(claiming: difference, trailing: trailing))
            }
        }
    }
}
