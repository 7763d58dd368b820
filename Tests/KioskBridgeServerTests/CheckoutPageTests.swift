import Foundation
import TestSupport
import Testing

/// The page's checkout in Debian's Chromium: its views against a host that tells what a test says, and customers at
/// `kiosk-host` with a payment sandbox.
@Suite(
    .timeLimit(.minutes(10)), .enabled(if: Program.isInstalled("chromium"), "chromium is not installed"),
    .enabled(if: PageJudge.packages, "jsonschema or axe-core-python is not installed from PyPI"),
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

    @Test(
        .thorough(
            "every view of the checkout in four sizes with axe-core; a customer stays, and three views with PageTests"))
    func tours() async throws { try await PageJudge.run(Group.allCases.map { "checkout-\($0)" }) }

    /// Customers at `kiosk-host`, each with another way to pay; all of them where none is named.
    private func pay(_ customers: String...) async throws -> Program.Outcome {
        let programs = URL(filePath: Program.built("kiosk-host")).deletingLastPathComponent().path
        let outcome = try await Program.run(
            ["/usr/bin/python3", PageJudge.folder.appending(path: "Judges/host_checkout.py").path, programs]
                + customers,
            environment: ["PYTHONDONTWRITEBYTECODE": "1"], timeout: .seconds(400))
        print(outcome.output, terminator: "")
        #expect(outcome.status == 0, "\(outcome)")
        return outcome
    }

    @Test("A customer pays once by card, typed in another language; the card is nowhere but in its field")
    func card() async throws {
        let outcome = try await pay("by_card")
        #expect(outcome.output.contains("card: 378282*****0005 Danke. Die Zahlung ist erfolgt."), "\(outcome)")
    }

    @Test(
        "Customers pay once each by card, filled in or typed, by tap, by voucher and as members; no card is anywhere but in its field",
        .thorough("six customers at a checkout in Chromium; one of them stays"))
    func customers() async throws {
        let outcome = try await pay()
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
