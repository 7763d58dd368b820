import Glibc
import SmartCardSimulatorHosts

/// The library that makes a process see a mock bus has to be there from its start.
enum Preload {
    /// Restarts this program with the library, unless it is loaded.
    static func ensure() throws {
        guard !UMockdevHost.isAvailable, getenv(mark) == nil else {
            unsetenv(mark)
            return
        }
        let others = getenv("LD_PRELOAD").map { [String(cString: $0)] } ?? []
        setenv("LD_PRELOAD", ([UMockdevHost.preloadLibrary] + others).joined(separator: ":"), 1)
        setenv(mark, "1", 1)
        var arguments: [UnsafeMutablePointer<CChar>?] = CommandLine.arguments.map { strdup($0) } + [nil]
        execv("/proc/self/exe", &arguments)
        throw HostError(
            "cannot restart with \(UMockdevHost.preloadLibrary): \(String(cString: strerror(errno)))",
            hint: "Check that /proc is mounted.")
    }

    /// This process's environment without the variables for the mock bus.
    static var cleanEnvironment: [String: String] {
        var environment = ChildProcess.environment
        environment["UMOCKDEV_DIR"] = nil
        let others = environment["LD_PRELOAD"]?.split(separator: ":").filter { $0 != UMockdevHost.preloadLibrary } ?? []
        environment["LD_PRELOAD"] = others.isEmpty ? nil : others.joined(separator: ":")
        return environment
    }

    private static let mark = "VIRTUAL_READER_PRELOADED"
}
