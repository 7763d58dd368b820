import CardEncryption
import Foundation
import ProximityReader
import SmartCard
import TestSupport
import Testing

/// Card data under keys of DUKPT, with the options that the configuration has.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct DUKPTReadTests {
    /// TEST
    private static let base = SecretKey((0..<16).map { $0 })

    /// What a terminal gives out for one read, and the identifier of that.
    private func read(_ key: ProximityReaderSystem.CardDataKey) async throws -> (sealed: SealedCardData, id: String) {
        let bench = try await Bench { $0.cardDataKey = key }
        let session = try await bench.reader.prepare(using: bench.token())
        try bench.insert("visa")
        let result = try await session.readPaymentCard(purchase)
        return (try SealedCardData(parsing: try #require(result.paymentCardData)), result.id)
    }

    private func file() throws -> KeyFile {
        let folder = FileManager.default.temporaryDirectory.appending(path: "dukpt-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        return KeyFile(folder.appending(path: "dukpt").path)
    }

    private func tags(_ bytes: UnsafeRawBufferPointer) throws -> [TLVTag] { try TLVList(Array(bytes)).map(\.tag) }

    @Test(
        "AES DUKPT: the envelope says how it was sealed, and opens with that and the identifier of the result",
        arguments: [
            AESDUKPTDevice.Options(),
            .init(dataKeyUsage: .bothWays, keyLength: .bits128, initializationVector: .zero),
        ])
    func aes(_ options: AESDUKPTDevice.Options) async throws {
        let host = try AESDUKPTHost(baseDerivationKey: Self.base)
        let identifier = Array("TESTTEST".utf8)
        let device = try await AESDUKPTDevice(
            loading: host.initialKey(identifier), initialKeyID: identifier, into: file())
        let (sealed, id) = try await read(.dukpt(device, options: options))
        guard case .aesDUKPT(let envelope) = sealed else {
            Issue.record("not AES DUKPT")
            return
        }
        #expect(envelope.dataKeyUsage == options.dataKeyUsage)
        let isZero = envelope.initializationVector == [UInt8](repeating: 0, count: 16)
        #expect(isZero == (options.initializationVector == .zero))
        #expect(try host.open(envelope, boundTo: Array(id.utf8), tags).contains(0x57))
        #expect(throws: DUKPTError.notAuthentic) { try host.open(envelope, boundTo: Array("other".utf8), tags) }
    }

    @Test(
        "TDES DUKPT: the envelope says how it was sealed, and opens with that",
        arguments: [
            TDESDUKPTDevice.Options(), .init(dataKeyVariant: .response, initializationVector: .random),
        ])
    func tdes(_ options: TDESDUKPTDevice.Options) async throws {
        let host = try TDESDUKPTHost(baseDerivationKey: Self.base)
        let number: [UInt8] = [0xFF, 0xFF, 0x98, 0x76, 0x54, 0x32, 0x10, 0xE0, 0, 0]
        let device = try await TDESDUKPTDevice(loading: host.initialKey(number), initialKeyID: number, into: file())
        let (sealed, _) = try await read(.tdesDUKPT(device, options: options))
        guard case .tdesDUKPT(let envelope) = sealed else {
            Issue.record("not TDES DUKPT")
            return
        }
        #expect(envelope.dataKeyVariant == options.dataKeyVariant && envelope.keySerialNumber.counter == 1)
        #expect(try host.open(envelope, tags).contains(0x57))
    }

    @Test("options that the device cannot seal with are an error of the configuration, not of the first read")
    func keyThatIsTooLong() async throws {
        let device = try await AESDUKPTDevice(loading: Self.base, initialKeyID: Array("TESTTEST".utf8), into: file())
        var configuration = ProximityReaderSystem.Configuration()
        configuration.cardDataKey = .dukpt(device, options: .init(keyLength: .bits256))
        #expect {
            try configuration.validated()
        } throws: {
            guard case PaymentCardReaderError.prepareFailed(let reason?) = $0 else { return false }
            return reason.contains("working key")
        }
        configuration.cardDataKey = .dukpt(device, options: .init(keyLength: .bits128))
        _ = try configuration.validated()
    }
}
