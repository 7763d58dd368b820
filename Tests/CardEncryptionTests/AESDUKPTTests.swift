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
        for family in [vectors.aes128, vectors.aes256] {
            let host = try AESDUKPTHost(baseDerivationKey: SecretKey(hex: family.bdk))
            #expect(try host.initialKey(hex(Self.identifier)).hex == family.ik)
            #expect(family.vectors.count >= 3)
            for vector in family.vectors {
                let number = try AESKeySerialNumber(hex(vector.ksn))
                #expect(number.description == vector.ksn)
                #expect(try host.transactionKey(number).1.hex == vector.transactionKey)
                for (length, expected) in [(AESKeyLength.bits128, vector.request128), (.bits256, vector.request256)] {
                    guard let expected else { continue }
                    let key = try host.workingKey(.dataEncryption, length: length, for: number)
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

    /// As the DukptAesHostUnitTest of theminesec's example has them.
    @Test(arguments: [
        (16, "0E870691F56A670C438612AE868D668D"), (24, "662E213522EF22C20E65CA0FAB0C20C5340FCD7072FE3F54"),
        (32, "2E6C334F36E48FD78EE3A2DB4A691C549DE0CEE9419B4388BAD15F09CA7E76E7"),
    ])
    func initialKeyOfEachLength(count: Int, expected: String) throws {
        let host = try AESDUKPTHost(baseDerivationKey: SecretKey([UInt8](repeating: 0xF1, count: count)))
        #expect(try host.initialKey(hex("1122334455667788")).hex == expected)
    }

    @Test(arguments: [0, 8, 15, 17, 33, 64])
    func keysOfOtherLengthsAreRefused(count: Int) async throws {
        let key = SecretKey([UInt8](repeating: 1, count: count))
        #expect(throws: DUKPTError.keyLength(count)) { try AESDUKPTHost(baseDerivationKey: key) }
        let folder = try Folder()
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
        for counter in 1...UInt32(300) {
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
        let file = folder.file("state")
        do {
            let state = try DUKPTState(loading: registers, into: file, kind: .aesDUKPT)
            #expect(try await state.transact { _, counter, _ in counter } == 0xFFFF_0000)
            await #expect(throws: DUKPTError.exhausted) { try await state.transact { _, counter, _ in counter } }
        }
        let data = try ClearCardData(testRecord)
        let device = try await AESDUKPTDevice(resuming: file)
        await #expect(throws: DUKPTError.exhausted) { try await device.seal(data) }
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
                        dataKeyUsage: $0, keyLength: length, initialisationVector: length == .bits128 ? .zero : .random)
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
            guard case .aesDUKPT(let envelope) = try await device.seal(data, options: options) else {
                Issue.record("not AES DUKPT")
                return
            }
            #expect(envelope.keySerialNumber.description == Self.identifier + "0000000\(counter)")
            #expect(envelope.dataKeyUsage == options.dataKeyUsage && envelope.keyLength == options.keyLength)
            #expect(
                (envelope.initialisationVector == [UInt8](repeating: 0, count: 16))
                    == (options.initialisationVector == .zero))
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
            texts.append(try await device.seal(ClearCardData(data)).description)
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
    }

    /// Every bit counts, up to the last of the MAC.
    @Test func changedEnvelopeIsRefused() async throws {
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let (device, host) = try await device(in: folder)
        guard case .aesDUKPT(let envelope) = try await device.seal(ClearCardData(testRecord)) else { return }
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
