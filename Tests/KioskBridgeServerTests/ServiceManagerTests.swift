import Foundation
import Synchronization
import TestSupport
import Testing

/// `kiosk-host` as a service of systemd: what it tells its manager, and what becomes of it where something is missing.
@Suite(.timeLimit(.minutes(5))) struct ServiceManagerTests {
    /// The manager's end of sd_notify(3), and a service that tells it something.
    private final class Service: Sendable {
        let program: Program
        private let folder = FileManager.default.temporaryDirectory.appending(path: "manager-\(UUID().uuidString)")
        /// The folder for the service's state.
        let state: String
        private let socket: CInt
        private let told = Mutex<[String]>([])

        init(_ arguments: [String], environment: [String: String] = [:]) throws {
            state = folder.appending(path: "state").path
            try FileManager.default.createDirectory(atPath: state, withIntermediateDirectories: true)
            let path = folder.appending(path: "notify").path
            socket = Foundation.socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
            guard Self.bind(socket, to: path) else { throw POSIXError(.EADDRINUSE) }
            program = try Program(
                arguments,
                environment: [
                    "NOTIFY_SOCKET": path, "STATE_DIRECTORY": state, "XDG_DATA_HOME": state,
                    "PCSCLITE_CSOCK_NAME": "/nonexistent",
                ].merging(environment) { $1 })
        }

        private static func bind(_ socket: CInt, to path: String) -> Bool {
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8.prefix($0.count - 1)) }
            return withUnsafeBytes(of: &address) { bytes in
                bytes.withMemoryRebound(to: sockaddr.self) {
                    Foundation.bind(socket, $0.baseAddress, socklen_t(bytes.count)) == 0
                }
            }
        }

        deinit {
            close(socket)
            try? FileManager.default.removeItem(at: folder)
        }

        /// The assignments so far, in their order.
        var assignments: [String] {
            told.withLock { told in
                var buffer = [UInt8](repeating: 0, count: 4096)
                while case let count = recv(socket, &buffer, buffer.count, 0), count > 0 {
                    let text = String(decoding: buffer.prefix(count), as: UTF8.self)
                    told += text.split(separator: "\n").map(String.init)
                }
                return told
            }
        }

        func wait(for assignment: String, count: Int = 1) async throws {
            try await program.wait(for: assignment) { _ in
                assignments.count { $0.hasPrefix(assignment) } >= count
            }
        }

        /// The page's address, once it is known.
        func address() async throws -> String {
            try await program.wait(for: "address") { $0.output.contains("\n") }
            return try #require(program.output.split(separator: "\n").first.map(String.init))
        }

        func end() async throws {
            program.signal(SIGTERM)
            try await program.wait(for: "end") { !$0.isRunning }
        }
    }

    @Test("A kiosk without reader, pcscd and payment service is ready, serves its page and says what is missing")
    func nothing() async throws {
        let service = try Service([
            Program.built("kiosk-host"), "--port", "0", "--service", "http://127.0.0.1:1",
        ])
        try await service.wait(for: "READY=1")
        let told = service.assignments
        #expect(told.first?.hasPrefix("STATUS=no reader: ") == true, "\(told)")
        #expect(!told.contains("WATCHDOG=1"), "no manager watches")
        let page = try await Program.run(["curl", "-sf", "-m", "60", service.address()])
        #expect(page.status == 0 && page.output.contains("kiosk-token"))
        try await service.program.wait(for: "remarks") {
            $0.error.contains("no reader: ")
                && $0.error.contains("no payments before reader and payment service are ready: ")
        }
        try await service.end()
        #expect(service.assignments.last == "STOPPING=1")
    }

    @Test(
        "A reader that is plugged in and pulled out again is told, and so is that the program works",
        .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"))
    func reader() async throws {
        let daemon = try await PrivatePCSCD()
        let service = try Service(
            [Program.built("kiosk-host"), "--port", "0"],
            environment: ["PCSCLITE_CSOCK_NAME": daemon.socket, "WATCHDOG_USEC": "400000"])
        try await service.wait(for: "STATUS=reader: Virtual PCD")
        try await service.wait(for: "WATCHDOG=1", count: 3)
        daemon.kill()
        try await service.wait(for: "STATUS=no reader: ")
        let count = service.assignments.count { $0 == "WATCHDOG=1" }
        try await service.wait(for: "WATCHDOG=1", count: count + 2)
        #expect(service.program.error.contains("no reader: "))
        try await service.end()
    }

    @Test(
        "A kiosk on a full disk is ready, serves its page and says what is wrong; when there is space, it takes payments",
        .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"))
    func fullDisk() async throws {
        let sandbox = try Program([Program.built("psp-sandbox"), "--port", "0", "--quiet"])
        defer { sandbox.signal(SIGTERM) }
        try await sandbox.wait(for: "address") { $0.output.hasSuffix("\n") }
        let address = try #require(sandbox.output.split(whereSeparator: \.isWhitespace).last.map(String.init))
        let daemon = try await PrivatePCSCD()
        let script = """
            mount -t tmpfs -o size=256k tmpfs "$STATE_DIRECTORY" && cat /dev/zero >"$STATE_DIRECTORY/fill"
            exec "$0" --port 0 --service "$1"
            """
        let service = try Service(
            ["unshare"] + PrivatePCSCD.options + ["sh", "-c", script, Program.built("kiosk-host"), address],
            environment: ["PCSCLITE_CSOCK_NAME": daemon.socket])
        try await service.wait(for: "READY=1")
        let page = try await Program.run(["curl", "-sf", "-m", "60", service.address()])
        #expect(page.status == 0)
        try await service.program.wait(for: "remark") { $0.error.contains("no payments before") }
        #expect(service.program.error.contains("store's folder"), "\(service.program.error)")
        // The disk as the service sees it.
        let fill = "/proc/\(service.program.pid)/root\(service.state)/fill"
        try FileManager.default.removeItem(atPath: fill)
        try await service.program.wait(for: "payments") { $0.error.contains("payments are ready") }
        try await service.end()
    }

    @Test("A kiosk with a wrong credential is ready, serves its page and says so until it has that of its store")
    func credential() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "credential-\(UUID().uuidString)")
        let credentials = folder.appending(path: "credentials")
        try FileManager.default.createDirectory(at: credentials, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = credentials.appending(path: "swift-contactless-store")
        // TEST
        let right = Data(0..<32)
        try right.write(to: file)
        let environment = ["CREDENTIALS_DIRECTORY": credentials.path]
        let worker = try await Program.run(
            [Program.built("store-worker"), folder.path, "0", "fill", "1"], environment: environment)
        try #require(worker.output.contains("opened"), "\(worker)")

        try right.prefix(31).write(to: file)
        let service = try Service(
            [Program.built("kiosk-host"), "--port", "0", "--service", "http://127.0.0.1:1"],
            environment: environment.merging(["STATE_DIRECTORY": folder.appending(path: "store").path]) { $1 })
        try await service.wait(for: "READY=1")
        let page = try await Program.run(["curl", "-sf", "-m", "60", service.address()])
        #expect(page.status == 0 && page.output.contains("kiosk-token"))
        func wait(for text: String) async throws {
            try await service.program.wait(for: text) { $0.error.contains(text) }
        }
        try await wait(for: "31 bytes are no wrapping key")
        try Data(right.reversed()).write(to: file, options: .atomic)
        try await service.program.wait(for: "another reason") {
            $0.error.contains(#/the store's key: the store's keys cannot be used: \S*store\.key: /#)
        }
        #expect(!service.program.error.contains("can be used\n"))
        try right.write(to: file, options: .atomic)
        try await wait(for: "the store's key can be used\n")
        try await service.end()
    }
}
