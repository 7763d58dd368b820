import SmartCard
import Synchronization
import Waiting

/// The passes of a phone, as a terminal sees them.
protocol PhoneWallet: Sendable {
    /// The status word for a pass in a phone that is locked, unless a card file has another.
    static var lockStatus: StatusWord { get }
    /// Ends a session.
    mutating func reset()
    /// - Returns: nil for a command that is not for the wallet.
    mutating func answer(_ command: CommandAPDU, _ visit: inout WalletVisit) -> ResponseAPDU?
}

/// The phone's state that a wallet needs for one command, and the command's effect on it.
struct WalletVisit {
    enum Outcome { case given, missing, locked }

    let offersPayment: Bool
    /// The answer of a phone that is locked; nil for one that is not.
    let lockStatus: StatusWord?
    var outcome: Outcome?

    /// Returns true if the phone is locked, which it is now known to be.
    mutating func isLocked() -> Bool {
        if lockStatus != nil { outcome = .locked }
        return lockStatus != nil
    }
}

/// A phone: the passes of a wallet in front of a payment card, and the manner in which phones answer readers.
///
/// It is written from what phones do, apart from the reader's side.
package final class WalletPhone: VirtualCard {
    /// The screen that a reader finds that has not said what it wants.
    enum Screen: String, CaseIterable, Sendable {
        /// A pass, a payment card, both; or nothing, and it does not answer.
        case pass, card, both, closed
    }

    struct Configuration: Sendable {
        let wallet: any PhoneWallet
        var screen = Screen.both
        /// True if the phone decides by the frames polled, instead of answering the first request.
        var wakesByPolling = false
        /// The taps for which the phone is locked.
        var lockedTaps = 0
        /// The time from the tap that finds the phone locked until its holder has unlocked it.
        var unlockTime: Duration?
        var lockStatus: StatusWord?
        /// The time for which the phone leaves the field once it has given a pass, the first time.
        var absence: Duration?
        /// The AIDs of the payment card.
        var applications: [[UInt8]] = []
    }

    private struct State {
        var wallet: any PhoneWallet
        var polling = PhonePolling()
        /// The taps that found the phone locked, and whether this is one.
        var lockedTaps = 0
        var wasLocked = false
        var firstLock: Time.Instant?
        var isGiven = false
        var isMissed = false
        /// The phone does not show passes any more before the session ends.
        var isRouteClosed = false
        var hasLeft = false
        var `return`: Time.Instant?
    }

    private let card: any VirtualCard
    private let configuration: Configuration
    private let time = Time.current
    private let state: Mutex<State>

    init(_ configuration: Configuration, over card: any VirtualCard) {
        (self.configuration, self.card) = (configuration, card)
        state = Mutex(State(wallet: configuration.wallet))
    }

    package var radio: VirtualCardRadio { card.radio }

    /// True once a reader has ended a session by S(DESELECT) and has dropped its field, until the next session: the phone shows
    /// that it is done.
    package var isDone: Bool { state.withLock { $0.polling.isDone } }

    // MARK: The field

    package func notice(_ event: RadioEvent) -> Bool {
        let now = time.now
        return state.withLock { state in
            switch event {
            case .fieldOn: state.polling.regainField(at: now)
            case .fieldOff: state.polling.loseField(at: now)
            case .deselect:
                // A pass that was wanted together with a payment, and not read: the phone goes on with the payment alone.
                if state.polling.wish == .passAndPayment, state.isMissed, !state.isGiven { state.isRouteClosed = true }
                state.polling.deselect()
            case .frame(let frame):
                guard !isAway(state, now) else { return false }
                let hasDecided = state.polling.hear(frame)
                guard frame.isRequest, hasDecided || !configuration.wakesByPolling else { return false }
                return offer(state) != nil
            }
            // The session has ended, and what the reader wanted is forgotten.
            if state.polling.wish == nil { state.isRouteClosed = false }
            return false
        }
    }

    package var answersAnyReader: Bool { configuration.screen != .closed }

    private func isAway(_ state: State, _ now: Time.Instant) -> Bool {
        state.return.map { now < $0 } ?? false
    }

    /// The screen that the phone shows; nil if it does not answer.
    private func offer(_ state: State) -> (passes: Bool, payment: Bool)? {
        switch configuration.wakesByPolling ? state.polling.wish : nil {
        case .passOrPayment, .passAndPayment: (true, true)
        case .passOnly: (true, false)
        case .paymentOnly: (false, true)
        case .transit(let networks):
            configuration.applications.contains { TransitNetwork.admits(networks, $0) } ? (false, true) : nil
        case .nothingHere: nil
        case nil:
            switch configuration.screen {
            case .pass: (true, false)
            case .card: (false, true)
            case .both: (true, true)
            case .closed: nil
            }
        }
    }

    package func reset() {
        state.withLock { state in
            if state.wasLocked { state.lockedTaps += 1 }
            (state.wasLocked, state.isGiven, state.isMissed) = (false, false, false)
            state.wallet.reset()
        }
        card.reset()
    }

    // MARK: Exchanges

    package func processingTime(of command: [UInt8]) -> Duration { card.processingTime(of: command) }

    package func exchange(_ command: [UInt8]) -> [UInt8]? {
        enum Turn { case silent, answer(ResponseAPDU), card }
        let now = time.now
        let parsed = try? CommandAPDU(command)
        let turn = state.withLock { state -> Turn in
            guard !isAway(state, now), let offer = offer(state) else { return .silent }
            state.polling.begin()
            guard let parsed else { return .card }
            if offer.passes, !state.isRouteClosed {
                var visit = WalletVisit(offersPayment: offer.payment, lockStatus: lockStatus(state, now))
                if let answer = state.wallet.answer(parsed, &visit) {
                    note(visit.outcome, &state, now)
                    return .answer(answer)
                }
            }
            guard !offer.payment else { return .card }
            return .answer(ResponseAPDU(status: parsed.ins == 0xA4 ? .fileNotFound : 0x6985))
        }
        switch turn {
        case .silent: return nil
        case .answer(let answer): return answer.bytes
        case .card: return card.exchange(command)
        }
    }

    private func lockStatus(_ state: State, _ now: Time.Instant) -> StatusWord? {
        let isBeforeUnlocking = configuration.unlockTime.map { time in state.firstLock.map { now < $0 + time } ?? true }
        guard state.lockedTaps < configuration.lockedTaps || isBeforeUnlocking ?? false else { return nil }
        return configuration.lockStatus ?? type(of: state.wallet).lockStatus
    }

    private func note(_ outcome: WalletVisit.Outcome?, _ state: inout State, _ now: Time.Instant) {
        switch outcome {
        case .given:
            state.isGiven = true
            if let absence = configuration.absence, !state.hasLeft {
                (state.hasLeft, state.return) = (true, now + absence)
            }
        case .missing: state.isMissed = true
        case .locked:
            (state.isMissed, state.wasLocked) = (true, true)
            state.firstLock = state.firstLock ?? now
        case nil: break
        }
    }
}
