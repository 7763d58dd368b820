import SmartCard
import TestSupport
import Testing

@testable import SmartCardSimulator

/// Smart Tap in a virtual Android phone, against a published trace and an exchange calculated in Python with Google's demo key.
@Suite struct GooglePhoneTests {
    /// Reader and phone have the ephemeral keys 11 and 22, 32 times; nonces, session and vector are given, too.
    private enum Exchange {
        static let nonce = "202122232425262728292A2B2C2D2E2F303132333435363738393A3B3C3D3E3F"
        static let key = "03D65A93977CAA3D1B081852FF57A79E465F1660577304BAEAD505DD3A48589CF3"
        static let negotiate = bytes(
            """
            90530000BED403B86E6772000194030A736573010203040506070801015403A0637072000102030405060708090A0B0C0D0E0F10111213141516\
            1718191A1B1C1D1E1F01020217E617F0B6443928278F96999E69A23A4F2C152BDF6D6CDF66E5B80282D4ED000000019403497369670430460221\
            00924281D0D3514BB8350FDD077483D5DA7AA447304C51C662B8C728BBDCD2FD580221008414B3EB8C9ABAF60754AE28FFDF32FC0964874F6761\
            E6CA2AF4FF5798507DB3540305636C64040133EE8000
            """)
        /// The same, with a signature of Python's over zeros instead of the phone's nonce, and so without live authentication.
        static let signedBefore = bytes(
            """
            90530000BED403B86E6772000194030A736573010203040506070801015403A0637072000102030405060708090A0B0C0D0E0F10111213141516\
            1718191A1B1C1D1E1F00020217E617F0B6443928278F96999E69A23A4F2C152BDF6D6CDF66E5B80282D4ED000000019403497369670430460221\
            008D04731142CC895AEAB79D69D766F5BF9EA148442ABD178003310999E77C9C15022100BC791653E0B94C9F55A1D670EBAA7E64736C679D8657\
            B8BCD808376C19C33486540305636C64040133EE8000
            """)
        static let negotiated = bytes(
            """
            D403376E727394030A7365730102030405060708020154032164706B03D65A93977CAA3D1B081852FF57A79E465F1660577304BAEAD505DD3A48\
            589CF39000
            """)
        static let getData = bytes(
            """
            9050000041D4033B737271000194030A7365730102030405060708030114030B6D6572D40305636C64040133EE80140307736C72D40301737472\
            03540305706372400000000100
            """)
        static let plain = bytes(
            """
            D4037273727394030A7365730102030405060708040154035C72656201A0A1A2A3A4A5A6A7A8A9AAAB5A8561F57BD180D82F53B7AD98D6BF3C45\
            131FFE3F95338D8EAA76093F1B9E82458A7110E5600896EB7ED1C6837853060968FF663A4FACD3B2C69C4A8EACD72A9757ED240F4DFB2ADAB12C\
            2BA24BA79000
            """)
        static let compressed = bytes(
            """
            D4037473727394030A7365730102030405060708040154035E72656203A0A1A2A3A4A5A6A7A8A9AAABF65CF356A43E4C851FBF22810B532E3D19\
            539D36342B97B4922575AB8F2BDE8226AE523ADF2913142E9170F1B3A2B9AD76B1BDFBDC0E07372154BA33E6BBF9C2C76200DDE5B5A31D843DF3\
            693F95AF1F9A9000
            """)
    }

    private static let universal = bytes("00 A4 04 00 0A 4F 53 45 2E 56 41 53 2E 30 31 00")
    private static let smartTap = bytes("00 A4 04 00 09 A0 00 00 04 76 D0 00 01 11 00")
    private static let more = bytes("90 C0 00 00 00")

    /// The built-in phone with the nonces and keys of the exchange.
    private func phone(
        _ parameters: String = "message \"2018\"", smartTap statements: String = "", collector: String = ""
    ) throws -> WalletPhone {
        var text = try #require(VirtualCards.all.first { $0.name == "phone-google" }).text
        for line in parameters.split(separator: "\n") {
            let words = line.split(separator: " ", maxSplits: 1)
            let start = try #require(text.firstRange(of: "parameter \(words[0]) "))
            let end = try #require(text[start.upperBound...].firstIndex(of: "\n"))
            text.replaceSubrange(start.upperBound..<end, with: words[1])
        }
        let fixed = """
            part $part
                    nonce         \(Exchange.nonce)
                    ephemeral-key \(String(repeating: "22", count: 32))
                    iv            A0A1A2A3A4A5A6A7A8A9AAAB
                    \(statements)
            """
        text = text.replacing("part $part", with: fixed)
        text = text.replacing("collector 20180608 {", with: "collector 20180608 {\n\(collector)")
        let file = try CardFile(parsing: text)
        guard case .emv(let personality, let phone?) = file.kind else { throw CardError(.other, "no phone") }
        return WalletPhone(phone, over: EMVCard(radio: file.radio, personality: personality))
    }

    private func status(_ answer: [UInt8]?) -> String? { answer?.suffix(2).hex(separator: " ") }

    // MARK: SELECT

    @Test("The universal name is answered as in a trace of kormax', but for what is drawn")
    func universal() throws {
        let answer = try #require(try phone().exchange(Self.universal))
        expectEqual(
            answer,
            bytes(
                """
                6F8184500A416E64726F6964506179C0020001C108CC00000000008080C220\(Exchange.nonce)C321\(Exchange.key)\
                A523BF0C20611E4F09A000000476D0000111870101730EDF6D020000DF4D020001DF620103 9000
                """))
        expectEqual(answer.count, 135 + 2)
    }

    @Test("Smart Tap's own name is answered as in the trace, with the same nonce")
    func own() throws {
        let phone = try phone()
        for name in [Self.universal, Self.smartTap] { _ = phone.exchange(name) }
        expectEqual(
            phone.exchange(Self.smartTap),
            bytes("0000 0001 DC 03 21 03 6D646E 6D646E 04 \(Exchange.nonce) 9000"))
    }

    @Test("A built-in phone draws nonce and key for each session, and keeps both in it")
    func drawn() throws {
        let phone = try walletPhone("phone-google")
        let first = phone.exchange(Self.universal)
        expectEqual(phone.exchange(Self.universal), first)
        phone.reset()
        #expect(phone.exchange(Self.universal) != first)
    }

    @Test("An older phone has to be selected a second time, and says so by what it lacks")
    func second() throws {
        let phone = try phone(smartTap: "second-select")
        expectEqual(
            phone.exchange(Self.universal),
            bytes(
                """
                6F35 500A416E64726F6964506179 C0020001 \
                A523BF0C20611E4F09A000000476D0000111870101730EDF6D020000DF4D020001DF620102 9000
                """))
        expectEqual(phone.exchange(Exchange.negotiate), [0x6E, 0x00], "the payment card knows no such class")
        _ = phone.exchange(Self.smartTap)
        expectEqual(phone.exchange(Exchange.negotiate), Exchange.negotiated)
    }

    // MARK: The exchange

    @Test("With nonces and keys given, the exchange is that of an independent calculation, byte for byte")
    func synthetic() throws {
        let phone = try phone()
        _ = phone.exchange(Self.universal)
        expectEqual(phone.exchange(Exchange.negotiate), Exchange.negotiated)
        // The terminal knows zlib.
        expectEqual(phone.exchange(Exchange.getData), Exchange.compressed)
        var request = Exchange.getData
        request[request.count - 6] = 0x00
        expectEqual(phone.exchange(request), Exchange.plain)
    }

    @Test("An answer that is too long comes in parts", arguments: [16, 50, 115])
    func parts(_ size: Int) throws {
        let phone = try phone("message \"2018\"\npart \(size)")
        _ = phone.exchange(Self.universal)
        var answer = try #require(phone.exchange(Exchange.negotiate))
        while answer.suffix(2) == [0x91, 0x00] {
            answer = answer.dropLast(2) + (try #require(phone.exchange(Self.more)))
        }
        expectEqual(answer, Exchange.negotiated)
        var count = 0
        answer = try #require(phone.exchange(Exchange.getData))
        while answer.suffix(2) == [0x91, 0x00] {
            count += 1
            expectEqual(answer.count, size * count + 2)
            answer = answer.dropLast(2) + (try #require(phone.exchange(Self.more)))
        }
        #expect(answer == Exchange.compressed && count == (119 - 1) / size)
        expectEqual(status(phone.exchange(Self.more)), "94 04")
    }

    // MARK: Refusals

    /// The exchange with one byte changed, and the status word.
    @Test(
        "A terminal that does not prove itself, or does not speak the language, is refused",
        arguments: [
            (120, "95 00"),  // the signature
            (80, "95 00"),  // the ephemeral key
            (40, "95 00"),  // the nonce
            (104, "95 00"),  // the version of the key
            (Exchange.negotiate.count - 2, "95 00"),  // the collector
            (12, "95 02"),  // the version
            (5, "94 02"), (7, "94 02"), (15, "94 02"), (Exchange.negotiate.count - 11, "94 02"),  // records
        ])
    func forged(_ position: Int, _ expected: String) throws {
        let phone = try phone()
        _ = phone.exchange(Self.universal)
        var command = Exchange.negotiate
        command[position] ^= 0x10
        expectEqual(status(phone.exchange(command)), expected)
        expectEqual(status(phone.exchange(Exchange.getData)), "95 00", "no session")
    }

    @Test("A signature that was made before is told apart from a live one")
    func signedBefore() throws {
        let phone = try phone()
        _ = phone.exchange(Self.universal)
        expectEqual(phone.exchange(Exchange.signedBefore), Exchange.negotiated.dropLast(2) + [0x90, 0x02])
        expectEqual(status(phone.exchange(Exchange.getData)), "90 00")
    }

    @Test(
        "Commands out of order or unknown are refused",
        arguments: [
            ("90 50 00 00 00", "94 02"), ("90 C0 00 00 00", "94 04"), ("90 51 00 00 00", "94 00"),
            ("90 53 01 00 00", "94 00"), ("80 CA 01 01 00", "94 00"), ("90 53 00 00 01 D4 00", "94 02"),
        ])
    func order(_ command: String, _ expected: String) throws {
        let phone = try phone()
        _ = phone.exchange(Self.universal)
        expectEqual(status(phone.exchange(bytes(command))), expected)
    }

    @Test("Passes before the terminal has proved itself, and after another application was selected")
    func withoutSession() throws {
        let phone = try phone()
        _ = phone.exchange(Self.universal)
        expectEqual(status(phone.exchange(Exchange.getData)), "95 00")
        _ = phone.exchange(Exchange.negotiate)
        expectEqual(
            status(phone.exchange(bytes("00 A4 04 00 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31 00"))), "90 00")
        expectEqual(phone.exchange(Exchange.getData), [0x6E, 0x00])
    }

    /// proxmark3 goes on from the answer; kormax counts requests and answers alike.
    @Test(
        "Either convention of sequence numbers is taken, and a lower number is not",
        arguments: [(0, 1, 0x01), (1, 3, 0x01), (1, 1, 0x01), (1, 2, 0x01), (3, 2, 0x04), (1, 0, 0x04)]
            as [(UInt8, UInt8, UInt8)])
    func sequence(_ first: UInt8, _ second: UInt8, _ expected: UInt8) throws {
        let phone = try phone()
        _ = phone.exchange(Self.universal)
        var (negotiate, getData) = (Exchange.negotiate, Exchange.getData)
        (negotiate[27], getData[27]) = (first, second)
        let answer = try #require(phone.exchange(negotiate))
        expectEqual(Array(answer[20...21]), [first + 1, 0x01])
        let data = try #require(phone.exchange(getData))
        expectEqual(Array(data[20...21]), [second + 1, expected])
        #expect(status(data) == "90 00" && (data.count > 30) == (expected == 0x01))
    }

    // MARK: Passes

    private func request(services: String, capabilities: String = "4000000001", collector: String = "0133EE80")
        -> [UInt8]
    {
        let services = bytes(services).map { SmartTapRecord("str", [$0]) }
        let collector = bytes(collector)
        var records = [SmartTapRecord("ses", bytes("0102030405060708 03 01"))]
        if !collector.isEmpty { records.append(SmartTapRecord("mer", [SmartTapRecord("cld", [0x04] + collector)])) }
        if !services.isEmpty { records.append(SmartTapRecord("slr", services)) }
        records.append(SmartTapRecord("pcr", bytes(capabilities)))
        let data = SmartTapRecord.message([SmartTapRecord("srq", [0x00, 0x01] + SmartTapRecord.message(records))])
        return [0x90, 0x50, 0x00, 0x00, UInt8(data.count)] + data + [0x00]
    }

    private static let collection = """
        offer {
            id    0000000000000002
            value "O"
        }
        event {
            id     0000000000000003
            issuer 02 00000007
            value  "E"
            text   gate "7"
        }
        private-generic {
            id    0000000000000004
            value "P"
        }
        customer {
            id       000102030405060708090A0B0C0D0E0F
            language "en"
            tap      F0F1F2F3F4F5F6F7F8F9FAFBFCFDFEFF
        }
        """

    /// Opens an answer as a terminal would, with the keys of the published exchange.
    private func objects(_ answer: [UInt8]) throws -> [SmartTapRecord] {
        let outer = try #require(SmartTapRecord.parse(answer.dropLast(2)))
        let content = try #require(SmartTapRecord.parse(outer[0].payload))
        let bundle = try #require(content["reb"])
        expectEqual(bundle.first, 0x01)
        let sealed = bundle.dropFirst(13).dropLast(32)
        let counter = Array(bundle[1..<13]) + [0, 0, 0, 0]
        let cipher = try #require(AES(bytes("ACC7F5122FE99EE6C20E98796A1121CD")))
        let clear = try #require(cipher.ctr(Array(sealed), counter: counter))
        return try #require(SmartTapRecord.parse(clear))
    }

    @Test(
        "A terminal gets the kinds of passes that it asks for",
        arguments: [
            ("03", ["ly"], "90 00"), ("04", ["of"], "90 00"), ("03 07", ["ly", "et"], "90 00"), ("12", ["gp"], "90 00"),
            ("00", ["ly", "of", "et", "gp", "cus"], "90 00"), ("01", ["ly", "of", "et", "gp", "cus"], "90 00"),
            ("40", ["cus"], "90 01"), ("03 40", ["ly", "cus"], "90 00"),
        ])
    func services(_ services: String, _ expected: [String], _ word: String) throws {
        let phone = try phone("part 256", collector: Self.collection)
        _ = phone.exchange(Self.universal)
        _ = phone.exchange(Exchange.negotiate)
        var answer = try #require(phone.exchange(request(services: services, capabilities: "0000000001")))
        while answer.suffix(2) == [0x91, 0x00] {
            answer = answer.dropLast(2) + (try #require(phone.exchange(Self.more)))
        }
        expectEqual(status(answer), word)
        let passes = try objects(answer).map { try #require(SmartTapRecord.parse($0.payload)) }
        expectEqual(passes.map { $0[1].name }, expected)
        #expect(passes.allSatisfy { $0[0].name == "i" && $0[0].payload.count == 6 })
        if let event = passes.first(where: { $0[1].name == "et" }) {
            expectEqual(event[0].payload, bytes("04 02 00000007"))
            let fields = try #require(SmartTapRecord.parse(event[1].payload))
            #expect(fields["n"] == bytes("00 45") && fields["gate"] == bytes("00 37"))
        }
    }

    @Test(
        "Without passes that it asks for, a terminal gets none",
        arguments: [("02", "4000000001"), ("05", "4000000001"), ("10 11", "4000000001"), ("00", "4000000002")])
    func nothing(_ services: String, _ capabilities: String) throws {
        let phone = try phone()
        _ = phone.exchange(Self.universal)
        _ = phone.exchange(Exchange.negotiate)
        expectEqual(phone.exchange(request(services: services, capabilities: capabilities)), [0x90, 0x01])
    }

    @Test(
        "What a request lacks is named in its session",
        arguments: [("03", "", 0x06), ("03", "00000001", 0x05), ("", "0133EE80", 0x07)] as [(String, String, UInt8)])
    func lacking(_ services: String, _ collector: String, _ expected: UInt8) throws {
        let phone = try phone()
        _ = phone.exchange(Self.universal)
        _ = phone.exchange(Exchange.negotiate)
        let answer = try #require(phone.exchange(request(services: services, collector: collector)))
        #expect(Array(answer[20...21]) == [0x04, expected] && answer.count == 24)
    }

    @Test(
        "A phone that is locked, or waits for a choice, says so until it is presented again",
        arguments: ["9300", "9302"])
    func lock(_ word: String) throws {
        let phone = try phone("message \"2018\"\nlocked 1\nstatus \(word)")
        for expected in [bytes(word), [0x90, 0x00]] {
            phone.reset()
            _ = phone.exchange(Self.universal)
            _ = phone.exchange(Exchange.negotiate)
            expectEqual(phone.exchange(Exchange.getData)?.suffix(2), expected[...])
        }
    }

    @Test("What a terminal pushes is acknowledged")
    func push() throws {
        let phone = try phone()
        _ = phone.exchange(Self.universal)
        let record = SmartTapRecord(
            "spr", [0x00, 0x01] + SmartTapRecord.message([SmartTapRecord("ses", bytes("0102030405060708 05 01"))]))
        let data = SmartTapRecord.message([record])
        expectEqual(
            phone.exchange([0x90, 0x52, 0x00, 0x00, UInt8(data.count)] + data + [0x00]),
            bytes("D4 03 10 70 73 72 D4 03 0A 73 65 73 01 02 03 04 05 06 07 08 06 01 90 00"))
    }

    @Test("An Android phone answers the first request, and polling frames leave it as it is")
    func polling() throws {
        let phone = try walletPhone("phone-google")
        #expect(phone.notice(.frame(RadioFrame(.typeA, [0x26]))))
        _ = phone.notice(.frame(RadioFrame(.typeA, bytes("6A 01 CF 00 00"))))
        #expect(phone.notice(.frame(RadioFrame(.typeA, [0x26]))))
    }

    @Test(
        "Records that are no message are none",
        arguments: [
            "", "D4", "D4 03 01 61 62 63", "54 01 00 61", "F4 01 00 61", "94 01 00 61", "D4 01 00 61 00",
            "C4 01 00 00 00 61",
        ])
    func records(_ message: String) { expectEqual(SmartTapRecord.parse(bytes(message)), nil) }

    @Test("No command breaks a phone, and no answer is longer than a part")
    func hostile() throws {
        var random = SplitMix(state: 18)
        let phone = try phone("message \"2018\"\npart 64", collector: Self.collection)
        let commands = [
            Self.universal, Self.smartTap, Exchange.negotiate, Exchange.getData, Self.more, request(services: "00"),
        ]
        for round in 0..<Tier.rounds(300, thorough: 3000) {
            if round.isMultiple(of: 20) {
                phone.reset()
                _ = phone.exchange(Self.universal)
            }
            if round.isMultiple(of: 7) { _ = phone.exchange(Exchange.negotiate) }
            var command = commands[Int.random(in: 0..<commands.count, using: &random)]
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                let index = Int.random(in: 0..<command.count, using: &random)
                command[index] = UInt8.random(in: 0...255, using: &random)
            }
            if Int.random(in: 0..<4, using: &random) == 0 {
                command.removeLast(Int.random(in: 0..<command.count, using: &random))
            }
            let answer = try #require(phone.exchange(command))
            #expect((2...258).contains(answer.count))
        }
    }
}
