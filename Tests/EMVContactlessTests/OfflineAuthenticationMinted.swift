import EMVContactless
import Foundation
import SmartCard

/// The cards that `Minting/mint.py` made.  Values are hexadecimal.
struct Minted: Decodable {
    struct Key: Decodable {
        let modulus: String
        let exponent: String
    }

    struct Record: Decodable {
        let sfi: UInt8
        let bytes: String
    }

    struct Card: Decodable {
        let name: String
        let rid: String
        let index: String
        let caKey: Key
        let caChecksum: String
        let issuerKey: Key
        let iccKey: Key
        let records: [Record]
        let objects: [String: String]
        let dda: String
        let fddaOffline: String
        let fddaOnline: String
        let cdaFirst: String
        let cdaSecond: String
    }

    /// Objects that differ from those of the first card, and what is wrong then.
    struct Failure: Decodable {
        let subject: String
        let reason: String
        let objects: [String: String]
    }

    /// A signature, or for CDA a response, of the first card, and what is wrong with it.
    struct DynamicFailure: Decodable {
        let method: String
        let reason: String
        let value: String
    }

    let terminal: [String: String]
    let cardAuthenticationRelatedData: String
    let pdolData: String
    let cdol1Data: String
    let cdol2Data: String
    let cryptogram: String
    let cards: [Card]
    let failures: [Failure]
    let dynamicFailures: [DynamicFailure]
    /// The first card's answer to INTERNAL AUTHENTICATE with dynamic data that leave no room for padding.
    let fullDDA: String
    /// The first card with keys too short for what they sign: of the `issuer`, or of the `card`.
    let tiny: [String: [String: String]]

    static let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("Minting")

    static let all: Minted = {
        do {
            let text = try Data(contentsOf: folder.appendingPathComponent("minted.json"))
            return try JSONDecoder().decode(Minted.self, from: text)
        } catch {
            preconditionFailure("Minting/minted.json: \(error)")
        }
    }()

    static let authorities: CAPublicKeys = {
        do {
            let text = try String(contentsOf: folder.appendingPathComponent("test-ca.keys"), encoding: .utf8)
            return try CAPublicKeys(parsing: text)
        } catch {
            preconditionFailure("Minting/test-ca.keys: \(error)")
        }
    }()

    /// What fDDA takes of the terminal and of a card with `signature`.
    func fddaData(_ signature: String) -> [TLVTag: [UInt8]] {
        var data: [TLVTag: [UInt8]] = [0x9F4B: bytes(signature), 0x9F69: bytes(cardAuthenticationRelatedData)]
        for (tag, value) in terminal { data[TLVTag(hex: tag)] = bytes(value) }
        return data
    }

    var unpredictableNumber: [UInt8] { bytes(terminal["9F37"] ?? "") }
    var firstTransactionData: [UInt8] { bytes(pdolData + cdol1Data) }
    var secondTransactionData: [UInt8] { bytes(pdolData + cdol1Data + cdol2Data) }
    var secondUnpredictableNumber: [UInt8] { bytes(String(cdol2Data.suffix(8))) }
}

extension TLVTag {
    init(hex: String) { self.init(rawValue: UInt32(hex, radix: 16) ?? 0) }
}

extension Card {
    /// On a day in January 2026.
    init(_ minted: Minted.Card) {
        self.init(
            aid: minted.rid + "1010", environment: .test, date: (2026, 1, 15), objects: [:],
            records: minted.records.map { ($0.sfi, EMVContactlessTests.bytes($0.bytes)) })
        keys = Minted.authorities
        set(minted.objects)
    }

    mutating func set(_ values: [String: String]) {
        for (tag, value) in values { objects[TLVTag(hex: tag)] = value }
    }
}

extension AuthenticationFailure {
    /// The case of the subject, as `mint.py` writes it.
    var subjectName: String { "\(subject)" }
    /// The case of the reason without the tag it names.
    var reasonName: String {
        switch reason {
        case .missing: "missing"
        case .malformed: "malformed"
        default: "\(reason)"
        }
    }
}
