import SmartCard
import TestSupport
import Testing

@testable import TravelDocument

/// Files that somebody made to harm, or that a chip cut off.
@Suite struct ParsingHostileTests {
    private func parse(_ bytes: [UInt8], _ file: ElementaryFile) -> TravelDocumentFormatError? {
        do {
            _ = try ParsedFile(parsing: bytes, of: file)
            return nil
        } catch {
            return error
        }
    }

    @Test("Each fixture is parsed; each of its beginnings is not, and the error is within the file")
    func truncated() throws {
        for (file, text) in ParsingFixtures.all {
            let bytes = try listing(text)
            expectEqual(parse(bytes, file), nil, "\(file)")
            for count in 0..<bytes.count {
                let error = try #require(parse(Array(bytes.prefix(count)), file), "\(file), \(count)")
                #expect(error.file == file && (0...bytes.count).contains(error.offset))
            }
            // Bytes after the file are not part of it.
            expectEqual(parse(bytes + [0x04, 0x00], file)?.due, .end)
            expectEqual(parse(bytes + [0x04, 0x00], file)?.offset, bytes.count)
            #expect(parse(bytes + [0x00], file) != nil)
        }
    }

    @Test("Contents that are cut off under a right length are refused or read, and never trap")
    func shortened() throws {
        var refused = 0
        for (file, text) in ParsingFixtures.all {
            let bytes = try listing(text)
            let contents = bytes.dropFirst(bytes[1] < 0x80 ? 2 : 3)
            for count in 0..<contents.count {
                let tag = TLVTag(rawValue: UInt32(try #require(file.tag)))
                if parse(tag.encode(contents.prefix(count)), file) != nil { refused += 1 }
            }
        }
        #expect(refused > 900)
    }

    @Test("Each byte changed, in eleven ways: no trap, and errors within the file")
    func changed() throws {
        var refused = 0
        for (file, text) in ParsingFixtures.all {
            let bytes = try listing(text)
            for index in bytes.indices {
                let changes = (0..<8).map { bytes[index] ^ 1 << UInt8($0) } + [0x00, 0xFF, ~bytes[index]]
                for value in changes {
                    var changed = bytes
                    changed[index] = value
                    guard let error = parse(changed, file) else { continue }
                    refused += 1
                    #expect((0...bytes.count).contains(error.offset), "\(file) \(index) \(value): \(error)")
                    #expect(!error.description.isEmpty)
                }
            }
        }
        #expect(refused > 1000)
    }

    @Test(
        "A fault is named by its offset and by what was due",
        arguments: [
            // EF.COM
            (.com, "61 00", 0, .object(0x60)),
            (.com, "60 00", 2, .object(0x5F01)),
            (.com, #"60 06 5F01 03 "017""#, 5, .length(4...4)),
            (.com, #"60 07 5F01 04 "01x7""#, 7, .element(.digits)),
            (.com, #"60 13 5F01 04 "0107" 5F36 06 "040000" 5C 01 5F"#, 20, .element(.tagList)),
            (.com, #"60 17 5F01 04 "0107" 5F36 06 "040000" 5C 05 5FFFFFFF01"#, 20, .element(.tagList)),
            (.com, #"60 14 5F01 04 "0107" 5F36 06 "040000" 5C 00 04 00"#, 20, .end),
            // DG1
            (.dataGroup(1), "61 03 5F1F 00", 5, .length(72...90)),
            (.dataGroup(1), #"61 06 5F1F 03 "A b""#, 6, .element(.zoneCharacter)),
            (.dataGroup(1), "61 02 04 00", 2, .object(0x5F1F)),
            // DG2
            (.dataGroup(2), "75 02 02 00", 2, .object(0x7F61)),
            (.dataGroup(2), "75 06 7F61 03 02 01 00", 7, .number(1...9)),
            (.dataGroup(2), "75 06 7F61 03 02 01 0A", 7, .number(1...9)),
            (.dataGroup(2), "75 07 7F61 04 02 02 0001", 7, .length(1...1)),
            (.dataGroup(2), "75 06 7F61 03 02 01 01", 8, .object(0x7F60)),
            (.dataGroup(2), "75 0B 7F61 08 02 01 01 7F60 02 A1 00", 13, .object(0x87)),
            (
                .dataGroup(2), "75 18 7F61 15 02 01 01 7F60 0F A1 08 87 02 0101 88 02 0008 5F2E 02 4641", 24,
                .element(.faceRecord)
            ),
            (.dataGroup(2), "75 0E 7F61 0B 02 01 01 7F60 05 A1 03 87 01 01", 15, .length(2...2)),
            (
                .dataGroup(2), "75 15 7F61 12 02 01 01 7F60 0C A1 0A 87 02 0101 87 02 0101 80 00", 17,
                .singleObject(0x87)
            ),
            // DG5, DG7
            (.dataGroup(5), "65 06 02 01 01 5F40 00", 8, .element(.image)),
            (.dataGroup(5), "65 06 02 01 01 5F43 00", 5, .object(0x5F40)),
            (.dataGroup(7), "67 09 02 01 01 5F43 01 00 04 00", 9, .end),
            // DG11, DG12
            (.dataGroup(11), "6B 03 5F0E 00", 2, .object(0x5C)),
            (.dataGroup(11), "6B 08 5C 00 5F10 00 5F10 00", 7, .singleObject(0x5F10)),
            (.dataGroup(11), "6B 0A 5C 00 A0 06 02 01 02 5F0F 00", 12, .object(0x5F0F)),
            (.dataGroup(11), "6B 0A 5C 00 A0 06 02 01 00 5F0F 00", 9, .end),
            (.dataGroup(11), "6B 07 5C 00 A0 03 02 01 64", 8, .number(0...99)),
            (.dataGroup(12), "6C 06 5C 00 5F26 01 01", 7, .element(.date)),
            // DG16
            (.dataGroup(16), "70 03 02 01 10", 4, .number(0...15)),
            (.dataGroup(16), "70 05 02 01 01 A2 00", 5, .object(0xA1)),
            (.dataGroup(16), "70 08 02 01 01 A1 03 5F54 00", 7, .end),
            (.dataGroup(16), "70 80 00 00", 1, .dataObjects(.indefiniteLength)),
            (.dataGroup(16), "70 84 FFFFFFFF", 1, .dataObjects(.truncatedValue(claimed: 4_294_967_295, available: 0))),
            (.dataGroup(16), "", 0, .object(0x70)),
        ] as [(ElementaryFile, String, Int, TravelDocumentFormatError.Due)])
    func faults(_ file: ElementaryFile, _ text: String, _ offset: Int, _ due: TravelDocumentFormatError.Due) throws {
        let error = try #require(parse(listing(text), file))
        expectEqual(error, TravelDocumentFormatError(file: file, offset: offset, due: due))
        #expect(error.description.hasPrefix("\(file), byte \(error.offset): "))
    }

    @Test(
        "Numbers in a face record that claim more than there is are refused",
        arguments: [
            // Offsets in the fixture: the record's length, its number of faces, the block's length, its feature points.
            (67, "FFFFFFFF"), (67, "00000000"), (67, "7FFFFFFF"), (71, "FFFF"), (71, "0003"), (71, "0000"),
            (73, "FFFFFFFF"), (73, "00000000"), (73, "0000002F"), (73, "00000030"), (73, "80000000"), (77, "FFFF"),
            (77, "0005"), (77, "2000"),
        ])
    func hugeFaces(_ offset: Int, _ value: String) throws {
        var bytes = try listing(ParsingFixtures.dg2Old)
        #expect(bytes[59..<67].elementsEqual([0x46, 0x41, 0x43, 0, 0x30, 0x31, 0x30, 0]))
        let value = try hex(value)
        bytes.replaceSubrange(offset..<offset + value.count, with: value)
        let error = try #require(parse(bytes, .dataGroup(2)))
        #expect((59...bytes.count).contains(error.offset))
    }

    @Test("A file of a mebibyte is the longest, and one of 20,000 objects has too many")
    func limits() throws {
        let most = FileReader.maximumLength
        let header = 5
        expectEqual(parse(TLVTag(0x6D).encode([UInt8](repeating: 0xFF, count: most - header)), .dataGroup(13)), nil)
        expectEqual(
            parse(TLVTag(0x6D).encode([UInt8](repeating: 0, count: most - header + 1)), .dataGroup(13)),
            TravelDocumentFormatError(file: .dataGroup(13), offset: most, due: .size(most)))
        let many = TLVTag(0x6B).encode([0x5C, 0x00] + (0..<20_000).flatMap { _ in [0x04, 0x00] as [UInt8] })
        expectEqual(parse(many, .dataGroup(11))?.due, .dataObjects(.tooMany))
        let deep = (0..<20).reduce([UInt8]()) { inner, _ in TLVTag(0xA0).encode(inner) }
        expectEqual(parse(TLVTag(0x70).encode(deep), .dataGroup(16))?.due, .dataObjects(.tooDeep))
    }

    @Test("Other files are not parsed here")
    func others() throws {
        let files: [ElementaryFile] = [
            .sod, .cardAccess, .cardSecurity, .dataGroup(3), .dataGroup(0), .dataGroup(99),
        ]
        for file in files { try expectEqual(ParsedFile(parsing: [0x60], of: file), nil) }
    }

    @Test("Nothing that was parsed prints what it contains, and no error does")
    func masked() throws {
        let secrets = [
            "ERIKSSON", "L898902C", "740812", "1974", "SMITH", "MAPLE", "16125551212", "BROWN", "赵", "BRENDA", "MÜLLER",
            "1966", "FFD8", "255, 216", "A1B2", "161, 178", "STEEN", "N-4962", "TRAVEL AGENT",
        ]
        func check(_ value: Any) {
            var text = String(describing: value) + String(reflecting: value)
            dump(value, to: &text)
            for secret in secrets { #expect(!text.contains(secret), "\(type(of: value))") }
        }
        for (file, text) in ParsingFixtures.all {
            let parsed = try #require(try ParsedFile(parsing: listing(text), of: file))
            check(parsed)
            // What is in it masks itself, too.
            func checkParts(_ value: Any) {
                check(value)
                switch value {
                case let zone as MachineReadableZone:
                    for part in [zone.name, zone.dateOfBirth, zone.checkDigits] as [Any] { check(part) }
                case let faces as EncodedFaces:
                    for part in [faces.templates, faces.faces, faces.templates[0].encoding] as [Any] { check(part) }
                    for face in faces.faces { check([face.image as Any, face.information as Any]) }
                case let details as AdditionalPersonalDetails:
                    check([details.fullName as Any, details.otherNames, details.fullDateOfBirth as Any])
                    check([details.proofOfCitizenship as Any, details.otherObjects])
                case let persons as PersonsToNotify: check(persons.persons)
                case let options as SecurityOptions: check([options.infos, options.infos.map(\.details)] as [Any])
                default: break
                }
            }
            switch parsed {
            case .commonDataElements(let value): checkParts(value)
            case .machineReadableZone(let value): checkParts(value)
            case .encodedFaces(let value): checkParts(value)
            case .displayedPortraits(let value): checkParts(value)
            case .displayedSignatures(let value): checkParts(value)
            case .additionalPersonalDetails(let value): checkParts(value)
            case .additionalDocumentDetails(let value): checkParts(value)
            case .optionalDetails(let value): checkParts(value)
            case .personsToNotify(let value): checkParts(value)
            case .securityOptions(let value): checkParts(value)
            case .activeAuthenticationPublicKey(let value): checkParts(value)
            case .atrInfo: break
            }
        }
    }
}
