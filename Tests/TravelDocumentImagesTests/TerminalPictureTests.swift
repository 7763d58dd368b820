import Foundation
import TestSupport
import Testing
import ToolSupport

@testable import TravelDocumentImages

/// Pictures for terminals, as the tools write them.
@Suite struct TerminalPictureTests {
    private static func picture(_ drawing: Drawing, _ pixels: [UInt8]) -> TerminalPicture {
        TerminalPicture(width: drawing.width, height: drawing.height, pixels: pixels)
    }

    @Test(
        "kitty: the payloads together are the pixels, in parts of at most 4096 bytes",
        arguments: [
            Drawing(), Drawing(width: 1, height: 1), Drawing(width: 32, height: 32), Drawing(width: 1, height: 1025),
        ])
    func kitty(_ drawing: Drawing) throws {
        let pixels = drawing.samples.map(UInt8.init)
        let text = Self.picture(drawing, pixels).text(.kitty)
        let parts = text.matches(of: #/\x{1B}_G([^;]*);([^\x{1B}]*)\x{1B}\\/#)
        // Nothing else is written.
        #expect(parts.map { String($0.0) }.joined() == text)
        // Keys of the protocol: see sw.kovidgoyal.net/kitty/graphics-protocol.
        let last = parts.count - 1
        #expect(parts[0].1 == "a=T,f=24,s=\(drawing.width),v=\(drawing.height),q=2,m=\(last > 0 ? 1 : 0)")
        for (number, part) in parts.enumerated().dropFirst() { #expect(part.1 == "m=\(number < last ? 1 : 0)") }
        #expect(parts.allSatisfy { (1...4096).contains($0.2.utf8.count) && $0.2.utf8.count.isMultiple(of: 4) })
        #expect(parts.count == (pixels.count.dividedUp(by: 3) * 4).dividedUp(by: 4096))
        #expect(Data(base64Encoded: parts.map { String($0.2) }.joined()) == Data(pixels))
    }

    /// The picture as libsixel decodes it.  OpenJPEG's programs turn its PNG into bytes.
    private static func decoded(_ text: String) async throws -> Netpbm {
        let folder = try TemporaryFolder()
        let (sixel, png) = (folder.url.appending(path: "image.six"), folder.url.appending(path: "image.png"))
        try Data(text.utf8).write(to: sixel)
        try await folder.run("sixel2png -i IN -o OUT", in: sixel, out: png)
        let lossless = folder.url.appending(path: "image.j2k")
        try await folder.run("opj_compress -n 1 -i IN -o OUT", in: png, out: lossless)
        let result = folder.url.appending(path: "image.ppm")
        try await folder.run("opj_decompress -i IN -o OUT", in: lossless, out: result)
        return try Netpbm(Data(contentsOf: result))
    }

    @Test(
        "sixel: colors of the cube are exactly those that libsixel shows", .needsOpenJPEG,
        .enabled(if: Program.isInstalled("sixel2png"), "libsixel-bin is not installed"),
        arguments: [Drawing(), Drawing(width: 1, height: 1), Drawing(width: 300, height: 7)])
    func cube(_ drawing: Drawing) async throws {
        let pixels = drawing.samples.map { UInt8($0 / 51 * 51) }
        let shown = try await Self.decoded(Self.picture(drawing, pixels).text(.sixel))
        #expect(shown.width == drawing.width && shown.height == drawing.height)
        #expect(shown.pixels == pixels)
    }

    @Test(
        "sixel: other colors are right on the average of 4 × 4 pixels", .needsOpenJPEG,
        .enabled(if: Program.isInstalled("sixel2png"), "libsixel-bin is not installed"))
    func dithered() async throws {
        var pixels: [UInt8] = []
        for y in 0..<64 {
            // One color for each block.
            for x in 0..<64 { pixels += [UInt8(x / 4 * 17), UInt8(y / 4 * 17), 100] }
        }
        let picture = TerminalPicture(width: 64, height: 64, pixels: pixels)
        let shown = try await Self.decoded(picture.text(.sixel)).pixels
        for block in 0..<256 {
            for color in 0..<3 {
                let places = (0..<16).map { 3 * ((block / 16 * 4 + $0 / 4) * 64 + block % 16 * 4 + $0 % 4) + color }
                let mean = places.reduce(0) { $0 + Int(shown[$1]) } / 16
                // A step of 51 in 16 parts, each rounded.
                #expect(abs(mean - Int(pixels[places[0]])) <= 3, "\(block) \(color)")
            }
        }
    }

    @Test(
        "The environment or the terminal's attributes choose the protocol",
        arguments: [
            (["KITTY_WINDOW_ID": "1", "TERM": "xterm-256color"], [], .kitty), (["TERM": "xterm-kitty"], [4], .kitty),
            (["TERM": "xterm-256color"], [1, 4, 22], .sixel), (["TERM": "xterm-256color"], [22], nil), ([:], [], nil),
            (["KITTY_WINDOW_ID": ""], [], nil), (["TERM": "dumb"], [4], nil),
            (["KITTY_WINDOW_ID": "1", "TMUX": "/tmp/tmux-0/default,1,0"], [], nil),
            (["TERM": "xterm-kitty", "STY": "1.pts"], [4], .sixel),
        ] as [([String: String], [Int], PictureProtocol?)])
    func choice(_ environment: [String: String], _ attributes: [Int], _ choice: PictureProtocol?) {
        #expect(PictureProtocol(environment: environment) { attributes } == choice)
    }

    @Test(
        "A terminal is asked for its attributes, and is afterwards as it was", .timeLimit(.minutes(1)),
        arguments: [
            // xterm with sixel graphics, a VT102, and one at which somebody types.
            ("\u{1B}[?62;4;6;22c", [4, 6, 22]), ("\u{1B}[?6c", []), ("abc\u{1B}[?63;1;4c", [1, 4]), ("", []),
            ("no", []),
        ])
    func attributes(_ answer: String, _ expected: [Int]) throws {
        var (master, terminal): (Int32, Int32) = (-1, -1)
        try #require(openpty(&master, &terminal, nil, nil, nil) == 0)
        defer {
            close(master)
            close(terminal)
        }
        var (before, after) = (termios(), termios())
        tcgetattr(terminal, &before)
        // The answer waits already when the question comes: the terminal echoes it, as it is not yet told otherwise.
        write(master, answer, answer.utf8.count)
        #expect(Terminal.deviceAttributes(of: terminal) == expected)
        tcgetattr(terminal, &after)
        #expect(before.c_lflag == after.c_lflag)
        // Echo and question may come in two parts.
        var shown = ""
        while !shown.hasSuffix("\u{1B}[c") {
            var output = [UInt8](repeating: 0, count: 256)
            let count = read(master, &output, output.count)
            try #require(count > 0, "\(shown.debugDescription)")
            shown += String(decoding: output.prefix(count), as: UTF8.self)
        }
    }
}
