import SmartCard

@testable import TravelDocument

/// Returns the bytes of a listing: hexadecimal digits, text in quotation marks, and comments from `#` to the end of a line.
func listing(_ text: String) throws -> [UInt8] {
    var bytes: [UInt8] = []
    for line in text.split(separator: "\n") {
        let code = line.prefix { $0 != "#" }
        for (index, part) in code.split(separator: "\"", omittingEmptySubsequences: false).enumerated() {
            bytes += index % 2 == 1 ? Array(part.utf8) : try hex(String(part))
        }
    }
    return bytes
}

/// Files of ICAO 9303-10, appendix A, of nobody, and some made by hand.  // TEST
enum ParsingFixtures {
    /// A.1: version 1.7, Unicode 4.0.0, with DG1, DG2, DG4 and DG12.
    static let com = """
        60 16
        5F01 04 "0107"      # LDS version
        5F36 06 "040000"    # Unicode version
        5C 04 61 75 76 6C   # data groups
        """

    /// A.2.1: a card.
    static let dg1TD1 = """
        61 5D
        5F1F 5A
        "I<NLDXI85935F86999999990<<<<<<"
        "7208148F1108268NLD<<<<<<<<<<<4"
        "VAN<DER<STEEN<<MARIANNE<LOUISE"
        """

    /// The specimen of 9303-4, appendix B.
    static let dg1TD3 = """
        61 5B
        5F1F 58
        "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<"
        "L898902C36UTO7408122F1204159ZE184226B<<<<<10"
        """

    /// The specimen of 9303-6, appendix A.
    static let dg1TD2 = """
        61 4B
        5F1F 48
        "I<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<"
        "D231458907UTO7408122F1204159<<<<<<<6"
        """

    /// A record of ISO/IEC 19794-5 with two faces, in the template of A.3, whose header is 28 bytes long, and not 26.
    static let dg2Old = """
        75 81A6
        7F61 81A2
        02 01 01                    # templates
        7F60 819B
        A1 28                       # header
        80 02 0101                  # version
        81 01 02                    # type
        83 07 20020315133000        # creation
        85 08 2002040120070331      # validity
        86 04 00010001              # creator
        87 02 0101                  # owner
        88 02 0008                  # format
        5F2E 6E                     # data
        46414300 30313000 0000006E 0002   # FAC, 010, length, faces
        00000036 0002 02 03 04 000006 0001 0A0B0C 010203   # block, points, gender, eyes, hair, mask, expression, pose
        01 C1 0065 0078 0000         # feature point 12.1: left eye
        01 C2 00C8 0078 0000         # feature point 12.2: right eye
        01 00 019D 0213 01 02 0003 0064   # type, data type, width, height, color space, source, device, quality
        FFD8FFE00010                # image
        0000002A 0000 00 00 00 000000 0000 000000 000000
        02 01 00F0 0140 02 00 0000 0000
        0000000C6A5020200D0A        # image
        """

    /// A block of ISO/IEC 39794-5.
    static let dg2New = """
        75 56
        7F61 53
        02 01 01
        7F60 4D
        A1 0E
        81 01 02
        82 01 00
        87 02 0101
        88 02 002A
        7F2E 3A
        A1 38
        65 36                        # FaceImageDataBlock
        A0 07 80 01 03 81 02 07E3    # version: generation 3 of 2019
        A1 2B                        # representations
        30 29
        80 01 00                     # representationId
        A1 1B A0 19 A0 17            # image: base, two dimensions
        80 04 FFD8FFE0               # representationData2D
        A1 0F                        # information
        A0 03 80 01 02               # format: JPEG
        A7 08 80 02 019C 81 02 0210  # size
        A8 07 A0 05 A1 03 80 01 03   # metadata: gender, female
        """

    /// A.4, with an image of 8 bytes.
    static let dg5 = """
        65 0E
        02 01 01
        5F40 08 FF4FFF51002F0000
        """

    static let dg7 = """
        67 19
        02 01 02
        5F43 04 FFD8FFDB
        5F43 0C 0000000C6A5020200D0A870A
        """

    /// A.5, with the lengths that its elements have: the listing's 63 and 0E are wrong.
    static let dg11 = """
        6B 60
        5C 0A 5F0E 5F11 5F42 5F12 5F13
        5F0E 0D "SMITH<<JOHN<J"
        5F11 0A "ANYTOWN<MN"
        5F42 17 "123 MAPLE RD<ANYTOWN<MN"
        5F12 0B "16125551212"
        5F13 0C "TRAVEL<AGENT"
        """

    /// All other elements; a date that is packed; a name in ISO/IEC 8859-1.
    static let dg11All = """
        6B 6C
        5C 13 5F0E A0 5F10 5F2B 5F12 5F14 5F15 5F16 5F17 5F18
        5F0E 0D "M" DC "LLER<<BJ" D6 "RN"         # ISO/IEC 8859-1
        A0 0F 02 01 02 5F0F 03 "A<B" 5F0F 03 "C<D"   # other names
        5F10 04 "1234"
        5F2B 04 19660000                          # only the year is known
        5F12 00
        5F14 02 "DR"
        5F15 03 "A<B"
        5F16 04 FFD8FFE0
        5F17 07 "X1<Y2<Z"
        5F18 02 "C" C3
        5F9901 00                                 # of no standard
        """

    /// As Chinese passports have it: 5F0F without a template.
    static let dg11China = """
        6B 1B
        5C 04 5F0E 5F0F
        5F0E 06 E8B5B5 E5BDAC
        5F0F 09 "ZHAO<<BIN"
        """

    static let dg12 = """
        6C 72
        5C 12 5F19 5F26 5F1A 5F1B 5F1C 5F1D 5F1E 5F55 5F56
        5F19 06 "UTOPIA"
        5F26 08 "20170905"
        A0 15 02 01 01 5F1A 0F "SMITH<<BRENDA<P"
        5F1B 08 "SEE<PAGE"
        5F1C 04 "NONE"
        5F1D 04 FFD8FFE0
        5F1E 04 FF4FFF51
        5F55 07 20161115013612
        5F56 06 "N-4962"
        """

    static let dg13 = "6D 05 01 FF 00 5F 80"

    /// A.6.
    static let dg16 = """
        70 81A2
        02 01 02
        A1 4C
        5F50 08 "20020101"
        5F51 10 "SMITH<<CHARLES<R"
        5F52 0B "19525551212"
        5F53 1D "123 MAPLE RD<ANYTOWN<MN<55100"
        A2 4F
        5F50 08 "20020315"
        5F51 0D "BROWN<<MARY<J"
        5F52 0B "14155551212"
        5F53 23 "49 REDWOOD LN<OCEAN BREEZE<CA<94000"
        """

    /// ICAO 9303-11, G.1: ECDH with generic mapping; and a key with a point that is on no curve.
    static let dg14 = """
        6E 3B
        31 39
        30 12 060A04007F00070202040202 020102 02010D
        30 23 060904007F000702020102    # id-PK-ECDH
        30 16 30 0C 060704007F00070102 02010C 03 06 00 04 A1B2C3D4
        """

    /// A key of RSA, as short as none is.
    static let dg15 = """
        6F 1E
        30 1C
        30 0D 06092A864886F70D010101 0500
        03 0B 00
        30 08 0203 00A1B2 020103
        """

    static let all: [(file: ElementaryFile, listing: String)] = [
        (.com, com), (.dataGroup(1), dg1TD1), (.dataGroup(1), dg1TD2), (.dataGroup(1), dg1TD3),
        (.dataGroup(2), dg2Old), (.dataGroup(2), dg2New), (.dataGroup(5), dg5), (.dataGroup(7), dg7),
        (.dataGroup(11), dg11), (.dataGroup(11), dg11All), (.dataGroup(11), dg11China), (.dataGroup(12), dg12),
        (.dataGroup(13), dg13), (.dataGroup(14), dg14), (.dataGroup(15), dg15), (.dataGroup(16), dg16),
    ]
}
