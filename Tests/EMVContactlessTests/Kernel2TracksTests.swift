import EMVContactless
import Foundation
import SmartCard
import TestSupport
import Testing

/// Mag-stripe mode with the results of an issuer that was written apart, Vectors/kernel2-tracks.py.
@Suite struct Kernel2TracksTests {
    /// Its path.
    static let issuer = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "Vectors/kernel2-tracks.py").path

    /// Every number of digits of CVC3, counter and unpredictable number, in places anywhere in tracks of nines, also in their
    /// first and in their last; in the end there is the number of digits.
    @Test func tracksOfTheIssuer() throws {
        let rows = Kernel2Tracks.rows.split(separator: "\n").map { $0.split(separator: " ").map(String.init) }
        expectEqual(rows.count, 289)
        let (first, second) = ("B5413330089010434^A/^3112201", "5413330089010434D3112201")
        for row in rows {
            let track1 = Array((first + String(repeating: "9", count: 48)).utf8).hex
            let record = try template(
                0x70, "56 4C", track1, "9F 62 06", row[0], "9F 63 06", row[1], "9F 64 01", row[2],
                "9F 6B 13", second + String(repeating: "9", count: 13) + "F", "9F 65 02", row[5], "9F 66 02", row[6],
                "9F 67 01", row[7])
            let checksum = try template(0x77, "9F 60 02", row[3], "9F 61 02", row[8], "9F 36 02", row[10])
            let run = try Kernel2Bench().run(MagStripeCard().processingOptions, record, checksum)
            let number = try #require(run.commands.last).dropFirst(10).dropLast(2)
            func digits(_ row: String) -> String {
                zip("abcdefgh", number).reduce(row) { $0.replacing(String($1.0), with: String($1.1)) }
            }
            let zeros = number.prefix { $0 == "0" }.count
            let lastDigit = row[9].last?.wholeNumberValue ?? 0
            #expect(zeros + lastDigit >= 8, "\(row)")
            let made = String(decoding: run.outcome.dataRecord?[0x56] ?? [], as: UTF8.self)
            expectEqual(made, first + digits(row[4]), "\(row)")
            expectEqual(run[record: 0x9F6B], second + digits(row[9]) + "F", "\(row)")
        }
    }

    @Test(.enabled(if: Program.isInstalled("python3"), "python3 is missing"))
    func theIssuerHasTheSameResults() async throws {
        let outcome = try await Program.run(["python3", Self.issuer])
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Kernel2Tracks.swift")
        try expectEqual(outcome.output, String(contentsOf: file, encoding: .utf8))
    }
}
