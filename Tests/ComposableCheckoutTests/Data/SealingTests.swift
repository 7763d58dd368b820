import CardEncryption
import ComposableCheckout
import Foundation
import TestSupport
import Testing

/// Python's joserfc, where Tests/install has put it.
private enum Judge {
    static let package = URL(filePath: #filePath).appending(path: "../../../..").standardized
    static let path = package.appending(path: ".build/joserfc").path
    static let isThere = FileManager.default.fileExists(atPath: path)
}

/// Cards entered by hand, sealed for a payment service and opened by Python's joserfc.
@Suite(.enabled(if: Judge.isThere, "joserfc is not installed from PyPI")) struct SealingTests {
    private func judge(_ request: [String: Any]) async throws -> [String: Any] {
        let input = String(decoding: try JSONSerialization.data(withJSONObject: request), as: UTF8.self)
        let judge = Judge.package.appending(path: "Tests/CardEncryptionTests/Judges/jwe.py").path
        let outcome = try await Program.run(
            ["/usr/bin/python3", judge, "joserfc"], environment: ["PYTHONPATH": Judge.path], input: input)
        let answer = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any]
        return try #require(answer, "\(outcome)")
    }

    @Test(
        "joserfc opens what the checkout seals, and finds the card's members",
        arguments: ["ECDH-ES", "ECDH-ES+A256KW", "RSA-OAEP-256"])
    func opened(_ algorithm: String) async throws {
        let keys = try await judge(["do": "generate", "alg": algorithm, "kid": "k-1"])
        let recipient = try JWERecipient(jwk: try #require(keys["public"] as? String))
        // Published test numbers of Visa and American Express, and names that need escapes.  TEST.
        let cards: [(number: String, code: String, month: Int, year: Int, name: String)] = [
            ("4111111111111111", "123", 1, 2031, "TEST \"QUOTE\" \\ CARD"),
            ("378282246310005", "1234", 12, 2039, "Zoë 山田"),
            ("4111111111111111", "", 9, 2030, ""),
        ]
        for card in cards {
            let data = try CardPaymentData(
                number: card.number.utf8, securityCode: card.code.utf8, expiryMonth: card.month,
                expiryYear: card.year, cardholderName: card.name)
            let sealed = try data.sealed(for: recipient).description
            let opened = try await judge(["do": "open", "jwk": try #require(keys["private"] as? String), "jwe": sealed])
            let text = try #require(opened["text"] as? String)
            let members = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: String]
            var expected = [
                "number": card.number, "expiryMonth": card.month < 10 ? "0\(card.month)" : "\(card.month)",
                "expiryYear": "\(card.year)",
            ]
            if !card.code.isEmpty { expected["cvv"] = card.code }
            if !card.name.isEmpty { expected["cardholderName"] = card.name }
            #expect(members == expected)
            #expect((opened["header"] as? [String: Any])?["kid"] as? String == "k-1")
            for text in [
                sealed, "\(data)", String(reflecting: data),
                String(describing: Mirror(reflecting: data).children.map(\.value)),
            ] {
                #expect(!text.contains(card.number) && !text.contains(card.number.dropFirst(6).dropLast(4)))
            }
        }
    }

    @Test("a name that is too long is refused, and not cut off")
    func tooLong() throws {
        #expect(throws: ClearCardDataError.self) {
            try CardPaymentData(
                number: "4111111111111111".utf8, securityCode: "123".utf8, expiryMonth: 12, expiryYear: 2039,
                cardholderName: String(repeating: "A", count: 2000))
        }
    }
}
