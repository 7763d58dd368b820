import Foundation
import SmartCard
import SmartCardPCSC
import SmartCardUSB
import TestSupport
import Testing

/// What every `CardReader` promises, held against Debian's kernel, pcscd and libccid.
@Suite(
    .thorough("a Linux kernel boots in QEMU; the same requirements behind umockdev stay fast, in ConformanceTests"),
    .insideVirtualMachine("conformance-pcsc"), .serialized,
    .enabled(if: VirtualMachine.obstacle == nil, "\(VirtualMachine.obstacle ?? "")"))
struct GuestPCSCConformanceTests {
    @Test(arguments: Requirement.all) func overTheKernel(_ requirement: Requirement) async throws {
        try await requirement.check(GuestBench { try await PCSCService().readers().first })
    }
}

/// Likewise, through the USB driver, which takes the reader from the kernel's driver and gives it back each time.
@Suite(
    .thorough("a Linux kernel boots in QEMU; the same requirements behind umockdev stay fast, in ConformanceTests"),
    .insideVirtualMachine("conformance-usb"), .serialized,
    .enabled(if: VirtualMachine.obstacle == nil, "\(VirtualMachine.obstacle ?? "")"))
struct GuestUSBConformanceTests {
    @Test(arguments: Requirement.all) func overTheKernel(_ requirement: Requirement) async throws {
        try await requirement.check(
            GuestBench {
                Guest.offerToKernel()
                return Guest.driver == "pn533_usb" ? try await USBReaders().readers().first : nil
            })
    }
}

/// The reader that is attached to the virtual machine, and the test program outside that holds it.
private struct GuestBench: Bench {
    let reader: any CardReader

    /// With no card on it.
    ///
    /// - Parameter find: the reader, when the machine has it.
    init(_ find: () async throws -> (any CardReader)?) async throws {
        try Guest.ask("remove")
        if !Guest.hasReader {
            try Guest.ask("plug")
            try await Guest.attach()
        }
        var found = try await find()
        let end = ContinuousClock.now + Guest.patience
        while found == nil, ContinuousClock.now < end {
            try await Task.sleep(for: .milliseconds(50))
            found = try await find()
        }
        reader = try #require(found, "the reader's interface is with \(Guest.driver ?? "nobody")")
        for try await state in reader.slotStates() where state == .empty { break }
    }

    func insert(_ card: String) throws {
        try Guest.ask("remove")
        try add(card)
    }

    func add(_ card: String) throws { try Guest.ask("insert \(card)") }

    func remove() throws { try Guest.ask("remove") }

    func unplug() throws {
        try Guest.ask("unplug")
        try Guest.wait(for: "the kernel to notice") { !Guest.hasReader }
    }
}

/// This process, in the virtual machine.
private enum Guest {
    /// For what takes a moment, on a machine that is emulated by a loaded one.
    static let patience = Duration.seconds(60)

    /// Has the test program outside do something to the reader: a line as virtual-reader's control socket takes it.
    static func ask(_ line: String) throws {
        let request = environment("REQUESTS") + "/\(UUID().uuidString)"
        try Data(line.utf8).write(to: URL(fileURLWithPath: request + ".new"))
        try FileManager.default.moveItem(atPath: request + ".new", toPath: request + ".request")
        var answer: String?
        try wait(for: line) {
            answer = try? String(contentsOfFile: request + ".answer", encoding: .utf8)
            return answer != nil
        }
        guard answer == "ok" else { throw Failure(description: "\(line): \(answer ?? "")") }
    }

    static var hasReader: Bool { device != nil }

    /// What has the reader's interface.
    static var driver: String? {
        device.flatMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "\($0):1.0/driver") }
            .map { URL(fileURLWithPath: $0).lastPathComponent }
    }

    /// Has the kernel's driver try again, where it gave up: on a slow machine it does not always wait for the reader's answer.
    static func offerToKernel() {
        guard driver == nil, let device else { return }
        let name = URL(fileURLWithPath: device).lastPathComponent + ":1.0"
        try? Data(name.utf8).write(to: URL(fileURLWithPath: "/sys/bus/usb/drivers/pn533_usb/bind"))
    }

    private static var device: String? {
        let devices = "/sys/bus/usb/devices"
        return (try? FileManager.default.contentsOfDirectory(atPath: devices))?.map { "\(devices)/\($0)" }.first {
            (try? String(contentsOfFile: "\($0)/idVendor", encoding: .utf8)) == "072f\n"
        }
    }

    static func attach() async throws {
        let command = environment("ATTACH").split(separator: " ").map(String.init)
        let outcome = try await Program.run(command, timeout: patience)
        guard outcome.status == 0 else { throw Failure(description: "\(outcome)") }
    }

    static func wait(for what: String, until isTrue: () -> Bool) throws {
        let end = ContinuousClock.now + patience
        while !isTrue() {
            guard ContinuousClock.now < end else { throw Failure(description: "waited in vain for \(what)") }
            usleep(10_000)
        }
    }

    private static func environment(_ name: String) -> String { ProcessInfo.processInfo.environment[name] ?? "" }

    struct Failure: Error, CustomStringConvertible {
        let description: String
    }
}

/// A suite that runs inside the virtual machine, as the step of `Guest/reader-steps` with this name does it.  Outside, it fails
/// as it did there.
struct InsideVirtualMachine: SuiteTrait, TestScoping {
    let step: String

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard !VirtualMachine.isHere else { return try await function() }
        let step = try await VirtualMachine.readers.value.step(step)
        let lines = (step.output + step.error).split(separator: "\n")
        let passed = lines.first { $0.contains("with \(Requirement.all.count) test cases passed") }
        let told = lines.filter { !$0.hasPrefix("◇") && !$0.hasPrefix("✔") }.joined(separator: "\n")
        #expect(step.status == 0 && passed != nil, "\(step.account(told))")
        print("\(test.name), in the virtual machine: \(passed ?? "")")
    }
}

extension Trait where Self == InsideVirtualMachine {
    static func insideVirtualMachine(_ step: String) -> Self { Self(step: step) }
}
