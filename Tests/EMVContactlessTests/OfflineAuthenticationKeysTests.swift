import EMVContactless
import SmartCard
import TestSupport
import Testing

@Suite("CA public keys")
struct OfflineAuthenticationKeysTests {
    static let visa = bytes("A000000003")

    /// The key of index 99 of Visa's test keys, with the checksum that it was published with.
    static let text = """
        # a comment
        key test A000000003 99 exponent 03 checksum 4ABFFD6B1C51212D05552E431C5B17007D2F5E6D   # another
            modulus AB79FCC9520896967E776E64444E5DCDD6E13611874F3985722520425295EEA4BD0C2781DE7F31CD3D041F565F747306
                    EED62954B17EDABA3A6C5B85A1DE1BEB9A34141AF38FCF8279C9DEA0D5A6710D08DB4124F041945587E20359BAB47B75
                    75AD94262D4B25F264AF33DEDCF28E09615E937DE32EDC03C54445FE7E382777

        revoked A000000003 99 000102
        """

    // MARK: Published keys

    @Test("The published keys are all there, and each matches the checksum that was published with it")
    func published() throws {
        // Reading verifies the checksums: a text that can be read is right.
        let keys = try CAPublicKeys(parsing: CAPublicKeys.publishedText).all
        expectEqual(keys, CAPublicKeys.published.all)
        func count(_ environment: CAPublicKey.Environment, _ rid: String) -> Int {
            keys.filter { $0.environment == environment && $0.rid.hex == rid }.count
        }
        let rids = ["A000000003", "A000000004", "A000000025", "A000000065", "A000000152", "A000000333"]
        expectEqual(rids.map { count(.live, $0) }, [4, 4, 4, 3, 3, 4])
        expectEqual(rids.map { count(.test, $0) }, [13, 13, 15, 3, 5, 5])
        expectEqual(keys.count, 76)
    }

    /// Index, bits and first eight bytes, as several lists have them.
    @Test(
        "Known live keys",
        arguments: [
            ("A000000003", 0x09, 1984, "9D912248DE0A4E39"), ("A000000004", 0x06, 1984, "CB26FC830B43785B"),
            ("A000000004", 0x05, 1408, "B8048ABC30C90D97"), ("A000000025", 0x10, 1984, "CF98DFEDB3D37279"),
            ("A000000065", 0x14, 1984, "AEED55B9EE00E1EC"), ("A000000152", 0x05, 1984, "E1200E9F4428EB71"),
            ("A000000333", 0x04, 1984, "BC853E6B5365E89E"),
        ] as [(String, UInt8, Int, String)])
    func known(_ rid: String, _ index: UInt8, _ bits: Int, _ start: String) throws {
        let key = try #require(CAPublicKeys.published[.live, bytes(rid), index])
        expectEqual(key.modulus.count * 8, bits)
        expectEqual(key.modulus.prefix(8).hex, start)
        expectEqual(CAPublicKeys.published[.test, bytes(rid), index], nil)
    }

    @Test("Keys whose last day has passed in 2026 are marked, those in use are not past it")
    func expired() throws {
        let today = try #require(CalendarDate(year: 2026, month: 1, day: 1))
        let live = CAPublicKeys.published.all.filter { $0.environment == .live }
        let inUse = live.filter { $0.expiration.map { $0 >= today } ?? true }
        #expect(inUse.allSatisfy { $0.modulus.count * 8 == 1984 })
        expectEqual(inUse.count, 6)
        #expect(CAPublicKeys.published.all.allSatisfy { $0.environment == .live || $0.expiration == nil })
    }

    // MARK: The file

    @Test("A file is read: comments, continuation, revocation")
    func file() throws {
        let keys = try CAPublicKeys(parsing: Self.text)
        let key = try #require(keys[.test, Self.visa, 0x99])
        expectEqual(keys.all, [key])
        expectEqual(key.exponent, [3])
        expectEqual(key.expiration, nil)
        expectEqual(key.checksum.hex, "4ABFFD6B1C51212D05552E431C5B17007D2F5E6D")
        expectEqual(key, CAPublicKeys.published[.test, Self.visa, 0x99])
        expectEqual(keys.revoked, [RevokedCertificate(rid: Self.visa, index: 0x99, serialNumber: [0, 1, 2])])
        #expect(try CAPublicKeys(parsing: "").all.isEmpty)
        // Carriage returns, and a day.
        let dated = Self.text.replacing("99 exponent", with: "99 expires 2031-12-31 exponent")
            .replacing("\n", with: "\r\n")
        try expectEqual(CAPublicKeys(parsing: dated).all.map { $0.expiration.map { "\($0)" } }, ["2031-12-31"])
    }

    @Test("Later keys come in the place of earlier ones")
    func merge() throws {
        var keys = try CAPublicKeys(parsing: Self.text)
        let dated = try CAPublicKeys(
            parsing: Self.text.replacing("99 exponent", with: "99 expires 2031-12-31 exponent")
                .replacing("99 000102", with: "99 000103"))
        keys.merge(dated)
        expectEqual(keys.all.map { $0.expiration?.year }, [2031])
        expectEqual(keys.revoked.count, 2)
        var all = CAPublicKeys.published
        all.merge(dated)
        expectEqual(all.all.count, 76)
    }

    @Test(
        "What is no such file is refused at its line",
        arguments: [
            ("key test A000000003 99 exponent 03", "key test A000000003 99 exponent 02", 2),
            ("key test A000000003 99 exponent 03", "key test A000000003 99 exponent 11", 2),
            ("key test A000000003 99 exponent 03", "key test A000000003 99 exponent 00000003", 2),
            ("key test A000000003 99 exponent 03", "key test A000000003 98 exponent 03", 2),
            ("key test A000000003 99 exponent 03", "key test A000000004 99 exponent 03", 2),
            ("key test A000000003 99 exponent 03", "key test A0000000 99 exponent 03", 2),
            ("key test A000000003 99 exponent 03", "key test A000000003 9 exponent 03", 2),
            ("key test A000000003 99 exponent 03", "key test A000000003 exponent 03", 2),
            ("key test A000000003 99 exponent 03", "key prod A000000003 99 exponent 03", 2),
            ("key test A000000003 99 exponent 03", "kay test A000000003 99 exponent 03", 2),
            ("key test A000000003 99 exponent 03", "key test A000000003 99 03", 2),
            ("key test A000000003 99 exponent 03", "key test A000000003 99 expires 2031-02-29 exponent 03", 2),
            ("key test A000000003 99 exponent 03", "key test A000000003 99 expires 31-12-31 exponent 03", 2),
            ("key test A000000003 99 exponent 03", "key test A000000003 99 expires ٢٠٣١-12-31 exponent 03", 2),
            ("key test A000000003 99 exponent 03", "key test A000000003 99 expires exponent 03", 2),
            ("key test A000000003 99 exponent 03", "key test A000000003 99 exponent", 2),
            ("4ABFFD", "4ABFFE", 2), ("2F5E6D ", "2F5E ", 2), ("AB79FC", "AB79FD", 2), ("modulus", "modulo", 3),
            ("EED629", "EED62", 4), ("EED629", "EE-629", 4), ("EED629", "EE:D629", 4), ("7E382777", "7E38277G", 5),
            ("75AD94262D4B25F264AF33DEDCF28E09615E937DE32EDC03C54445FE7E382777", "", 2),
            ("revoked A000000003 99 000102", "revoked A000000003 99 0102", 7),
            ("revoked A000000003 99 000102", "revoked A000000003 99 000102 00", 7),
            ("revoked A000000003 99 000102", "revoked A000000003 99", 7),
            ("revoked A000000003 99 000102", "revoke A000000003 99 000102", 7),
            ("# a comment", " 00", 1), ("# a comment", "x", 1), ("# a comment", "revoked # A000000003", 1),
        ] as [(String, String, Int)])
    func refused(_ old: String, _ new: String, _ line: Int) throws {
        #expect(Self.text.contains(old))
        let error = #expect(throws: CAPublicKeyFileError.self) {
            try CAPublicKeys(parsing: Self.text.replacing(old, with: new))
        }
        expectEqual(error?.line, line, "\(error.map { "\($0)" } ?? "")")
    }

    @Test("A key twice in one file is refused; a file in pieces does no harm")
    func pieces() throws {
        let error = #expect(throws: CAPublicKeyFileError.self) {
            try CAPublicKeys(parsing: Self.text + "\n" + Self.text)
        }
        expectEqual(error?.line, 9)
        for length in 0..<Self.text.utf8.count {
            _ = try? CAPublicKeys(parsing: Self.text.prefix(length))
            _ = try? CAPublicKeys(parsing: Self.text.dropFirst(length))
        }
    }

    // MARK: Keys

    @Test("A key is taken only with the right checksum")
    func key() throws {
        let good = try #require(CAPublicKeys.published[.live, Self.visa, 0x09])
        func make(
            rid: [UInt8]? = nil, modulus: [UInt8]? = nil, exponent: [UInt8] = [3], checksum: [UInt8]? = nil
        ) throws(CAPublicKeyError) -> CAPublicKey {
            try CAPublicKey(
                environment: .live, rid: rid ?? good.rid, index: 9, modulus: modulus ?? good.modulus,
                exponent: exponent,
                checksum: checksum ?? good.checksum, expiration: good.expiration)
        }
        try expectEqual(make(), good)
        #expect(throws: CAPublicKeyError.rid) { try make(rid: [0xA0]) }
        #expect(throws: CAPublicKeyError.modulus) { try make(modulus: []) }
        #expect(throws: CAPublicKeyError.modulus) { try make(modulus: [UInt8](repeating: 0xFF, count: 63)) }
        #expect(throws: CAPublicKeyError.modulus) { try make(modulus: good.modulus + [1]) }
        // 64 bytes are enough, and it is the checksum that is wrong.
        #expect(throws: CAPublicKeyError.checksum) { try make(modulus: [UInt8](repeating: 0xFF, count: 64)) }
        for exponent in [[], [1], [2], [17], [0, 0, 0, 3], [1, 0, 2]] as [[UInt8]] {
            #expect(throws: CAPublicKeyError.exponent) { try make(exponent: exponent) }
        }
        #expect(throws: CAPublicKeyError.checksum) { try make(exponent: [1, 0, 1]) }
        #expect(throws: CAPublicKeyError.checksum) { try make(checksum: []) }
        #expect(throws: CAPublicKeyError.checksum) { try make(checksum: [UInt8](repeating: 0, count: 20)) }
    }

    @Test("Dates: days that there are, and their order")
    func dates() throws {
        let leap = try #require(CalendarDate(year: 2024, month: 2, day: 29))
        expectEqual("\(leap)", "2024-02-29")
        expectEqual(CalendarDate(packed: [0x24, 0x02, 0x29]), leap)
        expectEqual(CalendarDate(packed: [0x99, 0x12, 0x31])?.year, 1999)
        for bytes in [
            [], [0x24, 0x02], [0x23, 0x02, 0x29], [0x24, 0x13, 0x01], [0x24, 0x04, 0x31], [0x24, 0x04, 0x00],
        ]
            as [[UInt8]]
        {
            expectEqual(CalendarDate(packed: bytes), nil)
        }
        expectEqual(CalendarDate(packed: [0x24, 0x04, 0x1A]), nil)
        expectEqual(CalendarDate(packed: [0x24, 0x04, 0xA1]), nil)
        expectEqual(CalendarDate(year: 2100, month: 2, day: 29), nil)
        #expect(CalendarDate(year: 2000, month: 2, day: 29) != nil)
        expectEqual(CalendarDate(year: 0, month: 1, day: 1), nil)
        let next = try #require(CalendarDate(year: 2024, month: 3, day: 1))
        #expect(leap < next)
        let february = try #require(ExpirationDate(yymm: "2402"))
        #expect(!february.isOver(on: leap))
        #expect(february.isOver(on: next))
    }
}
