import SmartCard
import TestSupport
import Testing

@testable import TravelDocument

/// ICAO 9303-11, appendices G to I: every number is published there.  // TEST
@Suite struct PACETests {
    /// A worked example.
    struct Example: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let info: PACEInfo
        /// K_π.
        let passwordKey: String
        let nonce: String
        /// The reader's private keys, or its nonce t, in order.
        let random: [String]
        /// The chip's public key of the mapping; nil: integrated mapping.
        let mappingKey: String?
        let agreementKey: String
        let readerToken: String
        /// The chip's last response without its template.
        let last: String
        let sessionKeys: (encryption: String, authentication: String)
        var mappingCommand: String?
    }

    /// Of T22000129, 640812, 101031.
    private static let passwordKey = "89DED1B26624EC1E634C1989302849DD"

    static let ecdhGeneric = Example(
        testDescription: "G.1, ECDH with generic mapping",
        info: PACEInfo(.ecdhGenericMapping, .aes128, domainParameters: 13),
        passwordKey: passwordKey, nonce: "95A3A016522EE98D01E76CB6B98B42C3",
        random: [
            "7F4EF07B9EA82FD78AD689B38D0BC78CF21F249D953BC46F4C6E19259C010F99",
            "A73FB703AC1436A18E0CFA5ABB3F7BEC7A070E7A6788486BEE230C4A22762595",
        ],
        mappingKey: "04824FBA91C9CBE26BEF53A0EBE7342A3BF178CEA9F45DE0B70AA601651FBA3F57"
            + "30D8C879AAA9C9F73991E61B58F4D52EB87A0A0C709A49DC63719363CCD13C54",
        agreementKey: "049E880F842905B8B3181F7AF7CAA9F0EFB743847F44A306D2D28C1D9EC65DF6DB"
            + "7764B22277A2EDDC3C265A9F018F9CB852E111B768B326904B59A0193776F094",
        readerToken: "C2B0BD78D94BA866", last: "86083ABB9674BCE93C08",
        sessionKeys: ("F5F0E35C0D7161EE6724EE513A0D9A7F", "FE251C7858B356B24514B3BD5F4297D1"),
        mappingCommand: "10860000457C438141047ACF3EFC982EC45565A4B155129EFBC74650DCBFA6362D896FC70262E0C2CC5E"
            + "544552DCB6725218799115B55C9BAA6D9F6BC3A9618E70C25AF71777A9C4922D00")

    static let dhGeneric = Example(
        testDescription: "G.2, DH with generic mapping",
        info: PACEInfo(.dhGenericMapping, .aes128, domainParameters: 0),
        passwordKey: passwordKey, nonce: "854D8DF5827FA6852D1A4FA701CDDDCA",
        random: ["5265030F751F4AD18B08AC565FC7AC952E41618D", "89CCD99B0E8D3B1F11E1296DCA68EC53411CF2CA"],
        mappingKey: "78879F57225AA8080D52ED0FC890A4B25336F699AA89A2D3A189654AF70729E623EA5738B26381E4DA19E004706FACE7"
            + "B235C2DBF2F38748312F3C98C2DD4882A41947B324AA1259AC22579DB93F7085655AF30889DBB845D9E6783FE42C9F24"
            + "49400306254C8AE8EE9DD812A804C0B66E8CAFC14F84D8258950A91B44126EE6",
        agreementKey: "075693D9AE941877573E634B6E644F8E60AF17A0076B8B123D9201074D36152BD8B3A213F53820C42ADC79AB5D0AEEC3"
            + "AEFB91394DA476BD97B9B14D0A65C1FC71A0E019CB08AF55E1F729005FBA7E3FA5DC41899238A250767A6D46DB974064"
            + "386CD456743585F8E5D90CC8B4004B1F6D866C79CE0584E49687FF61BC29AEA1",
        // The chip names a certification authority, too.
        readerToken: "B46DD9BD4D98381F", last: "8608917F37B5C0E6D8D1870F44455445535443564341" + "3030303033",
        sessionKeys: ("2F7F46ADCC9E7E521B45D192FAFA9126", "805A1D27D45A5116F73C54469462B7D8"))

    static let ecdhIntegrated = Example(
        testDescription: "H.1, ECDH with integrated mapping",
        info: PACEInfo(.ecdhIntegratedMapping, .aes128, domainParameters: 13),
        // Nobody knows of what.
        passwordKey: "591468CDA83D65219CCCB8560233600F", nonce: "143DC40C08C8E891FBED7DEDB92B64AD",
        random: [
            "5DD4CBFC96F5453B130D890A1CDBAE32", "A73FB703AC1436A18E0CFA5ABB3F7BEC7A070E7A6788486BEE230C4A22762595",
        ],
        mappingKey: nil,
        agreementKey: "0467F78E5F7F7686082B293E8D087E056916D0F74BC01A5F8957D0DE45691E51E8"
            + "932B69A962B52A0985AD2C0A271EE6A13A8ADDDCD1A3A994B9DED257F4D22753",
        readerToken: "450F02B86F6A0909", last: "860875D4D96E8D5B0308",
        sessionKeys: ("0D3FEB33251A6370893D62AE8DAAF51B", "B01E89E3D9E8719E586B50B4A7506E0B"))

    static let chipAuthentication = Example(
        testDescription: "I, ECDH with chip authentication mapping",
        info: PACEInfo(.ecdhChipAuthenticationMapping, .aes128, domainParameters: 13),
        passwordKey: "4E6F6FBF7BE748B932C7B74161BBA9DF",
        nonce: "CB60E8E0D85B76A9BD304747C2AD42E2",
        random: [
            "5D8BB87BD74D985A4B7D4325B9F7B976FE835122773400798914AA22738135CC",
            "76ECFDAA9841C323A3F5FC5E88B88DB3EFF7E35EBF57A7E6946CB630006C2120",
        ],
        mappingKey: "04A234236AA9B9621E8EFB73B5245C0E09D2576E5277183C1208BDD55280CAE8B3"
            + "04F365713A356E65A451E165ECC9AC0AC46E3771342C8FE5AEDD092685338E23",
        agreementKey: "0402AD566F3C6EC7F9324509AD50A51FA52030782A4968FCFEDF737DAEA9933331"
            + "11C3B9B4C2287789BD137E7F8AA882E2A3C633CCD6ECC2C63C57AD401A09C2E1",
        readerToken: "E86BD06018A1CD3B",
        last: "86088596CF055C67C1A3"
            + "8A301EEA964DAAE372AC990E3EFDE6333353BFC89A6704D93DA8798CF77F5B7A54BD10CBA372B42BE0B9B5F28AA8DE2F4F92",
        sessionKeys: ("0A9DA4DB03BDDE39FC5202BC44B2E89E", "4B1C06491ED5140CA2B537D344C6C0B1"))

    static let dhIntegrated = Example(
        testDescription: "H.2, DH with integrated mapping",
        info: PACEInfo(.dhIntegratedMapping, .aes128, domainParameters: 0),
        passwordKey: ecdhIntegrated.passwordKey, nonce: "9ABB8864CA0FF1551E620D1EF4E13510",
        // The second one is the published private key modulo the order, 160 bits.
        random: ["B3A6DB3C870C3E99245E0D1C06B747DE", "89CCD99B0E8D3B1F11E1296DCA68EC53411CF2CA"],
        mappingKey: nil,
        agreementKey: "928D9A0F9DBA450F13FC859C6F290D1D36E42431138A4378500BEB4E0401854CFF111F71CB6DC1D0335807A11388CC8E"
            + "AA87B07907AAD9FBA6B169AF6D8C26AF8DDDC39ADC3AD2E3FF882B84D23E9768E95A80E4746FB07A9767679FE92133B4"
            + "D379935C771BD7FBED6C7BB4B1708B275EA75679524CDC9C6A91370CC662A2F3",
        readerToken: "55D61977CBF5307E", last: "8608C2F04230187E1525",
        sessionKeys: ("01AFC10CF87BE36D8179E87370171F07", "23F0FBD05FD6C7B8B88F4C8309669061"))

    static let examples = [ecdhGeneric, dhGeneric, ecdhIntegrated, dhIntegrated, chipAuthentication]

    /// Plays an example, with changes to the chip's responses.
    static func play(
        _ example: Example, change: (_ step: Int, _ response: String) -> String = { $1 }
    ) throws -> (step: AccessStep, commands: [CommandAPDU], access: PACE) {
        let template = { (tag: TLVTag, value: String) in
            TLVTag(0x7C).encode(tag.encode(try hex(value))).hex + "9000"
        }
        let responses = [
            "9000", try template(0x80, example.nonce), try template(0x82, example.mappingKey ?? ""),
            try template(0x84, example.agreementKey), TLVTag(0x7C).encode(try hex(example.last)).hex + "9000",
        ]
        var access = try #require(
            PACE(
                example.info, .machineReadableZone, passwordKey: hex(example.passwordKey),
                random: GivenRandomSource(example.random)))
        var commands: [CommandAPDU] = []
        var step = access.next(nil)
        for (index, response) in responses.enumerated() {
            guard case .send(let command) = step else { break }
            commands.append(command)
            step = access.next(try ResponseAPDU(hex(change(index, response))))
        }
        return (step, commands, access)
    }

    @Test("The worked examples: tokens and session keys", arguments: examples)
    func worked(_ example: Example) throws {
        let (step, commands, _) = try Self.play(example)
        guard case .established(let messaging) = step else {
            Issue.record("\(step)")
            return
        }
        #expect(
            commands.first?.bytes.hex == "0022C1A40F800A" + example.info.identifier.hex + "830101"
                && commands[1].bytes.hex == "10860000027C0000"
                && commands.last?.bytes.hex == "008600000C7C0A8508" + example.readerToken + "00")
        if let mapping = example.mappingCommand { expectEqual(commands[2].bytes.hex, mapping) }
        expectEqual(messaging.keys.encryption.hex, example.sessionKeys.encryption)
        expectEqual(messaging.keys.authentication.hex, example.sessionKeys.authentication)
    }

    static let key = Result {
        try AccessKey(documentNumber: "T22000129", dateOfBirth: "640812", dateOfExpiry: "101031")
    }

    @Test("The password's key is derived from the fields of the zone (G, I), and from the digits of a number")
    func passwordKeys() throws {
        try expectEqual(SessionCipher.aes128.deriveKey(Self.key.get().secret, for: .password).hex, Self.passwordKey)
        let other = try AccessKey(documentNumber: "C11T002JM", dateOfBirth: "960812", dateOfExpiry: "231031")
        expectEqual(
            SessionCipher.aes128.deriveKey(other.secret, for: .password).hex, Self.chipAuthentication.passwordKey)
        try expectEqual(AccessKey("123456", kind: .cardAccessNumber).secret, Array("123456".utf8))
        for (digits, kind) in [("", AccessKey.Kind.pin), ("12a", .puk), ("1", .machineReadableZone)] {
            #expect(throws: AccessKeyError.digits) { try AccessKey(digits, kind: kind) }
        }
    }

    @Test("H.2, DH with integrated mapping: generator and shared secret")
    func integratedGenerator() throws {
        let pseudorandom = try hex(
            """
            EAB98D13E09052952AA729907C3C946184DEA0FE74AD2B3AF506F0A83018459C38099CD1F7FF4EA0A078DB1FAC136550
            5E3DC85500EF95E20B4EEF2E88489233BEE0546B472F994B618D168702406791DEEF3CB4810932EC278F3533FDB860EB
            4835C36FA4F1BF3FA0B828A718C96BDE88FBA38A3E6C35AAA10959251EB5FC710FC187258995944C0F926E249373F485
            """)
        let group = try #require(StandardizedDomainParameters.group(0)?.mapped(pseudorandom))
        // The public key of the private key 1 is the generator.
        var one = GivenRandomSource([String(repeating: "00", count: 19) + "01"])
        expectEqual(
            group.makeKeyPair(&one)?.publicKey.hex,
            "1D7D767F11E333BCD6DBAEF40E799E7A926B96973550656FF3C830726D118D61C276CDCC61D475CF03A98E0C0E79CAEB"
                + "A5BE25578BD4551D0B10903236F0B0F976852FA78EEA14EA0ACA87D1E91F688FE0DFF897BBE35A472621D343564B262F"
                + "34223AE8FC59B664BFEDFA2BFE7516CA5510A6BBB633D517EC25D4E0BBAA16C2")
        let privateKey = BigNumber(
            try hex(
                """
                4BD0E54740F9A028E6A515BFDAF967848C4F5F5FFF65AA0915947FFD1A0DF2FA6981271BC905F3551457B7E03AC3B806
                6DE4AA406C1171FB43DD939C4BA16175103BA3DEE16419AA248118F90CC36A3D6F4C373652E0C3CCE7F0F1D0C5425B36
                00F0F0D6A67F004C8BBA33F2B4733C7252445C1DFC4F1107203F71D2EFB28161
                """))
        let chipKey = try hex(Self.dhIntegrated.agreementKey)
        let secret = group.agree(privateKey, chipKey).map(group.secret)
        #expect(secret?.prefix(4).hex == "419410D6" && secret?.suffix(4).hex == "B3134EA7")
        expectEqual(
            secret.map { SessionCipher.aes128.deriveKey($0, for: .encryption).hex },
            "01AFC10CF87BE36D8179E87370171F07")
    }

    @Test("The chip proves the private key of its public one, and of no other (appendix I)")
    func chipAuthenticationMapping() throws {
        let proof = try #require(try Self.play(Self.chipAuthentication).access.chipAuthentication)
        // Recovered by others from this example.
        let publicKey = try hex(
            "041872709494399E7470A6431BE25E83EEE24FEA568C2ED28DB48E05DB3A610DC8"
                + "84D256A40E35EFCB59BF6753D3A489D28C7A4D973C2DA138A6E7A4A08F68E16F")
        #expect(proof.holds(for: publicKey))
        #expect(!proof.holds(for: try hex(Self.chipAuthentication.agreementKey)))
        #expect(!proof.holds(for: []) && !proof.holds(for: Array(publicKey.dropLast())))
    }

    @Test("A chip with another token is none of this document", arguments: examples)
    func strangers(_ example: Example) throws {
        let (step, _, _) = try Self.play(example) { step, response in
            // The last byte of the token.
            guard step == 4, var bytes = try? hex(response) else { return response }
            bytes[11] ^= 1
            return bytes.hex
        }
        guard case .refused(.chipNotAuthenticated) = step else {
            Issue.record("\(step)")
            return
        }
    }

    @Test("A key that is not of the group ends the protocol", arguments: [ecdhGeneric, dhGeneric], [2, 3])
    func invalidKeys(_ example: Example, _ step: Int) throws {
        let isElliptic = example.info.variant.isElliptic
        let length = isElliptic ? 65 : 128
        let zero = String(repeating: "00", count: length)
        let one = String(repeating: "00", count: length - 1) + "01"
        // Of order 2: the prime less one.
        let small = isElliptic ? zero : RFC5114.modp1024Order160.prime.dropLast() + "0"
        for wrong in [zero, one, small, String(repeating: "FF", count: length), String(one.dropFirst(2)), ""] {
            let tag: TLVTag = step == 2 ? 0x82 : 0x84
            let response = TLVTag(0x7C).encode(tag.encode(try hex(wrong))).hex + "9000"
            let (end, _, _) = try Self.play(example) { $0 == step ? response : $1 }
            guard case .refused(.malformedAnswer) = end else {
                Issue.record("\(wrong.prefix(8)): \(end)")
                continue
            }
        }
        // The reader's own key, sent back.
        let (_, commands, _) = try Self.play(example)
        let own = commands[step].data
        var list = own
        list[own.count > 0x80 ? 3 : 2] += 1
        let (end, _, _) = try Self.play(example) { $0 == step ? list.hex + "9000" : $1 }
        guard case .refused(.malformedAnswer) = end else {
            Issue.record("\(end)")
            return
        }
    }

    @Test(
        "A wrong password is told as one, with the tries that are left",
        arguments: [
            (0, "63C0", AccessRefusal.wrongKey(triesLeft: 0)), (4, "6300", .wrongKey(triesLeft: nil)),
            (4, "63C1", .wrongKey(triesLeft: 1)), (4, "6982", .wrongKey(triesLeft: nil)), (1, "6A80", .status(0x6A80)),
            (2, "6A80", .status(0x6A80)), (0, "6A82", .status(0x6A82)), (4, "9000", .malformedAnswer),
            (1, "7C0280009000", .malformedAnswer), (1, "9000", .malformedAnswer),
        ])
    func refusals(_ step: Int, _ status: String, _ expected: AccessRefusal) throws {
        let (end, _, _) = try Self.play(Self.ecdhGeneric) { $0 == step ? status : $1 }
        guard case .refused(let refusal) = end else {
            Issue.record("\(end)")
            return
        }
        expectEqual(refusal, expected)
    }

    @Test("A chip that wants the number of its parameters gets it; one that counts tries is gone on with")
    func selection() throws {
        for status in ["6A80", "6A88"] {
            var access = try #require(
                PACE(Self.ecdhGeneric.info, Self.key.get(), random: GivenRandomSource([])))
            _ = access.next(nil)
            guard case .send(let command) = access.next(try ResponseAPDU(hex(status))) else {
                Issue.record("not sent")
                continue
            }
            expectEqual(command.bytes.hex, "0022C1A412800A" + Self.ecdhGeneric.info.identifier.hex + "83010184010D")
            guard case .refused = access.next(try ResponseAPDU(hex(status))) else {
                Issue.record("asked for ever")
                continue
            }
        }
        let (step, _, _) = try Self.play(Self.ecdhGeneric) { $0 == 0 ? "63C2" : $1 }
        #expect(step.isEstablished)
    }
}

/// What chips offer.
@Suite struct SecurityInfosTests {
    private func infos(_ text: String) throws -> [PACEInfo] { try #require(SecurityInfos(hex(text))).paceInfos }

    private func info(_ suffix: String, _ numbers: String) throws -> [UInt8] {
        TLVTag(0x30).encode(try hex("060A04007F00070202" + "04" + suffix + numbers))
    }

    @Test("EF.CardAccess of the worked example (ICAO 9303-11, G.1)")
    func example() throws {
        try expectEqual(
            infos("31143012060A04007F0007020204020202010202010D"),
            [PACEInfo(.ecdhGenericMapping, .aes128, domainParameters: 13)])
    }

    @Test(
        "Chip authentication comes first, then generic mapping; elliptic curves before numbers; else the chip's order")
    func order() throws {
        let entries = try ["0302", "0401", "0102", "0204", "0202", "0602"].flatMap {
            try info($0, "0201020201" + ($0.hasPrefix("03") || $0.hasPrefix("01") ? "02" : "0D"))
        }
        try expectEqual(
            infos(TLVTag(0x31).encode(entries).hex).map { $0.identifier.suffix(2).hex },
            ["0602", "0204", "0202", "0102", "0401", "0302"])
    }

    @Test("An info that this reader does not know is left out, and leaves the others")
    func others() throws {
        let known = try info("0202", "02010202010D")
        for other in [
            try info("0502", "02010202010D"), try info("0205", "02010202010D"), try info("0601", "02010202010D"),
            try info("0202", "02010102010D"), try info("0202", ""), try info("0202", "0201020202000D"),
            TLVTag(0x30).encode([]), TLVTag(0x04).encode([1]),
            TLVTag(0x30).encode(try hex("060804007F0007020203")),
        ] {
            try expectEqual(infos(TLVTag(0x31).encode(other + known).hex).count, 1)
        }
        #expect(
            SecurityInfos([]) == nil && SecurityInfos([0x30, 0x00]) == nil && SecurityInfos([0x31, 0x05, 0x30]) == nil)
    }

    @Test("Domain parameters of the chip's own, reserved ones, those of the other kind, and IM on P-224 have no group")
    func groups() {
        for number in [nil, 3, 7, 19, 31, 0, 2] as [Int?] {
            #expect(PACEInfo(.ecdhGenericMapping, .aes128, domainParameters: number).group == nil)
        }
        for number in 8...18 {
            #expect(PACEInfo(.ecdhGenericMapping, .aes128, domainParameters: number).group != nil)
            #expect(PACEInfo(.dhGenericMapping, .aes128, domainParameters: number).group == nil)
        }
        for number in 8...18 {
            let group = PACEInfo(.ecdhIntegratedMapping, .aes128, domainParameters: number).group
            expectEqual(group == nil, number == 10)
        }
        for number in 0...2 { #expect(PACEInfo(.dhGenericMapping, .tripleDES, domainParameters: number).group != nil) }
    }
}

extension AccessStep {
    var isEstablished: Bool { if case .established = self { true } else { false } }
}
