import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

/// Parameters of card files, variants of cards, and what a card does wrong by its file.
@Suite struct CardVariantTests {
    private func error(_ text: String) -> CardFileError? {
        do throws(CardFileError) {
            _ = try CardFile(parsing: text)
            return nil
        } catch {
            return error
        }
    }

    // MARK: Variants

    @Test func variantsSetParameters() throws {
        let text = "variant visa-offline {\n ctq 8000   # online PIN\n offline never\n}"
        try expectEqual(CardFile(parsing: text).summary, "Visa, offline with fDDA")
        let send = try CardSession(file: text)
        _ = try send(CardEMVTests.selectVisa)
        let answer = try send(CardSignatureTests.offlineGPO)
        #expect(answer.contains("9F6C028000"))
        #expect(answer.contains("9F270180"))
        try expectEqual(CardFile(parsing: "variant visa \"mine\" {\n}").summary, "mine")
    }

    @Test(arguments: [
        ("variant", 1, "variant NAME"),
        ("variant visa", 1, "block in braces"),
        ("variant vista {\n}", 1, "no card “vista”, only visa"),
        ("variant visa-decline {\n}", 1, "itself a variant"),
        ("variant visa {\n\n ctq 8000\n}", 3, "no parameter “ctq”, only offline"),
        ("variant blocked {\n ctq 8000\n}", 2, "no parameter “ctq”, none"),
        ("variant visa {\n offline never\n offline declines\n}", 3, "twice"),
        ("variant visa {\n offline {\n }\n}", 2, "no block"),
        ("variant visa-offline {\n ctq 80\n ctq 80\n}", 3, "twice"),
        ("variant visa {\n offline often\n}", 1, "“visa” has a mistake in line"),
        ("variant visa {\n offline $offline\n}", 1, "offline never, offline up-to AMOUNT"),
    ])
    func variantErrors(text: String, line: Int, reason: String) {
        expectEqual(error(text)?.line, line)
        expectEqual(error(text)?.reason.contains(reason), true, "\(String(describing: error(text)))")
    }

    private static let radio = "type-a {\n uid 01020304\n atqa 0004\n sak 20\n ats 01\n }"

    @Test(arguments: [
        ("parameter\n", 8, "parameter NAME VALUE"),
        ("parameter a 01\nparameter a 02\n", 9, "each name once"),
        ("parameter a 01\nparameter b $a\n", 9, "names no parameter"),
        ("parameter a {\n}\n", 8, "no block"),
        ("application A000000003 {\nlabel $a\n}\n", 9, "no parameter “a”"),
        (
            "parameter a 0102\napplication A000000003 {\npriority $a\nprocessing-options 77 {\n}\n}\n", 10,
            "1 byte, not 2"
        ),
        ("application A000000003 {\nparameter a 01\n}\n", 9, "not known"),
    ])
    func parameterErrors(text: String, line: Int, reason: String) {
        let found = error("card emv {\n\(Self.radio)\n\(text)}")
        expectEqual(found?.line, line)
        expectEqual(found?.reason.contains(reason), true, "\(String(describing: found))")
    }

    /// What parameters add is bounded.
    @Test func manyWords() {
        let value = String(repeating: "00 ", count: 1000)
        let uses = (0..<40).map { "bytes $a # \($0)\n" }.joined()
        let found = error("card emv {\n\(Self.radio)\nparameter a \(value)\nppse {\n\(uses)}\n}")
        expectEqual(found?.line, 31)
        expectEqual(found?.reason.contains("65536"), true)
        let application = { "application A0000000\(10 + $0) {\n}\n" }
        expectEqual(error("card emv {\n\(Self.radio)\n\((0..<33).map(application).joined())}")?.line, 72)
    }

    /// A parameter stands for any number of words wherever an argument may stand, quoted text apart.
    @Test func parametersAreWords() throws {
        let send = try CardSession(
            file: """
                card emv {
                \(Self.radio)
                parameter amount up-to 100
                parameter text "A B" 43
                parameter none
                parameter sfi 3
                application A0000000031010 {
                    label $text
                    offline $amount
                    fci {
                        9F38 9F02 06
                        bytes $none
                        5F50 "$text"
                    }
                    processing-options 77 {
                        9F27 cid
                        94 afl
                    }
                    record $sfi 1 {
                        70 {
                            9F08 $none
                        }
                    }
                }
                }
                """)
        try expectEqual(
            send(CardEMVTests.selectVisa),
            hex("6F 1F 84 07 A0000000031010 A5 14 50 04 41204243 9F38 03 9F0206 5F50 05 2474657874", "9000"))
        try expectEqual(
            send("80 A8 00 00 08 83 06 000000000100 00"), hex("77 0A 9F27 01 40 94 04 18010100", "9000"))
        try expectEqual(send("00 B2 01 1C 00"), hex("70 03 9F08 00", "9000"))
    }

    // MARK: What a card does wrong

    private func card(_ statements: String, application: String = "") throws -> any VirtualCard {
        try CardFile(
            parsing: """
                card emv {
                \(Self.radio)
                \(statements)
                application A0000000031010 {
                    \(application)
                    processing-options 77 {
                        82 0000
                        9F36 atc
                    }
                }
                }
                """
        ).makeCard()
    }

    private func exchange(_ card: any VirtualCard, _ command: String) throws -> String {
        try #require(card.exchange(try [UInt8](hex: command))).hex
    }

    private static let options = "80 A8 00 00 02 83 00 00"

    @Test func truncatedAnswers() throws {
        let card = try card("truncate gpo 5\n truncate select 0")
        try expectEqual(exchange(card, CardEMVTests.selectVisa), "9000")
        try expectEqual(exchange(card, Self.options), "7709820200" + "9000")
        try expectEqual(exchange(card, "80 CA 9F 36 00"), "6A88")
        expectEqual(error("card emv {\n\(Self.radio)\ntruncate gpo 257\n}")?.reason.contains("0...256"), true)
        expectEqual(error("card emv {\n\(Self.radio)\ntruncate gpo 5 6\n}")?.reason.contains("COMMAND BYTES"), true)
        expectEqual(error("card emv {\n\(Self.radio)\ntruncate gpo 5\ntruncate gpo 5\n}")?.line, 9)
        expectEqual(error("card emv {\n\(Self.radio)\ntruncate 80A8 5\n}")?.reason.contains("one of select"), true)
    }

    @Test func delays() throws {
        let card = try card("delay gpo 1500\n delay read-record 20")
        expectEqual(card.processingTime(of: try [UInt8](hex: Self.options)), .milliseconds(1500))
        expectEqual(card.processingTime(of: try [UInt8](hex: "00 B2 01 0C 00")), .milliseconds(20))
        expectEqual(card.processingTime(of: try [UInt8](hex: CardEMVTests.selectVisa)), .zero)
        expectEqual(card.processingTime(of: [0x80]), .zero)
        try expectEqual(#require(VirtualCards.named("ntag213")).processingTime(of: [0x30, 0x00]), .zero)
        expectEqual(error("card emv {\n\(Self.radio)\ndelay gpo 600001\n}")?.reason.contains("0...600000"), true)
        expectEqual(error("card emv {\n\(Self.radio)\ndelay gpo\n}")?.reason.contains("MILLISECONDS"), true)
    }

    /// The reader lets the time pass that a card takes, and the time goes with the answer to that command only.
    @Test(arguments: ["80 A8 00 00 02 83 00 00", "FF 00 00 00 0B D4 40 01 80 A8 00 00 02 83 00 00"])
    func delaysThroughTheReader(command: String) throws {
        let bus = ACR122UBus(card: try card("delay gpo 1500"))
        bus.powerOn()
        func delay(_ hex: String) -> [Duration] {
            _ = bus.events()
            let data = bytes(hex)
            bus.reader.transferOut(
                endpoint: 0x02, [0x6F, UInt8(data.count), 0, 0, 0, 0, 0, 0, 0, 0] + data)
            return bus.events().compactMap { if case .ready(0x82, _, let delay) = $0 { delay } else { nil } }
        }
        expectEqual(delay(CardEMVTests.selectVisa), [.zero])
        expectEqual(delay(command), [.milliseconds(1500)])
        expectEqual(delay(CardEMVTests.selectVisa), [.zero])
    }

    /// Refused until the card has left the field and come back; then one time it goes well.
    @Test func untilPresentedAgain() throws {
        let card = try card("", application: "status gpo 6986 until-presented-again")
        for _ in 0..<2 {
            _ = try exchange(card, CardEMVTests.selectVisa)
            try expectEqual(exchange(card, Self.options), "6986")
            try expectEqual(exchange(card, Self.options), "6986")
            card.reset()
            _ = try exchange(card, CardEMVTests.selectVisa)
            #expect(try exchange(card, Self.options).hasSuffix("9000"))
            _ = try exchange(card, CardEMVTests.selectVisa)
            try expectEqual(exchange(card, Self.options), "6986")
            card.reset()
            card.reset()
            _ = try exchange(card, CardEMVTests.selectVisa)
            #expect(try exchange(card, Self.options).hasSuffix("9000"))
            card.reset()
        }
        // Presented anew without having been refused, it refuses.
        _ = try exchange(card, CardEMVTests.selectVisa)
        try expectEqual(exchange(card, Self.options), "6986")
    }

    @Test func observed() throws {
        let card = ObservedCard(try card(""))
        #expect(card.exchanges.isEmpty)
        _ = card.exchange(try [UInt8](hex: CardEMVTests.selectVisa))
        expectEqual(card.exchange([0x80, 0xA8]), [0x67, 0x00])
        expectEqual(card.exchanges.map(\.command.count), [13, 2])
        expectEqual(card.exchanges.last?.response, [0x67, 0x00])
        card.reset()
        expectEqual(card.exchanges.count, 2)
        card.forget()
        #expect(card.exchanges.isEmpty)
        let mute = ObservedCard(try #require(VirtualCards.named("ntag213")))
        expectEqual(mute.exchange([0x00, 0xA4, 0x04, 0x00]), nil)
        expectEqual(mute.exchanges.map(\.response), [nil])
        expectEqual(mute.exchangeNative([0x30, 0x00])?.count, 16)
        expectEqual(mute.radio, VirtualCards.named("ntag213")?.radio)
    }

    // MARK: Names

    /// Extended Selection (EMV Contactless Book B, 3.3.2): in the directory behind the AID, in SELECT and FCI a part of the
    /// name.
    @Test func extendedSelection() throws {
        let send = try CardSession("multi")
        #expect(
            try send(CardEMVTests.selectPPSE).contains(
                hex("61 21 4F 07 A0000000041010 50 0A 4D415354455243415244 87 01 03 9F2A 01 02 9F29 02 4D01")))
        #expect(try send("00 A4 04 00 09 A0000000041010 4D01 00").contains("8409A00000000410104D01"))
        _ = try send("80 A8 00 00 02 83 00 00")
        #expect(try send("00 B2 01 0C 00").contains("5F2403281231"))
        #expect(try send("00 A4 04 00 07 A0000000041010 00").contains("8407A0000000041010A5"))
        _ = try send("80 A8 00 00 02 83 00 00")
        #expect(try send("00 B2 01 0C 00").contains("5F2403311231"))
        #expect(try send("00 A4 04 02 07 A0000000041010 00").contains("8409A00000000410104D01"))
        expectEqual(
            error(
                "card emv {\n\(Self.radio)\napplication A0000000041010 {\nextended-selection 00112233445566778899\n}\n}"
            )?
            .reason.contains("16 bytes"), true)
        let application = "application A0000000041010 {\nextended-selection 01\nprocessing-options 77 {\n}\n}\n"
        expectEqual(error("card emv {\n\(Self.radio)\n\(application)\(application)}")?.line, 13)
    }

    /// A reader that knows the beginning of two AIDs finds both, in the order of the card.
    @Test func partialSelection() throws {
        let send = try CardSession("multi")
        #expect(try send("00 A4 04 00 07 A0000000031010 00").contains("8408A000000003101001"))
        #expect(try send("00 A4 04 02 07 A0000000031010 00").contains("8408A000000003101002"))
        try expectEqual(send("00 A4 04 02 07 A0000000031010 00"), "6A82")
        #expect(try send("00 A4 04 00 08 A0000000031010 02 00").contains("8408A000000003101002"))
    }
}
