import SmartCard
import TestSupport
import Testing
import Waiting

@testable import SmartCardSimulator

/// Apple's passes in a virtual iPhone, against published traces and a calculation in Python.
@Suite struct ApplePhoneTests {
    /// SHA-256 of `pass.com.passkit.pksamples.nfcdemo`.
    private static let demo = "03B57CDB3ECA0984BA9ABDC2FB45D86626D87B39D33C5C6DBBC313A6347A3146"
    private static let select = bytes("00 A4 04 00 0A 4F 53 45 2E 56 41 53 2E 30 31 00")

    /// GET DATA for a pass, one the reader wants alone.
    static func getData(
        p1: String = "01", p2: String = "01", version: String = "9F22 02 0100", pass: String = "9F25 20 \(demo)",
        capabilities: String = "9F26 04 00800002", _ rest: String = ""
    ) -> String {
        let data = bytes(version + pass + capabilities + rest)
        return "80 CA \(p1) \(p2) \([UInt8(data.count)].hex) \(data.hex) 00"
    }

    private func open(_ phone: any VirtualCard) -> any VirtualCard {
        for _ in 0..<4 { _ = phone.notice(.frame(RadioFrame(.typeA, [0x26]))) }
        phone.reset()
        return phone
    }

    private func status(_ phone: any VirtualCard, _ command: String) -> String? {
        phone.exchange(bytes(command))?.suffix(2).hex(separator: " ")
    }

    /// proxmark3's trace of an iPhone; four bytes of it are random.
    @Test("SELECT is answered as an iPhone does", arguments: [("both", "3E"), ("pass", "1E")])
    func selected(_ screen: String, _ capabilities: String) throws {
        let phone = open(try walletPhone("phone-apple", "screen \(screen)"))
        let answer = try #require(phone.exchange(Self.select))
        let trace = bytes(
            "6F 1D 50 08 41 70 70 6C 65 50 61 79 9F 21 02 01 00 9F 24 04 E9 CA ED E3 9F 23 04 00 00 00 \(capabilities) 90 00"
        )
        expectEqual(answer.count, trace.count)
        #expect(answer.prefix(20) == trace.prefix(20) && answer.suffix(9) == trace.suffix(9))
        #expect(phone.exchange(Self.select) != answer, "a random number")
    }

    @Test(
        "Commands are checked in the order in which phones check them",
        arguments: [
            (getData(p1: "00"), "6B 00"), (getData(p2: "02"), "6B 00"), ("80 A8 00 00 02 83 00 00", "6B 00"),
            (getData(p1: "02", version: "9F22 02 0200"), "6B 00"), (getData("9F28 05 00"), "67 00"),
            (getData(version: "9F22 02 0200"), "63 40"), (getData(version: ""), "63 40"),
            (getData(version: "9F22 02 0200", pass: ""), "63 40"), (getData(pass: ""), "6A 80"),
            (getData(pass: "9F25 02 03B5"), "6A 80"), (getData(capabilities: ""), "6A 80"),
            (getData(capabilities: "9F26 03 008000"), "6A 80"), (getData("9F2B 05 0000000000"), "6A 80"),
            (getData(pass: "9F25 20 " + String(repeating: "00", count: 32)), "6A 83"), (getData(), "62 87"),
            (getData("9F2B 05 0100000000 9F28 04 01020304"), "62 87"), (getData(p2: "00"), "90 00"),
        ])
    func order(_ command: String, _ expected: String) throws {
        let phone = open(try walletPhone("phone-apple", "screen both\nlocked 1"))
        _ = phone.exchange(Self.select)
        expectEqual(status(phone, command), expected)
    }

    @Test("The request of a published trace, with an address to sign up, gets a pass or nothing more")
    func published() throws {
        let phone = open(try walletPhone("phone-apple", "screen both"))
        _ = phone.exchange(Self.select)
        let url = "9F29 11 68747470733A2F2F6170706C652E636F6D"
        expectEqual(phone.exchange(bytes(Self.getData(p2: "00", url))), [0x90, 0x00])
        expectEqual(phone.exchange(bytes(Self.getData(url)))?.prefix(10), bytes("70 49 9F 2A 00 9F 27 43 C0 B7")[...])
        expectEqual(status(phone, Self.getData()), "6A 83", "a pass a tap, where passes alone are wanted")
        phone.reset()
        _ = phone.exchange(Self.select)
        expectEqual(status(phone, Self.getData()), "90 00")
    }

    /// The merchant's key is 33 32 times, the phone's 44 32 times; Python calculated the rest.
    @Test("With keys and clock given, the cryptogram is that of an independent calculation")
    func synthetic() throws {
        let curve = try #require(ChipCurve(12))
        let key = try #require(curve.publicKey(of: [UInt8](repeating: 0x33, count: 32)))
        let apple = try #require(VirtualCards.all.first { $0.name == "phone-apple" }).text
        let block = try #require(apple.firstRange(of: "    pass pass.com.passkit.pksamples.nfcdemo {"))
        let end = try #require(apple.firstRange(of: "    screen            $screen"))
        var text = apple
        text.replaceSubrange(
            block.lowerBound..<end.lowerBound,
            with: """
                pass pass.example.kiosk.loyalty {
                    key     \(key.hex)
                    message $message
                }
                ephemeral-key \(String(repeating: "44", count: 32))
                clock-at      788529152

                """)
        let phone = open(try CardFile(parsing: text.replacing("screen  card", with: "screen  both")).makeCard())
        _ = phone.exchange(Self.select)
        let answer = phone.exchange(
            bytes(
                Self.getData(
                    pass: "9F25 20 43990DD2A48A4DD6A9F525D86A617D5FB0B33CD7FD6F4959BD65F9C5E2DCFB67")))
        expectEqual(
            answer,
            bytes(
                """
                70499F2A009F27433D906C015B36890DACBD7C9A96BB74A1EE28B3D2D75B72E09A20EF25CF8E6FD8A9F0350D83A617B79599DFDBBD85\
                0F98741B195A1FC961E8099A27C3D3B1A4A571D4CE9000
                """))
    }

    @Test(
        "A phone that is locked says so until its holder has unlocked it", .simulatedTime, arguments: ["6287", "6984"])
    func lock(_ word: String) async throws {
        let phone = open(try walletPhone("phone-apple", "screen both\nunlock 2\nstatus \(word)"))
        let refusal = bytes(word).hex(separator: " ")
        for (wait, expected) in [(0, refusal), (1, refusal), (1, "90 00")] {
            try await Time.sleep(for: .seconds(wait))
            phone.reset()
            _ = phone.exchange(Self.select)
            expectEqual(status(phone, Self.getData()), expected)
        }
    }

    @Test(
        "A phone that leaves after its pass answers nothing until it is back, and stays the next time", .simulatedTime)
    func leaves() async throws {
        let phone = open(try walletPhone("phone-apple", "screen both\nleaves 500"))
        let directory = "00 A4 04 00 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31 00"
        _ = phone.exchange(Self.select)
        expectEqual(status(phone, Self.getData()), "90 00")
        expectEqual(phone.exchange(bytes(directory)), nil)
        #expect(!phone.notice(.frame(RadioFrame(.typeA, [0x26]))))
        try await Time.sleep(for: .milliseconds(500))
        #expect(phone.notice(.frame(RadioFrame(.typeA, [0x26]))))
        phone.reset()
        _ = phone.exchange(Self.select)
        expectEqual(status(phone, Self.getData()), "90 00")
        expectEqual(status(phone, directory), "90 00")
    }
}
