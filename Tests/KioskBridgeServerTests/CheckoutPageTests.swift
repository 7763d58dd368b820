import Foundation
import TestSupport
import Testing

/// The page's checkout in Debian's Chromium: its views against a host that tells what a test says, and customers at
/// `kiosk-host` with a payment sandbox.
@Suite(
    .timeLimit(.minutes(10)), .enabled(if: Program.isInstalled("chromium"), "chromium is not installed"),
    .enabled(if: PageTests.packages, "jsonschema or axe-core-python is not installed from PyPI"),
    .enabled(
        if: ["qrencode", "zbarimg"].allSatisfy { Program.isInstalled($0) }, "qrencode or zbar-tools is not installed"),
    .enabled(
        if: FileManager.default.fileExists(atPath: "/usr/lib/python3/dist-packages/PIL"), "python3-pil is not installed"
    ))
struct CheckoutPageTests {
    /// A group of checks of `Judges/page_judge.py --checkout`.
    enum Group: String, CaseIterable {
        /// axe-core finds nothing in any view, the accessibility trees are the golden ones, and nothing is cut off.
        case views
        /// What is typed stays the customer's, and a secret is never written into a field.
        case form
        /// What comes and goes, failures, and a page that is left, lost and loaded anew.
        case ways
        /// The code of the bank's challenge is read off the screen, in any colors and sizes.
        case code
        /// A state changes what differs; the time until it is shown, printed.
        case states
    }

    private static func run(_ judge: String, _ arguments: String...) async throws -> Program.Outcome {
        let outcome = try await Program.run(
            ["/usr/bin/python3", PageTests.folder.appending(path: "Judges/\(judge).py").path] + arguments,
            environment: ["PYTHONDONTWRITEBYTECODE": "1"], timeout: .seconds(400))
        print(outcome.output, terminator: "")
        return outcome
    }

    /// All groups, in one browser.
    private static let views = Task { try await run("page_judge", "--checkout") }

    @Test(arguments: Group.allCases)
    func judge(_ group: Group) async throws {
        let outcome = try await Self.views.value
        let lines = outcome.output.split(separator: "\n").filter { $0.hasPrefix("checkout-\(group): ") }
        #expect(lines.last?.hasPrefix("checkout-\(group): passed") == true, "\(outcome)")
        #expect(!lines.contains { $0.contains("FAULT") })
    }

    @Test(
        "Customers pay once each by card, filled in or typed, by tap, by voucher and as members; no card is anywhere but in its field"
    )
    func customers() async throws {
        let programs = URL(filePath: Program.built("kiosk-host")).deletingLastPathComponent().path
        let outcome = try await Self.run("host_checkout", programs)
        #expect(outcome.status == 0, "\(outcome)")
        for text in [
            "card: 378282*****0005 Danke. Die Zahlung ist erfolgt.",
            "challenge: Please confirm the payment with your bank. Scan the code",
            "declined: The payment was not made.",
            "tap: Thank you. The payment was made. Total: €12.34 The receipt is being printed.",
            "voucher: Thank you. The payment was made.", "you saved €1.23", "no card comes back",
            "nothing in the profile, in the log, in the service's files",
        ] {
            #expect(outcome.output.contains(text), "\(text) is missing: \(outcome)")
        }
    }
}
