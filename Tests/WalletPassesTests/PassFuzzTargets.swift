import CardEncryption
import Crypto
import Foundation
import SmartCard
import WalletPasses

/// The fuzzer's target for passes: it takes any input, and throws a finding.  Fuzz/ has libFuzzer write the inputs; the tests
/// take those of Fuzz/corpora, and change them a little.
public enum PassFuzzTargets {
    /// Something that must not be.
    public struct Finding: Error, CustomStringConvertible {
        public let description: String
    }

    /// The most commands of a conversation: of two merchants, each with its parts and tries.
    private static let maximumCommands = 1000

    /// By the first byte: a phone's answers in each of the four modes, a clear bundle of passes, or a compressed one.  Answers
    /// are preceded by their length in two bytes; after the last comes 9000, as often as it is asked for.
    public static func passes(_ input: [UInt8]) throws(Finding) {
        let bytes = Array(input.dropFirst())
        switch input.first ?? 0 {
        case let choice where choice < 4:
            guard let mode = PassReading.Mode(rawValue: choice), let reading = try? reading(mode) else {
                throw Finding(description: "a configuration is refused")
            }
            try play(reading, answers(bytes))
        case let choice:
            let isCompressed = choice.isMultiple(of: 2)
            guard let objects = try? SmartTapObject.objects(inBundle: bytes, isCompressed: isCompressed) else { return }
            guard objects.count <= 64 else { throw Finding(description: "\(objects.count) objects") }
            _ = "\(objects)"
        }
    }

    private static func answers(_ bytes: [UInt8]) -> [ResponseAPDU] {
        var rest = bytes[...]
        var answers: [ResponseAPDU] = []
        while let high = rest.popFirst(), let low = rest.popFirst() {
            let part = rest.prefix(Int(high) << 8 | Int(low))
            rest = rest.dropFirst(part.count)
            if let answer = try? ResponseAPDU(Array(part)) { answers.append(answer) }
        }
        return answers
    }

    private static func play(_ reading: PassReading, _ answers: [ResponseAPDU]) throws(Finding) {
        var reading = reading
        var rest = answers[...]
        var step = reading.next(nil)
        for _ in 0..<maximumCommands {
            switch step {
            case .send(let command):
                guard command.data.count <= 245 else { throw Finding(description: "a command that fits no frame") }
                step = reading.next(rest.popFirst() ?? ResponseAPDU(status: .success))
            case .finished(let outcome):
                guard !(outcome.mayPayNow && outcome.wantsAnotherTap) else {
                    throw Finding(description: "a payment before the next tap")
                }
                _ = "\(outcome)"
                return
            }
        }
        throw Finding(description: "no end")
    }

    // TEST: published keys, and those of Tests/WalletPassesTests/SmartTapVector.swift.
    private static func reading(_ mode: PassReading.Mode) throws -> PassReading {
        guard let apple = MerchantKey([UInt8](repeating: 0x33, count: 32)),
            let google = MerchantKey(
                try [UInt8](hex: "826D17E50767B165B0E4D9E332F8D1D1E20224284FB4DAF1E50A03246E70797D"))
        else { throw Finding(description: "a key is refused") }
        let configuration = try PassConfiguration(merchants: [
            PassMerchant(
                id: "coupon", apple: .init(passTypeIdentifier: "pass.example.kiosk.coupon", keys: [apple]),
                google: .init(collectorID: 13_380_028, keys: [1: google])),
            PassMerchant(
                id: "loyalty", apple: .init(passTypeIdentifier: "pass.example.kiosk.loyalty", keys: [apple]),
                google: .init(collectorID: 20_180_608, keys: [1: google])),
        ])
        let ephemeral = try P256.KeyAgreement.PrivateKey(rawRepresentation: [UInt8](repeating: 0x11, count: 32))
        return PassReading(
            configuration.allRequests, configuration: configuration, mode: mode, freshness: VASFreshness(),
            at: Date(timeIntervalSinceReferenceDate: 0x2F00_0000)
        ) {
            SmartTapSecrets(
                sessionID: Array(1...8), readerNonce: Array(0..<32), ephemeralKey: ephemeral) ?? SmartTapSecrets()
        }
    }
}
