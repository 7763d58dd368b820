import Foundation
import TestSupport

/// Debian's kernel in QEMU, without acceleration, over this machine's own file system: read-only, with a tmpfs on top.
/// What is installed here is installed there; what runs there changes nothing here.
///
/// It runs a list of steps, in `Guest`, to its end and powers off.  The server of the reader that the steps attach is this
/// machine's loopback interface.
struct VirtualMachine {
    /// Booted once, for all tests of readers.
    static let readers = Task { try await run("reader-steps", attaching: try await USBIPReader(["--card", "visa"])) }
    /// Booted once, for all tests of cameras.
    static let cameras = Task { try await run("camera-steps", attaching: nil) }

    /// Whether this process runs in it.
    static var isHere: Bool { ProcessInfo.processInfo.environment["IN_VIRTUAL_MACHINE"] != nil }

    /// One command of a list.
    struct Step {
        let name: String
        let status: Int
        let output: String
        let error: String
        /// What the kernel and pcscd had said last.
        let circumstances: String
        /// Seconds since the kernel's start, at the step's end.
        let uptime: Double

        /// - Parameter written: what of it is worth telling.
        func account(_ written: String) -> String { "\(name): exit \(status)\n\(written)\n\(circumstances)" }
    }

    /// Why it cannot be had on this machine; nil if it can.
    static let obstacle: String? = {
        #if !arch(x86_64)
        return "the virtual machine runs this machine's programs, and is an x86-64"
        #else
        for (program, package) in [
            ("qemu-system-x86_64", "qemu-system-x86"), ("usbip", "usbip"), ("pcscd", "pcscd"),
            ("opensc-tool", "opensc"), ("nfc-list", "libnfc-bin"), ("nfc-poll", "libnfc-examples"),
            ("v4l2-ctl", "v4l-utils"),
            ("/lib/systemd/systemd-udevd", "udev"),
            ("/usr/lib/pcsc/drivers/ifd-ccid.bundle", "libccid"),
        ] where !Program.isInstalled(program) && !FileManager.default.fileExists(atPath: program) {
            return "\(program) is not installed: sudo apt-get install \(package)"
        }
        for file in ["vmlinuz", "initramfs"]
        where !FileManager.default.isReadableFile(atPath: image.appendingPathComponent(file).path) {
            return "Debian's kernel is not installed in \(image.path): \(guest.path)/kernel-image \(image.path)"
        }
        return nil
        #endif
    }()

    private static let guest = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("Guest")
    private static let repository = guest.appendingPathComponent("../../..").standardizedFileURL
    private static let image = repository.appendingPathComponent(".build/kernel-image")

    /// In the order of their ends.
    let steps: [Step]
    /// What the kernel said, and then QEMU.
    let console: String
    /// From QEMU's start to its end.
    let duration: Duration
    private let logs: [String: String]

    /// Boots, runs all steps and powers off.
    ///
    /// The steps attach the reader, and ask for what is to be done to it.  After a quarter of an hour the machine is ended,
    /// wherever it is.
    private static func run(_ list: String, attaching reader: USBIPReader?) async throws -> VirtualMachine {
        let results = FileManager.default.temporaryDirectory.appendingPathComponent("kernel-tests-\(UUID().uuidString)")
        let requests = results.appendingPathComponent("requests")
        try FileManager.default.createDirectory(at: requests, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: results) }
        for (name, copy) in [("functions", "functions"), (list, "steps")] {
            try FileManager.default.copyItem(
                at: guest.appendingPathComponent(name), to: results.appendingPathComponent(copy))
        }
        // This machine's 127.0.0.1 is 10.0.2.2 there.
        let attach = reader?.attachCommand.joined(separator: " ")
            .replacingOccurrences(of: "127.0.0.1", with: "10.0.2.2")
        try """
        ATTACH='\(attach ?? "")'
        BIN='\(Program.built(""))'
        TESTS='\(Program.this)'
        UDEV='\(repository.appendingPathComponent("udev").path)'
        export THOROUGH=1

        """.write(to: results.appendingPathComponent("environment"), atomically: true, encoding: .utf8)

        let serving = reader.map { reader in Task { try await serve(requests, reader) } }
        defer { serving?.cancel() }
        let start = ContinuousClock.now
        let complaint: String
        do {
            complaint = try await boot(results).outcome(timeout: .seconds(900)).error
        } catch let timeout as Program.Timeout {
            // The steps that were done are told all the same.
            complaint = timeout.description
        }
        // The runner finds the guest's events beside its own.
        if let folder = ProcessInfo.processInfo.environment["SWIFT_CONTACTLESS_TMPDIR"] {
            for name in try FileManager.default.contentsOfDirectory(atPath: results.path)
            where name.hasPrefix("events.") {
                try FileManager.default.copyItem(
                    at: results.appendingPathComponent(name), to: URL(fileURLWithPath: "\(folder)/\(name)"))
            }
        }
        let machine = try VirtualMachine(results: results, complaint: complaint, duration: .now - start)
        for step in machine.steps { print("\(list): \(step.uptime) s \(step.name): exit \(step.status)") }
        print("\(list): \(machine.duration) in all")
        return machine
    }

    /// Starts QEMU, and waits until the guest's first process has the host's files, two minutes at most.
    ///
    /// QEMU 7.2 was seen, once in some hundred times, to stand still before the kernel's first line, for as long as one waited.
    /// Nothing of ours has run by then: such a machine is ended and started again, and what it was doing is printed.
    ///
    /// - Throws: `Program.Timeout` if that happens three times in a row.
    private static func boot(_ results: URL) async throws -> Program {
        let isUp = results.appendingPathComponent("up").path
        var attempt = 1
        while true {
            let machine = try Program(arguments(results: results.path))
            do {
                try await machine.wait(for: "first process of the virtual machine") {
                    FileManager.default.fileExists(atPath: isUp) || !$0.isRunning
                }
                return machine
            } catch let timeout as Program.Timeout {
                print("virtual machine, start \(attempt): \(timeout)\n\(await state(of: results))")
                machine.signal(SIGKILL)
                _ = try await machine.outcome()
                guard attempt < 3 else { throw timeout }
                attempt += 1
            }
        }
    }

    /// The console's end and the processors' registers of a machine that stands still, a second apart.
    private static func state(of results: URL) async -> String {
        let console = try? String(contentsOf: results.appendingPathComponent("console"), encoding: .utf8)
        let monitor = """
            import socket, sys, time
            monitor = socket.socket(socket.AF_UNIX)
            monitor.connect("\\0" + sys.argv[1])
            for _ in range(2):
                monitor.sendall(b"info status\\ninfo cpus\\ninfo registers -a\\n")
                time.sleep(1)
            monitor.settimeout(1)
            try:
                while True: sys.stdout.write(monitor.recv(65536).decode(errors="replace"))
            except OSError: pass
            """
        let registers = try? await Program.run(
            ["python3", "-c", monitor, results.path], timeout: .seconds(20))
        return "console: \(console?.suffix(2000) ?? "none")\n\(registers.map { "\($0)" } ?? "no registers")"
    }

    /// Carries out what is asked for, one file a request: `ID.request` with a line for the reader, to which `ID.answer` says
    /// `ok`, or what went wrong.
    private static func serve(_ requests: URL, _ reader: USBIPReader) async throws {
        while true {
            for name in try FileManager.default.contentsOfDirectory(atPath: requests.path)
            where name.hasSuffix(".request") {
                let request = requests.appendingPathComponent(name)
                let answer: String
                do {
                    try reader.perform(try String(contentsOf: request, encoding: .utf8))
                    answer = "ok"
                } catch {
                    answer = "\(error)"
                }
                try FileManager.default.removeItem(at: request)
                try answer.write(
                    to: request.deletingPathExtension().appendingPathExtension("answer"), atomically: true,
                    encoding: .utf8)
            }
            try await Task.sleep(for: .milliseconds(20))
        }
    }

    private static func arguments(results: String) -> [String] {
        func share(_ path: String, _ tag: String, _ more: String) -> [String] {
            let path = path.replacingOccurrences(of: ",", with: ",,")
            return ["-virtfs", "local,path=\(path),mount_tag=\(tag),security_model=none,\(more)"]
        }
        return [
            // Nested virtualisation hangs on some hosts; the emulator does not, and boots in seconds.
            "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "512",
            "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-kernel", image.appendingPathComponent("vmlinuz").path,
            "-initrd", image.appendingPathComponent("initramfs").path,
            // The kernel counts ticks while it boots, and panics where a busy machine gives it too few.
            "-append", "console=ttyS0 earlyprintk=ttyS0 panic=-1 mitigations=off no_timer_check",
            "-serial", "file:\(results)/console", "-mon", "monitor",
            // An abstract name, because a path may be too long for a socket.
            "-chardev", "socket,id=monitor,path=\(results),abstract=on,server=on,wait=off",
            "-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net,romfile=",
        ] + share("/", "host", "multidevs=remap,readonly=on") + share(results, "results", "readonly=off")
    }

    private init(results: URL, complaint: String, duration: Duration) throws {
        func text(_ path: String) -> String {
            String(decoding: (try? Data(contentsOf: results.appendingPathComponent(path))) ?? Data(), as: UTF8.self)
        }
        let names = try FileManager.default.contentsOfDirectory(atPath: results.path)
        steps = names.compactMap { name in
            guard let status = Int(text("\(name)/status").trimmingCharacters(in: .whitespacesAndNewlines)) else {
                return nil
            }
            let uptime = Double(text("\(name)/uptime").trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0
            return Step(
                name: name, status: status, output: text("\(name)/output"), error: text("\(name)/error"),
                circumstances: text("\(name)/circumstances"), uptime: uptime)
        }.sorted { $0.uptime < $1.uptime }
        logs = Dictionary(
            uniqueKeysWithValues: names.filter { $0.hasSuffix(".log") }.map { ($0, text($0)) })
        console = text("console") + complaint
        self.duration = duration
    }

    /// - Throws: ``Missing`` if the step did not come to its end.
    func step(_ name: String) throws -> Step {
        guard let step = steps.first(where: { $0.name == name }) else {
            throw Missing(
                description: "step \(name) is missing; done: \(steps.map(\.name)); console:\n\(console.suffix(4000))")
        }
        return step
    }

    /// What a step left as a log; empty if none.
    func log(_ name: String) -> String { logs["\(name).log"] ?? "" }

    struct Missing: Error, CustomStringConvertible {
        let description: String
    }
}
