import Dispatch
public import SmartCardSimulator
import Waiting

/// A thread for tasks that can be kept from them, as a host keeps them waiting that does other things.
///
///     let host = HeldUpHost()
///     try await withTaskExecutorPreference(host) { … }
public final class HeldUpHost: TaskExecutor {
    private let queue = DispatchQueue(label: "held-up-host")
    private let time = Time.current

    public init() {}

    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }

    /// When the task that runs now comes to wait for something, nobody goes on for so long, whatever has come meanwhile.
    public func holdUp(for milliseconds: Int) {
        queue.async { [queue, time] in
            queue.suspend()
            _ = time.deadline(after: .milliseconds(milliseconds)) { queue.resume() }
        }
    }
}

/// A card that takes its time for one instruction, and has something happen meanwhile.
public final class LateCard: VirtualCard {
    private let card: any VirtualCard
    private let instruction: UInt8
    private let time: Duration
    private let meanwhile: @Sendable () -> Void

    public init(
        _ card: any VirtualCard, instruction: UInt8, takes milliseconds: Int,
        meanwhile: @escaping @Sendable () -> Void = {}
    ) {
        (self.card, self.instruction, self.meanwhile) = (card, instruction, meanwhile)
        time = .milliseconds(milliseconds)
    }

    public var radio: VirtualCardRadio { card.radio }

    public func reset() { card.reset() }

    public func exchange(_ command: [UInt8]) -> [UInt8]? {
        if isMeant(command) { meanwhile() }
        return card.exchange(command)
    }

    public func exchangeNative(_ command: [UInt8]) -> [UInt8]? { card.exchangeNative(command) }

    public func processingTime(of command: [UInt8]) -> Duration {
        isMeant(command) ? time : card.processingTime(of: command)
    }

    private func isMeant(_ command: [UInt8]) -> Bool { command.count > 1 && command[1] == instruction }
}
