import Foundation
import SmartCard
import SmartCardSimulator
import Synchronization
import TravelDocument

extension Benchmarks {
    /// Measures the host's part of opening a passport and of reading DG1 and DG2, and counts the commands.
    static func passport() async throws {
        try await opening()
        try await reading()
    }

    /// A chip that answers at once, whose own time is taken off.
    private final class Chip: CardChannel {
        private let card: any VirtualCard
        private let state = Mutex((time: Duration.zero, bytes: 0, count: 0))

        init(_ card: any VirtualCard) { self.card = card }

        /// The time of the chip, the bytes in both directions, and the commands.
        var total: (time: Duration, bytes: Int, count: Int) { state.withLock { $0 } }

        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
            let bytes = command.bytes
            let start = ContinuousClock.now
            guard let answer = card.exchange(bytes) else { throw CardError(.cardMute) }
            let time = ContinuousClock.now - start
            state.withLock { state in
                state.time += time
                state.bytes += bytes.count + answer.count
                state.count += 1
            }
            return try ResponseAPDU(answer)
        }
    }

    private static func opening() async throws {
        guard let card = VirtualCards.named("passport") else { throw CardError(.other, "no passport") }
        let key = try AccessKey("123456", kind: .cardAccessNumber)
        var times: [Double] = []
        for _ in 0..<101 {
            card.reset()
            let channel = Chip(card)
            let start = ContinuousClock.now
            let access = try await TravelDocumentChip(over: channel).open(with: key)
            times.append(nanoseconds(ContinuousClock.now - start - channel.total.time))
            guard "\(access.method)".hasPrefix("PACE-ECDH-GM-AES-128, parameters 12") else {
                throw CardError(.other, "opened by \(access.method)")
            }
        }
        print(
            "passport: PACE with generic mapping on P-256 takes the host \(microseconds(median(times)))")
    }

    /// The fields of the specimen in ICAO 9303-11, D.2.  // TEST
    private static let zone = "L898902C<369080619406236"

    private static func reading() async throws {
        func contents(_ count: Int) -> [UInt8] { [UInt8](repeating: 0x5A, count: count) }
        let files: [UInt16: [UInt8]] = [
            0x0101: TLVTag(0x61).encode(contents(91)), 0x0102: TLVTag(0x75).encode(contents(15_000)),
        ]
        let card = PassportCard(.init(keyInformation: zone, files: files))
        let key = try AccessKey(documentNumber: "L898902C<", dateOfBirth: "690806", dateOfExpiry: "940623")
        let channel = Chip(card)
        let chip = TravelDocumentChip(over: channel)
        try await chip.open(with: key)
        let before = channel.total
        let start = ContinuousClock.now
        var bytes: [Int] = []
        for file in [ElementaryFile.dataGroup(1), .dataGroup(2)] { bytes.append(try await chip.read(file).count) }
        let total = channel.total
        let own = nanoseconds(ContinuousClock.now - start - (total.time - before.time))
        let count = total.count - before.count
        // ISO/IEC 14443-2, 8.1, and 14443-3, 6.2: 106 kbit/s, nine bits a byte.
        let onAir = Double((total.bytes - before.bytes) * 9) / 106_000 * 1e9
        let share = own / onAir
        print(
            "passport: DG1 and DG2 of 15 kB take \(count) commands\(Limit.verdict(atMost: 66, count)); the host computes for"
        )
        print("  \(microseconds(own)), \(String(format: "%.1f", share * 100)) % of the time on air")
        // Others select each file, read its header, then pieces of this size.
        let pieces = [("Proxmark", 118), ("NFCPassportReader", 160), ("gmrtd", 192), ("JMRTD", 223)]
        let others = pieces.map { name, piece in (name, bytes.reduce(0) { $0 + 2 + ($1 + piece - 1) / piece }) }
        let list = others.map { name, theirs in "\(theirs) (\(name))" }.joined(separator: ", ")
        let isFewest = others.allSatisfy { count < $0.1 }
        print("  from the sizes of their pieces, others take \(list)\(Limit.verdict("the fewest", isKept: isFewest))")
    }
}
