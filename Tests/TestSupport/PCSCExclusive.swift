public import Testing

/// One test at a time has libpcsclite: a process has one path to pcscd, and this trait makes its users queue for it, in
/// whatever suites they are.
public struct PCSCExclusive: TestTrait, SuiteTrait, TestScoping {
    public let isRecursive = true

    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        // A suite has no body of its own, and its tests queue for themselves.
        guard testCase != nil else { return try await function() }
        await Queue.shared.enter()
        do {
            try await function()
        } catch {
            await Queue.shared.leave()
            throw error
        }
        await Queue.shared.leave()
    }

    private actor Queue {
        static let shared = Queue()
        private var isTaken = false
        private var waiting: [CheckedContinuation<Void, Never>] = []

        func enter() async {
            guard isTaken else {
                isTaken = true
                return
            }
            await withCheckedContinuation { waiting.append($0) }
        }

        func leave() {
            if waiting.isEmpty { isTaken = false } else { waiting.removeFirst().resume() }
        }
    }
}

extension Trait where Self == PCSCExclusive {
    /// The test uses libpcsclite in this process.
    public static var pcscExclusive: PCSCExclusive { PCSCExclusive() }
}
