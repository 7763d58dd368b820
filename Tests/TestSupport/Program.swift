import Foundation

/// A program under test, run from outside as a person would.
public final class Program: Sendable {
    /// How it ended and what it wrote.
    public struct Outcome: Sendable, CustomStringConvertible {
        /// The exit status; 128 and the signal's number if a signal ended it.
        public let status: Int32
        public let output: String
        public let error: String

        public var description: String { "exit \(status)\noutput: \(output)\nerror: \(error)" }

        /// - Throws: ``Failure`` if its status is not 0.
        public func check() throws { if status != 0 { throw Failure(outcome: self) } }
    }

    /// It did not do what a test needs of it.
    public struct Failure: Error, CustomStringConvertible {
        public let outcome: Outcome

        public var description: String { "\(outcome)" }
    }

    /// It did not end, or did not write what was waited for, in time.
    public struct Timeout: Error, CustomStringConvertible {
        public let description: String
    }

    /// The path of a program that this package builds: it lies next to the test bundle.
    public static func built(_ name: String) -> String { "\(buildDirectory)/\(name)" }

    /// The path of the program that runs.
    public static var this: String {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")) ?? "/proc/self/exe"
    }

    /// Whether a program that is not ours is installed.
    public static func isInstalled(_ name: String) -> Bool { path(name) != nil }

    /// Copies a program, to run the copy.
    ///
    /// Another process writes it: the kernel runs no file that is open for writing ("Text file busy"), and what is open
    /// here is open for a moment in every child that another test starts.
    public static func copy(_ program: String, to path: String, appending text: String = "") async throws {
        let script = #"cp "$1" "$2" && chmod 755 "$2" && cat >>"$2""#
        try await run(["sh", "-c", script, "sh", program, path], input: text).check()
    }

    /// Writes a program of the shell, to run it; see ``copy(_:to:appending:)``.
    public static func write(script: String, to path: String) async throws {
        try await copy("/dev/null", to: path, appending: "#!/bin/sh\n\(script)\n")
    }

    /// Runs a program to its end.
    ///
    /// - Parameter arguments: its name, found in PATH and in /usr/sbin, or its path; then what it is called with.
    /// - Parameter environment: added to this process's.
    /// - Throws: ``Timeout``, after the program has been killed.
    public static func run(
        _ arguments: [String], environment: [String: String] = [:], input: String = "",
        timeout: Swift.Duration = .seconds(120)
    ) async throws -> Outcome {
        try await Program(arguments, environment: environment, input: input).outcome(timeout: timeout)
    }

    public var pid: Int32 { process.processIdentifier }

    // Foundation's Process locks what its own thread changes.
    private let process = Process()
    private let name: String
    private let directory: URL

    /// Starts a program; see ``run(_:environment:input:timeout:)``.
    public init(_ arguments: [String], environment: [String: String] = [:], input: String = "") throws {
        name = arguments.joined(separator: " ")
        directory = FileManager.default.temporaryDirectory.appendingPathComponent("program-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: false)
        for file in ["output", "error"] { try Data().write(to: directory.appendingPathComponent(file)) }
        try Data(input.utf8).write(to: directory.appendingPathComponent("input"))
        let first = arguments.first ?? ""
        process.executableURL = URL(fileURLWithPath: Self.path(first) ?? first)
        process.arguments = Array(arguments.dropFirst())
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let input = try FileHandle(forReadingFrom: directory.appendingPathComponent("input"))
        let output = try FileHandle(forWritingTo: directory.appendingPathComponent("output"))
        let error = try FileHandle(forWritingTo: directory.appendingPathComponent("error"))
        (process.standardInput, process.standardOutput, process.standardError) = (input, output, error)
        // The process has them now.  Left open they would gather: Foundation's Process never lets go of them, and crashes
        // in run() where there are more than some 1,300.
        defer { for handle in [input, output, error] { try? handle.close() } }
        do {
            try process.run()
        } catch {
            try? FileManager.default.removeItem(at: directory)
            throw error
        }
        // Many run at once; this process, whose two or so threads watch them all, and play their devices, goes first.
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), id_t(process.processIdentifier), 5)
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        try? FileManager.default.removeItem(at: directory)
    }

    /// What it has written so far.
    public var output: String { read("output") }
    public var error: String { read("error") }

    public var isRunning: Bool { process.isRunning }

    public func signal(_ number: Int32) { kill(process.processIdentifier, number) }

    /// Waits until `isTrue`, asked every 10 ms.
    ///
    /// - Throws: ``Timeout`` that names `what` and what the program wrote.
    public func wait(
        for what: String, timeout: Swift.Duration = .seconds(120), until isTrue: @Sendable (Program) -> Bool
    ) async throws {
        let end = ContinuousClock.now + timeout
        while !isTrue(self) {
            guard ContinuousClock.now < end else {
                throw Timeout(description: "\(name): no \(what) within \(timeout)\noutput: \(output)\nerror: \(error)")
            }
            try await Task.sleep(for: .milliseconds(10))
        }
    }

    /// Waits for the program's end.
    ///
    /// - Throws: ``Timeout``, after the program has been killed.
    public func outcome(timeout: Swift.Duration = .seconds(120)) async throws -> Outcome {
        do {
            try await wait(for: "end", timeout: timeout) { !$0.isRunning }
        } catch {
            kill(process.processIdentifier, SIGKILL)
            throw error
        }
        let status = process.terminationStatus
        return Outcome(
            status: process.terminationReason == .uncaughtSignal ? 128 + status : status, output: output, error: error)
    }

    private func read(_ file: String) -> String {
        String(decoding: (try? Data(contentsOf: directory.appendingPathComponent(file))) ?? Data(), as: UTF8.self)
    }

    private static let buildDirectory: String = {
        URL(fileURLWithPath: this).deletingLastPathComponent().path
    }()

    private static func path(_ name: String) -> String? {
        if name.contains("/") { return name }
        let path = ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"
        return (path.split(separator: ":").map(String.init) + ["/usr/sbin", "/sbin"])
            .map { "\($0)/\(name)" }.first { FileManager.default.isExecutableFile(atPath: $0) }
    }
}
