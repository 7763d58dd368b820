import CardReaders
import SmartCard
import SmartCardPN532
import SmartCardSimulator
import SmartCardSimulatorHosts
import SmartCardUSB

extension Benchmarks {
    /// Measures the polling loop with frames for phones as a software PN532 sees it, over USB: the loop's period, the
    /// guard times, the frames of each kind in a loop, and how soon a phone is found.
    static func polling() async throws {
        let host = try UMockdevHost()
        defer { host.close() }
        let device = SoftwareACR122U()
        try host.plug(device)
        guard let reader = try await USBReaders().readers().first,
            let phone = VirtualCards.named("phone-apple"),
            // Passes and payment.
            let frame = BroadcastFrame([0x6A, 0x01, 0x00, 0x00, 0x01])
        else { throw CardError(.noReader) }
        let found = try await reader.withChip { chip in
            let field = PN532Field(chip, patience: .seconds(60), broadcast: frame)
            device.radioRecords = []
            let waiting = Task { try await field.activate() }
            try await Task.sleep(for: .seconds(Limit.isGate ? 1 : 5))
            let loops = PollingLoops(device.radioRecords)
            loops.report()
            let found = try await time {
                device.insert(phone)
                guard case .card = try await waiting.value else { throw CardError(.cardAbsent) }
            }
            try await field.release()
            return found
        }
        await reader.close()
        // Two loops for the phone to decide, the third that it answers, and the card's activation.
        print(
            "polling: a phone is found \(milliseconds(found)) after it comes")
    }
}

/// The loops in what a PN532 has sent without a card: each from a poll for type A to the next.
private struct PollingLoops {
    private var periods: [Double] = []
    private var guardsBefore: [Double] = []
    private var guardsAfter: [Double] = []
    private var frames: [[RadioFrame: Int]] = []
    private var damaged = 0

    init(_ records: [RadioRecord]) {
        var start: ContinuousClock.Instant?
        var last: (frame: RadioFrame, instant: ContinuousClock.Instant)?
        for record in records {
            guard case .frame(let frame, _) = record.event else {
                if case .noFrame = record.event { damaged += 1 }
                continue
            }
            if let last {
                let interval = nanoseconds(record.instant - last.instant)
                if !frame.isRequest { guardsBefore.append(interval) }
                // The next loop comes after a longer pause.
                if !last.frame.isRequest, frame.modulation != .typeA { guardsAfter.append(interval) }
            }
            // In the first loop the frame of type A precedes the poll.
            let isFirst = frames.isEmpty
            if isFirst || frame.isRequest && frame.modulation == .typeA && start != nil {
                if let start { periods.append(nanoseconds(record.instant - start)) }
                frames.append([:])
            }
            if frame.isRequest, frame.modulation == .typeA { start = record.instant }
            if !frame.isRequest { frames[frames.count - 1][frame, default: 0] += 1 }
            last = (frame, record.instant)
        }
        // The last loop may not be whole.
        if !frames.isEmpty { frames.removeLast() }
    }

    func report() {
        let most = frames.flatMap(\.values).max() ?? 0
        let kinds = Set(frames.map(\.count))
        print(
            "polling: \(frames.count) loops, \(kinds.max() ?? 0) kinds of frames in each, \(most) of each kind"
                + Limit.verdict("1 of 2 kinds, whole", isKept: most == 1 && kinds == [2] && damaged == 0))
        print(
            "polling: a loop every \(milliseconds(median(periods))), at most \(milliseconds(periods.max() ?? 0))")
        print(
            "polling: \(milliseconds(median(guardsBefore))) from a poll to its frame, "
                + "\(milliseconds(median(guardsAfter))) from there to the next poll, at least "
                + milliseconds(guardsAfter.min() ?? 0)
                + Limit.verdict("at least 5 ms", isKept: guardsAfter.allSatisfy { $0 >= 5_000_000 }))
    }
}
