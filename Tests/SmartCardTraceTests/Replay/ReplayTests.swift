import EMVContactless
import SmartCard
import SmartCardSimulator
import SmartCardTrace
import TestSupport
import Testing
import Waiting

/// A transport that has its answer after 11 ms, to a host that is held up for 40 more.
private struct LateChannel: CardChannel {
    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        ExchangeStopwatch.current?.add(.milliseconds(11))
        try await Time.sleep(for: .milliseconds(51))
        return try ResponseAPDU([0x90, 0x00])
    }
}

/// The oracle is the virtual card: what it said when it was recorded, it says again when replayed.
@Suite struct ReplayTests {
    private let number: [UInt8] = [0x11, 0x22, 0x33, 0x44]
    private let other: [UInt8] = [0x99, 0x88, 0x77, 0x66]

    private func recordedPayment(_ card: String = "visa") async throws -> (Trace, Outcome) {
        let recording = try Recording()
        let transaction = try #require(purchase(amount: 1234, unpredictableNumber: number))
        let outcome = try await pay(transaction, on: recording.recorder.recording(virtualReader(card)))
        return (try recording.trace(), outcome)
    }

    @Test("a transaction is recorded with reader, card, commands and answers")
    func recording() async throws {
        let (trace, outcome) = try await recordedPayment()
        #expect(outcome.kind == .onlineRequest)
        let what = trace.events.map(\.what)
        #expect(
            what.first
                == .reader(ReaderIdentity(name: "ACS ACR122U PICC Interface 00 00", backend: .virtual, vendor: "ACS")))
        // SELECT PPSE (EMV Contactless Book B, 3.3.2)
        let select = try [UInt8](hex: "00A404000E325041592E5359532E444446303100")
        #expect(what.contains(.sent(.apdu, select)))
        #expect(what.last == .disconnected(.leave))
        let bare = try #require(VirtualCards.named("visa"))
        let answer = try #require(bare.exchange(select))
        #expect(what.contains(.received(.apdu, answer)))
    }

    @Test("a change that two programs see is recorded once")
    func slotOnce() async throws {
        let recording = try Recording()
        let reader = recording.recorder.recording(virtualReader("visa"))
        _ = try await reader.waitForCard()
        _ = try await reader.waitForCard()
        let cards = try recording.trace().events.count { if case .slot(.card) = $0.what { true } else { false } }
        #expect(cards == 1)
    }

    @Test("the same transaction is played in strict order, and to its end")
    func strict() async throws {
        let (trace, outcome) = try await recordedPayment()
        let reader = ReplayReader(trace)
        #expect(reader.identity.backend == .replay)
        let again = try #require(purchase(amount: 1234, unpredictableNumber: number))
        #expect(try await pay(again, on: reader) == outcome)
        try reader.checkPlayedThrough()
    }

    @Test(
        "another amount, day and number are a mismatch when compared exactly, and none when leniently",
        arguments: [ReplayReader.Order.strict, .keyed])
    func lenient(_ order: ReplayReader.Order) async throws {
        let (trace, outcome) = try await recordedPayment()
        let changed = try #require(purchase(amount: 99, unpredictableNumber: other, day: 2))
        let replayed = try await pay(changed, on: ReplayReader(trace, order: order, comparison: .lenient))
        #expect(replayed.kind == outcome.kind)
        await #expect {
            try await pay(changed, on: ReplayReader(trace, order: order))
        } throws: { error in
            // GET PROCESSING OPTIONS is the first that holds any of them.
            (error as? ReplayMismatch)?.rows.last?.played?.hasPrefix("80A80000") == true
        }
    }

    /// A trace with one exchange after the other, in the words of the file.
    private func trace(_ lines: String...) throws -> Trace {
        try Trace(text: "apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined())
    }

    private func command(_ hex: String) throws -> CommandAPDU { try CommandAPDU([UInt8](hex: hex)) }

    @Test("leniency ends where the card's list ends: other bytes of the same commands must agree")
    func placesOfTheList() async throws {
        // FCI with PDOL 9F66 04 9F02 06 9F37 04 5F2A 02; data of the first GPO accordingly.
        let trace = try trace(
            "> apdu 00A4040007A000000003101000",
            "< apdu 6F1A8407A0000000031010A50F9F380C9F66049F02069F37045F2A029000",
            "> apdu 80A800001283103600000000000000123411223344097800",
            "< apdu 80069000080101009000")
        func play(_ gpo: String) async throws -> [UInt8] {
            let reader = ReplayReader(trace, comparison: .lenient)
            let card = try await reader.connect()
            _ = try await card.transmit(command("00A4040007A000000003101000"))
            return try await card.transmit(command(gpo)).bytes
        }
        let answer = "80069000080101009000"
        #expect(try await play("80A8000012831036000000999999999999AABBCCDD097800").hex == answer)
        // 9F66 and 5F2A are not among what varies.
        await #expect(throws: ReplayMismatch.self) {
            try await play("80A800001283103700000000000000123411223344097800")
        }
        await #expect(throws: ReplayMismatch.self) {
            try await play("80A800001283103600000000000000123411223344084000")
        }
    }

    @Test("a miss shows both lists side by side, masked, and is no status word")
    func miss() async throws {
        let trace = try trace(
            "> apdu 00A4040000", "< apdu 9000", "> apdu 00200080082411111111FFFFFF", "< apdu 9000")
        let card = try await ReplayReader(trace).connect()
        _ = try await card.transmit(command("00A4040000"))
        await #expect {
            try await card.transmit(command("00200080082422222222FFFFFF"))
        } throws: { error in
            "\(error)" == """
                the trace has 0020008008**************** -> 9000 here, the program asks for 0020008008****************
                  recorded                            | played
                  00A4040000 -> 9000                  | 00A4040000 -> 9000
                ! 0020008008**************** -> 9000  | 0020008008****************
                """
        }
    }

    @Test("what was not played is told")
    func notPlayedThrough() async throws {
        let reader = ReplayReader(try trace("> apdu 00A4040000", "< apdu 9000", "> apdu 00B0000000", "< apdu 6A82"))
        let card = try await reader.connect()
        _ = try await card.transmit(command("00A4040000"))
        #expect {
            try reader.checkPlayedThrough()
        } throws: { error in
            "\(error)".hasPrefix("1 calls of the trace were not made, the first of them 00B0000000 -> 6A82")
        }
    }

    @Test("in keyed order answers depend on the application selected, and come one after the other")
    func keyed() async throws {
        let trace = try trace(
            "> apdu 00A4040005A00000000100", "< apdu 9000", "> apdu 80CA9F3600", "< apdu 9F360200019000",
            "> apdu 80CA9F3600", "< apdu 9F360200029000",
            "> apdu 00A4040005A00000000200", "< apdu 9000", "> apdu 80CA9F3600", "< apdu 9F360200FF9000")
        let card = try await ReplayReader(trace, order: .keyed).connect()
        func atc() async throws -> String { try await card.transmit(command("80CA9F3600")).data.suffix(2).hex }
        await #expect(throws: ReplayMismatch.self) { try await atc() }
        _ = try await card.transmit(command("00A4040005A00000000200"))
        #expect(try await atc() == "00FF")
        _ = try await card.transmit(command("00A4040005A00000000100"))
        #expect(try await [atc(), atc(), atc()] == ["0001", "0002", "0002"])
        try await card.reset()
        await #expect(throws: ReplayMismatch.self) { try await atc() }
    }

    @Test("errors come again as they were, and an answer that the trace lacks is a mismatch")
    func errors() async throws {
        let card = try await ReplayReader(
            try trace(
                "connect T=1 3B80800101", "> apdu 00A4040000", #"! apdu cardRemoved "gone""#, "! reset cardAbsent",
                "> apdu 00A4040000")
        ).connect()
        #expect(card.atr.bytes.hex == "3B80800101")
        await #expect { try await card.transmit(command("00A4040000")) } throws: {
            ($0 as? CardError)?.kind == .cardRemoved && ($0 as? CardError)?.detail == "gone"
        }
        await #expect { try await card.reset() } throws: { ($0 as? CardError)?.kind == .cardAbsent }
        await #expect(throws: ReplayMismatch.self) { try await card.transmit(command("00A4040000")) }
    }

    @Test("a response without status word is a malformed answer")
    func malformedAnswer() async throws {
        let card = try await ReplayReader(try trace("> apdu 00A4040000", "< apdu 90")).connect()
        await #expect { try await card.transmit(command("00A4040000")) } throws: {
            ($0 as? CardError)?.kind == .malformedAnswer
        }
    }

    @Test("the slot plays its changes between the calls, and the reader is gone at the end")
    func slot() async throws {
        let reader = ReplayReader(
            try trace(
                "slot empty", "slot card 3B80800101", "connect T=1 3B80800101", "disconnect leave", "slot empty",
                "slot card 3B8F", "connect T=1 3B8F"))
        #expect(try await reader.waitForCard().bytes.hex == "3B80800101")
        let card = try await reader.connect()
        await card.disconnect(.leave)
        try await reader.waitForRemoval()
        #expect(try await reader.waitForCard().bytes.hex == "3B8F")
        _ = try await reader.connect()
        var states = reader.slotStates().makeAsyncIterator()
        #expect(try await states.next()?.hasCard == true)
        #expect(try await states.next() == nil)
    }

    @Test("a reader that was unplugged and is there again plays on, and who watches again sees it")
    func replugged() async throws {
        let reader = ReplayReader(
            try trace(
                "slot card 3B80800101", "connect T=1 3B80800101", "> apdu 00A4040000", "! apdu readerGone",
                "! slot readerGone", "slot empty", "slot card 3B8F", "connect T=1 3B8F", "> apdu 00A4040000",
                "< apdu 9000"))
        var first = reader.slotStates().makeAsyncIterator()
        #expect(try await first.next()?.hasCard == true)
        let card = try await reader.connect()
        await #expect(throws: CardError.self) { try await card.transmit(command("00A4040000")) }
        #expect(try await first.next() == nil)
        var second = reader.slotStates().makeAsyncIterator()
        #expect(try await second.next() == .empty)
        #expect(try await second.next()?.hasCard == true)
        #expect(try await first.next() == nil)
        _ = try await reader.connect().transmit(command("00A4040000"))
        try reader.checkPlayedThrough()
    }

    @Test("what is seen behind a failure of the slot is recorded, also if it is what was seen before")
    func slotAgain() throws {
        let recording = try Recording()
        for what in [TraceEvent.What.slot(.empty), .slot(.empty), .failed(.slot, .init(.readerGone)), .slot(.empty)] {
            recording.recorder.record(what)
        }
        #expect(
            try recording.trace().events.map(\.what)
                == [.slot(.empty), .failed(.slot, .init(.readerGone)), .slot(.empty)])
    }

    /// 4761739001010010 is a published test number.
    @Test("a miss shows no account number, be it the data of SELECT, in two commands, or text of hexadecimal digits")
    func missHidesNumbers() async throws {
        let number = "4761739001010010"
        let text = Array(number.utf8).map { String($0, radix: 16) }.joined()
        for (recorded, played) in [
            (["00A4040008\(number)00"], "00A4040008\(number)01"),
            (["10A404000447617390", "00A404000401010010"], "00B0000000"),
            (["00A4040010\(text)00"], "00A4040010\(text)"),
        ] {
            // By the record the number is known.
            let lines =
                ["> apdu 00B2010C00", "< apdu 700A5A08\(number)9000"]
                + recorded.flatMap { ["> apdu \($0)", "< apdu 9000"] }
            let trace = try Trace(text: "apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined())
            let card = try await ReplayReader(trace).connect()
            for hex in ["00B2010C00"] + recorded.dropLast() { _ = try await card.transmit(command(hex)) }
            await #expect {
                try await card.transmit(command(played))
            } throws: { error in
                let text = "\(error)"
                return text.contains("! \(recorded.last?.prefix(8) ?? "")**") && !text.contains(recorded.last ?? "")
                    && (!played.hasPrefix("00A4") || !text.contains(played))
            }
            // What was not played is listed, too.
            #expect {
                try ReplayReader(trace).checkPlayedThrough()
            } throws: { error in !"\(error)".contains(recorded[0]) && "\(error)".contains("\(recorded[0].prefix(8))**")
            }
        }
    }

    @Test("a task that waits for the slot wakes when it is cancelled, and when a call lets the slot change")
    func waiting() async throws {
        let lines = ["slot card 3B8F", "> apdu 00A4040000", "< apdu 9000", "slot empty"]
        let trace = try Trace(text: "apdu-trace 1\n" + lines.map { "0.000000000 \($0)\n" }.joined())
        let reader = ReplayReader(trace)
        let cancelled = Task { try await reader.waitForRemoval() }
        cancelled.cancel()
        _ = await cancelled.result
        let removal = Task { try await reader.waitForRemoval() }
        _ = try await reader.connect().transmit(command("00A4040000"))
        try await removal.value
    }

    @Test("commands to the reader are played too; bytes of other layers are not")
    func escape() async throws {
        let reader = ReplayReader(
            try trace(
                "> escape FF00480000", "> ccid 6F", "< ccid 80", "> rf 26", "< escape 41435231323255323136",
                "> escape FF00480000", "! escape cancelled"))
        let firmware: [UInt8] = [0xFF, 0x00, 0x48, 0x00, 0x00]
        #expect(try await reader.transmitToReader(firmware) == Array("ACR122U216".utf8))
        await #expect { try await reader.transmitToReader(firmware) } throws: { ($0 as? CardError)?.kind == .noAnswer }
    }

    /// 11 ms, as the trace has it.
    @Test("a stopwatch is told what was recorded", arguments: [ReplayReader.Timing.none, .recorded(scale: 3)])
    func recordedTime(_ timing: ReplayReader.Timing) async throws {
        let trace = try Trace(
            text: "apdu-trace 1\n1.000000000 > apdu 00A4040000\n1.011000000 < apdu 9000\n")
        let card = try await ReplayReader(trace, timing: timing).connect()
        let stopwatch = ExchangeStopwatch()
        _ = try await stopwatch.time { try await card.transmit(command("00A4040000")) }
        #expect(stopwatch.elapsed == .milliseconds(11))
    }

    @Test(
        "an answer is recorded when its transport had it, if somebody measures", .simulatedTime,
        arguments: [false, true])
    func timeOfTheTransport(_ isMeasured: Bool) async throws {
        let recording = try Recording()
        let card = recording.recorder.recording(LateChannel())
        func exchange() async throws { for _ in 0..<2 { _ = try await card.transmit(command("00A4040000")) } }
        if isMeasured { try await ExchangeStopwatch().time(exchange) } else { try await exchange() }
        let times = try recording.trace().events.map(\.time)
        try #require(times.count == 4)
        for (sent, received) in [(times[0], times[1]), (times[2], times[3])] {
            #expect(received - sent == .milliseconds(isMeasured ? 11 : 51))
        }
    }

    @Test("with the timing of the recording an answer takes its time", .simulatedTime)
    func timing() async throws {
        let trace = try Trace(
            text: "apdu-trace 1\n1.000000000 > apdu 00A4040000\n1.200000000 < apdu 9000\n")
        func time(_ timing: ReplayReader.Timing) async throws -> Duration {
            let card = try await ReplayReader(trace, timing: timing).connect()
            let start = Time.now
            _ = try await card.transmit(command("00A4040000"))
            return Time.now - start
        }
        #expect(try await time(.recorded()) == .milliseconds(200))
        #expect(try await time(.recorded(scale: 0.5)) == .milliseconds(100))
        // Not a number, and less than nothing, are no time at all.
        #expect(try await time(.recorded(scale: .nan)) == .zero)
        #expect(try await time(.recorded(scale: -1)) == .zero)
        let long = Task { try await time(.recorded(scale: .greatestFiniteMagnitude)) }
        try await Time.sleep(for: .seconds(3600))
        long.cancel()
        await #expect(throws: CancellationError.self) { try await long.value }
    }
}
