import SmartCard
import SmartCardSimulator
import TestSupport
import Testing
import TravelDocument

@testable import SmartCardTrace

/// Redaction of the readings of travel documents.
@Suite(.computing) struct DocumentRedactionTests {
    private let redaction = TraceRedaction(key: Array(0..<16))

    /// Redacts, and expects a fixed point with the same lengths and status words.
    private func redacted(_ trace: Trace) -> Trace {
        let redacted = redaction.redacted(trace)
        #expect(redaction.redacted(redacted) == redacted)
        #expect(TraceRedaction().findings(in: redacted).isEmpty)
        func shapes(_ trace: Trace) -> [[UInt8]] {
            trace.exchanges().map { exchange in
                guard case .bytes(let answer)? = exchange.answer else { return [] }
                return [UInt8(exchange.command.count), UInt8(truncatingIfNeeded: answer.count)] + answer.suffix(2)
            }
        }
        for (new, old) in zip(shapes(redacted), shapes(trace)) { #expect(new == old) }
        return redacted
    }

    private func items(_ trace: Trace) -> Set<TraceEvent.RedactedItem> {
        trace.events.reduce(into: []) { if case .redacted(let items) = $1.what { $0.formUnion(items) } }
    }

    /// What of `secret` is in the data that went one way, eight bytes at a time, from either half of a byte on.
    private func survivors(of secret: [UInt8], in trace: Trace) -> Int {
        var sent: [UInt8] = []
        var received: [UInt8] = []
        for event in trace.events {
            switch event.what {
            case .sent(_, let bytes): sent += bytes.dropFirst(5)
            case .received(_, let bytes): received += bytes.dropLast(2)
            default: break
            }
        }
        var there: Set<Substring> = []
        for text in [sent.hex, received.hex] {
            var rest = text[...]
            while rest.utf8.count >= 16 {
                there.insert(rest.prefix(16))
                rest = rest.dropFirst()
            }
        }
        return secret.indices.dropLast(7).count { start in
            let window = secret[start..<start + 8]
            return Set(window).count > 2 && there.contains(window.hex[...])
        }
    }

    // MARK: Sessions

    @Test(
        "an encrypted reading keeps its shape, and nothing that can be decrypted",
        arguments: ["passport", "passport-bac", "identity-card"])
    func encrypted(_ card: String) async throws {
        let (trace, reading) = try await DocumentReadings.encrypted(card)
        #expect(reading.zone != nil)
        let redacted = redacted(trace)
        #expect(items(redacted) == [.session])
        var cryptograms = 0
        for (before, after) in zip(trace.exchanges(on: [.apdu]), redacted.exchanges(on: [.apdu])) {
            guard case .bytes(let answer)? = before.answer, case .bytes(let newAnswer)? = after.answer else { continue }
            let header = before.command.prefix(5)
            #expect(after.command.starts(with: header))
            switch header[1] {
            // SELECT and READ BINARY in the clear: the application, EF.CardAccess.
            case _ where header[0] == 0x0C:
                let (objects, newObjects) = try (TLVList(answer.dropLast(2)), TLVList(newAnswer.dropLast(2)))
                #expect(objects.map(\.tag) == newObjects.map(\.tag))
                #expect(objects[0x99] == newObjects[0x99])
                // The indicator of the padding.
                #expect(newObjects[0x87]?.value.first == objects[0x87]?.value.first)
                for object in newObjects where object.tag != 0x99 {
                    #expect(object.value.dropFirst(object.tag == 0x87 ? 1 : 0).allSatisfy { $0 == 0 })
                    cryptograms += 1
                }
                #expect(survivors(of: Array(before.command.dropFirst(5)), in: redacted) == 0)
                #expect(survivors(of: answer.dropLast(2), in: redacted) == 0)
            case 0x82, 0x84:
                #expect(newAnswer.dropLast(2).allSatisfy { $0 == 0 })
                #expect(survivors(of: Array(before.command.dropFirst(5)), in: redacted) == 0)
                cryptograms += 1
            case 0x86:
                #expect(survivors(of: Array(before.command.dropFirst(7)), in: redacted) == 0)
                #expect(survivors(of: answer.dropLast(2), in: redacted) == 0)
                #expect(newAnswer.prefix(1) == [0x7C])
                cryptograms += 1
            default: #expect(before.command == after.command && answer == newAnswer)
            }
        }
        #expect(cryptograms > 20)
    }

    // MARK: Files

    /// All files of the virtual passport, and the specimen's details.
    private static let files = Task {
        let reading = try await DocumentReadings.encrypted("passport", [1, 2, 15]).reading
        let identifiers: [ElementaryFile: UInt16] = [
            .sod: 0x011D, .dataGroup(1): 0x0101, .dataGroup(2): 0x0102, .dataGroup(15): 0x010F,
        ]
        return reading.files.compactMap { file in identifiers[file.file].map { (identifier: $0, bytes: file.bytes) } }
            + DocumentReadings.details
    }

    @Test(
        "files in the clear come out as those of nobody, however they are read",
        arguments: DocumentReadings.Way.allCases)
    func clear(_ way: DocumentReadings.Way) async throws {
        var files = try await Self.files.value
        // The portrait takes long: in the fast tier it is read in one way.
        if !Tier.isThorough, way != .named { files.removeAll { $0.identifier == 0x0102 } }
        // Only the zone tells of the application.
        if way == .unnamed { files.sort { $0.identifier < $1.identifier } }
        let trace = DocumentReadings.trace(DocumentReadings.clear(files, way))
        #expect(DocumentReadings.files(in: trace) == files.map(\.bytes))
        let before = try trace.text()
        let redacted = redacted(trace)
        let text = try redacted.text()
        for secret in DocumentReadings.secrets {
            #expect(RedactionJudge.findings(of: secret, in: text) == [], "\(secret)")
        }
        #expect(!RedactionJudge.findings(of: "L898902C", in: before).isEmpty)
        #expect(RedactionJudge.findings(ofName: "ERIKSSON", "ANNA", in: text) == [])
        #expect(TraceRedaction.eventsWithAccountNumbers(in: redacted) == [])
        #expect(items(redacted) == [.document, .certificate])

        let results = Dictionary(
            uniqueKeysWithValues: zip(files.map(\.identifier), DocumentReadings.files(in: redacted)))
        let originals = Dictionary(uniqueKeysWithValues: files.map { ($0.identifier, $0.bytes) })
        let zone = try MachineReadableZone(parsing: try #require(results[0x0101]))
        #expect(
            zone.lines == [
                "P<UTOXXXXXXXX<<XXXX<XXXXX<<<<<<<<<<<<<<<<<<<", "X000000X00XXX7001017<3001019XX000000X<<<<<34",
            ])
        #expect(zone.checkDigits.filter { !$0.isRight } == [])
        if originals[0x0102] != nil {
            guard
                case .encodedFaces(let faces)? = try ParsedFile(
                    parsing: try #require(results[0x0102]), of: .dataGroup(2))
            else {
                Issue.record("no face")
                return
            }
            let face = try #require(faces.faces.first)
            // Drawn: DrawnImageTests decode it.
            #expect(DrawnImage.replacement(for: face.image.bytes[...]) == face.image.bytes)
        }
        for number in [0x0102, 0x010F] as [UInt16] {
            guard let old = originals[number] else { continue }
            // Of DG15 the algorithm stays, of DG2 the headers.
            #expect(survivors(of: Array(old.suffix(100)), in: redacted) == 0)
        }
        let old = try SecurityObject(try #require(originals[0x011D]))
        let new = try SecurityObject(try #require(results[0x011D]))
        #expect(old.dataGroupDigests.keys == new.dataGroupDigests.keys)
        #expect(new.dataGroupDigests.values.allSatisfy { $0.allSatisfy { $0 == 0 } })
        for digest in old.dataGroupDigests.values { #expect(survivors(of: digest, in: redacted) == 0) }
    }

    // MARK: Zones

    /// READ BINARY of `file` after SELECT of the application, in one answer; what comes of it.
    private func redacted(file: [UInt8]) throws -> [UInt8] {
        try #require(
            DocumentReadings.files(
                in: redacted(DocumentReadings.trace(DocumentReadings.clear([(0x0101, file)], .selected)))
            )
            .first)
    }

    /// Check digits by the program that the comment in ICAO 9303-3, 4.9 describes, by hand; the judge is TravelDocument.
    @Test(
        "a zone becomes that of nobody, in every format",
        arguments: [
            (
                DocumentReadings.passport,
                ["P<UTOXXXXXXXX<<XXXX<XXXXX<<<<<<<<<<<<<<<<<<<", "X000000X00XXX7001017<3001019XX000000X<<<<<34"]
            ),
            (
                DocumentReadings.identityCard,
                ["I<UTOX000000001<<<<<<<<<<<<<<<", "7001017<3001019XXX<<<<<<<<<<<6", "XXXXXXXX<<XXXX<XXXXX<<<<<<<<<<"]
            ),
            // A long number, ICAO 9303-5, 4.2.2.1; TD2, ICAO 9303-6, appendix B.
            (
                "I<UTOD23145890<7349<<<<<<<<<<<3407127M9507122UTO<<<<<<<<<<<2STEVENSON<<PETER<JOHN<<<<<<<<<",
                ["I<UTOX00000000<0001<<<<<<<<<<<", "7001017<3001019XXX<<<<<<<<<<<2", "XXXXXXXXX<<XXXXX<XXXX<<<<<<<<<"]
            ),
            (
                "I<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<D231458907UTO7408122F1204159<<<<<<<6",
                ["I<UTOXXXXXXXX<<XXXX<XXXXX<<<<<<<<<<<", "X000000001XXX7001017<3001019<<<<<<<6"]
            ),
        ])
    func zones(_ zone: String, _ expected: [String]) throws {
        let file = try redacted(file: TLVTag(0x61).encode(TLVTag(0x5F1F).encode(Array(zone.utf8))))
        let new = try MachineReadableZone(parsing: file)
        #expect(new.lines == expected)
        #expect(new.checkDigits.filter { !$0.isRight } == [])
    }

    @Test("of a zone that is none, or not there whole, only its fillers are left")
    func zoneInParts() throws {
        let wrong = Array("P<UTOERIKSSON<<ANNA<MARIA<L898902C36".utf8)
        #expect(
            try redacted(file: [0x61, 0x27, 0x5F, 0x1F, 0x24] + wrong).dropFirst(5).elementsEqual(
                "X<XXXXXXXXXXX<<XXXX<XXXXX<X000000X00".utf8))
        // The file says that it goes on.
        let part = [0x61, 0x5B, 0x5F, 0x1F, 0x58] + wrong
        #expect(try redacted(file: part).dropFirst(5).elementsEqual("X<XXXXXXXXXXX<<XXXX<XXXXX<X000000X00".utf8))
    }

    @Test("what is read from the middle of a file, or of a file that is not known, becomes zeros")
    func withoutBeginning() throws {
        let select = "0.000000000 > apdu 00A4040C07A0000002471001\n0.000000000 < apdu 9000\n"
        func answers(_ lines: String...) throws -> [String] {
            let trace = try Trace(text: "apdu-trace 1\n" + select + lines.map { "0.000000000 \($0)\n" }.joined())
            return try redacted(trace).text().split(separator: "\n").filter { $0.contains("< apdu") }.dropFirst()
                .map { String($0.split(separator: " ")[3]) }
        }
        // Without what is between; with another file's beginning before.
        #expect(
            try answers("> apdu 00B0000004", "< apdu 615B5F1F9000", "> apdu 00B0002004", "< apdu 4B53534F9000")
                == ["615B00009000", "000000009000"])
        #expect(try answers("> apdu 00B0002004", "< apdu 4B53534F9000") == ["000000009000"])
        #expect(try answers("> apdu 00B10000045402002000", "< apdu 53044B53534F9000") == ["530400000000" + "9000"])
        #expect(try answers("> apdu 00B0000006", "< apdu 5A044B53534F9000") == ["000000000000" + "9000"])
        // A cryptogram without anything, at the end.
        #expect(try answers("> apdu 0CB0000000", "< apdu 990290008E024B5387009000") == ["990290008E02000087009000"])
        // A command that is none, and the answer to it.
        #expect(try answers("> apdu 0CB0000005970104", "< apdu 4B53534F9000") == ["000000009000"])
        // The proof of the key, and a challenge.
        #expect(
            try answers("> apdu 0088000008010203040506070800", "< apdu 4B53534F4B53534F9000")
                == ["00000000000000009000"])
        #expect(try answers("> apdu 0084000008", "< apdu 4B53534F4B53534F9000") == ["00000000000000009000"])
    }

    @Test("another card's files stay, also after a travel document")
    func otherCards() throws {
        let trace = try Trace(
            text: """
                apdu-trace 1
                0.000000000 > apdu 00A4040C07A0000002471001
                0.000000000 < apdu 9000
                0.000000000 > apdu 00A4040007D276000085010100
                0.000000000 < apdu 9000
                0.000000000 > apdu 00B0000008
                0.000000000 < apdu D1010451656E49009000
                0.000000000 > apdu 0084000008
                0.000000000 < apdu 4B53534F4B53534F9000
                0.000000000 > apdu 00A4040C07A0000002471001
                0.000000000 < apdu 9000
                0.000000000 > apdu FFD60004044B53534F
                0.000000000 < apdu 9000
                0.000000000 > apdu FFB0000404
                0.000000000 < apdu 4B53534F9000

                """)
        let redacted = redacted(trace)
        #expect(redacted.exchanges().map(\.answer) == trace.exchanges().map(\.answer))
        #expect(redacted.exchanges().map(\.command) == trace.exchanges().map(\.command))
        #expect(items(redacted) == [])
    }

    /// Tag, length and value in hexadecimal, with objects inside already encoded.
    private static func object(_ tag: String, _ parts: String...) -> String { object(tag, parts) }

    private static func object(_ tag: String, _ parts: [String]) -> String {
        let value = parts.joined()
        return tag + [UInt8(value.count / 2)].hex + value
    }

    /// A file of each kind: what it is made of, with the part that goes, and what is in its place.
    private static let kinds: [(file: @Sendable (String) -> String, secret: String, instead: String)] = [
        // DG2 of ISO/IEC 39794-5, with JPEG 2000; the date in a biometric header (ICAO 9303-10, 4.7.2).
        (
            {
                object("75", object("7F61", object("7F60", object("A1", "88020008"), object("7F2E", object("A1", $0)))))
            },
            "8010" + "0000000C6A5020200D0A870A" + "4B53534F", "8010" + "0000000C6A5020200D0A870A" + "00000000"
        ),
        (
            { object("75", object("7F61", object("7F60", object("A1", "810102", object("83", $0), "88020008")))) },
            "20200102030405", "00000000000000"
        ),
        // A face record with one point (ISO/IEC 19794-5:2005, 5): 20 bytes, sex to pose, the point, the image's format.
        (
            { "7540" + "7F613D" + "7F603A" + "5F2E37" + "46414300303130000000003700010000" + "00290001" + $0 },
            "0201020304050607080910111213" + "0102030405060708" + "0101003C0050000000000000" + "FF4B",
            "0000000000000000000000000000" + "0000000000000000" + "0101003C0050000000000000" + "0000"
        ),
        // DG3, a finger; DG5, DG7.
        ({ object("63", object("7F61", object("7F60", object("5F2E", "464952003031302000" + $0)))) }, "4B53", "0000"),
        ({ object("65", "020101", object("5F40", "FFD8FF" + $0)) }, "E04B53534F", "0000000000"),
        ({ object("67", "020101", object("5F43", $0)) }, "4B53534F", "00000000"),
        // Dates in digits and in halves of bytes (ICAO 9303-10, 4.7.11); letters that are not of ASCII; bytes that are none.
        ({ object("6B", "5C025F2B", object("5F2B", $0)) }, "19740812", "19700101"),
        ({ object("6C", object("5F55", $0)) }, "3230323630313032313233343536", "3139373030313031303030303030"),
        ({ object("6C", object("5F55", $0)) }, "20260101123456", "19700101000000"),
        ({ object("6B", object("5F0E", $0)) }, "C396737472C3B66D3C31", "58585858585858583C30"),
        ({ object("6B", object("5F10", $0)) }, "4B53010203", "0000000000"),
        // DG14: the algorithm and the key (RFC 5280, 4.1).
        (
            {
                object(
                    "6E", object("31", object("30", object("06", "04007F000702020102"), object("30", "300306012A", $0)))
                )
            },
            "0304" + "004B5353", "0304" + "00000000"
        ),
        // EF.CardSecurity (RFC 5652, 5.1): the key inside, the certificate, the signature.
        (
            { key in
                object(
                    "30", object("06", "2A864886F70D010702"),
                    object(
                        "A0",
                        object(
                            "30", "0201033100",
                            object("30", "06012A", object("A0", object("04", object("31", object("30", key))))),
                            object("A0", object("30", "0303004B53")), object("31", object("30", "0402" + "0000")))))
            }, "0303" + "004B53", "0303" + "000000"
        ),
    ]

    @Test("of each object goes what tells of a person, and what tells its form stays", arguments: kinds.indices)
    func objects(_ index: Int) throws {
        let (file, secret, instead) = Self.kinds[index]
        #expect(try redacted(file: [UInt8](hex: file(secret))).hex == file(instead))
    }

    @Test("signed data lose digests and signature, whatever the signature looks like, and keep certificates")
    func signedData() throws {
        func file(_ digest: String, _ attribute: String, _ signature: String) -> String {
            func object(_ tag: String, _ parts: [String]) -> String { Self.object(tag, parts) }
            let content = object("30", ["020100", object("30", [object("30", ["020101", object("04", [digest])])])])
            let signer = object(
                "30", ["020101", object("A0", [object("31", [object("04", [attribute])])]), object("04", [signature])])
            let signed = object(
                "30",
                [
                    "0201033100", object("30", ["06012A", object("A0", [object("04", [content])])]),
                    object("A0", [object("30", ["04024B53", "0303004B53"])]), object("31", [signer]),
                ])
            return object("77", [object("30", [object("06", ["2A864886F70D010702"]), object("A0", [signed])])])
        }
        // An ECDSA signature is a sequence of two numbers (RFC 3279, 2.2.3).
        #expect(
            try redacted(file: [UInt8](hex: file("4B53534F", "4B53", "30060201020201" + "03"))).hex
                == file("00000000", "0000", "0000000000000000"))
    }

    // MARK: Text

    @Test(
        "what a file tells is looked for in notes",
        arguments: [
            ("passport L898902C3 of Eriksson, Anna Maria", "passport X000000X0 of XXXXXXXX, XXXX XXXXX"),
            ("born 12.08.1974, or 1974-08-12", "born 00.00.0000, or 1900-00-00"),
            ("l89 8902 c3", "X00 0000 X0"), ("the Erikssons", "the Erikssons"), ("ANNA", "XXXX"),
            (
                "zone L898902C36UTO7408122F1204159ZE184226B<<<<<10.",
                "zone X000000X00XXX0000000X0000000XX000000X<<<<<00."
            ),
            ("key L898902C3674081221204159", "key X000000X0000000000000000"),
            ("4C3839383930324333", "583030303030305830"),
            ("TDg5ODkwMkMz", "WDAwMDAwMFgw"), ("7 bytes, 1204 ms", "7 bytes, 1204 ms"),
        ])
    func notes(_ note: String, _ expected: String) throws {
        let zone = TLVTag(0x61).encode(TLVTag(0x5F1F).encode(Array(DocumentReadings.passport.utf8)))
        var trace = DocumentReadings.trace(DocumentReadings.clear([(0x0101, zone)], .odd))
        trace.events.append(TraceEvent(at: .zero, .note(note)))
        trace.events.append(TraceEvent(at: .zero, .meta(key: "anna", value: note)))
        trace.events.append(TraceEvent(at: .zero, .failed(.connect, TraceEvent.Failure(.cardMute, note))))
        let whats = redacted(trace).events.suffix(3).map(\.what)
        #expect(
            whats == [
                .note(expected), .meta(key: "xxxx", value: expected),
                .failed(.connect, TraceEvent.Failure(.cardMute, expected)),
            ])
    }

    // MARK: Layers, pieces, hostile input

    @Test("files in frames come out as from APDUs", arguments: FrameRedactionTests.Carrier.allCases)
    func frames(_ carrier: FrameRedactionTests.Carrier) async throws {
        let files =
            DocumentReadings.details + [
                (0x0101, TLVTag(0x61).encode(TLVTag(0x5F1F).encode(Array(DocumentReadings.passport.utf8))))
            ]
        let exchanges = DocumentReadings.clear(files, .selected, chunk: 40)
        let redacted = redaction.redacted(carrier.trace(exchanges, count: 30))
        #expect(TraceRedaction().findings(in: redacted).isEmpty)
        let raised = redacted.raised().trace.exchanges(on: [.apdu]).filter { !$0.command.starts(with: [0xFF, 0x00]) }
        #expect(raised.map(\.answer) == self.redacted(DocumentReadings.trace(exchanges)).exchanges().map(\.answer))
    }

    @Test("a session in frames loses the same", arguments: [FrameRedactionTests.Carrier.ccidT1, .air, .chip])
    func sessionInFrames(_ carrier: FrameRedactionTests.Carrier) async throws {
        let trace = try await DocumentReadings.encrypted("passport-bac", [1]).trace
        let exchanges = trace.exchanges(on: [.apdu]).compactMap { exchange in
            if case .bytes(let response)? = exchange.answer { (exchange.command, response) } else { nil }
        }
        let redacted = redaction.redacted(carrier.trace(exchanges, count: 30))
        #expect(items(redacted).contains(.session))
        let raised = redacted.raised().trace
        for (command, response) in exchanges where command[0] == 0x0C || command[1] == 0x82 {
            #expect(survivors(of: Array(command.dropFirst(5)), in: raised) == 0)
            #expect(survivors(of: response.dropLast(2), in: raised) == 0)
        }
    }

    @Test("a file longer than a piece of the trace is redacted as a whole")
    func pieces() throws {
        var face = Array("FAC\0".utf8) + [UInt8](repeating: 0, count: 42) + [0xFF, 0xD8, 0xFF]
        face += (0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 7 >> 3) }
        let file = TLVTag(0x75).encode(TLVTag(0x7F61).encode(TLVTag(0x7F60).encode(TLVTag(0x5F2E).encode(face))))
        for way in [DocumentReadings.Way.selected, .odd] {
            let trace = DocumentReadings.trace(
                DocumentReadings.clear(DocumentReadings.details + [(0x0102, file)], way, chunk: 16))
            var pieces = TracePieces(TraceReader(text: try trace.text()))
            var all: [TracePieces.Piece] = []
            while let piece = try pieces.next() { all.append(piece) }
            var secrets = TraceSecrets()
            secrets.beginPass()
            for piece in all { secrets.learn(from: piece) }
            var events: [TraceEvent] = []
            for piece in all {
                events += redaction.redacted(piece, knowing: &secrets, isFirst: false).events
            }
            let whole = redacted(trace).events.filter { if case .redacted = $0.what { false } else { true } }
            for (new, old) in zip(events, whole) { #expect(new == old) }
            #expect(events.count == whole.count)
            #expect(DocumentReadings.files(in: Trace(whole)).last?.suffix(20_000).allSatisfy { $0 == 0 } == true)
        }
    }

    @Test("changed files and sessions are redacted to a fixed point")
    func hostile() async throws {
        var dice = SplitMix(state: 9303)
        let encrypted = try await DocumentReadings.encrypted("passport", [1]).trace
        let certificate = try await Self.files.value.prefix(1)
        let traces = DocumentReadings.Way.allCases.filter { $0 != .unnamed }.map {
            DocumentReadings.trace(DocumentReadings.clear(certificate + DocumentReadings.details, $0, chunk: 100))
        }
        for trace in traces + [encrypted] {
            for _ in 0..<Tier.rounds(1, thorough: 10) {
                var changed = trace
                for _ in 0..<Int.random(in: 1...12, using: &dice) {
                    // What selects the application stays.
                    let index = Int.random(in: 2..<changed.events.count, using: &dice)
                    switch changed.events[index].what {
                    case .sent(let layer, var bytes) where !bytes.isEmpty:
                        bytes[Int.random(in: bytes.indices, using: &dice)] = UInt8.random(in: 0...255, using: &dice)
                        changed.events[index].what = .sent(layer, bytes)
                    case .received(let layer, var bytes) where !bytes.isEmpty:
                        bytes[Int.random(in: bytes.indices, using: &dice)] = UInt8.random(in: 0...255, using: &dice)
                        changed.events[index].what = .received(layer, bytes)
                    default: break
                    }
                }
                try TraceFuzzTargets.redaction(Array(changed.text().utf8))
            }
        }
    }
}
