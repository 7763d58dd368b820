import Foundation
import TestSupport
import Testing

/// Whose `free` a program calls is its own choice: it links CWipedHeap, or it does not.
@Suite(.timeLimit(.minutes(5))) struct WipedHeapTests {
    @Test(
        "a program that links the library alone keeps its free and realloc; one that links CWipedHeap has others",
        .unsanitized(by: .address, .thread, because: "the heap is the sanitizer's"),
        arguments: [("store-worker", false), ("tainted-terminal", true)])
    func choice(program: String, isWiped: Bool) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "bindings-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        defer { try? FileManager.default.removeItem(at: folder) }
        let path = Program.built(program)
        // Started with too little to do anything.  ld.so(8): which object the name of each function was found in.
        _ = try await Program.run(
            [path],
            environment: [
                "LD_DEBUG": "bindings", "LD_BIND_NOW": "1", "LD_DEBUG_OUTPUT": folder.appending(path: "log").path,
                "SWIFT_BACKTRACE": "enable=no",
            ])
        let log = try #require(FileManager.default.contentsOfDirectory(atPath: folder.path).first)
        let lines = try String(contentsOf: folder.appending(path: log), encoding: .utf8).split(separator: "\n")
        for name in ["free", "realloc"] {
            let bindings = lines.filter { $0.contains("symbol `\(name)'") }
            #expect(!bindings.isEmpty)
            // `binding file A [0] to B [0]: normal symbol ...`
            let isReplaced = bindings.contains { $0.contains(" to \(path) [") }
            #expect(isReplaced == isWiped, "\(name): \(bindings)")
        }
    }
}
