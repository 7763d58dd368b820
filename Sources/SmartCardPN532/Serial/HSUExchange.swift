import Waiting

/// One command to a PN532 on a serial line and its response (NXP UM0701-02, 6.2.2): the bytes to send and the time to
/// wait.
///
/// A command is sent once: without an acknowledgment it may still have been executed, and its effect on a card must not
/// happen twice.  A damaged response is requested again; the chip repeats it from its buffer.
/// must not be done twice.  A response that arrives damaged is asked for again, which the chip answers from its buffer.
struct HSUExchange {
    enum Event {
        case started
        case received([UInt8])
        case timedOut
        case cancelled
    }

    enum Action: Equatable {
        /// Send these bytes, and wait.
        case send([UInt8])
        /// Wait for more, or until ``deadline``.
        case wait
        /// The exchange is over; `leaving` is still to be sent.
        case finish(Result<[UInt8], HSUFailure>, leaving: [UInt8] = [])
    }

    /// The time limits.
    struct Limits: Hashable, Sendable {
        /// The limit for the acknowledgment.  The chip takes at most 15 ms (6.2.2), some USB adapters a second more.
        var acknowledgment = Duration.milliseconds(1500)
        /// The limit for the response: beyond slow cards that request more time.
        var response = Duration.seconds(20)
        /// The limit for the rest of a frame; the longest takes 290 ms at 9600 baud.
        var frame = Duration.milliseconds(500)
    }

    typealias Instant = Time.Instant

    private let command: [UInt8]
    private let preamble: [UInt8]
    private let limits: Limits
    private var reader = HSUFrameReader()
    private var isAcknowledged = false
    /// The number of times that a damaged response may still be requested again.
    private var repetitions = 2
    /// The time limit of the acknowledgment, or of the response after it.
    private var phaseEnd: Instant
    private var frameEnd: Instant?
    /// The number of bytes that may still come: a line that never falls silent is not a reader's.
    private var budget = 4096

    /// - Parameters:
    ///   - command: at least 2 bytes, beginning with `D4`.
    ///   - preamble: sent before the frame.
    init(_ command: [UInt8], preamble: [UInt8] = [], limits: Limits, now: Instant) {
        self.command = command
        self.preamble = preamble
        self.limits = limits
        phaseEnd = now + limits.acknowledgment
    }

    /// The time of ``Event/timedOut``.
    var deadline: Instant { frameEnd.map { min($0, phaseEnd) } ?? phaseEnd }

    mutating func next(_ event: Event, now: Instant) -> Action {
        switch event {
        case .started:
            return .send(preamble + HSUFrame.command(command))
        case .received(let bytes):
            budget -= bytes.count
            guard budget >= 0 else { return giveUp(.damaged) }
            reader.append(bytes)
            return advance(now)
        case .timedOut where now >= phaseEnd:
            return giveUp(isAcknowledged ? .noResponse : .noAcknowledgment)
        case .timedOut:
            guard frameEnd.map({ now >= $0 }) == true else { return .wait }
            frameEnd = nil
            // Card data may look like a frame, so a damaged response is not searched for one.
            if isAcknowledged { return askAgain(now) }
            reader.skipFrame()
            return advance(now)
        case .cancelled:
            return giveUp(.cancelled)
        }
    }

    private mutating func advance(_ now: Instant) -> Action {
        while let frame = reader.next() {
            frameEnd = nil
            switch frame {
            case .acknowledgment where !isAcknowledged:
                isAcknowledged = true
                phaseEnd = now + limits.response
            case .response(let response) where isAcknowledged && isAnswer(response):
                return .finish(.success(response))
            case .error where isAcknowledged:
                return .finish(.failure(.rejected))
            case .damaged where isAcknowledged:
                return askAgain(now)
            default:
                // Left over from an abandoned command: no frame before the acknowledgment is an answer.
                continue
            }
        }
        frameEnd = reader.isWithinFrame ? frameEnd ?? now + limits.frame : nil
        return .wait
    }

    private mutating func askAgain(_ now: Instant) -> Action {
        guard repetitions > 0 else { return giveUp(.damaged) }
        repetitions -= 1
        reader.removeAll()
        frameEnd = nil
        return .send(HSUFrame.negativeAcknowledgmentBytes)
    }

    /// An acknowledgment from the host aborts the chip's current command (6.2.1.3).
    private func giveUp(_ failure: HSUFailure) -> Action {
        .finish(.failure(failure), leaving: HSUFrame.acknowledgmentBytes)
    }

    /// Returns true if the response code is the command code plus one.
    private func isAnswer(_ response: [UInt8]) -> Bool {
        response.count >= 2 && command.count >= 2 && response[1] == command[1] &+ 1
    }
}

/// The reason why there is no response.
enum HSUFailure: Error, Hashable {
    case noAcknowledgment
    case noResponse
    /// The chip did not understand the command.
    case rejected
    case damaged
    case cancelled
    /// The device is gone.
    case gone
    case closed
}
