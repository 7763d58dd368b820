import EMVContactless
import SmartCard
import TestSupport
import Testing

/// Contactless transactions with Mastercard test cards as they were published along with other projects: certificates of
/// Mastercard's test keys, and a signature of CDA.
///
/// The cryptograms and numbers that the signatures carry were recomputed with Python's `pow` and `hashlib`.
@Suite struct Kernel2PublishedTests {
    struct Published: CustomTestStringConvertible {
        let testDescription: String
        let date: (Int, Int, Int)
        /// Application Interchange Profile.
        let profile: String
        /// The records that are read, by their file; the first is the one that is signed.
        let records: [(sfi: UInt8, bytes: String)]
        /// The values that were sent for PDOL and CDOL1.
        let options: String
        let cdol1: String
        let unpredictableNumber: String
        /// The response to GENERATE AC.
        let response: String
        let information: UInt8
        let cryptogram: String
        let dynamicNumber: String

        var card: Card {
            var card = Card(
                aid: "A0000000041010", environment: .test, date: date, objects: [0x82: profile],
                records: records.prefix(1).map { ($0.sfi, bytes($0.bytes)) })
            for record in records {
                guard let template = try? TLVList(bytes(record.bytes)).first else { continue }
                for object in template.children { card.objects[object.tag] = Array(object.value).hex }
            }
            return card
        }

        func verified(
            changing place: Int? = nil
        ) throws -> Result<SignedCryptogram, AuthenticationFailure> {
            var data = bytes(options + cdol1)
            if let place { data[bytes(options).count + place] ^= 1 }
            return try card.iccKey().get().cda(
                response: bytes(response), transactionData: data, unpredictableNumber: bytes(unpredictableNumber))
        }
    }

    static let all = [
        // MohamedHassanNasr/emv, mock/mock-msc-offline.json: TC; its PDOL asks for the operator of data storage.
        Published(
            testDescription: "mock-msc-offline", date: (2019, 8, 19), profile: "5980",
            records: [
                (
                    2,
                    """
                    7081BC57125413339000001513D20122010000000000005A0854133390000015135F24032012315F25030601015F2802
                    02505F3401018C279F02069F03069F1A0295055F2A029A039C019F37049F35019F45029F4C089F34039F21039F7C148D
                    12910A8A0295059F37049F4C089F02069F03068E0A00000000000000001F039F0702FF009F080200029F0D05F8406420
                    009F0E0500108800009F0F05F86064F8009F420209789F51039F37049F5B0CDF6008DF6108DF6201DF63A09F4A0182
                    """
                ),
                (
                    3,
                    """
                    7081C08F01F39F3201039224EFF4A554A084A829B0D6D5ACCC34B84C262B32436ABDAC9899308D51E57C83DF6908C389
                    90819021EC0FC6E1810DFEEA26545127494B40F5F12FA8670877C4B47516BBCD67EDF5F0652B437B4D3E4E83999E7B82
                    45E2A18A7968E7C3E1C16B5609036E65E0F4AF2C4383AF19F1679DD59726C5D315B21967F5A3E526E645724B61F4C8AB
                    CE98BEB8DF1FD64237DBE356B1F96C73EBA3206AAA4C818518E58E17F0E4265A0A5D7E2196E983C6DA78FC5C73F64E6F
                    3AFF5A
                    """
                ),
                (
                    4,
                    """
                    70219F4701039F481AD529BCACA7F9ECEADE85990F1E04FEAE9FA033DF691268F9F2D5
                    """
                ),
                (
                    4,
                    """
                    7081949F4681904D05000EBF47E8F9F2A66D769CC1D3AA7E2A888A697ABBBB611053557FDC98597AB433CFD325942F12
                    69892B4F1009547AE0A5BDB85442CA10D2167FFDA67995F357770F370DB60035F32F3F01F353EC26DC83C36F32B18848
                    363C64EAECDDE93E2770E66CBC14E530FDD7A036B88270366383E9C95EF44C9B640C93B6181F6DB4756B140BE65BE084
                    E7C379F0060DFD
                    """
                ),
            ],
            options: "00000000000000006000F00001",
            cdol1: """
                0000000000010000000000000056000000000109781908190033BCA47D26000000000000000000001F03020000000000
                000000000000000000000000000000000000
                """,
            unpredictableNumber: "33BCA47D",
            response: """
                7781AA9F2701409F360202E09F4B81804D0605626698777BCC72E20DBE5C631C1372FB8B3EAB4DC8B06EFB7FE253A527
                000B8D7887C300232BC4849ED7DEAF3C6B260464190EF085B9663A0437C1FEA159F7F7C03F80D8A5CE5A52C8AE0BD702
                A94E84FE5D06B2DFAF3DA0750F3D5E5B0FAEC66A83DBEEDF22BAAD53FFD220F314A8C12A646C4BFDB296D71A0065B28F
                9F101A2210904203A400000000000000024355FFFF00000000000000FF
                """,
            information: 0x40, cryptogram: "49C27A9F8E4BF538", dynamicNumber: "AB803A04B0BCA313"),
        // MohamedHassanNasr/emv, mock/mock-msc-online.json: ARQC; the signed record holds account and sequence number alone.
        Published(
            testDescription: "mock-msc-online", date: (2020, 3, 16), profile: "5980",
            records: [
                (2, "700E5A0854133300896010345F340101"),
                (
                    2,
                    """
                    70819357115413330089601034D2512201909750000F5F2002202F5F24032512315F25030401018C219F02069F03069F
                    1A0295055F2A029A039C019F37049F35019F45029F4C089F34038D0C910A8A0295059F37049F4C088E0C000000000000
                    000042031F039F0702FFC09F080200029F0D0500000000009F0E0500000000009F0F0500000000009F4A01825F280208
                    269F42020826
                    """
                ),
                (
                    3,
                    """
                    7081A08F01FA9F3201039204D3524107908190970FDC6A8B038CC7BFF1EE7716D4D6BBD0A1DC8DDAB66EE86F6B5639B5
                    83FDBB34E01A807D9D35B94D7F4382C6773BF7754372504194C740BDAA61DDAF23BA9F8F5444B16146CECABB38E89150
                    DDEBD093DEE0EB8F23F4F5B96A5190692B818CF48E56C3B3A821ADC2AD24584976CED73593B6FD9F03C0D952B67B1298
                    EA3470D57DC95F626C8002D62F26F5A64EC1ED
                    """
                ),
                (
                    4,
                    """
                    70219F4701039F481A0000000000000006600000000000000000000000000000000055
                    """
                ),
                (
                    4,
                    """
                    70739F46708D7E6CA72CAED69F665BF515E56B9DC30FBD6A1D20AA05C0479A00850B8F4175F2CDBDA187475674E7C9CE
                    7ADD85896CE0B4A632F9AAE4881E9BEE59269BAFC027BD825390FA8B5D949AEA14313EB025DB34CC1D9AF9E980F261D8
                    AA32C7BEDF2027BD77335555FD4C8504D8703EA453
                    """
                ),
            ],
            options: "",
            cdol1: """
                00000000900000000000000000560000040001084020031600ABABABAB2200000000000000000000020300
                """,
            unpredictableNumber: "ABABABAB",
            response: """
                7781819F2701809F360200529F4B60762F1D0A5B81419A5481ECD0391DE135B95C99931B05C68FD1B6B7720CBCE92AA1
                B5B90441A3E91E3B20DFEE7A25385DD101B63779050598388CEA5E10E953A70F655BCB6308D396B8B4DA51F5DD6DCD63
                21E2783E3F8363ED657961F18E759C9F10120110A040002C0000000000000000000007FF
                """,
            information: 0x80, cryptogram: "675B759BB5350F8C", dynamicNumber: "B39C5522F9D77FAD"),
        // MohamedHassanNasr/emv, mock/mock-msc-offline-2.json: an ARQC where a TC was asked for.  Keys of 1008 and 992 bits,
        // lengths in more bytes than they need, zeros between the objects of the signed record.
        Published(
            testDescription: "mock-msc-offline-2", date: (2019, 8, 19), profile: "0180",
            records: [
                (
                    3,
                    """
                    7081FB00000000000000005F24810349123100000000000000005A8108541333900000151300000000000000008C810E
                    95059F02069F34039F33039F370400000000000000008E810A0000000000000000000000000000000000009F0D810500
                    0000000000000000000000009F0E8105000000000000000000000000009F0F8105000000000000000000000000009F4A
                    81018200000000000000009F078102FFFF0000000000000000009F428102099700000000000000009F44810101000000
                    00000000005F25810310123100000000000000005F3481010100000000000000009F088102000200000000000000005F
                    2881020056000000000000000000
                    """
                ),
                (4, "70038F01F8"),
                (
                    4,
                    """
                    7081AB9F320103922249656AE43F494BFA143C075B1E08B7C349F2B590324D03088E4537C6D0D9A6108BF790818004A2
                    5FC9C69B0FC069A776CE3F268FC5BB41E59E41923ED3EDAE18D23D587C0D217DDDB15117A2582A321AAEA46C8BA94D65
                    80E6BB544891A59EA2E40FF5A627760B7F2D28DFFC0E6828DE41701408FAE021A5C9F9C7C0DAC145D0A440EFA66DDFDA
                    4E38D01FE812294EF2BE4E0573797CAF483A85111A37EA782FBAAF3CCC0D
                    """
                ),
                (
                    4,
                    """
                    7081B09F4701039F4828744084A499FAF96FEFC6CC54F8CFAF51D432F1D2273C9B50D1B0D8F91EA17F1B373FFDC0E1E9
                    F82F9F467E532330050B2684EF8A33DDE035C4C12D25ABF52FBC20C86913DA55395DE974A17B3D2269D7221802ED647F
                    028550FD175A566D8AB0B174B24155F1C174F8B2CA8692349CF798C6C4B0D3E9CD8C28E643430E6760939C44E69D294D
                    C3D2E9E2CDD6823E7D1B3E7C1819E3C4FAD18476CFC2512F87E75E8F2A8F2A460AC35B
                    """
                ),
            ],
            options: "00000000001000000800",
            cdol1: "00000000010000000000103F0000000808DC868126",
            unpredictableNumber: "DC868126",
            response: """
                7781889F2701809F360200029F4B7C64E379E4A354CF97F2F73C66715745B7C75D67B840C907CF661EEED4E089508018
                D709D4366A5F904698555EA50124290E89B4F734C6A36D4405CF6E08AD7A1FCB9D551025F40B6D055DEEE80870CC2E1F
                6272C76ECAE33CCD5FC2846DDDB3EBD8BC0909DD9EA58C28FE046E90BFF507344F1A31302A4A4AE1DF2057
                """,
            information: 0x80, cryptogram: "AC123456789ABCDE", dynamicNumber: "D0987654"),
        // binaryfoo/emv-bertlv, an early DecodeControllerTest.java, testContactless: TC.  Its last record is not published;
        // the certificate and the record that it signs are those of the card's contact application, which has the same key
        // (testContactMastercard).  For that it cannot be played to the kernel.  Nor could it with the record: its reader knew
        // no relay resistance, and has 00 for the last byte of the TVR, 01 today, in what the card signs.
        Published(
            testDescription: "emv-bertlv", date: (2012, 3, 15), profile: "5900",
            records: [
                (
                    2,
                    """
                    70818F5A0854133300896000445F24031412315F25030401015F280200565F3401018C219F02069F03069F090295055F
                    2A029A039C019F37049F35019F45029F4C089F34038D0C910A8A0295059F37049F4C088E0C00000000000000005E031F
                    039F0702FF009F080200029F0D0500000000009F0E0500000000009F0F0500000000009F420209789F4A0182DF4F0312
                    3456
                    """
                ),
                (
                    3,
                    """
                    7081FB9081F87AF7C3297510E795704B4B34BB1526EB953FE7BEE08DBF08DFBA056AA42FC726BC03373A319DDC6197E2
                    F5B333401AE3E4BBFC5044D245BDDEBEA146994132D939D72E8E05CC958856DFCB33B26427812955B09F7A7A68AAAB6B
                    8326AD2929082569DA040BD286F2F20A759E62683995D4B840655342C8088FA18806C2290992665A45EC16AC6FE4B0FA
                    664FC644B7B485CD4612B2967B846A9482DB7D16E9F9A3A8295CE5D2B91718180F1E86E67E8E2275EB2116E651BD91AA
                    C49D80D6E64DEB54977258465C09274DD7D232A98CD80C76458CEAAA2B0A414EE7A1B8899E6361B098307EBE5E87F31C
                    41B0A32B248CF6DA9849810C4955
                    """
                ),
                (
                    4,
                    """
                    703E8F01EF9F47030100019F32030100019F482A8F9498797B9DE111BF5EB97EF1820BA654E4867F09D6BB41BCB1E4FB
                    3E9D287ABD6703191813473127079200
                    """
                ),
                (
                    5,
                    """
                    7081949F46819017ABB31427EFF0CCB678959F291C175BFE42581839603AFBC34866F84966C11B29CD0B67A4E9D4EAC1
                    F18CC1BE25D8D102BF4DEE486E5FCEECB731F347D57FD11BC96DD9CBA154C2140EDD69B0E1A18953255A3F91B6D4FB06
                    E885702B958EBA99714609FB40B881A0A69BC3112008BCA9BBF55E1544E6F2D95ECB9C8656FB498767B5EAD58171B32E
                    C40A536D52906C
                    """
                ),
            ],
            options: "",
            cdol1: """
                000000001000000000000000000200000000000036120315000000AFDC22000000000000000000001F0300
                """,
            unpredictableNumber: "0000AFDC",
            response: """
                7781B29F2701409F360200349F4B81906C9EC67BEF69A00E98F8ED96AAA2B945519E1348C78346B07D7650A9C2CC7176
                11C69EDDBEFCAAF91FDEB09ABA2675CF430CCB0BAF0CAA8D8E18B9919790607847591970153565F65B33383C87571626
                69799D346B265B58421DD20E8109F5074AFB1B13B3A64D3470D8CC9E68342C8AAC238687B850EBEB260CB9F010AC4BD0
                F81C990026929974382077B103AD0C659F10120110904009248400000000000000000028FF
                """,
            information: 0x40, cryptogram: "302BA00AF80ED0F4", dynamicNumber: "89A4A069F53D478A"),
    ]

    @Test(arguments: all) func publishedSignature(_ published: Published) throws {
        let signed = try published.verified().get()
        expectEqual(signed.cryptogramInformationData, published.information)
        expectEqual(signed.applicationCryptogram.hex, published.cryptogram)
        expectEqual(signed.dynamicData.iccDynamicNumber.hex, published.dynamicNumber)
        #expect(signed.dynamicData.rest.isEmpty)
    }

    /// The last digit of the amount, which comes first in CDOL1, is another.
    @Test(arguments: all) func publishedAmountChanged(_ published: Published) throws {
        try expectEqual(
            published.verified(changing: 5),
            .failure(AuthenticationFailure(.signedDynamicData, .transactionData)))
    }

    /// Another profile is not the one that the card's certificate covers.
    @Test(arguments: all) func publishedProfileChanged(_ published: Published) {
        var card = published.card
        card.objects[0x82] = "5981"
        expectEqual(card.iccKey(), .failure(AuthenticationFailure(.iccCertificate, .hash)))
    }

    // MARK: With the kernel

    /// A transaction that was published with all that the card answered.
    ///
    /// That of emv-bertlv is none: without its last record there is no certificate for the record that it signs.
    struct Replay: Sendable, CustomTestStringConvertible {
        let published: Published
        /// What the FCI has besides its name, and in BF0C.
        let fci: String
        var discretionary = ""
        let amount: UInt64
        /// What the terminal was set to, as far as the commands show it.
        let data: [String: String]
        /// The answers to GET PROCESSING OPTIONS and READ RECORD.
        var answers: [String]
        let commands: [String]
        let kind: Outcome.Kind
        let cvm: Outcome.CVM
        /// FF8105, in the order of Book C-2, table 4.7 (unchecked, see Rules/kernel2.txt).  What neither card nor commands have
        /// is the terminal's: 9F09, which is 0002 by default, and 9F33.
        let dataRecord: String

        var testDescription: String { published.testDescription }

        func run(_ amount: UInt64) throws -> Kernel2Bench.Run {
            var bench = Kernel2Bench()
            (bench.fci, bench.discretionary, bench.amount, bench.hour) = (fci, discretionary, amount, 0)
            (bench.data, bench.keys) = (data, .published)
            let (year, month, day) = published.date
            bench.date = [year - 2000, month, day].map { $0 < 10 ? "0\($0)" : "\($0)" }.joined()
            bench.unpredictableNumber = published.unpredictableNumber
            return try bench.run((answers + [published.response]).map { bytes($0).hex.answered })
        }
    }

    static let replays = [
        Replay(
            published: all[0],
            fci: "50 0A 4D 61 73 74 65 72 43 61 72 64  9F 38 06  9F 5C 08  9F 40 05",
            discretionary: "9F 5E 09 54 13 33 90 00 00 15 13 01  9F 5D 03 01 01 00  9F 4D 02 0B 0A", amount: 1,
            data: ["9F1A": "0056", "9F35": "26", "9F40": "6000F00001"],
            answers: ["77 16  82 02 59 80  94 10 08 01 01 00  10 01 01 01  18 01 02 00  20 01 02 00"]
                + all[0].records[..<2].map(\.bytes) + [
                    // The signature for static data authentication, which Kernel 2 has not.
                    """
                    70819393819071E2614A46A3A653425C29A168FF718379C8B3F82DACDA4F781A07D57E239AF9713892F17DA70EF9DCD3
                    1051D9EB4E352EF0ACE7D820DFA75A4D0FB0237D01F361FC290EBAFF1DF1696899FAB7D9E478B7AC58212D04328E2E88
                    76D1723D250E6186CAFC8338F8FDBA8E19ADF72A84E549892967A1549DD4ACB133ACB2A791A68E1A2ABFF20FCB278F93
                    14C03FE60CD5
                    """
                ] + all[0].records[2...].map(\.bytes),
            commands: [
                "80A800000F830D00000000000000006000F0000100", "00B2011400", "00B2011C00", "00B2021C00", "00B2012400",
                "00B2022400", "80AE500042" + bytes(all[0].cdol1).hex + "00",
            ],
            kind: .approved, cvm: Outcome.CVM.none,
            dataRecord: """
                9F0206 000000000001  9F0306 000000000000  9F2608 49C27A9F8E4BF538  5F2403 201231  8202 5980
                500A 4D617374657243617264  5A08 5413339000001513  5F3401 01  9F3602 02E0  9F0702 FF00  9F0902 0002
                9F2701 40  9F3403 1F0302  8407 A0000000041010
                9F101A 2210904203A400000000000000024355FFFF00000000000000FF  9F3303 E00808  9F1A02 0056  9F3501 26
                9505 0000000001  5712 5413339000001513D2012201000000000000  5F2A02 0978  9A03 190819  9C01 00
                9F3704 33BCA47D
                """),
        // The reader drops bit 7 of the CVM code (contactless_k2.h, process_cvm_selection): CVM Results are 020300 where the book
        // has 420300.  The record with the CVM list is not signed, and has 02 for 42 here.
        Replay(
            published: all[1],
            fci: """
                50 09 4D 43 20 43 52 45 44 49 54  5F 2D 08 65 6E 66 72 65 73 64 65  87 01 01  9F 11 01 01
                9F 12 0A 4D 41 53 54 45 52 43 41 52 44
                """,
            discretionary: "9F 4D 02 0B 0A", amount: 90_00, data: ["9F1A": "0056", "5F2A": "0840"],
            answers: [
                "77 16  82 02 59 80  94 10 08 01 01 00  10 01 02 01  18 01 02 00  20 01 02 00",
                all[1].records[0].bytes, all[1].records[1].bytes.replacing("42031F03", with: "02031F03"),
                all[1].records[2].bytes,
                // The signature for static data authentication.
                """
                7072937082465FAEEBF34F2AA29923378B47DB8C2F29CE64951319862F3C6B70D7B4152169E3D8C06F547B7E1C128F47
                DE2FC1ED5EE3C22EFB818D353E3D2AB972527AE3CF2FE9AE2E80974E5E42E9D97BBFEC2678EB2189112255B378B0DC7C
                398A80913303B6FA106820963E1FCAE5C7B8012D
                """,
            ] + all[1].records[3...].map(\.bytes),
            commands: [
                "80A8000002830000", "00B2011400", "00B2021400", "00B2011C00", "00B2021C00", "00B2012400", "00B2022400",
                "80AE90002B" + bytes(all[1].cdol1).hex + "00",
            ],
            kind: .onlineRequest, cvm: .onlinePIN,
            dataRecord: """
                9F0206 000000009000  9F0306 000000000000  9F2608 675B759BB5350F8C  5F2403 251231  8202 5980
                5009 4D4320435245444954  5A08 5413330089601034  5F3401 01  9F120A 4D415354455243415244  9F3602 0052
                9F0702 FFC0  9F0902 0002  9F2701 80  9F3403 020300  8407 A0000000041010
                9F1012 0110A040002C0000000000000000000007FF  9F1101 01  9F3303 E06008  9F1A02 0056  9F3501 22
                9505 0000040001  5711 5413330089601034D2512201909750000F  5F2A02 0840  9A03 200316  9C01 00
                9F3704 ABABABAB
                """),
        Replay(
            published: all[2],
            fci: """
                87 01 01  50 0A 4D 61 73 74 65 72 43 61 72 64  5F 2D 06 65 6E 64 65 66 72  9F 11 01 01
                9F 38 08  9F 02 06  9F 33 03  9C 01
                """,
            amount: 10, data: ["9F1A": "0056", "DF8117": "00"],
            answers: ["77 0E  82 02 01 80  94 08 18 01 02 01  20 01 03 00", all[2].records[0].bytes, "70 00"]
                + all[2].records[1...].map(\.bytes),
            commands: [
                "80A800000C830A0000000000100000080000", "00B2011C00", "00B2021C00", "00B2012400", "00B2022400",
                "00B2032400", "80AE500015" + all[2].cdol1 + "00",
            ],
            kind: .onlineRequest, cvm: Outcome.CVM.none,
            dataRecord: """
                9F0206 000000000010  9F0306 000000000000  9F2608 AC123456789ABCDE  5F2403 491231  8202 0180
                500A 4D617374657243617264  5A08 5413339000001513  5F3401 01  9F3602 0002  9F0702 FFFF  9F0902 0002
                9F2701 80  9F3403 3F0000  8407 A0000000041010  9F1101 01  9F3303 000808  9F1A02 0056  9F3501 22
                9505 0000000001  5F2A02 0978  9A03 190819  9C01 00  9F3704 DC868126
                """),
    ]

    /// The commands are those that were published, byte for byte, the signature of their answer holds, and the data record is
    /// what the answers and commands have.
    @Test(arguments: replays) func replayed(_ replay: Replay) throws {
        let run = try replay.run(replay.amount)
        expectEqual(run.commands, replay.commands)
        expectEqual(run.outcome.kind, replay.kind, "\(run.outcome.reason)")
        expectEqual(run.outcome.isAuthentic, true)
        expectEqual(run.outcome.cvm, replay.cvm)
        expectEqual(run.outcome.dataRecord?.encoded.hex, bytes(replay.dataRecord).hex)
    }

    /// Another amount is not the one that was signed.
    @Test(arguments: replays) func replayedWithAnotherAmount(_ replay: Replay) throws {
        let run = try replay.run(replay.amount + 1)
        #expect(run.outcome.kind == .endApplication && run.outcome.isAuthentic == false, "\(run.outcome.reason)")
        #expect(run.error == "00020000001C" && run.outcome.dataRecord == nil)
    }

    /// With the card's own list, CVM Results name the method as that does, 42 (Book C-2, 7.5).  The card has signed 02, and so its
    /// answer does not hold for this terminal.
    @Test func replayedWithTheCardsOwnList() throws {
        var replay = Self.replays[1]
        replay.answers[2] = replay.published.records[1].bytes
        let run = try replay.run(replay.amount)
        let last = try #require(replay.commands.last)
        #expect(last.hasSuffix("02030000"))
        let commands: [String] = replay.commands.dropLast() + ["\(last.dropLast(8))42030000"]
        expectEqual(run.commands, commands)
        expectEqual(run.outcome.isAuthentic, false, "\(run.outcome.reason)")
    }

    /// Mag-stripe mode: the early DecodeControllerTest.java of emv-bertlv, testMagStripe.  No digit of either number goes into
    /// the tracks, and so COMPUTE CRYPTOGRAPHIC CHECKSUM has zeros.
    @Test func publishedMagStripe() throws {
        var bench = Kernel2Bench()
        bench.fci = "50 0A 49 44 33 35 31 20 76 31 20 31"
        bench.discretionary = "5F 50 04 74 6F 74 6F"
        (bench.date, bench.amount) = ("12 03 15", 10_00)
        let run = try bench.run(
            "77 0A  82 02 00 00  94 04 08 01 01 00  90 00",
            """
            70 81 83  9F 6C 02 00 01  9F 62 06 00 00 00 00 00 07  9F 63 06 00 00 00 00 00 00
                56 33 42 35 34 31 33 33 33 30 30 35 36 30 30 33 35 31 31 5E 43 55 53 54 20 49 4D 50 20 4D 43 20 33 35 31 2F 5E
                      31 34 31 32 31 30 31 30 36 37 37 35 30 35 30 30
                9F 64 01 00  9F 65 02 00 07  9F 66 02 00 00
                9F 6B 11 54 13 33 00 56 00 35 11 D1 41 21 01 06 77 50 50 0F  9F 67 01 00
                9F 68 0E 00 00 00 00 00 00 00 00 5E 03 42 03 1F 03
            90 00
            """,
            "77 0F  9F 61 02 01 F5  9F 60 02 01 F5  9F 36 02 00 0B  90 00")
        expectEqual(run.commands, ["80A8000002830000", "00B2010C00", "802A8E80040000000000"])
        expectEqual(run.outcome.kind, .onlineRequest, "\(run.outcome.reason)")
        // 501 in the last three digits, and there, last, the number of digits: none.
        expectEqual(run[record: 0x9F6B], "5413330056003511D1412101067750500F")
    }
}
