import CardReaders
import Foundation
import SmartCard
import Synchronization
import TestSupport
import Testing

@testable import SmartCardSimulator
@testable import TravelDocument

/// Chips that refuse something on the way to a file, and chips whose first offer fails.
@Suite struct ReadingRefusalTests {
    /// Errors and warnings which some readers take for success.
    private static let statuses: [StatusWord] = [0x6300, 0x6700, 0x6A00, 0x6D00, 0x6E00, 0x6283]

    private static func key() throws -> AccessKey { try BasicAccessControlTests.key.get() }

    private static func passport(
        _ lengths: [Int: Int] = [1: 93],
        _ offer: PassportPACE.Offer? = PassportPACE.Offer(.ecdhGeneric, .aes128, parameters: 12)
    ) -> PassportCard.Configuration {
        var configuration = ChipTests.configuration(lengths)
        configuration.pace = offer
        configuration.freeFiles[0x011C] = offer?.cardAccess
        return configuration
    }

    // MARK: Status words

    @Test("SELECT of the application is refused, in the clear and in a session", arguments: statuses)
    func application(_ status: StatusWord) async throws {
        let clear = ReadingTests.Channel(PassportCard(ChipTests.configuration())) { command, _ in
            command.ins == 0xA4 && command.p1 == 0x04 ? ResponseAPDU(status: status) : nil
        }
        let protected = ReadingTests.Channel(
            PassportCard(Self.passport()).lying { command, answer in
                command.ins == 0xA4 && command.p1 == 0x04 ? ResponseAPDU(status: status) : answer
            })
        for channel in [clear, protected] {
            let chip = TravelDocumentChip(over: channel)
            await #expect(throws: ChipError.notATravelDocument(status)) { try await chip.open(with: Self.key()) }
            await #expect(throws: ChipError.notOpen) { try await chip.read(.dataGroup(1)) }
        }
    }

    /// The error of a file whose reading meets the status word.
    private func error(_ status: StatusWord) -> FileError { status == 0x6283 ? .absent : .status(status) }

    private func refuse(
        _ status: StatusWord, where isRefused: @escaping @Sendable (CommandAPDU) -> Bool
    ) async throws {
        for configuration in [Self.passport([1: 93, 2: 1000]), ChipTests.configuration([1: 93, 2: 1000])] {
            // With the bytes that a file has, which do not make the status word a success.
            let card = PassportCard(configuration).lying { command, answer in
                isRefused(command) ? ResponseAPDU(data: answer.data, status: status) : answer
            }
            let chip = TravelDocumentChip(over: ReadingTests.Channel(card))
            try await chip.open(with: Self.key())
            await #expect(throws: error(status)) { try await chip.read(.dataGroup(2)) }
        }
    }

    @Test("SELECT of a file is refused by a chip without short identifiers", arguments: statuses)
    func selection(_ status: StatusWord) async throws {
        for configuration in [Self.passport([1: 93, 2: 1000]), ChipTests.configuration([1: 93, 2: 1000])] {
            var configuration = configuration
            configuration.knowsShortIdentifiers = false
            let card = PassportCard(configuration).lying { command, answer in
                command.ins == 0xA4 && command.p1 == 0x02 ? ResponseAPDU(status: status) : answer
            }
            let chip = TravelDocumentChip(over: ReadingTests.Channel(card))
            try await chip.open(with: Self.key())
            await #expect(throws: error(status)) { try await chip.read(.dataGroup(2)) }
        }
    }

    @Test("The first READ BINARY is refused", arguments: statuses)
    func firstRead(_ status: StatusWord) async throws {
        try await refuse(status) { $0.ins == 0xB0 && ($0.p1 & 0x80 != 0 || $0.p1 == 0 && $0.p2 == 0) }
    }

    @Test("A later READ BINARY is refused", arguments: statuses)
    func laterRead(_ status: StatusWord) async throws {
        try await refuse(status) { $0.ins == 0xB0 && $0.p1 & 0x80 == 0 && ($0.p1 != 0 || $0.p2 != 0) }
    }

    // MARK: Lengths

    @Test("A wrong Le is repeated within the session, whose counter goes on")
    func wrongLe() async throws {
        for (configuration, offset) in [(Self.passport([2: 1000]), 223), (ChipTests.configuration([2: 1000]), 231)] {
            let told = Mutex<[Int?]>([])
            let card = PassportCard(configuration).lying { command, answer in
                guard command.ins == 0xB0, command.p1 == 0, command.p2 == UInt8(offset) else { return answer }
                told.withLock { $0.append(command.ne) }
                return command.ne == 0x10 ? answer : ResponseAPDU(status: 0x6C10)
            }
            let chip = TravelDocumentChip(over: ReadingTests.Channel(card))
            try await chip.open(with: Self.key())
            try await expectEqual(chip.read(.dataGroup(2)), ChipTests.group(2, 1000))
            expectEqual(told.withLock { $0 }, [offset, 0x10])
        }
    }

    @Test("DG2 of 15 kB takes 68 commands after PACE with AES, whose blocks are longer")
    func commands() async throws {
        let (chip, channel) = try await ChipTests.chip(Self.passport([2: 15_000]))
        #expect("\(try await chip.open(with: Self.key()).method)".hasPrefix("PACE-ECDH-GM-AES-128"))
        let before = channel.commands
        try await expectEqual(chip.read(.dataGroup(2)), ChipTests.group(2, 15_000))
        // 15,004 bytes, 223 at a time.
        expectEqual(channel.commands - before, 68)
    }

    // MARK: The next offer

    /// A chip that refuses an offer in the middle of it, and then everything until it is reset.
    private final class Stubborn: CardConnection {
        let atr = ATR([])
        let transmissionProtocol = TransmissionProtocol.t1
        private struct State {
            var resets = 0
            var isSelected = false
            var isStuck = false
        }
        private let card: any VirtualCard
        private let refused: [UInt8]
        private let state = Mutex(State())

        init(_ card: any VirtualCard, refusing identifier: [UInt8]) { (self.card, refused) = (card, identifier) }

        var resets: Int { state.withLock { $0.resets } }

        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
            let answer: ResponseAPDU? = state.withLock { state in
                if command.ins == 0x22, command.p1 == 0xC1 {
                    state.isSelected = command.data.firstRange(of: refused) != nil
                    if state.isSelected, !state.isStuck { return ResponseAPDU(status: .success) }
                }
                if state.isStuck { return ResponseAPDU(status: 0x6985) }
                guard command.ins == 0x86, state.isSelected else { return nil }
                state.isStuck = true
                return ResponseAPDU(status: 0x6A80)
            }
            if let answer { return answer }
            return try ResponseAPDU(try #require(card.exchange(command.bytes)))
        }

        func reset() async throws {
            state.withLock { $0 = State(resets: $0.resets + 1) }
            card.reset()
        }

        func disconnect(_ disposition: CardDisposition) async {}
    }

    @Test("After an offer that failed the chip is reset, and the next one opens it")
    func nextOffer() async throws {
        let mapping = PACEInfo(.ecdhChipAuthenticationMapping, .aes128, domainParameters: 13)
        let generic = PACEInfo(.ecdhGenericMapping, .aes128, domainParameters: 12)
        let failed = [AccessError.Failure(method: .pace(mapping), refusal: .status(0x6A80))]
        let first = try #require(PassportPACE.Offer(.chipAuthentication, .aes128, parameters: 13)).info

        var configuration = Self.passport()
        let second = try #require(configuration.pace).info
        configuration.freeFiles[0x011C] = TLVTag(0x31).encode(objects: second, first)
        let both = Stubborn(PassportCard(configuration), refusing: mapping.identifier)
        let chip = TravelDocumentChip(over: both, connection: both)
        let access = try await chip.open(with: Self.key())
        #expect(access.method == .pace(generic) && access.failures == failed && !access.isDowngraded)
        expectEqual(both.resets, 1)
        try await expectEqual(chip.read(.dataGroup(1)), ChipTests.group(1, 93))

        // Nobody resets it without a connection.
        let stuck = Stubborn(PassportCard(configuration), refusing: mapping.identifier)
        let error = await #expect(throws: AccessError.self) {
            try await TravelDocumentChip(over: stuck).open(with: Self.key())
        }
        expectEqual(error?.failures.map(\.refusal), [.status(0x6A80), .status(0x6985)])

        // The older protocol, where the caller allows it.
        var older = ChipTests.configuration()
        older.freeFiles[0x011C] = TLVTag(0x31).encode(first)
        let one = Stubborn(PassportCard(older), refusing: mapping.identifier)
        let downgraded = try await TravelDocumentChip(over: one, connection: one)
            .open(with: Self.key(), allowingDowngrade: true)
        #expect(downgraded.method == .basicAccessControl && downgraded.isDowngraded && downgraded.failures == failed)
        expectEqual(one.resets, 1)
    }

    @Test("Where a chip offers one variant with two curves, the reader names the curve at once")
    func ambiguous() async throws {
        var configuration = Self.passport()
        let other = try #require(PassportPACE.Offer(.ecdhGeneric, .aes128, parameters: 13)).info
        configuration.freeFiles[0x011C] = TLVTag(0x31).encode(objects: other, try #require(configuration.pace).info)
        let channel = ReadingTests.Channel(PassportCard(configuration))
        let access = try await TravelDocumentChip(over: channel).open(with: Self.key())
        expectEqual(access.failures.map(\.refusal), [.status(0x6A80)])
        let commands = channel.sent.filter { $0.ins == 0x22 }
        expectEqual(commands.map { $0.data.suffix(3).hex }, ["84010D", "84010C"])
    }

    @Test("Integrated mapping on P-224 is an offer that this reader does not have, and no fault of the chip")
    func unsupported() async throws {
        var configuration = ChipTests.configuration()
        configuration.freeFiles[0x011C] = TLVTag(0x31).encode(try hex("3012060A04007F0007020204040202010202010A"))
        let error = await #expect(throws: AccessError.self) {
            try await TravelDocumentChip(over: ReadingTests.Channel(PassportCard(configuration))).open(with: Self.key())
        }
        expectEqual(error?.failures.map(\.refusal), [.unsupported])
    }

    // MARK: Whole documents

    @Test("Of all that is wanted the zone is first and the face last")
    func order() async throws {
        let groups: [(Int, String)] = [
            (2, ParsingFixtures.dg2Old), (5, ParsingFixtures.dg5), (7, ParsingFixtures.dg7),
            (11, ParsingFixtures.dg11), (12, ParsingFixtures.dg12), (16, ParsingFixtures.dg16),
        ]
        let statements = try groups.map { "data-group \($0) {\n\(try listing($1).hex)\n}" }.joined(separator: "\n")
        let card = try VirtualPassportTests.card(statements + "\nsecurity-object signed")
        let told = Mutex<[ElementaryFile]>([])
        let reading = try await TravelDocumentChip(over: ReadingTests.Channel(card)).read(
            dataGroups: [16, 12, 11, 7, 5, 2, 1], with: AccessKey(MachineReadableZone(ReadingTests.zone))
        ) { event in
            if case .read(let file, _) = event { told.withLock { $0.append(file) } }
        }
        #expect(reading.failures.isEmpty)
        let order = [.sod] + [1, 11, 12, 16, 5, 7, 2].map(ElementaryFile.dataGroup)
        #expect(reading.files.map(\.file) == order && told.withLock { $0 } == order)
    }

    // MARK: Readers with short responses

    private static func reading(of card: any VirtualCard) async throws -> DocumentReading {
        let device = SoftwareACR122U()
        let reader = VirtualReader(device)
        device.insert(card)
        _ = try await reader.waitForCard()
        let connection = try await reader.connect()
        return try await TravelDocumentChip(over: Stack(for: reader).over(connection), connection: connection).read(
            dataGroups: [1], with: AccessKey(MachineReadableZone(ReadingTests.zone)))
    }

    private static func expectLimit(_ reading: DocumentReading, _ check: Finding.Check) throws {
        var trust = TrustList()
        try trust.add(TestIssuingState.authorityCertificate, source: "test", at: .now)
        let belief = reading.belief(trust: trust, at: .now)
        #expect(belief.findings.contains(Finding(check, .notChecked(.readerLimit))))
        #expect(!belief.isOriginal)
        if case .undecided = belief.verdict {} else { Issue.record("\(belief.verdict)") }
    }

    @Test(
        "Active authentication by RSA of 2,048 bits is more than a response carries: that refutes nothing",
        arguments: [("none", 231), ("ecdh-gm aes-128 12", 223)])
    func longSignature(_ pace: String, _ available: Int) async throws {
        let publicKey = try await BeliefActiveAuthenticationTests.Chip(.rsa(2048)).publicKey
        let card = try VirtualPassportTests.card(
            "pace \(pace)\ndata-group 15 {\n\(publicKey.hex)\n}\nsecurity-object signed")
        let reading = try await Self.reading(of: card)
        expectEqual(reading.activeAuthentication, .readerLimit(needed: 256, available: available))
        try Self.expectLimit(reading, .activeAuthentication)
    }

    @Test(
        "Chip authentication by DH of 2,048 bits is more than a command carries: that refutes nothing",
        arguments: [SessionCipher.tripleDES, .aes128])
    func longKey(_ cipher: SessionCipher) async throws {
        let publicKey = try await BeliefChipAuthenticationTests.publicKey(
            BeliefPKI(), BeliefChipAuthenticationTests.dh)
        let infos = try BeliefChipAuthenticationTests.securityInfos(publicKey, cipher, isElliptic: false)
        let card = try #require(
            try VirtualPassportTests.card("data-group 14 {\n\(infos.hex)\n}\nsecurity-object signed") as? PassportCard)
        let reading = try await Self.reading(
            of: card.lying { command, answer in command.ins == 0x22 ? ResponseAPDU(status: .success) : answer })
        expectEqual(reading.chipAuthentication, .readerLimit)
        try Self.expectLimit(reading, .chipAuthentication)
    }
}
