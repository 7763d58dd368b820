import Synchronization
import Waiting

/// A state of a reader that outlives a connection to it, such as its automatic polling: how it is read, and put back.
package struct ReaderSetting: Sendable {
    /// For a person: `PICC operating parameter`.
    package let name: String
    /// The beginnings of the commands that change it; nil for any byte.
    package let changes: [[UInt8?]]
    /// The command that reads it; nil for one that cannot be read.
    package let read: [UInt8]?
    /// The command that puts it back: to what the answer to `read` says; to its initial value where that says nothing, nil
    /// where this is not known.
    package let restore: @Sendable (_ answer: [UInt8]?) -> [UInt8]?
    /// Whether the reader has carried out a command of `restore`; nil where it need not.
    package let isDone: (@Sendable (_ command: [UInt8], _ answer: [UInt8]) -> Bool)?

    package init(
        _ name: String, changes: [[UInt8?]], read: [UInt8]? = nil,
        restore: @escaping @Sendable (_ answer: [UInt8]?) -> [UInt8]?,
        isDone: (@Sendable (_ command: [UInt8], _ answer: [UInt8]) -> Bool)?
    ) {
        (self.name, self.changes, self.read, self.restore, self.isDone) = (name, changes, read, restore, isDone)
    }

    func isChanged(by command: [UInt8]) -> Bool {
        changes.contains { start in
            start.count <= command.count && zip(start, command).allSatisfy { $0 == nil || $0 == $1 }
        }
    }

    /// Puts the setting back.
    ///
    /// - Parameter answer: to ``read``; nil for the initial value.
    /// - Throws: `CardError`, of kind `notTransacted` where the reader says no.
    package func putBack(_ answer: [UInt8]?, over link: any ReaderLink) async throws {
        guard let command = restore(answer) else { return }
        guard let isDone else {
            _ = try? await link.transmit(command)
            return
        }
        guard isDone(command, try await link.transmit(command)) else {
            throw CardError(.notTransacted, "the reader does not take back its \(name)")
        }
    }
}

/// A link that puts back what its commands have changed of the reader, however it ends: closed, let go, or its task cancelled.
///
/// What a command is about to change is read before it; where that fails the command is not sent.
package final class RestoringLink: ReaderLink {
    /// The link without this.
    package let base: any ReaderLink
    private let work: Work

    /// - Parameter settings: of the reader's model, in the order in which they are put back.
    package init(over base: any ReaderLink, _ settings: [ReaderSetting]) {
        self.base = base
        work = Work(base, settings)
    }

    deinit { if work.isDue { Self.endings.add { [work] in try? await work.end() } } }

    package func transmit(_ command: [UInt8]) async throws -> [UInt8] { try await work.transmit(command) }

    package func close() async { try? await end() }

    /// As ``close()``.
    ///
    /// - Throws: the first error in putting back; the rest is done nevertheless.
    package func end() async throws {
        try await toTheEnd { [work] in try await work.end() }
    }

    /// Reads what these commands would change, and has it put back in the end, whether or not they are sent.
    package func prepare(for commands: [[UInt8]]) async throws { try await work.prepare(for: commands) }

    /// Waits for links that were let go to put their readers back.
    package static func waitForEndings() async { await endings.wait() }

    private static let endings = Endings()

    private final class Endings: Sendable {
        private let tasks = Mutex<(last: Int, running: [Int: Task<Void, Never>])>((0, [:]))

        func add(_ body: @escaping @Sendable () async -> Void) {
            tasks.withLock { tasks in
                tasks.last += 1
                tasks.running[tasks.last] = Task { [number = tasks.last] in
                    await body()
                    self.tasks.withLock { _ = $0.running.removeValue(forKey: number) }
                }
            }
        }

        func wait() async {
            for task in tasks.withLock({ $0.running.values }) { await task.value }
        }
    }

    /// Outlives the link, which may be let go at any time.
    private final class Work: Sendable {
        private struct State {
            /// Settings to be put back, by position.
            var changed: Set<Int> = []
            /// By the command that reads.
            var answers: [[UInt8]: [UInt8]] = [:]
            var last: (command: [UInt8], answer: [UInt8])?
            var isOver = false
        }

        private let link: any ReaderLink
        private let settings: [ReaderSetting]
        private let turn = Turn()
        private let state = Mutex(State())

        init(_ link: any ReaderLink, _ settings: [ReaderSetting]) {
            (self.link, self.settings) = (link, settings)
        }

        var isDue: Bool { state.withLock { !$0.isOver && !$0.changed.isEmpty } }

        func transmit(_ command: [UInt8]) async throws -> [UInt8] {
            try await turn.take()
            defer { turn.pass() }
            guard !state.withLock({ $0.isOver }) else { throw CardError(.disconnected) }
            try await take(settings.indices.filter { settings[$0].isChanged(by: command) })
            let answer = try await link.transmit(command)
            state.withLock { $0.last = (command, answer) }
            return answer
        }

        func prepare(for commands: [[UInt8]]) async throws {
            try await turn.take()
            defer { turn.pass() }
            try await take(settings.indices.filter { commands.contains(where: settings[$0].isChanged) })
        }

        private func take(_ affected: [Int]) async throws {
            for index in affected where !state.withLock({ $0.changed.contains(index) }) {
                if let read = settings[index].read, state.withLock({ $0.answers[read] }) == nil {
                    // Who has just asked need not ask again.
                    let known = state.withLock { $0.last?.command == read ? $0.last?.answer : nil }
                    let answer = if let known { known } else { try await link.transmit(read) }
                    state.withLock { $0.answers[read] = answer }
                }
                _ = state.withLock { $0.changed.insert(index) }
            }
        }

        func end() async throws {
            try await turn.take()
            defer { turn.pass() }
            let (changed, answers) = state.withLock { state in
                defer { (state.isOver, state.changed) = (true, []) }
                return (state.changed, state.answers)
            }
            var first: (any Error)?
            for index in changed.sorted() {
                let setting = settings[index]
                do {
                    try await setting.putBack(setting.read.flatMap { answers[$0] }, over: link)
                } catch {
                    first = first ?? error
                }
            }
            await link.close()
            if let first { throw first }
        }
    }
}
