import SmartCardTrace
import Testing

@Suite("Scripts for scriptor, and what it prints")
struct ScriptorTests {
    /// scriptor 1.6.2 of Debian 12 with a virtual card.
    static let sample = """
        Using given card reader: Virtual PCD 00 00
        Using given file: s.script
        Using T=1 protocol
        reset
        > RESET
        < OK: 3B 80 80 01 01\u{20}
        00 A4 04 00 08 00 11 22 33 44 55 66 77
        > 00 A4 04 00 08 00 11 22 33 44 55 66 77
        < 6F 0A 84 08 00 11 22 33 44 55 66 77 90 00 : Normal processing.
        # comment
        00 B0 \\
        00 00 28
        > 00 B0 00 00 28
        < 00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F\u{20}
        10 11 12 13 14 15 16 17 18 19 1A 1B 1C 1D 1E 1F\u{20}
        20 21 22 23 24 25 26 27 90 00 : Normal processing.
        > 00 EE 00 00
        <  : wrong SW size for:\u{20}
        > 00 A4 00 00
        Can't get info: Transaction failed.

        """

    @Test("print the echo of the script, the command, and the answer in rows")
    func transcript() throws {
        let (lines, omissions) = try imported(Self.sample, as: "scriptor")
        #expect(
            lines.map { String($0.dropFirst(12)) } == [
                #"reader pcsc "Virtual PCD 00 00""#, "connect T=1 3B80800101", "reset",
                "> apdu 00A40400080011223344556677", "< apdu 6F0A840800112233445566779000", "> apdu 00B0000028",
                "< apdu 000102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F20212223242526279000",
                "> apdu 00EE0000", "< apdu -", "> apdu 00A40000", #"! apdu notTransacted "Transaction failed.""#,
            ])
        #expect(omissions["comments"] == 1)
    }

    /// The layout of gscriptor's window (gscriptor, RefreshResult), with an exchange of pcsc-tools issue 30.
    @Test("of gscriptor")
    func gscriptor() throws {
        let text = """
            Beginning script execution...

            [Reset]
            ATR: 3B 80 80 01 01\u{20}
            Sending: 00 A4 04 00 00\u{20}
            Received: 6A 82\u{20}
            File not found

            Sending: A0 A4 00 00 02 3F 00\u{20}

            Errors During Script Execution: Transaction failed.

            """
        #expect(
            try imported(text, as: "scriptor").lines.map { String($0.dropFirst(12)) } == [
                "connect T=1 3B80800101", "reset", "> apdu 00A4040000", "< apdu 6A82", "> apdu A0A40000023F00",
                #"! apdu notTransacted "Transaction failed.""#,
            ])
    }

    @Test("are commands and resets up to exit, which go on behind a backslash")
    func script() throws {
        let text = "# x\nreset\n00A40400\n\n00 B0 \\\n00 00 28\nEXIT\n00 00 00 00\n"
        let (lines, omissions) = try imported(text, as: "scriptor")
        #expect(lines.map { $0.dropFirst(12) } == ["reset", "> apdu 00A40400", "> apdu 00B0000028"])
        #expect(omissions == ["comments": 1])
        #expect(throws: TraceError(.malformed("bytes of two hexadecimal digits each were due"), at: .line(2))) {
            var script = try TraceImport(ForeignFormat(named: "scriptor"), bytes: "00A40400\n00A4040\n".utf8)
            while try script.next() != nil {}
        }
    }

    @Test(
        "have a last command, too, whatever the file ends with",
        arguments: ["00B2010C00\n00B2020C00\n", "00B2010C00\n00B2020C00", "00B2010C00\n00B2020C00\nexit"])
    func lastCommand(_ text: String) throws {
        let lines = try imported(text, as: "scriptor").lines
        #expect(lines.map { $0.dropFirst(12) } == ["> apdu 00B2010C00", "> apdu 00B2020C00"])
    }

    @Test("of scriptor may end with an answer whose meaning is cut off")
    func lastAnswer() throws {
        let lines = try imported("> 00 B0 00 00 02\n< 01 02 90 00", as: "scriptor").lines
        #expect(lines.map { $0.dropFirst(12) } == ["> apdu 00B0000002", "< apdu 01029000"])
    }

    @Test("are written without answers and times, which are counted")
    func export() throws {
        let lines = [
            "0.000000000 > apdu 00A40400", "0.001000000 < apdu 9000", "0.002000000 reset", "0.003000000 > ccid 62",
        ]
        let (text, omissions) = try exported(lines, to: "scriptor")
        #expect(text == "00 A4 04 00\nreset\n")
        #expect(omissions == ["answers": 1, "times": 3, "events other than commands and resets": 1])
    }
}

@Suite("Cards that cardpeek replays")
struct CardpeekReplayTests {
    /// The layout of cardpeek's replay.c: `R:` ATR, `C:` command, status word, response.
    @Test("are ATRs and exchanges; what is longer than a line of cardpeek is left out")
    func export() throws {
        let long = String(repeating: "00", count: 502)
        let lines = [
            "0.000000000 connect T=1 3B80800101", "0.000000000 > apdu 00B0000002", "0.000000000 < apdu 01029000",
            "0.000000000 reset", "0.000000000 > apdu 00A40000", "0.000000000 < apdu 6A82",
            // 2 + 10 + 1 + 4 + 1 + 1004: 1022 characters; then one byte more.
            "0.000000000 > apdu 00B0000000", "0.000000000 < apdu \(long)9000",
            "0.000000000 > apdu 00B0000000", "0.000000000 < apdu \(long)009000",
            "0.000000000 > apdu 00B0000000", "0.000000000 ! apdu cardRemoved", "0.000000000 > apdu 00B0000000",
        ]
        let (text, omissions) = try exported(lines, to: "cardpeek")
        #expect(
            text == """
                # cardpeek trace file
                # version 0
                R:3B80800101
                C:00B0000002:9000:0102
                R:3B80800101
                C:00A40000:6A82:
                C:00B0000000:9000:\(long)
                # end

                """)
        #expect(
            omissions == [
                "exchanges that are longer than a line of 1024 characters": 1, "exchanges that failed": 1,
                "commands without answer": 1,
            ])
    }
}
