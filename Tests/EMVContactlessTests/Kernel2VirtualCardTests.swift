import EMVContactless
import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

/// Whole transactions with virtual Mastercards, which were written apart from the kernel: Entry Point, Kernel 2.
@Suite struct Kernel2VirtualCardTests {
    /// The cards approve up to 25.00 offline; the cardholder is verified from 50.00 on.
    @Test(
        arguments: [
            // Card, amount, outcome, cardholder verification, instructions of each presentation
            ("emv-cda", 12_34, .approved, Outcome.CVM.none, ["A4 A4 A8 B2 B2 B2 AE"]),
            ("emv-cda", 25_01, .onlineRequest, Outcome.CVM.none, ["A4 A4 A8 B2 B2 B2 AE"]),
            ("emv-cda", 60_00, .onlineRequest, .onlinePIN, ["A4 A4 A8 B2 B2 B2 AE"]),
            // It authenticates nothing offline.
            ("mastercard", 12_34, .onlineRequest, Outcome.CVM.none, ["A4 A4 A8 B2 AE"]),
            ("mastercard-online", 12_34, .onlineRequest, Outcome.CVM.none, ["A4 A4 A8 B2 B2 B2 AE"]),
            // An AAC without signature, though one was asked for; the card has contacts (S910.74).
            ("mastercard-decline", 12_34, .tryAnotherInterface, Outcome.CVM.none, ["A4 A4 A8 B2 B2 B2 AE"]),
            ("mastercard-cda-fails", 12_34, .endApplication, Outcome.CVM.none, ["A4 A4 A8 B2 B2 B2 AE"]),
            ("mastercard-odd-keys", 12_34, .approved, Outcome.CVM.none, ["A4 A4 A8 B2 B2 B2 AE"]),
            ("mastercard-padded-keys", 12_34, .approved, Outcome.CVM.none, ["A4 A4 A8 B2 B2 B2 AE"]),
            ("mastercard-advance", 12_34, .approved, Outcome.CVM.none, ["A4 A4 A8 EA B2 B2 B2 AE"]),
            ("mastercard-rrp-slow", 12_34, .onlineRequest, Outcome.CVM.none, ["A4 A4 A8 EA EA EA B2 B2 B2 AE"]),
            ("mastercard-rrp-early", 12_34, .endApplication, nil, ["A4 A4 A8 EA"]),
            ("mastercard-rrp-mismatch", 12_34, .onlineRequest, Outcome.CVM.none, ["A4 A4 A8 EA B2 B2 B2 AE"]),
            ("mastercard-rrp-wrong", 12_34, .endApplication, nil, ["A4 A4 A8 EA"]),
            ("mastercard-torn", 12_34, .approved, Outcome.CVM.none, ["A4 A4 A8 B2 B2 B2 AE", "A4 A4 A8 B2 B2 B2 D0"]),
            (
                "mastercard-torn-lost", 12_34, .approved, Outcome.CVM.none,
                ["A4 A4 A8 B2 B2 B2 AE", "A4 A4 A8 B2 B2 B2 AE"]
            ),
            ("mastercard-balance", 12_34, .approved, Outcome.CVM.none, ["A4 A4 A8 B2 B2 B2 AE"]),
            ("mastercard-stripe", 12_34, .onlineRequest, Outcome.CVM.none, ["A4 A4 A8 B2 2A"]),
            ("mastercard-stripe", 60_00, .onlineRequest, .signature, ["A4 A4 A8 B2 2A"]),
            ("mastercard-stripe-wide", 12_34, .onlineRequest, Outcome.CVM.none, ["A4 A4 A8 B2 2A"]),
            (
                "mastercard-stripe-phone", 60_00, .onlineRequest, .deviceCVM,
                ["A4 A4 A8 B2 2A", "A4 A4 A8 B2 2A"]
            ),
            ("mastercard-storage", 12_34, .approved, Outcome.CVM.none, ["A4 A4 A8 B2 B2 B2 AE"]),
            ("mastercard-storage-rrp", 12_34, .approved, Outcome.CVM.none, ["A4 A4 A8 EA B2 B2 B2 AE"]),
            (
                "mastercard-phone", 60_00, .onlineRequest, .deviceCVM,
                ["A4 A4 A8 B2 B2 B2 AE", "A4 A4 A8 B2 B2 B2 AE"]
            ),
            ("mastercard-phone-ready", 60_00, .onlineRequest, .deviceCVM, ["A4 A4 A8 B2 B2 B2 AE"]),
            ("mastercard-phone-ready", 12_34, .onlineRequest, Outcome.CVM.none, ["A4 A4 A8 B2 B2 B2 AE"]),
            ("maestro", 12_34, .approved, Outcome.CVM.none, ["A4 A4 A8 B2 B2 B2 AE"]),
            ("maestro", 60_00, .onlineRequest, .onlinePIN, ["A4 A4 A8 B2 B2 B2 AE"]),
        ] as [(String, UInt64, Outcome.Kind, Outcome.CVM?, [String])])
    func personalities(
        _ name: String, _ amount: UInt64, _ kind: Outcome.Kind, _ cvm: Outcome.CVM?, _ instructions: [String]
    ) throws {
        let play = try Play(name, amount: amount)
        expectEqual(play.final.outcome.kind, kind, "\(play.final.outcome.reason)")
        expectEqual(play.final.outcome.cvm, cvm)
        expectEqual(play.instructions, instructions)
    }

    // MARK: Authentication

    /// A TC is signed, and an ARQC too; the data record has the cryptogram that the signature carries.
    @Test(arguments: [
        "emv-cda", "mastercard-odd-keys", "mastercard-padded-keys", "mastercard-online", "mastercard-advance",
        "mastercard-phone-ready", "maestro", "mastercard-storage-rrp",
    ])
    func authentic(_ name: String) throws {
        let play = try Play(name, amount: 12_34)
        expectEqual(play.final.outcome.isAuthentic, true)
        let generate = try #require(play.commands.last { $0[1] == 0xAE })
        #expect(generate[2] & 0x10 != 0)
        expectEqual(play.responses.last?.hex.contains("9F4B"), true)
        expectEqual(play.final.outcome.dataRecord?[0x9F26]?.count, 8)
    }

    /// Without the key of the certification authority there is no CDA, and nothing is approved.
    @Test func unknownAuthority() throws {
        let play = try Play("emv-cda", amount: 12_34, keys: CAPublicKeys())
        expectEqual(play.final.outcome.kind, .onlineRequest, "\(play.final.outcome.reason)")
        let results = try #require(play.final.outcome.dataRecord?[0x95])
        #expect(results[0] & 0x04 != 0)  // CDA failed
        try expectEqual(#require(play.commands.last)[2], 0x80)
    }

    @Test(arguments: [("mastercard-cda-fails", "02"), ("mastercard-rrp-early", "06"), ("mastercard-rrp-wrong", "04")])
    func errors(_ name: String, _ level2: String) throws {
        let play = try Play(name, amount: 12_34)
        expectEqual(play.final.outcome.discretionaryData?[0xDF8115]?.hex, "00\(level2)000000" + "1C")
    }

    // MARK: Relay resistance

    /// TVR byte 5: performed; with the limits exceeded, the threshold exceeded.
    @Test(arguments: [
        ("emv-cda", "01"), ("mastercard-advance", "02"), ("mastercard-rrp-slow", "0E"),
        ("mastercard-rrp-mismatch", "0A"),
    ])
    func relayResults(_ name: String, _ results: String) throws {
        let play = try Play(name, amount: 12_34)
        expectEqual(play.final.outcome.dataRecord?[0x95]?.suffix(1).hex, results)
    }

    /// Somebody between card and terminal who gives the card more time than it takes: the times are signed.
    @Test(arguments: [5, 7, 9, 11]) func relayed(_ place: Int) throws {
        let honest = try #require(VirtualCards.named("mastercard-advance"))
        let relay = AlteringCard(honest) { command, response in
            guard command[1] == 0xEA, response.count > 12 else { return response }
            var response = response
            response[place] ^= 1
            return response
        }
        let play = try Play(relay, amount: 12_34)
        expectEqual(play.final.outcome.kind, .endApplication)
        expectEqual(play.final.outcome.isAuthentic, false)
        #expect(play.final.outcome.reason.contains("relay resistance data"), "\(play.final.outcome.reason)")
    }

    // MARK: Mag-stripe mode

    /// What the issuer finds in the tracks, wherever the card wants the digits: numbers of digits, the counter, and CVC3 over
    /// the unpredictable number.  An issuer in Python checks them (Vectors/kernel2-tracks.py).
    @Test(
        .enabled(if: Program.isInstalled("python3") && Program.isInstalled("openssl"), "python3 or openssl is missing"))
    func placements() async throws {
        let text = try #require(VirtualCards.all.first { $0.name == "mastercard-stripe" }).text
            .replacing("9F36 005D ", with: "9F36 3038 ")
        var lines = ""
        let places = (0...5).flatMap { counter in (0...8).map { (counter, $0) } }.filter { $0 + $1 <= 12 }
        expectEqual(places.count, 53)
        let played = Tier.few(places, 9)
        for (counterDigits, numberDigits) in played {
            var dice = SplitMix(state: UInt64(counterDigits * 16 + numberDigits))
            func maps() -> (checksum: Int, numbers: Int) {
                let places = (1...12).shuffled(using: &dice)
                func map(_ places: some Sequence<Int>) -> Int { places.reduce(0) { $0 | 1 << $1 } }
                let numbers = counterDigits + numberDigits
                let checksums = min((counterDigits + 2 * numberDigits) % 6, places.count - numbers)
                return (map(places[..<checksums]), map(places[checksums..<(checksums + numbers)]))
            }
            let (one, two) = (maps(), maps())
            func digits(_ number: Int, _ count: Int) -> String {
                let hex = String(number, radix: 16, uppercase: true)
                return String(repeating: "0", count: count - hex.count) + hex
            }
            let parameters = [
                ("pcvc3-1", digits(one.checksum, 12)), ("punatc-1", digits(one.numbers, 12)),
                ("natc-1", digits(counterDigits, 2)), ("pcvc3-2", digits(two.checksum, 4)),
                ("punatc-2", digits(two.numbers, 4)), ("natc-2", digits(counterDigits, 2)),
            ]
            var file = text
            for (name, value) in parameters { file = file.replacing("$" + name, with: value) }
            let play = try Play(try CardFile(parsing: file).makeCard(), amount: 12_34)
            expectEqual(play.final.outcome.kind, .onlineRequest, "\(play.final.outcome.reason)")
            let record = try #require(play.final.outcome.dataRecord)
            let number = try #require(play.commands.last).dropFirst(5).dropLast()
            lines +=
                ([record[0x56]?.hex, record[0x9F6B]?.hex, Array(number).hex].map { $0 ?? "" } + parameters.map(\.1))
                .joined(separator: ",") + ",\(numberDigits)\n"
        }
        let outcome = try await Program.run(
            ["python3", Kernel2TracksTests.issuer, "verify"], input: lines, timeout: .seconds(300))
        expectEqual(outcome.output, String(repeating: "right\n", count: played.count), "\(outcome)")
    }

    /// See phone first; the second time the number of digits tells the issuer that the holder has been verified.
    @Test func stripePhone() throws {
        let play = try Play("mastercard-stripe-phone", amount: 60_00)
        #expect(play.messages.contains(.seePhone))
        expectEqual(play.fieldOff, [1300])
        let track = try #require(play.final.outcome.dataRecord?[0x9F6B]).hex
        #expect(track.hasSuffix("8F"))  // 3 + 5
    }

    @Test func phone() throws {
        let play = try Play("mastercard-phone", amount: 60_00)
        #expect(play.messages.contains(.seePhone))
        expectEqual(play.fieldOff, [1300])
        expectEqual(play.final.outcome.isAuthentic, true)
        // CVM Results: plaintext PIN by the device, successful.
        expectEqual(play.final.outcome.dataRecord?[0x9F34]?.hex, "010002")
    }

    // MARK: Torn transactions

    @Test func tornAndRecovered() throws {
        let card = try #require(VirtualCards.named("mastercard-torn"))
        let play = try Play(card, amount: 12_34)
        expectEqual(play.final.outcome.dataRecord?[0x9F36]?.hex, "0021")
        expectEqual(play.final.outcome.isAuthentic, true)
        // Asked for what the terminal knows of the first time.
        expectEqual(play.commands.last?.hex, "80D00000040102030400")
        try expectEqual(balance(card), "9F50060000000047669000")
        expectEqual(play.tornTransactions.count, 0)
    }

    /// What the card has approved without recovery is lost, and it approves once more.
    @Test func tornAndLost() throws {
        let card = try #require(VirtualCards.named("mastercard-torn-lost"))
        let play = try Play(card, amount: 12_34)
        expectEqual(play.final.outcome.dataRecord?[0x9F36]?.hex, "0022")
        try expectEqual(balance(card), "9F50060000000035329000")
    }

    /// At each command of the M/Chip Advance card, which has carried it out or not: asked for again, it is approved, and what
    /// it approved before is recovered.
    @Test(arguments: 0..<8, [true, false])
    func lostAtEach(_ lost: Int, _ isHeard: Bool) throws {
        let card = try #require(VirtualCards.named("mastercard-advance"))
        let play = try Play(card, amount: 12_34, lost: lost, isHeard: isHeard)
        let whole = ["A4", "A4", "A8", "EA", "B2", "B2", "B2", "AE"]
        let again = lost < 7 ? whole : Array(whole.dropLast()) + (isHeard ? ["D0"] : ["D0", "AE"])
        let instructions: [String] = [whole[...lost].joined(separator: " "), again.joined(separator: " ")]
        expectEqual(play.instructions, instructions)
        expectEqual(play.final.outcome.kind, .approved, "\(play.final.outcome.reason)")
        expectEqual(play.final.outcome.isAuthentic, true)
        #expect(play.messages.contains(lost < 3 ? .presentCard : .presentCardAgain))
        try expectEqual(balance(card), "9F50060000000047669000")
        expectEqual(play.tornTransactions.count, 0)
    }

    /// The answer to RECOVER AC is lost, too: once more.
    @Test func lostInRecovery() throws {
        let card = try #require(VirtualCards.named("mastercard-torn"))
        let play = try Play(card, amount: 12_34, lost: 13, isHeard: true)
        expectEqual(
            play.instructions, ["A4 A4 A8 B2 B2 B2 AE", "A4 A4 A8 B2 B2 B2 D0", "A4 A4 A8 B2 B2 B2 D0"])
        expectEqual(play.final.outcome.kind, .approved, "\(play.final.outcome.reason)")
        expectEqual(play.final.outcome.dataRecord?[0x9F36]?.hex, "0021")
    }

    // MARK: Balance, and what the terminal reads and writes

    /// DF8104 and DF8105, before and after the cryptogram.
    @Test func balanceBeforeAndAfter() throws {
        let play = try Play("mastercard-balance", amount: 12_34, data: [0xDF8104: [], 0xDF8105: []])
        expectEqual(play.instructions, ["A4 A4 A8 B2 B2 B2 CA AE CA"])
        expectEqual(play.final.outcome.discretionaryData?[0xDF8104]?.hex, "000000003000")
        expectEqual(play.final.outcome.discretionaryData?[0xDF8105]?.hex, "000000001766")
        // A card that does not say it has one is not asked.
        try expectEqual(
            Play("emv-cda", amount: 12_34, data: [0xDF8104: [], 0xDF8105: []]).instructions,
            ["A4 A4 A8 B2 B2 B2 AE"])
    }

    @Test func envelopes() throws {
        let card = try #require(VirtualCards.named("mastercard-balance"))
        let play = try Play(
            card, amount: 12_34,
            data: [
                0xDF8112: [0x9F, 0x70, 0x9F, 0x75], 0xFF8102: wire("9F 75 02 AB CD"),
                0xFF8103: wire("9F 75 03 01 02 03"),
            ])
        expectEqual(play.instructions, ["A4 A4 A8 CA CA B2 B2 B2 DA AE DA"], "\(play.final.outcome.reason)")
        expectEqual(play.final.outcome.kind, .approved)
        expectEqual(play.final.outcome.discretionaryData?[0xDF810E]?.hex, "80")
        expectEqual(play.final.outcome.discretionaryData?[0xDF810F]?.hex, "80")
        expectEqual(card.exchange([0x80, 0xCA, 0x9F, 0x75, 0x00])?.hex, "9F75030102039000")
    }

    // MARK: Integrated data storage

    private static let terminal: [TLVTag: [UInt8]] = [
        0xDF810D: [0x02],  // DSVN Term
        0x9F5C: [0x81, 0x99, 0x82, 0x99, 0x83, 0x99, 0x84, 0x99],  // DS Requested Operator ID
    ]
    private static let input: [UInt8] = [0x12, 0x23, 0x34, 0x45, 0x56, 0x67, 0x78, 0x89]

    /// What the operator answers when he has seen his slot: DS AC Type, DS Input (Card), DS Digest H, DS ODS Info, DS ODS Term, DS
    /// Input (Term), DS ODS Info For Reader.
    private static func answer(
        _ type: UInt8 = 0x40, input: [UInt8] = Kernel2VirtualCardTests.input, next: [UInt8] = [9, 8, 7, 6, 5, 4, 3, 2],
        information: UInt8 = 0x80,
        data: [UInt8], reader: UInt8 = 0xE0
    ) -> DataRecord {
        DataRecord([
            .init(0xDF8108, [type]), .init(0xDF60, input), .init(0xDF61, [UInt8](repeating: 0, count: 8)),
            .init(0xDF62, [information]), .init(0xDF63, data), .init(0xDF8109, next), .init(0xDF810A, [reader]),
        ])
    }

    /// The operator sees his data.
    @Test func operatorReads() throws {
        let play = try Play("mastercard-storage", amount: 12_34, data: Self.terminal)
        expectEqual(play.final.outcome.kind, .approved, "\(play.final.outcome.reason)")
        expectEqual(play.final.outcome.discretionaryData?[0xDF810B]?.hex, "80")
        expectEqual(play.toSend[0x9F54].map { String(decoding: $0, as: UTF8.self) }, "ten rides")
        expectEqual(play.toSend[0x9F7D], Self.input)
        expectEqual(play.toSend[0x9F6F], [0x80])
    }

    /// He writes with the input that he alone knows, and the next time with that of the next digest, which the kernel has
    /// computed and the card compares with its own.
    @Test(arguments: ["mastercard-storage", "mastercard-storage-rrp"]) func operatorWrites(_ name: String) throws {
        let card = try #require(VirtualCards.named(name))
        let nine = Array("nine rides".utf8)
        let first = try Play(card, amount: 12_34, data: Self.terminal, answers: [Self.answer(data: nine)])
        expectEqual(first.final.outcome.kind, .approved, "\(first.final.outcome.reason)")
        expectEqual(first.final.outcome.isAuthentic, true)
        expectEqual(first.final.outcome.discretionaryData?[0xDF810B]?.hex, "C0")
        let summary = try #require(first.final.outcome.discretionaryData?[0xDF8102])
        let second = try Play(
            card, amount: 12_34, data: Self.terminal,
            answers: [Self.answer(input: [9, 8, 7, 6, 5, 4, 3, 2], data: Array("eight".utf8))])
        expectEqual(second.toSend[0x9F54], nine)
        expectEqual(second.toSend[0x9F7D], summary)
        expectEqual(second.final.outcome.discretionaryData?[0xDF810B]?.hex, "C0", "\(second.final.outcome.reason)")
        let third = try Play(card, amount: 12_34, data: Self.terminal)
        expectEqual(third.toSend[0x9F54].map { String(decoding: $0, as: UTF8.self) }, "eight")
    }

    /// With another input nothing is written: read, but not written; the end, if the operator wants that; an AAC, signed, if
    /// the card is told to decline then.
    @Test(
        arguments: [
            (0x80, 0xE0, .approved, "80", "00"), (0x80, 0xE2, .endApplication, "80", "0C"),
            (0x88, 0xE0, .tryAnotherInterface, "80", "00"),
        ] as [(UInt8, UInt8, Outcome.Kind, String, String)])
    func operatorDoesNotWrite(
        _ information: UInt8, _ reader: UInt8, _ kind: Outcome.Kind, _ status: String, _ level2: String
    ) throws {
        let card = try #require(VirtualCards.named("mastercard-storage"))
        let play = try Play(
            card, amount: 12_34, data: Self.terminal,
            answers: [
                Self.answer(input: [1, 2, 3, 4, 5, 6, 7, 8], information: information, data: [1], reader: reader)
            ])
        expectEqual(play.final.outcome.kind, kind, "\(play.final.outcome.reason)")
        expectEqual(play.final.outcome.isAuthentic, true)
        expectEqual(play.final.outcome.discretionaryData?[0xDF810B]?.hex, status)
        expectEqual(play.final.outcome.discretionaryData?[0xDF8115]?.prefix(2).hex, "00" + level2)
        let again = try Play(card, amount: 12_34, data: Self.terminal)
        expectEqual(again.toSend[0x9F54].map { String(decoding: $0, as: UTF8.self) }, "ten rides")
    }

    /// An operator without a slot gets one.
    @Test func operatorTakesASlot() throws {
        var terminal = Self.terminal
        terminal[0x9F5C] = [1, 2, 3, 4, 5, 6, 7, 8]
        let card = try #require(VirtualCards.named("mastercard-storage"))
        let play = try Play(
            card, amount: 12_34, data: terminal, answers: [Self.answer(information: 0x40, data: [0xAA, 0xBB])])
        #expect(play.toSend[0x9F5F] == [0xC0] && play.toSend[0x9F54] == nil)
        expectEqual(play.final.outcome.discretionaryData?[0xDF810B]?.hex, "C0", "\(play.final.outcome.reason)")
        let again = try Play(card, amount: 12_34, data: terminal)
        #expect(again.toSend[0x9F54] == [0xAA, 0xBB] && again.toSend[0x9F6F] == [0x40])
    }

    // MARK: Help

    private func balance(_ card: any VirtualCard) throws -> String {
        try #require(card.exchange([0x80, 0xCA, 0x9F, 0x50, 0x00])).hex
    }

    /// One transaction, with the card put on the reader each time it is asked for.
    private struct Play {
        let final: FinalOutcome
        /// Of the commands, one string for each time the field came up.
        private(set) var instructions: [String] = []
        private(set) var commands: [[UInt8]] = []
        private(set) var responses: [[UInt8]] = []
        private(set) var messages: [UserInterfaceRequest.Message?] = []
        private(set) var fieldOff: [Int] = []
        /// What the kernel has told the terminal.
        private(set) var toSend = DataRecord()
        let tornTransactions: TornTransactionLog

        init(
            _ name: String, amount: UInt64, data: [TLVTag: [UInt8]] = [:], keys: CAPublicKeys? = nil
        ) throws {
            try self.init(try #require(VirtualCards.named(name)), amount: amount, data: data, keys: keys)
        }

        /// - Parameters:
        ///   - data: of the terminal.
        ///   - answers: what the terminal answers where the kernel has something for it.
        ///   - lost: the command, counted from 0, at which the card leaves; `isHeard` if it has carried that out.
        init(
            _ card: any VirtualCard, amount: UInt64, data: [TLVTag: [UInt8]] = [:], answers: [DataRecord] = [],
            keys: CAPublicKeys? = nil, lost: Int? = nil, isHeard: Bool = true
        ) throws {
            var configuration = ReaderConfiguration.test
            configuration.combinations = configuration.combinations.filter { $0.kernel == 2 }
            for index in configuration.combinations.indices {
                configuration.combinations[index].floorLimit = nil
                configuration.combinations[index].data.merge(data) { $1 }
            }
            let day = try #require(CalendarDate(year: 2026, month: 11, day: 21))
            let time = try #require(TerminalTime(day, hour: 12))
            let currency = try #require(Currency["EUR"])
            let transaction = try #require(
                Transaction(
                    .purchase, amount: amount, currency: currency, time: time, unpredictableNumber: [1, 2, 3, 4]))
            var entryPoint = EntryPoint(
                configuration: try configuration.validated(for: [2: Kernel2.self]), keys: try keys ?? Self.keys())
            var answers = answers[...]
            var event = EntryPoint.Event.startA(transaction)
            while true {
                let step = entryPoint.next(event)
                messages += step.userInterfaceRequests.map(\.message)
                switch step.action {
                case .activateField:
                    try #require(instructions.count < 4)
                    card.reset()
                    instructions.append("")
                    event = .cardPresent
                case .send(let command):
                    instructions[instructions.count - 1] += (instructions.last == "" ? "" : " ") + [command.ins].hex
                    commands.append(command.bytes)
                    let isLost = lost == commands.count - 1
                    let response = isLost && !isHeard ? nil : card.exchange(command.bytes)
                    guard !isLost, let response else {
                        event = .communicationError(.timeout)
                        continue
                    }
                    responses.append(response)
                    event = .response(try ResponseAPDU(response), after: card.processingTime(of: command.bytes))
                case .exchange(let exchange):
                    for element in exchange.dataToSend.elements { toSend[element.tag] = element.value }
                    event = .terminalData(answers.popFirst() ?? DataRecord())
                case .switchFieldOff(let milliseconds):
                    fieldOff.append(milliseconds)
                    event = .fieldIsOff
                case .finish(let final):
                    self.final = final
                    tornTransactions = entryPoint.memory.tornTransactions
                    return
                }
            }
        }

        private static func keys() throws -> CAPublicKeys {
            var keys = CAPublicKeys()
            for key in VirtualCards.certificationAuthorityKeys {
                keys.insert(
                    try CAPublicKey(
                        environment: .test, rid: key.rid, index: key.index, modulus: key.modulus,
                        exponent: key.exponent, checksum: key.checksum))
            }
            return keys
        }
    }
}

/// A card with somebody between it and the reader.
private final class AlteringCard: VirtualCard {
    private let card: any VirtualCard
    private let alter: @Sendable ([UInt8], [UInt8]) -> [UInt8]

    init(_ card: any VirtualCard, _ alter: @escaping @Sendable ([UInt8], [UInt8]) -> [UInt8]) {
        (self.card, self.alter) = (card, alter)
    }

    var radio: VirtualCardRadio { card.radio }
    func reset() { card.reset() }
    func exchange(_ command: [UInt8]) -> [UInt8]? { card.exchange(command).map { alter(command, $0) } }
    func processingTime(of command: [UInt8]) -> Duration { card.processingTime(of: command) }
}
