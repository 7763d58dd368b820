import Foundation
import Testing

/// There is one clock, `Time` of Waiting, which a test can let pass: nobody else asks the machine what time it is.
@Suite struct ClockTests {
    /// Files that know the machine's time, or block a thread for a time, and why.
    static let real = [
        "Cameras/CameraNode.swift": "a camera that is still in use, on a thread of its own",
        "Cameras/CameraSystem.swift": "a camera behind a descriptor; its caller counts the time",
        "CardEncryption/Keys/LockedKeyFile.swift": "another program has the file, and says nothing when it lets go",
        "CardReceipts/Printing/DescriptorLink.swift": "a printer behind a descriptor, on the kernel's time",
        "KioskBridge/Host/ScreenLockWatch.swift": "the system's bus behind a descriptor, without a limit",
        "ProximityReader/Store/RecordStore.swift": "another program has the store, and says nothing when it lets go",
        "ProximityReader/Terminal/ReaderLook.swift": "a caller that is no task waits two seconds at most",
        "ProximityReader/Terminal/SleepWatch.swift": "the system's bus behind a descriptor, without a limit",
        "SmartCardPCSC/BlockingThread.swift": "threads that wait for libpcsclite",
        "SmartCardPCSC/WinSCard.swift": "calls that pcscd answers",
        "SmartCardPN532/Serial/SerialLine.swift": "a line behind a descriptor, on the kernel's time",
        "SmartCardSimulatorHosts/PrivatePCSCD.swift": "a program that starts and ends",
        "SmartCardSimulatorHosts/PseudoTerminalHost.swift": "a driver behind a descriptor, on the kernel's time",
        "SmartCardSimulatorHosts/USBIPConnection.swift": "the machine is short of something",
        "SmartCardSimulatorHosts/UnixSocket.swift": "a program behind a descriptor",
        "SmartCardSimulatorHosts/VPCDHost.swift": "a program behind a descriptor",
        "USBDevices/LibUSB.swift": "libusb's thread, when it fails and when the process ends",
    ]

    /// The tests that sleep, ask for the real time or choose a port: why, and how often in which files.  All others wait in
    /// simulated time or for an event, and have their ports from the kernel.
    static let left: [(reason: String, files: [String: Int])] = [
        (
            "the clocks themselves, against the machine's",
            [
                "TestSupport/TestTime/TimeKeeper.swift": 2, "WaitingTests/DeadlinesTests.swift": 3,
                "WaitingTests/TimeTests.swift": 14,
            ]
        ),
        (
            "where all tests wait for what tells nobody: a program's output and its end, a thread, a library",
            [
                "TestSupport/Program.swift": 3, "TestSupport/Promptness.swift": 1,
                "TestSupport/VirtualReaderProcess.swift": 1,
            ]
        ),
        (
            "another program that does not tell of what it has come to, such as pcscd, a payment service or a compiler",
            [
                "KernelTests/USBIPReader.swift": 1, "KioskBridgeServerTests/Served.swift": 1,
                "KioskBridgeServerTests/SocketTests.swift": 5, "SmartCardPCSCTests/RealServiceTests.swift": 2,
                "SmartCardPN532Tests/ReaderStackTests.swift": 1, "ToolTests/BackendTests.swift": 1,
                "ToolTests/CheckoutSandboxTests.swift": 1, "ToolTests/GitDescriptionTests.swift": 1,
                "ToolTests/ProgramTraceTests.swift": 1, "ToolTests/ReaderProbeTests.swift": 1,
                "ToolTests/VirtualReaderHostTests.swift": 4, "ToolTests/VirtualReaderTests.swift": 1,
            ]
        ),
        (
            "a virtual machine, whose time is its own, and what runs in it",
            [
                "KernelTests/GuestConformanceTests.swift": 6, "KernelTests/VirtualMachine.swift": 2,
                "KernelTests/camera-probe/CameraProbe.swift": 1,
            ]
        ),
        (
            "a program that is killed at any moment",
            [
                "CardEncryptionTests/KeyFileTests.swift": 1, "KioskKitTests/KillTests.swift": 1,
                "KioskKitTests/payment-worker/Matrix.swift": 2, "ProximityReaderTests/StoreFaultTests.swift": 2,
                "ToolTests/KioskTests.swift": 1,
            ]
        ),
        (
            "a program that is looked at until it is killed, and ends by itself if nobody does",
            [
                "ComposableCheckoutTests/tainted-checkout/main.swift": 1,
                "KioskKitTests/payment-worker/main.swift": 1, "ProximityReaderTests/tainted-terminal/main.swift": 1,
                "TravelDocumentTests/tainted-document/main.swift": 1,
            ]
        ),
        (
            "threads behind descriptors, which a test plays against each other or keeps from going on",
            [
                "CameraTestSupport/CameraDriver.swift": 1, "CardEncryptionTests/KeyFileTests.swift": 1,
                "CardReceiptsTests/FakePrinter.swift": 1, "KernelTests/USBIPTests.swift": 2,
                "SmartCardPCSCTests/WatchTests.swift": 3, "TestSupport/FakePCSCD.swift": 1,
            ]
        ),
        ("libusb's threads, which are not woken for so long", ["SmartCardUSBTests/LibUSBTests.swift": 2]),
        ("the guide's source as published", ["KioskBridgeTests/JourneyGuide/JourneyGuide.swift": 1]),
    ]

    /// `ContinuousClock.Instant` is a type, as `Time.Instant`.
    private static let time = Repository.pattern(
        #"\bContinuousClock\b(?!\.Instant\b)|\bContinuousClock\.Instant\.now\b|\bSuspendingClock\b|\bClock<|\b(?:Task|Thread)\.sleep\b"#
            + #"|(?:^|[^\w.])u?sleep\(|\bnanosleep\b|\basyncAfter\b|\bmakeTimerSource\b|\bDispatchTime\b|\.wait\(timeout:"#
            + #"|\bCLOCK_MONOTONIC\b"#)
    /// What only sources count: in a test it may be a date.
    private static let implied = Repository.pattern(#"(?:^|[^\w)\]?.])\.now\b(?!\()|\bpoll\(&"#)
    private static let port = Repository.pattern(#"\bfree(?:Port)?\(\)|\.promptly\b"#)

    /// The same of judges and of scripts in the virtual machine: each `sleep`.
    static let leftInScripts: [(reason: String, files: [String: Int])] = [
        (
            "where all wait for what tells nobody: a process's end, its log, what is drawn",
            [
                "KernelTests/Guest/functions": 1, "KioskBridgeServerTests/Judges/host_kiosk.py": 1,
                "KioskBridgeServerTests/Judges/host_numbers.py": 2, "KioskBridgeServerTests/Judges/page_browser.py": 1,
                "KioskBridgeServerTests/Judges/server_clients.py": 6,
            ]
        ),
        ("pages that go at any moment", ["KioskBridgeServerTests/Judges/server_clients.py": 1]),
        ("pcscd, which does not answer for two seconds after it was asked", ["KernelTests/Guest/reader-steps": 1]),
        ("a reader that forgets after 300 ms", ["SmartCardPN532Tests/Judges/nfcpy-pass.py": 1]),
    ]
    private static let sleep = Repository.pattern(#"\b(?:asyncio|time)\.sleep\((?!0\))|(?m:^|[;{&|]) *sleep \d"#)

    /// Each file's code, by its path in the folder.
    private static func code(in folder: String) throws -> [String: String] {
        try texts(in: folder) { $0.hasSuffix(".swift") }.mapValues { Repository.code(of: $0) }
    }

    private static func texts(in folder: String, _ isMeant: (String) -> Bool) throws -> [String: String] {
        let root = Repository.root.appending(path: folder)
        var texts: [String: String] = [:]
        for path in try FileManager.default.subpathsOfDirectory(atPath: root.path) where isMeant(path) {
            texts[path] = try String(contentsOf: root.appending(path: path), encoding: .utf8)
        }
        return texts
    }

    /// How often `patterns` match in each file's code, without the files where they never do.
    private static func counts(in folder: String, _ patterns: [NSRegularExpression]) throws -> [String: Int] {
        try code(in: folder).mapValues { code in patterns.reduce(0) { $0 + $1.count(in: code) } }.filter { $1 > 0 }
    }

    /// How often a test sleeps in ``Time`` while nobody simulates it: neither its own traits nor its suite's say so.
    private static func realSleeps(in code: String) -> Int {
        code.ranges(of: "Time.sleep(").count { sleep in
            let before = code[..<sleep.lowerBound]
            // What stands outside a suite is a device, a service or a helper, and sleeps in its test's time.
            guard let test = before.range(of: "@Test", options: .backwards),
                !code[test.lowerBound..<sleep.lowerBound].contains("\n}\n")
            else { return false }
            let suite = before.range(of: "@Suite", options: .backwards).map {
                code[$0.lowerBound...].prefix { $0 != "{" }
            }
            let traits = code[test.lowerBound...].prefix { $0 != "{" } + (suite ?? "")
            return !traits.contains("simulatedTime")
        }
    }

    @Test("Sources wait and measure by Waiting's Time; the exceptions have reasons")
    func sources() throws {
        var counts = try Self.counts(in: "Sources", [Self.time, Self.implied])
        for (path, _) in counts where path.hasPrefix("Waiting/") { counts[path] = nil }
        #expect(Set(counts.keys).subtracting(Self.real.keys).isEmpty)
        #expect(Set(Self.real.keys).subtracting(counts.keys).isEmpty, "needs no exception any more")
    }

    @Test("No test gets a new sleep, a new bound of real time or a port of its choice")
    func tests() throws {
        var counts = try Self.counts(in: "Tests", [Self.time, Self.port])
        for (path, code) in try Self.code(in: "Tests") {
            let sleeps = Self.realSleeps(in: code)
            if sleeps > 0 { counts[path, default: 0] += sleeps }
        }
        counts["ArchitectureTests/ClockTests.swift"] = nil
        let scripts = try Self.texts(in: "Tests") {
            $0.hasSuffix(".py") && !$0.hasPrefix("Runner/") || $0.contains("/Guest/") && !$0.contains(".")
        }
        counts.merge(scripts.mapValues { Self.sleep.count(in: $0) }.filter { $1 > 0 }, uniquingKeysWith: +)
        var expected: [String: Int] = [:]
        for (_, files) in Self.left + Self.leftInScripts { expected.merge(files, uniquingKeysWith: +) }
        for path in Set(counts.keys).union(expected.keys).sorted() {
            let (count, left) = (counts[path] ?? 0, expected[path] ?? 0)
            if count > left { Issue.record("\(path): \(count) of \(left)") }
            if count < left { Issue.record("\(path): \(count) are left: its number is too large") }
        }
    }

    @Test(
        "The machine's time is found in whatever words",
        arguments: [
            ("ContinuousClock.now", true), ("ContinuousClock()", true), ("ContinuousClock.Instant.now", true),
            ("let due: ContinuousClock.Instant?", false), ("any Clock<Duration>", true), ("Task.sleep(for: x)", true),
            ("Time.sleep(for: x)", false), ("usleep(1)", true), ("queue.asyncAfter(deadline: x)", true),
            ("end - .now", true), ("(.now + x)", true), ("Time.now", false), ("time.now + x", false),
            ("state?.now", false), ("end.wait(timeout: x)", true), ("poll(&files, 2, -1)", true),
        ])
    func words(_ code: String, _ isFound: Bool) {
        #expect((Self.time.count(in: code) + Self.implied.count(in: code) > 0) == isFound)
    }

    @Test(
        "A sleep is real where neither its test nor its suite simulates the time",
        arguments: [
            ("@Suite struct A {\n    @Test func b() { Time.sleep(for: x) }\n}\n", 1),
            ("@Suite struct A {\n    @Test(.simulatedTime) func b() { Time.sleep(for: x) }\n}\n", 0),
            ("@Suite(.simulatedTime) struct A {\n    @Test func b() { Time.sleep(for: x) }\n}\n", 0),
            ("@Suite struct A {\n    @Test func b() {}\n}\n\nstruct C {\n    func d() { Time.sleep(for: x) }\n}\n", 0),
        ])
    func real(_ code: String, _ count: Int) { #expect(Self.realSleeps(in: code) == count) }
}
