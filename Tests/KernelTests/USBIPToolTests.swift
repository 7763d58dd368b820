import Foundation
import TestSupport
import Testing

/// `virtual-reader --host usbip` from outside, with Linux's own client as the judge.
@Suite(.enabled(if: Program.isInstalled("usbip"), "usbip is not installed"))
struct USBIPToolTests {
    private let tool = Program.built("virtual-reader")

    private static let listed = """
        Exportable USB devices
        ======================
         - 127.0.0.1
                1-1: Advanced Card Systems, Ltd : ACR122U (072f:2200)
                   : /sys/devices/pci0000:00/0000:00:14.0/usb1/1-1
                   : (Defined at Interface level) (00/00/00)
                   :  0 - Chip/SmartCard / unknown subclass / unknown protocol (0b/00/00)


        """

    @Test("usbip lists the reader") func usbipListsTheReader() async throws {
        let outcome = try await Program.run([
            tool, "--host", "usbip", "--port", "0", "--", "sh", "-c",
            "PATH=$PATH:/usr/sbin; usbip --tcp-port $VIRTUAL_READER_PORT list --remote 127.0.0.1",
        ])
        #expect(outcome.status == 0, "\(outcome)")
        #expect(outcome.output == Self.listed)
    }

    @Test("without a command it prints the line that attaches the reader, and obeys the control socket")
    func withoutACommand() async throws {
        let reader = try await USBIPReader()
        let words = reader.attachCommand
        try #require(words.count == 8)
        let port = words[2]
        #expect(reader.program.output == "usbip --tcp-port \(port) attach -r 127.0.0.1 -b 1-1\n")

        func list() async throws -> String {
            try await Program.run(["usbip", "--tcp-port", port, "list", "--remote", "127.0.0.1"]).output
        }
        #expect(try await list() == Self.listed)
        try reader.perform("unplug")
        #expect(try await list() == "")
        try reader.perform("plug")
        #expect(try await list() == Self.listed)
        reader.program.signal(SIGINT)
        #expect(try await reader.program.outcome().status == 0)
    }

    @Test(
        "wrong usage",
        arguments: [
            ["--port", "3240"], ["--host", "vpcd", "--port", "3240"], ["--host", "usbip", "--port", "70000"],
            ["--host", "usbip", "--usb"], ["--host", "usbip", "--pcscd-log", "/dev/null"],
        ])
    func wrongUsage(arguments: [String]) async throws {
        let outcome = try await Program.run([tool] + arguments + ["--", "echo", "command has run"])
        #expect(outcome.status == 125, "\(outcome)")
        #expect(outcome.output.isEmpty)
        #expect(outcome.error.hasPrefix("virtual-reader: "))
    }
}
