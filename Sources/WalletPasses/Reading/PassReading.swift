import CardEncryption
public import Foundation
public import SmartCard

/// Reads passes from whichever phone is tapped: a conversation with Apple's or Google's wallet, as a value without I/O.
///
/// Call ``next(_:)`` without a response, then with the response to each command, until it has finished.  Keep ``freshness``
/// afterwards: it holds what was read, so that no answer counts twice.
public struct PassReading: Sendable {
    /// The purpose of a tap.
    public typealias Mode = AppleVAS.Mode

    public enum Step: Hashable, Sendable {
        case send(CommandAPDU)
        case finished(Outcome)
    }

    private enum State {
        case new
        case apple(AppleVAS)
        case over
    }

    /// What was seen before this tap, and in it.
    public private(set) var freshness: VASFreshness
    private let requests: [PassRequest]
    private let configuration: PassConfiguration
    private let mode: Mode
    private let now: Date
    private var state = State.new

    /// - Parameters:
    ///   - requests: what is asked, in order, made by `configuration`.
    ///   - freshness: what was seen before.
    ///   - now: this machine's clock.
    public init(
        _ requests: [PassRequest], configuration: PassConfiguration, mode: Mode, freshness: VASFreshness, at now: Date
    ) {
        (self.requests, self.configuration, self.mode) = (requests, configuration, mode)
        (self.freshness, self.now) = (freshness, now)
    }

    /// Takes the phone's response; nil at the start.
    public mutating func next(_ response: ResponseAPDU?) -> Step {
        switch state {
        case .new:
            guard mode != .paymentOnly, !requests.isEmpty else { return finish(Outcome(mode: mode)) }
            let vas = AppleVAS(requests.compactMap(\.vas), mode: mode, terminalType: configuration.terminalType)
            return take(vas, response)
        case .apple(let vas): return take(vas, response)
        case .over: return finish(Outcome(mode: mode, failure: .malformed))
        }
    }

    private mutating func finish(_ outcome: Outcome) -> Step {
        state = .over
        return .finished(outcome)
    }

    private mutating func take(_ vas: AppleVAS, _ response: ResponseAPDU?) -> Step {
        var vas = vas
        switch vas.next(response) {
        case .send(let command):
            state = .apple(vas)
            return .send(command)
        case .finished(.read(let answers)):
            return finish(Outcome(mode: mode, wallet: .apple, entries: entries(answers)))
        case .finished(.noPasses(let absence)):
            var isPlain = false
            if case .noApplication = absence { isPlain = true }
            return finish(Outcome(mode: mode, isPlainCard: isPlain))
        case .finished(.malformed): return finish(Outcome(mode: mode, failure: .malformed))
        case .finished(.smartTap): return finish(Outcome(mode: mode, wallet: .google))
        }
    }

    // MARK: Apple

    private mutating func entries(_ answers: [AppleVAS.Entry]) -> [Entry] {
        let asked = requests.compactMap { request in request.vas.map { (request.merchant, $0) } }
        return zip(asked, answers).map { asked, answer in
            guard answer.status == .success, let cryptogram = answer.cryptogram else {
                return Entry(asked.0.id, .apple, Status(answer.status))
            }
            do throws(VASCryptogram.Fault) {
                let keys = asked.0.apple?.keys.compactMap(\.agreement) ?? []
                let message = try cryptogram.open(with: keys, for: asked.1)
                switch freshness.judge(cryptogram, message, at: now) {
                case .fresh:
                    let pass = Pass(data: message.data, date: message.date, mobileToken: answer.mobileToken)
                    return Entry(asked.0.id, .apple, .success, pass)
                case .replayed: return Entry(asked.0.id, .apple, .readFailure(.replayed))
                case .clockDiffers(let seconds):
                    return Entry(asked.0.id, .apple, .readFailure(.clockDiffers(seconds: seconds)))
                }
            } catch {
                return Entry(asked.0.id, .apple, .readFailure(.notDecrypted(error)))
            }
        }
    }
}
