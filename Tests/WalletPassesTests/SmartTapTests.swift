import CardEncryption
import Crypto
import SmartCard
import Synchronization
import TestSupport
import Testing

@testable import WalletPasses

/// Smart Tap in the wire's own bytes: the terminal's commands and keys against values from Python.
@Suite struct SmartTapTests {
    private typealias Vector = SmartTapVector

    /// Plays a phone that gives these answers.
    ///
    /// - Returns: the commands, and the end.
    static func play(
        _ conversation: SmartTap, _ answers: [[UInt8]]
    ) throws -> (commands: [String], outcome: SmartTap.Outcome?) {
        var conversation = conversation
        var commands: [String] = []
        var rest = answers[...]
        var step = conversation.next(nil)
        while case .send(let command) = step {
            commands.append(command.bytes.hex)
            guard let answer = rest.popFirst() else { return (commands, nil) }
            step = conversation.next(try ResponseAPDU(answer))
        }
        if case .finished(let outcome) = step { return (commands, outcome) }
        return (commands, nil)
    }

    static func conversation(
        _ request: SmartTapRequest? = nil, selection: String = SmartTapVector.selection
    ) throws -> SmartTap {
        SmartTap(
            try request ?? SmartTapVector.request(), from: .selected(try ResponseAPDU(try Vector.bytes(selection))),
            secrets: try SmartTapVector.secrets())
    }

    private static func play(_ answers: [String]) throws -> (commands: [String], outcome: SmartTap.Outcome?) {
        try play(try conversation(), try answers.map { try Vector.bytes($0) })
    }

    private static func status(_ number: UInt8, sequence: UInt8, of answer: String) throws -> [UInt8] {
        var bytes = try Vector.bytes(answer)
        // ses stands behind `94 03 0A "ses"` and 8 bytes of session.
        let session = try #require(bytes.indices.first { bytes[$0...].starts(with: Array("ses".utf8)) }) + 3
        (bytes[session + 8], bytes[session + 9]) = (sequence, number)
        return bytes
    }

    @Test("The terminal's two commands are those of the vector, byte for byte, and both answers open", arguments: 0...1)
    func vector(_ index: Int) throws {
        let (commands, outcome) = try Self.play([Vector.negotiated, Vector.answers[index]])
        #expect(commands == [Vector.negotiation, Vector.question])
        guard case .read(let objects)? = outcome, case .pass(let pass)? = objects.first else {
            Issue.record("\(String(describing: outcome))")
            return
        }
        #expect(objects.count == 1 && pass.kind == .loyalty && pass.redemptionValue?.text == "2018")
        #expect(pass.objectID == [0, 0, 0, 0, 0, 0, 0, 1])
        #expect(pass.issuer == SmartTapIssuer(kind: .merchant, identifier: [0, 0, 0, 0]))
        #expect(!"\(objects)".contains("2018"), "personal data is masked")
    }

    @Test("The signature of a collector's key verifies, over what Smart Tap names")
    func signature() throws {
        let request = try #require(SmartTapRequest(try Vector.google(), capabilities: nil, mode: .passOnly))
        let (commands, _) = try Self.play(try Self.conversation(request), [])
        let data = try CommandAPDU(try Vector.bytes(try #require(commands.first))).data
        let outer = try NDEFMessage(data).records[0]
        let parameters = try NDEFMessage(outer.payload.dropFirst(2)).records[1].payload
        let signed = try NDEFMessage(parameters.dropFirst(32 + 1 + 33 + 4)).records[0].payload
        let signature = try P256.Signing.ECDSASignature(derRepresentation: signed.dropFirst())
        let key = try P256.Signing.PrivateKey(rawRepresentation: try Vector.bytes(Vector.longTermKey)).publicKey
        let expected = try Vector.bytes(
            Vector.readerNonce + Vector.deviceNonce + "0133EE80"
                + "020217E617F0B6443928278F96999E69A23A4F2C152BDF6D6CDF66E5B80282D4ED")
        #expect(key.isValidSignature(signature, for: expected))
        let published = try P256.Signing.ECDSASignature(derRepresentation: try Vector.bytes(Vector.signature))
        #expect(key.isValidSignature(published, for: expected))
    }

    @Test("The newest key of a collector signs, under its version")
    func rotation() throws {
        var google = try Vector.google()
        google.keys = [3: MerchantKey(), 7: MerchantKey(), 1: try #require(google.keys[1])]
        let request = try #require(SmartTapRequest(google, capabilities: nil, mode: .passOnly))
        #expect(request.keyVersion == 7)
        let data = try Vector.bytes(Vector.signature)
        let signature = try P256.Signing.ECDSASignature(derRepresentation: try request.sign(data))
        #expect(try #require(google.keys[7]).signing.publicKey.isValidSignature(signature, for: data))
    }

    @Test("Another SELECT is sent only where DF62 does not permit to go without, or no nonce came")
    func selections() throws {
        let other = "6F0F 50 0A 416E64726F6964506179 C0 01 00 9000"
        for selection in [Vector.selected.replacing("DF620103", with: "DF620102"), other] {
            let (commands, _) = try Self.play(
                try Self.conversation(selection: selection), [try Vector.bytes(Vector.selectedAgain)])
            #expect(commands.count == 2 && commands[0] == "00A4040009A000000476D000011100")
            #expect(commands[1].hasPrefix("90530000"))
        }
        let (commands, _) = try Self.play([])
        #expect(commands.count == 1 && commands[0].hasPrefix("90530000"))
        // The directory's own nonce comes before the one beside it.
        let own = [UInt8](repeating: 0x5A, count: 32)
        let properties = TLVTag(0xDF62).encode([0x03]) + TLVTag(0xDF6E).encode(own)
        let entry = TLVTag(0x4F).encode(SmartTap.applicationName) + TLVTag(0x73).encode(properties)
        let directory = TLVTag(0xA5).encode(TLVTag(0xBF0C).encode(TLVTag(0x61).encode(entry)))
        let template =
            TLVTag(0x50).encode(Array("AndroidPay".utf8)) + TLVTag(0xC2).encode([UInt8](repeating: 1, count: 32))
        let signed = Mutex<[UInt8]>([])
        let request = SmartTapRequest(
            try Vector.google(), keyVersion: 1, capabilities: nil, mode: .passOnly
        ) { data in
            signed.withLock { $0 = data }
            return [UInt8](repeating: 0, count: 70)
        }
        var tap = try Self.conversation(
            request, selection: (TLVTag(0x6F).encode(template + directory) + [0x90, 0x00]).hex)
        _ = tap.next(nil)
        #expect(signed.withLock { Array($0[32..<64]) } == own)
    }

    @Test(
        "Each status word ends the conversation, or goes on",
        arguments: [
            // Google's APDU reference; proxmark3 cmdhfgst.c has the same table.
            (0x9001, .noPass), (0x9300, .deviceLocked), (0x9302, .choosesPass), (0x9307, .userAction(0x9307)),
            (0x9400, .unknownCommand), (0x9402, .notParsed), (0x9403, .invalidCrypto), (0x9404, .moreNotApplicable),
            (0x9405, .moreNotAvailable), (0x9406, .tooManyRequests), (0x9407, .noMerchant), (0x9408, .invalidPush),
            (0x94FF, .terminalError(0x94FF)), (0x9500, .authenticationFailed), (0x9502, .unsupportedVersion),
            (0x9501, .permanent(0x9501)), (0x6A82, .other(0x6A82)), (0x6D00, .other(0x6D00)),
        ] as [(Int, SmartTapStatus)])
    func statusWords(_ word: Int, _ status: SmartTapStatus) throws {
        let bytes = [UInt8(word >> 8), UInt8(word & 0xFF)]
        for answers in [[bytes], [try Vector.bytes(Vector.negotiated), bytes]] {
            let (commands, outcome) = try Self.play(try Self.conversation(), answers)
            #expect(outcome == .refused(status) && commands.count == answers.count)
        }
    }

    @Test("A transient failure is tried twice more, with the request's sequence number and two more each time")
    func transient() throws {
        // proxmark3: 1, then 3.
        let (commands, outcome) = try Self.play(["9203", "9201", "9200", "9000"])
        #expect(outcome == .refused(.transient(0x9200)))
        #expect(try commands.map { try CommandAPDU(try Vector.bytes($0)).data[22] } == [1, 3, 5])
        let (more, _) = try Self.play([Vector.negotiated, "9203", Vector.answers[0]])
        #expect(try more.map { try CommandAPDU(try Vector.bytes($0)).data[22] } == [1, 3, 5])
    }

    @Test(
        "A session status ends the conversation, or asks for the request again with the last response's number and one more",
        arguments: [
            // kormax, google-smart-tap, Statuses.
            (0, .unknown, false), (2, .invalidFormat, false), (3, .unsupportedVersion, false),
            (4, .invalidSequenceNumber, true), (5, .unknownMerchant, false), (6, .merchantMissing, false),
            (7, .serviceMissing, false), (8, .resend, true), (9, .notYetAvailable, true), (10, nil, false),
        ] as [(UInt8, SmartTapSessionStatus?, Bool)])
    func sessionStatus(_ number: UInt8, _ status: SmartTapSessionStatus?, _ isRetried: Bool) throws {
        let refused = try Self.status(number, sequence: 0x29, of: Vector.negotiated)
        let (commands, outcome) = try Self.play(try Self.conversation(), [refused, refused, refused])
        #expect(outcome == .rejected(status) && commands.count == (isRetried ? 3 : 1))
        let numbers = try commands.map { try CommandAPDU(try Vector.bytes($0)).data[22] }
        #expect(numbers == (isRetried ? [1, 0x2A, 0x2A] : [1]))

        let answer = try Self.status(number, sequence: 0x29, of: Vector.answers[0])
        let negotiated = try Vector.bytes(Vector.negotiated)
        let (more, end) = try Self.play(
            try Self.conversation(), [negotiated, answer, try Vector.bytes(Vector.answers[0])])
        #expect(more.count == (isRetried ? 3 : 2))
        if case .read? = end { #expect(isRetried) } else { #expect(end == .rejected(status)) }
    }

    @Test(
        "Phones count differently: the terminal sends the last response's number and one more",
        arguments: [0, 1, 2, 0xFF])
    func sequences(_ number: UInt8) throws {
        let negotiated = try Self.status(1, sequence: number, of: Vector.negotiated)
        let (commands, _) = try Self.play(try Self.conversation(), [negotiated])
        #expect(try CommandAPDU(try Vector.bytes(commands[1])).data[22] == number &+ 1)
    }

    @Test("An answer in parts is one message", arguments: [1, 2, 7, 50])
    func parts(_ size: Int) throws {
        let whole = try Vector.bytes(Vector.answers[1]).dropLast(2)
        var answers = [try Vector.bytes(Vector.negotiated)]
        var rest = whole[...]
        while !rest.isEmpty {
            answers.append(Array(rest.prefix(size)) + (rest.count > size ? [0x91, 0x00] : [0x90, 0x00]))
            rest = rest.dropFirst(size)
        }
        let (commands, outcome) = try Self.play(try Self.conversation(), answers)
        guard case .read? = outcome else {
            Issue.record("\(String(describing: outcome))")
            return
        }
        #expect(commands.dropFirst(2).allSatisfy { $0 == "90C0000000" } && commands.count == answers.count)
    }

    @Test("A phone that always has more does not hold the terminal")
    func endless() throws {
        let more = [[UInt8]](repeating: [0x91, 0x00], count: 10_000)
        let (commands, outcome) = try Self.play(
            try Self.conversation(), [try Vector.bytes(Vector.negotiated)] + more)
        #expect(outcome == .malformed(.tooLong) && commands.count <= SmartTap.maximumParts + 3)
        let full = [[UInt8]](repeating: [UInt8](repeating: 0, count: 65_000) + [0x91, 0x00], count: 10)
        let (fewer, end) = try Self.play(try Self.conversation(), [try Vector.bytes(Vector.negotiated)] + full)
        #expect(end == .malformed(.tooLong) && fewer.count == 3)
    }

    @Test("A bundle with any bit changed is not authentic, and one in the clear is refused")
    func changed() throws {
        let bytes = try Vector.bytes(Vector.answers[1])
        let bundle = try #require(bytes.indices.first { bytes[$0...].starts(with: Array("reb".utf8)) }) + 3
        for index in (bundle + 1)..<(bytes.count - 2) {
            var changed = bytes
            changed[index] ^= 0x01
            let (_, outcome) = try Self.play(
                try Self.conversation(), [try Vector.bytes(Vector.negotiated), changed])
            #expect(outcome == .malformed(.notAuthentic))
        }
        for flags: UInt8 in [0x00, 0x02] {
            var changed = bytes
            changed[bundle] = flags
            let (_, outcome) = try Self.play(
                try Self.conversation(), [try Vector.bytes(Vector.negotiated), changed])
            #expect(outcome == .malformed(.notEncrypted))
        }
        // Compressed, though the flag does not say so; and the other way round.
        for (answer, flags, fault) in [(1, 0x01, nil), (0, 0x03, SmartTapFault.notInflated)]
            as [(Int, UInt8, SmartTapFault?)]
        {
            var changed = try Vector.bytes(Vector.answers[answer])
            changed[bundle] = flags
            let (_, outcome) = try Self.play(
                try Self.conversation(), [try Vector.bytes(Vector.negotiated), changed])
            guard case .malformed(let found)? = outcome else {
                Issue.record("\(String(describing: outcome))")
                continue
            }
            #expect(fault == nil || found == fault)
        }
    }

    @Test("A request with all that a merchant can state fits an ACR122U's frame, or is refused before")
    func longest() throws {
        var google = try Vector.google(services: [.loyalty, .offer])
        (google.locationID, google.terminalID) = ("Store 0001", "Kiosk 01")
        (google.merchantName, google.merchantCategory) = ("Café Exempel", "5814")
        let request = try #require(SmartTapRequest(google, capabilities: .kiosk, mode: .passAndPayment))
        let data = request.service(SmartTapRecords.Session(identifier: try Vector.bytes(Vector.sessionID), sequence: 3))
        let records = try NDEFMessage(NDEFMessage(data).records[0].payload.dropFirst(2)).records
        #expect(records.compactMap(SmartTapRecords.name) == ["ses", "mer", "slr", "pcr"])
        let about = try NDEFMessage(records[1].payload).records
        #expect(about.compactMap(SmartTapRecords.name) == ["cld", "lid", "tid", "mnr", "mcr"])
        #expect(about[3].text?.text == "Café Exempel" && about[4].payload == [0x01] + Array("5814".utf8))
        #expect(try NDEFMessage(records[2].payload).records.map(\.payload) == [[3], [4]])
        // Unattended, inflates; display; payment; no verification; pass and payment.
        #expect(records[3].payload == [0x44, 0x04, 0x01, 0x08, 0x04])
        #expect(data.count <= SmartTapRequest.maximumLength)
    }
}
