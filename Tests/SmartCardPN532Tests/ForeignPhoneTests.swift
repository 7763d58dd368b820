import Foundation
import TestSupport
import Testing

/// nfcpy, which knows nothing of this package, wakes the virtual phones and reads their passes, and Python's cryptography opens them.
@Suite(.timeLimit(.minutes(10)), .serialized) struct ForeignPhoneTests {
    private static let nfcpy = FileManager.default.currentDirectoryPath + "/.build/nfcpy"
    private static let script = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        .appendingPathComponent("Judges/nfcpy-pass.py").path

    private static let isInstalled = FileManager.default.fileExists(atPath: nfcpy + "/nfc")
    private static let isUmockdevInstalled =
        ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"].contains {
            FileManager.default.fileExists(atPath: $0 + "/libumockdev-preload.so.0")
        }

    /// An iPhone decides after the third request; a phone with Android answers the first.
    private static let phones: [(String, [String])] = [
        (
            "phone-apple",
            ["requests 4", "wallet ApplePay 9000", "get data 9000", "pass MEMBER-0001", "directory 9000"]
        ),
        (
            "phone-google",
            [
                "requests 1", "wallet AndroidPay 9000", "smart tap 9000 00000001", "negotiate 9000 0101",
                "get data 9000 0201", "pass MEMBER-0001", "directory 9000",
            ]
        ),
    ]

    private func read(_ phone: String, on reader: [String], _ command: [String]) async throws -> String {
        let outcome = try await Program.run(
            [Program.built("virtual-reader"), "--card", phone] + reader + ["--"] + command,
            environment: ["PYTHONPATH": Self.nfcpy])
        return outcome.output + outcome.error
    }

    @Test(
        "A phone on a board", .enabled(if: isInstalled, "nfcpy is not installed from PyPI"),
        // In the fast tier each phone is on one of the readers.
        arguments: Tier.few(phones.reversed(), 1))
    func board(_ phone: String, _ expected: [String]) async throws {
        let command = "exec /usr/bin/python3 '\(Self.script)' tty \"$VIRTUAL_READER_DEVICE\""
        let output = try await read(phone, on: ["--host", "pty"], ["sh", "-c", command])
        let lines = output.split(separator: "\n").map(String.init)
        for line in expected { #expect(lines.contains(line), "\(output)") }
    }

    @Test(
        "A phone on an ACR122U", .enabled(if: isInstalled, "nfcpy is not installed from PyPI"),
        .enabled(if: isUmockdevInstalled, "umockdev is not installed"), arguments: Tier.few(phones, 1))
    func acr122u(_ phone: String, _ expected: [String]) async throws {
        let output = try await read(phone, on: ["--no-pcscd"], ["/usr/bin/python3", Self.script, "usb"])
        let lines = output.split(separator: "\n").map(String.init)
        for line in expected { #expect(lines.contains(line), "\(output)") }
    }
}
