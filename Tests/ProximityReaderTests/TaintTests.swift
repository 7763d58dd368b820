import CardEncryption
import Foundation
import JWTKit
import SmartCardSimulator
import TestSupport
import Testing

/// A card is read whose number, name and track are nobody else's, and then looked for wherever they must not be.
@Suite(
    .computing, .timeLimit(.minutes(15)), .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"),
    .unsanitized(by: .address, .thread, because: "the heap is another, which is not wiped as it is freed"))
struct TaintTests {
    /// TEST: what is in the memory of the process, so that looking there can find something.
    private static let control = "7305816294015837"

    struct Path: CustomTestStringConvertible {
        /// What tainted-terminal does: `online`, `stored`, `dukpt`.
        let mode: String
        /// What the card does with a terminal that is offline.
        var offline = "never"
        var outcome = "outcome: ProximityReader"
        var testDescription: String { "\(mode), the card \(offline)" }
    }

    static let paths = Tier.first(
        [Path(mode: "stored")],
        then: [
            Path(mode: "online"), Path(mode: "online", offline: "declines", outcome: "paymentCardDeclined"),
            Path(mode: "dukpt"),
        ])

    @Test(
        "after a read nothing of the card is in what was printed, in a file or in the process's memory",
        arguments: paths)
    func leavesNothing(_ path: Path) async throws {
        let card = try #require(VirtualCards.all.first { $0.name == "visa" }).text
        let text = Taint.marking(card).replacing("parameter offline never", with: "parameter offline \(path.offline)")
        for secret in [Taint.accountNumber, Taint.name, Taint.discretionaryData] { #expect(text.contains(secret)) }
        let folder = FileManager.default.temporaryDirectory.appending(path: "taint-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "marked.card")
        try text.write(to: file, atomically: true, encoding: .utf8)

        let host = try await VirtualReaderProcess(host: "umockdev", arguments: ["--card", file.path])
        defer { host.stop() }
        let records = folder.appending(path: "records")
        let temporary = folder.appending(path: "temporary")
        try FileManager.default.createDirectory(at: temporary, withIntermediateDirectories: true)
        let key = try JWEPrivateKey(generating: .ecdhES, keyID: "cards-1")
        let terminal = try Program(
            [Program.built("tainted-terminal"), records.path, path.mode, Self.control],
            environment: ["PCSCLITE_CSOCK_NAME": host.socket, "TMPDIR": temporary.path],
            input: try await token(for: key) + "\n")
        try await terminal.wait(for: "the read") { $0.output.contains("done\n") || $0.error.contains("rror:") }
        #expect(terminal.output.contains(path.outcome), "\(terminal.output) \(terminal.error)")

        #expect(Taint.found(in: Data((terminal.output + terminal.error).utf8)) == [])
        let files = Taint.files(below: records) + Taint.files(below: temporary)
        #expect(!files.isEmpty)
        if path.mode == "stored" {
            for name in ["store.sqlite", "store.sqlite-wal", "store.head"] {
                #expect(files.contains { $0.lastPathComponent == name }, "\(name) is not there: \(files)")
            }
        }
        for file in files { #expect(Taint.found(in: try Data(contentsOf: file)) == [], "\(file)") }

        let memory = try Taint.memory(of: terminal.pid)
        for part in memory { #expect(Taint.found(Taint.forms, in: part.bytes) == [], "\(part.name)") }
        let control = Set(memory.flatMap { Taint.found(Taint.forms(of: Self.control), in: $0.bytes) })
        #expect(
            control.isSuperset(of: ["\(Self.control) as it is", "\(Self.control) packed as it is"]), "\(control)")
    }

    /// TEST: what a member number of nobody looks like; it has no digits of a card.
    private static let member = "MARKED-MEMBER-QX7/83917264"

    @Test(
        "after a read nothing of a pass is in what was printed, in a file or in the process's memory",
        arguments: Tier.first(
            [("phone-apple", "passes", "success 26")],
            then: [("phone-google", "passes", "success 26"), ("phone-apple", "sealed-passes", "success ")]))
    func leavesNothingOfPasses(_ phone: String, _ mode: String, _ outcome: String) async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "taint-\(UUID().uuidString)")
        let (records, temporary) = (folder.appending(path: "records"), folder.appending(path: "temporary"))
        try FileManager.default.createDirectory(at: temporary, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let card = folder.appending(path: "marked.card")
        let awake = phone == "phone-apple" ? "wakes at-once\nscreen both\n" : ""
        try "variant \(phone) {\n\(awake)message \"\(Self.member)\"\n}\n"
            .write(to: card, atomically: true, encoding: .utf8)
        let host = try await VirtualReaderProcess(host: "umockdev", arguments: ["--card", card.path])
        defer { host.stop() }
        let key = try JWEPrivateKey(generating: .ecdhES, keyID: "cards-1")
        let terminal = try Program(
            [Program.built("tainted-terminal"), records.path, mode, Self.control],
            environment: ["PCSCLITE_CSOCK_NAME": host.socket, "TMPDIR": temporary.path],
            input: try await token(for: key) + "\n")
        try await terminal.wait(for: "the read") { $0.output.contains("done\n") || $0.error.contains("rror:") }
        #expect(terminal.output.contains("passes: [\"\(outcome)"), "\(terminal.output) \(terminal.error)")

        let forms = Taint.forms(of: Self.member)
        func found(_ bytes: Data) -> [String] { Taint.found(forms, in: bytes) }
        #expect(found(Data((terminal.output + terminal.error).utf8)) == [])
        let files = Taint.files(below: records) + Taint.files(below: temporary)
        #expect(files.contains { $0.lastPathComponent == "passes.json" } == (mode == "passes"), "\(files)")
        for file in files { #expect(found(try Data(contentsOf: file)) == [], "\(file)") }
        let memory = try Taint.memory(of: terminal.pid)
        for part in memory { #expect(found(part.bytes) == [], "\(part.name)") }
        let control = Set(memory.flatMap { Taint.found(Taint.forms(of: Self.control), in: $0.bytes) })
        #expect(control.contains("\(Self.control) packed as it is"), "\(control)")
    }

    /// Signed with the published key of the test payment service, whose tokens a terminal takes that has no other keys.
    private func token(for key: JWEPrivateKey) async throws -> String {
        let claims = Claims(
            iss: "https://payments.test", aud: "terminals", iat: Date().timeIntervalSince1970.rounded(.down),
            exp: Date().timeIntervalSince1970 + 3600, mid: "merchant-1",
            card_data_key: try JSONDecoder().decode([String: String].self, from: Data(key.publicJWK.utf8)))
        // TEST
        let signer = try ES256PrivateKey(key: "Jz3hgC6wPXkw9kLsBrVfP_24fBaaHcfm4apwcZfSwVE")
        let keys = await JWTKeyCollection().add(ecdsa: signer, kid: "test-payment-service")
        return try await keys.sign(claims, kid: "test-payment-service", header: ["typ": "reader-token+jwt"])
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    private struct Claims: JWTPayload {
        let iss: String
        let aud: String
        let iat: Double
        let exp: Double
        let mid: String
        let card_data_key: [String: String]
        func verify(using algorithm: some JWTAlgorithm) throws {}
    }
}
