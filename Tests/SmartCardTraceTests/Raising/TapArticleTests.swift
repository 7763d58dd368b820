import Foundation
import SmartCardTrace
import Testing

/// The bytes that the article “How a tap travels” shows.
@Suite struct TapArticleTests {
    /// SELECT PPSE (EMV Contactless Book B, 3.3.2).
    private static let select: [UInt8] = [0x00, 0xA4, 0x04, 0x00, 0x0E] + Array("2PAY.SYS.DDF01".utf8) + [0x00]

    @Test("Each diagram is the same exchange, on the layer that the text above it names")
    func layers() throws {
        let article = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "../../../Sources/SmartCard/Documentation.docc/HowATapTravels.md")
        let parts = try String(contentsOf: article, encoding: .utf8).components(separatedBy: "```text\n")
        var layers: [String] = []
        for (above, below) in zip(parts, parts.dropFirst()) {
            let name = try #require(above.matches(of: /layer `([a-z0-9]+)`/).last?.1)
            let layer = try #require(TraceEvent.Layer(rawValue: String(name)))
            let lines = try #require(below.components(separatedBy: "```").first).split(separator: "\n")
                .filter { $0.hasPrefix("> ") || $0.hasPrefix("< ") }.joined(separator: "\n")
            let (raised, omissions) = try frames(lines, on: layer).raised()
            #expect(
                raised.events.map(\.what) == [.sent(.apdu, Self.select), .received(.apdu, [0x6A, 0x82])], "\(name)")
            #expect(
                omissions.counts.map(\.what) == (layer == .pn532 ? ["acknowledgments of the PN532"] : []), "\(name)")
            layers.append(String(name))
        }
        #expect(layers == ["apdu", "ccid", "escape", "pn532", "rf"])
    }
}
