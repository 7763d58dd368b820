import CardReaders
import EMVContactless
import Foundation
import SmartCard
import SmartCardPN532
import SmartCardSimulator

extension Benchmarks {
    /// Measures EXCHANGE RELAY RESISTANCE DATA on the software reader, by the transport's time stamps and from call to
    /// return: on an idle process, and with tasks that keep all of Swift's threads busy.
    static func rrp() async throws {
        for (host, others) in [("an idle host", 0), ("a busy host", 2 * ProcessInfo.processInfo.activeProcessorCount)] {
            let tasks = (0..<others).map { _ in busyTask() }
            let cards = try await relayTimes()
            for task in tasks { task.cancel() }
            for task in tasks { await task.value }
            let (stamps, calls) = (cards.map { $0.map { units($0.stamps) } }, cards.map { $0.map { units($0.call) } })
            print("rrp: \(stamps.joined().count) exchanges on \(host), in units of 100 µs")
            printHistogram(Array(stamps.joined()), Array(calls.joined()))
            func outside(_ cards: [[Int]]) -> Int { cards.joined().count { !RelayLimits.honest.contains($0) } }
            print(
                "  outside of \(RelayLimits.honest): by the transport \(outside(stamps)), by the call \(outside(calls))"
            )
            func refused(_ cards: [[Int]]) -> Int { cards.count { !RelayLimits.lets($0) } }
            // The limit is the protocol's: a machine that holds up the reader's thread for 8 ms three times in a row refuses honest
            // cards, whoever reads them.
            let verdict =
                refused(stamps) == 0
                ? Limit.verdict("0", .kept)
                : Limit.verdict(
                    "0", .undecided, "UNDECIDED, this machine holds threads up for longer than a card may take")
            print(
                "  of \(cards.count) cards, asked again twice while late, too late or too early: by the transport "
                    + "\(refused(stamps))\(verdict), by the call \(refused(calls))"
            )
            let later = cards.joined().count { $0.stamps > $0.call }
            print("  the transport's time is longer than the call's \(later) times" + Limit.verdict(atMost: 0, later))
        }
    }

    /// The limits of Kernel 2 for the card mastercard-advance (Book C-2, SR1.18 to SR1.27, and table 4.3).  The card
    /// declares 50 to 100 units of 100 µs; the grace periods are 20 and 50, and transmission takes 18 and 24.
    private enum RelayLimits {
        static let honest = (50 - 20 + 18 + 24)...(100 + 50 + 18 + 24)

        /// Returns true if the card passes.  The first time that is not late counts.
        static func lets(_ times: [Int]) -> Bool {
            times.first { $0 <= honest.upperBound }.map { $0 >= honest.lowerBound } ?? false
        }
    }

    private typealias RelayTime = (stamps: Duration, call: Duration)

    /// Measures more than 10,000 exchanges, three with each card, the number in one transaction.
    private static func relayTimes() async throws -> [[RelayTime]] {
        try await withThrowingTaskGroup(of: [[RelayTime]].self) { group in
            for _ in 0..<4 { group.addTask { try await relayTimesOfOneReader(cards: 834) } }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    /// Measures through a PN532, with a card that takes 11 ms.
    private static func relayTimesOfOneReader(cards: Int) async throws -> [[RelayTime]] {
        let reader = VirtualReader(SoftwareACR122U())
        guard let card = VirtualCards.named("mastercard-advance") else { throw CardError(.other, "no card") }
        reader.device.insert(card)
        return try await ACR122U(over: reader).withChip { chip in
            guard case .card(let card) = try await PN532Field(chip).activate() else { throw CardError(.cardAbsent) }
            let channel = Stack(.ofEMVContactless, for: reader, timeLimit: nil).over(card)
            var times: [[RelayTime]] = []
            for _ in 0..<cards {
                _ = try await channel.transmit(.select([0xA0, 0x00, 0x00, 0x00, 0x04, 0x10, 0x10]))
                // Terminal risk management data, country, terminal type.
                let data = [UInt8](repeating: 0, count: 8) + [0x02, 0x76, 0x22]
                _ = try await channel.transmit(.getProcessingOptions(data))
                times.append([])
                for _ in 0..<3 { times[times.count - 1].append(try await relayTime(channel)) }
            }
            return times
        }
    }

    private static func relayTime(_ channel: some CardChannel) async throws -> RelayTime {
        let stopwatch = ExchangeStopwatch()
        let call = try await ContinuousClock().measure {
            let response = try await stopwatch.time {
                try await channel.transmit(.exchangeRelayResistanceData([1, 2, 3, 4]))
            }
            guard response.status == .success else { throw CardError(.other, "\(response.status)") }
        }
        return (stopwatch.elapsed, call)
    }

    /// Computes for 5 ms at a time and yields its thread in between.
    private static func busyTask() -> Task<Void, Never> {
        Task.detached {
            while !Task.isCancelled {
                let end = ContinuousClock.now + .milliseconds(5)
                while .now < end {}
                await Task.yield()
            }
        }
    }

    private static func units(_ duration: Duration) -> Int { Int(nanoseconds(duration) / 100_000) }

    private static func printHistogram(_ stamps: [Int], _ calls: [Int]) {
        func column(_ text: some CustomStringConvertible) -> String {
            String(repeating: " ", count: max(0, 12 - "\(text)".count)) + "\(text)"
        }
        print("  \(column("")) \(column("transport")) \(column("call"))")
        // Ten rows of one unit each; after that, each row doubles.
        var (row, low, height) = (0, min(stamps.min() ?? 0, calls.min() ?? 0), 1)
        let most = max(stamps.max() ?? 0, calls.max() ?? 0)
        while low <= most {
            let range = low...(low + height - 1)
            let counts = (stamps.count { range.contains($0) }, calls.count { range.contains($0) })
            if counts != (0, 0) {
                print("  \(column(height == 1 ? "\(low)" : "\(range)")) \(column(counts.0)) \(column(counts.1))")
            }
            (row, low) = (row + 1, low + height)
            if row >= 10 { height *= 2 }
        }
        let (stamps, calls) = (stamps.sorted(), calls.sorted())
        for (name, share) in [("50 %", 0.5), ("90 %", 0.9), ("99 %", 0.99), ("99.9 %", 0.999), ("100 %", 1)] {
            func percentile(_ values: [Int]) -> Int { values[Int(Double(values.count - 1) * share)] }
            print("  \(column(name)) \(column(percentile(stamps))) \(column(percentile(calls)))")
        }
    }
}
