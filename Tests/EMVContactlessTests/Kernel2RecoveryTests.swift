import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

@testable import EMVContactless

/// Torn transactions (EMV Contactless Book C-2, 3.8), and cards that leave at one command or another.
@Suite struct Kernel2RecoveryTests {
    private var lost: Kernel2Bench.Run { get throws { try Kernel2Bench().run(try ShortCard().read + ["-"]) } }

    /// S9.5 to S9.15
    @Test func tornIsLogged() throws {
        let run = try lost
        #expect(run.outcome.kind == .endApplication && run.outcome.start == .b)
        expectEqual(run.outcome.userInterfaceRequestOnRestart?.message, .presentCardAgain)
        expectEqual(run.error, "010000000021")
        let log = try #require(run.outcome.tornTransactions)
        #expect(log.count == 1 && "\(log)" == "1 torn transaction")
        #expect(!String(reflecting: run.outcome).contains("5413330089010434"))
        var dumped = ""
        dump(log, to: &dumped)
        #expect(!dumped.contains("54") || !dumped.contains("84, 19"), "\(dumped)")
    }

    /// S10.7 to S10.19: the DRDOL asks for the number and the amount of the transaction that was torn; so do the answer's.
    @Test func recovered() throws {
        var bench = Kernel2Bench()
        bench.tornTransactions = try #require(try lost.outcome.tornTransactions)
        bench.unpredictableNumber = "FF EE DD CC"
        let run = try bench.run(try ShortCard().read + [MChipCard.cryptogram("80")])
        expectEqual(run.commands.last, joined("80D000000A", "11223344", "000000001234", "00"))
        #expect(run.outcome.kind == .onlineRequest && run[record: 0x9F37] == "11223344")
        expectEqual(run.outcome.tornTransactions?.isEmpty, true)
    }

    /// S10.8, S11: the card has nothing to recover.
    @Test func notRecovered() throws {
        var bench = Kernel2Bench()
        bench.tornTransactions = try #require(try lost.outcome.tornTransactions)
        bench.unpredictableNumber = "FF EE DD CC"
        let run = try bench.run(try ShortCard().read + ["69 85", MChipCard.cryptogram("80")])
        #expect(run.outcome.kind == .onlineRequest && run[record: 0x9F37] == "FFEEDDCC")
        expectEqual(run.outcome.tornTransactions?.isEmpty, true)
        // Torn once more, it is the new one that is logged.
        let again = try bench.run(try ShortCard().read + ["69 85", "-"])
        #expect(again.outcome.start == .b && again.outcome.tornTransactions?.count == 1)
        #expect(again.outcome.tornTransactions != bench.tornTransactions)
        // RECOVER AC lost: the transaction stays in the log.
        let lost = try bench.run(try ShortCard().read + ["-"])
        #expect(lost.outcome.tornTransactions == bench.tornTransactions && lost.error == "010000000021")
    }

    /// S11.5, S11.11, S11.12, S11.91: a card that may have written with the torn transaction (DF8128: C0).
    @Test func tornWhileItWasWritten() throws {
        let torn = try #require(try lost.outcome.tornTransactions)
        var data = try #require(torn.record(like: Self.account)).data
        data[0xDF8128] = [0xC0]
        var bench = Kernel2Bench()
        let time = try bench.activation().transaction.time
        _ = bench.tornTransactions.add(TornTransactionLog.Record(data: data, time: time), maximum: 2)
        bench.unpredictableNumber = "FF EE DD CC"
        // Torn once more, it stays beside the new one.
        let again = try bench.run(try ShortCard().read + ["69 85", "-"])
        #expect(again.outcome.tornTransactions?.count == 2 && again[discretionary: 0xFF8101] == nil)
        // Where there is no room for both, the oldest is handed out.
        bench.data = ["DF811D": "01"]
        let full = try bench.run(try ShortCard().read + ["69 85", "-"])
        expectEqual(full.outcome.tornTransactions?.count, 1)
        expectEqual(full[discretionary: 0xFF8101]?.contains("DF812801C0"), true)
        // Forgotten, it is handed out with an error, and not with a cryptogram.
        let made = try bench.run(try ShortCard().read + ["69 85", MChipCard.cryptogram("80")])
        #expect(made.outcome.kind == .onlineRequest && made[discretionary: 0xFF8101] == nil)
        let refused = try bench.run(try ShortCard().read + ["69 85", "69 85"])
        #expect(refused.error == "00030069851C" && refused.outcome.tornTransactions?.isEmpty == true)
        expectEqual(refused[discretionary: 0xFF8101]?.contains("DF812801C0"), true)
    }

    /// What a torn transaction is found by.
    private static let account: DataRecord = {
        let values: [(TLVTag, String)] = [
            (0x5A, "5413330089010434"), (0x5F34, "01"), (0x9F02, "000000001234"), (0x9F03, "000000000000"),
            (0x5F2A, "0978"), (0x9C, "00"),
        ]
        return DataRecord(values.map { .init($0, (try? [UInt8](hex: $1)) ?? []) })
    }()

    /// S10.13 to S10.18
    @Test(arguments: [("70 00", "00040000001C"), ("77 03 9F 27 00", "00010000001C"), ("00", "00040000001C")])
    func whatIsNoRecovery(_ answer: String, _ error: String) throws {
        let run = try Kernel2Bench().torn.run(try ShortCard().read + [answer + "90 00"])
        expectEqual(run.error, error)
    }

    /// Another card, another amount, another type, or too late: nothing to recover.
    @Test(arguments: [0, 1, 2, 3, 4, 5])
    func otherTransactions(_ what: Int) throws {
        var bench = try Kernel2Bench().torn
        var card = ShortCard()
        switch what {
        case 0: bench.amount = 12_35
        case 1: bench.kind = .refund
        case 2: bench.hour = 13  // 3600 s; 300 are allowed
        case 3: bench.date = "26 11 22"
        case 4: bench.data = ["DF811D": "00"]
        default: card.more = ""
        }
        let run = try bench.run(try card.read + [MChipCard.cryptogram("80")])
        expectEqual(run.instructions, "A8 B2 AE")
        expectEqual(run.outcome.tornTransactions?.count, what == 2 || what == 3 ? 0 : 1)
    }

    /// S9.13: where the log is full, the oldest one is handed out.
    @Test func theLogIsFull() throws {
        var bench = Kernel2Bench()
        bench.data = ["DF811D": "01"]
        let first = try bench.run(try ShortCard().read + ["-"])
        bench.tornTransactions = try #require(first.outcome.tornTransactions)
        bench.amount = 1_00
        let second = try bench.run(try ShortCard().read + ["-"])
        expectEqual(second.outcome.tornTransactions?.count, 1)
        let abandoned = try TLVList(try #require(second.outcome.discretionaryData?[0xFF8101]))
        expectEqual(abandoned[0x9F02]?.value.hex, "000000001234")
        #expect(!"\(second.outcome)".contains("5413330089010434"))
    }

    /// FF8101, in the order of Book C-2, table 4.2 (unchecked, see Rules/kernel2.txt): of a card that has given all that belongs to it, after
    /// relay resistance and with its data storage written.
    @Test func tornRecord() throws {
        var bench = try Kernel2Bench.signing
        bench.data = [
            "DF811D": "01", "DF8104": "", "DF810D": "02", "9F5C": "1011121314151617", "9F53": "52",
            "9F1E": "3132333435363738",
        ]
        bench.discretionary = "9F 5D 03 01 02 00  9F 5E 09 54 13 33 00 89 01 04 34 01"
        bench.answers = [
            try answer(
                (0xDF62, "80"), (0xDF63, "D1"), (0xDF8108, "40"), (0xDF8109, "01 02 03 04 05 06 07 08"),
                (0xDF810A, "80"))
        ]
        var card = MChipCard()
        card.aip = "19 81"
        card.iccCertificate = Kernel2Vectors.iccCertificateRelay
        card.options = "9F 5F 01 20  9F 7F 04 C0 C1 C2 C3  9F 7D 08 A1 A2 A3 A4 A5 A6 A7 A8"
        card.more = "9F 5B 03 DF 63 01  9F 51 03 9F 37 04"
        let relay = "80 0A  AA BB CC DD  00 0A  00 50  00 18 90 00"
        let balance = "9F 50 06 00 00 00 01 23 45 90 00"
        let first = try bench.run([card.processingOptions, relay] + card.records + [balance, "-"])
        expectEqual(first.instructions, "A8 EA B2 B2 B2 CA AE")
        // The log has room for one: the next one puts it out.
        bench.tornTransactions = try #require(first.outcome.tornTransactions)
        bench.amount = 1
        let second = try bench.run([card.processingOptions, relay] + card.records + [balance, "-"])
        // EXCHANGE RELAY RESISTANCE DATA has the unpredictable number.
        let number = first.commands[1].dropFirst(10).dropLast(2)
        expectEqual(
            second[discretionary: 0xFF8101],
            bytes(
                """
                9F0206 000000001234  9F0306 000000000000  5A08 5413330089010434  5F3401 01  DF810406 000000012345
                DF81071A 000000001234 0276 0000000002 0978 261121 00 \(number) 1F0302  9F3403 1F0302
                DF811304 \(number)  9F7D08 A1A2A3A4A5A6A7A8  DF812801 C0  9F1E08 3132333435363738  DF811101 22
                DF811401 50  9F3303 E00808  9F1A02 0276  9F3501 22  9505 0000000002  9F5301 52  5F2A02 0978
                9A03 261121  9F2103 120000  9C01 00  9F3704 \(number)  DF830104 \(number)  DF830204 AABBCCDD
                DF830302 000A  DF830402 0050  DF830502 0018  DF830602 003A  DF830701 00
                """
            ).hex)
    }

    /// At each command of a transaction: the card is asked for again, and the transaction goes on as if nothing had happened;
    /// lost at GENERATE AC it is recovered, and no cryptogram is made twice.
    @Test(.timeLimit(.minutes(5)), arguments: 0..<5, [false, true])
    func mastercardIsLostOnce(_ lost: Int, _ hasRecovery: Bool) async throws {
        let card = try #require(VirtualCards.named("mastercard"))
        let terminal = ContactlessTerminal(
            EntryPoint(configuration: .test, keys: .published))
        let field = LosingKernel2Field(card, lost: lost, hasRecovery: hasRecovery)
        let report = try await terminal.perform(purchase(12_34), in: field) { _ in }
        expectEqual(report.outcome.kind, .onlineRequest, "\(report.outcome.reason)")
        let all = ["A4", "A4", "A8", "B2", "AE"]
        let again = lost == 4 && hasRecovery ? all.dropLast() + ["D0"] : all
        let instructions: [String] = all.prefix(lost + 1) + again
        expectEqual(report.exchanges.map { [$0.header[1]].hex }, instructions)
        #expect(terminal.memory.current.tornTransactions.isEmpty)
    }

    /// The next transaction of the terminal, and of its copies, sees the log.
    @Test func theLogOutlivesTheTransaction() async throws {
        let terminal = ContactlessTerminal(
            EntryPoint(configuration: .test, keys: .published))
        let field = LosingKernel2Field(
            try #require(VirtualCards.named("mastercard")), lost: 4, hasRecovery: true, comesBack: false)
        await #expect(throws: CardError.self) { try await terminal.perform(purchase(12_34), in: field) { _ in } }
        expectEqual(terminal.memory.current.tornTransactions.count, 1)
        let copy = terminal
        let report = try await copy.perform(purchase(12_34), in: field.backAgain()) { _ in }
        expectEqual(report.exchanges.last.map { [$0.header[1]].hex }, "D0")
        #expect(report.outcome.kind == .onlineRequest && copy.memory.current.tornTransactions.isEmpty)
    }

    /// A terminal that is made anew for each read keeps the log of the one before, without a word in the configuration.
    @Test func theLogOutlivesTheEntryPoint() async throws {
        var configuration = ReaderConfiguration.unattendedTest
        for index in configuration.combinations.indices { configuration.combinations[index].data[0xDF811D] = nil }
        let log = TerminalMemory()
        func terminal() throws -> ContactlessTerminal {
            ContactlessTerminal(
                EntryPoint(configuration: try configuration.validated(), keys: .published), memory: log)
        }
        let field = LosingKernel2Field(
            try #require(VirtualCards.named("mastercard")), lost: 4, hasRecovery: true, comesBack: false)
        await #expect(throws: CardError.self) { try await terminal().perform(purchase(12_34), in: field) { _ in } }
        expectEqual(log.current.tornTransactions.count, 1)
        let report = try await terminal().perform(purchase(12_34), in: field.backAgain()) { _ in }
        expectEqual(report.exchanges.last.map { [$0.header[1]].hex }, "D0")
        #expect(report.outcome.kind == .onlineRequest && log.current.tornTransactions.isEmpty)
    }

    /// The terminal is asked while the card waits, and what it says is used.
    @Test func theTerminalAnswers() async throws {
        var configuration = ReaderConfiguration.test
        for index in configuration.combinations.indices where configuration.combinations[index].kernel == 2 {
            configuration.combinations[index].data[0xDF8110] = []
        }
        try configuration.validated()
        let terminal = ContactlessTerminal(EntryPoint(configuration: try configuration.validated()))
        let field = LosingKernel2Field(try #require(VirtualCards.named("mastercard")), lost: 99, hasRecovery: false)
        let asked = Mutex<[DataExchange]>([])
        let report = try await terminal.perform(
            purchase(12_34), in: field,
            exchange: { exchange in
                asked.withLock { $0.append(exchange) }
                return DataRecord([.init(0xDF8110, [1])])
            }, show: { _ in })
        expectEqual(report.outcome.kind, .onlineRequest)
        expectEqual(asked.withLock { $0 }, [DataExchange(dataNeeded: [0xDF8110])])
        // Without anybody to answer, it is as if there were no answer.
        let silent = try await terminal.perform(purchase(12_34), in: field) { _ in }
        expectEqual(silent.outcome.discretionaryData?[0xDF8115]?.hex, "0000010000FF")
    }
}

/// A field with a virtual card that leaves once, and may remember its cryptogram: a DRDOL is put into its record.
final class LosingKernel2Field: ContactlessField {
    private let card: any VirtualCard
    private let lost: Int
    private let hasRecovery: Bool
    private let comesBack: Bool
    private let state = Mutex((count: 0, activations: 0, cryptogram: [UInt8]()))

    init(_ card: any VirtualCard, lost: Int, hasRecovery: Bool, comesBack: Bool = true) {
        (self.card, self.lost, self.hasRecovery, self.comesBack) = (card, lost, hasRecovery, comesBack)
    }

    /// The same card, which has come back.
    func backAgain() -> LosingKernel2Field {
        let field = LosingKernel2Field(card, lost: -1, hasRecovery: hasRecovery)
        let cryptogram = state.withLock { $0.cryptogram }
        field.state.withLock { $0.cryptogram = cryptogram }
        return field
    }

    func activate() async throws -> FieldEvent {
        let isFirst = state.withLock { state in
            state.activations += 1
            return state.activations == 1
        }
        guard isFirst || comesBack else { throw CardError(.cardAbsent) }
        card.reset()
        return .card(Channel(field: self))
    }

    func deactivate(for duration: Duration) async throws {}
    func waitForRemoval() async throws {}

    private struct Channel: CardChannel {
        let field: LosingKernel2Field

        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
            let number = field.state.withLock { state in
                defer { state.count += 1 }
                return state.count
            }
            let response: ResponseAPDU
            if command.ins == 0xD0 {
                response = try ResponseAPDU(field.state.withLock { $0.cryptogram })
            } else {
                guard let bytes = field.card.exchange(command.bytes) else { throw CardError(.cardRemoved) }
                response = try ResponseAPDU(bytes)
            }
            if command.ins == 0xAE { field.state.withLock { $0.cryptogram = response.bytes } }
            guard number != field.lost else { throw CardError(.cardRemoved) }
            guard field.hasRecovery, command.ins == 0xB2, let list = try? TLVList(response.data),
                let record = list.first
            else { return response }
            let drdol: [UInt8] = [0x9F, 0x51, 0x03, 0x9F, 0x37, 0x04]
            return ResponseAPDU(data: TLVTag(0x70).encode(record.value + drdol), status: .success)
        }
    }
}
