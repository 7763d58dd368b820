import Foundation
import Glibc
import SmartCard

extension Benchmarks {
    /// Measures the time to the first line of `reader-probe --virtual`, the least of several runs, and the memory of one that waits
    /// for cards.
    static func start() async throws {
        let tool = "\(programs())/reader-probe"
        var times: [Double] = []
        for _ in 0..<31 { times.append(try time { try run(tool, "--virtual") { _ in } }) }
        print(
            "start: reader-probe --virtual, first line after \(microseconds(times.min() ?? 0)), median \(microseconds(median(times)))"
        )
        var (own, resident, libraries) = (0, 0, 0)
        try run(tool, "watch", "--virtual") { child in
            // It has shown its reader, and waits.
            usleep(500_000)
            own = memory("RssAnon", of: "\(child)")
            resident = memory("VmRSS", of: "\(child)")
            let maps = (try? String(contentsOfFile: "/proc/\(child)/maps", encoding: .utf8)) ?? ""
            libraries = Set(maps.split(separator: "\n").compactMap { $0.split(separator: " ").last }).count {
                $0.contains(".so")
            }
            kill(child, SIGTERM)
        }
        print(
            """
            start: reader-probe watch --virtual, \(own) KiB of its own\(Limit.verdict(atMost: 8192, own)), \
            \(resident) KiB resident, \(libraries) shared libraries\(Limit.verdict(atMost: 20, libraries))
            """)
    }

    static func programs() -> String {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &path, path.count - 1)
        let whole = String(decoding: path.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return whole.split(separator: "/").dropLast().map { "/\($0)" }.joined()
    }

    private static func time(_ body: () throws -> ContinuousClock.Instant) rethrows -> Double {
        let start = ContinuousClock.now
        return nanoseconds(try body() - start)
    }

    /// - Parameter body: called when the first line has come.
    /// - Returns: when the first line came.
    @discardableResult
    private static func run(
        _ arguments: String..., body: (pid_t) throws -> Void
    ) throws -> ContinuousClock.Instant {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw CardError(.other, "no pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[0]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
        // The same everywhere: no locale, and one arena for all threads.
        var environment: [UnsafeMutablePointer<CChar>?] = [strdup("MALLOC_ARENA_MAX=1"), nil]
        defer { environment.forEach { free($0) } }
        var argv = arguments.map { strdup($0) } + [nil]
        defer { argv.forEach { free($0) } }
        var child = pid_t()
        guard posix_spawn(&child, arguments[0], &actions, nil, &argv, &environment) == 0 else {
            close(ends[1])
            throw CardError(
                .other, "\(arguments[0]) cannot be run", hint: "Build it: swift build -c release --product reader-probe"
            )
        }
        close(ends[1])
        var buffer = [UInt8](repeating: 0, count: 4096)
        var first: ContinuousClock.Instant?
        while case let count = read(ends[0], &buffer, buffer.count), count > 0 {
            guard first == nil, buffer[..<count].contains(UInt8(ascii: "\n")) else { continue }
            first = .now
            try body(child)
        }
        var status: Int32 = 0
        waitpid(child, &status, 0)
        guard status == 0 || status == SIGTERM, let first else { throw CardError(.other, "\(arguments[0]) failed") }
        return first
    }
}
