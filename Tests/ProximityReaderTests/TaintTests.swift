import CardEncryption
import Foundation
import JWTKit
import SmartCardSimulator
import TestSupport
import Testing

/// A card is read whose number, name and track are nobody else's, and then looked for wherever they must not be.
@Suite(.timeLimit(.minutes(5))) struct TaintTests {
    /// A number of a range that no issuer has, and a name: TEST.
    private static let secrets = ["4999998213746504", "MARKED/MALLORY", "8213746519"]
    private static let published = ["4761739001010010", "TAPPER/TESSA", "1143804489"]

    /// How each secret may be written: as text, in UTF-16, and as packed digits from either half of a byte.
    private static var needles: [(String, [UInt8])] {
        secrets.flatMap { secret -> [(String, [UInt8])] in
            var forms: [(String, [UInt8])] = [
                ("\(secret) as text", Array(secret.utf8)),
                ("\(secret) in UTF-16", secret.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }),
                ("\(secret) in hexadecimal digits", Array(secret.utf8.flatMap { Array(String($0, radix: 16).utf8) })),
            ]
            if secret.allSatisfy(\.isNumber) {
                func packed(_ digits: Substring) -> [UInt8] {
                    stride(from: 0, to: digits.count / 2 * 2, by: 2).compactMap { offset in
                        UInt8(digits.dropFirst(offset).prefix(2), radix: 16)
                    }
                }
                forms.append(("\(secret) packed", packed(secret[...])))
                forms.append(("\(secret) packed from the second digit", packed(secret.dropFirst())))
            }
            return forms
        }
    }

    private static func found(in bytes: Data) -> [String] {
        needles.compactMap { name, needle in bytes.range(of: Data(needle)) == nil ? nil : name }
    }

    /// The parts of a process's memory that a core dump has, and where each begins.
    private static func memory(of pid: Int32) throws -> [(name: String, bytes: Data)] {
        let maps = try String(contentsOfFile: "/proc/\(pid)/maps", encoding: .utf8)
        let memory = try FileHandle(forReadingFrom: URL(filePath: "/proc/\(pid)/mem"))
        return maps.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: " ", omittingEmptySubsequences: true)
            let bounds = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
            guard fields[1].hasPrefix("rw"), bounds.count == 2, (try? memory.seek(toOffset: bounds[0])) != nil,
                let bytes = try? memory.read(upToCount: Int(bounds[1] - bounds[0]))
            else { return nil }
            return (fields.count > 5 ? String(fields[5]) : String(fields[0]), bytes)
        }
    }

    @Test(
        "after a read nothing of the card is in what was printed, in a file or in the process's memory",
        .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"), arguments: ["never", "declines"])
    func leavesNothing(_ offline: String) async throws {
        var text = try #require(VirtualCards.all.first { $0.name == "visa" }).text
            .replacing("parameter offline never", with: "parameter offline \(offline)")
        for (old, new) in zip(Self.published, Self.secrets) {
            #expect(text.contains(old), "\(old)")
            text = text.replacing(old, with: new)
        }
        let folder = FileManager.default.temporaryDirectory.appending(path: "taint-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = folder.appending(path: "marked.card")
        try text.write(to: file, atomically: true, encoding: .utf8)

        let host = try await VirtualReaderProcess(host: "umockdev", arguments: ["--card", file.path])
        defer { host.stop() }
        let records = folder.appending(path: "records")
        let key = try JWEPrivateKey(generating: .ecdhES, keyID: "cards-1")
        let terminal = try Program(
            [Program.built("tainted-terminal"), records.path],
            environment: ["PCSCLITE_CSOCK_NAME": host.socket, "MALLOC_ARENA_MAX": "2"],
            input: try await token(for: key) + "\n")
        try await terminal.wait(for: "the read") { $0.output.contains("done\n") || $0.error.contains("rror") }
        #expect(
            terminal.output.contains(offline == "never" ? "outcome: ProximityReader" : "paymentCardDeclined"),
            "\(terminal.output) \(terminal.error)")

        #expect(Self.found(in: Data((terminal.output + terminal.error).utf8)) == [])
        let files = FileManager.default.enumerator(at: records, includingPropertiesForKeys: nil)?.allObjects as? [URL]
        #expect(files?.isEmpty == false)
        for file in files ?? [] { #expect(Self.found(in: (try? Data(contentsOf: file)) ?? Data()) == [], "\(file)") }
        let memory = try Self.memory(of: terminal.pid)
        #expect(memory.count > 10)
        for part in memory { #expect(Self.found(in: part.bytes) == [], "\(part.name)") }
    }

    /// Signed with the published key of the test payment service, whose tokens a terminal takes that has no other keys.
    private func token(for key: JWEPrivateKey) async throws -> String {
        let claims = Claims(
            iss: "https://payments.test", exp: Date().timeIntervalSince1970 + 3600, mid: "merchant-1",
            card_data_key: try JSONDecoder().decode([String: String].self, from: Data(key.publicJWK.utf8)))
        // TEST
        let signer = try ES256PrivateKey(key: "Jz3hgC6wPXkw9kLsBrVfP_24fBaaHcfm4apwcZfSwVE")
        let keys = await JWTKeyCollection().add(ecdsa: signer, kid: "test-payment-service")
        return try await keys.sign(claims, kid: "test-payment-service")
    }

    // swift-format-ignore: AlwaysUseLowerCamelCase
    private struct Claims: JWTPayload {
        let iss: String
        let exp: Double
        let mid: String
        let card_data_key: [String: String]
        func verify(using algorithm: some JWTAlgorithm) throws {}
    }
}
