import EMVContactless
import SmartCard
import SmartCardPN532
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

/// EMV Contactless Book B, 3.2.1.4 and 3.2.1.5, with cards on an ACR122U.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct PN532FieldTests {
    private func reader(_ names: String...) throws -> VirtualReader {
        let reader = VirtualReader(SoftwareACR122U())
        for name in names { reader.device.insert(try #require(VirtualCards.named(name))) }
        return reader
    }

    /// A reader with a phone that answers nothing before it has heard what the terminal is for: one that shows its card may be
    /// found by the reader's own polls before.
    private func readerWithClosedPhone() throws -> VirtualReader {
        let reader = VirtualReader(SoftwareACR122U())
        reader.device.insert(try CardFile(parsing: "variant phone-apple {\nscreen closed\n}").makeCard())
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
        #expect(!times.isEmpty && times.allSatisfy { $0 == .milliseconds(20) }, "\(times)")
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

    // MARK: Phones

    private static func letters(_ records: [RadioRecord]) -> [String] {
        records.map { record in
            switch record.event {
            case .field(let isOn): isOn ? "on" : "off"
            case .deselect: "deselect"
            case .noFrame(_, let reason): reason
            case .frame(let frame, let answers):
                (frame.isRequest ? "poll" : frame.bytes.hex) + (answers.isEmpty ? "" : " answered")
            }
        }
    }

    /// A phone that is silent until it has heard what the terminal is for: Entry Point's wait for a card tells it so, and
    /// the payment is made.
    @Test(arguments: [("6A 01 00 00 03", true), ("6A 01 CF 00 00", false)])
    func aPhoneThatIsPolled(_ frame: String, _ wakes: Bool) async throws {
        let reader = try readerWithClosedPhone()
        let transaction = try transaction()
        let frame = try #require(BroadcastFrame(bytes(frame)))
        let terminal = ContactlessTerminal(
            EntryPoint(configuration: try ReaderConfiguration.test.validated(for: [3: Kernel3.self])))
        let kind = try await ACR122U(over: reader).withChip { chip -> Outcome.Kind? in
            let field = PN532Field(chip, patience: .seconds(wakes ? 60 : 1), broadcast: frame)
            do {
                return try await terminal.perform(transaction, in: field) { _ in }.outcome.kind
            } catch let error as CardError where error.kind == .cardAbsent {
                return nil
            }
        }
        #expect(kind == (wakes ? .onlineRequest : nil))
    }

    /// A phone that has heard polls without frames, of a program or of the reader itself, would show its card; the frame comes
    /// before the next poll, and it shows its pass.
    @Test(arguments: [false, true]) func aPhoneThatHasHeardPolls(_ isSelected: Bool) async throws {
        let reader = VirtualReader(SoftwareACR122U())
        let phone = try #require(VirtualCards.named("phone-apple"))
        let frame = try #require(BroadcastFrame(bytes("6A 01 00 00 02")))
        if isSelected {
            reader.device.insert(phone)
            _ = try await reader.connect()
        }
        let pass = try await ACR122U(over: reader).withChip { chip in
            if !isSelected {
                reader.device.insert(phone)
                try await chip.configure(.retries(atr: 0x01, psl: 0x01, passiveActivation: 0x02))
                #expect(try await chip.listTargets(.typeA).isEmpty)
            }
            reader.device.radioRecords = []
            let field = PN532Field(chip, patience: .seconds(60), broadcast: frame)
            guard case .card(let phone) = try await field.activate() else { throw CardError(.cardAbsent) }
            return try await phone.transmit(.select(Array("OSE.VAS.01".utf8)))
        }
        #expect(pass.status == .success)
        #expect(Self.letters(reader.device.radioRecords).prefix(3) == ["off", "on", "6A01000002"])
    }

    /// Pass and payment in one session: nothing is deselected between them and the field stays; then the phone is told, loses
    /// the field, and shows that it is done.  No frame is sent once it is found.
    @Test func passAndPaymentInOneSession() async throws {
        let reader = try readerWithClosedPhone()
        let phone = try #require(reader.device.cards.first as? WalletPhone)
        let frame = try #require(BroadcastFrame(bytes("6A 01 00 00 01")))
        try await ACR122U(over: reader).withChip { chip in
            let field = PN532Field(chip, patience: .seconds(60), broadcast: frame)
            #expect(field.capabilities == [.collisionDetection, .broadcast])
            guard case .card(let channel) = try await field.activate() else { throw CardError(.cardAbsent) }
            let polled = Self.letters(reader.device.radioRecords)
            #expect(polled.count { $0 == "6A01000001" } >= 4 && polled.contains("poll answered"), "\(polled)")
            reader.device.radioRecords = []
            #expect(try await channel.transmit(.select(Array("OSE.VAS.01".utf8))).status == .success)
            // GET DATA of a pass that the phone does not have, whose identifier is empty; it wants pass and payment.
            let missing = try CommandAPDU(
                bytes(
                    "80 CA 01 01 2F 9F22 02 0100"
                        + " 9F25 20 E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855"
                        + " 9F26 04 00800001 00"))
            #expect(try await channel.transmit(missing).status == 0x6A83)
            #expect(try await channel.transmit(.select(Array("2PAY.SYS.DDF01".utf8))).status == .success)
            #expect(reader.device.radioRecords.isEmpty && !phone.isDone)
            try await field.release()
            #expect(Self.letters(reader.device.radioRecords) == ["deselect", "off"])
            #expect(phone.isDone)
        }
    }

    /// The end of a tap is an end even if the card has left, or the task is canceled meanwhile; the next card is found.
    @Test func released() async throws {
        let reader = try reader("visa")
        try await ACR122U(over: reader).withChip { chip in
            let field = PN532Field(chip, patience: .seconds(60))
            _ = try await field.activate()
            reader.device.remove()
            reader.device.radioRecords = []
            let ending = Task { try await field.release() }
            ending.cancel()
            try await ending.value
            #expect(Self.letters(reader.device.radioRecords) == ["off"])
            reader.device.insert(try #require(VirtualCards.named("mastercard")))
            guard case .card = try await field.activate() else { throw CardError(.cardAbsent) }
        }
    }

    /// Other readers say what they lack, with a remedy.
    @Test func capabilities() async throws {
        let field = CardReaderField(try reader())
        #expect(field.capabilities == [])
        let error = #expect(throws: CardError.self) { try field.capabilities.require(.broadcast) }
        #expect(error?.kind == .unsupported && error?.hint.contains("ACR122U") == true)
        let full: FieldCapabilities = [.collisionDetection, .broadcast]
        try full.require([.broadcast, .collisionDetection])
        try FieldCapabilities().require([])
        #expect(throws: CardError.self) { try FieldCapabilities.broadcast.require(.collisionDetection) }
    }

    /// On any reader the card is powered off at the end of a tap: it is told so, or loses the field.
    @Test func releasedOnAnyReader() async throws {
        let reader = try reader("visa")
        let field = CardReaderField(reader)
        guard case .card(let card) = try await field.activate() else { throw CardError(.cardAbsent) }
        reader.device.radioRecords = []
        try await field.release()
        #expect(Self.letters(reader.device.radioRecords) == ["deselect"])
        await #expect(throws: CardError.self) { try await card.transmit(.select(Array("2PAY.SYS.DDF01".utf8))) }
    }
}
