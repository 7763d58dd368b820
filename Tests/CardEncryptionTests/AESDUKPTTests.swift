import TestSupport
import Testing

@testable import CardEncryption

/// ANSI X9.24-3:2017.
struct AESDUKPTTests {
    static let identifier = "1234567890123456"

    /// Encrypts in CBC mode with zeros, without padding, as the vectors were made.
    private func encrypted(_ plaintext: String, under key: SecretKey) throws -> String {
        let storage = try hex(plaintext).withUnsafeBytes { WipedStorage($0) }
        return try storage.withUnsafeBytes { bytes in
            try BlockCipher.aes(key).encrypt(bytes)
            return bytes.hex
        }
    }

    // MARK: Derivation

    @Test func hostDerivesThePublishedKeys() throws {
        let vectors = try DUKPTVectors.load()
        let plaintext = try #require(vectors.aes128.plaintext)
        for (family, lengths) in [
            (vectors.aes128, [AESKeyLength.bits128]), (vectors.aes256, [.bits128, .bits256]),
        ] {
            let host = try AESDUKPTHost(baseDerivationKey: SecretKey(hex: family.bdk))
            #expect(try host.initialKey(hex(Self.identifier)).hex == family.ik)
            #expect(family.vectors.count >= 3)
            for vector in family.vectors {
                let number = try AESKeySerialNumber(hex(vector.ksn))
                #expect(number.description == vector.ksn)
                #expect(try host.transactionKey(number).1.hex == vector.transactionKey)
                for length in lengths {
                    let expected = try #require(length == .bits128 ? vector.request128 : vector.request256)
                    let key = try host.workingKey(.dataEncryption, length: length, for: number)
                    #expect(try encrypted(plaintext, under: key) == expected)
                }
                if let expected = vector.response128 {
                    let key = try host.workingKey(.dataDecryption, length: .bits128, for: number)
                    #expect(try encrypted(plaintext, under: key) == expected)
                }
            }
        }
    }

    /// The standard's own example: BDK FEDC…F1F1, counter 1.
    @Test(arguments: [
        (AESDUKPTKeyUsage.pinEncryption, "AF8CB133A78F8DC2D1359F18527593FB"),
        (.macGeneration, "A2DC23DE6FDE0824A2BC321E08E4B8B7"),
        (.dataEncryption, "A35C412EFD41FDB98B69797C02DCD08F"),
        (.dataBothWays, "A308E080DD15A1B741F1721BF67DE11C"),
    ])
    func workingKeyForEachUsage(usage: AESDUKPTKeyUsage, expected: String) throws {
        let host = try AESDUKPTHost(baseDerivationKey: SecretKey(hex: "FEDCBA9876543210F1F1F1F1F1F1F1F1"))
        let number = try AESKeySerialNumber(hex("1234567890123456 00000001"))
        #expect(try host.workingKey(usage, length: .bits128, for: number).hex == expected)
    }

    /// With base derivation keys that are the start of FEDC…F1F1 FEDC…F1F1.  Of 256 bits: the further test vectors of ASC X9;
    /// of 192: what the tests of paysec, a library in Rust, have from the reference program of ASC X9.
    @Test(
        arguments: [
            (24, 1, .macGeneration, .bits128, "3E7009C74E8166BC9059D3D92D36B487"),
            (24, 1, .dataEncryption, .bits128, "04C5C3926A8B9B2B833F33D4C6E581EE"),
            (24, 1, .pinEncryption, .bits192, "C5043EDC7F2C001097974D40FF82A050B64A1AB27879F3DB"),
            (24, 1, .macGeneration, .bits192, "7FB32FB0F68F0E4A2594765F9EB1C472727EE305A5EE35E1"),
            (24, 1, .dataEncryption, .bits192, "C1D4541AE0E33949DD03F2A10B5E5486BBCAC1C520320E0C"),
            (24, 3, .macGeneration, .bits192, "29A29A9C943EAA03D2F5CAD146BA765094C2CF0343C53D1A"),
            (24, 3, .dataEncryption, .bits192, "A5DDCE36A4ECC8781C466C2270BA499EC4654AA166392EFC"),
            (32, 1, .macGeneration, .bits128, "F04A1FABD4176E15490CEC82E217A96D"),
            (32, 1, .dataEncryption, .bits128, "616D59AE91F8CC7016F89FDA29605FA4"),
            (32, 1, .macGeneration, .bits256, "61DABDF4B340CF461EE860B1D1AB55357142BD2D6977306859CF49AEFE8F1549"),
            (32, 1, .dataEncryption, .bits256, "71EB36C9A6B7F801D1D1700C29741FC5A5C4E9B45D742DA7AF6992B8AA29AF58"),
        ] as [(Int, UInt32, AESDUKPTKeyUsage, AESKeyLength, String)])
    func workingKeyOfEachLength(
        count: Int, counter: UInt32, usage: AESDUKPTKeyUsage, length: AESKeyLength, expected: String
    ) throws {
        let half = try hex("FEDCBA9876543210F1F1F1F1F1F1F1F1")
        let host = try AESDUKPTHost(baseDerivationKey: SecretKey((half + half).prefix(count)))
        let number = try AESKeySerialNumber(initialKeyID: hex(Self.identifier), counter: counter)
        #expect(try host.workingKey(usage, length: length, for: number).hex == expected)
    }

    /// As the DukptAesHostUnitTest of theminesec's example has them; the last one as paysec has it.
    @Test(arguments: [
        ([UInt8](repeating: 0xF1, count: 16), "1122334455667788", "0E870691F56A670C438612AE868D668D"),
        (
            [UInt8](repeating: 0xF1, count: 24), "1122334455667788",
            "662E213522EF22C20E65CA0FAB0C20C5340FCD7072FE3F54"
        ),
        (
            [UInt8](repeating: 0xF1, count: 32), "1122334455667788",
            "2E6C334F36E48FD78EE3A2DB4A691C549DE0CEE9419B4388BAD15F09CA7E76E7"
        ),
        (
            [0xFE, 0xDC, 0xBA, 0x98, 0x76, 0x54, 0x32, 0x10] + [UInt8](repeating: 0xF1, count: 8)
                + [0xFE, 0xDC, 0xBA, 0x98, 0x76, 0x54, 0x32, 0x10],
            identifier, "5B6DEE2B5B7FABFFA32591F35BF8F23DD9329AE85131E584"
        ),
    ])
    func initialKeyOfEachLength(base: [UInt8], identifier: String, expected: String) throws {
        let host = try AESDUKPTHost(baseDerivationKey: SecretKey(base))
        #expect(try host.initialKey(hex(identifier)).hex == expected)
    }

    @Test(arguments: [0, 8, 15, 17, 33, 64])
    func keysOfOtherLengthsAreRefused(count: Int) async throws {
        let key = SecretKey([UInt8](repeating: 1, count: count))
        #expect(throws: DUKPTError.keyLength(count)) { try AESDUKPTHost(baseDerivationKey: key) }
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        await #expect(throws: DUKPTError.keyLength(count)) {
            try await AESDUKPTDevice(loading: key, initialKeyID: hex(Self.identifier), into: folder.file("state"))
        }
    }

    @Test(arguments: [
        "", "123456789012345600000000", "1234567890123456000000", "12345678901234560001FFFF",
        "1234567890123456FFFF0001", "12345678901234560000000101",
    ])
    func keySerialNumberMustBeThatOfATransaction(text: String) throws {
        let bytes = try hex(text)
        #expect(throws: DUKPTError.keySerialNumber) { try AESKeySerialNumber(bytes) }
    }

    // MARK: Counting and registers

    /// Registers of a device that has come to `counter`, their keys derived from the initial one.
    private func registers(
        _ length: AESKeyLength, before counter: UInt32
    ) throws -> (DerivationRegisters<AESDUKPTScheme>, key: (UInt32) throws -> String) {
        let scheme = AESDUKPTScheme(initialKeyID: try hex(Self.identifier), length: length)
        let initial = SecretKey([UInt8](repeating: 0x2A, count: length.byteCount))
        var contents = counter.bigEndianBytes
        let inUse = AESDUKPTScheme.registersInUse(before: counter)
        for bit in 0..<32 where inUse & 1 << bit != 0 {
            // Register n has the key of the next counter whose lowest one bit is n.
            let above = bit == 31 ? 0 : (counter >> (bit + 1)) << (bit + 1)
            contents += try hex(scheme.transactionKey(initialKey: initial, counter: above | 1 << bit).hex)
        }
        let registers = contents.withUnsafeBytes { DerivationRegisters(scheme: scheme, contents: $0) }
        return (
            try #require(registers), { try scheme.transactionKey(initialKey: initial, counter: $0).hex }
        )
    }

    /// The keys that come out of the registers are those that the host derives, and the registers are those that the
    /// counter tells.
    @Test(arguments: AESKeyLength.allCases)
    func registersAgreeWithTheHost(length: AESKeyLength) throws {
        let scheme = AESDUKPTScheme(initialKeyID: try hex(Self.identifier), length: length)
        let initial = SecretKey([UInt8](repeating: 0x2A, count: length.byteCount))
        let registers = try DerivationRegisters(scheme: scheme, initialKey: initial)
        for counter in 1...UInt32(Tier.rounds(40, thorough: 300)) {
            #expect(
                registers.save().withUnsafeBytes { $0.hex }
                    == (try self.registers(length, before: counter).0.save().withUnsafeBytes { $0.hex }))
            let (taken, key) = try registers.take()
            #expect(taken == counter)
            #expect(key.hex == (try scheme.transactionKey(initialKey: initial, counter: counter).hex))
        }
    }

    /// Counters with more than 16 one bits are skipped: X9.24-3:2017, 6.5.
    @Test(
        arguments: [
            (0x0000_FFFE, [0x0000_FFFF, 0x0001_0000, 0x0001_0001]),
            (0x0001_FFFD, [0x0001_FFFE, 0x0002_0000, 0x0002_0001]),
            (0x1FFF_000D, [0x1FFF_000E, 0x1FFF_0010, 0x1FFF_0011]),
            (0xFFFE_8000, [0xFFFF_0000]),
        ] as [(UInt32, [UInt32])])
    func countersWithTooManyOneBitsAreSkipped(first: UInt32, then: [UInt32]) throws {
        let (registers, key) = try registers(.bits128, before: first)
        for counter in [first] + then {
            let taken = try registers.take()
            #expect(taken.counter == counter)
            #expect(try taken.key.hex == key(counter))
        }
    }

    @Test func afterTheLastCounterThereIsNoKey() async throws {
        let (registers, _) = try registers(.bits128, before: 0xFFFF_0000)
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let file = folder.file("state")
        do {
            let state = try DUKPTState(loading: registers, into: file, kind: .aesDUKPT)
            #expect(try await state.transact { _, counter, _ in counter } == 0xFFFF_0000)
            await #expect(throws: DUKPTError.exhausted) { try await state.transact { _, counter, _ in counter } }
        }
        let data = try ClearCardData(testRecord)
        let device = try await AESDUKPTDevice(resuming: file)
        #expect(await device.transactionsLeft == 0)
        await #expect(throws: DUKPTError.exhausted) { try await device.seal(data) }
    }

    /// Counters of 32 bits with 1 to 16 one bits: the sum of the binomial coefficients, as Python has it.
    @Test func transactionsThatAreLeftAreCounted() async throws {
        #expect(AESDUKPTScheme.count(from: 1) == 2_448_023_842)
        var counter: UInt32 = 0xFFFE_0000
        var left = AESDUKPTScheme.count(from: counter)
        while counter != 0 {
            #expect(AESDUKPTScheme.count(from: counter) == left)
            counter = AESDUKPTScheme.counter(after: counter)
            left -= 1
        }
        #expect(left == 0)
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let (device, _) = try await device(in: folder)
        _ = try await device.seal(ClearCardData(testRecord))
        #expect(await device.transactionsLeft == 2_448_023_841)
    }

    /// From the registers of a counter, no earlier key can be told: they hold those of later counters only.
    @Test func usedKeysAreErased() throws {
        let (registers, key) = try registers(.bits128, before: 1)
        var used: [String] = []
        for _ in 0..<40 {
            let (counter, taken) = try registers.take()
            used.append(taken.hex)
            #expect(try taken.hex == key(counter))
            let (state, memory) = (registers.save().withUnsafeBytes { $0.hex }, registers.storage.bytes.hex)
            for key in used { #expect(!state.contains(key) && !memory.contains(key)) }
        }
    }

    // MARK: Sealing

    private func device(_ count: Int = 16, in folder: Folder) async throws -> (AESDUKPTDevice, AESDUKPTHost) {
        let host = try AESDUKPTHost(baseDerivationKey: SecretKey([UInt8](repeating: 0xF1, count: count)))
        let identifier = try hex(Self.identifier)
        return (
            try await AESDUKPTDevice(
                loading: host.initialKey(identifier), initialKeyID: identifier, into: folder.file("state")), host
        )
    }

    private static let options: [(Int, AESDUKPTDevice.Options)] = [16, 24, 32].flatMap { count in
        AESKeyLength.allCases.filter { $0.byteCount <= count }.flatMap { length in
            AESDUKPTEnvelope.DataKeyUsage.allCases.map {
                (
                    count,
                    .init(
                        dataKeyUsage: $0, keyLength: length, initializationVector: length == .bits128 ? .zero : .random)
                )
            }
        }
    }

    @Test(arguments: options)
    func hostOpensWhatTheDeviceSeals(count: Int, options: AESDUKPTDevice.Options) async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let (device, host) = try await device(count, in: folder)
        let data = try ClearCardData(testRecord)
        for counter in 1...3 {
            let envelope = try await envelope(device.seal(data, options: options))
            #expect(envelope.keySerialNumber.description == Self.identifier + "0000000\(counter)")
            #expect(envelope.dataKeyUsage == options.dataKeyUsage && envelope.keyLength == options.keyLength)
            #expect(
                (envelope.initializationVector == [UInt8](repeating: 0, count: 16))
                    == (options.initializationVector == .zero))
            #expect(try host.open(envelope) { Array($0) } == testRecord)
        }
    }

    /// Padding of every length, as another program sees the envelope, and the keys of every length.
    @Test(
        .enabled(if: pythonHas("cryptography"), "python3-cryptography is not installed"),
        arguments: [16, 24, 32])
    func anotherProgramOpensTheEnvelope(count: Int) async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let (device, _) = try await device(count, in: folder)
        var texts: [String] = []
        var expected = ""
        for length in 1...33 {
            let data = (0..<length).map { UInt8(truncatingIfNeeded: 0x80 + $0 * 0x40) }
            expected += data.hex + "\n"
            // Bound to nothing, or to a text that the other program has, too.
            let bound = length.isMultiple(of: 2) ? Array("read \(length)".utf8) : []
            texts.append(
                try await device.seal(ClearCardData(data), boundTo: bound).description
                    + (bound.isEmpty ? "" : "," + bound.hex))
        }
        let bdk = [UInt8](repeating: 0xF1, count: count).hex
        let outcome = try await judged(by: "dukpt.py", [bdk] + texts)
        #expect(outcome.status == 0, "\(outcome)")
        #expect(outcome.output == expected)
    }

    @Test func workingKeyIsNotLongerThanTheInitialKey() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let (device, _) = try await device(in: folder)
        let data = try ClearCardData(testRecord)
        await #expect(throws: DUKPTError.workingKeyTooLong) {
            try await device.seal(data, options: .init(keyLength: .bits256))
        }
        // And costs no counter.
        #expect(try await envelope(device.seal(data)).keySerialNumber.counter == 1)
    }

    private func envelope(_ sealed: SealedCardData) throws -> AESDUKPTEnvelope {
        guard case .aesDUKPT(let envelope) = sealed else { throw DUKPTError.envelope(at: 0) }
        return envelope
    }

    /// The envelope of one read is not that of another.
    @Test func envelopeOpensWithWhatItIsBoundToOnly() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let (device, host) = try await device(in: folder)
        let bound = Array("read 1".utf8)
        let envelope = try await envelope(device.seal(ClearCardData(testRecord), boundTo: bound))
        #expect(try host.open(envelope, boundTo: bound) { Array($0) } == testRecord)
        for other in ["", "read 2", "read ", "read 1 "] {
            #expect(throws: DUKPTError.notAuthentic) { try host.open(envelope, boundTo: Array(other.utf8)) { _ in } }
        }
        // Nor is what it is bound to a part of the ciphertext, or the other way round.
        let moved = try AESDUKPTEnvelope(envelope.bytes.dropLast(16) + [UInt8](repeating: 7, count: 16) + envelope.mac)
        let block = [UInt8](repeating: 7, count: 16)
        #expect(throws: DUKPTError.notAuthentic) { try host.open(moved, boundTo: bound) { _ in } }
        let long = try await self.envelope(device.seal(ClearCardData(testRecord), boundTo: block))
        let shifted = try AESDUKPTEnvelope(long.bytes.dropLast(16) + block + long.mac)
        #expect(throws: DUKPTError.notAuthentic) { try host.open(shifted) { _ in } }
    }

    @Test func envelopesAreNotLongerThanCardData() throws {
        let start = try hex("01 10 3000 1234567890123456 00000001")
        #expect(throws: DUKPTError.envelope(at: 32 + 65536 + 16)) {
            try AESDUKPTEnvelope(start + [UInt8](repeating: 0, count: 65536 + 48))
        }
        #expect(try AESDUKPTEnvelope(start + [UInt8](repeating: 0, count: 65536 + 32)).ciphertext.count == 65536)
        let legacy = try hex("02 01 FFFF9876543210E00001 0000000000000000")
        #expect(throws: DUKPTError.envelope(at: 20 + 65536)) {
            try TDESDUKPTEnvelope(legacy + [UInt8](repeating: 0, count: 65536 + 8))
        }
        #expect(try TDESDUKPTEnvelope(legacy + [UInt8](repeating: 0, count: 65536)).ciphertext.count == 65536)
    }

    /// Mutations of a text: refused with a typed error, or opened to what was sealed; TDES, which is not authenticated, may
    /// open to anything.
    @Test func mutationsNeverTrap() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let (device, host) = try await device(in: folder)
        let legacyHost = try TDESDUKPTHost(baseDerivationKey: SecretKey(hex: "0123456789ABCDEFFEDCBA9876543210"))
        let number = try hex(TDESDUKPTTests.initialNumber)
        let legacy = try await TDESDUKPTDevice(
            loading: legacyHost.initialKey(number), initialKeyID: number, into: folder.file("legacy"))
        let data = try ClearCardData(testRecord)
        var random = SplitMix(state: 5)
        for sealed in try await [device.seal(data), legacy.seal(data)] {
            let original = Array(sealed.description.utf8)
            for _ in 0..<Tier.rounds(200, thorough: 2_000) {
                var bytes = original
                for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
                    let at = Int.random(in: 0..<bytes.count, using: &random)
                    switch Int.random(in: 0..<4, using: &random) {
                    case 0: bytes[at] ^= 1 << UInt8.random(in: 0..<8, using: &random)
                    case 1: bytes.remove(at: at)
                    case 2: bytes.insert(UInt8.random(in: 0x20..<0x80, using: &random), at: at)
                    default: bytes.removeSubrange(at..<min(bytes.count, at + 24))
                    }
                }
                do {
                    switch try SealedCardData(parsing: String(decoding: bytes, as: UTF8.self)) {
                    case .aesDUKPT(let envelope):
                        #expect(try host.open(envelope) { Array($0) } == testRecord && bytes == original)
                    case .tdesDUKPT(let envelope):
                        try legacyHost.open(envelope) { #expect($0.count <= envelope.bytes.count) }
                    case .jwe: Issue.record("no JWE was sealed")
                    }
                } catch {
                    #expect(error is DUKPTError || error is JWEError)
                }
            }
        }
    }

    /// Every bit counts, up to the last of the MAC.
    @Test func changedEnvelopeIsRefused() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let (device, host) = try await device(in: folder)
        let envelope = try await envelope(device.seal(ClearCardData(testRecord)))
        for offset in envelope.bytes.indices {
            var bytes = envelope.bytes
            bytes[offset] ^= 1
            #expect(throws: DUKPTError.self) {
                try host.open(AESDUKPTEnvelope(bytes)) { Issue.record("opened \($0.count) bytes") }
            }
        }
        for count in 0..<envelope.bytes.count {
            #expect(throws: DUKPTError.self) {
                try host.open(AESDUKPTEnvelope(Array(envelope.bytes.prefix(count)))) { _ in Issue.record("opened") }
            }
        }
        let other = try AESDUKPTHost(baseDerivationKey: SecretKey([UInt8](repeating: 0xF2, count: 16)))
        #expect(throws: DUKPTError.notAuthentic) { try other.open(envelope) { _ in } }
    }

    @Test func envelopeIsOneText() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let (device, _) = try await device(in: folder)
        let sealed = try await device.seal(ClearCardData(testRecord))
        #expect(try SealedCardData(parsing: sealed.description) == sealed)
        #expect(throws: DUKPTError.notBase64(at: 3)) { try SealedCardData(parsing: "AQE\n") }
        #expect(throws: DUKPTError.envelope(at: 0)) { try SealedCardData(parsing: "AwAA") }
        #expect(throws: DUKPTError.envelope(at: 0)) { try SealedCardData(parsing: "") }
    }
}
