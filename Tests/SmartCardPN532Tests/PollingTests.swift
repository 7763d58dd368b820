import SmartCard
import SmartCardPN532
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing
import Waiting

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct PollingTests {
    @Test func findsACardOfEither() async throws {
        for (name, technology) in [("visa", PollingTechnology.typeA), ("type-b", .typeB), ("ntag213", .typeA)] {
            let reader = virtualReader(VirtualCards.named(name))
            let outcome = try await ACR122U(over: reader).withChip { chip in
                try await chip.poll([.typeA, .typeB], within: .seconds(1))
            }
            guard case .found(let target, let found) = outcome else {
                Issue.record("\(name): \(String(describing: outcome))")
                continue
            }
            #expect(found == technology && target.speaksISODEP == (name != "ntag213"))
        }
    }

    /// A card that is selected can be used, though another technology was asked for after its.
    @Test func theCardIsSelected() async throws {
        let reader = virtualReader(VirtualCards.named("visa"))
        let status = try await ACR122U(over: reader).withChip { chip -> StatusWord? in
            guard case .found(let target, _) = try await chip.poll(PollingTechnology.allCases, within: .zero) else {
                return nil
            }
            return try await chip.channel(to: target).transmit(.select(Array("2PAY.SYS.DDF01".utf8))).status
        }
        #expect(status == .success)
    }

    @Test func waitsForACard() async throws {
        let reader = virtualReader()
        let insert = Task {
            try await Time.sleep(for: .milliseconds(60))
            if let card = VirtualCards.named("visa") { reader.device.insert(card) }
        }
        let outcome = try await ACR122U(over: reader).withChip { chip in
            try await chip.poll([.typeB, .typeA], within: .seconds(3600), every: .milliseconds(10))
        }
        try await insert.value
        guard case .found(_, .typeA) = outcome else {
            Issue.record("\(String(describing: outcome))")
            return
        }
    }

    @Test func givesUpInTime() async throws {
        try await ACR122U(over: virtualReader()).withChip { chip in
            let start = Time.now
            let found = try await chip.poll([.typeA, .typeB], within: .milliseconds(80))
            #expect(found == nil)
            #expect(Time.now - start == .milliseconds(80))
        }
    }

    /// Two cards, of one type or of two.
    @Test(arguments: [
        ("visa", "mastercard"), ("visa", "type-b"), ("ntag213", "mifare-classic-1k"), ("type-b", "type-b"),
        ("felica", "felica"), ("felica", "visa"), ("felica", "type-b"),
    ])
    func collision(one: String, other: String) async throws {
        // Two of a kind differ in what they are told apart by: the last byte of IDm or of the PUPI.
        let second = try #require(VirtualCards.all.first { $0.name == other }).text
            .replacing("idm  02 FE 00 01 02 03 04 05", with: "idm  02 FE 00 01 02 03 04 06")
            .replacing("12 23 45 56", with: "12 23 45 57")
        let reader = virtualReader(VirtualCards.named(one), try CardFile(parsing: second).makeCard())
        let outcome = try await ACR122U(over: reader).withChip { chip in
            try await chip.poll(PollingTechnology.allCases, within: .seconds(1))
        }
        guard case .collision(let targets) = outcome else {
            Issue.record("\(String(describing: outcome))")
            return
        }
        #expect(targets.count == 2)
    }

    // MARK: Putting back

    /// What comes last, in this order: targets, retries, parameters, field, operating parameter.
    private static let puttingBack = [
        "FF 00 00 00 03 D4 52 00", "FF 00 00 00 06 D4 32 05 FF 01 FF", "FF 00 00 00 03 D4 12 14",
        "FF 00 00 00 04 D4 32 01 01", "FF 00 51 FF 00",
    ]

    private struct Trouble: Error {}

    /// The state that a user of the reader sees: 90 FF, and a card of type A speaks ISO-DEP.
    private static func check(_ reader: VirtualReader) async throws {
        #expect(try await reader.transmitToReader(bytes("FF 00 50 00 00")) == [0x90, 0xFF])
        #expect(try await reader.connect().atr.contactless != .noCard)
    }

    @Test func afterSuccessAndError() async throws {
        let tap = Tap(virtualReader(VirtualCards.named("visa")))
        _ = try await ACR122U(over: tap).withChip { try await $0.listTargets(.typeA) }
        #expect(Array(tap.history().suffix(5)) == Self.puttingBack)
        #expect(tap.history().prefix(2) == ["FF 00 50 00 00", "FF 00 51 7F 00"])
        try await Self.check(tap.base)

        await #expect(throws: Trouble.self) {
            try await ACR122U(over: tap).withChip { chip in
                try await chip.configure(.field(isOn: false))
                throw Trouble()
            }
        }
        #expect(Array(tap.history().suffix(5)) == Self.puttingBack)
        try await Self.check(tap.base)
    }

    @Test func afterCancellation() async throws {
        let tap = Tap(virtualReader())
        let task = Task {
            try await ACR122U(over: tap).withChip { chip in
                try await chip.poll([.typeA], within: .seconds(3600), every: .milliseconds(10))
            }
        }
        try await wait(for: "eight commands") { tap.history().count >= 8 }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(Array(tap.history().suffix(5)) == Self.puttingBack)
        if let card = VirtualCards.named("visa") { tap.base.device.insert(card) }
        try await Self.check(tap.base)
    }

    /// One command fails, whichever it is: all the others that put back are still sent, and the error is told.
    @Test(arguments: 0..<14) func afterAFailure(number: Int) async throws {
        let tap = Tap(virtualReader(VirtualCards.named("visa")), failing: number)
        var failed = false
        do {
            _ = try await ACR122U(over: tap).withChip { chip in try await chip.listTargets(.typeA) }
        } catch {
            failed = true
        }
        let commands = tap.history()
        guard number > 0 else {
            // Nothing is known yet, so nothing is changed.
            #expect(failed && commands.count == 1)
            return
        }
        #expect(Array(commands.suffix(5)) == Self.puttingBack)
        // The first of the five is to be forgiven: a target may have left.
        #expect(failed == (number < commands.count && number != commands.count - 5))
    }

    /// Somebody has left it without automatic polling (libnfc#502): it gets its defaults.
    @Test func afterSomebodyWhoDidNotPutBack() async throws {
        let tap = Tap(virtualReader(VirtualCards.named("visa")))
        try await ACR122U(over: tap).setOperatingParameter([.typeA])
        _ = try await ACR122U(over: tap).withChip { try await $0.listTargets(.typeA) }
        #expect(Array(tap.history().suffix(5)) == Self.puttingBack)
        try await Self.check(tap.base)

        try await ACR122U(over: tap).setOperatingParameter([])
        try await ACR122U(over: tap).restoreDefaults()
        #expect(Array(tap.history().suffix(5)) == Self.puttingBack)
        try await Self.check(tap.base)
    }

    /// With automatic ATS off, it stays off.
    @Test func operatingParameterOfSomebodyElse() async throws {
        let tap = Tap(virtualReader(VirtualCards.named("visa")))
        try await ACR122U(over: tap).setOperatingParameter([.typeA, .automaticPolling])
        _ = try await ACR122U(over: tap).withChip { try await $0.listTargets(.typeA) }
        #expect(tap.history().suffix(3) == ["FF 00 00 00 03 D4 12 04", "FF 00 00 00 04 D4 32 01 01", "FF 00 51 81 00"])
        #expect(try await tap.transmitToReader(bytes("FF 00 50 00 00")) == [0x90, 0x81])
    }
}

/// A reader that shows what it is sent, and may fail or be made to answer otherwise.
private final class Tap: CardReader {
    let base: VirtualReader
    private let log = Mutex<[String]>([])
    /// Commands that fail, by their number from 0.
    private let failing: Int?
    /// What is answered in place of the reader.
    private let intercept: @Sendable (String) -> String?

    init(_ base: VirtualReader, failing: Int? = nil, intercept: @escaping @Sendable (String) -> String? = { _ in nil })
    {
        self.base = base
        self.failing = failing
        self.intercept = intercept
    }

    var identity: ReaderIdentity { base.identity }
    func slotStates() -> any AsyncSequence<SlotState, any Error> & Sendable { base.slotStates() }
    func connect() async throws -> any CardConnection { try await base.connect() }
    func history() -> [String] { log.withLock { $0 } }

    func transmitToReader(_ command: [UInt8]) async throws -> [UInt8] {
        let number = log.withLock { log in
            log.append(command.hex(separator: " "))
            return log.count - 1
        }
        if number == failing { throw CardError(.notTransacted) }
        if let answer = intercept(command.hex(separator: " ")) { return bytes(answer) }
        return try await base.transmitToReader(command)
    }

    /// How often cards of type A have been asked for.
    var rounds: Int { history().count { $0 == "FF 00 00 00 04 D4 4A 02 00" } }

    /// Waits until it has been asked so often again.
    func wait(rounds: Int) async throws {
        let goal = self.rounds + rounds
        try await TestSupport.wait(for: "\(goal) rounds") { self.rounds >= goal }
    }
}

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct PollingEventsTests {
    private static let fieldOff = "FF 00 00 00 04 D4 32 01 00"

    private static func card(_ name: String) throws -> any VirtualCard { try #require(VirtualCards.named(name)) }

    /// The identifiers of the built-in cards, as their files have them.
    private static let visa = bytes("04 5A 3C 12 7E 61 80"), ntag = bytes("04 6D 2A 91 5C 70 80")
    private static let felica = bytes("02 FE 00 01 02 03 04 05"), typeB = bytes("12 23 45 56")

    private func identifiers(_ event: PollingEvent?) -> (kind: String, [[UInt8]]) {
        switch event {
        case .found(let target, _): ("found", [target.identifier])
        case .collision(let targets): ("collision", targets.map(\.identifier))
        case .lost(let targets): ("lost", targets.map(\.identifier))
        case nil: ("end", [])
        }
    }

    /// A hand lays cards on the reader and takes them away; each thing it does is told, in order and once.
    @Test func comesAndGoes() async throws {
        let reader = virtualReader()
        let (visa, ntag) = try (Self.card("visa"), Self.card("ntag213"))
        let (felica, typeB) = try (Self.card("felica"), Self.card("type-b"))
        try await ACR122U(over: reader).withChip { chip in
            var events = chip.polling(PollingTechnology.allCases, every: .zero).makeAsyncIterator()
            func expect(_ kind: String, _ cards: [UInt8]..., line: Int = #line) async throws {
                let event = try await identifiers(events.next())
                #expect(event == (kind, cards), "line \(line)")
            }
            reader.device.insert(visa)
            try await expect("found", Self.visa)
            reader.device.remove()
            try await expect("lost", Self.visa)
            reader.device.insert(felica)
            try await expect("found", Self.felica)
            // A second card, of another type; the first leaves.
            reader.device.insert(ntag)
            try await expect("collision", Self.ntag, Self.felica)
            reader.device.remove(felica)
            try await expect("lost", Self.felica)
            try await expect("found", Self.ntag)
            // One card for another.
            reader.device.remove()
            reader.device.insert(typeB)
            try await expect("lost", Self.ntag)
            try await expect("found", Self.typeB)
            // Two more of one type, and all leave.
            reader.device.insert(visa)
            reader.device.insert(ntag)
            try await expect("collision", Self.visa, Self.ntag, Self.typeB)
            reader.device.remove()
            try await expect("lost", Self.visa, Self.ntag, Self.typeB)
        }
    }

    /// Of two cards that collided the one that stays leaves before it has been found alone.
    @Test func leavesBetweenTwoEvents() async throws {
        let reader = virtualReader(try Self.card("visa"), try Self.card("ntag213"))
        var events = ACR122U(over: reader).chip.polling([.typeA]).makeAsyncIterator()
        #expect(try await identifiers(events.next()) == ("collision", [Self.visa, Self.ntag]))
        reader.device.remove(reader.device.cards[0])
        #expect(try await identifiers(events.next()) == ("lost", [Self.visa]))
        reader.device.remove()
        #expect(try await identifiers(events.next()) == ("lost", [Self.ntag]))
    }

    /// A card that is found is selected until the next event is asked for, whichever its type.
    @Test(arguments: [
        ("visa", "00 A4 04 00 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31 00", "6F 34 84"),
        ("felica", "10 06 02 FE 00 01 02 03 04 05 01 0B 00 01 80 00", "1D 07 02 FE 00 01 02 03 04 05 00 00 01 10 04"),
        ("ntag213", "30 04", "03 0E D1 01"),
    ])
    func cardsFoundCanBeUsed(name: String, command: String, answer: String) async throws {
        let reader = virtualReader(try Self.card(name))
        try await ACR122U(over: reader).withChip { chip in
            for try await event in chip.polling(PollingTechnology.allCases, every: .zero) {
                guard case .found(let target, _) = event else { break }
                let response = try await chip.exchange(bytes(command), with: target.number)
                #expect(response.starts(with: bytes(answer)))
                reader.device.remove()
            }
        }
    }

    /// While nothing changes there are rounds and no events.
    @Test(arguments: ["visa", "felica"]) func nothingHappens(name: String) async throws {
        let tap = Tap(virtualReader(try Self.card(name)))
        let chip = ACR122U(over: tap).chip
        let events = Task {
            var seen: [String] = []
            for try await event in chip.polling([.typeA, .felica424], every: .zero) {
                seen.append(identifiers(event).kind)
            }
            return seen
        }
        try await tap.wait(rounds: 8)
        events.cancel()
        #expect(try await events.value == ["found"])
    }

    /// It ends when the task is cancelled, and when the reader fails, whichever command it is; the field is off then.
    @Test(arguments: [0, 1, 2, 4, 5, 6, 7, 9, nil] as [Int?]) func ends(failing: Int?) async throws {
        let tap = Tap(virtualReader(try Self.card("type-b")), failing: failing)
        let chip = ACR122U(over: tap).chip
        let events = Task {
            var events = chip.polling([.typeA, .typeB, .felica212], every: .zero).makeAsyncIterator()
            var thrown: CardError.Kind?
            do {
                while try await events.next() != nil {}
            } catch let error as CardError {
                thrown = error.kind
            }
            #expect(try await events.next() == nil, "it has ended")
            return thrown
        }
        // Field on, what is selected let go, A, B, F; field off and on, B selected; let go, A.  Letting go may fail.
        let bears = failing == nil || failing == 1
        if bears {
            try await tap.wait(rounds: 3)
            events.cancel()
        }
        #expect(try await events.value == (bears ? nil : .notTransacted))
        #expect(tap.history().last == Self.fieldOff)
    }

    /// The form with a deadline leaves the field off, too, unless it has found a card.
    @Test func deadlineLeavesTheFieldOff() async throws {
        let tap = Tap(virtualReader())
        let chip = ACR122U(over: tap).chip
        #expect(try await chip.poll([.typeA, .typeB], within: .milliseconds(30), every: .zero) == nil)
        #expect(tap.history().last == Self.fieldOff)
        tap.base.device.insert(try Self.card("visa"))
        #expect(try await identifiers(chip.poll([.typeB, .typeA], within: .seconds(3600))) == ("found", [Self.visa]))
        #expect(tap.history().last == "FF 00 00 00 04 D4 4A 02 00")
    }

    /// One round at least, and no more than there is time for: here one in an hour, and one in 10 ms.
    @Test func rounds() async throws {
        let tap = Tap(virtualReader())
        let chip = ACR122U(over: tap).chip
        _ = try await chip.poll([.typeA], within: .milliseconds(50), every: .seconds(3600))
        _ = try await chip.poll([.typeA], within: .seconds(-1))
        #expect(tap.rounds == 2)
        _ = try await chip.poll([.typeA], within: .milliseconds(100), every: .zero)
        #expect(tap.rounds == 12)
    }

    /// A UID that begins with 08 is another after each cold start (ISO/IEC 14443-3), and here after each round.
    @Test func randomIdentifier() async throws {
        let card = RestlessCard()
        let tap = Tap(virtualReader(card))
        let events = Task {
            var seen: [String] = []
            for try await event in ACR122U(over: tap).chip.polling([.typeA, .typeB], every: .zero) {
                seen.append(identifiers(event).kind)
                if seen.count == 2 { break }
            }
            return seen
        }
        try await tap.wait(rounds: 10)
        tap.base.device.remove()
        #expect(try await events.value == ["found", "lost"])
    }

    /// A card that answers from a cold start only is not lost; one that leaves is.
    @Test func answersFromAColdStartOnly() async throws {
        let isAwake = Mutex(true)
        let tap = Tap(virtualReader(try Self.card("visa"))) { command in
            isAwake.withLock { isAwake in
                if command == Self.fieldOff { isAwake = true }
                guard command == "FF 00 00 00 04 D4 4A 02 00" else { return nil }
                defer { isAwake = false }
                return isAwake ? nil : "D5 4B 00 90 00"
            }
        }
        let events = Task {
            var seen: [[[UInt8]]] = []
            for try await event in ACR122U(over: tap).chip.polling([.typeA], every: .zero) {
                seen.append(identifiers(event).1)
                if seen.count == 2 { break }
            }
            return seen
        }
        try await tap.wait(rounds: 10)
        tap.base.device.remove()
        #expect(try await events.value == [[Self.visa], [Self.visa]])
    }

    /// A reader that gives up on its chip where no card is (ACS API v2.04: 63 01) has found none.
    @Test func readerThatLosesPatience() async throws {
        let tap = Tap(virtualReader()) { $0.contains("D4 4A") ? "63 01" : nil }
        #expect(try await ACR122U(over: tap).chip.poll([.typeA], within: .zero) == nil)
    }
}

/// A card whose UID is drawn anew at each selection.
private final class RestlessCard: VirtualCard {
    private let count = Mutex<UInt8>(0)

    var radio: VirtualCardRadio {
        .typeA(uid: [0x08, 0x01, 0x02, count.withLock { $0 }], atqa: [0x00, 0x04], sak: 0x08, ats: nil)
    }

    func reset() { count.withLock { $0 &+= 1 } }
}
