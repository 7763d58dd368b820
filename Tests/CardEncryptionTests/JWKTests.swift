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

    // MARK: Keys in tokens and sets

    /// Claims of a token, with `card_data_key` between them.
    private static func claims(_ key: String, more: String = "") -> String {
        #"{"iss":"https://psp.example","exp":1800000000.5,\#(more)"card_data_key":\#(key)}"#
    }

    @Test func aKeyIsReadFromTheClaimsOfAToken() throws {
        let key = #"{\#(Self.ec),"alg":"ECDH-ES","kid":"a\"\u00e9","x5c":["AA"],"more":[{"n":-1.5e3},null,true,false]}"#
        let jwk = try #require(try JWK(member: "card_data_key", of: Self.claims(key).utf8))
        #expect(try JWERecipient(jwk).keyID == "a\"\u{E9}" && jwk.keyID == "a\"\u{E9}")
        // As it is written, it is read again.
        #expect(try JWK(jwk.description) == jwk)
        #expect(try JWERecipient(jwk: jwk.description).algorithm == .ecdhES)
        #expect(try JWK(member: "card_data_key", of: #"{"iss":"a"}"#.utf8) == nil)
    }

    @Test func whatIsWrittenIsInOneOrder() throws {
        let jwk = try JWK(#" { "kty" : "oct" , "b" : [ { "z" : "\u0007\\" , "a" : 1e5 } ] , "B" : null } "#)
        #expect(jwk.description == #"{"B":null,"b":[{"a":1e5,"z":"\u0007\\"}],"kty":"oct"}"#)
    }

    @Test(
        arguments: [
            claims("{\(ec),\(ec)}"), claims(#"{\#(ec),"more":{"a":1,"\u0061":2}}"#),
            claims("{\(ec)}", more: #""card_data_key":{},"#), claims("{\(ec)}", more: #""iss":"https://psp.example","#),
        ])
    func claimsThatNameSomethingTwiceAreRefused(claims: String) {
        let error = #expect(throws: JWKError.self) { try JWK(member: "card_data_key", of: claims.utf8) }
        guard case .json(_, due: "a name that was not there before") = error?.reason else {
            Issue.record("\(String(describing: error))")
            return
        }
    }

    @Test(
        arguments: [
            (claims("null"), JWKError(.malformed, "card_data_key")),
            (claims(JSON.quoted("{\(ec)}")), JWKError(.malformed, "card_data_key")),
            (claims(#"{\#(ec),"d":"AA"}"#), JWKError(.privateKey, "d")),
            ("[]", JWKError(.json(0, due: "an object"))),
        ])
    func claimsWithoutAPublicKeyAreRefused(claims: String, error: JWKError) {
        #expect(throws: error) { try JWK(member: "card_data_key", of: claims.utf8) }
    }

    @Test func textsAreBounded() throws {
        let space = String(repeating: " ", count: JWK.maximumLength - 2)
        #expect(try JWK(member: "card_data_key", of: "{\(space)}".utf8) == nil)
        let error = JWKError(.tooLong(JWK.maximumLength + 1))
        #expect(throws: error) { try JWK(member: "card_data_key", of: "{\(space) }".utf8) }
        #expect(throws: error) { try JWK("{\(space) }") }
        #expect(throws: error) { try JWK.set("{\(space) }") }
    }

    /// JWK and thumbprint: RFC 7638, section 3.1; RFC 9449, sections 4.1 and 6.1; RFC 8037, appendix A.3.
    static let thumbprints = [
        (
            #"""
            {"kty":"RSA","n":"0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_\#
            BJECPebWKRXjBZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicA\#
            taSqzs8KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G\#
            _xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw","e":"AQAB","alg":"RS256","kid":"2011-04-29"}
            """#, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"
        ),
        (
            #"""
            {"kty":"EC","x":"l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",\#
            "y":"9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA","crv":"P-256"}
            """#, "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
        ),
        (
            #"{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#,
            "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
        ),
    ]

    @Test(arguments: thumbprints)
    func aKeyHasTheThumbprintThatItsSpecificationHas(text: String, thumbprint: String) throws {
        #expect(try JWK(text).thumbprint() == thumbprint)
    }

    @Test func aSetsKeysHaveTheirThumbprintsHoweverTheSetIsWritten() throws {
        let spaced =
            #"{"keys" : [ {"use":"sig",\#(Self.y) , "kid":"other", "crv":"P\u002d256",\#(Self.x),"\u006bty":"EC"} ]}"#
        let keys = try JWK.set(#"{"keys":[\#(Self.thumbprints[0].0),{\#(Self.ec)}],"more":1}"#)
        #expect(try keys.map { try $0.thumbprint() }.first == Self.thumbprints[0].1)
        #expect(try JWK.set(spaced).map { try $0.thumbprint() } == [keys[1].thumbprint()])
        #expect(try JWK.set(#"{"keys":[]}"#).isEmpty)
    }

    @Test(
        arguments: [
            ("{}", JWKError(.malformed, "keys")), (#"{"keys":{}}"#, JWKError(.malformed, "keys")),
            (#"{"keys":[7]}"#, JWKError(.malformed, "keys")),
            (#"{"keys":[],"keys":[]}"#, JWKError(.json(11, due: "a name that was not there before"))),
            (#"{"keys":[{\#(ec),"d":"AA"}]}"#, JWKError(.privateKey, "d")),
            (#"{"keys":[{"kty":"oct","k":"AA"}]}"#, JWKError(.privateKey, "k")),
        ])
    func otherSetsAreRefused(text: String, error: JWKError) {
        #expect(throws: error) { try JWK.set(text) }
    }

    /// Two texts that mean the same key, and have two thumbprints, would be a way around a list of keys.
    @Test(
        arguments: [
            (#"{"kty":"oct"}"#, JWKError(.keyType, "kty")), ("{}", JWKError(.keyType, "kty")),
            (#"{"kty":"EC","crv":"P-257",\#(x),\#(y)}"#, JWKError(.curve, "crv")),
            (#"{"kty":"EC","crv":"P-256",\#(x)}"#, JWKError(.malformed, "y")),
            (#"{"kty":"EC","crv":"P-256",\#(x),"y":"AAAA"}"#, JWKError(.malformed, "y")),
            (#"{"kty":"EC","crv":"P-256",\#(y),\#(x.dropLast())="}"#, JWKError(.malformed, "x")),
            (#"{"kty":"RSA","n":"AP0","e":"AQAB"}"#, JWKError(.malformed, "n")),
        ])
    func aKeyThatIsWrittenInAnotherWayHasNoThumbprint(text: String, error: JWKError) throws {
        let jwk = try JWK(text)
        #expect(throws: error) { try jwk.thumbprint() }
    }
}
