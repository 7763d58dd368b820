import Crypto
import Foundation
import SmartCard
import SmartCardSimulator
import Testing

@testable import WalletPasses

/// The reader's side of Apple's passes against the phone that a card file describes, which is written apart from it.
@Suite struct VirtualPhoneTests {
    private let loyalty: VASMerchant
    private let key: P256.KeyAgreement.PrivateKey

    init() throws {
        loyalty = try VASMerchant(passTypeIdentifier: "pass.example.kiosk.loyalty")
        // TEST
        key = try VASCryptogramTests.key(String(repeating: "33", count: 32))
    }

    /// A phone with a pass in front of the Visa card.
    private func phone(_ statements: String = "") throws -> any VirtualCard {
        let visa = try #require(VirtualCards.all.first { $0.name == "visa" }).text
        let pass = """
            pass pass.example.kiosk.loyalty {
                key     \(key.publicKey.x963Representation.map { String(format: "%02X", $0) }.joined())
                message "MEMBER-0001"
            }
            \(statements)
            """
        let (start, end) = try #require(visa.firstRange(of: "type-a {").map { ($0.lowerBound, $0.lowerBound) })
        var text = visa
        text.replaceSubrange(start..<end, with: pass + "\n")
        return try CardFile(parsing: text).makeCard()
    }

    private func read(
        _ phone: any VirtualCard, _ merchants: [VASMerchant], _ mode: AppleVAS.Mode
    ) throws -> AppleVAS.Outcome {
        var conversation = AppleVAS(merchants, mode: mode)
        var step = conversation.next(nil)
        while case .send(let command) = step {
            step = conversation.next(try ResponseAPDU(try #require(phone.exchange(command.bytes))))
        }
        guard case .finished(let outcome) = step else { throw CardError(.other, "\(step)") }
        return outcome
    }

    @Test("A pass is read and decrypts, and the payment card answers behind it in the same session")
    func passAndPayment() throws {
        let phone = try phone()
        phone.reset()
        guard case .read(let entries) = try read(phone, [loyalty], .passAndPayment),
            let cryptogram = entries.first?.cryptogram
        else {
            Issue.record("no pass")
            return
        }
        let pass = try cryptogram.open(with: [key], for: loyalty)
        #expect(pass.data.text == "MEMBER-0001" && !pass.isOlderVariant)
        var freshness = VASFreshness()
        #expect(freshness.judge(cryptogram, pass, at: .now) == .fresh)
        #expect(freshness.judge(cryptogram, pass, at: .now) == .replayed)
        let directory = try #require(phone.exchange(CommandAPDU.select(Array("2PAY.SYS.DDF01".utf8)).bytes))
        #expect(try ResponseAPDU(directory).status == .success)
        #expect(phone.exchange([0x80, 0xCA, 0x01, 0x01, 0x00])?.suffix(2) != [0x90, 0x00], "the wallet is left")
    }

    @Test("A phone that is locked shows its pass when it is tapped again, and one without the pass says so")
    func lockedOrAbsent() throws {
        let phone = try phone("locked-taps 1\nclock-ahead 3600")
        let other = try VASMerchant(passTypeIdentifier: "pass.example.other")
        phone.reset()
        guard case .read(let first) = try read(phone, [other, loyalty], .passOrPayment) else {
            Issue.record("no answer")
            return
        }
        #expect(first.map(\.status) == [.passNotFound, .notActivated])
        phone.reset()
        guard case .read(let second) = try read(phone, [loyalty, other], .passOrPayment),
            let cryptogram = second.first?.cryptogram
        else {
            Issue.record("no pass")
            return
        }
        #expect(second.map(\.status) == [.success, .passNotFound])
        let pass = try cryptogram.open(with: [key], for: loyalty)
        var freshness = VASFreshness()
        guard case .clockDiffers(let seconds) = freshness.judge(cryptogram, pass, at: .now) else {
            Issue.record("the clock is an hour ahead")
            return
        }
        #expect((3590...3600).contains(seconds))
    }

    @Test("A terminal that wants passes only gets one a tap")
    func onePass() throws {
        let phone = try phone()
        phone.reset()
        for status in [AppleVAS.Status.success, .passNotFound] {
            guard case .read(let entries) = try read(phone, [loyalty], .passOnly) else {
                Issue.record("no answer")
                return
            }
            #expect(entries.map(\.status) == [status])
        }
    }

    /// proxmark3 publishes the key.
    private func demo() throws -> (merchant: VASMerchant, key: P256.KeyAgreement.PrivateKey) {
        (
            try VASMerchant(passTypeIdentifier: "pass.com.passkit.pksamples.nfcdemo"),
            try VASCryptogramTests.key("3d1547f23cd78ad052a58860f1219e8fb791ec4dfe33769f5b9bfa627a656ca1")
        )
    }

    /// The built-in phone, where it shows its passes and its card to any reader, woken by four requests for cards.
    private func builtIn(_ parameters: String = "") throws -> any VirtualCard {
        let phone = try CardFile(parsing: "variant phone-apple {\nscreen both\n\(parameters)\n}").makeCard()
        let answers = (0..<4).map { _ in phone.notice(.frame(RadioFrame(.typeA, [0x26]))) }
        #expect(answers == [false, false, false, true])
        phone.reset()
        return phone
    }

    @Test(
        "The built-in phone has a pass for the published demo key",
        arguments: AppleVAS.Mode.allCases.filter { $0 != .paymentOnly })
    func publishedKey(_ mode: AppleVAS.Mode) throws {
        let (merchant, key) = try demo()
        guard case .read(let entries) = try read(try builtIn("message \"4711\""), [merchant], mode) else {
            Issue.record("no answer")
            return
        }
        #expect(try entries.first?.cryptogram?.open(with: [key], for: merchant).data.text == "4711")
    }

    @Test("A phone says that its holder is to unlock it, or to do something else")
    func seePhone() throws {
        let (merchant, _) = try demo()
        for (word, status) in [("6287", AppleVAS.Status.notActivated), ("6984", .userInterventionRequired)] {
            guard
                case .read(let entries) = try read(try builtIn("locked 1\nstatus \(word)"), [merchant], .passOrPayment)
            else {
                Issue.record("no answer")
                return
            }
            #expect(entries.map(\.status) == [status])
        }
    }

    @Test("A phone that leaves after its pass answers no SELECT for a payment")
    func leaves() throws {
        let (merchant, key) = try demo()
        let phone = try builtIn("leaves 600000")
        guard case .read(let entries) = try read(phone, [merchant], .passAndPayment) else {
            Issue.record("no answer")
            return
        }
        #expect(try entries.first?.cryptogram?.open(with: [key], for: merchant).data.text == "MEMBER-0001")
        #expect(phone.exchange(CommandAPDU.select(Array("2PAY.SYS.DDF01".utf8)).bytes) == nil)
    }

    @Test("A card without passes has no wallet") func plainCard() throws {
        let visa = try #require(VirtualCards.named("visa"))
        guard case .noPasses(.noApplication) = try read(visa, [loyalty], .passOrPayment) else {
            Issue.record("there is a wallet")
            return
        }
    }

    @Test(
        "A pass that no phone could have is refused with its line",
        arguments: [
            ("pass a { key 04 00\nmessage \"x\" }", "key"), ("pass a { message \"x\" }", "lacks"),
            ("locked-taps 1000", "0...100"),
        ])
    func malformed(_ statement: String, _ reason: String) throws {
        #expect {
            _ = try phone(statement.replacing("{ ", with: "{\n").replacing(" }", with: "\n}"))
        } throws: {
            "\($0)".contains(reason)
        }
    }
}
