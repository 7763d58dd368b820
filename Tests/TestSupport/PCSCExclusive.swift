public import Testing

/// One suite at a time has libpcsclite: a process has one path to pcscd, and suites with this trait queue for it.
///
/// The suite is `.serialized` as well, so that its tests take turns.  It waits as a whole, before any of its tests begins: no
/// test holds one of the runner's places while it waits for another, nor does the wait count for its time limit.
public struct PCSCExclusive: SuiteTrait, TestScoping {
    public func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
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
    /// The suite uses libpcsclite in this process.
    public static var pcscExclusive: PCSCExclusive { PCSCExclusive() }
}
