import Foundation
import FoundationNetworking
import TestSupport
import Testing

/// kill -9 at a random moment, over both surfaces, with payments, refunds and stored payments of a virtual card: psp-sandbox's
/// books and the application's view, which the ledger's outcomes are a part of, agree to the cent.
///
/// psp-sandbox outlives the kills: it loses answers, answers late, books late, after its caller's end, and refuses the merchant.
/// `KILLS=1000` kills so often, `SEED=…` repeats a run as far as the machine's timing does.
@Suite(.serialized, .timeLimit(.minutes(60))) struct KillTests {
    private static let kills =
        ProcessInfo.processInfo.environment["KILLS"].flatMap { Int($0) } ?? Tier.rounds(12, thorough: 40)
    private static let seed = Seed.value
    /// The most that it does before something goes wrong, and once more before it is killed.
    private static let steps = 40

    @Test(
        "killed at any moment, nothing is charged or given back that nobody knows of, or twice",
        arguments: ["kiosk", "adapter"])
    func kill(_ surface: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "kill-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let sandbox = try await Sandbox()
        defer { sandbox.end() }
        let trail = folder.appending(path: "trail")
        var random = Seed.generator(surface)
        var ends: [Trail.Phase?: Int] = [:]
        let runs = Self.kills / 2
        for run in 0..<runs {
            let seed = Self.seed &+ UInt64(run)
            let arguments = [
                Program.built("payment-worker"), folder.path, "\(seed)", "matrix", surface,
                sandbox.address.absoluteString,
            ]
            try await sandbox.post(.random(using: &random))
            let program = try Program(arguments)
            // In one run of two it ends by itself before that.
            if Int.random(in: 0..<8, using: &random) > 0 {
                try await program.wait(for: "start") { !$0.output.isEmpty }
                // By what it has done, so that a slow machine kills it as late as a fast one; what hangs is killed, too.
                await Self.someSteps(of: program, in: trail, using: &random)
                try await sandbox.post(.random(using: &random))
                await Self.someSteps(of: program, in: trail, using: &random)
            } else {
                try await Task.sleep(for: .milliseconds(.random(in: 0..<60, using: &random)))
            }
            program.signal(SIGKILL)
            let outcome = try await program.outcome(timeout: .seconds(60))
            #expect(outcome.status == 128 + SIGKILL, "seed \(Self.seed), run \(run): \(outcome.error.suffix(500))")
            ends[Trail.end(in: trail), default: 0] += 1
            guard run % 10 == 9 || run + 1 == runs else { continue }
            try await sandbox.post(.none)
            let drained = try await Program.run(arguments + ["drain"], timeout: .seconds(180))
            #expect(drained.status == 0, "seed \(Self.seed), run \(run): \(drained.error.suffix(500))")
            // What is booked late comes when the application knows all, and then nothing may come.
            try await wait(for: "what is booked late") { try await sandbox.delayed() == 0 }
            let lines = try Self.lines(folder)
            let (books, view) = (try await sandbox.money(), Self.money(lines))
            let differing = Set(books.keys).union(view.keys).filter { books[$0] != view[$0] }
            #expect(
                differing.isEmpty,
                "seed \(Self.seed), run \(run): \(differing.map { "\($0) books \(books[$0] ?? 0) view \(view[$0] ?? 0)" })"
            )
            let refunds = Set(lines.filter { $0.count == 3 && $0[0].hasPrefix("-") }.map { [$0[0], $0[1]] })
            #expect(
                Set(refunds.map { $0[1] }).count == refunds.count, "seed \(Self.seed), run \(run): given back twice")
            _ = Trail.end(in: trail)
            guard differing.isEmpty else { return }
        }
        let books = try await sandbox.money()
        let cents = books.values.reduce(0, +)
        print("\(surface): seed \(Self.seed), \(runs) kills, \(books.count) bookings, \(cents) cents")
        for phase in [nil] + Trail.Phase.allCases.map(Optional.some) {
            let name = phase.map { "\($0)" } ?? "before the first"
            print("    \(name.padding(toLength: 18, withPad: " ", startingAt: 0))\(ends[phase] ?? 0)")
            // To the adapter's application a payment that is stored is one as any other.
            guard Self.kills >= 1000, surface == "kiosk" || phase != .storing else { continue }
            #expect(ends[phase] ?? 0 > 0, "seed \(Self.seed): never killed while \(name)")
        }
        #expect(Self.kills < 40 || !books.isEmpty)
    }

    /// Waits until the program has done some steps more, has ended, or hangs.
    private static func someSteps(of program: Program, in trail: URL, using random: inout SplitMix) async {
        let steps = Trail.steps(in: trail) + Int.random(in: 0..<steps, using: &random)
        try? await program.wait(for: "steps", timeout: .seconds(5)) {
            Trail.steps(in: trail) >= steps || !$0.isRunning
        }
    }

    private static func lines(_ folder: URL) throws -> [[Substring]] {
        try String(contentsOf: folder.appending(path: "view"), encoding: .utf8).split(separator: "\n")
            .map { $0.split(separator: " ") }
    }

    /// What each key comes to in the application's view, in cents: of a refund less than nothing, of what is taken back nothing.
    private static func money(_ lines: [[Substring]]) -> [String: Int] {
        var sums: [String: Int] = [:]
        var over: Set<String> = []
        for line in lines {
            guard let first = line.first, let last = line.last else { continue }
            switch first.first {
            case "+": sums[String(first.dropFirst())] = Int(last)
            case "-": sums[String(first.dropFirst())] = Int(last).map(-)
            default: if first == "void" { over.insert(String(line[1])) }
            }
        }
        return sums.filter { !over.contains($0.key) }
    }
}

/// psp-sandbox in a process of its own, which lives as long as this.
private final class Sandbox: Sendable {
    let address: URL
    private let program: Program

    /// What goes wrong with the next calls.
    struct Fault: Encodable {
        let kind: String, calls: Int
        var status: Int?

        static let none = Fault(kind: "lost", calls: 0)

        static func random(using random: inout SplitMix) -> Fault {
            let calls = Int.random(in: 0...6, using: &random)
            let kinds = ["refused", "declined", "late", "lost", "delayed", "delayed"]
            // Refusals as of a merchant that is suspended, a key that has expired, a service that is down.
            return Fault(
                kind: kinds.randomElement(using: &random) ?? "", calls: calls,
                status: [401, 403, 409, 429, 500, 503].randomElement(using: &random))
        }
    }

    init() async throws {
        program = try Program([Program.built("psp-sandbox"), "--port", "0", "--late", "0.3", "--quiet"])
        try await program.wait(for: "address") { $0.output.contains("\n") }
        address = try #require(
            program.output.split(whereSeparator: \.isWhitespace).last.flatMap { URL(string: "\($0)") })
    }

    func end() { program.signal(SIGKILL) }

    func post(_ fault: Fault) async throws { _ = try await ask("faults", try JSONEncoder().encode(fault)) }

    /// How many calls wait to be carried out.
    func delayed() async throws -> Int {
        struct Faults: Decodable { let delayed: Int }
        return try JSONDecoder().decode(Faults.self, from: try await ask("faults")).delayed
    }

    /// What each key comes to, in cents, as in the application's view.  A card's key of CardReaderAdapter is that of its intent,
    /// a point, and its number.
    func money() async throws -> [String: Int] {
        struct Payment: Decodable { let idempotencyKey: String, kind: String, status: String, amount: String? }
        var sums: [String: Int] = [:]
        for payment in try JSONDecoder().decode([Payment].self, from: try await ask("payments"))
        where payment.status == "approved" {
            let cents = payment.amount.flatMap { Decimal(string: $0) }.map {
                NSDecimalNumber(decimal: $0 * 100).intValue
            }
            let key = String(payment.idempotencyKey.prefix { $0 != "." })
            sums[key, default: 0] += (payment.kind == "refund" ? -1 : 1) * (cents ?? 0)
        }
        return sums
    }

    private func ask(_ resource: String, _ body: Data? = nil) async throws -> Data {
        var request = URLRequest(url: address.appending(path: resource))
        request.httpMethod = body == nil ? "GET" : "POST"
        request.httpBody = body
        let session = URLSession(configuration: .ephemeral)
        defer { session.finishTasksAndInvalidate() }
        return try await session.data(for: request).0
    }
}
