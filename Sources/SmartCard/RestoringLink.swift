import Synchronization
import Waiting

/// A reader setting that outlives a connection, such as automatic polling, with the commands to read and restore it.
package struct ReaderSetting: Sendable {
    /// The name for people: `PICC operating parameter`.
    package let name: String
    /// The beginnings of the commands that change the setting; nil matches any byte.
    package let changes: [[UInt8?]]
    /// The command that reads the setting; nil if it cannot be read.
    package let read: [UInt8]?
    /// Returns the command that restores the setting: to the value in the answer to `read`, or to its initial value if
    /// there is no answer.  Nil if the initial value is unknown.
    package let restore: @Sendable (_ answer: [UInt8]?) -> [UInt8]?
    /// Returns true if the reader executed a command of `restore`; nil if the answer needs no check.
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

    /// Restores the setting.
    ///
    /// - Parameter answer: the answer to ``read``; nil for the initial value.
    /// - Throws: `CardError`, of kind `notTransacted` if the reader refuses.
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

/// A link that restores the settings that its commands changed.  It does so however it ends: closed, released, or with
/// its task canceled.
///
/// It reads each setting before the first command that changes it.  If reading fails, the command is not sent.
package final class RestoringLink: ReaderLink {
    /// The underlying link.
    package let base: any ReaderLink
    private let work: Work

    /// - Parameter settings: the settings of the reader's model, in the order in which they are restored.
    package init(over base: any ReaderLink, _ settings: [ReaderSetting]) {
        self.base = base
        work = Work(base, settings)
    }

    deinit { if work.isDue { Self.endings.add { [work] in try? await work.end() } } }

    package func transmit(_ command: [UInt8]) async throws -> [UInt8] { try await work.transmit(command) }

    package func releaseCard() async { await base.releaseCard() }

    package func close() async { try? await end() }

    /// Restores the settings and closes the link, as ``close()`` does.
    ///
    /// - Throws: the first error of a restore; the others are restored nevertheless.
    package func end() async throws {
        try await toTheEnd { [work] in try await work.end() }
    }

    /// Reads the settings that these commands would change and restores them at the end, even if the commands are never
    /// sent.
    package func prepare(for commands: [[UInt8]]) async throws { try await work.prepare(for: commands) }

    /// Waits until released links have restored their readers.
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

    /// The link's work, which outlives it: a link may be released at any time.
    private final class Work: Sendable {
        private struct State {
            /// The settings to restore, by position.
            var changed: Set<Int> = []
            /// The answers by read command.
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
                    // Reuses the answer if the caller has just read the setting.
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
            // Each of these settings is about the search for cards, or the field.
            if !changed.isEmpty { await link.releaseCard() }
            await link.close()
            if let first { throw first }
        }
    }
}
