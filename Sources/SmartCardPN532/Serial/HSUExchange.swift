/// One command to a PN532 on a serial line, and its response (NXP UM0701-02, 6.2.2): what to send, and how long to wait.
///
/// A command is sent once.  One that has not been acknowledged may have been carried out all the same, and what it does to a card
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
        /// It is over; `leaving` is still to be sent.
        case finish(Result<[UInt8], HSUFailure>, leaving: [UInt8] = [])
    }

    /// How long to wait.
    struct Limits: Hashable, Sendable {
        /// For the acknowledgement.  The chip takes 15 ms at most (6.2.2), some USB adapters a second more.
        var acknowledgement = Duration.milliseconds(1500)
        /// For the response after it: longer than cards take that are slow, and ask for more time.
        var response = Duration.seconds(20)
        /// For the rest of a frame that has begun; the longest takes 290 ms at 9600 baud.
        var frame = Duration.milliseconds(500)
    }

    typealias Instant = ContinuousClock.Instant

    private let command: [UInt8]
    private let preamble: [UInt8]
    private let limits: Limits
    private var reader = HSUFrameReader()
    private var isAcknowledged = false
    /// How often a damaged response may still be asked for again.
    private var repetitions = 2
    /// Until when to wait for the acknowledgement, or for the response after it.
    private var phaseEnd: Instant
    private var frameEnd: Instant?
    /// How many bytes may still come: a line that never falls silent is no reader's.
    private var budget = 4096

    /// - Parameters:
    ///   - command: from `D4` on, 2 bytes at least.
    ///   - preamble: sent before the frame.
    init(_ command: [UInt8], preamble: [UInt8] = [], limits: Limits, now: Instant) {
        self.command = command
        self.preamble = preamble
        self.limits = limits
        phaseEnd = now + limits.acknowledgement
    }

    /// When ``Event/timedOut`` happens.
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
            return giveUp(isAcknowledged ? .noResponse : .noAcknowledgement)
        case .timedOut:
            guard frameEnd.map({ now >= $0 }) == true else { return .wait }
            frameEnd = nil
            // What a card says may look like a frame, so that none is looked for within a response.
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
            case .acknowledgement where !isAcknowledged:
                isAcknowledged = true
                phaseEnd = now + limits.response
            case .response(let response) where isAcknowledged && isAnswer(response):
                return .finish(.success(response))
            case .error where isAcknowledged:
                return .finish(.failure(.rejected))
            case .damaged where isAcknowledged:
                return askAgain(now)
            default:
                // Left over from a command that was given up: nothing is an answer before the acknowledgement.
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
        return .send(HSUFrame.negativeAcknowledgementBytes)
    }

    /// An acknowledgement by the host ends what the chip is about (6.2.1.3).
    private func giveUp(_ failure: HSUFailure) -> Action {
        .finish(.failure(failure), leaving: HSUFrame.acknowledgementBytes)
    }

    /// The response's code is the command's and one more.
    private func isAnswer(_ response: [UInt8]) -> Bool {
        response.count >= 2 && command.count >= 2 && response[1] == command[1] &+ 1
    }
}

/// Why there is no response.
enum HSUFailure: Error, Hashable {
    case noAcknowledgement
    case noResponse
    /// The chip says that it does not understand the command.
    case rejected
    case damaged
    case cancelled
    /// The line is gone.
    case gone
    case closed
}
