import Foundation
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

@testable import TravelDocument

/// What a chip tells of itself: EF.ATR/INFO, DG14 and DG15.
@Suite struct ParsingChipTests {
    /// EF.ATR of a chip, as somebody read and published it (Stack Overflow, "How to read SmartCard ATR in Android").
    static let published = "4301F8 4703F741E0 7F6608 020205F0 020205F0"

    private func fault(_ bytes: [UInt8], _ file: ElementaryFile = .atrInfo) -> TravelDocumentFormatError? {
        do {
            _ = try ParsedFile(parsing: bytes, of: file)
            return nil
        } catch {
            return error
        }
    }

    // MARK: EF.ATR/INFO

    @Test("A published file tells its services, its abilities and its buffers, as ISO/IEC 7816-4 has the bits")
    func atrInfo() throws {
        let info = try ATRInfo(parsing: hex(Self.published))
        expectEqual(
            info.services,
            [.selectionByFullName, .selectionByPartialName, .objectsInDirectory, .objectsInATRInfo, .readBinary])
        let capabilities = try #require(info.capabilities)
        expectEqual(capabilities.bytes, [0xF7, 0x41, 0xE0])
        expectEqual(
            capabilities.selection,
            [
                .fullName, .partialName, .path, .fileIdentifier, .shortIdentifier, .recordNumber, .recordIdentifier,
            ])
        expectEqual(capabilities.hasCommandChaining, true)
        expectEqual(capabilities.hasExtendedLengths, true)
        expectEqual(capabilities.statesLengths, true)
        expectEqual(info.extendedLengths, .init(longestCommand: 1520, longestResponse: 1520))
        #expect(info.otherObjects.isEmpty && info.historicalBytes == nil)
        try expectEqual(ParsedFile(parsing: hex(Self.published), of: .atrInfo), .atrInfo(info))
    }

    @Test("Every object has its place, and padding none")
    func atrInfoObjects() throws {
        let info = try ATRInfo(
            parsing: hex(
                """
                00 4102 276F  4203 123456  440100  4502 AABB  4604 01020304  470140  4803 059000  00
                4F07 A0000002471001  5F5205 8073C02180  C00101  7F660B 0203 010000 0204 00000100  0000
                """))
        #expect(info.countryData?.hex == "276F" && info.issuerIdentificationNumber?.hex == "123456")
        #expect(info.initialAccessData == [0x00] && info.issuerData?.hex == "AABB")
        #expect(info.preIssuingData?.hex == "01020304" && info.statusIndicator?.hex == "059000")
        #expect(info.applicationIdentifier?.hex == "A0000002471001" && info.historicalBytes?.hex == "8073C02180")
        #expect(info.otherObjects.map(\.tag) == [0xC0] && info.otherObjects.first?.value == [1])
        expectEqual(info.extendedLengths, .init(longestCommand: 65_536, longestResponse: 256))
        // One byte of capabilities tells nothing of lengths.
        #expect(info.capabilities?.selection == .partialName && info.capabilities?.hasExtendedLengths == nil)
        expectEqual(info.services, nil)
        #expect(try ATRInfo(parsing: []).otherObjects.isEmpty)
    }

    @Test(
        "A fault has its offset",
        arguments: [
            ("4302F8F8", 2, .length(1...1)), ("4300", 2, .length(1...1)), ("4700", 2, .length(1...3)),
            ("470400000000", 2, .length(1...3)), ("4800", 2, .length(1...3)),
            ("4301F84301F8", 3, .singleObject(0x43)), ("4F00", 2, .length(1...16)),
            ("5F5210" + String(repeating: "00", count: 16), 3, .length(0...15)),
            ("7F6604020205F0", 7, .object(0x02)), ("7F6608020205F0030205F0", 7, .object(0x02)),
            ("7F660B020205F0020205F0020100", 11, .end), ("7F660702030000000200", 5, .number(1...0xFFFF_FFFF)),
            ("7F66050200020101", 5, .length(1...4)), ("7F660702050000000001", 5, .length(1...4)),
            ("43", 1, nil), ("4305F8", 1, nil), ("7F", 0, nil),
        ] as [(String, Int, TravelDocumentFormatError.Due?)])
    func atrInfoFaults(_ file: String, _ offset: Int, _ due: TravelDocumentFormatError.Due?) throws {
        let error = try #require(fault(hex(file)))
        expectEqual(error.file, .atrInfo)
        guard let due else { return }
        expectEqual(error, TravelDocumentFormatError(file: .atrInfo, offset: offset, due: due))
    }

    @Test("Every beginning and every changed bit of a file is parsed, or refused within it")
    func atrInfoHostile() throws {
        let bytes = try hex(Self.published)
        for count in bytes.indices {
            if let error = fault(Array(bytes[..<count])) { #expect((0...count).contains(error.offset)) }
            for bit in 0..<8 {
                var changed = bytes
                changed[count] ^= 1 << UInt8(bit)
                if let error = fault(changed) { #expect((0...bytes.count).contains(error.offset)) }
            }
        }
    }

    // MARK: Reading EF.ATR/INFO

    /// A chip's answers to READ BINARY.
    private enum Habit: CaseIterable {
        /// 6282 with what is left, as ISO/IEC 7816-4 has it.
        case warns
        /// 9000 with what is left, and 6B00 after it.
        case saysNothing
        /// 6B00 for more than is left.
        case refusesBeyondEnd
        /// 6700 for more than is left.
        case refusesLength
        /// No more than 10 bytes at a time.
        case isSmall
    }

    private func read(_ file: [UInt8], _ habit: Habit, chunk: Int = 256) -> (FileReader.Step, commands: [[UInt8]]) {
        var reader = FileReader(.atrInfo, chunk: chunk, usesShortIdentifier: false)
        var commands: [[UInt8]] = []
        var step = reader.next(nil)
        while case .send(let command) = step, commands.count < 200 {
            commands.append(command.bytes)
            guard command.ins == 0xB0, let ne = command.ne else {
                step = reader.next(ResponseAPDU(status: .success))
                continue
            }
            let left = file.dropFirst(Int(command.p1) << 8 | Int(command.p2))
            let data = Array(left.prefix(habit == .isSmall ? min(ne, 10) : ne))
            let isBeyond = ne > left.count
            let answer: ResponseAPDU =
                switch habit {
                case _ where left.isEmpty: ResponseAPDU(status: 0x6B00)
                case .refusesBeyondEnd where isBeyond: ResponseAPDU(status: 0x6B00)
                case .refusesLength where isBeyond: ResponseAPDU(status: 0x6700)
                case .warns where isBeyond: ResponseAPDU(data: data, status: 0x6282)
                default: ResponseAPDU(data: data, status: .success)
                }
            step = reader.next(answer)
        }
        return (step, commands)
    }

    @Test("A file of several objects is read to its end, whatever the chip says there", arguments: Habit.allCases)
    private func end(_ habit: Habit) throws {
        for (length, chunk) in [(21, 256), (256, 256), (300, 256), (1, 16), (1_000, 223), (16, 16)] {
            let file = (0..<length).map { UInt8(truncatingIfNeeded: $0) }
            let (step, commands) = read(file, habit, chunk: chunk)
            guard case .done(let bytes) = step else {
                Issue.record("\(habit), \(length): \(step)")
                continue
            }
            expectEqual(bytes, file)
            expectEqual(commands.first?.hex, "00A4020C022F01")
            if habit == .warns, !length.isMultiple(of: chunk) { expectEqual(commands.count, 1 + length / chunk + 1) }
        }
    }

    @Test("A file that is not there, that nobody may read, that is empty, and one without end")
    func noFile() {
        for (status, error) in [
            (0x6A82, .absent), (0x6982, .denied), (0x6B00, .status(0x6B00)), (0x6283, .absent),
        ] as [(StatusWord, FileError)] {
            var reader = FileReader(.atrInfo, chunk: 256, usesShortIdentifier: false)
            _ = reader.next(nil)
            _ = reader.next(ResponseAPDU(status: .success))
            var step = reader.next(ResponseAPDU(status: status))
            while case .send = step { step = reader.next(ResponseAPDU(status: status)) }
            guard case .failed(error) = step else {
                Issue.record("\(status): \(step)")
                continue
            }
        }
        var endless = FileReader(.atrInfo, chunk: 65_536, usesShortIdentifier: false)
        _ = endless.next(nil)
        var step = endless.next(ResponseAPDU(status: .success))
        while case .send(let command) = step {
            let data = [UInt8](repeating: 0, count: 60_000)
            step = endless.next(
                ResponseAPDU(data: command.ins == 0xB1 ? TLVTag(0x53).encode(data) : data, status: .success))
        }
        guard case .failed(.tooLong) = step else {
            Issue.record("\(step)")
            return
        }
    }

    @Test("The caller reads the file from an open chip, and the application is selected again after it")
    func callerReads() async throws {
        let file = try hex(Self.published)
        let selected = Mutex<[UInt8]?>(nil)
        // The chip has the file; its answers go through the session.
        let card = PassportCard(ChipTests.configuration([1: 93])).lying { command, answer in
            switch (command.ins, command.p1) {
            case (0xA4, 0x00): return ResponseAPDU(status: .success)
            case (0xA4, 0x02) where command.data == [0x2F, 0x01]:
                selected.withLock { $0 = file }
                return ResponseAPDU(status: .success)
            case (0xA4, _):
                selected.withLock { $0 = nil }
                return answer
            case (0xB0, 0x00):
                return selected.withLock { $0 }.map { ResponseAPDU(data: $0, status: 0x6282) } ?? answer
            default: return answer
            }
        }
        let chip = TravelDocumentChip(over: ReadingTests.Channel(card))
        await #expect(throws: ChipError.notOpen) { try await chip.read(.atrInfo) }
        try await chip.open(with: BasicAccessControlTests.key.get())
        try await expectEqual(chip.read(.atrInfo), file)
        try await expectEqual(chip.read(.dataGroup(1)), ChipTests.group(1, 93))
        expectEqual("\(ElementaryFile.atrInfo)", "EF.ATR/INFO")
    }
}
