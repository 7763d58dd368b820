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
        /// The request at this index is asked.
        case google(SmartTap, Int)
        case over
    }

    /// The passes seen before this tap, and in it.
    public private(set) var freshness: VASFreshness
    private let requests: [PassRequest]
    private let configuration: PassConfiguration
    private let mode: Mode
    private let now: Date
    private let secrets: @Sendable () -> SmartTapSecrets
    private var entries: [Entry] = []
    private var state = State.new

    /// - Parameters:
    ///   - requests: what is asked, in order, made by `configuration`.
    ///   - configuration: the merchants, their keys and the terminal's data.
    ///   - mode: passes alone, or before, beside or instead of a payment.
    ///   - freshness: what was seen before.
    ///   - now: this machine's clock.
    ///   - secrets: chooses what is random in a conversation with Google's wallet, anew for each collector.
    public init(
        _ requests: [PassRequest], configuration: PassConfiguration, mode: Mode, freshness: VASFreshness, at now: Date,
        secrets: @escaping @Sendable () -> SmartTapSecrets = { SmartTapSecrets() }
    ) {
        (self.requests, self.configuration, self.mode) = (requests, configuration, mode)
        (self.freshness, self.now, self.secrets) = (freshness, now, secrets)
    }

    /// Takes the phone's response; nil at the start.
    public mutating func next(_ response: ResponseAPDU?) -> Step {
        switch state {
        case .new:
            guard mode != .paymentOnly, !requests.isEmpty else { return finish(Outcome(mode: mode)) }
            let vas = AppleVAS(requests.compactMap(\.vas), mode: mode, terminalType: configuration.terminalType)
            return take(vas, response)
        case .apple(let vas): return take(vas, response)
        case .google(let tap, let index): return take(tap, response, index)
        case .over: return finish(Outcome(mode: mode, failure: .malformed))
        }
    }

    private mutating func finish(_ outcome: Outcome) -> Step {
        state = .over
        return .finished(outcome)
    }

    // MARK: Apple

    private mutating func take(_ vas: AppleVAS, _ response: ResponseAPDU?) -> Step {
        var vas = vas
        switch vas.next(response) {
        case .send(let command):
            state = .apple(vas)
            return .send(command)
        case .finished(.read(let answers)):
            take(answers)
            return finish(Outcome(mode: mode, wallet: .apple, entries: entries))
        case .finished(.noPasses(let absence)):
            var isPlain = false
            if case .noApplication = absence { isPlain = true }
            return finish(Outcome(mode: mode, isPlainCard: isPlain))
        case .finished(.malformed): return finish(Outcome(mode: mode, failure: .malformed))
        case .finished(.smartTap(let response)): return ask(0, from: .selected(response))
        }
    }

    /// Each merchant that was asked gets its answer; one that has no passes for Apple Wallet has none there.
    private mutating func take(_ answers: [AppleVAS.Entry]) {
        var rest = answers[...]
        for request in requests {
            guard let vas = request.vas else {
                entries.append(Entry(request.merchant.id, .apple, .notFound))
                continue
            }
            guard let answer = rest.popFirst() else { break }
            let (status, pass) = judge(answer, vas, request.merchant.apple?.keys ?? [])
            entries.append(Entry(request.merchant.id, .apple, status, pass))
            if rest.isEmpty, status.wantsAnotherTap || (mode == .passOnly && answer.status == .success) { break }
        }
    }

    private mutating func judge(_ answer: AppleVAS.Entry, _ vas: VASMerchant, _ keys: [MerchantKey]) -> (Status, Pass?)
    {
        guard answer.status == .success, let cryptogram = answer.cryptogram else { return (Status(answer.status), nil) }
        let message: VASCryptogram.Message
        do throws(VASCryptogram.Fault) {
            message = try cryptogram.open(with: keys.compactMap { try? $0.agreement }, for: vas)
        } catch {
            return (.readFailure(.notDecrypted(error)), nil)
        }
        switch freshness.judge(cryptogram, message, at: now) {
        case .fresh:
            return (.success, Pass(data: message.data, date: message.date, mobileToken: answer.mobileToken))
        case .replayed: return (.readFailure(.replayed), nil)
        case .clockDiffers(let seconds): return (.readFailure(.clockDiffers(seconds: seconds)), nil)
        }
    }

    // MARK: Google

    /// Asks the first merchant from `index` on that has passes for Google's wallet.
    private mutating func ask(_ index: Int, from beginning: SmartTap.Beginning) -> Step {
        for (index, request) in requests.enumerated().dropFirst(index) {
            guard let google = request.merchant.google,
                let question = SmartTapRequest(google, capabilities: configuration.capabilities, mode: mode)
            else {
                entries.append(Entry(request.merchant.id, .google, .notFound))
                continue
            }
            return take(SmartTap(question, from: beginning, secrets: secrets()), nil, index)
        }
        return finish(Outcome(mode: mode, wallet: .google, entries: entries))
    }

    private mutating func take(_ tap: SmartTap, _ response: ResponseAPDU?, _ index: Int) -> Step {
        var tap = tap
        switch tap.next(response) {
        case .send(let command):
            state = .google(tap, index)
            return .send(command)
        case .finished(let outcome):
            let (status, objects) = Self.status(outcome, to: requests[index].merchant.google?.services ?? [])
            let pass = status == .success ? Pass(objects) : nil
            entries.append(Entry(requests[index].merchant.id, .google, status, pass))
            // A phone hands over the passes of one collector in a tap; without one, the next may ask.
            guard status == .notFound else { return finish(Outcome(mode: mode, wallet: .google, entries: entries)) }
            return ask(index + 1, from: .again)
        }
    }

    /// A customer's record comes beside passes, and is none unless nothing else was asked for.
    private static func status(
        _ outcome: SmartTap.Outcome, to services: [SmartTapService]
    ) -> (Status, [SmartTapObject]) {
        func isPass(_ object: SmartTapObject) -> Bool { if case .pass = object { true } else { false } }
        let isOfCustomer = Set(services) == [.walletCustomer]
        return switch outcome {
        case .read(let objects):
            (objects.contains { isPass($0) || isOfCustomer } ? .success : .notFound, objects)
        case .refused(let status): (Status(status), [])
        case .rejected(let status): (Status(status), [])
        case .malformed(let fault): (.readFailure(.smartTap(fault)), [])
        }
    }
}
