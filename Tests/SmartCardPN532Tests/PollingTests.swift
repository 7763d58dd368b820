import SmartCard
import SmartCardPN532
import SmartCardSimulator
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(1))) struct PollingTests {
    @Test func findsACardOfEither() async throws {
        for (name, technology) in [("visa", PollingTechnology.typeA), ("type-b", .typeB), ("ntag213", .typeA)] {
            let reader = virtualReader(VirtualCards.named(name))
            let outcome = try await ACR122U(over: reader).withChip { chip in
                try await chip.poll([.typeA, .typeB], within: .seconds(1))
            }
            guard case .card(let target, let found) = outcome else {
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
            guard case .card(let target, _) = try await chip.poll(PollingTechnology.allCases, within: .zero) else {
                return nil
            }
            return try await chip.channel(to: target).transmit(.select(Array("2PAY.SYS.DDF01".utf8))).status
        }
        #expect(status == .success)
    }

    @Test func waitsForACard() async throws {
        let reader = virtualReader()
        let insert = Task {
            try await Task.sleep(for: .milliseconds(60))
            if let card = VirtualCards.named("visa") { reader.device.insert(card) }
        }
        let outcome = try await ACR122U(over: reader).withChip { chip in
            try await chip.poll([.typeB, .typeA], within: .seconds(3600), pause: .milliseconds(5))
        }
        try await insert.value
        guard case .card(_, .typeA) = outcome else {
            Issue.record("\(String(describing: outcome))")
            return
        }
    }

    @Test func givesUpInTime() async throws {
        let acr = ACR122U(over: virtualReader())
        let start = ContinuousClock.now
        #expect(try await acr.withChip { try await $0.poll([.typeA, .typeB], within: .milliseconds(80)) } == nil)
        #expect(ContinuousClock.now - start >= .milliseconds(80))
    }

    /// Two cards, of one type or of two.
    @Test(arguments: [("visa", "mastercard"), ("visa", "type-b"), ("ntag213", "mifare-classic-1k")])
    func collision(one: String, other: String) async throws {
        let reader = virtualReader(VirtualCards.named(one), VirtualCards.named(other))
        let outcome = try await ACR122U(over: reader).withChip { chip in
            try await chip.poll([.typeA, .typeB], within: .seconds(1))
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

    /// A reader that shows what it is sent, and may fail.
    private final class Tap: CardReader {
        let base: VirtualReader
        private let log = Mutex<[String]>([])
        /// Commands that fail, by their number from 0.
        let failing: Int?

        init(_ base: VirtualReader, failing: Int? = nil) {
            self.base = base
            self.failing = failing
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
            return try await base.transmitToReader(command)
        }
    }

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
                try await chip.poll([.typeA], within: .seconds(3600), pause: .milliseconds(5))
            }
        }
        while tap.history().count < 8 { try await Task.sleep(for: .milliseconds(2)) }
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

    /// With automatic ATS off, it stays off.
    @Test func operatingParameterOfSomebodyElse() async throws {
        let tap = Tap(virtualReader(VirtualCards.named("visa")))
        try await ACR122U(over: tap).setOperatingParameter([.typeA, .automaticPolling])
        _ = try await ACR122U(over: tap).withChip { try await $0.listTargets(.typeA) }
        #expect(tap.history().suffix(3) == ["FF 00 00 00 03 D4 12 04", "FF 00 00 00 04 D4 32 01 01", "FF 00 51 81 00"])
        #expect(try await tap.transmitToReader(bytes("FF 00 50 00 00")) == [0x90, 0x81])
    }
}
