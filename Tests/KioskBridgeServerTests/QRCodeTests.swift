import Foundation
import TestSupport
import Testing

@testable import kiosk_host

/// The codes of kiosk-host: their sizes, and other programs that make and read them.
@Suite(.timeLimit(.minutes(5))) struct QRCodeTests {
    /// An address of so many bytes.
    private static func address(_ length: Int) -> String {
        let start = "https://bank.example/challenges/"
        return start + (0..<length - start.count).map { "\($0 % 7)" }.joined()
    }

    /// ISO/IEC 18004:2015, table 7: the bytes of versions 1, 2, 7, 8 and 40 with error correction M.
    @Test(
        "A code is as small as it can be; a longer text than any code holds has none",
        arguments: [
            (1, 21), (14, 21), (15, 25), (122, 45), (123, 49), (2331, 177), (2332, nil), (100_000, nil), (0, nil),
        ] as [(Int, Int?)])
    func size(_ length: Int, _ size: Int?) {
        let modules = QRCode.modules(of: String(repeating: "x", count: length))
        #expect(modules?.count == size)
        #expect(modules?.allSatisfy { $0.count == size } != false)
    }

    @Test("The codes are those of qrencode", .enabled(if: Program.isInstalled("qrencode"), "qrencode is not installed"))
    func qrencode() async throws {
        for address in [Self.address(40), Self.address(2331)] {
            let outcome = try await Program.run([
                "qrencode", "-8", "-l", "M", "-m", "0", "-t", "ASCII", "-o", "-", address,
            ])
            // Two letters for each module.
            let rows = outcome.output.split(separator: "\n").map { row in
                row.enumerated().filter { $0.offset % 2 == 0 }.map { $0.element == "#" }
            }
            #expect(QRCode.modules(of: address) == rows)
        }
    }

    @Test(
        "zbarimg reads the text", .enabled(if: Program.isInstalled("zbarimg"), "zbar-tools is not installed"),
        arguments: [
            "https://bank.example/challenges/1?token=a%20b&x=%C3%A9#x", "http://127.0.0.1:8080/challenges/1",
            address(300), address(2048), address(2331),
        ])
    func zbar(_ address: String) async throws {
        let modules = try #require(QRCode.modules(of: address))
        // Four light modules around the code, three dots for each module (a portable graymap).
        let (quiet, scale) = (4, 3)
        let size = (modules.count + 2 * quiet) * scale
        let dots = (0..<size * size).map { dot -> UInt8 in
            let (y, x) = (dot / size / scale - quiet, dot % size / scale - quiet)
            return modules.indices.contains(y) && modules.indices.contains(x) && modules[y][x] ? 0 : 255
        }
        let file = FileManager.default.temporaryDirectory.appending(path: "code-\(UUID().uuidString).pgm")
        defer { try? FileManager.default.removeItem(at: file) }
        try (Data("P5 \(size) \(size) 255\n".utf8) + dots).write(to: file)
        let outcome = try await Program.run([
            "zbarimg", "--nodbus", "--quiet", "--raw", "-Sdisable", "-Sqrcode.enable", file.path,
        ])
        #expect(outcome.output == address + "\n")
    }
}
