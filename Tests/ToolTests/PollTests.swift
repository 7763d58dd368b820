import Foundation
import TestSupport
import Testing

/// `reader-probe poll` from outside.  The frames with CRC_A of passes alone and of Transport for London are sniffed
/// (proxmark3); all others follow from their content (ISO/IEC 14443-3, annex B).
@Suite(.timeLimit(.minutes(5))) final class PollTests {
    private let tool = Program.built("reader-probe")
    private let folder = FileManager.default.temporaryDirectory.appending(path: "poll-\(UUID().uuidString)")
    /// The card file of a phone that answers no reader that has not said what it wants.
    private let phone: String

    init() throws {
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        let file = folder.appending(path: "closed.card")
        try "variant phone-apple {\nscreen closed\n}\n".write(to: file, atomically: true, encoding: .utf8)
        phone = file.path
    }

    deinit { try? FileManager.default.removeItem(at: folder) }

    private func poll(_ arguments: String...) async throws -> Program.Outcome {
        try await Program.run([tool, "poll"] + arguments, environment: ["PCSCLITE_CSOCK_NAME": "/nonexistent"])
    }

    private func json(_ outcome: Program.Outcome) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [String: Any])
    }

    /// Each purpose, and whether a phone with a pass and a card answers it.
    @Test(arguments: [
        ("payment", "6A010000036DC3", "6A010000034C0C", true), ("pass", "6A01000002E4D2", "6A01000002C51D", true),
        ("pass-or-payment", "6A01000000F6F1", "6A01000000D73E", true),
        ("pass-and-payment", "6A010000017FE0", "6A010000015E2F", true),
        ("identity", "6A02810300003551", "6A02810300000991", false),
        ("transit", "6A02C801000300027900000000C2D8", "6A02C8010003000279000000001134", true),
    ])
    func purposes(_ purpose: String, _ typeA: String, _ typeB: String, _ isAnswered: Bool) async throws {
        // A busy machine wakes a phone slowly.
        let patience = isAnswered ? "60" : "2"
        let outcome = try await poll("--purpose", purpose, "--card", phone, "--timeout", patience, "--json")
        #expect(outcome.status == (isAnswered ? 0 : 4), "\(outcome)")
        let report = try json(outcome)
        let frames = try #require(report["frames"] as? [[String: Any]])
        #expect(frames.map { $0["frame"] as? String } == [typeA, typeB])
        #expect(frames.map { $0["technology"] as? String } == ["type-a", "type-b"])
        #expect(frames.allSatisfy { $0["outcome"] as? String == "silence" && $0["purpose"] as? String == purpose })
        let loops = try #require(report["loops"] as? Int)
        #expect(frames.allSatisfy { $0["count"] as? Int == loops })
        #expect((report["cards"] as? [[String: Any]])?.count == (isAnswered ? 1 : 0))
        if !isAnswered {
            #expect(loops >= 2)
            #expect((report["period"] as? Double).map { $0 >= 50 } == true)
        }
    }

    @Test func text() async throws {
        let outcome = try await poll("--frames", "--card", phone, "--timeout", "60")
        #expect(outcome.status == 0, "\(outcome)")
        let lines = outcome.output.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        #expect(lines.contains("pass-or-payment  type-a  6A01000000F6F1  silence"), "\(lines)")
        #expect(lines.contains("pass-or-payment  type-b  6A01000000D73E  silence"), "\(lines)")
        #expect(lines.last?.contains("type-a 085C217E, ATS 0578807002") == true, "\(lines)")
    }

    /// Without frames, and a card that needs none.
    @Test func withoutFrames() async throws {
        let report = try json(try await poll("--card", "felica", "--json"))
        #expect((report["frames"] as? [Any])?.isEmpty == true && report["loops"] as? Int == 0)
        #expect(report["period"] is NSNull)
        let card = try #require((report["cards"] as? [[String: Any]])?.first)
        #expect(card["technology"] as? String == "felica" && card["identifier"] as? String == "02FE000102030405")
        let two = try await poll("--card", "visa", "--card", "mastercard")
        #expect(two.status == 0 && two.output.contains("remove all but one"), "\(two)")
    }

    @Test func nobodyComes() async throws {
        let outcome = try await poll("--frames", "--card", phone, "--purpose", "identity", "--timeout", "0.3")
        #expect(outcome.status == 4 && outcome.output.contains("none"), "\(outcome)")
        let nonsense = try await poll("--purpose", "lunch", "--virtual")
        #expect(nonsense.status == 2 && nonsense.output.isEmpty, "\(nonsense)")
    }

    /// A reader whose chip cannot be reached: vpcd carries APDUs alone.
    @Test func aReaderThatCannot() async throws {
        let machine = try DoctorMachine()
        try machine.startService { $0.transmit = { _, _ in .data([0x6A, 0x81]) } }
        let outcome = try await Program.run(
            [tool, "poll", "--frames", "--backend", "pcsc"], environment: ["PCSCLITE_CSOCK_NAME": machine.socket])
        #expect(outcome.status == 5 && outcome.output.isEmpty, "\(outcome)")
        #expect(outcome.error.contains("Use an ACR122U or a PN532 board"), "\(outcome)")
    }
}
