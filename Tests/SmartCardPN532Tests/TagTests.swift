import SmartCard
import SmartCardPN532
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

/// A Type 2 Tag of any memory, behind the commands of PC/SC part 3.
final class PageTag: CardConnection {
    let atr = ATR(bytes("3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 00 03 00 00 00 00 68"))
    let transmissionProtocol = TransmissionProtocol.t1

    private struct State {
        var memory: [UInt8]
        var writes: [String] = []
        var reads = 0
        var resets = 0
        /// After so many writes the tag is gone.
        var lastWrite: Int?
    }

    private let state: Mutex<State>

    /// A tag with this capability container and data area, and `behind` after it.
    init(cc: String = "E1 10 12 00", _ data: String, size: Int = 144, locks: String = "00 00", behind: String = "") {
        let start = bytes("04 6D 2A CB 91 5C 70 80 3D 48") + bytes(locks) + bytes(cc) + bytes(data)
        let filling = [UInt8](repeating: 0, count: max(0, 16 + size - start.count))
        state = Mutex(State(memory: start + filling + bytes(behind)))
    }

    var memory: [UInt8] {
        get { state.withLock { $0.memory } }
        set { state.withLock { $0.memory = newValue } }
    }

    func page(_ page: Int) -> String { memory.dropFirst(4 * page).prefix(4).hex(separator: " ") }
    var writes: [String] { state.withLock { $0.writes } }
    var reads: Int { state.withLock { $0.reads } }
    var resets: Int { state.withLock { $0.resets } }
    func leave(after writes: Int?) {
        state.withLock { $0.lastWrite = writes.map { [count = $0.writes.count] in $0 + count } }
    }

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        try state.withLock { state in
            let start = 4 * Int(command.p2)
            let refusal = ResponseAPDU(status: 0x6300)
            guard command.cla == 0xFF, command.p1 == 0, start < state.memory.count else { return refusal }
            switch command.ins {
            case 0xB0:
                state.reads += 1
                let count = state.memory.count
                return ResponseAPDU(
                    data: (0..<(command.ne ?? 0)).map { state.memory[(start + $0) % count] }, status: .success)
            case 0xD6:
                guard command.data.count == 4, start + 4 <= state.memory.count else { return refusal }
                if let last = state.lastWrite, state.writes.count >= last { throw CardError(.cardRemoved) }
                state.writes.append("\(command.p2): \(command.data.hex(separator: " "))")
                state.memory.replaceSubrange(start..<(start + 4), with: command.data)
                return ResponseAPDU(status: .success)
            default: return refusal
            }
        }
    }

    func reset() async throws { state.withLock { $0.resets += 1 } }
    func disconnect(_ disposition: CardDisposition) async {}
}

private func message(_ text: String) throws -> NDEFMessage {
    NDEFMessage([try #require(NDEFRecord.text(text, language: "en"))])
}

private func tagError(_ body: () async throws -> some Any) async -> TagError? {
    do {
        _ = try await body()
        return nil
    } catch {
        return error as? TagError
    }
}

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct Type2TagTests {
    // MARK: Through the software reader

    @Test func ntag213() async throws {
        let card = try #require(VirtualCards.named("ntag213"))
        let tag = Type2Tag(try await virtualReader(card).connect())
        #expect(try await tag.readNDEF().records.map(\.uri) == ["https://swift.org"])
        #expect(try await tag.capabilityContainer() == bytes("E1 10 12 00"))
        let status = try await tag.ndefStatus()
        #expect((status.capacity, status.length, status.isWritable) == (142, 14, true))
        #expect("\(status.version)" == "1.0")

        try await tag.writeNDEF(message("Hello, World!"))
        // As the chip has it: TLV, record, terminator (NFC Forum Type 2 Tag 1.1, 2.3).
        #expect(
            card.exchangeNative([0x30, 0x04])?.hex(separator: " ") == "03 14 D1 01 10 54 02 65 6E 48 65 6C 6C 6F 2C 20")
        #expect(card.exchangeNative([0x30, 0x08])?.prefix(8).hex(separator: " ") == "57 6F 72 6C 64 21 FE 00")
        #expect(try await tag.readNDEF().records.first?.text?.text == "Hello, World!")
    }

    /// NXP NTAG213/215/216, table 28; FAST_READ, 10.3.
    @Test func commandsOfTheChip() async throws {
        let reader = virtualReader(VirtualCards.named("ntag213"))
        let tag = Type2Tag(try await reader.connect())
        let version = try #require(try await tag.version())
        #expect(version.bytes == bytes("00 04 04 02 01 00 0F 03") && version.name == "NTAG213")
        let pages = try await tag.fastRead(0...44)
        #expect(pages.count == 180 && pages.starts(with: bytes("04 6D 2A")))
        #expect(await tagError { try await tag.fastRead(40...45) } == .refused("to read pages 40 to 45"))
        // The tag that has refused is there again.
        #expect(try await tag.capabilityContainer() == bytes("E1 10 12 00"))
        #expect(await tagError { try await tag.writePage(0, [0, 0, 0, 0]) } == .refused("to write 0"))
        try await tag.writePage(0x27, [1, 2, 3, 4])
        #expect(try await Array(tag.readPages(from: 0x27).prefix(4)) == [1, 2, 3, 4])
        #expect(await tagError { try await tag.writePage(4, [1]) } == .wrongLength(1, expected: 4))
    }

    /// A MIFARE Classic knows no GET_VERSION, and takes part again afterwards.
    @Test func noVersion() async throws {
        let connection = try await virtualReader(VirtualCards.named("mifare-classic-1k")).connect()
        #expect(try await Type2Tag(connection).version() == nil)
        try await MIFAREClassic(connection).authenticate(block: 4, with: .delivery)
    }

    @Test func fastReadIsDivided() async throws {
        let first = [UInt8](repeating: 1, count: 240)
        let reader = ScriptedReader([
            "FF 00 00 00 05 D4 42 3A 00 3B": "D5 43 00 \(first.hex) 90 00",
            "FF 00 00 00 05 D4 42 3A 3C 3D": "D5 43 00 01 02 03 04 05 06 07 08 90 00",
            "FF 00 00 00 05 D4 42 3A 00 00": "D5 43 00 01 02 03 90 00",
        ])
        let tag = Type2Tag(reader)
        #expect(try await tag.fastRead(0...61) == first + [1, 2, 3, 4, 5, 6, 7, 8])
        #expect(await failure { try await tag.fastRead(0...0) } == "malformedAnswer")
    }

    // MARK: Layout

    /// NTAG213 and, as they are delivered (NXP NTAG213/215/216, 8.5.7), NTAG215 and 216.  Their capacities for NDEF are
    /// published as 137, 492 and 868 bytes.
    @Test(arguments: [
        ("E1 10 12 00", "01 03 A0 0C 34 03 00 FE", 144, 137), ("E1 10 3E 00", "03 00 FE", 496, 492),
        ("E1 10 6D 00", "03 00 FE", 872, 868),
    ])
    func capacities(cc: String, data: String, size: Int, capacity: Int) async throws {
        let page = PageTag(cc: cc, data, size: size, behind: "00 00 00 BD 04 00 00 FF 00 05 00 00")
        let tag = Type2Tag(page)
        #expect(try await tag.ndefStatus().capacity == capacity)
        #expect(try await tag.readNDEF() == NDEFMessage())
        let full = try NDEFRecord(
            format: .unknown, payload: [UInt8](repeating: 7, count: capacity - (capacity > 258 ? 6 : 3)))
        #expect(NDEFMessage([full]).bytes.count == capacity)
        try await tag.writeNDEF(NDEFMessage([full]))
        #expect(try await tag.readNDEF().records == [full])
        #expect(page.memory.count == 16 + size + 12)
        #expect(page.memory.suffix(12) == bytes("00 00 00 BD 04 00 00 FF 00 05 00 00"))
        let more = try NDEFRecord(format: .unknown, payload: [UInt8](repeating: 7, count: full.payload.count + 1))
        let before = page.memory
        #expect(
            await tagError { try await tag.writeNDEF(NDEFMessage([more])) }
                == .tooLong(NDEFMessage([more]).bytes.count, capacity: capacity))
        #expect(page.memory == before)
    }

    /// 254 bytes have a length of one byte, 255 of three (Type 2 Tag 1.1, 2.3).
    @Test(arguments: [(254, "03 FE D5 00"), (255, "03 FF 00 FF"), (256, "03 FF 01 00")])
    func lengths(count: Int, start: String) async throws {
        let page = PageTag(cc: "E1 10 3E 00", "03 00 FE", size: 496)
        let payload = [UInt8](repeating: 0x5A, count: count - 3)
        let record = try NDEFRecord(format: .unknown, payload: payload)
        try await Type2Tag(page).writeNDEF(NDEFMessage([record]))
        #expect(page.page(4) == start)
        let header = count < 255 ? 2 : 4
        #expect(page.memory[16 + header + count] == 0xFE)
        #expect(try await Type2Tag(page).readNDEF().records == [record])
    }

    /// Length zero first, message and terminator, length last; what does not change is not written.
    @Test func orderOfWrites() async throws {
        let page = PageTag("00 00 03 03 D0 00 00 FE")
        let tag = Type2Tag(page)
        try await tag.writeNDEF(NDEFMessage([try NDEFRecord(format: .unknown, payload: [1, 2, 3])]))
        #expect(page.writes == ["4: 00 00 03 00", "5: D5 00 03 01", "6: 02 03 FE 00", "4: 00 00 03 06"])
        try await tag.writeNDEF(NDEFMessage([try NDEFRecord(format: .unknown, payload: [1, 2, 3])]))
        #expect(page.writes.count == 4)
        try await tag.writeNDEF(NDEFMessage())
        #expect(page.page(4) == "00 00 03 00" && page.page(5) == "FE 00 03 01")
        #expect(try await tag.readNDEF() == NDEFMessage())
    }

    /// The tag leaves after any of the writes: the old message, none, or the new one.
    @Test func leavesWhileWritten() async throws {
        let (old, new) = (try message("old"), try message("a rather longer new message"))
        for writes in 0...12 {
            let page = PageTag("01 03 A0 0C 34 03 00 FE")
            try await Type2Tag(page).writeNDEF(old)
            page.leave(after: writes)
            let result = await failure { try await Type2Tag(page).writeNDEF(new) }
            let after = try await Type2Tag(page).readNDEF()
            #expect(result == nil ? after == new : result == "cardRemoved")
            #expect([old, NDEFMessage(), new].contains(after), "after \(writes) writes")
            #expect(after != old || writes == 0)
        }
    }

    /// Memory Control TLV: 4 bytes from byte 1Eh on, in the middle of the message; Lock Control TLV: 9 lock bits at byte
    /// 24h (Type 2 Tag 1.1, 2.3.2 and 2.3.3).
    @Test func reservedAreas() async throws {
        let page = PageTag(cc: "E1 10 06 00", "02 03 1E 04 04 01 03 24 09 34 03 00 FE", size: 48)
        page.memory.replaceSubrange(30..<34, with: [0xAA, 0xAA, 0xAA, 0xAA])
        let tag = Type2Tag(page)
        // The data area ends before byte 64 and the TLV begins at 26; less what is reserved, less tag and length.
        #expect(try await tag.ndefStatus().capacity == 64 - 26 - 4 - 2 - 2)
        let new = try NDEFRecord(format: .unknown, payload: [1, 2, 3, 4, 5, 6, 7, 8, 9])
        try await tag.writeNDEF(NDEFMessage([new]))
        // 03 0C D5 00, reserved, 09 01, locks, 02 …
        #expect(
            page.memory[26..<48].hex(separator: " ")
                == "03 0C D5 00 AA AA AA AA 09 01 00 00 02 03 04 05 06 07 08 09 FE 00")
        #expect(try await tag.readNDEF().records == [new])
    }

    /// Other TLVs are passed over: proprietary, unknown, empty.
    @Test func otherTLVs() async throws {
        let page = PageTag("00 FD 02 03 FF 77 00 00 FD FF 00 03 03 03 03 03 03 D0 00 00 FE")
        #expect(try await Type2Tag(page).readNDEF().records == [.empty])
    }

    @Test(arguments: [
        ("E1 10 12 00", "FE", "no NDEF message TLV"), ("E1 10 12 00", "", "no NDEF message TLV"),
        ("00 00 00 00", "03 00", "no E1"), ("E1 20 12 00", "03 00", "mapping version 2.0"),
        ("E1 10 12 F0", "03 00", "authentication"), ("E1 10 00 00", "03 00", "no NDEF message TLV"),
    ])
    func notNDEF(cc: String, data: String, reason: String) async throws {
        guard case .notNDEF(let why) = await tagError({ try await Type2Tag(PageTag(cc: cc, data)).readNDEF() }) else {
            Issue.record("it is")
            return
        }
        #expect(why.contains(reason))
    }

    @Test(arguments: [
        ("03 FF 01 00", "an NDEF message", 16), ("03 8F", "an NDEF message", 16),
        ("03 FF FF FF", "an NDEF message", 16),
        ("01 02 00 00", "a control TLV of 2", 16),
        ("FD FF FF FF", "ends inside", 160),
    ])
    func malformed(data: String, what: String, offset: Int) async throws {
        let error = await tagError { try await Type2Tag(PageTag(data)).readNDEF() }
        guard case .malformed(let text, offset) = error else {
            Issue.record("\(String(describing: error))")
            return
        }
        #expect(text.contains(what))
    }

    // MARK: Locks

    /// Lock bits 4 to 15 of page 2 are pages 4 to 15 (Type 2 Tag 1.1, 2.2.1).
    @Test(arguments: [("10 00", 4), ("20 00", 5), ("00 01", 8), ("40 00", 6)])
    func staticLocks(locks: String, page: Int) async throws {
        let tag = PageTag("03 00 FE", locks: locks)
        let before = tag.memory
        #expect(
            await tagError { try await Type2Tag(tag).writeNDEF(message("a text for some pages")) }
                == .locked(page: page))
        #expect(tag.memory == before && tag.writes.isEmpty)
        // A page that the message does not reach may be locked.
        if page == 8 { try await Type2Tag(tag).writeNDEF(message("a")) }
    }

    /// NTAG213, 8.5.3: bit 0 of the byte at page 28h is pages 10h and 11h; NTAG215: of page 82h, pages 16 to 31.
    @Test(arguments: [
        ("E1 10 12 00", "01 03 A0 0C 34 03 00 FE", 144, "02 00 00 BD", 18),
        // Without a TLV, as the specification takes for granted (2.2.2).
        ("E1 10 12 00", "03 00 FE", 144, "04 00 00 BD", 20), ("E1 10 3E 00", "03 00 FE", 504, "01 00 00 BD", 16),
        ("E1 10 3E 00", "03 00 FE", 504, "02 00 00 BD", 32), ("E1 10 6D 00", "03 00 FE", 888, "02 00 00 BD", 32),
    ])
    func dynamicLocks(cc: String, data: String, size: Int, locks: String, page: Int) async throws {
        let tag = PageTag(cc: cc, data, size: size, behind: locks)
        let long = try message(String(repeating: "x", count: 120))
        #expect(await tagError { try await Type2Tag(tag).writeNDEF(long) } == .locked(page: page))
        #expect(tag.writes.isEmpty)
        try await Type2Tag(tag).writeNDEF(message("short"))
        tag.memory.replaceSubrange((16 + size)..<(16 + size + 1), with: [0x00])
        try await Type2Tag(tag).writeNDEF(long)
        #expect(try await Type2Tag(tag).readNDEF() == long)
    }

    /// A Lock Control TLV by whose PageControl a bit locks 2 bytes: bit 1 is the second half of page 16 (Type 2 Tag 1.1,
    /// 2.3.2).
    @Test func locksOfHalfPages() async throws {
        let tag = PageTag("01 03 A0 0C 14 03 00 FE", behind: "02 00 00 BD")
        let long = try message(String(repeating: "x", count: 80))
        #expect(await tagError { try await Type2Tag(tag).writeNDEF(long) } == .locked(page: 16))
        #expect(tag.writes.isEmpty)
    }

    /// The software NTAG213 with locks agrees.
    @Test func locksOfTheSoftwareTag() async throws {
        let card = try #require(VirtualCards.named("ntag213"))
        #expect(card.exchangeNative(bytes("A2 28 01 00 00 00")) == [])
        let tag = Type2Tag(try await virtualReader(card).connect())
        #expect(
            await tagError { try await tag.writeNDEF(message(String(repeating: "x", count: 100))) } == .locked(page: 16)
        )
        #expect(card.exchangeNative(bytes("A2 02 00 00 20 00")) == [])
        #expect(await tagError { try await tag.writeNDEF(message("hello")) } == .locked(page: 5))
        #expect(try await tag.readNDEF().records.map(\.uri) == ["https://swift.org"])
    }

    @Test func readOnly() async throws {
        let tag = PageTag(cc: "E1 10 12 0F", "03 00 FE")
        #expect(await tagError { try await Type2Tag(tag).writeNDEF(message("a")) } == .readOnly)
        #expect(try await Type2Tag(tag).ndefStatus().isWritable == false)
    }

    /// Memory of any content: an answer, within some 130 reads.
    @Test func hostileMemory() async throws {
        var generator = SplitMix(state: 532)
        for round in 0..<400 {
            let size = UInt8.random(in: 0...255, using: &generator)
            let tag = PageTag(cc: "E1 10 \([size].hex) 00", "", size: min(8 * Int(size), 1100))
            let tags: [UInt8] = [0x00, 0x01, 0x02, 0x03, 0x03, 0xFD, 0xFE, 0xFF]
            for index in tag.memory.indices.dropFirst(16).prefix(round % 60) {
                tag.memory[index] =
                    Bool.random(using: &generator)
                    ? tags[Int.random(in: 0..<8, using: &generator)] : .random(in: 0...255, using: &generator)
            }
            _ = try? await Type2Tag(tag).readNDEF()
            #expect(tag.reads < 300)
            guard round % 10 == 0 else { continue }
            _ = try? await Type2Tag(tag).writeNDEF(message("x"))
        }
    }

    @Test(arguments: ["", "00", "90 00", "00 01 90 00", "63 00", "6A 81", "-"])
    func hostileReader(answer: String) async throws {
        let script = ScriptedReader(always: bytes(answer))
        await #expect(throws: (any Error).self) { _ = try await Type2Tag(script).readNDEF() }
        await #expect(throws: (any Error).self) { try await Type2Tag(script).writeNDEF(message("x")) }
        _ = try? await Type2Tag(script).version()
        await #expect(throws: (any Error).self) { _ = try await Type2Tag(script).fastRead(0...255) }
        #expect(script.history().count < 30)
    }
}

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct Type4TagTests {
    static let select = "00 A4 04 00 07 D2 76 00 00 85 01 01 00"
    static let selectCC = "00 A4 00 0C 02 E1 03"
    static let selectFile = "00 A4 00 0C 02 E1 04"

    /// NFC Forum Type 4 Tag Operation 2.0, Appendix C: detection, read, write.
    @Test func appendixC() async throws {
        let reader = ScriptedReader([
            Self.select: "90 00", Self.selectCC: "90 00",
            "00 B0 00 00 0F": "00 0F 20 00 3B 00 34 04 06 E1 04 00 32 00 00 90 00",
            Self.selectFile: "90 00", "00 B0 00 00 02": "00 03 90 00", "00 B0 00 02 03": "D0 00 00 90 00",
        ])
        #expect(try await Type4Tag(reader).readNDEF().records == [.empty])

        let writer = ScriptedReader([
            Self.select: "90 00", Self.selectCC: "90 00",
            "00 B0 00 00 0F": "00 0F 20 00 3B 00 02 04 06 E1 04 00 32 00 00 90 00",  // MLc 2
            Self.selectFile: "90 00", "00 B0 00 00 02": "00 00 90 00", "00 D6 00 00 02 00 00": "90 00",
            "00 D6 00 02 02 D0 00": "90 00", "00 D6 00 04 01 00": "90 00", "00 D6 00 00 02 00 03": "90 00",
        ])
        try await Type4Tag(writer).writeNDEF(NDEFMessage([.empty]))
        #expect(writer.history().count == 9)
    }

    /// Mapping version 1.0 has another name and another P2 (5.5).
    @Test func version1() async throws {
        let reader = ScriptedReader([
            Self.select: "6A 82", "00 A4 04 00 07 D2 76 00 00 85 01 00 00": "90 00", "00 A4 00 00 02 E1 03": "90 00",
            "00 B0 00 00 0F": "00 0F 10 00 3B 00 34 04 06 E1 04 00 32 00 FF 90 00",
            "00 A4 00 00 02 E1 04": "90 00", "00 B0 00 00 02": "00 00 90 00",
        ])
        let status = try await Type4Tag(reader).ndefStatus()
        #expect((status.capacity, status.length, status.isWritable) == (48, 0, false))
        #expect("\(status.version)" == "1.0")
    }

    @Test(arguments: ["00 0E", "FF FF"]) func lengthsOfTheContainer(cclen: String) async throws {
        let reader = ScriptedReader([
            Self.select: "90 00", Self.selectCC: "90 00",
            "00 B0 00 00 0F": "\(cclen) 20 00 3B 00 34 04 06 E1 04 00 32 00 00 90 00",
        ])
        #expect(
            await tagError { try await Type4Tag(reader).readNDEF() }
                == .malformed("CCLEN of \(cclen == "FF FF" ? 65535 : 14)", offset: 0))
    }

    @Test func softwareTag() async throws {
        let card = try #require(VirtualCards.named("ndef-type4"))
        let tag = Type4Tag(try await virtualReader(card).connect())
        #expect(try await tag.readNDEF().records.map(\.uri) == ["https://swift.org"])
        let status = try await tag.ndefStatus()
        #expect((status.capacity, status.length, status.isWritable) == (2046, 14, true))
        // Longer than one command and one response, and up to the last byte.
        for count in [0, 1, 51, 52, 53, 59, 60, 255, 256, 1000, 2040] {
            let new = try NDEFMessage([NDEFRecord(format: .unknown, payload: [UInt8](repeating: 0x5A, count: count))])
            try await tag.writeNDEF(new)
            #expect(try await tag.readNDEF() == new)
        }
        let more = try NDEFMessage([NDEFRecord(format: .unknown, payload: [UInt8](repeating: 0x5A, count: 2041))])
        #expect(await tagError { try await tag.writeNDEF(more) } == .tooLong(2047, capacity: 2046))
        try await tag.writeNDEF(NDEFMessage())
        #expect(try await tag.readNDEF() == NDEFMessage())
    }

    /// Straight through the chip, without the reader's firmware between.
    @Test func throughTheChip() async throws {
        let acr = ACR122U(over: virtualReader(VirtualCards.named("ndef-type4")))
        let uri = try await acr.withChip { chip -> String? in
            guard case .found(let target, _) = try await chip.poll([.typeA, .typeB], within: .zero) else { return nil }
            return try await Type4Tag(chip.channel(to: target)).readNDEF().records.first?.uri
        }
        #expect(uri == "https://swift.org")
    }

    /// Commands of 260 bytes and responses of 258, which the chip takes in parts.
    @Test func chainedByTheChip() async throws {
        let text = try #require(VirtualCards.all.first { $0.name == "ndef-type4" }).text
        let card = try CardFile(parsing: text.replacing("size 2048", with: "size 1000\nmle 256\nmlc 255")).makeCard()
        let reader = virtualReader(card)
        // The host selects the card when it first sees it, and is not to do so in between.
        _ = try await reader.waitForCard()
        let chip = ACR122U(over: reader).chip
        let tag = Type4Tag(chip.channel(to: try #require(try await chip.listTargets(.typeA).first)))
        let new = try NDEFMessage([NDEFRecord(format: .unknown, payload: (0..<900).map { UInt8($0 % 251) })])
        try await tag.writeNDEF(new)
        #expect(try await tag.readNDEF() == new)
    }

    @Test func noTag() async throws {
        for name in ["iso-dep", "visa", "type-b"] {
            let tag = Type4Tag(try await virtualReader(VirtualCards.named(name)).connect())
            #expect(await tagError { try await tag.readNDEF() } == .notNDEF("no NDEF application"))
        }
    }

    /// Every byte of the capability container and NLEN at its bounds, and answers of every wrong length: an error or a
    /// message, after a bounded number of commands.
    @Test func hostile() async throws {
        let cc = bytes("00 0F 20 00 3B 00 34 04 06 E1 04 7F FF 00 00")
        for index in cc.indices {
            for value in [0x00, 0x01, 0x05, 0x0F, 0x7F, 0x80, 0xFE, 0xFF] as [UInt8] {
                var mutant = cc
                mutant[index] = value
                let reader = ScriptedReader([
                    Self.select: "90 00", Self.selectCC: "90 00", "00 B0 00 00 0F": "\(mutant.hex) 90 00", "*": "90 00",
                    "00 B0 00 00 02": "7F FD 90 00",
                ])
                await #expect(throws: (any Error).self) { try await Type4Tag(reader).readNDEF() }
            }
        }
        for answer in ["", "90", "90 00", "00 90 00", "61 00", "6C 00", "6A 82", "00 0F 20 00 3B 00 34 04 06 90 00"] {
            let reader = ScriptedReader(always: bytes(answer))
            await #expect(throws: (any Error).self) { try await Type4Tag(reader).readNDEF() }
            await #expect(throws: (any Error).self) { try await Type4Tag(reader).writeNDEF(NDEFMessage()) }
            #expect(reader.history().count < 2000)
        }
        // One byte at a time: a card may do that.
        let slow = ScriptedReader([
            Self.select: "90 00", Self.selectCC: "90 00", "00 B0 00 00 0F": "\(cc.prefix(8).hex) 90 00",
            "00 B0 00 08 07": "\(cc.suffix(7).hex) 90 00", Self.selectFile: "90 00", "00 B0 00 00 02": "00 90 00",
            "00 B0 00 01 01": "00 90 00",
        ])
        #expect(try await Type4Tag(slow).readNDEF() == NDEFMessage())
    }

    /// A card that has 32,765 bytes and gives them one by one, which would be as many commands.
    @Test func drips() async throws {
        let card = DrippingTag()
        await #expect(throws: CardError.self) { try await Type4Tag(card).readNDEF() }
        #expect(card.count < 40)
    }
}

/// A Type 4 Tag that claims the longest of files and gives one byte to each READ BINARY of its message.
private final class DrippingTag: CardChannel {
    private let commands = Mutex(0)
    var count: Int { commands.withLock { $0 } }

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        commands.withLock { $0 += 1 }
        guard command.ins == 0xB0 else { return ResponseAPDU(status: .success) }
        switch command.ne {
        case 15: return ResponseAPDU(data: bytes("00 0F 20 00 3B 00 34 04 06 E1 04 7F FF 00 00"), status: .success)
        case 2: return ResponseAPDU(data: bytes("7F FD"), status: .success)
        default: return ResponseAPDU(data: [0xD0], status: .success)
        }
    }
}
