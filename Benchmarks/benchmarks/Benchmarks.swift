import CBaseline
import Foundation
import Logging
import SmartCardSimulatorHosts

/// The package's promises about what it costs, held against plain C in the same run.
///
///     benchmarks [--gate] [NAME …]
///
/// Each part runs in a process of its own: a part that fails is told, and the others run on; none finds caches, threads or a mock
/// bus that another has left.
@main
struct Benchmarks {
    private struct Part: Sendable {
        let name: String
        /// True if it needs a mock USB bus, whose library must be loaded from the start of the process.
        let hasBus: Bool
        let run: @Sendable () async throws -> Void

        init(_ name: String, hasBus: Bool = false, _ run: @escaping @Sendable () async throws -> Void) {
            (self.name, self.hasBus, self.run) = (name, hasBus, run)
        }
    }

    private static let parts = [
        Part("tlv", tlv), Part("kernel", kernel), Part("rrp", rrp), Part("layers", layers), Part("terminal", terminal),
        Part("loyalty", loyalty), Part("trace", hasBus: true, trace), Part("import", importing), Part("store", store),
        Part("forwarding", forwarding), Part("usb", hasBus: true, usb), Part("pcsc", hasBus: true, pcsc),
        Part("link", hasBus: true, link), Part("start", start), Part("first", firstTap), Part("passport", passport),
        Part("polling", hasBus: true, polling), Part("bridge", bridge), Part("checkout", checkout),
    ]

    /// The option with which this program calls itself for a part.
    private static let partOption = "--part"

    static func main() async {
        baseline_print_lines()
        let arguments = Array(CommandLine.arguments.dropFirst())
        if let option = arguments.firstIndex(of: partOption), option + 1 < arguments.count,
            let part = parts.first(where: { $0.name == arguments[option + 1] })
        {
            exit(await measure(part).rawValue)
        }
        if arguments.first == forwardOption, let count = arguments.last.flatMap({ Int($0) }) {
            do {
                try await forward(count)
                exit(0)
            } catch {
                tell("\(error)")
                exit(Outcome.failed.rawValue)
            }
        }
        let names = arguments.filter { $0 != Limit.gateOption }
        let chosen = parts.filter { part in names.isEmpty || names.contains { part.name.contains($0) } }
        guard !chosen.isEmpty else {
            tell("There is no such part: \(parts.map(\.name).joined(separator: ", "))")
            exit(64)  // sysexits.h: EX_USAGE
        }
        print("== \(machine)")
        var outcomes: [(name: String, outcome: Outcome)] = []
        for part in chosen { outcomes.append((part.name, runInItsOwnProcess(part))) }
        func list(_ outcome: Outcome) -> String {
            outcomes.filter { $0.outcome == outcome }.map(\.name).joined(separator: ", ")
        }
        print("== \(outcomes.count { $0.outcome == .kept }) of \(outcomes.count) parts keep their limits")
        for (outcome, title) in [(Outcome.exceeded, "NOT KEPT"), (.failed, "FAILED"), (.undecided, "UNDECIDED")]
        where outcomes.contains(where: { $0.outcome == outcome }) {
            print("== \(title): \(list(outcome))")
        }
        let worst = outcomes.map(\.outcome).max() ?? .kept
        exit(worst == .failed ? Outcome.exceeded.rawValue : worst.rawValue)
    }

    private static func measure(_ part: Part) async -> Outcome {
        LoggingSystem.bootstrap { label in
            var handler = StreamLogHandler.standardError(label: label)
            handler.logLevel = .warning
            return handler
        }
        guard baseline_set_libcrypto_apart() != 0 else {
            tell("\(part.name): libcrypto has allocated before it was asked not to")
            return .failed
        }
        do {
            try await part.run()
            return Limit.outcome
        } catch {
            print("\(part.name): FAILED: \(error)")
            return .failed
        }
    }

    private static func runInItsOwnProcess(_ part: Part) -> Outcome {
        let child = Process()
        child.executableURL = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath()
        child.arguments = [partOption, part.name] + (Limit.isGate ? [Limit.gateOption] : [])
        var environment = ProcessInfo.processInfo.environment
        if part.hasBus { environment["LD_PRELOAD"] = UMockdevHost.preloadLibrary }
        child.environment = environment
        do { try child.run() } catch {
            print("\(part.name): FAILED: \(error)")
            return .failed
        }
        child.waitUntilExit()
        if child.terminationReason == .exit, let outcome = Outcome(rawValue: child.terminationStatus) { return outcome }
        print(
            "\(part.name): FAILED: it ended with \(child.terminationReason == .exit ? "status" : "signal") \(child.terminationStatus)"
        )
        return .failed
    }

    /// What the figures are of.
    private static var machine: String {
        func line(_ path: String, _ start: String) -> String? {
            let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
            return text.split(separator: "\n").first { $0.hasPrefix(start) }?
                .split(whereSeparator: { ":=".contains($0) }).last?
                .trimmingCharacters(in: CharacterSet(charactersIn: " \""))
        }
        let processor = line("/proc/cpuinfo", "model name") ?? "an unknown processor"
        let system = line("/etc/os-release", "PRETTY_NAME") ?? "an unknown system"
        let kernel = line("/proc/sys/kernel/osrelease", "") ?? ""
        return
            "\(ProcessInfo.processInfo.activeProcessorCount) cores of \(processor), \(system), Linux \(kernel), "
            + (Limit.isOptimized ? "release build" : "debug build")
    }

    private static func tell(_ text: String) { FileHandle.standardError.write(Data("\(text)\n".utf8)) }
}
