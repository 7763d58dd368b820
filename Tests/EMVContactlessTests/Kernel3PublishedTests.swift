import EMVContactless
import SmartCard
import TestSupport
import Testing

/// Transactions with Visa test cards as they were published along with another kernel: what the reader sent, byte for
/// byte, and what the card answered (https://github.com/MohamedHassanNasr/emv, mock/mock-visa-online.json and
/// mock-visa-offline.json).
@Suite struct Kernel3PublishedTests {
    /// 90.00 where the floor limit and the limit that verification begins at are 80.00.
    @Test func onlineWithPIN() throws {
        var bench = Kernel3Bench()
        bench.fci = """
            6F 33 84 07 A0 00 00 00 03 10 10
               A5 28 50 0B 56 49 53 41 20 43 52 45 44 49 54                    # VISA CREDIT
                     9F 38 18  9F 66 04  9F 02 06  9F 03 06  9F 1A 02  95 05  5F 2A 02  9A 03  9C 01  9F 37 04
            """
        bench.qualifiers = "24 00 40 00"
        (bench.currency, bench.country, bench.date) = ("USD", "08 40", "20 03 16")
        bench.unpredictableNumber = "AB AB AB AB"
        (bench.amount, bench.floorLimit, bench.cvmRequiredLimit) = (90_00, 80_00, 80_00)
        let run = try bench.run(
            """
            77 57  82 02 20 00
                   5F 34 01 01
                   57 11 47 61 73 90 01 01 00 10 D2 21 22 01 11 43 84 44 89        # the PAN of a test card
                   5F 20 16 56 49 53 41 20 43 52 45 44 49 54 2F 43 41 52 44 48 4F 4C 44 45 52
                   9F 10 07 06 01 0A 03 A0 00 00
                   9F 26 08 48 32 53 09 BE 82 CB A2
                   9F 27 01 80                                                     # ARQC
                   9F 36 02 00 77
                   9F 6C 02 90 00                                                  # online PIN
            90 00
            """)
        expectEqual(
            run.commands,
            [
                try wire(
                    """
                    80 A8 00 00 23 83 21
                        24 C0 40 00  00 00 00 00 90 00  00 00 00 00 00 00  08 40  00 00 00 00 00  08 40  20 03 16  00
                        AB AB AB AB
                    00
                    """
                ).hex
            ])
        expectEqual(run.outcome.kind, .onlineRequest, "\(run.outcome.reason)")
        expectEqual(run.outcome.cvm, .onlinePIN)
    }

    /// 2.00, which the card approves, and signs together with 9F69.
    @Test func approvedOffline() throws {
        var bench = Kernel3Bench()
        bench.fci = """
            6F 27 84 07 A0 00 00 00 03 10 10
               A5 1C 50 0B 56 49 53 41 20 43 52 45 44 49 54
                     9F 38 0C  9F 66 04  9F 02 06  5F 2A 02  9F 37 04
            """
        bench.qualifiers = "24 00 40 00"
        (bench.currency, bench.country, bench.date) = ("USD", "08 40", "19 08 19")
        bench.unpredictableNumber = "AB AB AB AB"
        bench.amount = 2_00
        bench.keys = .published
        let run = try bench.run(Self.approval)
        expectEqual(
            run.commands,
            [
                try wire("80 A8 00 00 12 83 10  24 00 40 00  00 00 00 00 02 00  08 40  AB AB AB AB  00").hex,
                "00B2011C00", "00B2011400", "00B2031400",
            ])
        expectEqual(run.outcome.kind, .approved, "\(run.outcome.reason)")
        expectEqual(run.outcome.cvm, Outcome.CVM.none)

        // Another amount is not the one that was signed.
        bench.amount = 2_01
        let other = try bench.run(Self.approval).outcome
        #expect(other.kind == .declined && other.reason.contains("hash"), "\(other.reason)")
    }

    private static let approval = [
        """
        77 81 B6
            9F 4B 70
                07 C8 0C E7 09 D5 28 AB C3 96 18 AE 71 BB 80 BD A9 76 AC 4F 22 0A 2E 77 D9 6A 03 61 5C 5E D6 CC
                C1 8F B6 F7 2F 8D 22 9C 72 CA CE C2 9F BF 1F 1B 23 32 48 F9 D9 61 E1 88 7D 00 9D C9 AC 14 69 63
                13 7C C7 6E CC 69 C7 43 99 B3 39 EE AC 18 4B 83 9D 92 20 EA EC CB A5 67 74 DD 86 EF 74 F0 70 28
                DB 37 DD 5E B6 21 81 4B A7 1B 7F 8B B6 AA E0 F4
            94 0C 18 01 01 01 10 01 01 00 10 03 03 00                       # the record of file 3 is signed
            9F 10 07 06 01 11 03 90 00 00                                   # TC
            57 10 47 61 73 90 01 01 00 10 D1 91 22 01 11 43 88 25           # the PAN of a test card
            82 02 20 00
            9F 36 02 00 15
            9F 26 08 20 26 12 03 C3 22 7D 26
            9F 6C 02 00 00
        90 00
        """,
        """
        70 14
            5A 08 47 61 73 90 01 01 00 10
            5F 24 03 19 12 31
            5F 34 01 01
        90 00
        """,
        """
        70 81 C0
            8F 01 92
            90 81 B0
                5F AC BF DA 21 EE 81 28 D0 57 A3 BB A9 EB 59 71 EB E0 9B 30 95 C9 F4 62 3D 62 41 71 49 F3 3B 20
                CC 59 6D D2 4F 97 C0 05 AC 15 44 9C 56 D5 B2 6D FA 93 C5 EA 23 BF A0 4A 3B 92 BF D0 56 9F 45 21
                B7 52 87 81 BB 3C 06 75 44 04 27 34 F8 5A E9 BD 17 53 82 58 05 AC 42 55 CE 88 85 F7 56 5F 1B 65
                BE 45 17 AA 14 9D 72 EA 54 84 40 F7 C4 62 BB 77 F7 66 42 34 4B BC 61 63 70 C3 17 E7 35 42 D7 8E
                D2 34 AD 84 C5 9E 2C D2 32 3F 22 AA 36 A2 83 5C 80 54 C6 60 74 33 CC 65 30 7E D0 5D 78 76 67 DF
                32 48 3B D6 50 7E A6 86 1B 11 BE 83 45 F5 65 6C
            92 04 4B 76 E0 F7
            9F 32 01 03
        90 00
        """,
        """
        70 81 AD
            9F 46 81 90
                A7 80 5C B2 4A C1 7B 36 F8 1F 75 3E A9 D3 7F 1D 05 78 DF 95 F6 97 9C 1F A4 EE 50 5B 71 2C 1A 31
                C1 9F E5 E3 B8 A8 C1 E4 7A 56 0D F1 7C 05 6E 8F DB 53 D8 1A 26 48 58 9C E9 F3 F1 E1 6F 22 9D 20
                0C CD 6A 78 05 73 87 1D 24 4D 4A 90 C6 AB B5 96 EC 55 AD 1E 65 96 44 3B 37 48 C7 52 B8 78 60 5D
                62 DC D2 A8 F7 E5 A8 E0 CB FF 63 C6 07 40 A8 33 8F 09 52 78 2D 68 3B 4A E8 E7 0D CD 03 D9 47 30
                D5 66 26 7E 89 DB 20 C5 14 A2 07 57 FD 1A E4 07
            9F 47 01 03
            9F 48 0A 76 1C CB E8 1F 44 00 34 78 E9
            9F 69 05 01 69 C1 6C 99                                         # version 01; no CTQ
        90 00
        """,
    ]
}
