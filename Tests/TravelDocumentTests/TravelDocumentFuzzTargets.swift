import Foundation
import SmartCard
import SmartCardSimulator
import Synchronization
@_spi(Fuzzing) import TravelDocument

/// The fuzzer's targets for travel documents: each takes any input, and throws a finding.  Fuzz/ has libFuzzer write the
/// inputs; the tests take those of Fuzz/corpora, and change them a little.
public enum TravelDocumentFuzzTargets {
    /// Something that must not be.
    public struct Finding: Error, CustomStringConvertible {
        public let description: String
    }

    private static let files: [ElementaryFile] = [.com] + [1, 2, 5, 7, 11, 12, 13, 16].map(ElementaryFile.dataGroup)
    /// More of them, by the first byte of the input.
    private static let chipFiles: [Int: ElementaryFile] = [
        0xF1: .atrInfo, 0xF3: .dataGroup(14), 0xF4: .dataGroup(15),
    ]

    /// A file, a signature, a trust list or a zone, as the first byte chooses: it is parsed to its end, or refused with an
    /// offset within it.
    public static func parsing(_ input: [UInt8]) throws(Finding) {
        let bytes = Array(input.dropFirst())
        let choice = Int(input.first ?? 0)
        if let file = choice < files.count ? files[choice] : chipFiles[choice] { return try parse(bytes, file) }
        switch choice {
        case files.count:
            guard let object = try? SecurityObject(bytes) else { return }
            var trust = TrustList()
            for certificate in object.certificates { _ = try? trust.add(certificate.encoded, source: "", at: date) }
            for trust in [trust, TrustList()] {
                let passive = PassiveAuthentication.verify(object, files: [1: bytes], trust: trust, at: date)
                if case .believed = passive.verdict { throw Finding(description: "believed") }
                _ = "\(passive.findings)"
            }
        case files.count + 1: _ = (try? CardSecurity(bytes))?.verify(trust: TrustList(), at: date)
        case files.count + 2:
            var trust = TrustList()
            _ = try? trust.add(bytes, source: "", at: date)
        case 0xF0: FuzzedParsers.takeSecurityInfos(bytes)
        case 0xF2: try activeAuthentication(bytes[...])
        default:
            let text = String(decoding: bytes, as: UTF8.self)
            let zone = try? MachineReadableZone(text)
            for proposal in MachineReadableZone.proposals(for: text.prefix(200)) where proposal.zone == zone {
                throw Finding(description: "a zone is proposed for itself")
            }
        }
    }

    private static func parse(_ bytes: [UInt8], _ file: ElementaryFile) throws(Finding) {
        do throws(TravelDocumentFormatError) {
            let parsed = try ParsedFile(parsing: bytes, of: file)
            _ = parsed.map { "\($0)" }
        } catch {
            guard (0...bytes.count).contains(error.offset) else {
                throw Finding(description: "offset \(error.offset) of \(bytes.count)")
            }
        }
    }

    /// DG15, DG14 and the answer, the first two each behind its length in two bytes.
    private static func activeAuthentication(_ input: ArraySlice<UInt8>) throws(Finding) {
        var rest = input
        func take() -> [UInt8] {
            let length = rest.prefix(2).reduce(0) { $0 << 8 | Int($1) }
            let part = Array(rest.dropFirst(2).prefix(length))
            rest = rest.dropFirst(2 + length)
            return part
        }
        let (publicKey, infos) = (take(), take())
        let verdict = FuzzedParsers.takeActiveAuthentication(
            publicKey: publicKey, securityInfos: infos.isEmpty ? nil : infos,
            response: ResponseAPDU(data: Array(rest), status: .success))
        // With exponent 1 anybody can sign, but not a challenge that is not yet drawn.
        if verdict == .genuine { throw Finding(description: "genuine") }
    }

    private static let date = Date(timeIntervalSince1970: 1_780_000_000)

    /// The statements of a chip without files, for each way of opening it.
    private static let chips = [
        "bac yes\npace none", "bac no\npace ecdh-gm 3des 12", "bac no\npace ecdh-gm aes-128 8",
        "bac no\npace ecdh-gm aes-256 13",
        // With proofs, and signed: they are reached.
        "bac no\npace ecdh-cam aes-128 12\nactive-authentication original\nsecurity-object signed",
        "bac no\npace dh-gm aes-128 0",
        "bac no\npace ecdh-im aes-128 12",
        """
        bac yes
        pace none
        chip-authentication aes-128 12
        active-authentication original
        security-object signed
        """,
    ].map { statements in
        Result {
            try CardFile(
                parsing: """
                    card passport {
                        type-a {
                            uid  08 4A 5B 6C
                            atqa 0008
                            sak  20
                            ats  05 78 77 80 02
                        }
                        mrz "\(zone.prefix(44))" "\(zone.suffix(44))"
                        \(statements)
                    }
                    """)
        }
    }

    /// The specimen of ICAO 9303-4, appendix B.  // TEST
    private static let zone =
        "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<" + "L898902C36UTO7408122F1204159ZE184226B<<<<<10"

    /// A chip that opens as it should, and then says what the input does; or somebody between it and the reader who
    /// does.  All of it is read, and it proves what it likes.  Nobody believes it.
    public static func chip(_ input: [UInt8]) async throws {
        let choice = input.first ?? 0
        let tape = Tape(input.dropFirst())
        let number = Int(choice & 0x03 | (choice & 0x20) >> 3)
        guard let card = try chips[number].get().makeCard() as? PassportCard else {
            throw Finding(description: "no chip")
        }
        let isBetween = choice & 0x04 != 0
        // Before the session there is nothing but what the chip says.
        let isBefore = choice & 0x10 != 0
        let liar = card.lying { _, answer in isBetween ? answer : tape.answer(instead: answer) }
        let channel = Channel { command in
            guard let bytes = liar.exchange(command.bytes), let answer = try? ResponseAPDU(bytes) else {
                throw CardError(.cardMute)
            }
            let isProtected = command.cla & 0x0C != 0
            return isProtected && isBetween || !isProtected && isBefore ? tape.answer(instead: answer) : answer
        }
        let chip = TravelDocumentChip(over: channel, longestAPDU: choice & 0x08 != 0 ? nil : 261)
        guard let key = try? AccessKey(MachineReadableZone(zone)),
            let reading = try? await chip.read(dataGroups: Set(1...16), with: key)
        else { return }
        let belief = reading.belief(trust: TrustList(), at: date)
        if case .believed = belief.verdict { throw Finding(description: "believed") }
        for file in reading.files where file.bytes.count > 1 << 20 { throw Finding(description: "\(file.file)") }
    }

    private struct Channel: CardChannel {
        let answer: @Sendable (CommandAPDU) throws -> ResponseAPDU
        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU { try answer(command) }
    }

    /// The lies: a byte that chooses the status word and whether there is data, a length, and so many bytes.  At its end
    /// the chip's own answers come.
    private final class Tape: Sendable {
        private let rest: Mutex<ArraySlice<UInt8>>
        private static let statuses: [StatusWord] = [
            0x9000, 0x9000, 0x9000, 0x6282, 0x6B00, 0x6A82, 0x6982, 0x6C10, 0x6110, 0x6700, 0x6988, 0x6300, 0x63C1,
            0x6D00,
        ]

        init(_ bytes: ArraySlice<UInt8>) { rest = Mutex(bytes) }

        func answer(instead answer: ResponseAPDU) -> ResponseAPDU {
            rest.withLock { rest in
                guard let choice = rest.popFirst(), choice < 0xF0 else { return answer }
                let count = Int(rest.popFirst() ?? 0)
                let data = choice & 0x10 != 0 ? answer.data : Array(rest.prefix(count))
                if choice & 0x10 == 0 { rest = rest.dropFirst(count) }
                return ResponseAPDU(data: data, status: Self.statuses[Int(choice & 0x0F) % Self.statuses.count])
            }
        }
    }
}
