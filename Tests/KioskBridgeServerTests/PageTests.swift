import Foundation
import TestSupport
import Testing

/// The example page and its module in Debian's Chromium, against a host that shows what hardware does not at will:
/// each state of a payment, a link that is lost during a tap, answers that are none.
@Suite struct PageTests {
    /// A group of checks of `Judges/page_judge.py`.
    enum Group: String, CaseIterable {
        /// What the files say: their size, and nothing that makes code of text or keeps data.
        case sources
        /// The time to the first view, printed.
        case speed
        /// The texts are complete in each language, and a switch keeps what was typed.
        case texts
        /// axe-core finds nothing in any view, and the accessibility trees are the golden ones.
        case views
        /// Right to left, and 1.4 times as long.
        case pseudo
        /// Large text at 200 %, 320 pixels, forced colors, without motion.
        case enlarged
        case keyboard
        case payments
        case documents
        /// Capabilities, out of service, headphones, a page without a host.
        case service
        /// kiosk-bridge.js: proofs, errors, lies, reconnection.
        case bridge
        case idle
        /// Memory after two hundred customers.
        case customers
    }

    static let folder = URL(filePath: #filePath).deletingLastPathComponent()
    static let build = folder.deletingLastPathComponent().deletingLastPathComponent().appending(path: ".build")
    static let packages = ["jsonschema", "axe-core-python"].allSatisfy {
        FileManager.default.fileExists(atPath: build.appending(path: $0).path)
    }

    /// All groups, in one browser.
    static let outcome = Task {
        let judge = folder.appending(path: "Judges/page_judge.py").path
        let outcome = try await Program.run(
            ["/usr/bin/python3", judge], environment: ["PYTHONDONTWRITEBYTECODE": "1"], timeout: .seconds(400))
        print(outcome.output, terminator: "")
        return outcome
    }

    @Test(
        .enabled(if: Program.isInstalled("chromium"), "chromium is not installed"),
        .enabled(if: packages, "jsonschema or axe-core-python is not installed from PyPI"), arguments: Group.allCases)
    func judge(_ group: Group) async throws {
        let outcome = try await Self.outcome.value
        let lines = outcome.output.split(separator: "\n").filter { $0.hasPrefix("\(group): ") }
        #expect(lines.last?.hasPrefix("\(group): passed") == true, "\(outcome)")
        #expect(!lines.contains { $0.contains("FAULT") })
    }
}
