import Foundation
import Testing

/// `Vectors/dukpt.json`: what openemv/dukpt 1.2.5 computes with the keys of X9.24's own examples.
struct DUKPTVectors: Decodable {
    struct Vector: Decodable, Sendable, CustomTestStringConvertible {
        let ksn: String
        let transactionKey: String
        let request: String?
        let request128: String?
        let request256: String?
        let response: String?
        let response128: String?

        enum CodingKeys: String, CodingKey {
            case ksn, request = "req_enc", request128 = "req_enc_128", request256 = "req_enc_256"
            case response = "resp_enc", response128 = "resp_enc_128"
            case transactionKey = "txn_key"
        }

        var testDescription: String { ksn }
    }

    struct Family: Decodable, Sendable {
        let bdk: String
        let ik: String
        let plaintext: String?
        let vectors: [Vector]
    }

    let tdes: Family
    let aes128: Family
    let aes256: Family

    static func load() throws -> DUKPTVectors {
        try JSONDecoder().decode(
            DUKPTVectors.self, from: Data(contentsOf: testFolder.appending(path: "Vectors/dukpt.json")))
    }
}
