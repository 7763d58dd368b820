import Glibc
import SmartCard

extension Benchmarks {
    /// Measures the time to the first line of `reader-probe --virtual`, and its memory: the least of several runs.
    static func start() async throws {
        let tool = executablePath().split(separator: "/").dropLast().map { "/\($0)" }.joined() + "/reader-probe"
        var runs: [(time: Double, memory: Int)] = []
        for _ in 0..<31 { runs.append(try run(tool, "--virtual")) }
        let time = runs.map(\.time).min() ?? .infinity
        let memory = runs.map(\.memory).min() ?? .max
        print(
            "start: reader-probe --virtual, first line after \(microseconds(time)), median \(microseconds(median(runs.map(\.time))))"
                + Limit.verdict(.milliseconds(25), time))
        print(
            "start: reader-probe --virtual, \(memory / 1024) MB resident"
                + Limit.verdict("24 MB", isKept: memory <= 24 * 1024))
    }

    private static func executablePath() -> String {
        var path = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &path, path.count - 1)
        return String(decoding: path.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// - Returns: the nanoseconds until the first line, and the peak resident memory in KB.
    private static func run(_ arguments: String...) throws -> (time: Double, memory: Int) {
        var ends: [Int32] = [0, 0]
        guard pipe(&ends) == 0 else { throw CardError(.other, "no pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        defer { close(ends[0]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
        // The mock bus must not be included.
        var environment: [UnsafeMutablePointer<CChar>?] = [nil]
        var argv = arguments.map { strdup($0) } + [nil]
        defer { argv.forEach { free($0) } }
        let start = ContinuousClock.now
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
            if first == nil, buffer[..<count].contains(UInt8(ascii: "\n")) { first = .now }
        }
        var status: Int32 = 0
        var usage = rusage()
        wait4(child, &status, 0, &usage)
        guard status == 0, let first else { throw CardError(.other, "\(arguments[0]) failed") }
        return (nanoseconds(first - start), usage.ru_maxrss)
    }
}
