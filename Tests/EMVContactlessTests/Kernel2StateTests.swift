import EMVContactless
import SmartCard
import TestSupport
import Testing

/// Every way through the states of Book C-2 (6, figure 6.1): what the card is asked, and what comes of it.
@Suite struct Kernel2StateTests {
    private static let data70 = "9F 70 02 AA BB 90 00"
    private static let balance = "9F 50 06 00 00 00 01 23 45 90 00"
    private static let relay = "80 0A  AA BB CC DD  00 0A  00 50  00 18 90 00"

    /// A record with neither CDOL1 nor expiry date.
    private static let bare = "70 0A  5A 08 54 13 33 00 89 01 04 34 90 00"

    private static var arqc: String { get throws { try MChipCard.cryptogram("80") } }

    static let walks: [Kernel2Walk] = [
        // S1, S2, S3
        .init("online", "A8 B2 B2 B2 AE", .onlineRequest) { try Kernel2Bench().run(MChipCard.unsigned.read + [arqc]) },
        .init("the FCI cannot be read", "", .selectNext, "0004000000FF") {
            var bench = Kernel2Bench()
            bench.fci = "9F 38 09 9F"
            return try bench.run()
        },
        .init("the terminal gives what the PDOL asks for", "A8 B2 AE", .onlineRequest) {
            var bench = Kernel2Bench()
            bench.fci = "9F 38 03  9F 7C 14"
            bench.data = ["9F7C": ""]
            bench.answers = [try answer((0x9F7C, String(repeating: "CC", count: 20)))]
            return try bench.run(ShortCard().read + [arqc])
        },
        .init("the terminal gives one thing after the other", "A8 B2 AE", .onlineRequest) {
            var bench = Kernel2Bench()
            bench.fci = "9F 38 06  9F 7C 14  9F 53 01"
            bench.data = ["9F7C": "", "9F53": ""]
            bench.answers = [
                try answer((0x9F7C, String(repeating: "CC", count: 20))), try answer((0x9F53, "52")),
            ]
            return try bench.run(ShortCard().read + [arqc])
        },
        .init("the terminal does not give it", "", .endApplication, "0000010000FF") {
            var bench = Kernel2Bench()
            bench.fci = "9F 38 03  9F 7C 14"
            bench.data = ["9F7C": ""]
            return try bench.run()
        },
        .init("the card is not for this", "A8", .selectNext, "0003006985FF") { try Kernel2Bench().run("69 85") },
        .init("lost at GET PROCESSING OPTIONS", "A8", .tryAgain, "0100000000FF") { try Kernel2Bench().run("-") },
        // SR1
        .init("relay resistance", "A8 EA B2 AE", .onlineRequest) {
            try Kernel2Bench().run([template(0x77, "82 02 18 81  94 04 10 01 01 00"), relay, ShortCard().record, arqc])
        },
        .init("relay resistance, once more", "A8 EA EA B2 AE", .onlineRequest) {
            var bench = Kernel2Bench()
            bench.relayTimes = [20_000, 10_000]
            return try bench.run(
                [template(0x77, "82 02 18 81  94 04 10 01 01 00"), relay, relay, ShortCard().record, arqc])
        },
        .init("relay resistance, then GET DATA", "A8 EA CA B2 AE", .onlineRequest) {
            var bench = Kernel2Bench()
            bench.data = ["DF8112": "9F70"]
            return try bench.run(
                [template(0x77, "82 02 18 81  94 04 10 01 01 00"), relay, data70, ShortCard().record, arqc])
        },
        .init("no relay resistance", "A8 EA", .endApplication, "0003006D001C") {
            try Kernel2Bench().run([template(0x77, "82 02 18 81  94 04 10 01 01 00"), "6D 00"])
        },
        .init("lost at relay resistance", "A8 EA", .endApplication, "010000000021") {
            try Kernel2Bench().run([template(0x77, "82 02 18 81  94 04 10 01 01 00"), "-"])
        },
        // S5
        .init("GET DATA, then the record", "A8 CA B2 AE", .onlineRequest) {
            var bench = Kernel2Bench()
            bench.data = ["DF8112": "9F70"]
            return try bench.run([ShortCard().processingOptions, data70, ShortCard().record, arqc])
        },
        .init("two of them", "A8 CA CA B2 AE", .onlineRequest) {
            var bench = Kernel2Bench()
            bench.data = ["DF8112": "9F709F71"]
            return try bench.run([ShortCard().processingOptions, data70, "6A 88", ShortCard().record, arqc])
        },
        .init("GET DATA after the record", "A8 B2 CA AE", .onlineRequest) {
            try Kernel2Bench.reading().run(ShortCard().read + [data70, arqc])
        },
        .init("GET DATA, then nothing to go on with", "A8 B2 CA", .endApplication, "00010000001C") {
            try Kernel2Bench.reading().run([ShortCard().processingOptions, bare, data70])
        },
        .init("lost at GET DATA", "A8 B2 CA", .endApplication, "010000000021") {
            try Kernel2Bench.reading().run(ShortCard().read + ["-"])
        },
        .init("GET DATA, then the terminal holds back", "A8 B2 CA AE", .onlineRequest) {
            var bench = try Kernel2Bench.reading(data: ["DF8110": ""])
            bench.answers.append(try answer((0xDF8110, "01")))
            return try bench.run(ShortCard().read + [data70, arqc])
        },
        .init("GET DATA, when the terminal has been asked", "A8 CA B2 AE", .onlineRequest) {
            var bench = Kernel2Bench()
            bench.data = ["DF8112": "9F70", "FF8103": ""]
            bench.answers = [try answer((0xDF8110, "01"))]
            return try bench.run([ShortCard().processingOptions, data70, ShortCard().record, arqc])
        },
        .init("GET DATA, then a torn transaction", "A8 B2 CA D0", .onlineRequest) {
            try Kernel2Bench.reading().torn.run(ShortCard().read + [data70, MChipCard.cryptogram("80")])
        },
        .init("GET DATA, then PUT DATA", "A8 B2 CA DA AE", .onlineRequest) {
            try Kernel2Bench.reading(data: ["FF8102": "9F7501AA"]).run(ShortCard().read + [data70, "90 00", arqc])
        },
        .init("GET DATA, then the balance", "A8 B2 CA CA AE", .onlineRequest) {
            var bench = try Kernel2Bench.reading(data: ["DF8104": ""])
            bench.discretionary = "9F 5D 03 01 02 00"
            return try bench.run(ShortCard().read + [data70, balance, arqc])
        },
        // S6
        .init("the terminal holds back", "A8 B2 AE", .onlineRequest) {
            var bench = Kernel2Bench()
            bench.data = ["DF8110": ""]
            bench.answers = [try answer((0xDF8110, "01"))]
            return try bench.run(ShortCard().read + [arqc])
        },
        .init("the terminal holds back for long", "A8 B2 AE", .onlineRequest) {
            var bench = Kernel2Bench()
            bench.data = ["DF8110": ""]
            bench.answers = [try answer((0xDF8110, "00")), try answer((0xDF8110, "01"))]
            return try bench.run(ShortCard().read + [arqc])
        },
        .init("the terminal says nothing", "A8 B2", .endApplication, "0000010000FF") {
            var bench = Kernel2Bench()
            bench.data = ["DF8110": ""]
            return try bench.run(ShortCard().read)
        },
        .init("the terminal holds back, with nothing to go on with", "A8 B2", .endApplication, "00010000001C") {
            var bench = Kernel2Bench()
            bench.data = ["DF8110": ""]
            bench.answers = [try answer((0xDF8110, "01"))]
            return try bench.run([ShortCard().processingOptions, bare])
        },
        .init("the terminal reads first", "A8 B2 CA AE", .onlineRequest) {
            var bench = Kernel2Bench()
            bench.data = ["DF8110": ""]
            bench.answers = [try answer((0xDF8110, "01"), (0xDF8112, "9F 70"))]
            return try bench.run(ShortCard().read + [data70, arqc])
        },
        .init("the terminal holds back a torn transaction", "A8 B2 D0", .onlineRequest) {
            var bench = try Kernel2Bench().torn
            bench.data = ["DF8110": "00"]
            bench.answers = [try answer((0xDF8110, "01"))]
            return try bench.run(ShortCard().read + [arqc])
        },
        .init("the terminal holds back what it writes", "A8 B2 DA AE", .onlineRequest) {
            var bench = Kernel2Bench()
            bench.data = ["DF8110": ""]
            bench.answers = [try answer((0xDF8110, "01"), (0xFF8102, "9F 75 01 AA"))]
            return try bench.run(ShortCard().read + ["90 00", arqc])
        },
        .init("the terminal holds back the balance", "A8 B2 CA AE", .onlineRequest) {
            var bench = Kernel2Bench.balance(before: true)
            bench.data["DF8110"] = ""
            bench.answers = [try answer((0xDF8110, "01"))]
            return try bench.run(ShortCard().read + [balance, arqc])
        },
        // What the terminal says to what it is told at last: nothing comes of it.
        .init("the terminal speaks at GENERATE AC", "A8 B2 AE", .onlineRequest) {
            try Kernel2Bench.speaking().run(ShortCard().read + [arqc])
        },
        .init("the terminal speaks at RECOVER AC", "A8 B2 D0", .onlineRequest) {
            try Kernel2Bench.speaking().torn.run(ShortCard().read + [arqc])
        },
        .init("the terminal speaks at PUT DATA", "A8 B2 DA AE", .onlineRequest) {
            try Kernel2Bench.speaking(["FF8102": "9F7501AA"]).run(ShortCard().read + ["90 00", arqc])
        },
        .init("the terminal speaks at the balance", "A8 B2 CA AE", .onlineRequest) {
            var bench = try Kernel2Bench.speaking(["DF8104": ""])
            bench.discretionary = "9F 5D 03 01 02 00"
            return try bench.run(ShortCard().read + [balance, arqc])
        },
        .init("the terminal speaks in mag-stripe mode", "A8 B2 2A", .onlineRequest) {
            try Kernel2Bench.speaking().run(MagStripeCard().read + [MagStripeCard.checksum()])
        },
        .init("the terminal speaks in mag-stripe mode on a device", "A8 B2 2A", .onlineRequest) {
            var card = MagStripeCard()
            card.aip = "02 00"
            return try Kernel2Bench.speaking().run(card.read + [MagStripeCard.checksum("DF 4B 03 00 10 00")])
        },
        // S9, S15, S16, S17
        .init("a record of another form", "A8 B2", .endApplication, "00040000001C") {
            try Kernel2Bench().run([ShortCard().processingOptions, "80 00 90 00"])
        },
        .init("lost at GENERATE AC", "A8 B2 B2 B2 AE", .endApplication, "010000000021") {
            try Kernel2Bench().run(MChipCard.unsigned.read + ["-"])
        },
        .init("lost at READ RECORD", "A8 B2", .endApplication, "010000000021") {
            try Kernel2Bench().run([ShortCard().processingOptions, "-"])
        },
        .init("the balance before", "A8 B2 CA AE", .onlineRequest) {
            try Kernel2Bench.balance(before: true).run(ShortCard().read + [balance, arqc])
        },
        .init("the balance before, and nothing to write", "A8 B2 B2 B2 CA", .endApplication, "000D0000001C") {
            var bench = try Kernel2Bench.signing
            bench.discretionary = "9F 5D 03 01 02 00  9F 5E 09 54 13 33 00 89 01 04 34 01"
            bench.data = ["DF8104": "", "DF810D": "02", "9F5C": "1011121314151617"]
            bench.answers = [try answer((0xDF62, "80"))]
            var card = MChipCard()
            card.options = "9F 5F 01 20  9F 7F 04 C0 C1 C2 C3  9F 7D 08 A1 A2 A3 A4 A5 A6 A7 A8"
            card.more = "9F 5B 03 DF 62 01"
            return try bench.run(card.read + [balance])
        },
        .init("lost at the balance before", "A8 B2 CA", .endApplication, "010000000021") {
            try Kernel2Bench.balance(before: true).run(ShortCard().read + ["-"])
        },
        .init("the balance before, then a torn transaction", "A8 B2 CA D0", .onlineRequest) {
            try Kernel2Bench.balance(before: true).torn.run(ShortCard().read + [balance, arqc])
        },
        .init("the balance before, then PUT DATA", "A8 B2 CA DA AE", .onlineRequest) {
            var bench = Kernel2Bench.balance(before: true)
            bench.data["FF8102"] = "9F7501AA"
            return try bench.run(ShortCard().read + [balance, "90 00", arqc])
        },
        .init("the balance after", "A8 B2 AE CA", .onlineRequest) {
            try Kernel2Bench.balance(after: true).run(ShortCard().read + [arqc, balance])
        },
        .init("lost at the balance after", "A8 B2 AE CA", .onlineRequest) {
            try Kernel2Bench.balance(after: true).run(ShortCard().read + [arqc, "-"])
        },
        .init("the balance after, then PUT DATA", "A8 B2 AE CA DA", .onlineRequest) {
            var bench = Kernel2Bench.balance(after: true)
            bench.data["FF8103"] = "9F7501AA"
            return try bench.run(ShortCard().read + [arqc, balance, "90 00"])
        },
        .init("lost at the balance after, then PUT DATA", "A8 B2 AE CA DA", .onlineRequest) {
            var bench = Kernel2Bench.balance(after: true)
            bench.data["FF8103"] = "9F7501AA"
            return try bench.run(ShortCard().read + [arqc, "-", "90 00"])
        },
        .init("PUT DATA after", "A8 B2 AE DA DA", .onlineRequest) {
            try Kernel2Bench.writing(after: 2).run(ShortCard().read + [arqc, "90 00", "90 00"])
        },
        .init("lost at PUT DATA after", "A8 B2 AE DA", .onlineRequest) {
            try Kernel2Bench.writing(after: 2).run(ShortCard().read + [arqc, "-"])
        },
        // S12
        .init("PUT DATA before", "A8 B2 DA DA AE", .onlineRequest) {
            try Kernel2Bench.writing(before: 2).run(ShortCard().read + ["90 00", "90 00", arqc])
        },
        .init("PUT DATA before a torn transaction", "A8 B2 DA D0", .onlineRequest) {
            try Kernel2Bench.writing(before: 1).torn.run(ShortCard().read + ["90 00", arqc])
        },
        .init("lost at PUT DATA before", "A8 B2 DA", .endApplication, "010000000021") {
            try Kernel2Bench.writing(before: 2).run(ShortCard().read + ["-"])
        },
        // S10, S11
        .init("recovered", "A8 B2 D0", .onlineRequest) { try Kernel2Bench().torn.run(ShortCard().read + [arqc]) },
        .init("recovered, then PUT DATA", "A8 B2 D0 DA", .onlineRequest) {
            try Kernel2Bench.writing(after: 1).torn.run(ShortCard().read + [arqc, "90 00"])
        },
        .init("recovered, then the balance", "A8 B2 D0 CA", .onlineRequest) {
            try Kernel2Bench.balance(after: true).torn.run(ShortCard().read + [arqc, balance])
        },
        .init("lost at RECOVER AC", "A8 B2 D0", .endApplication, "010000000021") {
            try Kernel2Bench().torn.run(ShortCard().read + ["-"])
        },
        .init("lost after RECOVER AC", "A8 B2 D0 AE", .endApplication, "010000000021") {
            try Kernel2Bench().torn.run(ShortCard().read + ["69 85", "-"])
        },
        .init("not recovered", "A8 B2 D0 AE", .onlineRequest) {
            try Kernel2Bench().torn.run(ShortCard().read + ["69 85", arqc])
        },
        .init("not recovered, then PUT DATA", "A8 B2 D0 AE DA", .onlineRequest) {
            try Kernel2Bench.writing(after: 1).torn.run(ShortCard().read + ["69 85", arqc, "90 00"])
        },
        .init("not recovered, then the balance", "A8 B2 D0 AE CA", .onlineRequest) {
            try Kernel2Bench.balance(after: true).torn.run(ShortCard().read + ["69 85", arqc, balance])
        },
        // S7, S8, S13, S14
        .init("mag-stripe mode", "A8 B2 2A", .onlineRequest) {
            try Kernel2Bench().run(MagStripeCard().read + [MagStripeCard.checksum()])
        },
        .init("mag-stripe mode, when the terminal has been asked", "A8 B2 2A", .onlineRequest) {
            var bench = Kernel2Bench()
            bench.data = ["FF8103": ""]
            bench.answers = [try answer((0xDF8110, "01"))]
            return try bench.run(MagStripeCard().read + [MagStripeCard.checksum()])
        },
        .init("mag-stripe mode, two records", "A8 B2 B2 2A", .onlineRequest) {
            try Kernel2Bench().run([
                template(0x77, "82 02 00 00  94 04 08 01 02 00"), MagStripeCard().record,
                template(0x70, "5F 20 02 41 42"),
                MagStripeCard.checksum(),
            ])
        },
        .init("lost in mag-stripe mode", "A8 B2", .endApplication, "010000000021") {
            try Kernel2Bench().run([MagStripeCard().processingOptions, "-"])
        },
        .init("a record without tracks", "A8 B2", .endApplication, "00010000001C") {
            try Kernel2Bench().run([MagStripeCard().processingOptions, "70 00 90 00"])
        },
        .init("lost at the checksum", "A8 B2 2A", .endApplication, "010000000021") {
            try Kernel2Bench().run(MagStripeCard().read + ["-"])
        },
        .init("lost at the checksum of a device", "A8 B2 2A", .endApplication, "010000000021") {
            var card = MagStripeCard()
            card.aip = "02 00"
            return try Kernel2Bench().run(card.read + ["-"])
        },
        .init("mag-stripe mode on a device", "A8 B2 2A", .onlineRequest) {
            var card = MagStripeCard()
            card.aip = "02 00"
            return try Kernel2Bench().run(card.read + [MagStripeCard.checksum("DF 4B 03 00 10 00")])
        },
        .init("the terminal holds back in mag-stripe mode", "A8 B2 2A", .onlineRequest) {
            var bench = Kernel2Bench()
            bench.data = ["DF8110": ""]
            bench.answers = [try answer((0xDF8110, "00")), try answer((0xDF8110, "01"))]
            return try bench.run(MagStripeCard().read + [MagStripeCard.checksum()])
        },
        .init("the terminal holds back in mag-stripe mode on a device", "A8 B2 2A", .onlineRequest) {
            var bench = Kernel2Bench()
            bench.data = ["DF8110": ""]
            bench.answers = [try answer((0xDF8110, "01"))]
            var card = MagStripeCard()
            card.aip = "02 00"
            return try bench.run(card.read + [MagStripeCard.checksum("DF 4B 03 00 10 00")])
        },
        .init("the terminal holds back an amount above the limit", "A8 B2", .selectNext, "0005000000FF") {
            var bench = Kernel2Bench()
            bench.transactionLimit = 10_00
            bench.data = ["DF8110": ""]
            bench.answers = [try answer((0xDF8110, "01"))]
            return try bench.run(MagStripeCard().read)
        },
        .init("the terminal says nothing in mag-stripe mode", "A8 B2", .endApplication, "0000010000FF") {
            var bench = Kernel2Bench()
            bench.data = ["DF8110": ""]
            return try bench.run(MagStripeCard().read)
        },
    ]

    @Test(arguments: walks) func everyWay(_ walk: Kernel2Walk) throws {
        let run = try walk.play()
        expectEqual(run.instructions, walk.instructions)
        expectEqual(run.outcome.kind, walk.kind, "\(run.outcome.reason)")
        expectEqual(run.error, walk.error, "\(run.outcome.reason)")
    }

    /// The arrows of the state machine (Book C-2, chapter 6), which no public source that Rules/kernel2.txt names draws whole:
    /// from a state, by a signal, to others, each with the step that leads there.  What several states have in common has no
    /// signal; S456B is what follows S456.34, where S16 comes back to.
    private static let arrows = """
        S1    ACT     S2 S1.23, S3 S1.21, end S1.8
        S1    STOP    end S1.3
        S1    CLEAN   end S1.6
        S2    DET     S2 S2.7, S3 S2.10
        S2    TIMEOUT end S2.3
        S2    STOP    end S2.4
        S3    RA      SR1 S3.64, S3R1 S3.65, S7 S3.81, end S3.9
        S3    L1RSP   end S3.5
        S3    DET     S3 S3.3
        S3    STOP    end S3.7
        SR1   RA      SR1 SR1.27, S3R1 SR1.32, end SR1.13
        SR1   L1RSP   end SR1.5
        SR1   DET     SR1 SR1.2
        SR1   STOP    end SR1.8
        S3R1  -       S4 S3R1.21, S5 S3R1.21, end S3R1.6
        S4    RA      S456 S4.35, S4' S4.26, end S4.10
        S4    L1RSP   end S4.6
        S4    DET     S4 S4.2
        S4    STOP    end S4.8
        S4'   RA      end S4'.4
        S4'   L1RSP   end S4'.4
        S4'   STOP    end S4'.5
        S5    RA      S456 S5.24
        S5    L1RSP   end S5.6
        S5    DET     S5 S5.2
        S5    STOP    end S5.8
        S6    DET     S456 S6.12
        S6    TIMEOUT end S6.3
        S6    STOP    end S6.4
        S456  -       S5 S456.1, S4 S456.4, S6 S456.10, S16 S456.34, S456B S456.34, end S456.15
        S456B -       S12 S456.51, S10 S456.49, S9 S456.46, end S456.45
        S7    RA      S7 S7.19, S78 S7.23, end S7.10
        S7    L1RSP   end S7.6
        S7    DET     S7 S7.2
        S7    STOP    end S7.8
        S8    DET     S78 S8.7
        S8    TIMEOUT end S8.2
        S8    STOP    end S8.4
        S78   -       S8 S78.6, S13 S78.18, S14 S78.22, end S78.11
        S9    RA      S17 S9.25, S910 S9.28
        S9    L1RSP   end S9.10
        S9    DET     S9 S9.4
        S9    STOP    S9 S9.3
        S910  -       S15 S910.78, end S910.81
        S10   RA      S11 S10.9, S17 S10.19, S910 S10.22
        S10   L1RSP   end S10.6
        S10   DET     S10 S10.4
        S10   STOP    S10 S10.3
        S11   RA      S17 S11.22, S15 S11.118, end S11.121
        S11   L1RSP   end S11.17
        S11   DET     S11 S11.4
        S11   STOP    S11 S11.3
        S12   RA      S12 S12.11, S10 S12.19, S9 S12.16
        S12   L1RSP   end S12.6
        S12   DET     S12 S12.4
        S12   STOP    end S12.7
        S13   RA      end S13.26
        S13   L1RSP   end S13.5
        S13   DET     S13 S13.8
        S13   STOP    S13 S13.7
        S14   RA      end S14.34
        S14   L1RSP   end S14.5
        S14   DET     S14 S14.8
        S14   STOP    S14 S14.7
        S15   RA      S15 S15.8, end S15.13
        S15   L1RSP   end S15.13
        S15   DET     S15 S15.4
        S15   STOP    S15 S15.3
        S16   RA      S456B S16.9
        S16   L1RSP   end S16.3
        S16   DET     S16 S16.5
        S16   STOP    end S16.7
        S17   RA      S910 S17.6
        S17   L1RSP   S910 S17.1
        S17   DET     S17 S17.4
        S17   STOP    S17 S17.3
        """

    /// The same from one state that waits to the next one, through what they have in common.
    private static let drawn: [Kernel2Bench.Transition] = {
        var targets: [String: [(signal: String, to: [String])]] = [:]
        for line in arrows.split(separator: "\n") {
            let columns = line.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: true).map(String.init)
            let to = columns[2].split(separator: ",").map { String($0.split(separator: " ")[0]) }
            targets[columns[0], default: []].append((columns[1], to))
        }
        func waiting(_ state: String) -> [String] {
            guard let common = targets[state]?.first, common.signal == "-" else { return [state] }
            return common.to.flatMap(waiting)
        }
        var drawn: Set<Kernel2Bench.Transition> = []
        for (from, arrows) in targets {
            for arrow in arrows where arrow.signal != "-" {
                for to in arrow.to.flatMap(waiting) { drawn.insert(.init(from, arrow.signal, to)) }
            }
        }
        return drawn.sorted { $0.description < $1.description }
    }()

    /// What nobody can walk here, and why: by signal, state, or transition.
    private static let exceptions = [
        "STOP": "the kernel is not told to stop: whoever plays it sends no more",
        "CLEAN": "the log is its owner's; what is too old leaves it with ACT",
        "S4'": "a record is read to its end before the next command is sent, so there is no response to be waited for",
        "S6 DET S4": "S6 comes behind the last record, and S6.8 to S6.12 leave GET DATA or nothing to be sent",
        "S3 DET S3": "the terminal is asked before a command, and S1 asks before this one in S2 alone",
        "SR1 DET SR1": "the terminal is asked before a command, and what there is to ask goes out in S3R1.16",
        "S11 DET S11": lists, "S15 DET S15": lists, "S17 DET S17": lists,
    ]
    private static let lists = "the terminal is asked before a command, and S456.23 has left nothing to ask"

    /// All transitions of the diagram are walked, and no other ones.
    @Test func stateCoverage() throws {
        var walked: Set<Kernel2Bench.Transition> = []
        for walk in Self.walks { walked.formUnion(try walk.play().transitions) }
        let drawn = Self.drawn
        print("Kernel 2: \(drawn.count { walked.contains($0) }) of \(drawn.count) transitions of the diagram walked")
        for transition in drawn {
            let reason = ([transition.description] + transition.parts).compactMap { Self.exceptions[$0] }.first
            print("  \(transition): \(walked.contains(transition) ? "walked" : reason ?? "NOT WALKED")")
            expectEqual(walked.contains(transition), reason == nil, "\(transition)")
        }
        expectEqual(walked.subtracting(drawn).map(\.description).sorted(), [])
        // S4' is none of the kernel's.
        let states = Set(drawn.flatMap { [$0.parts[0], $0.parts[2]] }).subtracting(["S4'"])
        expectEqual(states, Set(Kernel2.State.allCases.map(\.rawValue)))
    }
}
