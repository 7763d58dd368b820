import EMVContactless
import SmartCard
import SmartCardPN532
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

/// EMV Contactless Book B, 3.2.1.4 and 3.2.1.5, with cards on an ACR122U.
@Suite(.timeLimit(.minutes(5))) struct PN532FieldTests {
    private func reader(_ names: String...) throws -> VirtualReader {
        let reader = VirtualReader(SoftwareACR122U())
        for name in names { reader.device.insert(try #require(VirtualCards.named(name))) }
        return reader
    }

    private func transaction() throws -> Transaction {
        let euro = try #require(Currency["EUR"])
        let day = try #require(CalendarDate(year: 2026, month: 5, day: 4))
        let time = try #require(TerminalTime(day))
        return try #require(
            Transaction(
                .purchase, amount: 12_34, currency: euro, time: time,
                unpredictableNumber: [1, 2, 3, 4]))
    }

    /// Two cards, of one type and of two; then one of them, or none and later one, or at first still two.
    @Test(arguments: [("mastercard", false), ("type-b", false), ("mastercard", true)])
    func collision(_ other: String, _ isEmptyBetween: Bool) async throws {
        let reader = try reader("visa", other)
        let cards = reader.device.cards
        let transaction = try transaction()
        let shown = Mutex<[UserInterfaceRequest]>([])
        let terminal = ContactlessTerminal(
            EntryPoint(configuration: try ReaderConfiguration.test.validated(for: [3: Kernel3.self])))
        let report = try await ACR122U(over: reader).withChip { chip in
            try await terminal.perform(transaction, in: PN532Field(chip)) { request in
                let count = shown.withLock { shown in
                    shown.append(request)
                    return shown.count
                }
                switch count {
                case 2:  // present one card only
                    reader.device.remove(isEmptyBetween ? nil : cards[1])
                case 3 where isEmptyBetween:  // ready to read
                    reader.device.insert(cards[0])
                default: break
                }
            }
        }
        #expect(
            shown.withLock { $0.prefix(3) } == [
                .init(.presentCard, .readyToRead), .init(.presentOneCardOnly, .processingError),
                .init(.presentOneCardOnly, .readyToRead),
            ])
        #expect(report.outcome.kind == .onlineRequest && report.exchanges.count == 4)
    }

    @Test func aCollisionWithoutEnd() async throws {
        let reader = try reader("visa", "mastercard")
        let transaction = try transaction()
        let terminal = ContactlessTerminal(
            EntryPoint(configuration: try ReaderConfiguration.test.validated(for: [3: Kernel3.self])))
        let error = await #expect(throws: CardError.self) {
            _ = try await ACR122U(over: reader).withChip { chip in
                try await terminal.perform(transaction, in: PN532Field(chip, patience: .milliseconds(300))) { _ in }
            }
        }
        #expect(error?.kind == .cardAbsent)
        #expect(error.map { "\($0)".contains("more than one") } == true)
    }

    @Test func nobodyPresentsACard() async throws {
        let reader = try reader()
        let error = await #expect(throws: CardError.self) {
            _ = try await ACR122U(over: reader).withChip { chip in
                try await PN532Field(chip, patience: .milliseconds(50)).activate()
            }
        }
        #expect(error?.kind == .cardAbsent)
    }

    /// A telephone that refuses the first time and a card that is told of the issuer's answer come from a cold start again.
    @Test func twice() async throws {
        let reader = try reader("phone")
        let transaction = try transaction()
        let terminal = ContactlessTerminal(
            EntryPoint(configuration: try ReaderConfiguration.test.validated(for: [3: Kernel3.self])))
        let report = try await ACR122U(over: reader).withChip { chip in
            try await terminal.perform(transaction, in: PN532Field(chip)) { _ in }
        }
        #expect(report.outcome.kind == .onlineRequest && report.exchanges.count == 7)
    }

    /// InDataExchange through direct transmit: the card's time, though the host sees the answer a second later.
    @Test func theTimeOfAnExchange() async throws {
        let host = HeldUpHost()
        let reader = VirtualReader(SoftwareACR122U())
        let advance = try #require(VirtualCards.named("mastercard-advance"))
        reader.device.insert(LateCard(advance, instruction: 0xEA, takes: 20) { host.holdUp(for: 1000) })
        let transaction = try transaction()
        let terminal = ContactlessTerminal(
            EntryPoint(configuration: try ReaderConfiguration.test.validated(for: [2: Kernel2.self])))
        let report = try await withTaskExecutorPreference(host) {
            try await ACR122U(over: reader).withChip { chip in
                try await terminal.perform(transaction, in: PN532Field(chip)) { _ in }
            }
        }
        let times = report.exchanges.filter { $0.header[1] == 0xEA }.map(\.duration)
        #expect(!times.isEmpty && times.allSatisfy { $0 >= .milliseconds(20) && $0 < .milliseconds(800) }, "\(times)")
    }

    /// A card that goes in the middle is a card that goes, and no fault of the reader's.
    @Test func aCardThatGoes() async throws {
        let reader = VirtualReader(SoftwareACR122U(faults: [SoftwareReaderFault(.fieldLoss, 2)]))
        reader.device.insert(try #require(VirtualCards.named("visa")))
        let transaction = try transaction()
        let terminal = ContactlessTerminal(
            EntryPoint(configuration: try ReaderConfiguration.test.validated(for: [3: Kernel3.self])))
        let error = await #expect(throws: CardError.self) {
            _ = try await ACR122U(over: reader).withChip { chip in
                try await terminal.perform(transaction, in: PN532Field(chip, patience: .milliseconds(300))) { _ in }
            }
        }
        #expect(error?.kind == .cardAbsent)
    }
}
