import TestSupport
import Testing

@testable import CardEncryption

/// ANSI X9.24-1:2009.
struct TDESDUKPTTests {
    static let initialNumber = "FFFF9876543210E00000"

    @Test func hostDerivesThePublishedKeys() throws {
        let vectors = try DUKPTVectors.load().tdes
        let host = try TDESDUKPTHost(baseDerivationKey: SecretKey(hex: vectors.bdk))
        #expect(try host.initialKey(hex(Self.initialNumber)).hex == vectors.ik)
        #expect(vectors.vectors.count == 11)
        for vector in vectors.vectors {
            let number = try TDESKeySerialNumber(hex(vector.ksn))
            #expect(try host.transactionKey(number).hex == vector.transactionKey)
            for (variant, expected) in [
                (TDESDUKPTEnvelope.DataKeyVariant.request, vector.request), (.response, vector.response),
            ] {
                let storage = try hex(#require(vectors.plaintext)).withUnsafeBytes { WipedStorage($0) }
                try storage.withUnsafeBytes { bytes in
                    try BlockCipher.tdes(host.dataKey(variant, for: number)).encrypt(bytes)
                    #expect(try bytes.hex == #require(expected))
                }
            }
        }
    }

    /// 21 bits with one to ten ones: half of all, 2^20 - 1.
    @Test func countsEveryCounterOnce() {
        var (count, counter, last) = (0, UInt32(1), UInt32(0))
        while counter != 0 {
            guard counter > last, TDESDUKPTScheme.isValid(counter) else {
                Issue.record("\(counter) after \(last)")
                return
            }
            if count.isMultiple(of: 4_096) { #expect(TDESDUKPTScheme.count(from: counter) == 1_048_575 - count) }
            count += 1
            last = counter
            counter = TDESDUKPTScheme.counter(after: counter)
        }
        #expect(count == 1_048_575)
        #expect(last == 0x1FF800)
    }

    @Test func registersAgreeWithTheHost() throws {
        let vectors = try DUKPTVectors.load().tdes
        let scheme = TDESDUKPTScheme(initialKeyID: try hex(Self.initialNumber))
        let initial = try SecretKey(hex: vectors.ik)
        let registers = try DerivationRegisters(scheme: scheme, initialKey: initial)
        var keys: [String] = []
        // Across 7FF, the first of eleven ones.
        for counter in 1...UInt32(2100) {
            let (taken, key) = try registers.take()
            keys.append(key.hex)
            #expect(taken == counter + (counter > 0x7FE ? 1 : 0))
            if counter % 100 == 0 {
                #expect(key.hex == (try scheme.transactionKey(initialKey: initial, counter: taken).hex))
            }
        }
        #expect(keys.prefix(10) == vectors.vectors.prefix(10).map(\.transactionKey)[...])
    }

    @Test func hostOpensWhatTheDeviceSeals() async throws {
        let host = try TDESDUKPTHost(baseDerivationKey: SecretKey(hex: "0123456789ABCDEFFEDCBA9876543210"))
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let number = try hex(Self.initialNumber)
        var texts: [String] = []
        do {
            let device = try await TDESDUKPTDevice(
                loading: host.initialKey(number), initialKeyID: number, into: folder.file("state"))
            for _ in 0..<2 { texts.append(try await device.seal(ClearCardData(testRecord)).description) }
        }
        let device = try await TDESDUKPTDevice(resuming: folder.file("state"))
        texts.append(try await device.seal(ClearCardData(testRecord)).description)
        for (i, text) in texts.enumerated() {
            guard case .tdesDUKPT(let envelope) = try SealedCardData(parsing: text) else {
                Issue.record("not TDES DUKPT")
                return
            }
            #expect(envelope.keySerialNumber.description == "FFFF9876543210E0000\(i + 1)")
            #expect(try host.open(envelope) { Array($0) } == testRecord)
        }
    }

    @Test(.enabled(if: pythonHas("cryptography"), "python3-cryptography is not installed"))
    func anotherProgramOpensTheEnvelope() async throws {
        let bdk = "0123456789ABCDEFFEDCBA9876543210"
        let host = try TDESDUKPTHost(baseDerivationKey: SecretKey(hex: bdk))
        let number = try hex(Self.initialNumber)
        let folder = try Folder()
        defer { withExtendedLifetime(folder) {} }
        let device = try await TDESDUKPTDevice(
            loading: host.initialKey(number), initialKeyID: number, into: folder.file("state"))
        var texts: [String] = []
        var expected = ""
        for length in 1...17 {
            let data = (0..<length).map { UInt8(truncatingIfNeeded: 0x80 + $0 * 0x40) }
            expected += data.hex + "\n"
            let options = TDESDUKPTDevice.Options(
                dataKeyVariant: length.isMultiple(of: 2) ? .response : .request,
                initializationVector: length.isMultiple(of: 3) ? .random : .zero)
            let sealed = try await device.seal(ClearCardData(data), options: options)
            guard case .tdesDUKPT(let envelope) = sealed else {
                Issue.record("not TDES DUKPT")
                return
            }
            // It says how it was sealed.
            #expect(envelope.dataKeyVariant == options.dataKeyVariant)
            let isZero = envelope.initializationVector == [UInt8](repeating: 0, count: 8)
            #expect(isZero == (options.initializationVector == .zero))
            #expect(try host.open(envelope) { Array($0) } == data)
            texts.append(sealed.description)
        }
        let outcome = try await judged(by: "dukpt.py", [bdk] + texts)
        #expect(outcome.status == 0, "\(outcome)")
        #expect(outcome.output == expected)
    }

    @Test(
        arguments: [
            ("", 0), ("03 01 FFFF9876543210E00001 0000000000000000 0000000000000000", 0),
            ("02 00 FFFF9876543210E00001 0000000000000000 0000000000000000", 1),
            ("02 03 FFFF9876543210E00001 0000000000000000 0000000000000000", 1),
            ("02 01 FFFF9876543210E00000 0000000000000000 0000000000000000", 2),
            ("02 01 FFFF9876543210E00001 0000000000000000", 20), ("02 01 FFFF9876543210E00001 0000000000000000 00", 21),
            ("02", 1),
        ])
    func otherEnvelopesAreRefused(text: String, offset: Int) throws {
        let bytes = try hex(text)
        #expect(throws: DUKPTError.envelope(at: offset)) { try TDESDUKPTEnvelope(bytes) }
    }

    @Test func identifierHasTenBytes() async throws {
        let host = try TDESDUKPTHost(baseDerivationKey: SecretKey(hex: "0123456789ABCDEFFEDCBA9876543210"))
        #expect(throws: DUKPTError.initialKeyIDLength(8)) { try host.initialKey([1, 2, 3, 4, 5, 6, 7, 8]) }
    }

    @Test(arguments: [
        "", "FFFF9876543210E00000", "FFFF9876543210E007FF", "FFFF9876543210E000", "FFFF9876543210E0000101",
    ])
    func keySerialNumberMustBeThatOfATransaction(text: String) throws {
        let bytes = try hex(text)
        #expect(throws: DUKPTError.keySerialNumber) { try TDESKeySerialNumber(bytes) }
    }
}
