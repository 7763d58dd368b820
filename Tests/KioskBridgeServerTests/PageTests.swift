import Foundation
import TestSupport
import Testing

/// `Judges/page_judge.py`: groups of checks in Debian's Chromium.
enum PageJudge {
    static let folder = URL(filePath: #filePath).deletingLastPathComponent()
    static let build = folder.deletingLastPathComponent().deletingLastPathComponent().appending(path: ".build")
    static let packages = ["jsonschema", "axe-core-python"].allSatisfy {
        FileManager.default.fileExists(atPath: build.appending(path: $0).path)
    }

    /// Runs groups in one browser.  Each that has faults, or did not come to its end, is an issue with its own lines.
    static func run(_ groups: [String]) async throws {
        let outcome = try await Program.run(
            ["/usr/bin/python3", folder.appending(path: "Judges/page_judge.py").path] + groups,
            environment: ["PYTHONDONTWRITEBYTECODE": "1"], timeout: .seconds(1_200))
        let lines = outcome.output.split(separator: "\n")
        for group in groups {
            let told = lines.filter { $0.hasPrefix("\(group): ") }.joined(separator: "\n")
            print(told)
            #expect(told.contains("\(group): passed"), "\(group):\n\(told)\n\(outcome.error)")
        }
        #expect(outcome.status == 0, "\(outcome.error)")
    }
}

/// The example page and its module in Debian's Chromium, against a host that shows what hardware does not at will:
/// each state of a payment, a link that is lost during a tap, answers that are none.
@Suite(
    .enabled(if: Program.isInstalled("chromium"), "chromium is not installed"),
    .enabled(if: PageJudge.packages, "jsonschema or axe-core-python is not installed from PyPI"))
struct PageTests {
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

    @Test("An order is paid once, and the next customer finds nothing of it; a link is lost during a tap")
    func once() async throws {
        try await PageJudge.run(
            ["sources", "once", "glance"] + [Group.texts, .keyboard, .bridge, .idle].map(\.rawValue))
    }

    @Test(
        .thorough("every view in all sizes with axe-core, and two hundred customers; three views and a customer stay"))
    func tours() async throws { try await PageJudge.run(Group.allCases.map(\.rawValue)) }
}
