import EMVContactless
import Foundation
import JWTKit
import ProximityReader
import Testing

/// What a terminal is made of, before there is one.
@Suite struct ConfigurationTests {
    private static let x = "A7bzZSKUJQVoRrbhhBeotBS9K9D8EecwZ6pYLsTrD_k"
    private static let y = "aE9mO7DM_syqfuBYF61tL8VPRBgKoSqG3AciFM2laRs"
    private static let other =
        #"{"kty":"EC","crv":"P-256","kid":"a","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}"#

    /// The terminal of a shop that takes money.
    private static func live(_ keys: String) -> ProximityReaderSystem.Configuration {
        var configuration = ProximityReaderSystem.Configuration()
        configuration.terminal.environment = .live
        configuration.tokenKeys = keys
        return configuration
    }

    /// The key of the test payment service, as somebody may have written it.  TEST: it is published.
    private static let publishedKeys: [String] = [
        TestPaymentService.keySet,
        #"{"keys":[{"kty":"EC","crv":"P-256","kid":"shop-1","x":"\#(x)","y":"\#(y)"}]}"#,
        #"{ "keys" : [ {"y":"\#(y)", "x":"\#(x)", "kid":"1", "crv":"P-256", "kty":"EC", "n":[1,{"a":null}]} ], "more": 1 }"#,
        #"{"keys":[\#(other),{"kty":"EC","crv":"P-256","kid":"b","use":"sig","key_ops":["verify"],"x":"\#(x)","y":"\#(y)"}]}"#,
        // The same key with an escape in it.
        #"{"keys":[{"kty":"EC","crv":"P-256","kid":"b","x":"\u00417bzZSKUJQVoRrbhhBeotBS9K9D8EecwZ6pYLsTrD_k","y":"\#(y)"}]}"#,
    ]

    @Test("a terminal that takes money trusts no published key, however the set is written", arguments: publishedKeys)
    func publishedKey(_ keys: String) throws {
        let message = try #require(refusal(of: Self.live(keys)))
        #expect(message.contains("anybody can sign"))
        // A terminal for tests may.
        var configuration = Self.live(keys)
        configuration.terminal.environment = .test
        _ = try configuration.validated()
    }

    @Test("a terminal that takes money trusts its payment service")
    func liveTerminal() throws { _ = try Self.live(#"{"keys":[\#(Self.other)]}"#).validated() }

    @Test(
        "keys that cannot be used are refused before there is a terminal",
        arguments: [
            // The published key, as RFC 7518 does not permit to write it: with padding, with a byte of zero before it.
            (#"{"keys":[{"kty":"EC","crv":"P-256","kid":"b","x":"\#(x)=","y":"\#(y)="},\#(other)]}"#, "malformed"),
            (
                #"{"keys":[{"kty":"EC","crv":"P-256","kid":"b","x":"AAO282UilCUFaEa24YQXqLQUvSvQ_BHnMGeqWC7E6w_5","y":"AGhPZjuwzP7Mqn7gWBetbS_FT0QYCqEqhtwHIhTNpWkb"}]}"#,
                "malformed"
            ),
            ("", "not JSON"), ("{}", "\"keys\""), (#"{"keys":[]}"#, "P-256"), (#"{"keys":{}}"#, "\"keys\""),
            (#"{"keys":[1]}"#, "\"keys\""),
            // JWTKit would sign with `d`, whatever x and y are.
            (#"{"keys":[{"kty":"EC","crv":"P-256","kid":"1","x":"\#(x)","y":"\#(y)","d":"AQ"}]}"#, "private key"),
            (#"{"keys":[{"kty":"EC","crv":"P-256","x":"\#(x)","y":"\#(y)"}]}"#, "\"kid\""),
            (#"{"keys":[{"kty":"EC","crv":"P-256","kid":"1","x":"\#(x)","y":"\#(x)"}]}"#, "no point"),
            (#"{"keys":[{"kty":"EC","crv":"P-384","kid":"1","x":"\#(x)","y":"\#(y)"}]}"#, "none is on P-256"),
            (#"{"keys":[{"kty":"EC","kty":"EC","crv":"P-256","kid":"1","x":"\#(x)","y":"\#(y)"}]}"#, "not JSON"),
            (String(repeating: " ", count: 1 << 17), "more than"),
        ])
    func unusableKeys(_ keys: String, _ reason: String) throws {
        let message = try #require(refusal(of: Self.live(keys)))
        #expect(message.contains(reason))
    }

    @Test("a terminal that takes money and stores knows whose tokens it stores for", arguments: [true, false])
    func storing(hasIssuer: Bool) throws {
        var configuration = Self.live(#"{"keys":[\#(Self.other)]}"#)
        configuration.storeAndForward = .init(limits: [:])
        configuration.tokenIssuer = hasIssuer ? "https://payments.example" : nil
        configuration.tokenAudience = hasIssuer ? nil : "terminals"
        #expect(try #require(refusal(of: configuration)).contains("tokenIssuer"))
        configuration.tokenIssuer = "https://payments.example"
        configuration.tokenAudience = "terminals"
        _ = try configuration.validated()
    }

    @Test("what the kernels refuse, no terminal is made of")
    func kernels() throws {
        var configuration = ProximityReaderSystem.Configuration()
        configuration.terminal.combinations = []
        #expect(throws: ConfigurationError.self) { _ = try configuration.validated() }
    }

    @Test("the reader may be chosen afterwards, and nothing else")
    func reader() throws {
        let configuration = try ProximityReaderSystem.Configuration().validated()
        guard case .serialNumber("1") = configuration.with(.serialNumber("1")).reader else {
            Issue.record("another reader")
            return
        }
    }

    private func refusal(of configuration: ProximityReaderSystem.Configuration) -> String? {
        do {
            _ = try configuration.validated()
            return nil
        } catch {
            return error.localizedDescription
        }
    }
}
