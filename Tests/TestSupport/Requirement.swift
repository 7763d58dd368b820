package import SmartCard
package import SmartCardPN532
import SmartCardSimulator
import Testing
import Waiting

/// A reader of some tier, and the hands that put cards on it.
package protocol Bench: Sendable {
    var reader: any CardReader { get }

    /// Puts a built-in card on the reader, in place of what lies there.
    func insert(_ card: String) throws
    /// Puts a built-in card beside what lies there.
    func add(_ card: String) throws
    func remove() throws
    func unplug() throws

    /// Lends the reader's PN532.
    func withChip<R: Sendable>(_ body: @Sendable (PN532) async throws -> R) async throws -> R
}

extension Bench {
    package func withChip<R: Sendable>(_ body: @Sendable (PN532) async throws -> R) async throws -> R {
        try await ACR122U(over: reader).withChip(body)
    }
}

/// One promise of `CardReader` and `CardConnection`.
package struct Requirement: Sendable, CustomTestStringConvertible {
    package let testDescription: String
    /// What not every reader has.
    package enum Ability: Hashable, Sendable, CaseIterable {
        /// It takes the commands of an ACR122U, and no extended APDUs.
        case isACR122U
        /// There is a PN532 behind it.
        case hasChip
        /// It can be unplugged, and takes storage cards.
        case isReader
    }

    /// What it takes to keep the promise.
    package let needs: Set<Ability>
    package let check: @Sendable (any Bench) async throws -> Void

    private init(
        _ description: String, needs: Set<Ability> = [], check: @escaping @Sendable (any Bench) async throws -> Void
    ) {
        testDescription = description
        self.needs = needs
        self.check = check
    }
}

private let selectPPSE = CommandAPDU.select(Array("2PAY.SYS.DDF01".utf8))

/// The next state that `matches`.
private func next(
    _ states: any AsyncSequence<SlotState, any Error> & Sendable,
    where matches: @escaping @Sendable (SlotState) -> Bool
) async throws -> SlotState? {
    try await inTime {
        for try await state in states where matches(state) { return state }
        return nil
    }
}

private struct TooLate: Error {}

/// What `body` returns, within three minutes: it waits for what comes at once or never, on a slow machine too.
private func inTime<R: Sendable>(_ body: @escaping @Sendable () async throws -> R) async throws -> R {
    try await withTimeLimit(.seconds(180), or: TooLate(), body)
}

/// The kind of the ``CardError`` that `body` throws; nil if it does not, or throws another.
private func kind<R: Sendable>(of body: @escaping @Sendable () async throws -> R) async throws -> CardError.Kind? {
    do {
        _ = try await inTime(body)
        return nil
    } catch let error as CardError {
        return error.kind
    }
}

extension Requirement {
    package static let all: [Requirement] = [
        Requirement("the reader has a name") { bench in
            #expect(!bench.reader.identity.name.isEmpty)
        },

        Requirement("slot states begin with the present one, and each change follows") { bench in
            var states = bench.reader.slotStates().makeAsyncIterator()
            #expect(try await states.next() == .empty)
            try bench.insert("visa")
            #expect(try await next(bench.reader.slotStates()) { $0.hasCard } != nil)
            try bench.remove()
            #expect(try await next(bench.reader.slotStates()) { $0 == .empty } != nil)
            // The first stream has seen all of it.
            var seen: [Bool] = []
            while seen.count < 2, let state = try await states.next() {
                if seen.last != state.hasCard { seen.append(state.hasCard) }
            }
            #expect(seen == [true, false])
        },

        Requirement("two streams see the same card") { bench in
            let (first, second) = (bench.reader.slotStates(), bench.reader.slotStates())
            async let one = next(first) { $0.hasCard }
            async let two = next(second) { $0.hasCard }
            try bench.insert("visa")
            let atrs = try await [one, two].map { state -> ATR? in
                if case .card(let atr, _) = state { atr } else { nil }
            }
            #expect(atrs[0] != nil && atrs[0] == atrs[1])
        },

        Requirement("a waiting task that is cancelled wakes") { bench in
            let waiting = Task { try await bench.reader.waitForCard() }
            try await Time.sleep(for: .milliseconds(300))
            let start = Time.now
            waiting.cancel()
            _ = try await inTime { await waiting.result }
            #expect(Time.current.simulation == nil || Time.now == start)
        },

        Requirement("connecting without a card says so") { bench in
            let found = try await kind { try await bench.reader.connect() }
            #expect(found == .cardAbsent)
        },

        Requirement("the ATR of the connection is that of the slot") { bench in
            try bench.insert("visa")
            let atr = try await bench.reader.waitForCard()
            let card = try await bench.reader.connect()
            #expect(card.atr == atr)
            #expect(atr.defects.isEmpty)
            guard case .typeA(let historicalBytes, _) = atr.contactless else {
                Issue.record("not type A: \(atr)")
                return
            }
            // As the card file has it: ATS 0B 78 80 70 02 | 20 63 CB B6 80 0F
            #expect(historicalBytes.hex == "2063CBB6800F")
            await card.disconnect(.leave)
        },

        Requirement("responses are those of the bare card, byte for byte") { bench in
            try bench.insert("visa")
            _ = try await bench.reader.waitForCard()
            let bare = try #require(VirtualCards.named("visa"))
            bare.reset()
            let card = try await bench.reader.connect()
            let script = [
                "00A404000E325041592E5359532E444446303100", "00A4040007A000000003101000", "80CA9F3600", "80CA9F1700",
                "00B2010C00", "00B2010C", "00A4040007A000000099999900", "00FF000000", "8000000000",
                "80A8000002830000", "00A40400",
            ]
            for hex in script {
                let command = try CommandAPDU([UInt8](hex: hex))
                let response = try await card.transmit(command)
                #expect(response.bytes.hex == bare.exchange(command.bytes)?.hex, "\(hex)")
            }
            await card.disconnect(.leave)
        },

        Requirement("a response of 256 bytes and a command of 255 get through") { bench in
            try bench.insert("mastercard")
            _ = try await bench.reader.waitForCard()
            let bare = try #require(VirtualCards.named("mastercard"))
            bare.reset()
            let card = try await bench.reader.connect()
            let longest = try CommandAPDU(
                cla: 0x00, ins: 0xA4, p1: 4, p2: 0, data: [UInt8](repeating: 0xA0, count: 255), ne: 256)
            let response = try await card.transmit(longest)
            #expect(response.bytes.hex == bare.exchange(longest.bytes)?.hex)
            await card.disconnect(.leave)
        },

        Requirement("a reset makes the card forget what was selected") { bench in
            try bench.insert("visa")
            _ = try await bench.reader.waitForCard()
            let card = try await bench.reader.connect()
            let getOptions = try CommandAPDU([UInt8](hex: "80CA9F3600"))
            _ = try await card.transmit(.select([0xA0, 0, 0, 0, 3, 0x10, 0x10]))
            #expect(try await card.transmit(getOptions).status == .success)
            try await card.reset()
            #expect(try await card.transmit(getOptions).status != .success)
            await card.disconnect(.leave)
        },

        Requirement("a connection that was closed stays closed") { bench in
            try bench.insert("visa")
            _ = try await bench.reader.waitForCard()
            let card = try await bench.reader.connect()
            await card.disconnect(.reset)
            await card.disconnect(.reset)
            #expect(try await kind { try await card.transmit(selectPPSE) } == .disconnected)
            let again = try await bench.reader.connect()
            #expect(try await again.transmit(selectPPSE).status == .success)
            await again.disconnect(.powerOff)
        },

        Requirement("a card that leaves gives a typed error, and the next one is read") { bench in
            try bench.insert("visa")
            _ = try await bench.reader.waitForCard()
            let card = try await bench.reader.connect()
            #expect(try await card.transmit(selectPPSE).status == .success)
            try bench.remove()
            _ = try await next(bench.reader.slotStates()) { $0 == .empty }
            let gone: Set<CardError.Kind> = [.cardRemoved, .noAnswer, .notTransacted, .cardAbsent]
            let found = try await kind { try await card.transmit(selectPPSE) }
            #expect(found.map(gone.contains) == true, "\(String(describing: found))")
            await card.disconnect(.leave)
            try bench.insert("mastercard")
            _ = try await bench.reader.waitForCard()
            let next = try await bench.reader.connect()
            #expect(try await next.transmit(selectPPSE).status == .success)
            await next.disconnect(.leave)
        },

        Requirement("exchanges of two tasks do not mix") { bench in
            try bench.insert("visa")
            _ = try await bench.reader.waitForCard()
            let card = try await bench.reader.connect()
            let expected = try await card.transmit(selectPPSE)
            try await withThrowingTaskGroup(of: ResponseAPDU.self) { group in
                for _ in 0..<20 { group.addTask { try await card.transmit(selectPPSE) } }
                for try await response in group { #expect(response == expected) }
            }
            await card.disconnect(.leave)
        },

        Requirement("the reader itself answers, with and without a card", needs: [.isACR122U]) { bench in
            // ACS API v2.04, 6.3: ten ASCII characters, no status word
            let firmware: [UInt8] = [0xFF, 0x00, 0x48, 0x00, 0x00]
            #expect(try await bench.reader.transmitToReader(firmware).hex == Array("ACR122U216".utf8).hex)
            try bench.insert("visa")
            _ = try await bench.reader.waitForCard()
            #expect(try await bench.reader.transmitToReader(firmware).hex == Array("ACR122U216".utf8).hex)
            let card = try await bench.reader.connect()
            #expect(try await bench.reader.transmitToReader(firmware).hex == Array("ACR122U216".utf8).hex)
            // The UID, ACS API v2.04, 4.1: as the card file has it
            #expect(
                try await card.transmit(CommandAPDU([UInt8](hex: "FFCA000000"))).bytes.hex == "045A3C127E61809000")
            await card.disconnect(.leave)
        },

        Requirement("storage cards are named", needs: [.isReader]) { bench in
            try bench.insert("mifare-classic-1k")
            let atr = try await bench.reader.waitForCard()
            // PC/SC part 3; the same bytes are in pcsc-tools' list of real cards
            #expect(atr.bytes.hex == "3B8F8001804F0CA000000306030001000000006A")
        },

        Requirement("polling tells what comes, collides and leaves, and puts the reader back", needs: [.hasChip]) {
            bench in
            let seen = try await inTime {
                try await bench.withChip { chip -> [String] in
                    var seen: [String] = []
                    // Each event has a hand do the next thing.
                    try bench.insert("felica")
                    for try await event in chip.polling([.typeA, .typeB, .felica212], every: .milliseconds(10)) {
                        switch event {
                        case .found(let target, let technology):
                            seen.append("found \(target.identifier.hex) \(technology)")
                            if seen.count == 1 { try bench.add("visa") }
                        case .collision(let targets):
                            seen.append("collision " + targets.map(\.identifier.hex).joined(separator: " "))
                            try bench.insert("type-b")
                        case .lost(let targets):
                            seen.append("lost " + targets.map(\.identifier.hex).joined(separator: " "))
                        }
                        if seen.count == 4 { break }
                    }
                    return seen
                }
            }
            // As the card files have them.
            let (felica, visa, typeB) = ("02FE000102030405", "045A3C127E6180", "12234556")
            #expect(
                seen == [
                    "found \(felica) felica212", "collision \(visa) \(felica)", "lost \(visa) \(felica)",
                    "found \(typeB) typeB",
                ])
            // The reader looks for cards again.
            guard case .typeB = try await bench.reader.waitForCard().contactless else {
                Issue.record("the card of type B is not there")
                return
            }
        },

        Requirement("a cancelled task ends polling, and the reader is as it was", needs: [.hasChip]) { bench in
            try bench.insert("visa")
            // pcscd, too, has found the card, and powered it.
            _ = try await bench.reader.waitForCard()
            let (started, start) = AsyncStream<Void>.makeStream()
            let polling = Task {
                try await bench.withChip { chip in
                    for try await _ in chip.polling([.typeA, .felica212], every: .milliseconds(10)) { start.yield() }
                }
            }
            try await inTime {
                var starts = started.makeAsyncIterator()
                await starts.next()
            }
            polling.cancel()
            _ = try await inTime { await polling.result }
            // The firmware finds the card anew, and so does pcscd.
            try await inTime {
                _ = try await bench.reader.waitForCard()
                #expect(try await bench.reader.connect().transmit(selectPPSE).status == .success)
            }
        },

        Requirement("a cancelled task ends polling, and the firmware polls again", needs: [.isACR122U]) { bench in
            let reader = ACR122U(over: bench.reader)
            let polling = Task {
                try await reader.withChip { chip in
                    for try await _ in chip.polling([.typeA, .felica212], every: .milliseconds(10)) {}
                }
            }
            try await inTime {
                while try await reader.operatingParameter().contains(.automaticPolling) {}
            }
            polling.cancel()
            _ = try await inTime { await polling.result }
            #expect(try await reader.operatingParameter().contains(.automaticPolling))
        },

        Requirement(
            "frames between polls open a phone's passes; its session lasts until the field is released",
            needs: [.hasChip]
        ) { bench in
            // A pass and a payment (kormax, apple-enhanced-contactless-polling).
            let frame = try #require(BroadcastFrame([0x6A, 0x01, 0x00, 0x00, 0x01]))
            try bench.insert("phone-apple")
            try await bench.withChip { chip in
                // To a terminal that says nothing it shows its card alone.
                let silent = PN532Field(chip, patience: .seconds(180))
                guard case .card(let card) = try await silent.activate() else {
                    Issue.record("no phone")
                    return
                }
                #expect(try await card.transmit(.select(Array("OSE.VAS.01".utf8))).status != .success)
                try await silent.release()
                let field = PN532Field(chip, patience: .seconds(180), broadcast: frame)
                guard case .card(let channel) = try await field.activate() else {
                    Issue.record("no phone")
                    return
                }
                for application in ["OSE.VAS.01", "2PAY.SYS.DDF01"] {
                    #expect(try await channel.transmit(.select(Array(application.utf8))).status == .success)
                }
                try await field.release()
            }
            // The reader looks for cards by itself again.
            try bench.remove()
            try await inTime { try await bench.reader.waitForRemoval() }
            try bench.insert("visa")
            try await inTime {
                while true {
                    _ = try await bench.reader.waitForCard()
                    let card = try await bench.reader.connect()
                    let found = try? await card.transmit(selectPPSE).status
                    await card.disconnect(.powerOff)
                    if found == .success { return }
                    // pcscd found the phone once more, and looked away while the card took its place.
                }
            }
        },

        Requirement("an NDEF message is read off a tag", needs: [.isReader]) { bench in
            try bench.insert("ntag213")
            _ = try await bench.reader.waitForCard()
            let card = try await bench.reader.connect()
            #expect(try await Type2Tag(card).readNDEF().records.count == 1)
            await card.disconnect(.leave)
        },

        Requirement("more than the reader takes is refused before it is sent", needs: [.isACR122U]) { bench in
            try bench.insert("visa")
            _ = try await bench.reader.waitForCard()
            let card = try await bench.reader.connect()
            let extended = try CommandAPDU(cla: 0, ins: 0xD6, p1: 0, p2: 0, data: [UInt8](repeating: 0, count: 300))
            let found = try await kind { try await card.transmit(extended) }
            #expect([.tooLong, .notTransacted, .unsupported].contains(found), "\(String(describing: found))")
            await card.disconnect(.leave)
        },

        Requirement("a reader that is unplugged ends its streams and connections", needs: [.isReader]) { bench in
            try bench.insert("visa")
            _ = try await bench.reader.waitForCard()
            let card = try await bench.reader.connect()
            let states = bench.reader.slotStates()
            try bench.unplug()
            try await inTime {
                do {
                    for try await _ in states {}
                } catch let error as CardError where error.kind == .readerGone {}
            }
            let gone: Set<CardError.Kind> = [.readerGone, .cardRemoved, .notTransacted, .disconnected]
            let found = try await kind { try await card.transmit(selectPPSE) }
            #expect(found.map(gone.contains) == true, "\(String(describing: found))")
            await card.disconnect(.leave)
            #expect(try await kind { try await bench.reader.connect() } == .readerGone)
        },
    ]
}
