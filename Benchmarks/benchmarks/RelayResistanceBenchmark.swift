import EMVContactless
import Foundation
import SmartCard
import SmartCardPN532
import SmartCardSimulator

extension Benchmarks {
    /// How long EXCHANGE RELAY RESISTANCE DATA takes on the software reader, by the transport's time stamps and from the call
    /// to its return: with nothing else to do, and with tasks that keep all of Swift's threads busy.
    static func rrp() async throws {
        for (host, others) in [("an idle host", 0), ("a busy host", 2 * ProcessInfo.processInfo.activeProcessorCount)] {
            let tasks = (0..<others).map { _ in busyTask() }
            let times = try await relayTimes(10_000)
            for task in tasks { task.cancel() }
            for task in tasks { await task.value }
            print("rrp: \(times.count) exchanges on \(host), in units of 100 µs")
            let (stamps, calls) = (times.map { units($0.stamps) }, times.map { units($0.call) })
            printHistogram(stamps, calls)
            func outside(_ values: [Int]) -> Int { values.count { !RelayLimits.honest.contains($0) } }
            print(
                "  outside of \(RelayLimits.honest): by the call \(outside(calls)), by the transport \(outside(stamps))"
                    + Limit.verdict("0", isKept: outside(stamps) == 0))
        }
    }

    /// What Kernel 2 takes of the card mastercard-advance (Book C-2, SR1.18 to SR1.21, and table 4.3): the card says that it
    /// takes 50 to 100 units of 100 µs, the periods of grace are 20 and 50, and 18 and 24 are for sending.
    private enum RelayLimits {
        static let honest = (50 - 20 + 18 + 24)...(100 + 50 + 18 + 24)
    }

    private typealias RelayTime = (stamps: Duration, call: Duration)

    /// Of so many exchanges with four readers at a time, each with a PN532 and a card that takes 11 ms.
    private static func relayTimes(_ count: Int) async throws -> [RelayTime] {
        try await withThrowingTaskGroup(of: [RelayTime].self) { group in
            for _ in 0..<4 { group.addTask { try await relayTimesOfOneReader(count / 4) } }
            return try await group.reduce(into: []) { $0 += $1 }
        }
    }

    private static func relayTimesOfOneReader(_ count: Int) async throws -> [RelayTime] {
        let reader = VirtualReader(SoftwareACR122U())
        guard let card = VirtualCards.named("mastercard-advance") else { throw CardError(.other, "no card") }
        reader.device.insert(card)
        return try await ACR122U(over: reader).withChip { chip in
            guard case .card(let card) = try await PN532Field(chip).activate() else { throw CardError(.cardAbsent) }
            let channel = card.layered()
            var times: [RelayTime] = []
            while times.count < count {
                // A card takes part three times in a transaction.
                if times.count.isMultiple(of: 3) {
                    _ = try await channel.transmit(.select([0xA0, 0x00, 0x00, 0x00, 0x04, 0x10, 0x10]))
                    // Terminal risk management data, country, terminal type.
                    let data = [UInt8](repeating: 0, count: 8) + [0x02, 0x76, 0x22]
                    _ = try await channel.transmit(.getProcessingOptions(data))
                }
                let stopwatch = ExchangeStopwatch()
                let call = try await ContinuousClock().measure {
                    let response = try await stopwatch.time {
                        try await channel.transmit(.exchangeRelayResistanceData([1, 2, 3, 4]))
                    }
                    guard response.status == .success else { throw CardError(.other, "\(response.status)") }
                }
                times.append((stopwatch.elapsed, call))
            }
            return times
        }
    }

    /// Computes for 5 ms at a time, and lets others have its thread in between.
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
        // Ten rows of a unit each, then each twice as high as the one before.
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
