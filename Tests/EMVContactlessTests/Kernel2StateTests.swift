import EMVContactless
import SmartCard
import Testing

/// Every way through the states of Book C-2 (6, figure 6.1): what the card is asked, and what comes of it.
@Suite struct Kernel2StateTests {
    private static let data70 = "9F 70 02 AA BB 90 00"
    private static let balance = "9F 50 06 00 00 00 01 23 45 90 00"
    private static let relay = "80 0A  AA BB CC DD  00 0A  00 50  00 18 90 00"

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
        .init("lost at GET DATA", "A8 B2 CA", .endApplication, "010000000021") {
            try Kernel2Bench.reading().run(ShortCard().read + ["-"])
        },
        .init("GET DATA, then the terminal holds back", "A8 B2 CA AE", .onlineRequest) {
            var bench = try Kernel2Bench.reading(data: ["DF8110": ""])
            bench.answers.append(try answer((0xDF8110, "01")))
            return try bench.run(ShortCard().read + [data70, arqc])
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
        // S9, S15, S16, S17
        .init("lost at READ RECORD", "A8 B2", .endApplication, "010000000021") {
            try Kernel2Bench().run([ShortCard().processingOptions, "-"])
        },
        .init("the balance before", "A8 B2 CA AE", .onlineRequest) {
            try Kernel2Bench.balance(before: true).run(ShortCard().read + [balance, arqc])
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
        .init("the terminal says nothing in mag-stripe mode", "A8 B2", .endApplication, "0000010000FF") {
            var bench = Kernel2Bench()
            bench.data = ["DF8110": ""]
            return try bench.run(MagStripeCard().read)
        },
    ]

    @Test(arguments: walks) func everyWay(_ walk: Kernel2Walk) throws {
        let run = try walk.play()
        #expect(run.instructions == walk.instructions)
        #expect(run.outcome.kind == walk.kind, "\(run.outcome.reason)")
        #expect(run.error == walk.error, "\(run.outcome.reason)")
    }

    /// The transitions of the book's diagram: from a state that waits to the next one, or to the end.
    private static let diagram = """
        S1: S2 S3 end
        S2: S2 S3 end
        S3: SR1 S4 S5 S7 end
        SR1: SR1 S4 S5 end
        S4: S4 S4' S5 S6 S9 S10 S12 S16 end
        S4': end
        S5: S4 S5 S6 S9 S10 S12 S16 end
        S6: S5 S6 S9 S10 S12 S16 end
        S7: S7 S8 S13 S14 end
        S8: S8 S13 S14 end
        S9: S15 S17 end
        S10: S11 S15 S17 end
        S11: S15 S17 end
        S12: S9 S10 S12 end
        S13: end
        S14: end
        S15: S15 end
        S16: S9 S10 S12 end
        S17: S15 end
        """

    /// What nobody can walk here, and why.
    private static let exceptions = [
        "S4 S4'":
            "a record is read to its end before the next command is sent, so there is no response to be waited for",
        "S4' end": "the same",
    ]

    /// All transitions of the diagram are walked, and no other ones.
    @Test func stateCoverage() throws {
        var walked: Set<Kernel2Bench.Transition> = []
        for walk in Self.walks { walked.formUnion(try walk.play().transitions) }
        let drawn = Self.diagram.split(separator: "\n").flatMap { line -> [Kernel2Bench.Transition] in
            let states = line.split(whereSeparator: { $0 == ":" || $0 == " " })
            return states.dropFirst().map { Kernel2Bench.Transition("\(states[0]) \($0)") }
        }
        print("Kernel 2: \(walked.count) transitions walked of \(drawn.count) in the diagram of Book C-2")
        for transition in drawn {
            let reason = Self.exceptions[transition.description]
            print("  \(transition): \(walked.contains(transition) ? "walked" : reason ?? "NOT WALKED")")
            #expect(walked.contains(transition) == (reason == nil), "\(transition)")
        }
        #expect(walked.subtracting(drawn).map(\.description).sorted() == [])
        // S4' is none of the kernel's.
        let states = Set(drawn.flatMap { $0.description.split(separator: " ").map(String.init) }).subtracting(["S4'"])
        #expect(states == Set(Kernel2.State.allCases.map(\.rawValue)))
    }
}
