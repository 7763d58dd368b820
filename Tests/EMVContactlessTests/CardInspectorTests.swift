import EMVContactless
import SmartCard
import Synchronization
import TestSupport
import Testing

/// A card that is a table: the beginning of a command in hexadecimal, and the response.  The longest beginning counts.
private final class TableCard: CardChannel {
    private let table: [(command: String, response: String)]
    private let sent = Mutex<[String]>([])
    /// After so many commands the card is gone.
    private let lifetime: Int

    init(_ table: [(String, String)], lifetime: Int = .max) {
        self.table = table.map { (plain($0.0), plain($0.1)) }
        self.lifetime = lifetime
    }

    var commands: [String] { sent.withLock { $0 } }

    func sent(_ hex: String) -> Bool { commands.contains(plain(hex)) }

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        let hex = command.bytes.hex
        let count = sent.withLock {
            $0.append(hex)
            return $0.count
        }
        guard count <= lifetime else { throw CardError(.cardRemoved) }
        let row = table.filter { hex.hasPrefix($0.command) }.max { $0.command.count < $1.command.count }
        return try ResponseAPDU([UInt8](hex: row?.response ?? "6A82"))
    }
}

private func plain(_ hex: String) -> String { String(hex.filter { $0 != " " && $0 != "\n" }) }

private let ppse = "00 A4 04 00 0E 32 50 41 59"
private let selectVisa = "00 A4 04 00 07 A0 00 00 00 03 10 10"
private let gpo = "80 A8 00 00"

/// A made-up Visa card; 4761739001010010 is Visa's published test account number.
private let visa: [(String, String)] = [
    (
        ppse,
        "6F 23 84 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31 A5 11 BF 0C 0E 61 0C 4F 07 A0 00 00 00 03 10 10 87 01 01 90 00"
    ),
    // FCI with label VISA and a PDOL for TTQ, amount, unpredictable number
    (
        selectVisa,
        """
        6F 20 84 07 A0 00 00 00 03 10 10
        A5 15 50 04 56 49 53 41 9F 38 0C 9F 66 04 9F 02 06 9F 37 04 5F 2A 02 90 00
        """
    ),
    // format 2: AIP 2000, AFL: SFI 2 records 1 to 2, one signed
    (gpo, "77 0A 82 02 20 00 94 04 10 01 02 01 90 00"),
    ("00 B2 01 14", "70 0A 5A 08 47 61 73 90 01 01 00 10 90 00"),
    ("00 B2 02 14", "70 07 5F 24 03 25 12 31 00 90 00"),  // filling inside the template
    ("80 CA 9F 36", "9F 36 02 00 1C 90 00"),
    ("80 CA 9F 17", "9F 17 01 03 90 00"),
]

private func inspect(_ card: TableCard) async throws -> CardInspection {
    try await CardInspector(unpredictableNumber: [1, 2, 3, 4], date: [0x26, 0x11, 0x21]).inspect(card)
}

private func replacing(_ command: String, _ response: String) -> TableCard {
    TableCard(visa.filter { $0.0 != command } + [(command, response)])
}

@Suite struct CardInspectorTests {
    /// 64 entries of the same 255 records; EMV Book 3, Annex A1 has room for 63.
    @Test func anAFLThatNeverEndsIsCutOff() async throws {
        let entries = String(repeating: "08 01 FF 00 ", count: 64)
        let card = replacing(gpo, "77 82 01 08 82 02 20 00 94 82 01 00 " + entries + "90 00")
        let application = try #require(try await inspect(card).applications.first)
        #expect(application.findings.contains("AFL of 256 bytes; the first 252 are read"))
        expectEqual(application.records.count, CardInspector.maximumRecords)
        #expect(application.findings.count < 1000)
    }

    @Test func everythingTheCardTells() async throws {
        let card = TableCard(visa)
        let inspection = try await inspect(card)
        expectEqual(inspection.directory, .ppse)
        #expect(inspection.findings.isEmpty && inspection.interruption == nil)
        let application = try #require(inspection.applications.first)
        expectEqual(application.aid.description, "A0000000031010")
        expectEqual(application.applicationInterchangeProfile?.hex, "2000")
        expectEqual(application.applicationFileLocator?.hex, "10010201")
        expectEqual(application.records.map { "\($0.sfi).\($0.number) \($0.isSigned)" }, ["2.1 true", "2.2 false"])
        expectEqual(application.value(0x9F36)?.hex, "001C")
        expectEqual(
            application.elements.map { "\($0.object.tag) \($0.origin)" },
            [
                "4F directory", "87 directory", "84 FCI", "50 FCI", "9F38 FCI", "82 GPO", "94 GPO",
                "5A record 2.1", "5F24 record 2.2", "9F36 GET DATA", "9F17 GET DATA",
            ])
        #expect(application.findings.isEmpty)
        // EMV Book 3, 5.4: TTQ, 1.00, the unpredictable number, EUR; cut to what the PDOL asks.
        #expect(
            card.sent("80A8000012 8310 36804000 000000000100 01020304 0978 00"))
    }

    @Test func format1OfTheProcessingOptions() async throws {
        let application = try #require(
            try await inspect(replacing(gpo, "80 06 20 00 10 01 01 00 90 00")).applications.first)
        expectEqual(application.applicationInterchangeProfile?.hex, "2000")
        expectEqual(application.records.count, 1)
    }

    @Test func withoutDirectoryKnownAIDsAreTried() async throws {
        let card = TableCard(visa.filter { $0.0 != ppse })
        let inspection = try await inspect(card)
        expectEqual(inspection.directory, .aidList)
        expectEqual(inspection.applications.map(\.aid.description), ["A0000000031010"])
        // EMV Book 1, 12.3.3: the next application of that name is asked for, and its answer is the same one again.
        #expect(card.commands.contains { $0.hasPrefix("00A4040207A0000000031010") })
        try await expectEqual(inspect(TableCard([])).directory, nil)
    }

    @Test func contactDirectory() async throws {
        // EMV Book 1, 12.2.3: the directory file is SFI 1
        let card = TableCard(
            visa.filter { $0.0 != ppse } + [
                (
                    "00 A4 04 00 0E 31 50 41 59",
                    "6F 15 84 0E 31 50 41 59 2E 53 59 53 2E 44 44 46 30 31 A5 03 88 01 01 90 00"
                ),
                ("00 B2 01 0C", "70 10 61 0E 4F 07 A0 00 00 00 03 10 10 50 03 41 42 43 90 00"),
                ("00 B2 02 0C", "6A 83"),
            ])
        let inspection = try await inspect(card)
        expectEqual(inspection.directory, .pse)
        expectEqual(inspection.applications.count, 1)
    }

    @Test func aCardThatWantsNoDataIsAskedAgain() async throws {
        let card = TableCard(
            visa.filter { $0.0 != gpo } + [
                (gpo, "69 85"), ("80 A8 00 00 02 83 00", "80 06 20 00 10 01 01 00 90 00"),
            ])
        let application = try #require(try await inspect(card).applications.first)
        expectEqual(application.findings.first, "GPO: 6985 conditions of use not satisfied; tried again without data")
        expectEqual(application.records.count, 1)
    }

    /// CDOL1 asks for amount and unpredictable number; the answer is of format 1 (EMV Book 3, 6.5.5.4).
    @Test func cryptogramOnRequest() async throws {
        var table = visa.filter { $0.0 != "00 B2 02 14" }
        table.append(("00 B2 02 14", "70 08 8C 06 9F 02 06 9F 37 04 90 00"))
        table.append(("80 AE", "80 12 00 00 1C 11 22 33 44 55 66 77 88 06 01 0A 03 A0 A0 00 90 00"))
        let card = TableCard(table)
        let application = try #require(try await inspect(card).applications.first)
        #expect(card.sent("80AE00000A 000000000100 01020304 00"))
        expectEqual(application.value(0x9F26)?.hex, "1122334455667788")
        expectEqual(application.value(0x9F27)?.hex, "00")
        expectEqual(application.value(0x9F10)?.hex, "06010A03A0A000")
    }

    @Test func logRecords() async throws {
        var table = visa.filter { $0.0 != selectVisa }
        // FCI with 9F4D: file 11, five records; of which the card has two
        table.append((selectVisa, "6F 13 84 07 A0 00 00 00 03 10 10 A5 08 BF 0C 05 9F 4D 02 0B 05 90 00"))
        table.append(("00 B2 01 5C", "00 00 00 00 12 34 90 00"))
        table.append(("00 B2 02 5C", "00 00 00 00 56 78 90 00"))
        table.append(("00 B2 03 5C", "6A 83"))
        let application = try #require(try await inspect(TableCard(table)).applications.first)
        expectEqual(application.log.map(\.hex), ["000000001234", "000000005678"])
    }
}

/// What hostile cards do.  Each is reported, in words, and nothing runs without end.
@Suite(.computing) struct HostileCardTests {
    @Test(arguments: [
        (gpo, "77 0A 82 02 20 00 94 04 10 01 90 00", "GPO: TLV: the length claims 10 bytes, 8 are left (offset 1)"),
        (gpo, "80 03 20 00 10 90 00", "GPO: template 80 of 3 bytes"),
        (gpo, "90 00", "GPO: an empty answer"),
        (gpo, "67 00", "GPO: 6700 wrong length"),
        (
            gpo, "77 0A 82 02 20 00 94 04 10 00 02 01 90 00",
            "AFL entry 10000201: the record numbers do not begin at 1 or later, or end before they begin"
        ),
        (
            gpo, "77 0A 82 02 20 00 94 04 10 03 02 01 90 00",
            "AFL entry 10030201: the record numbers do not begin at 1 or later, or end before they begin"
        ),
        (
            gpo, "77 0A 82 02 20 00 94 04 F8 01 02 01 90 00",
            "AFL entry F8010201: the short file identifier is not one of 1 to 30"
        ),
        (gpo, "77 0A 82 02 20 00 94 04 10 01 02 03 90 00", "AFL entry 10010203: more signed records than records"),
        (gpo, "77 09 82 02 20 00 94 03 10 01 02 90 00", "AFL of 3 bytes, not a multiple of 4"),
        (gpo, "77 0E 82 02 20 00 94 08 10 01 01 00 10 01 01 00 90 00", "AFL entry 10010100 names record 2.1 once more"),
        ("00 B2 01 14", "70 81 FF 5A 08 90 00", "record 2.1: TLV: the length claims 255 bytes, 2 are left (offset 1)"),
        ("00 B2 01 14", "5A 08 47 61 73 90 01 01 00 10 90 00", "record 2.1 is not one template 70"),
        ("00 B2 01 14", "90 00", "record 2.1: an empty answer"),
        ("00 B2 01 14", "6A 83", "record 2.1: 6A83 record not found"),
        ("00 B2 02 14", "70 0A 5A 08 47 61 73 90 01 01 00 10 90 00", "5A stands in record 2.1 and in record 2.2"),
        ("80 CA 9F 36", "9F 17 01 03 90 00", "GET DATA 9F36 gave another object"),
        (selectVisa, "90 00", "SELECT gave no FCI"),
        (selectVisa, "6A 82", "SELECT: 6A82 file or application not found"),
    ])
    func isReported(_ command: String, _ response: String, _ finding: String) async throws {
        let application = try #require(try await inspect(replacing(command, response)).applications.first)
        #expect(application.findings.contains(finding), "\(application.findings)")
    }

    @Test func anAFLWithoutEnd() async throws {
        // Sixty entries of 255 records each, and a card that has them all
        var afl: [UInt8] = []
        for sfi in UInt8(1)...30 { afl += [sfi << 3, 1, 255, 0] }
        let options: [UInt8] = [0x82, 0x02, 0x20, 0x00] + TLVTag(0x94).encode(afl)
        let response = TLVTag(0x77).encode(options).hex
        let card = TableCard(visa.filter { $0.0 != gpo } + [(gpo, response + "9000"), ("00 B2", "70 00 90 00")])
        let application = try #require(try await inspect(card).applications.first)
        expectEqual(application.records.count, CardInspector.maximumRecords)
        #expect(application.findings.contains("more than 128 records; the rest is not read"))
    }

    @Test func aDirectoryWithoutEnd() async throws {
        var entries: [UInt8] = []
        for number in UInt8(0)..<40 { entries += [0x61, 0x08, 0x4F, 0x06, 0xA0, 0, 0, 0, 3, number] }
        let fci = TLVTag(0x6F).encode(TLVTag(0xA5).encode(TLVTag(0xBF0C).encode(entries)))
        let inspection = try await inspect(TableCard([(ppse, fci.hex + "9000")]))
        expectEqual(inspection.applications.count, CardInspector.maximumApplications)
        expectEqual(inspection.findings, ["40 applications; the first 32 are read"])
    }

    @Test func aDirectoryOfNonsense() async throws {
        // An entry with an empty AID, one without any, and the same one twice
        let directory = """
            6F 29 A5 27 BF 0C 24 61 02 4F 00 61 03 50 01 41
            61 09 4F 07 A0 00 00 00 03 10 10 61 09 4F 07 A0 00 00 00 03 10 10 00 00 00 00 00 90 00
            """
        let inspection = try await inspect(replacing(ppse, directory))
        expectEqual(inspection.applications.count, 1)
        expectEqual(
            inspection.findings,
            [
                "a directory entry without an AID of 5 to 16 bytes",
                "a directory entry without an AID of 5 to 16 bytes",
                "A0000000031010 stands in the directory more than once",
            ])
    }

    /// A card that says yes to everything, with the same bytes.
    @Test(arguments: [
        "90 00", "00 90 00", "61 00 90 00", "70 00 90 00", "6F 00 90 00", "FF FF FF 90 00", "77 02 82 00 90 00",
    ])
    func yesToEverything(_ response: String) async throws {
        let card = TableCard([("", response)])
        let inspection = try await inspect(card)
        #expect(inspection.interruption == nil)
        #expect(card.commands.count < 5_000)
    }

    @Test func removedAtEveryCommand() async throws {
        let whole = TableCard(visa)
        _ = try await inspect(whole)
        for lifetime in whole.commands.indices {
            let inspection = try await inspect(TableCard(visa, lifetime: lifetime))
            expectEqual(inspection.interruption?.kind, .cardRemoved)
            expectEqual(inspection.applications.count, lifetime > 0 ? 1 : 0)
        }
    }

    /// Random bytes for every answer, in the thorough tier of two thousand cards.
    @Test func randomAnswers() async throws {
        final class RandomCard: CardChannel {
            let generator: Mutex<SplitMix>
            let count = Mutex(0)

            init(seed: UInt64) { generator = Mutex(SplitMix(state: seed)) }

            func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
                let number = count.withLock { count in
                    count += 1
                    return count
                }
                guard number < 20_000 else { throw CardError(.other, "without end") }
                return generator.withLock { random in
                    var data: [UInt8] = []
                    for _ in 0..<Int.random(in: 0...6, using: &random) {
                        data += randomTags.randomElement(using: &random) ?? []
                        data.append(.random(in: 0...40, using: &random))
                        let length = Int.random(in: -20...20, using: &random)
                        for _ in 0..<max(0, length) { data.append(.random(in: 0...255, using: &random)) }
                    }
                    return ResponseAPDU(
                        data: data, status: Int.random(in: 0...5, using: &random) == 0 ? 0x6A83 : .success)
                }
            }
        }
        for seed in 0..<Tier.rounds(200, thorough: 2_000) {
            let inspection = try await CardInspector(unpredictableNumber: [], date: []).inspect(
                RandomCard(seed: UInt64(seed)))
            #expect(inspection.interruption == nil)
        }
    }
}

private let randomTags: [[UInt8]] = [
    [0x6F], [0xA5], [0xBF, 0x0C], [0x61], [0x4F], [0x77], [0x80], [0x94], [0x70], [0x9F, 0x38], [0x8C],
]
