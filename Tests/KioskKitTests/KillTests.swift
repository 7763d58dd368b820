import Foundation
import SmartCardSimulator
import TestSupport
import Testing

/// kill -9 at a random moment, over both surfaces, with payments, refunds and stored payments: the payment service's books,
/// the ledger and the application's view agree to the cent.
///
/// `KILLS=1000` kills so often, `SEED=…` repeats a run as far as the machine's timing does.
@Suite(.serialized, .timeLimit(.minutes(60))) struct KillTests {
    private static let kills = ProcessInfo.processInfo.environment["KILLS"].flatMap { Int($0) } ?? 40
    private static let seed =
        ProcessInfo.processInfo.environment["SEED"].flatMap { UInt64($0) } ?? .random(in: 1...(1 << 48))

    @Test(
        "killed at any moment, nothing is charged or given back that nobody knows of, or twice",
        arguments: ["kiosk", "adapter"])
    func kill(_ surface: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "kill-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        var killed = 0
        for run in 0..<UInt64(Self.kills / 2) {
            let seed = Self.seed &+ run
            let program = try Program([Program.built("payment-worker"), folder.path, "\(seed)", "matrix", surface])
            try await program.wait(for: "start") { !$0.output.isEmpty }
            // In one run of two it ends by itself before that.
            try await Task.sleep(for: .milliseconds((seed &* 0x9E37_79B9) >> 20 % 300))
            program.signal(SIGKILL)
            let outcome = try await program.outcome(timeout: .seconds(60))
            #expect(outcome.status == 128 + SIGKILL, "seed \(seed): \(outcome.error.suffix(500))")
            killed += 1
            guard run % 10 == 9 || run + 1 == UInt64(Self.kills / 2) else { continue }
            let drained = try await Program.run(
                [Program.built("payment-worker"), folder.path, "\(seed)", "matrix", surface, "drain"],
                timeout: .seconds(60))
            #expect(drained.status == 0, "seed \(seed): \(drained.error.suffix(500))")
            let (books, view) = (try Self.money(folder, "books"), try Self.money(folder, "view"))
            let differing = Set(books.keys).union(view.keys).filter { books[$0] != view[$0] }
            #expect(
                differing.isEmpty,
                "seed \(Self.seed), run \(run): \(differing.map { "\($0) books \(books[$0] ?? 0) view \(view[$0] ?? 0)" })"
            )
            let refunded = try Self.lines(folder, "books").filter { $0.count == 3 }.map { $0[1] }
            #expect(Set(refunded).count == refunded.count, "seed \(Self.seed), run \(run): given back twice")
            guard differing.isEmpty else { return }
        }
        let books = try Self.money(folder, "books")
        print(
            "\(surface): seed \(Self.seed), \(killed) kills, \(books.count) bookings, \(books.values.reduce(0, +)) cents"
        )
        #expect(!books.isEmpty)
    }

    private static func lines(_ folder: URL, _ name: String) throws -> [[Substring]] {
        try String(contentsOf: folder.appending(path: name), encoding: .utf8).split(separator: "\n")
            .map { $0.split(separator: " ") }
    }

    /// What each key comes to, in cents: of a refund less than nothing, of what is taken back nothing.
    private static func money(_ folder: URL, _ name: String) throws -> [String: Int] {
        var sums: [String: Int] = [:]
        var over: Set<String> = []
        for line in try lines(folder, name) {
            guard let first = line.first, let last = line.last else { continue }
            switch first.first {
            case "+": sums[String(first.dropFirst())] = Int(last)
            case "-": sums[String(first.dropFirst())] = Int(last).map(-)
            default: if ["reversed", "void"].contains(first) { over.insert(String(line[1])) }
            }
        }
        return sums.filter { !over.contains($0.key) }
    }
}
