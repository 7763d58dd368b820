import SmartCardSimulator
import Testing

/// The statements of phones in card files.
@Suite struct PhoneFileTests {
    @Test(
        "A statement that no phone has is refused with its reason",
        arguments: [
            ("smart-tap {\n}\npass a {\n}", "not both"), ("screen both", "is of a phone"),
            ("smart-tap {\n}\nscreen open", "takes one of pass, card, both, closed"),
            ("smart-tap {\n}\nwakes never", "takes one of at-once, by-polling"),
            ("smart-tap {\n}\nlock-status 93", "four hexadecimal digits"),
            ("smart-tap {\n}\nleaves-after-pass soon", "milliseconds"),
            ("smart-tap {\n}\nclock-at 1", "is of a phone with “pass”"),
            ("smart-tap {\npart 8\n}", "16...256"), ("smart-tap {\nnonce 00\n}", "32 bytes"),
            ("smart-tap {\ncollector 1 {\n}\ncollector 1 {\n}\n}", "occurs twice"),
            ("smart-tap {\ncollector 1 {\nkey 1 0400\n}\n}", "65 bytes"),
            ("smart-tap {\ncollector 1 {\nkey 1 04 \(String(repeating: "11", count: 64))\n}\n}", "point on P-256"),
            ("smart-tap {\ncollector 1 {\nloyalty {\nid 00\nvalue \"1\"\n}\n}\n}", "8 bytes"),
            ("smart-tap {\ncollector 1 {\nloyalty {\nid 0000000000000000\n}\n}\n}", "lacks “value”"),
            ("smart-tap {\ncollector 1 {\ncustomer {\n}\n}\n}", "lacks “id”"),
            ("smart-tap {\ncollector 4294967296 {\n}\n}", "a collector"),
        ])
    func malformed(_ statements: String, _ reason: String) throws {
        let visa = try #require(VirtualCards.all.first { $0.name == "visa" }).text
        let text = visa.replacing("    type-a {", with: statements + "\n    type-a {")
        #expect { _ = try CardFile(parsing: text) } throws: { "\($0)".contains(reason) }
    }
}
