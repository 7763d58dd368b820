import Testing

@testable import CardEncryption

struct JWKTests {
    static let x = #""x":"gI0GAILBdu7T53akrFmMyGcsF3n5dO7MmwNBHKW5SV0""#
    static let y = #""y":"SLW_xSffzlPWrHEVI30DHM_4egVwt3NQqeUD7nMFpps""#
    static let ec = #""kty":"EC","crv":"P-256",\#(x),\#(y)"#
    /// 2048 bits.
    static let n = #""n":"\#(Base64.url.encode([UInt8](repeating: 0xFD, count: 256)))""#
    static let rsa = #""kty":"RSA",\#(n),"e":"AQAB""#

    @Test(
        arguments: [
            ("{\(ec),\"alg\":\"ECDH-ES\"}", nil, JWEAlgorithm.ecdhES, nil),
            ("{\(ec)}", .ecdhESA256KW, .ecdhESA256KW, nil),
            (#"{\#(ec),"use":"enc","key_ops":["deriveBits"],"kid":"7","unknown":[{}]}"#, .ecdhES, .ecdhES, "7"),
            (#"{\#(ec),"key_ops":[]}"#, .ecdhES, .ecdhES, nil),
            (#" {\#(rsa),"alg":"RSA-OAEP-256","key_ops":["wrapKey"]} "#, nil, .rsaOAEP256, nil),
        ] as [(String, JWEAlgorithm?, JWEAlgorithm, String?)])
    func publicKeysAreTaken(text: String, wanted: JWEAlgorithm?, algorithm: JWEAlgorithm, keyID: String?) throws {
        let recipient = try JWERecipient(jwk: text, algorithm: wanted)
        #expect(recipient.algorithm == algorithm && recipient.keyID == keyID)
        // What is taken can be sealed to.
        #expect(throws: Never.self) { try recipient.seal(ClearCardData(testRecord)) }
    }

    static let refused: [(String, JWEAlgorithm?, JWKError)] = [
        ("", .ecdhES, JWKError(.json(0, due: "a value"))),
        ("[]", .ecdhES, JWKError(.json(0, due: "an object"))),
        ("{\(ec)} {}", .ecdhES, JWKError(.json(ec.utf8.count + 3, due: "the end"))),
        ("{\(ec)}", nil, JWKError(.noAlgorithm)),
        (#"{\#(ec),"alg":"dir"}"#, nil, JWKError(.purpose, "alg")),
        (#"{\#(ec),"alg":"ECDH-ES"}"#, .ecdhESA256KW, JWKError(.purpose, "alg")),
        (#"{\#(ec),"alg":7}"#, nil, JWKError(.malformed, "alg")),
        (#"{\#(ec),"use":"sig"}"#, .ecdhES, JWKError(.purpose, "use")),
        (#"{\#(ec),"key_ops":["verify"]}"#, .ecdhES, JWKError(.purpose, "key_ops")),
        (#"{\#(ec),"key_ops":"deriveKey"}"#, .ecdhES, JWKError(.purpose, "key_ops")),
        ("{\(ec)}", .rsaOAEP256, JWKError(.keyType, "kty")),
        ("{\(rsa)}", .ecdhES, JWKError(.keyType, "kty")),
        (#"{"kty":"EC","crv":"P-384",\#(x),\#(y)}"#, .ecdhES, JWKError(.curve, "crv")),
        (#"{"kty":"EC","crv":"P-256",\#(x)}"#, .ecdhES, JWKError(.malformed, "y")),
        (#"{"kty":"EC","crv":"P-256",\#(x),"y":"SLW_"}"#, .ecdhES, JWKError(.malformed, "y")),
        (#"{"kty":"EC","crv":"P-256",\#(x),\#(y.replacing("SLW", with: "SLX"))}"#, .ecdhES, JWKError(.notOnCurve)),
        (#"{\#(ec),"d":"AA"}"#, .ecdhES, JWKError(.privateKey, "d")),
        (#"{\#(rsa),"d":"AA"}"#, .rsaOAEP256, JWKError(.privateKey, "d")),
        (#"{"kty":"RSA",\#(n),"e":"AAEAAQ"}"#, .rsaOAEP256, JWKError(.malformed, "e")),
        (#"{"kty":"RSA",\#(n)}"#, .rsaOAEP256, JWKError(.malformed, "e")),
        (#"{"kty":"RSA",\#(n),"e":"Ag"}"#, .rsaOAEP256, JWKError(.modulus, "n")),
        // 2047 bits.
        (
            #"{"kty":"RSA","n":"\#(Base64.url.encode([UInt8](repeating: 0x7F, count: 256)))","e":"AQAB"}"#, .rsaOAEP256,
            JWKError(.modulus, "n")
        ),
        // 2049 bits, to which nothing could be sealed.
        (
            #"{"kty":"RSA","n":"\#(Base64.url.encode([1] + [UInt8](repeating: 0xFD, count: 256)))","e":"AQAB"}"#,
            .rsaOAEP256, JWKError(.modulus, "n")
        ),
        (#"{\#(ec),"p":"AA"}"#, .ecdhES, JWKError(.privateKey, "p")),
        (#"{\#(rsa),"p":"AA","q":"AA"}"#, .rsaOAEP256, JWKError(.privateKey, "p")),
        (#"{\#(rsa),"oth":[]}"#, .rsaOAEP256, JWKError(.privateKey, "oth")),
        // U+212A, the sign for kelvin, is no K; a letter and an accent are not the letter with it.
        (#"{\#(ec),"alg":"ECDH-ES+A256\#u{212A}W"}"#, .ecdhESA256KW, JWKError(.purpose, "alg")),
        (#"{\#(ec),"alg":"ECDH-ES+A256\#u{212A}W"}"#, nil, JWKError(.purpose, "alg")),
        (#"{\#(ec),"key_ops":["derive\#u{212A}ey"]}"#, .ecdhES, JWKError(.purpose, "key_ops")),
        ("{\"k\u{E9}\":1,\"ke\u{301}\":1}", .ecdhES, JWKError(.keyType, "kty")),
        (String(repeating: " ", count: 1 << 16) + "{}", .ecdhES, JWKError(.tooLong(1 << 16 + 2))),
    ]

    @Test(arguments: refused.indices)
    func otherKeysAreRefused(index: Int) {
        let (text, algorithm, error) = Self.refused[index]
        #expect(throws: error) { try JWERecipient(jwk: text, algorithm: algorithm) }
    }

    @Test func halvesOfPrivateKeysBelongTogether() throws {
        let other = #""d":"VEmDZpDXXK8p8N0Cndsxs924q6nS1RXFASRl6BfUqdw""#
        #expect(throws: JWKError(.mismatch)) { try JWEPrivateKey(jwk: "{\(Self.ec),\(other)}", algorithm: .ecdhES) }
        #expect(throws: JWKError(.malformed, "d")) {
            try JWEPrivateKey(jwk: #"{\#(Self.ec),"d":"AA"}"#, algorithm: .ecdhES)
        }
        let numbers = ["d", "p", "q", "dp", "dq", "qi"].map { ",\"\($0)\":\"Aw\"" }.joined()
        #expect(throws: JWKError(.mismatch)) {
            try JWEPrivateKey(jwk: "{\(Self.rsa)\(numbers)}", algorithm: .rsaOAEP256)
        }
    }
}
