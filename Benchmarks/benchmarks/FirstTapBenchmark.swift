import Foundation
import SmartCard

extension Benchmarks {
    /// Compares a process's first card with later ones, after a rehearsal: the least of several processes, since the runtime's pool
    /// makes a thread now and then.
    static func firstTap() async throws {
        for (name, arguments) in [("paid with", []), ("read", ["inspect"])] {
            var (time, allocations) = (Double.infinity, Double.infinity)
            for _ in 0..<9 {
                let figures = try firstTap(arguments)
                (time, allocations) = (min(time, figures[2] / figures[3]), min(allocations, figures[4] / figures[5]))
            }
            print(
                """
                first: a card that is \(name), against later ones: \(Int(allocations * 100)) % of the allocations\
                \(Limit.verdict("130 %", isKept: allocations <= 1.3)), \(tenths(time)) times as long
                """)
        }
    }

    /// The six figures of `first-tap`, which is built beside this program.
    private static func firstTap(_ arguments: [String]) throws -> [Double] {
        let process = Process()
        process.executableURL = URL(filePath: "\(programs())/first-tap")
        process.arguments = arguments
        let pipe = Pipe()
        process.standardOutput = pipe
        try process.run()
        let output = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        process.waitUntilExit()
        let figures = output.split(whereSeparator: \.isWhitespace).compactMap { Double($0) }
        guard figures.count == 6 else { throw CardError(.other, "first-tap failed") }
        return figures
    }
}
