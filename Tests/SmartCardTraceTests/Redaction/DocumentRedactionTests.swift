import SmartCard
import SmartCardSimulator
import TestSupport
import Testing
import TravelDocument

@testable import SmartCardTrace

/// Redaction of the readings of travel documents.
@Suite(.computing) struct DocumentRedactionTests {
    private let redaction = TraceRedaction(key: Array(0..<16))

    /// Redacts, and expects a fixed point with the same lengths and status words.
    private func redacted(_ trace: Trace) -> Trace {
        let redacted = redaction.redacted(trace)
        #expect(redaction.redacted(redacted) == redacted)
        #expect(TraceRedaction().findings(in: redacted).isEmpty)
        func shapes(_ trace: Trace) -> [[UInt8]] {
            trace.exchanges().map { exchange in
                guard case .bytes(let answer)? = exchange.answer else { return [] }
                return [UInt8(exchange.command.count), UInt8(truncatingIfNeeded: answer.count)] + answer.suffix(2)
            }
        }
        #expect(shapes(redacted) == shapes(trace))
        return redacted
    }

    private func items(_ trace: Trace) -> Set<TraceEvent.RedactedItem> {
        trace.events.reduce(into: []) { if case .redacted(let items) = $1.what { $0.formUnion(items) } }
    }

    /// What of `secret` is in the data that went one way, eight bytes at a time, from either half of a byte on.
    private func survivors(of secret: [UInt8], in trace: Trace) -> Int {
        var sent: [UInt8] = []
        var received: [UInt8] = []
        for event in trace.events {
            switch event.what {
            case .sent(_, let bytes): sent += bytes.dropFirst(5)
            case .received(_, let bytes): received += bytes.dropLast(2)
            default: break
            }
        }
        var there: Set<Substring> = []
        for text in [sent.hex, received.hex] {
            var rest = text[...]
            while rest.utf8.count >= 16 {
                there.insert(rest.prefix(16))
                rest = rest.dropFirst()
            }
        }
        return secret.indices.dropLast(7).count { start in
            let window = secret[start..<start + 8]
            return Set(window).count > 2 && there.contains(window.hex[...])
        }
    }

    // MARK: Sessions

    @Test(
        "an encrypted reading keeps its shape, and nothing that can be decrypted",
        arguments: ["passport", "passport-bac", "identity-card"])
    func encrypted(_ card: String) async throws {
        let (trace, reading) = try await DocumentReadings.encrypted(card)
        #expect(reading.zone != nil)
        let redacted = redacted(trace)
        #expect(items(redacted) == [.session])
        var cryptograms = 0
        for (before, after) in zip(trace.exchanges(on: [.apdu]), redacted.exchanges(on: [.apdu])) {
            guard case .bytes(let answer)? = before.answer, case .bytes(let newAnswer)? = after.answer else { continue }
            let header = before.command.prefix(5)
            #expect(after.command.starts(with: header))
            switch header[1] {
            // SELECT and READ BINARY in the clear: the application, EF.CardAccess.
            case _ where header[0] == 0x0C:
                let (objects, newObjects) = try (TLVList(answer.dropLast(2)), TLVList(newAnswer.dropLast(2)))
                #expect(objects.map(\.tag) == newObjects.map(\.tag))
                #expect(objects[0x99] == newObjects[0x99])
                for object in newObjects where object.tag != 0x99 {
                    #expect(object.value.dropFirst(object.tag == 0x87 ? 1 : 0).allSatisfy { $0 == 0 })
                    cryptograms += 1
                }
                #expect(survivors(of: Array(before.command.dropFirst(5)), in: redacted) == 0)
                #expect(survivors(of: answer.dropLast(2), in: redacted) == 0)
            case 0x82, 0x84:
                #expect(newAnswer.dropLast(2).allSatisfy { $0 == 0 })
                #expect(survivors(of: Array(before.command.dropFirst(5)), in: redacted) == 0)
                cryptograms += 1
            case 0x86:
                #expect(survivors(of: Array(before.command.dropFirst(7)), in: redacted) == 0)
                #expect(survivors(of: answer.dropLast(2), in: redacted) == 0)
                #expect(newAnswer.prefix(1) == [0x7C])
                cryptograms += 1
            default: #expect(before.command == after.command && answer == newAnswer)
            }
        }
        #expect(cryptograms > 20)
    }

    // MARK: Files

    /// All files of the virtual passport, and the specimen's details.
    private static let files = Task {
        let reading = try await DocumentReadings.encrypted("passport").reading
        let identifiers: [ElementaryFile: UInt16] = [
            .sod: 0x011D, .dataGroup(1): 0x0101, .dataGroup(2): 0x0102, .dataGroup(15): 0x010F,
        ]
        return reading.files.compactMap { file in identifiers[file.file].map { (identifier: $0, bytes: file.bytes) } }
            + DocumentReadings.details
    }

    @Test(
        "files in the clear come out as those of nobody, however they are read",
        arguments: DocumentReadings.Way.allCases)
    func clear(_ way: DocumentReadings.Way) async throws {
        var files = try await Self.files.value
        // Only the zone tells of the application.
        if way == .unnamed { files.sort { $0.identifier < $1.identifier } }
        let trace = DocumentReadings.trace(DocumentReadings.clear(files, way))
        #expect(DocumentReadings.files(in: trace) == files.map(\.bytes))
        let before = try trace.text()
        let redacted = redacted(trace)
        let text = try redacted.text()
        for secret in DocumentReadings.secrets {
            #expect(RedactionJudge.findings(of: secret, in: text) == [], "\(secret)")
        }
        #expect(!RedactionJudge.findings(of: "L898902C", in: before).isEmpty)
        #expect(RedactionJudge.findings(ofName: "ERIKSSON", "ANNA", in: text) == [])
        #expect(TraceRedaction.eventsWithAccountNumbers(in: redacted) == [])
        #expect(items(redacted) == [.document, .certificate])

        let results = Dictionary(
            uniqueKeysWithValues: zip(files.map(\.identifier), DocumentReadings.files(in: redacted)))
        let originals = Dictionary(uniqueKeysWithValues: files.map { ($0.identifier, $0.bytes) })
        let zone = try MachineReadableZone(parsing: try #require(results[0x0101]))
        #expect(
            zone.lines == [
                "P<UTOXXXXXXXX<<XXXX<XXXXX<<<<<<<<<<<<<<<<<<<", "X000000X00XXX7001017<3001019XX000000X<<<<<34",
            ])
        #expect(zone.checkDigits.filter { !$0.isRight } == [])
        guard
            case .encodedFaces(let faces)? = try ParsedFile(
                parsing: try #require(results[0x0102]), of: .dataGroup(2))
        else {
            Issue.record("no face")
            return
        }
        let face = try #require(faces.faces.first)
        #expect(
            face.image.bytes.starts(with: [0xFF, 0xD8, 0xFF]) && face.image.bytes.dropFirst(3).allSatisfy { $0 == 0 })
        for number in [0x0102, 0x010F] as [UInt16] {
            let old = try #require(originals[number])
            // Of DG15 the algorithm stays, of DG2 the headers.
            #expect(survivors(of: Array(old.suffix(100)), in: redacted) == 0)
        }
        let old = try SecurityObject(try #require(originals[0x011D]))
        let new = try SecurityObject(try #require(results[0x011D]))
        #expect(old.dataGroupDigests.keys == new.dataGroupDigests.keys)
        #expect(new.dataGroupDigests.values.allSatisfy { $0.allSatisfy { $0 == 0 } })
        for digest in old.dataGroupDigests.values { #expect(survivors(of: digest, in: redacted) == 0) }
    }
}
