import Foundation
import TestSupport
import Testing
import USBTestSupport

/// The requirements of `CardReader`, tested on every implementation.
@Suite struct ReaderConformanceTests {
    @Test(arguments: Requirement.all) func inProcess(_ requirement: Requirement) async throws {
        try await requirement.check(InProcessBench())
    }
}

/// The requirements, through Debian's pcscd, a daemon for each.
@Suite(.pcscExclusive, .serialized) struct PCSCConformanceTests {
    @Test(
        .enabled(if: Obstacle.umockdev == nil, "\(Obstacle.umockdev ?? "")"),
        arguments: Requirement.all)
    func pcscOverUMockdev(_ requirement: Requirement) async throws {
        try await requirement.check(PCSCBench(host: "umockdev"))
    }

    @Test(
        .enabled(if: Obstacle.vpcd == nil, "\(Obstacle.vpcd ?? "")"),
        arguments: Requirement.all.filter(\.needs.isEmpty))
    func pcscOverVPCD(_ requirement: Requirement) async throws {
        try await requirement.check(PCSCBench(host: "vpcd"))
    }
}

/// The requirements, through the driver for a PN532 on a serial line, here a pseudo-terminal.
@Suite struct SerialConformanceTests {
    @Test(arguments: Requirement.all.filter { !$0.needs.contains(.isACR122U) })
    func overPseudoTerminal(_ requirement: Requirement) async throws {
        let bench = try await SerialBench()
        do {
            try await requirement.check(bench)
        } catch {
            await bench.close()
            throw error
        }
        await bench.close()
    }
}

/// The requirements, through the USB driver.
@Suite struct USBConformanceTests {
    @Test(arguments: Requirement.all) func inProcess(_ requirement: Requirement) async throws {
        try await requirement.check(SoftwareUSBBench())
    }
}

/// The requirements, through the USB driver and libusb.  A process has one mock bus at a time.
@Suite(.preloaded, .serialized, .enabled(if: Preloaded.obstacle == nil, "\(Preloaded.obstacle ?? "")"))
struct LibUSBConformanceTests {
    @Test(arguments: Requirement.all) func overUMockdev(_ requirement: Requirement) async throws {
        try await requirement.check(LibUSBBench())
    }
}

/// The reason why a tier is unavailable on this machine; nil if it is available.
private enum Obstacle {
    static let umockdev =
        missing("/usr/lib/x86_64-linux-gnu/libumockdev-preload.so.0", "umockdev") ?? PrivatePCSCD.obstacle
    static let vpcd = PrivatePCSCD.obstacle

    private static func missing(_ path: String, _ package: String) -> String? {
        let folders = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"]
        let name = URL(fileURLWithPath: path).lastPathComponent
        let found = folders.contains { FileManager.default.fileExists(atPath: "\($0)/\(name)") }
        return found ? nil : "\(package) is not installed"
    }
}
