import EMVContactless
import SmartCard
import TestSupport
import Testing

/// Certificates and signatures of cards that other projects publish with their tests, with what EMV Book 2 makes of them.
///
/// The account numbers are published test values of those projects.  Modules, dynamic numbers and codes were recomputed
/// with Python's `pow` and `hashlib`, but for the two moduli, which emv-utils states.
@Suite("Offline data authentication: published cards")
struct OfflineAuthenticationPublishedTests {
    // MARK: A Mastercard: emv-tools, src/emv_dda.c and src/emv_cl_cda.c; Proxmark3, client/src/emv/test/

    static let mastercardIssuerCertificate = """
        1714284F763B8586EE6D319951F7E63FA25076E50DC9D3200BA998D3A052ADBA9AB69AC6AD6ADD3CE09F0278F4074EC4
        EE9B1D2268A3E953575E454E50CD860BF424C51C597712D2AA057089DD8673E51B1E1D7188034892077AC18A6AE23488
        BEA9DF3B1A83F2C0800CD7C5CDF2FDE0496F7BC39FB4BF363299BFA637B2EC33C507E36821EEC2075F0E420D38A1C9F3
        127261BA316C987674FADB20EA7FEB75EE455D12146EA6F02E8B01EC2FA7A115
        """

    static let mastercardIssuerRemainder = """
        6E63B7BC70ABDD09341B34C03286BA9BD83BA7936C5B7798FB22C5E53FF240A26DBD6415
        """

    static let mastercardIccCertificate = """
        A42FBEB156B98DCB0554DA062ADCA5309A91F04FA2C7BD7102A8D73F16A3CFADE8AADF4F3FE2A2125CCDD77C6B9F78B5
        B4371CE0805725B0F9C027AF147D91E1FFDB201E9C170CE777053A172AD526DCAFD33895E1A947305C5B167F2E7C6F99
        1581A652EE473154760C2ED774214E50DFECDD4CF294C974B89EBCA25B5AB3C0BEB50DFAF782AFDE1433D90CA2A89D65
        1E75D67EBC7C3E36F5A165EE6132612939C1ECD399E46074B996D93A88E01E0A
        """

    static let mastercardDda = """
        3D87F31056102D2512CFDE30900627C1263A76D1DAA821F50831E606C54544C258131EAEBE874DCB1A28CF82D3FF9111
        8260BC91113711D3B289FA41BE69C7A7B5C783E6F8F97FCE13F08B13FA44183E3718CEBF0C41473D2B0FF4DE44B6A02D
        75ADB6D4962393FFDF4E69026CDF38FF
        """

    static let mastercardCda = """
        1C009FC48679157DBFF45F65D33FF78D4FCBF0CF5EA4208D107AE95AA38C546D0E5A18B87403A12BD447A8BBFC1E49CE
        0B2E251389205703C9BB1A88CC79F1DDC2F9841EADF07CE07B62511DDC93DF59F28F0E91F92332D29CDEF2BCCB100885
        0500EF3E470A4CB18CD91AA5C1A108F3
        """

    static let mastercardRecord = """
        5F25031405015F24031506305A0852858812543456535F3401018E0C00000000000000001E031F039F0702FF009F0D05
        BC50BC00009F0E0500000000009F0F05BC70BC98009F4A01825F280206438C219F02069F03069F1A0295055F2A029A03
        9C019F37049F35019F45029F4C089F34038D0C910A8A0295059F37049F4C08
        """

    static let mastercardCdol1Data = """
        000000000000000000000000064300000000000643140925501234577923000000000000000000001E0300
        """

    static let mastercardCard = Card(
        aid: "A0000000041010", environment: .live, date: (2014, 9, 25),
        objects: [
            0x8F: "05", 0x90: mastercardIssuerCertificate, 0x92: mastercardIssuerRemainder, 0x9F32: "03",
            0x9F46: mastercardIccCertificate, 0x9F47: "03", 0x9F4A: "82", 0x82: "3900", 0x5A: "5285881254345653",
        ],
        records: [(1, TLVTag(0x70).encode(bytes(mastercardRecord)))])

    @Test("DDA: the dynamic number of a published Mastercard")
    func dda() throws {
        let key = try Self.mastercardCard.iccKey().get()
        expectEqual(key.modulus.count, 112)
        expectEqual(key.serialNumber.hex, "345653")
        expectEqual(key.issuerKey.serialNumber.hex, "006EE2")
        expectEqual(key.issuerKey.caIndex, 0x05)
        let data = try key.dda(bytes(Self.mastercardDda), terminalData: [0, 0, 0, 0]).get()
        expectEqual(data.iccDynamicNumber.hex, "7A33FB8C9546E1E7")
        #expect(data.rest.isEmpty)
        expectEqual(
            key.dda(bytes(Self.mastercardDda), terminalData: [0, 0, 0, 1]),
            .failure(AuthenticationFailure(.signedDynamicData, .hash)))
    }

    @Test("CDA: the cryptogram of a published Mastercard")
    func cda() throws {
        let key = try Self.mastercardCard.iccKey().get()
        let information = bytes("9F270140"), counter = bytes("9F36020010")
        let signature = TLVTag(0x9F4B).encode(bytes(Self.mastercardCda))
        let issuerData = bytes("9F1012 00109040012200000000000000000000 00FF")
        let data = try key.cda(
            response: TLVTag(0x77).encode(information + counter + signature + issuerData),
            transactionData: bytes(Self.mastercardCdol1Data), unpredictableNumber: bytes("12345779")
        ).get()
        expectEqual(data.dynamicData.iccDynamicNumber.hex, "4CC2FB1FAFB30915")
        expectEqual(data.cryptogramInformationData, 0x40)
        expectEqual(data.applicationCryptogram.hex, "16AFBA13C52FB173")
        #expect(data.dynamicData.rest.isEmpty)
        // The same objects in another order are another transaction.
        expectEqual(
            key.cda(
                response: TLVTag(0x77).encode(counter + information + signature + issuerData),
                transactionData: bytes(Self.mastercardCdol1Data), unpredictableNumber: bytes("12345779")),
            .failure(AuthenticationFailure(.signedDynamicData, .transactionData)))
    }

    // MARK: A Visa card with SDA: emv-tools, src/emv_sda.c

    static let visaIssuerCertificate = """
        3C5FEAD4DD7BCA44F93E90C44F76EDE54A3288ECDC78469FCB1225C03B2C04F2C2F412281A0822DF14649230989FB149
        4070DAF8C9534A7881960148616ACE581788120D3506ACE4CEE564FB27EE53341C22F0B45B31873D05DE545EFE33BCD2
        9B2185D035A806AD08C6976F3505A19999930CA8A03EFA321C486061F7DCEC9F
        """

    static let visaIssuerRemainder = """
        1EBCA30F00CE5962A8C6E130544B82891B236C65DE29317F364735DEE63F6598975835D5
        """

    static let visaSignedStaticData = """
        99A558B62B674AA5E7D2A57E5EF6A6F2258E5DA052D05B54E5C115FF1CECF94AA2DF8F39A01D71C619EB819DA52EF381
        E84979586AEA7855FFBEF40AA3A71CD3B04CFDF270AEC8158A2797F24FD613B748134661135CD290E45B04A8E0CCC711
        AE042F159E73C89C2A7E65A4C2FD1D6106024AA27130B0ECEC0238F91659DE96
        """

    static let visaRecord = """
        5F24030812315A0842765500132345995F3401019F0702FF009F0D05D040ACA8009F0E0500100000009F0F05D068BCF8
        00
        """

    @Test("SDA: the data authentication code of a published Visa card")
    func sda() throws {
        var card = Card(
            aid: "A0000000031010", environment: .live, date: (2008, 12, 31),
            objects: [
                0x8F: "01", 0x90: Self.visaIssuerCertificate, 0x92: Self.visaIssuerRemainder, 0x9F32: "03",
                0x93: Self.visaSignedStaticData, 0x9F4A: "82", 0x82: "5C00", 0x5A: "4276550013234599",
            ],
            records: [(1, TLVTag(0x70).encode(bytes(Self.visaRecord)))])
        let data = try card.sda().get()
        expectEqual(data.dataAuthenticationCode.hex, "3132")
        expectEqual(data.issuerKey.serialNumber.hex, "0042B3")
        card.objects[0x82] = "5C01"
        expectEqual(card.sda(), .failure(AuthenticationFailure(.signedStaticData, .hash)))
        // The issuer's certificate is valid to the last day of September 2012, the CA key to that of 2009.
        card.objects[0x82] = "5C00"
        card.date = (2010, 1, 1)
        expectEqual(card.sda(), .failure(AuthenticationFailure(.caPublicKey, .expired)))
    }

    // MARK: Issuer keys shorter than their certificates: emv-utils, tests/emv_rsa_test.c and emv_rsa_cda_test.c

    static let visa94Certificate = """
        665CD65C20DEAE638C7320EA011E5E2B33FC5070FF7D153D74FE9A01ABFF0B9587B3779C524577F8A57C19923B39CD3F
        5CCDD457D360DC2619CDBB94328777BB905E1CB79E280458F60C8C5593EFD22D6385512B11B7F2EAFE1184CF9066B9B4
        7A0BF832045066359AE465473D31B9F830A6DE7D88E969CB456033F8073BEC512205920E3DEA773D3E36E1F46C2E8BDD
        C423FB675CA1710A3D0A06E9C7570919735190BD6ED65BD5EF92C0416BFE4094EA96A218013838EF337151A8BE7222DC
        F0717399553C4DDA16EBABB2DD386A07BDF313D970C1324CAAB885067691E3EE5E5D8B912799BD53C8E1830237E9EC0A
        9254D80B2BD3622C
        """

    static let visa94Modulus = """
        DDD9039ACC0BB00E8D6C1A11BD78C055758C5AB4CC6A3735A23DDFCF16A8F7BA72B7060FD4A77A8F6CA5FB4F11300A67
        1BF14DF26647DCB2DC1D018A78D0F7CBCA854ECB03D32BEECEDFA849256CCB4B0392F3CC36B838EBFD244C11C58EF44E
        D63196E6CD55E0AC7BCA87ED2CC4F475DC9999BA88BA0E00FA860D7763996ED8A01701E2AC0D285B1198FC8485AADF04
        3FAA3848ED869D6EB3D970F4AC08A97474278842C85584E34B6FACC07207BC41
        """

    static let mastercardF1Certificate = """
        3312205B0EFA6715BA18134BB2168A9CA250D268853506D925DD72B2A2E0CF107518DE182F0089B255B7D70A189D9085
        9E741E7D79BB5D36339B16D9B1508DDBC35E2A3008B923E14417A42E86D3AD0A1AD6DBB394E7BC0BA812F3D4971412DE
        4997C8B34BA93F3CE0F5AE27E0A052DB57CD7595C467E831041AC2DBEC91E2EC8D27D4EABAA31322B769415B550B8B18
        E3B05B32CAE7813AB21D8F3B2BFF3741C6AD967AE694800F5B24A20EF78013E4
        """

    static let mastercardF1Modulus = """
        99903295DA9DFA7CB84E664E6500E48A5A1D2EDD3F460BE4AD52066435A644C5A803AE5B829C31B21E81889869BF98D7
        3D9A126F222AC762298808EA0AFB94B33D8FE26AF363FAEACC3B1557CF31F7CCC996E430EA74F6936993C37F638538C0
        75039AD3A8BAF26E44D25FADD3524107
        """

    @Test("Issuer public keys without a remainder, or with an empty one")
    func issuerKeys() throws {
        var visa = Card(
            aid: "A0000000031010", environment: .test, date: (2025, 5, 6),
            objects: [0x8F: "94", 0x90: Self.visa94Certificate, 0x9F32: "03", 0x5A: "4761739001010119"])
        try expectEqual(visa.issuerKey().get().modulus, bytes(Self.visa94Modulus))
        try expectEqual(visa.issuerKey().get().serialNumber.hex, "03DA0A")
        visa.objects[0x92] = ""
        try expectEqual(visa.issuerKey().get().modulus, bytes(Self.visa94Modulus))
        let mastercard = Card(
            aid: "A0000000041010", environment: .test, date: (2025, 5, 6),
            objects: [
                0x8F: "F1", 0x90: Self.mastercardF1Certificate, 0x92: "", 0x9F32: "03", 0x5A: "5413330089020011",
            ])
        try expectEqual(mastercard.issuerKey().get().modulus, bytes(Self.mastercardF1Modulus))
    }

    // MARK: A card of a test scheme: emvpt, emvpt/test_data.yaml and scheme_ca_public_keys_test.yaml

    static let emvptModulus = """
        BF08CA64EA24B2644772CA60DAE61A68DE449A1F43503A1025103BDE7487FF2D60E23AF37400BBB6A8075C79EB38D775
        ED5F251E15268128CA152DC5F33E017F14AE11FA2E07298F559387F4F47997DB09AEE867712E56545825C4B12A197C8A
        BE68E7E24A20B8717453733D0BF12F3CF8AA89CB9BD07A2468B6132410C1E62FD1DFEC2C5D7C35B5475C520783E01E54
        9F4C44DECBC2A0587763851738E4CAF22EB0E8747DBF828C2207FECE8460030F
        """

    static let emvptIssuerCertificate = """
        2008FB40DDA89999AF873A0D9BAB158D5ACE11344FE38F72053CC5ECCFE496BBA58B37D669BAB2CEAF937F329735E027
        41E7122C832BE33CD1AA38D27CDACCED8B02F0EA231C7C6BCBF8239ECF2C11954B407D58E9A689AB22DFC998022A179F
        AFC619ABC5AB237C68410239129395575E623F4F8BA8380A3907ACF42009B8C3D30FD10FBB91B13DC014B619BA584CE0
        B9AC6FB1D3A4A74503F690887F111313D010A3A7117E8C04448746D3AAF888EA
        """

    static let emvptIssuerRemainder = """
        5FCEA152B4D9EC9791BF309672FA51AFA9562D1C0B333ED61A5A200040C3B50A46023B89
        """

    static let emvptIccCertificate = """
        91C03DC4327245674861B329C2F2E0DA6369686ECBF86A201DA147C52F3896C34A91B667856AD1699C6F41D880CF621C
        C246F37AA3677181BFBE9B97F8BE98F76F832D3C5B4E2FB6ACC0A0CF11D1E328998237961EB24D27B81DC699DE8359B1
        0748EF82808DBD515A1709297B51D9F23BB6DBB75680544E6A8E18BEEF2D68FBB59CB84E773AFAC2613AD1661620F39C
        105D8D66C0D2D5260963122D9AFA2B908FFCFB796B3A12D3CB9A8D0E4A432471
        """

    static let emvptRecord = """
        70505F24031811305A0812345600123456085F3401019F0702FF808E1400000000000000000201440341031E0302031F
        009F0D05B8483C98009F0E0500108000009F0F05B8483C98005F280202469F4A0182
        """

    static let emvptDda = """
        4E82E28C9C2D78932A318A8EC2F981EDEC93E0725054BF24FEFFC741FED65BFBE7AD1E9CA5DAF9765C0A42974394A009
        B6C13BE904A40E5B83FBB7CE56F71CA26B6B0E68EEA473C2CE76C156E4E0EB6732B449DE0783FD7AEA8629145BE3A06A
        A5ADC6A800B1FB5A245E1D7A4AA77EEF97946BD5D0AAB0487D6818E3FD8B3FDF
        """

    @Test("DDA: a card of a scheme that only its own CA key is known for")
    func ownScheme() throws {
        // The checksum as sha1sum gives it.
        let authority = try CAPublicKey(
            environment: .test, rid: bytes("AFFFFFFFFF"), index: 0x92, modulus: bytes(Self.emvptModulus),
            exponent: [3], checksum: bytes("FF00B2519E8AAD5A9BA60318039C5ED4C84472B9"))
        var card = Card(
            aid: "AFFFFFFFFF1234", environment: .test, date: (2020, 7, 24),
            objects: [
                0x8F: "92", 0x90: Self.emvptIssuerCertificate, 0x92: Self.emvptIssuerRemainder, 0x9F32: "03",
                0x9F46: Self.emvptIccCertificate, 0x9F47: "03", 0x9F4A: "82", 0x82: "3C00", 0x5A: "1234560012345608",
            ],
            records: [(3, bytes(Self.emvptRecord))])
        expectEqual(card.iccKey(), .failure(AuthenticationFailure(.caPublicKey, .unknownKey)))
        card.keys.insert(authority)
        let key = try card.iccKey().get()
        let data = try key.dda(bytes(Self.emvptDda), terminalData: bytes("01234567")).get()
        expectEqual(data.iccDynamicNumber.hex, "002C")
    }
}
