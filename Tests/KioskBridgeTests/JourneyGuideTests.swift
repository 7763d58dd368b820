import Crypto
import Foundation
import Testing

@testable import JourneyGuide
@testable import KioskBridge

/// The published guide's source, which compiles with `import KioskBridge` in place of its own import.
@MainActor @Suite struct JourneyGuideTests {
    @Test("The guide's journey: started, complete, and a request that it does not support")
    func journey() async throws {
        let host = BridgeHost(hostVersion: "1.0.0")
        let coordinator = JourneyCoordinator()
        let container = JourneyContainer(host: host, coordinator: coordinator)
        container.appear()
        let page = try #require(Page(host))
        let refused = try await page.request("door.open")
        #expect(refused.status == "unsupported" && refused.code == "UNSUPPORTED_ACTION")
        for (action, data) in [("started", "{}"), ("complete", #"{"status":"success","referenceId":"r-1"}"#)] {
            await page.send(
                #"{"v":1,"type":"event","correlationId":"e","payload":{"action":"journey.\#(action)","data":\#(data)}}"#
            )
        }
        try await page.wait("completion") {
            if case .completed(let result) = container.journeyState { result.referenceId == "r-1" } else { false }
        }
        let capabilities = try await page.request("capability.query").data["capabilities"] as? [String: Any]
        #expect(capabilities?["camera.document"] != nil)
    }

    /// Hashes of the blocks as published, without indentation and empty lines.
    @Test(
        "The guide's blocks are as it has them",
        arguments: [
            ("JourneyConfig", 16, "61aef759863a0e6fcc424139477296a6686afd2d637ae72e03254ff152ede1ce"),
            ("DeviceCapabilities", 17, "613f85165d39bbbea8da5dd7a0e57764e2b6ac8ea7c67706e75d149b541e689d"),
            ("setupBridge", 53, "f2735236e8423a4493aa984462df338eca19f73022c836e010ada42012f89d17"),
            ("JourneyState", 18, "3f02ec80422a9662ce724de3761107d4d2007e4b790dcb138becc8ae58b45aad"),
            ("JourneyCoordinator", 36, "e8d5d597592a69fe35969d23bb93ab5541673224d4b298491019f5bef7c2efe5"),
        ] as [(String, Int, String)])
    func blocks(_ name: String, _ count: Int, _ hash: String) throws {
        let url = URL(filePath: #filePath).deletingLastPathComponent()
            .appending(path: "JourneyGuide/JourneyGuide.swift")
        let lines = try String(contentsOf: url, encoding: .utf8).split(separator: "\n").map { line in
            String(line.unicodeScalars.filter(\.isASCII).map(Character.init)).trimmingCharacters(in: .whitespaces)
        }.filter { !$0.isEmpty }
        let hashes = (0...max(0, lines.count - count)).map { first in
            let text = lines[first...].prefix(count).map { $0 + "\n" }.joined()
            return SHA256.hash(data: Data(text.utf8)).map { String(format: "%02x", $0) }.joined()
        }
        #expect(hashes.contains(hash), "\(name) is not as the guide has it")
    }
}
