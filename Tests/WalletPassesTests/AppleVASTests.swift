import SmartCard
import Testing

@testable import WalletPasses

/// The conversation with Apple Wallet, in the wire's own bytes.
@Suite struct AppleVASTests {
    /// An iPhone's answer to SELECT, sniffed and published (proxmark3).
    private static let applePay = "6F1D 50 08 4170706C65506179 9F21 02 0100 9F24 04 E9CAEDE3 9F23 04 0000003E 9000"
    /// A pass for the key of `VASCryptogramTests`, from another program.
    private static let answer =
        "70 49 9F2A 00 9F27 43 3D906C015B36890DACBD7C9A96BB74A1EE28B3D2D75B72E09A20EF25CF8E6FD8A9F0350D83A617B79599DFDB"
        + "BD850F98741B195A1FC961E8099A27C3D3B1A4A571D4CE 9000"
    private let loyalty: VASMerchant

    init() throws { loyalty = try VASMerchant(passTypeIdentifier: "pass.example.kiosk.loyalty") }

    private static func bytes(_ text: String) throws -> [UInt8] { try [UInt8](hex: text.filter { $0 != " " }) }

    /// Plays a phone that gives these answers.
    ///
    /// - Returns: the commands, and the end.
    private static func play(
        _ conversation: AppleVAS, _ answers: [String]
    ) throws -> (commands: [String], outcome: AppleVAS.Outcome?) {
        var conversation = conversation
        var commands: [String] = []
        var step = conversation.next(nil)
        for answer in answers {
            guard case .send(let command) = step else { break }
            commands.append(command.bytes.hex)
            step = conversation.next(try ResponseAPDU(try bytes(answer)))
        }
        if case .finished(let outcome) = step { return (commands, outcome) }
        return (commands, nil)
    }

    @Test("One merchant: SELECT and GET DATA as a published terminal has them, and a pass that decrypts")
    func oneMerchant() throws {
        let demonstration = try VASMerchant(
            passTypeIdentifier: "pass.com.passkit.pksamples.nfcdemo", signUpURL: "https://apple.com")
        let (commands, _) = try Self.play(AppleVAS([demonstration], mode: .passOnly), [Self.applePay, "6A83"])
        #expect(
            try commands == [
                "00A404000A4F53452E5641532E303100",
                // Version, SHA-256 of the identifier, capabilities, URL: as sniffed, without the filter (9F2B), and the
                // authentication bit.
                Self.bytes(
                    """
                    80CA0101 43 9F22 02 0100 9F25 20 03B57CDB3ECA0984BA9ABDC2FB45D86626D87B39D33C5C6DBBC313A6347A3146 \
                    9F26 04 00800002 9F29 11 68747470733A2F2F6170706C652E636F6D 00
                    """
                ).hex,
            ])

        let (_, outcome) = try Self.play(AppleVAS([loyalty], mode: .passAndPayment), [Self.applePay, Self.answer])
        guard case .read(let entries)? = outcome, let cryptogram = entries.first?.cryptogram else {
            Issue.record("\(String(describing: outcome))")
            return
        }
        #expect(entries.map(\.status) == [.success] && entries[0].mobileToken == nil)
        let key = try VASCryptogramTests.key(String(repeating: "33", count: 32))
        #expect(try cryptogram.open(with: [key], for: loyalty).data.text == "MEMBER-0001")
    }

    @Test("Several merchants: more passes follow all but the last, and a pass that is not there ends nothing")
    func severalMerchants() throws {
        let others = try ["pass.a.b", "pass.c.d"].map { try VASMerchant(passTypeIdentifier: $0) }
        for (mode, marks) in [
            (AppleVAS.Mode.passOrPayment, [0x80, 0x80, 0x00]), (.passAndPayment, [0x81, 0x81, 0x01]),
        ] {
            let (commands, outcome) = try Self.play(
                AppleVAS(others + [loyalty], mode: mode, terminalType: .transit),
                [Self.applePay, "6A83", "6A80", Self.answer])
            // The last bytes of 9F26, before Le.
            let capabilities = commands.dropFirst().map { String($0.dropLast(2).suffix(8)) }
            #expect(capabilities == marks.map { "008100" + ($0 < 16 ? "0" : "") + String($0, radix: 16) })
            guard case .read(let entries)? = outcome else {
                Issue.record("\(String(describing: outcome))")
                continue
            }
            #expect(entries.map(\.status) == [.passNotFound, .incorrectData, .success])
            #expect(entries.map(\.merchant) == others + [loyalty])
        }
        // One pass a tap.
        let (commands, outcome) = try Self.play(
            AppleVAS([loyalty] + others, mode: .passOnly), [Self.applePay, Self.answer])
        guard case .read(let entries)? = outcome else {
            Issue.record("\(String(describing: outcome))")
            return
        }
        #expect(commands.count == 2 && entries.count == 1)
    }

    @Test(
        "Each status word is Core NFC's, and one that waits for the holder ends the conversation",
        arguments: [
            ("9000", AppleVAS.Status.success), ("6A83", .passNotFound), ("6287", .notActivated),
            ("6B00", .wrongParameters), ("6700", .wrongLength), ("6984", .userInterventionRequired),
            ("6A80", .incorrectData), ("6340", .unsupportedVersion), ("6982", .other(0x6982)),
            ("6A81", .other(0x6A81)),
        ])
    func statuses(_ word: String, _ status: AppleVAS.Status) throws {
        let page = try VASMerchant(
            passTypeIdentifier: "pass.a.b", signUpURL: "https://example.com", sendsURLOnly: true)
        let (commands, outcome) = try Self.play(
            AppleVAS([page, loyalty], mode: .passOrPayment), [Self.applePay, word, Self.answer])
        guard case .read(let entries)? = outcome else {
            Issue.record("\(String(describing: outcome))")
            return
        }
        #expect(entries.first?.status == status && entries.first?.cryptogram == nil)
        let waits = [.notActivated, .userInterventionRequired].contains(status)
        #expect(entries.count == (waits ? 1 : 2))
        #expect(commands[1].hasPrefix("80CA0100"), "the URL only")
    }

    @Test(
        "A card without the application, another wallet, another version and an unwilling phone have no passes",
        arguments: [
            ("6A82", AppleVAS.Outcome.noPasses(.noApplication(0x6A82))),
            ("6F0C 50 05 4F74686572 9F21 02 0100 9000", .noPasses(.otherWallet)),
            ("6F11 50 08 4170706C65506179 9F21 02 0200 9000", .malformed(nil)),
            (
                "6F16 50 08 4170706C65506179 9F21 02 0200 9F23 04 0000003E 9000",
                .noPasses(.otherVersion([0x02, 0x00]))
            ),
            ("6F16 50 08 4170706C65506179 9F21 02 0100 9F23 04 00000036 9000", .noPasses(.notWilling)),
            ("6F0F 50 08 4170706C65506179 9F21 02 0100 9000", .noPasses(.notWilling)), ("9000", .malformed(nil)),
        ])
    func noPasses(_ answer: String, _ expected: AppleVAS.Outcome) throws {
        let (commands, outcome) = try Self.play(AppleVAS([loyalty], mode: .passOnly), [answer, Self.answer])
        #expect(commands.count == 1)
        if case .malformed? = outcome, case .malformed = expected { return }
        #expect(outcome == expected)
    }

    @Test("Google's wallet is told with its answer")
    func google() throws {
        let answer = "6F0F 50 0A 416E64726F6964506179 C0 01 00 9000"
        let (_, outcome) = try Self.play(AppleVAS([loyalty], mode: .passOnly), [answer])
        #expect(outcome == .smartTap(try ResponseAPDU(try Self.bytes(answer))))
    }

    @Test("A response cut off anywhere is no pass, and one after the end ends the conversation")
    func hostile() throws {
        let whole = try Self.bytes(Self.answer).dropLast(2)
        for count in 0..<whole.count {
            let (_, outcome) = try Self.play(
                AppleVAS([loyalty], mode: .passOnly), [Self.applePay, Array(whole.prefix(count)).hex + "9000"])
            guard case .read(let entries)? = outcome else {
                Issue.record("\(count): \(String(describing: outcome))")
                continue
            }
            #expect(entries.map(\.status) == [.noPass] && entries[0].cryptogram == nil)
        }
        var conversation = AppleVAS([], mode: .passOnly)
        #expect(conversation.next(ResponseAPDU(status: 0x9000)) == .finished(.malformed(nil)))
        #expect(conversation.next(nil) == .finished(.malformed(nil)))
    }

    @Test(
        "A merchant is refused whose identifier or URL no phone takes",
        arguments: [
            ("com.example", nil), ("pass", nil), ("pass.", nil), ("pass..a", nil), ("pass.é", nil),
            ("pass." + String(repeating: "a", count: 251), nil), ("pass.a", "http://example.com"),
            ("pass.a", "https://example.com/ a"), ("pass.a", "https://" + String(repeating: "a", count: 187)),
        ] as [(String, String?)])
    func merchants(_ identifier: String, _ url: String?) throws {
        #expect(throws: VASMerchant.Fault.self) { try VASMerchant(passTypeIdentifier: identifier, signUpURL: url) }
        #expect(throws: VASMerchant.Fault.signUpURL) {
            try VASMerchant(passTypeIdentifier: "pass.a", sendsURLOnly: true)
        }
        _ = try VASMerchant(
            passTypeIdentifier: "pass.a", signUpURL: "https://" + String(repeating: "a", count: 186))
    }
}
