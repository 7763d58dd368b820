import SmartCard
import TestSupport
import Testing

@testable import SmartCardSimulator

/// The worked examples of ICAO 9303-11, appendices G to I.  // TEST
@Suite struct PassportPACETests {
    private static func hex(_ text: String) throws -> [UInt8] { try [UInt8](hex: text) }

    @Test("G.1: the generator of generic mapping on a curve")
    func generic() throws {
        let curve = try #require(ChipCurve(13))
        let chipKey = try Self.hex(
            """
            04824FBA91C9CBE26BEF53A0EBE7342A3BF178CEA9F45DE0B70AA601651FBA3F57
            30D8C879AAA9C9F73991E61B58F4D52EB87A0A0C709A49DC63719363CCD13C54
            """)
        let shared = try #require(
            curve.agree(chipKey, Self.hex("7F4EF07B9EA82FD78AD689B38D0BC78CF21F249D953BC46F4C6E19259C010F99")))
        try expectEqual(
            curve.mapped(Self.hex("3F00C4D39D153F2B2A214A078D899B22"), shared)?.generator,
            Self.hex(
                """
                048CED63C91426D4F0EB1435E7CB1D74A46723A0AF21C89634F65A9AE87A9265E2
                8C879506743F8611AC33645C5B985C80B5F09A0B83407C1B6A4D857AE76FE522
                """))
    }

    @Test("H.1: the pseudo-random number, and the point that it encodes")
    func integratedOnCurve() throws {
        let number = try PassportCipher.aes128.pseudorandom(
            Self.hex("2923BE84E16CD6AE529049F1F1BBE9EB"), Self.hex("5DD4CBFC96F5453B130D890A1CDBAE32"), bits: 256)
        try expectEqual(
            number,
            Self.hex(
                """
                E4447E2DFB3586BAC05DDB00156B57FBB2179A3949294C97254189800C517BAA
                8DA0FF397ED8C445D3E421E4FEB57322
                """))
        try expectEqual(
            ChipCurve(13)?.mapped(#require(number))?.generator,
            Self.hex(
                """
                048E82D31559ED0FDE92A4D0498ADD3C23BABA94FB77691E31E90AEA77FB17D427
                4C1AE14BD0C3DBAC0C871B7F3608169364437CA30AC243A089D3F266C1E60FAD
                """))
    }

    @Test("H.2: the pseudo-random number, and the generator of integrated mapping in a modular group")
    func integratedModular() throws {
        let number = try PassportCipher.aes128.pseudorandom(
            Self.hex("FA5B7E3E49753A0DB9178B7B9BD898C8"), Self.hex("B3A6DB3C870C3E99245E0D1C06B747DE"), bits: 1024)
        try expectEqual(
            number,
            Self.hex(
                """
                EAB98D13E09052952AA729907C3C946184DEA0FE74AD2B3AF506F0A83018459C38099CD1F7FF4EA0A078DB1FAC136550
                5E3DC85500EF95E20B4EEF2E88489233BEE0546B472F994B618D168702406791DEEF3CB4810932EC278F3533FDB860EB
                4835C36FA4F1BF3FA0B828A718C96BDE88FBA38A3E6C35AAA10959251EB5FC710FC187258995944C0F926E249373F485
                """))
        try expectEqual(
            ChipModularGroup(0)?.mapped(#require(number))?.generator,
            Self.hex(
                """
                1D7D767F11E333BCD6DBAEF40E799E7A926B96973550656FF3C830726D118D61C276CDCC61D475CF03A98E0C0E79CAEB
                A5BE25578BD4551D0B10903236F0B0F976852FA78EEA14EA0ACA87D1E91F688FE0DFF897BBE35A472621D343564B262F
                34223AE8FC59B664BFEDFA2BFE7516CA5510A6BBB633D517EC25D4E0BBAA16C2
                """))
    }

    @Test("I: the encrypted chip authentication data")
    func chipAuthenticationData() throws {
        let quotient = try Self.hex("85DC3FA93D0952BFA82F5FD189EE75BD82F11D1F0B8ED4BF5319AC9B53C426B3")
        try expectEqual(
            PassportCipher.aes128.chipAuthenticationData(
                quotient, key: Self.hex("0A9DA4DB03BDDE39FC5202BC44B2E89E")),
            Self.hex(
                """
                1EEA964DAAE372AC990E3EFDE6333353BFC89A6704D93DA8798CF77F5B7A54BD
                10CBA372B42BE0B9B5F28AA8DE2F4F92
                """))
        // The private key of the mapping, 1, divided by the one of the chip, 2.
        let curve = try #require(ChipCurve(13))
        let double = try #require(curve.publicKey(of: [2]))
        expectEqual(curve.agree(double, curve.quotient([1], [2])), curve.generator)
    }

    @Test("a nonce of another length, and a key that is not of the group, are refused")
    func hostile() throws {
        let prime = try #require(ChipModularGroup(0)).prime
        let wrong: [(PassportPACE.Mapping, UInt64, [[UInt8]])] = [
            (.ecdhIntegrated, 13, [[], [UInt8](repeating: 1, count: 15), [UInt8](repeating: 1, count: 17)]),
            (.dhIntegrated, 0, [[], [UInt8](repeating: 1, count: 32)]),
            (.ecdhGeneric, 12, [[], [0x00], [0x04], [UInt8](repeating: 4, count: 65)]),
            (
                .dhGeneric, 0,
                [[], [0], [1], [2], prime, prime + [1], prime.dropLast() + [prime[prime.count - 1] - 1], prime + prime]
            ),
        ]
        for (mapping, parameters, values) in wrong {
            let offer = try #require(PassportPACE.Offer(mapping, .aes128, parameters: parameters))
            for value in values {
                var pace = try #require(PassportPACE(offer, password: [0x31]))
                expectEqual(pace.respond(to: try Self.command([])).status, .success)
                expectEqual(pace.respond(to: try Self.command(TLVTag(0x81).encode(value))).status, 0x6A80)
            }
        }
    }

    private static func command(_ objects: [UInt8]) throws -> CommandAPDU {
        let data = TLVTag(0x7C).encode(objects)
        return try CommandAPDU(
            cla: 0x10, ins: 0x86, p1: 0, p2: 0, data: data, ne: 256, lengthCoding: data.count > 255 ? .extended : .short
        )
    }
}
