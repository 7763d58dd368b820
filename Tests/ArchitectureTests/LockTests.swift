import Foundation
import Testing

/// A closure that is itself the value behind a lock is wrapped once more at each access: calls of it go deeper each
/// time, until the stack ends.
@Suite struct LockTests {
    @Test("No lock's value is a closure, or a tuple with one: a structure contains it")
    func closures() throws {
        let code = try ["Sources", "Tools", "Tests", "Examples", "Benchmarks"].flatMap { folder in
            let root = Repository.root.appending(path: folder)
            return try FileManager.default.subpathsOfDirectory(atPath: root.path).filter { $0.hasSuffix(".swift") }
                .map { try String(contentsOf: root.appending(path: $0), encoding: .utf8) }
        }
        let functions = Set(code.flatMap(Self.function.captures))
        #expect(functions.contains("HangAction"))
        let locks = code.flatMap(Self.lock.captures)
        #expect(locks.count > 200)
        for lock in locks where Self.keepsClosure(lock, functions) { Issue.record("\(lock)") }
    }

    @Test(
        "A closure is found in an optional, a tuple and under another name",
        arguments: [
            ("Lock<(@Sendable () -> Void)?>", true), ("Mutex<@Sendable () -> Void>", true),
            ("Mutex<(isThere: Bool, age: @Sendable () -> Duration)?>", true), ("Lock<HangAction?>", true),
            ("Mutex((isTaken: false, waiter: (@Sendable () -> Void)?.none))", true), ("Mutex(State())", false),
            ("Lock<[Int]>", false), ("Mutex<[@Sendable () -> Void]>", false), ("Mutex<[Int: HangAction]>", false),
        ])
    func kinds(_ lock: String, _ keeps: Bool) {
        #expect(Self.lock.captures(in: "    private let some = \(lock)(nil)\n").count == 1)
        #expect(Self.keepsClosure(lock, ["HangAction"]) == keeps)
    }

    private static let function = Repository.pattern(#"typealias (\w+) = [^\n]*->"#)

    /// The declarations of locks, from the type's name to the end of the line.
    private static let lock = Repository.pattern(
        #"(?m)(?:let|var) \w+(?: =|:) (?:Waitable)?((?:Lock|Mutex)[<(].*)$"#)

    /// A collection keeps its elements in one form.
    private static func keepsClosure(_ lock: String, _ functions: Set<String>) -> Bool {
        let value = lock.replacing(#/\[[^\]]*\]/#, with: "")
        return value.contains("->") || value.matches(of: #/\w+/#).contains { functions.contains(String($0.output)) }
    }
}
