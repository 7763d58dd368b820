import Foundation
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

@testable import TravelDocument

/// Whole readings: in the order of a kiosk, interrupted, with long responses, and from chips with habits of their own.
@Suite struct ReadingTests {
    /// Answers for a chip, and may answer otherwise.
    final class Channel: CardChannel {
        private let card: any VirtualCard
        private let answer: @Sendable (_ command: CommandAPDU, _ count: Int) throws -> ResponseAPDU?
        private let commands = Mutex<[CommandAPDU]>([])

        init(
            _ card: any VirtualCard,
            _ answer: @escaping @Sendable (_ command: CommandAPDU, _ count: Int) throws -> ResponseAPDU? = { _, _ in nil
            }
        ) {
            (self.card, self.answer) = (card, answer)
        }

        var sent: [CommandAPDU] { commands.withLock { $0 } }

        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
            let count = commands.withLock { commands in
                commands.append(command)
                return commands.count
            }
            if let response = try answer(command, count) { return response }
            return try ResponseAPDU(try #require(card.exchange(command.bytes)))
        }
    }

    private static func key() throws -> AccessKey { try BasicAccessControlTests.key.get() }

    @Test("A file whose card was lost is read on from where it stopped, under the same key")
    func resumed() async throws {
        let configuration = ChipTests.configuration([1: 93, 2: 15_000])
        // The card is lost after some 50 of the 65 commands for DG2.
        let first = Channel(PassportCard(configuration)) { _, count in
            if count > 55 { throw CardError(.cardRemoved) }
            return nil
        }
        let chip = TravelDocumentChip(over: first)
        try await chip.open(with: Self.key())
        await #expect(throws: CardError.self) { try await chip.read(.dataGroup(2)) }
        await #expect(throws: SecureMessagingError.interrupted) { try await chip.read(.dataGroup(2)) }

        let second = Channel(PassportCard(configuration))
        await chip.resume(over: second)
        await #expect(throws: ChipError.notOpen) { try await chip.read(.dataGroup(2)) }
        try await chip.open(with: Self.key())
        let before = second.sent.count
        try await expectEqual(chip.read(.dataGroup(2)), ChipTests.group(2, 15_000))
        #expect(second.sent.count - before < 25)
        // What is complete is not kept.
        let again = second.sent.count
        try await expectEqual(chip.read(.dataGroup(2)), ChipTests.group(2, 15_000))
        expectEqual(second.sent.count - again, 65)
    }

    @Test("Another document is read from its beginning, whether its key is the same or another")
    func otherDocument() async throws {
        let lost = Channel(PassportCard(ChipTests.configuration([2: 15_000]))) { _, count in
            if count > 40 { throw CardError(.cardRemoved) }
            return nil
        }
        var other = ChipTests.configuration()
        other.files[0x0102] = TLVTag(0x75).encode([UInt8](repeating: 0xAB, count: 14_000))
        let chip = TravelDocumentChip(over: lost)
        try await chip.open(with: Self.key())
        await #expect(throws: CardError.self) { try await chip.read(.dataGroup(2)) }
        await chip.resume(over: Channel(PassportCard(other)))
        try await chip.open(with: Self.key())
        try await expectEqual(chip.read(.dataGroup(2)), other.files[0x0102])

        let third = TravelDocumentChip(over: lost)
        await #expect(throws: CardError.self) { try await third.open(with: Self.key()) }
    }

    @Test("Long responses are asked for where reader and chip state that they have them, and as long as they state")
    func extendedLengths() async throws {
        let card = { PassportCard(ChipTests.configuration([2: 15_000])) }
        // Card capabilities with extended lengths; buffers of 1,000 bytes (ISO/IEC 7816-4, 12.1.1 and 12.7.1).
        let stated = try hex("4703800140 7F6608 0202 03E8 0202 03E8")
        // The same without extended lengths among the capabilities.
        let denied = try hex("4703800100 7F6608 0202 03E8 0202 03E8")
        for (information, longestAPDU, commands) in [
            (stated, nil, 16), (stated, 700, 23), (stated, 261, 65), (denied, nil, 65), ([], nil, 65),
            ([0x7F], nil, 65),
        ] as [([UInt8], Int?, Int)] {
            let channel = Channel(card()) { command, _ in
                guard command.bytes.starts(with: [0x00, 0xB0, 0x81, 0x00]) else { return nil }
                #expect(longestAPDU != 261)
                return information.isEmpty
                    ? ResponseAPDU(status: 0x6A82) : ResponseAPDU(data: information, status: .success)
            }
            let chip = TravelDocumentChip(over: channel, longestAPDU: longestAPDU)
            try await chip.open(with: Self.key())
            let before = channel.sent.count
            try await expectEqual(chip.read(.dataGroup(2)), ChipTests.group(2, 15_000))
            expectEqual(channel.sent.count - before, commands)
        }
    }

    @Test(
        "EF.CardAccess is found where the master file has to be selected first, by either command",
        arguments: [[], [0x3F, 0x00]] as [[UInt8]])
    func masterFile(_ identifier: [UInt8]) async throws {
        var configuration = ChipTests.configuration()
        // Domain parameters of the chip's own: an offer that fails without a command.
        configuration.freeFiles[0x011C] = TLVTag(0x31).encode(try hex("300F060A04007F00070202040202020102"))
        let isSelected = Mutex(false)
        let channel = Channel(PassportCard(configuration)) { command, _ in
            if command.ins == 0xA4, command.p1 == 0x00 {
                guard command.data == identifier else { return ResponseAPDU(status: 0x6A86) }
                isSelected.withLock { $0 = true }
                return ResponseAPDU(status: .success)
            }
            return isSelected.withLock { $0 } ? nil : ResponseAPDU(status: 0x6986)
        }
        let error = await #expect(throws: AccessError.self) {
            try await TravelDocumentChip(over: channel).open(with: Self.key())
        }
        expectEqual(error?.failures.map(\.refusal), [.unsupported])
    }

    @Test("A command that the reader does not pass on leaves the session as it was")
    func tooLong() async throws {
        let channel = Channel(PassportCard(ChipTests.configuration()))
        let secure = SecureChannel(channel, SecureMessaging(.aes128, secret: [1]), longestCommand: 261)
        let long = try CommandAPDU(cla: 0, ins: 0x88, p1: 0, p2: 0, data: [UInt8](repeating: 1, count: 250))
        await #expect(throws: SecureMessagingError.tooLong) { try await secure.transmit(long) }
        #expect(channel.sent.isEmpty)
        // The counter is as it was: the first command is that of a new session.
        var messaging = SecureMessaging(.aes128, secret: [1])
        let short = try CommandAPDU(cla: 0, ins: 0x84, p1: 0, p2: 0, ne: 8)
        _ = try? await secure.transmit(short)
        expectEqual(channel.sent, [try messaging.protect(short)])
    }

    // MARK: Whole documents

    static let zone = """
        P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<
        L898902C36UTO7408122F1204159ZE184226B<<<<<10
        """

    private static func read(
        _ name: String, _ dataGroups: Set<Int>, tell: @Sendable (ReadingEvent) -> Void = { _ in }
    ) async throws -> DocumentReading {
        let card = try #require(VirtualCards.named(name))
        return try await TravelDocumentChip(over: Channel(card)).read(
            dataGroups: dataGroups, with: AccessKey(MachineReadableZone(zone)), tell: tell)
    }

    private static func trust() throws -> TrustList {
        var trust = TrustList()
        try trust.add(TestIssuingState.authorityCertificate, source: "test", at: .now)
        return trust
    }

    @Test("What is wanted is read and nothing else: the zone first, the face last")
    func order() async throws {
        let told = Mutex<[ElementaryFile]>([])
        let reading = try await Self.read("passport-bac", [1, 2, 11]) { event in
            if case .read(let file, _) = event { told.withLock { $0.append(file) } }
        }
        expectEqual(told.withLock { $0 }, [.sod, .dataGroup(1), .dataGroup(2)])
        #expect(reading.dataGroups == [1, 2] && reading.failures.isEmpty)
        expectEqual(reading.zone?.documentNumber, "L898902C3")
        #expect(!"\(reading)".contains("L898902C3"))
        try await expectEqual(Self.read("passport-bac", [1]).files.map(\.file), [.sod, .dataGroup(1)])
        try await expectEqual(Self.read("passport-bac", []).files.map(\.file), [.sod])
    }

    @Test("With a chip that does not have its key the reading ends, and nothing more is asked for")
    func endsWithCopy() async throws {
        let reading = try await Self.read("passport-cloned", [1, 2])
        #expect(reading.chipAuthentication == .notGenuine && reading.activeAuthentication == nil)
        #expect(reading.files.map(\.file) == [.sod, .dataGroup(1), .dataGroup(14)] && reading.failures.isEmpty)
    }

    @Test("A chip that its mapping has proved is asked for no other proof")
    func mappingIsEnough() async throws {
        let reading = try await Self.read("passport-cam", [1])
        expectEqual(reading.access.mappingVerdict, .genuine)
        #expect(reading.chipAuthentication == nil && reading.activeAuthentication == nil)
        expectEqual(reading.files.map(\.file), [.sod, .dataGroup(1), .dataGroup(14)])
    }

    @Test("Belief is the sum of the signature and of the chip's proofs")
    func belief() async throws {
        let trust = try Self.trust()
        let genuine = try await Self.read("passport", [1, 2]).belief(trust: trust, at: .now)
        guard case .believed(let flagged) = genuine.verdict else {
            Issue.record("\(genuine.findings)")
            return
        }
        // The specimen expired in 2012.
        #expect(flagged.map(\.check) == [.documentExpiry] && genuine.isOriginal)
        for card in ["passport-im", "passport-cam"] {
            let belief = try await Self.read(card, [1, 2]).belief(trust: trust, at: .now)
            if case .believed = belief.verdict {} else { Issue.record("\(card): \(belief.findings)") }
            #expect(belief.isOriginal)
        }
        // Without the authority, nothing is refuted.
        let unknown = try await Self.read("passport", [1]).belief(trust: TrustList(), at: .now)
        guard case .undecided(let open) = unknown.verdict else {
            Issue.record("\(unknown.findings)")
            return
        }
        #expect(open.map(\.check).contains(.path))
        let copy = try await Self.read("passport-cloned", [1]).belief(trust: trust, at: .now)
        guard case .refuted(let reasons) = copy.verdict else {
            Issue.record("\(copy.findings)")
            return
        }
        #expect(reasons.map(\.outcome) == [.failed(.copy)] && !copy.isOriginal)
        let bare = try await Self.read("passport-bac", [1]).belief(trust: trust, at: .now)
        if case .believed = bare.verdict {} else { Issue.record("\(bare.findings)") }
        #expect(!bare.isOriginal)
    }

    /// The zone of the specimen, of another state.
    private static func zone(of state: String) -> String {
        zone.replacing("P<UTO", with: "P<\(state)")
    }

    @Test("A chip that keeps what the signature promises to itself is not believed", arguments: [14, 15])
    func withheld(_ number: Int) async throws {
        var reading = DocumentReading(
            ChipAccess(
                method: .basicAccessControl, failures: [], isDowngraded: false, chipAuthenticationMapping: nil,
                cardSecurity: nil))
        let pki = try BeliefPKI()
        try await pki.makeAuthority()
        try await pki.makeSigner()
        let groups = [1: ChipTests.group(1, 93), number: ChipTests.group(number, 40)]
        reading.securityObject = try SecurityObject(try await pki.makeSecurityObject(groups))
        let check = number == 14 ? Finding.Check.chipAuthentication : .activeAuthentication
        #expect(reading.belief(trust: TrustList(), at: .now).findings.contains(Finding(check, .notChecked(.notRead))))
        reading.failures.append(
            .init(file: .dataGroup(number), reason: .malformedObject(MalformedObject(due: "x", offset: 0))))
        let belief = reading.belief(trust: TrustList(), at: .now)
        #expect(
            belief.findings.contains(Finding(check, .notChecked(.malformed(MalformedObject(due: "x", offset: 0))))))
    }

    @Test("A chip from which the better variants were taken away is refuted by its own DG14")
    func paceWithheld() throws {
        // PACEInfo of ECDH-GM with AES-128 on parameters 13, and with CAM.
        let gm = try hex("3012 060A04007F00070202040202 020102 02010D")
        let cam = try hex("3012 060A04007F00070202040602 020102 02010D")
        let infos = try #require(SecurityInfos(TLVTag(0x31).encode(objects: gm, cam))).paceInfos
        for (offered, isRefuted) in [(infos, false), ([infos[1]], true), ([], true)] {
            var access = ChipAccess(
                method: .basicAccessControl, failures: [], isDowngraded: false, chipAuthenticationMapping: nil,
                cardSecurity: nil)
            access.offered = offered
            var reading = DocumentReading(access)
            reading.files = [
                (.dataGroup(14), TLVTag(0x6E).encode(TLVTag(0x31).encode(objects: gm, cam)))
            ]
            let belief = reading.belief(trust: TrustList(), at: .now)
            let finding = try #require(belief.findings.first { $0.check == .cardAccess })
            #expect(finding.isFailure == isRefuted && finding.isFailure == !offered.contains(infos[0]), "\(finding)")
            if case .refuted = belief.verdict { #expect(isRefuted) } else { #expect(!isRefuted) }
        }
    }

    @Test("A document without a signature, and a proof that the chip refuses, leave the question open")
    func undecided() {
        let unsigned = DocumentBelief(nil, [Finding(.activeAuthentication, .passed)])
        guard case .undecided(let open) = unsigned.verdict else {
            Issue.record("\(unsigned.verdict)")
            return
        }
        expectEqual(open, [Finding(.signature, .notChecked(.noSecurityObject))])
        let refuted = DocumentBelief(nil, [Finding(.activeAuthentication, .failed(.copy))])
        if case .refuted = refuted.verdict {} else { Issue.record("\(refuted.verdict)") }
    }

    @Test("A signer that expired with its document is accepted, though nobody says when it signed")
    func expiredTogether() async throws {
        let pki = try BeliefPKI()
        let csca = try await pki.makeAuthority(days: 8000)
        let dsc = try await pki.makeSigner(days: 100)
        let bare = try SecurityObject(
            try await pki.makeSecurityObject(type: "1.2.840.113549.1.7.1", options: ["-noattr"]))
        func outcome(_ expires: Date?) -> Finding.Outcome? {
            PassiveAuthentication.verify(
                bare, files: BeliefPKI.files, trust: TrustList(csca), at: dsc.notAfter.addingTimeInterval(1e7),
                expires: expires
            ).findings.first { $0.check == .validity(.signer) }?.outcome
        }
        expectEqual(outcome(dsc.notAfter.addingTimeInterval(-1)), .flagged(.expiredSince(dsc.notAfter)))
        // The document was to outlive its signer; and one that had expired before there was a signer.
        expectEqual(outcome(dsc.notAfter.addingTimeInterval(1)), .failed(.expired(dsc.notAfter)))
        expectEqual(outcome(dsc.notBefore.addingTimeInterval(-1)), .failed(.expired(dsc.notAfter)))
        expectEqual(outcome(nil), .failed(.expired(dsc.notAfter)))
    }

    // MARK: Chip authentication mapping

    /// The public key of the chip in ICAO 9303-11, appendix I, on brainpoolP256r1.
    private static let publicKey =
        "041872709494399E7470A6431BE25E83EEE24FEA568C2ED28DB48E05DB3A610DC8"
        + "84D256A40E35EFCB59BF6753D3A489D28C7A4D973C2DA138A6E7A4A08F68E16F"

    private static func securityInfos(_ parameters: UInt8, _ key: String) throws -> [UInt8] {
        let info = try TLVTag(0x30).encode(
            objects: hex("300C 060704007F00070102 0201") + [parameters], TLVTag(0x03).encode([0x00] + hex(key)))
        return try TLVTag(0x31).encode(TLVTag(0x30).encode(objects: hex("0609 04007F000702020102"), info))
    }

    @Test("The mapping proves the key of EF.CardSecurity on its curve, where the file is signed")
    func mapping() async throws {
        let proof = try #require(try PACETests.play(PACETests.chipAuthentication).access.chipAuthentication)
        let pki = try BeliefPKI()
        let trust = TrustList(try await pki.makeAuthority())
        try await pki.makeSigner()
        func outcome(_ infos: [UInt8]?, _ trust: TrustList, state: String? = "D<<") async throws -> [Finding] {
            let type = "0.4.0.127.0.7.3.2.1"
            let file: [UInt8]? = if let infos { try await pki.sign(infos, type: type) } else { nil }
            let access = ChipAccess(
                method: .basicAccessControl, failures: [], isDowngraded: false, chipAuthenticationMapping: proof,
                cardSecurity: file)
            var reading = DocumentReading(access)
            if let state {
                let zone = try MachineReadableZone(Self.zone(of: state))
                reading.contents[.dataGroup(1)] = .machineReadableZone(zone)
            }
            return reading.belief(trust: trust, at: .now).findings
        }
        let genuine = try Self.securityInfos(13, Self.publicKey)
        #expect(try await outcome(genuine, trust).contains(Finding(.chipAuthenticationMapping, .passed)))
        // Another state's file proves nothing, nor does one where nobody knows the state.
        let foreign = try await outcome(genuine, trust, state: "FRA")
        #expect(foreign.contains(Finding(.chipAuthenticationMapping, .notChecked(.keyNotBelieved))))
        #expect(foreign.contains { $0.check == .cardSecurity(.country) && $0.isFailure })
        let stateless = try await outcome(genuine, trust, state: nil)
        #expect(stateless.contains(Finding(.chipAuthenticationMapping, .notChecked(.keyNotBelieved))))
        let unknown = try await outcome(genuine, TrustList())
        #expect(unknown.contains(Finding(.chipAuthenticationMapping, .notChecked(.keyNotBelieved))))
        #expect(unknown.contains { $0.check == .cardSecurity(.path) && $0.isOpen })
        // The ephemeral key, which is another point of the curve.
        let copy = try Self.securityInfos(13, PACETests.chipAuthentication.agreementKey)
        #expect(try await outcome(copy, trust).contains(Finding(.chipAuthenticationMapping, .failed(.copy))))
        let otherCurve = try Self.securityInfos(12, Self.publicKey)
        #expect(try await outcome(otherCurve, trust).contains(Finding(.chipAuthenticationMapping, .notChecked(.noKey))))
        #expect(
            try await outcome(nil, trust).contains(Finding(.chipAuthenticationMapping, .notChecked(.noCardSecurity))))
        let broken = try await outcome(hex("3100"), trust)
        #expect(broken.contains(Finding(.chipAuthenticationMapping, .notChecked(.noKey))))
    }
}
