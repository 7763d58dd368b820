import EMVContactless
import SmartCard
import TestSupport
import Testing

/// Cards minted by a program that knows nothing of the code here: see `Minting/mint.py`.  Account numbers are published
/// test numbers of the schemes, or made up from them.
@Suite("Offline data authentication: minted cards", .computing)
struct OfflineAuthenticationTests {
    static let minted = Minted.all
    static let names = minted.cards.map(\.name)

    private func card(_ name: String) throws -> (Minted.Card, Card) {
        let minted = try #require(Self.minted.cards.first { $0.name == name })
        return (minted, Card(minted))
    }

    private var ordinary: (Minted.Card, Card) { get throws { try card("ordinary") } }

    // MARK: What verifies

    @Test(
        "Every size of keys, both exponents, remainders and filling: the keys are those that were minted",
        arguments: names)
    func keys(_ name: String) throws {
        let (minted, card) = try card(name)
        let key = try card.iccKey().get()
        expectEqual(key.modulus.hex, minted.iccKey.modulus)
        expectEqual(key.exponent.hex, minted.iccKey.exponent)
        expectEqual(key.serialNumber.hex, "000102")
        expectEqual(key.issuerKey.modulus.hex, minted.issuerKey.modulus)
        expectEqual(key.issuerKey.exponent.hex, minted.issuerKey.exponent)
        expectEqual(key.issuerKey.serialNumber.hex, "0A0B0C")
        expectEqual(key.issuerKey.caIndex, bytes(minted.index)[0])
        try expectEqual(card.issuerKey().get(), key.issuerKey)
        let pinKey = try card.pinEnciphermentKey().get()
        expectEqual(pinKey.modulus, key.modulus)
        expectEqual(pinKey.serialNumber.hex, "000103")
    }

    @Test("The minted cards have the sizes that they are for")
    func sizes() throws {
        let sizes = Self.minted.cards.map { card in
            [card.caKey, card.issuerKey, card.iccKey].map { $0.modulus.utf8.count * 4 }
        }
        expectEqual(
            sizes,
            [
                [1408, 1408, 1152], [1152, 1008, 992], [1984, 1408, 640], [1408, 1120, 784], [1984, 1984, 1984],
                [1016, 904, 808],
            ])
        expectEqual(Set(Self.minted.cards.map(\.caKey.exponent)), ["03", "010001"])
        let withRemainder = Self.minted.cards.filter { $0.objects["92"] != nil }.map(\.name)
        expectEqual(withRemainder, ["ordinary", "odd", "longest", "bytes"])
    }

    @Test("SDA", arguments: names)
    func sda(_ name: String) throws {
        let (_, card) = try card(name)
        let data = try card.sda().get()
        expectEqual(data.dataAuthenticationCode.hex, "DAC5")
        expectEqual(data.issuerKey, try card.issuerKey().get())
    }

    @Test("DDA", arguments: names)
    func dda(_ name: String) throws {
        let (minted, card) = try card(name)
        let data = try card.iccKey().get().dda(
            bytes(minted.dda), terminalData: Self.minted.unpredictableNumber
        ).get()
        expectEqual(data.iccDynamicNumber.hex, "0102030405060708")
        #expect(data.rest.isEmpty)
    }

    @Test("DDA with as many dynamic data as the key has room for")
    func fullDDA() throws {
        let key = try ordinary.1.iccKey().get()
        let data = try key.dda(bytes(Self.minted.fullDDA), terminalData: Self.minted.unpredictableNumber).get()
        #expect(data.iccDynamicNumber == [0x01, 0x02] && data.rest.count == key.modulus.count - 28)
    }

    @Test("CDA at both GENERATE AC, over filling and lengths as they were sent", arguments: names)
    func cda(_ name: String) throws {
        let (minted, card) = try card(name)
        let key = try card.iccKey().get()
        let first = try key.cda(
            response: bytes(minted.cdaFirst), transactionData: Self.minted.firstTransactionData,
            unpredictableNumber: Self.minted.unpredictableNumber
        ).get()
        expectEqual(first.cryptogramInformationData, 0x80)
        expectEqual(first.applicationCryptogram.hex, Self.minted.cryptogram)
        expectEqual(first.dynamicData.iccDynamicNumber.hex, "C0FFEE00C0FFEE00")
        expectEqual(first.dynamicData.rest.hex, key.modulus.count >= 128 ? "A55A" : "")
        let second = try key.cda(
            response: bytes(minted.cdaSecond), transactionData: Self.minted.secondTransactionData,
            unpredictableNumber: Self.minted.secondUnpredictableNumber
        ).get()
        expectEqual(second.cryptogramInformationData, 0x40)
        expectEqual(second.dynamicData.iccDynamicNumber.hex, "0102")
    }

    @Test("fDDA for an offline approval and for a transaction that goes online", arguments: names)
    func fdda(_ name: String) throws {
        let (minted, card) = try card(name)
        let key = try card.iccKey().get()
        let offline = Self.minted.fddaData(minted.fddaOffline)
        let online = Self.minted.fddaData(minted.fddaOnline)
        try expectEqual(key.fdda(for: .offlineApproval) { offline[$0] }.get().iccDynamicNumber.hex, "0011")
        try expectEqual(key.fdda(for: .onlineAuthorization) { online[$0] }.get().iccDynamicNumber.hex, "0011")
        // A signature for the one is none for the other.
        let wrong = AuthenticationFailure(.signedDynamicData, .format)
        expectEqual(key.fdda(for: .offlineApproval) { online[$0] }, .failure(wrong))
        expectEqual(key.fdda(for: .onlineAuthorization) { offline[$0] }, .failure(wrong))
    }

    @Test("The account number is that of track 2 where there is no 5A, and that of 5A where there is")
    func accountNumber() throws {
        var (_, card) = try card("filled")
        expectEqual(card.objects[0x5A], nil)
        card.objects[0x57] = nil
        expectEqual(card.issuerKey(), .failure(AuthenticationFailure(.accountNumber, .missing(0x5A))))
        card.objects[0x57] = "4761739001010000003F"
        expectEqual(card.issuerKey(), .failure(AuthenticationFailure(.accountNumber, .malformed(0x57))))
        card.objects[0x5A] = "47617390010100000A3F"
        expectEqual(card.issuerKey(), .failure(AuthenticationFailure(.accountNumber, .malformed(0x5A))))
        card.objects[0x5A] = "4761739001010000003F"
        #expect(throws: Never.self) { try card.iccKey().get() }
        // 8 to 19 digits.
        for number in ["4761739F", "47617390010100000033", "", "FF"] {
            card.objects[0x5A] = number
            expectEqual(card.issuerKey(), .failure(AuthenticationFailure(.accountNumber, .malformed(0x5A))))
        }
        card.objects[0x5A] = "47617390"
        #expect(throws: Never.self) { try card.issuerKey().get() }
        // Filled to the ten bytes that format cn may have, as 5A may be.
        (_, card) = try ordinary
        card.objects[0x5A] = "4761739001010010FFFF"
        #expect(throws: Never.self) { try card.iccKey().get() }
    }

    @Test("Certificates are valid to the last day of the month they name")
    func expiry() throws {
        var (_, card) = try ordinary
        card.date = (2030, 11, 30)
        #expect(throws: Never.self) { try card.iccKey().get() }
        card.date = (2030, 12, 1)
        expectEqual(card.iccKey(), .failure(AuthenticationFailure(.iccCertificate, .expired)))
        expectEqual(card.pinEnciphermentKey(), .failure(AuthenticationFailure(.pinEnciphermentCertificate, .expired)))
        card.date = (2031, 12, 31)
        #expect(throws: Never.self) { try card.issuerKey().get() }
        card.date = (2032, 1, 1)
        expectEqual(card.issuerKey(), .failure(AuthenticationFailure(.issuerCertificate, .expired)))
    }

    @Test("A revoked certificate, and others that are not")
    func revoked() throws {
        var (_, card) = try ordinary
        let rid = bytes("A000000003")
        card.keys.revoked = [
            RevokedCertificate(rid: rid, index: 0xE2, serialNumber: bytes("0A0B0C")),
            RevokedCertificate(rid: rid, index: 0xE1, serialNumber: bytes("0A0B0D")),
            RevokedCertificate(rid: bytes("A000000004"), index: 0xE1, serialNumber: bytes("0A0B0C")),
        ]
        #expect(throws: Never.self) { try card.iccKey().get() }
        card.keys.revoked.insert(RevokedCertificate(rid: rid, index: 0xE1, serialNumber: bytes("0A0B0C")))
        let failure = AuthenticationFailure(.issuerCertificate, .revoked)
        expectEqual(card.issuerKey(), .failure(failure))
        expectEqual(card.iccKey(), .failure(failure))
        expectEqual(card.sda(), .failure(failure))
    }

    @Test("A CA key that the terminal has not, or not in this environment")
    func authority() throws {
        var (_, card) = try ordinary
        let unknown = AuthenticationFailure(.caPublicKey, .unknownKey)
        card.environment = .live
        expectEqual(card.iccKey(), .failure(unknown))
        card.environment = .test
        card.aid = "A0000000041010"
        #expect(card.iccKey() != .failure(unknown))  // The key of another scheme, of the same index.
        card.aid = "A0000000251010"
        expectEqual(card.iccKey(), .failure(unknown))
        card.aid = "A0000000031010"
        card.objects[0x8F] = "E7"
        expectEqual(card.iccKey(), .failure(unknown))
        card.objects[0x8F] = "E1E1"
        expectEqual(card.iccKey(), .failure(AuthenticationFailure(.caPublicKey, .malformed(0x8F))))
        card.objects[0x8F] = ""
        expectEqual(card.iccKey(), .failure(AuthenticationFailure(.caPublicKey, .malformed(0x8F))))
    }

    // MARK: What does not

    @Test("One thing wrong that was signed as if it were right", arguments: minted.failures.indices)
    func failures(_ index: Int) throws {
        let failure = Self.minted.failures[index]
        var (_, card) = try ordinary
        card.set(failure.objects)
        let found: AuthenticationFailure?
        switch failure.subject {
        case "signedStaticData":
            #expect(throws: Never.self) { try card.iccKey().get() }
            found = card.sda().failure
        default: found = card.iccKey().failure
        }
        expectEqual(found?.subjectName, failure.subject)
        expectEqual(found?.reasonName, failure.reason)
        expectEqual(found?.isDataMissing, false)
        if failure.subject == "issuerCertificate" {
            expectEqual(card.issuerKey().failure, found)
            expectEqual(card.sda().failure, found)
            expectEqual(card.pinEnciphermentKey().failure, found)
        }
    }

    @Test("Dynamic signatures with one thing wrong", arguments: minted.dynamicFailures.indices)
    func dynamicFailures(_ index: Int) throws {
        let failure = Self.minted.dynamicFailures[index]
        let key = try ordinary.1.iccKey().get()
        let found: AuthenticationFailure?
        switch failure.method {
        case "dda":
            found = key.dda(bytes(failure.value), terminalData: Self.minted.unpredictableNumber).failure
        case "fdda":
            let data = Self.minted.fddaData(failure.value)
            found = key.fdda(for: .offlineApproval) { data[$0] }.failure
        default:
            found =
                key.cda(
                    response: bytes(failure.value), transactionData: Self.minted.firstTransactionData,
                    unpredictableNumber: Self.minted.unpredictableNumber
                ).failure
        }
        expectEqual(found?.subject, .signedDynamicData)
        expectEqual(found?.reasonName, failure.reason)
    }

    @Test(
        "What the card did not give",
        arguments: [
            (0x8F, .caPublicKey), (0x90, .issuerCertificate), (0x92, .issuerCertificate), (0x9F32, .issuerCertificate),
            (0x9F46, .iccCertificate), (0x9F47, .iccCertificate), (0x9F48, .iccCertificate),
        ] as [(TLVTag, AuthenticationFailure.Subject)])
    func missing(_ tag: TLVTag, _ subject: AuthenticationFailure.Subject) throws {
        var (_, card) = try ordinary
        let failure = AuthenticationFailure(subject, .missing(tag))
        #expect(failure.isDataMissing)
        card.objects[tag] = nil
        expectEqual(card.iccKey(), .failure(failure))
        if tag != 0x8F {
            card.objects[tag] = ""
            expectEqual(card.iccKey(), .failure(failure))
        }
    }

    @Test("What the card did not give for SDA, PIN encipherment and dynamic signatures")
    func missingElsewhere() throws {
        var (minted, card) = try ordinary
        let key = try card.iccKey().get()
        card.objects[0x93] = nil
        expectEqual(card.sda(), .failure(AuthenticationFailure(.signedStaticData, .missing(0x93))))
        expectEqual(card.sda().failure?.isDataMissing, true)
        card.objects[0x9F2F] = nil
        expectEqual(
            card.pinEnciphermentKey(), .failure(AuthenticationFailure(.pinEnciphermentCertificate, .missing(0x9F2F))))

        let complete = Self.minted.fddaData(minted.fddaOffline)
        for (tag, subject) in [
            (0x9F4B, .signedDynamicData), (0x9F69, .cardAuthenticationRelatedData), (0x9F37, .signedDynamicData),
            (0x9F02, .signedDynamicData), (0x5F2A, .signedDynamicData),
        ] as [(TLVTag, AuthenticationFailure.Subject)] {
            let found = key.fdda(for: .offlineApproval) { $0 == tag ? nil : complete[$0] }
            expectEqual(found, .failure(AuthenticationFailure(subject, .missing(tag))))
        }
        func cda(_ response: String) -> AuthenticationFailure? {
            key.cda(response: bytes(response), transactionData: [], unpredictableNumber: []).failure
        }
        expectEqual(cda("77059F27018000"), AuthenticationFailure(.signedDynamicData, .missing(0x9F4B)))
        expectEqual(cda("77049F4B0100"), AuthenticationFailure(.signedDynamicData, .missing(0x9F27)))
        for response in ["", "77", "7705", "80020000", "770580", "00", "77059F27018000" + "9F2600", "7700" + "7700"] {
            expectEqual(cda(response)?.reason, .malformed(0x77))
        }
    }

    @Test("fDDA: the version, the length, and every input is in the hash")
    func fddaInputs() throws {
        let (minted, card) = try ordinary
        let key = try card.iccKey().get()
        let complete = Self.minted.fddaData(minted.fddaOffline)
        func found(_ tag: TLVTag, _ value: String) -> AuthenticationFailure? {
            key.fdda(for: .offlineApproval) { $0 == tag ? bytes(value) : complete[$0] }.failure
        }
        let hash = AuthenticationFailure(.signedDynamicData, .hash)
        expectEqual(found(0x9F37, "01234566"), hash)
        expectEqual(found(0x9F02, "000000001235"), hash)
        expectEqual(found(0x5F2A, "0840"), hash)
        expectEqual(found(0x9F69, "01AABBCCDD8001"), hash)
        expectEqual(found(0x9F69, "01AABBCCDD"), hash)
        for version in ["00", "02", "FF"] {
            expectEqual(
                found(0x9F69, version + "AABBCCDD8000"),
                AuthenticationFailure(.cardAuthenticationRelatedData, .version))
        }
        for value in ["", "01AABBCC", String(repeating: "01", count: 17)] {
            expectEqual(found(0x9F69, value), AuthenticationFailure(.cardAuthenticationRelatedData, .malformed(0x9F69)))
        }
    }

    // MARK: One bit

    @Test("One bit flipped anywhere in a certificate, a remainder or an exponent")
    func flippedCertificates() throws {
        let (_, card) = try card("odd")
        for (tag, subject) in [
            (0x90, .issuerCertificate), (0x92, .issuerCertificate), (0x9F32, .issuerCertificate),
            (0x9F46, .iccCertificate),
            (0x9F48, .iccCertificate), (0x9F47, .iccCertificate),
        ] as [(TLVTag, AuthenticationFailure.Subject)] {
            for flipped in flips(of: card.data(tag) ?? []) {
                var card = card
                card.objects[tag] = flipped.hex
                let failure = try #require(card.iccKey().failure)
                expectEqual(failure.subject, subject)
                // A part that is not in the signature makes another message; one that is, another signature.
                let reasons: [AuthenticationFailure.Reason] =
                    tag == 0x90 || tag == 0x9F46 ? [.range, .trailer, .header, .format] : [.hash]
                #expect(reasons.contains(failure.reason))
            }
        }
    }

    @Test("One bit flipped anywhere in signed data, or in what is signed beside them")
    func flippedSignatures() throws {
        let (minted, card) = try card("odd")
        let key = try card.iccKey().get()
        let signature: [AuthenticationFailure.Reason] = [.range, .trailer, .header, .format]
        for flipped in flips(of: bytes(minted.dda)) {
            let failure = try #require(
                key.dda(flipped, terminalData: Self.minted.unpredictableNumber).failure)
            #expect(signature.contains(failure.reason))
        }
        for flipped in flips(of: card.data(0x93) ?? []) {
            var card = card
            card.objects[0x93] = flipped.hex
            #expect(signature.contains(try #require(card.sda().failure).reason))
        }
        for flipped in flips(of: Self.minted.unpredictableNumber) {
            expectEqual(
                key.dda(bytes(minted.dda), terminalData: flipped),
                .failure(AuthenticationFailure(.signedDynamicData, .hash)))
        }
        for flipped in flips(of: Self.minted.firstTransactionData) {
            expectEqual(
                key.cda(
                    response: bytes(minted.cdaFirst), transactionData: flipped,
                    unpredictableNumber: Self.minted.unpredictableNumber),
                .failure(AuthenticationFailure(.signedDynamicData, .transactionData)))
        }
        // The response as a whole: its structure, the signature, or the objects beside it.
        for flipped in flips(of: bytes(minted.cdaFirst)) {
            let found = key.cda(
                response: flipped, transactionData: Self.minted.firstTransactionData,
                unpredictableNumber: Self.minted.unpredictableNumber)
            // The byte between the objects is filling, and no part of them: FF is, too, but is no one bit away.
            #expect(found.failure != nil)
        }
    }

    @Test("One bit flipped anywhere in a signed record or in the AIP")
    func flippedRecords() throws {
        let (_, card) = try ordinary
        for index in card.records.indices {
            for flipped in flips(of: card.records[index].bytes) {
                var changed = card
                changed.records[index].bytes = flipped
                guard let failure = changed.iccKey().failure else {
                    // Of files 1 to 10 the length is not hashed: filling may be inside the template or behind it.
                    try expectEqual(objects(flipped), objects(card.records[index].bytes))
                    continue
                }
                #expect([.iccCertificate, .staticData].contains(failure.subject))
            }
        }
        for flipped in flips(of: bytes("3D01")) {
            var card = card
            card.objects[0x82] = flipped.hex
            expectEqual(card.iccKey(), .failure(AuthenticationFailure(.iccCertificate, .hash)))
        }
    }

    private func objects(_ record: [UInt8]) throws -> [TLV] {
        try TLVList(record).flattened.filter { !$0.tag.isConstructed }
    }

    /// In the fast tier each eleventh bit.
    private func flips(of bytes: [UInt8]) -> [[UInt8]] {
        stride(from: 0, to: bytes.count * 8, by: Tier.stride(11)).map { bit in
            var flipped = bytes
            flipped[bit / 8] ^= 0x80 >> (bit % 8)
            return flipped
        }
    }

    // MARK: Hostile cards

    @Test("Keys too short for what they sign")
    func tinyKeys() throws {
        var (_, card) = try ordinary
        card.set(try #require(Self.minted.tiny["issuer"]))
        try expectEqual(card.issuerKey().get().modulus.count, 20)
        expectEqual(card.iccKey(), .failure(AuthenticationFailure(.iccCertificate, .length)))
        expectEqual(card.sda(), .failure(AuthenticationFailure(.signedStaticData, .length)))

        (_, card) = try ordinary
        card.set(try #require(Self.minted.tiny["card"]))
        let key = try card.iccKey().get()
        expectEqual(key.modulus.count, 24)
        let length = AuthenticationFailure(.signedDynamicData, .length)
        let signature = try #require(card.objects[0x9F4B])
        let data = Self.minted.fddaData(signature)
        expectEqual(key.dda(bytes(signature), terminalData: []), .failure(length))
        expectEqual(key.fdda(for: .offlineApproval) { data[$0] }, .failure(length))
        let response = TLVTag(0x77).encode(bytes("9F270180") + TLVTag(0x9F4B).encode(bytes(signature)))
        expectEqual(key.cda(response: response, transactionData: [], unpredictableNumber: []), .failure(length))

        // 25 bytes are all structure (EMV Book 2, table 17): the dynamic data are empty, and have no dynamic number.
        (_, card) = try ordinary
        card.set(try #require(Self.minted.tiny["least"]))
        let least = try card.iccKey().get()
        expectEqual(least.modulus.count, 25)
        expectEqual(
            least.dda(card.data(0x9F4B) ?? [], terminalData: Self.minted.unpredictableNumber),
            .failure(AuthenticationFailure(.signedDynamicData, .dynamicData)))
    }

    @Test("Objects cut off at any length, or longer than they may be")
    func lengths() throws {
        let (_, card) = try ordinary
        for tag in [0x8F, 0x90, 0x92, 0x9F32, 0x9F46, 0x9F47, 0x9F48, 0x93, 0x5A, 0x9F4A, 0x82] as [TLVTag] {
            let value = card.data(tag) ?? []
            for length in 0..<value.count {
                var card = card
                card.objects[tag] = value.prefix(length).hex
                let first = card.iccKey().failure, second = card.sda().failure
                #expect(first != nil || second != nil, "\(tag) of \(length) bytes")
            }
            var longer = card
            longer.objects[tag] = (value + [UInt8](repeating: 0x00, count: 300)).hex
            #expect(longer.iccKey().failure != nil || longer.sda().failure != nil)
        }
    }
}

extension Result {
    var failure: Failure? {
        if case .failure(let failure) = self { failure } else { nil }
    }
}
