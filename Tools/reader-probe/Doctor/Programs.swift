import Foundation

/// The output and status of a program.
struct ProgramAnswer: Sendable {
    /// The exit status; nil if the program exceeded its time limit, or a signal ended it.
    let status: Int32?
    /// Standard output and standard error, at most 64 KB.
    let text: String

    /// Runs a program on its own thread, without input and in the C locale.
    ///
    /// - Parameter path: a path with a slash, or a name in PATH.
    static func of(_ path: String, _ arguments: [String], limit: Duration = .seconds(5)) async -> ProgramAnswer? {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: ask(path, arguments, limit)) }
        }
    }

    private static func ask(_ path: String, _ arguments: [String], _ limit: Duration) -> ProgramAnswer? {
        let deadline = ContinuousClock.now + limit
        var pipe: [Int32] = [-1, -1]
        guard Foundation.pipe(&pipe) == 0 else { return nil }
        defer { close(pipe[0]) }
        for end in pipe { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        guard let child = start(path, arguments, writingTo: pipe[1]) else { return nil }
        let (text, isWhole) = read(pipe[0], until: deadline)
        // A process that still has the output open after the limit is killed with its process group.
        if !isWhole { kill(-child, SIGKILL) }
        var status: Int32 = 0
        while waitpid(child, &status, WNOHANG) == 0 {
            if ContinuousClock.now >= deadline { kill(-child, SIGKILL) }
            // A process that survives even this is abandoned.
            guard ContinuousClock.now < deadline + .seconds(1) else {
                status = SIGKILL
                break
            }
            usleep(2000)
        }
        // The exit status is in the second byte, a signal in the first.
        return ProgramAnswer(
            status: status & 0x7F == 0 ? status >> 8 & 0xFF : nil, text: String(decoding: text, as: UTF8.self))
    }

    /// Starts the program in its own process group, and closes `output`.
    private static func start(_ path: String, _ arguments: [String], writingTo output: Int32) -> pid_t? {
        defer { close(output) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output, 1)
        posix_spawn_file_actions_adddup2(&actions, output, 2)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETPGROUP))
        let environment = ProcessInfo.processInfo.environment.merging(["LC_ALL": "C"]) { $1 }
        var argumentList = ([path] + arguments).map { strdup($0) } + [nil]
        var environmentList = environment.map { strdup("\($0)=\($1)") } + [nil]
        defer { for string in argumentList + environmentList { free(string) } }
        var child = pid_t()
        let error = posix_spawnp(&child, path, &actions, &attributes, &argumentList, &environmentList)
        return error == 0 ? child : nil
    }

    private static func read(
        _ descriptor: Int32, until deadline: ContinuousClock.Instant
    ) -> (text: [UInt8], isWhole: Bool) {
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while text.count < 65_536 {
            let rest = (deadline - .now) / .milliseconds(1)
            var ready = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard rest > 0, poll(&ready, 1, Int32(rest.rounded(.up))) > 0 else { break }
            let count = Foundation.read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return (text, true) }
            text += buffer[..<count]
        }
        return (text, false)
    }
}

extension MachineFacts {
    /// Asks pcscd for its version and polkit for its decisions about this program.
    mutating func askPrograms(_ files: FileTree) async {
        if let program = service.program, let answer = await ProgramAnswer.of(files.place(program), ["--version"]) {
            service.readVersion(answer.text)
        }
        guard service.hasSocket, service.usesPolkit != false else { return }
        let user = user.id
        async let pcsc = Self.decision(on: .accessPCSC, user: user)
        async let card = Self.decision(on: .accessCard, user: user)
        (service.decisions[.accessPCSC], service.decisions[.accessCard]) = await (pcsc, card)
    }

    /// Asks as pcscd does: about this process, without a person to enter a password (pcsc-lite, src/auth.c).
    private static func decision(on action: PolkitAction, user: UInt32) async -> PolkitDecision? {
        // Field 22 in stat of proc(5), counted from behind the name, is the start time of the process.
        let stat = FileTree().text("/proc/self/stat")?.split(separator: ")").last?.split(separator: " ") ?? []
        let process = stat.count > 19 ? "\(getpid()),\(stat[19]),\(user)" : "\(getpid())"
        let answer = await ProgramAnswer.of("pkcheck", ["--action-id", action.rawValue, "--process", process])
        return answer.map(PolkitDecision.init)
    }
}

extension MachineFacts.PolkitDecision {
    /// Interprets the exit status of pkcheck(1): 126 without a bus, 127 if polkit is not on it or has failed.
    fileprivate init(_ answer: ProgramAnswer) {
        switch answer.status {
        case 0: self = .allowed
        case 1: self = .denied
        case 2, 3: self = .needsPassword
        case 127 where answer.text.contains("is not registered"): self = .unknownAction
        default:
            self = .unreachable(answer.text.split(whereSeparator: \.isNewline).last.map(String.init) ?? "no answer")
        }
    }
}

extension MachineFacts.Service {
    /// Parses `pcsc-lite version 1.9.9.` and a line of `Enabled features: …`.
    fileprivate mutating func readVersion(_ text: String) {
        for line in text.split(whereSeparator: \.isNewline) {
            if let rest = line.wholeMatch(of: /pcsc-lite version (\d[\d.]*\d).*/) {
                (version, versionSource) = (String(rest.1), "pcscd --version")
            }
            if line.hasPrefix("Enabled features:") {
                features = Set(line.split(separator: " ").dropFirst(2).map(String.init))
            }
        }
    }
}
