import SmartCard
import TestSupport
import Testing

@testable import TravelDocument

/// ICAO 9303-11, appendix D: every number is published there.  // TEST
@Suite struct BasicAccessControlTests {
    static let key = Result {
        try AccessKey(documentNumber: "L898902C", dateOfBirth: "690806", dateOfExpiry: "940623")
    }

    static let challenge = "781723860C06C226"
    static let keyHalf = "0B795240CB7049B01C19B33E32804F0B"
    static let command =
        "0082000028"
        + "72C29C2371CC9BDB65B779B8E8D37B29ECC154AA56A8799FAE2F498F76ED92F25F1448EEA8AD90A728"
    static let response =
        "46B9342A41396CD7386BF5803104D7CEDC122B9132139BAF2EEDC94EE178534F2F2D235D074D7449"

    private func access() throws -> BasicAccessControl {
        var random = GivenRandomSource([Self.challenge, Self.keyHalf])
        return try #require(BasicAccessControl(Self.key.get(), random: &random))
    }

    private func refusal(_ challenge: String, _ response: String) throws -> AccessRefusal? {
        var access = try access()
        var step = access.next(nil)
        for text in [challenge, response] where step.isSend { step = access.next(try ResponseAPDU(hex(text))) }
        guard case .refused(let refusal) = step else { return nil }
        return refusal
    }

    @Test("The worked example: key, commands, session keys, and the first three files' bytes")
    func example() throws {
        var access = try access()
        let chip = ScriptedChip(
            ("0084000008", "46 08 F9 19 88 70 22 12 9000".filter { $0 != " " }),
            (Self.command, Self.response + "9000"))
        guard case .established(var messaging) = try chip.open(&access) else {
            Issue.record("not established")
            return
        }
        #expect(chip.mistakes == [] && chip.isDone)

        // D.4: SELECT EF.COM, READ BINARY of 4 bytes, READ BINARY of 18.
        for (command, protected, response, clear) in [
            (
                "00A4020C02011E", "0CA4020C158709016375432908C044F68E08BF8B92D635FF24F800",
                "990290008E08FA855A5D4C50A8ED9000", "9000"
            ),
            (
                "00B0000004", "0CB000000D9701048E08ED6705417E96BA5500",
                "8709019FF0EC34F9922651990290008E08AD55CC17140B2DED9000", "60145F019000"
            ),
            (
                "00B0000412", "0CB000040D9701128E082EA28A70F3C7B53500",
                "871901FB9235F4E4037F2327DCC8964F1F9B8C30F42C8E2FFF224A990290008E08C8B2787EAEA07D749000",
                "04303130365F36063034303030305C0261759000"
            ),
        ] {
            try expectEqual(messaging.protect(CommandAPDU(hex(command))).bytes.hex, protected)
            try expectEqual(messaging.unprotect(ResponseAPDU(hex(response))).bytes.hex, clear)
        }
    }

    @Test("A chip that does not know the key is found out: by its MAC, by its own challenge, and by the reader's")
    func strangers() throws {
        let challenge = "4608F919887022129000"
        try expectEqual(refusal(challenge, Self.response + "9000"), nil)
        // The MAC, and the cryptogram under it.
        for index in [0, 31, 32, 39] {
            var bytes = try hex(Self.response)
            bytes[index] ^= 1
            try expectEqual(refusal(challenge, bytes.hex + "9000"), .chipNotAuthenticated)
        }
        // Of somebody who knows the key: the answer to another reader's challenge.
        let (cipher, keys) = (
            SessionCipher.tripleDES,
            (try hex("AB94FDECF2674FDFB9B391F85D7F76F2"), try hex("7962D9ECE03D1ACD4C76089DCE131543"))
        )
        let clear = try hex("4608F91988702212" + "781723860C06C227" + Self.keyHalf)
        let cryptogram = try #require(cipher.cbc(clear, key: keys.0, encrypting: true))
        let mac = try #require(cipher.mac(cipher.padded(cryptogram), key: keys.1))
        try expectEqual(refusal(challenge, (cryptogram + mac).hex + "9000"), .chipNotAuthenticated)
        // A replayed answer does not contain this challenge.
        try expectEqual(refusal("46 08 F9 19 88 70 22 13 9000", Self.response + "9000"), .chipNotAuthenticated)
        try expectEqual(refusal(challenge, String(Self.response.dropLast(2)) + "9000"), .malformedAnswer)
        try expectEqual(refusal("46 08 F9 19 88 70 22 9000", "6F00"), .malformedAnswer)
    }

    @Test(
        "A wrong key is told as one",
        arguments: [("6300", nil), ("6982", nil), ("6985", nil), ("6988", nil), ("63C2", 2), ("63C0", 0)])
    func wrongKey(_ status: String, _ tries: Int?) throws {
        try expectEqual(refusal("4608F919887022129000", status), .wrongKey(triesLeft: tries))
        try expectEqual(refusal("4608F919887022129000", "6D00"), .status(0x6D00))
        try expectEqual(refusal("6D00", status), .status(0x6D00))
    }

    @Test("A card access number opens no chip by this protocol")
    func otherKeys() throws {
        var random = SeededRandomSource()
        #expect(BasicAccessControl(try AccessKey("123456", kind: .cardAccessNumber), random: &random) == nil)
    }
}

extension AccessStep {
    var isSend: Bool { if case .send = self { true } else { false } }
}
