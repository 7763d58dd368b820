import SmartCard

/// One command through the bulk endpoints: the outgoing message, and the meaning of each incoming transfer until the
/// answer is complete.  Does no I/O.
///
/// It skips answers to other commands; some readers send them twice or late (nfcpy#167, pcsc-tools#81).
struct CCIDExchange: Sendable {
    /// The next step.
    enum Step: Equatable {
        /// Read on, for the remaining time.
        case read
        /// The reader requests more time: read on, with the waiting time multiplied.
        case readAnew(multiplier: UInt8)
        case done(CCIDAnswer)
        case failed(CardError.Kind, String?)
    }

    /// The greatest number of answers to other commands that are skipped, of time extensions, and of empty transfers.
    static let mostStrangers = 10
    static let mostExtensions = 600
    static let mostEmptyTransfers = 16

    private(set) var message: [UInt8]
    private(set) var command: CCIDCommand.Kind
    private var sequence: UInt8
    private let slot: UInt8
    /// True if the reader may answer with the previous bSeq.
    private var toleratesSequenceBehind: Bool
    private var assembler: FrameAssembler
    private var strangers = 0
    private var extensions = 0

    init(
        _ command: CCIDCommand, sequence: UInt8, packetSize: Int, maximumAnswer: Int,
        quirks: Set<ReaderQuirk> = []
    ) {
        message = command.bytes(sequence: sequence)
        self.command = command.kind
        self.sequence = sequence
        slot = command.slot
        toleratesSequenceBehind = quirks.contains(.sequenceBehindAfterLongMessage) && message.count > 64
        assembler = FrameAssembler(packetSize: packetSize, maximum: maximumAnswer)
    }

    /// Replaces this command by another to the same slot.  Its answer, of which half may have arrived, is dropped.
    mutating func replace(with command: CCIDCommand, sequence: UInt8) {
        message = command.bytes(sequence: sequence)
        (self.command, self.sequence) = (command.kind, sequence)
        (toleratesSequenceBehind, strangers, extensions) = (false, 0, 0)
    }

    /// Processes a transfer from the bulk IN endpoint.
    mutating func received(_ bytes: [UInt8]) -> Step {
        switch assembler.add(bytes) {
        case .incomplete: return .read
        case .malformed(let why): return .failed(.malformedAnswer, why)
        case .complete(let frame): return judge(frame)
        }
    }

    /// Processes the end of the waiting time.
    mutating func timedOut() -> Step {
        strangers > 0 ? .failed(.malformedAnswer, "answers to other commands only") : .failed(.readerTimeout, nil)
    }

    private mutating func judge(_ frame: [UInt8]) -> Step {
        guard let answer = CCIDAnswer(frame) else { return .failed(.malformedAnswer, "no CCID message") }
        let isOurs =
            answer.sequence == sequence || toleratesSequenceBehind && answer.sequence == sequence &- 1
        guard isOurs, answer.slot == slot else { return passOver() }
        guard answer.commandStatus != .timeExtension else {
            extensions += 1
            guard extensions <= Self.mostExtensions else {
                return .failed(.readerTimeout, "time extensions without end")
            }
            return .readAnew(multiplier: max(answer.error.rawValue, 1))
        }
        // A reader that does not know a command may answer with the slot status.
        guard answer.kind == command.answer || answer.kind == .slotStatus && answer.commandStatus == .failed else {
            return .failed(.malformedAnswer, "a message of type \([answer.kind.rawValue].hex)")
        }
        return .done(answer)
    }

    private mutating func passOver() -> Step {
        strangers += 1
        return strangers < Self.mostStrangers ? .read : timedOut()
    }
}

/// Assembles messages from transfers of the bulk IN endpoint.
///
/// A transfer whose length is not a multiple of the packet size ends a message (USB 2.0, 5.8.3).  A multiple may end
/// it, and an empty transfer may follow.
struct FrameAssembler: Sendable {
    enum Result: Equatable {
        case incomplete
        case complete([UInt8])
        case malformed(String)
    }

    private let packetSize: Int
    private let maximum: Int
    private var buffer: [UInt8] = []
    private var emptyTransfers = 0

    init(packetSize: Int, maximum: Int) {
        self.packetSize = max(packetSize, 1)
        self.maximum = maximum
    }

    mutating func add(_ bytes: [UInt8]) -> Result {
        if bytes.isEmpty {
            emptyTransfers += 1
            guard buffer.isEmpty else { return malformed("cut off after \(buffer.count) bytes") }
            return emptyTransfers <= CCIDExchange.mostEmptyTransfers ? .incomplete : malformed("empty transfers only")
        }
        buffer += bytes
        let isEnded = !bytes.count.isMultiple(of: packetSize)
        guard buffer.count >= CCIDAnswer.headerSize else {
            return isEnded ? malformed("cut off after \(buffer.count) bytes") : .incomplete
        }
        let length = CCIDAnswer.length(buffer)
        guard length <= maximum else { return malformed("a message of \(length) bytes") }
        if buffer.count == length {
            defer { buffer = [] }
            return .complete(buffer)
        }
        if buffer.count > length { return malformed("\(buffer.count - length) bytes after its end") }
        return isEnded ? malformed("cut off after \(buffer.count) bytes of \(length)") : .incomplete
    }

    private mutating func malformed(_ why: String) -> Result {
        buffer = []
        return .malformed(why)
    }
}
