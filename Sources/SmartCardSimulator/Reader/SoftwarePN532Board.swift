import Synchronization
import Waiting

/// A PN532 board in software, set to HSU (NXP UM0701-02, 6.2): bytes in, bytes out, as its serial line carries them.
///
///     let board = SoftwarePN532Board()
///     board.observe { event in … }
///     board.insert(card)
///     board.receive([0x55, 0x55, 0x00, 0x00, 0x00, 0x00, 0x00, 0xFF, 0x02, 0xFE, 0xD4, 0x02, 0x2A, 0x00])
///
/// Like ``SoftwareACR122U``, it opens no file and owns no thread; its host carries out each ``Event``.  It sleeps until
/// it is woken, also after a PowerDown, and the bytes that wake it are lost.
public final class SoftwarePN532Board: Sendable {
    /// An action of the board for its host to carry out.
    public enum Event: Hashable, Sendable {
        /// Bytes to send once `delay` has passed since this event, and after the bytes of earlier events.
        case ready(bytes: [UInt8], delay: Duration)
        /// All bytes not yet sent are withdrawn.
        case withdrawn
        /// The board has left.
        case unplugged
    }

    private let state: Mutex<State>

    /// - Parameters:
    ///   - revision: the revision of the chip's firmware: 06 for 1.6, 04 for 1.4.
    ///   - faults: the faults that the board shows.
    public init(revision: UInt8 = 0x06, faults: [PN532BoardFault] = []) {
        var state = State(chip: SoftwarePN532(revision: revision, maximumPart: 262))
        state.faults = faults
        self.state = Mutex(state)
    }

    // MARK: Cards and plug

    /// The cards on the board, in the order in which they came.
    public var cards: [any VirtualCard] { state.withLock { $0.chip.cards } }

    /// Puts a card on the board, next to any cards already there.  Does nothing if the card is already there.
    public func insert(_ card: any VirtualCard) {
        change { state in
            guard !state.chip.lies(card) else { return }
            card.reset()
            state.chip.cards.append(card)
            state.searchAgain()
        }
    }

    /// Removes `card`, or all cards for nil.
    public func remove(_ card: (any VirtualCard)? = nil) {
        change { state in state.chip.cards.removeAll { card == nil || $0 === card } }
    }

    /// Unplugs the board, which does nothing from then on.
    public func unplug() { change { $0.unplug() } }

    public var isPluggedIn: Bool { state.withLock { $0.isPluggedIn } }

    /// The active faults.  Setting them restarts their counts.
    public var faults: [PN532BoardFault] {
        get { state.withLock { $0.faults } }
        set { state.withLock { $0.faults = newValue } }
    }

    /// The number of commands that the chip has begun.
    package var commandCount: Int { state.withLock { $0.commandCount } }

    /// The transmissions to all cards since this was last emptied.
    package var radioRecords: [RadioRecord] {
        get { state.withLock { $0.chip.records } }
        set { state.withLock { $0.chip.records = newValue } }
    }

    // MARK: The line

    /// Receives bytes from the host.
    ///
    /// - Parameters:
    ///   - bytes: the bytes on the board's receive line.
    ///   - rate: the rate of the host's line, in baud; nil for the chip's rate.  Bytes at another rate are lost. Bytes
    ///     at a rate that the chip has just been told to use count as its acknowledgment: on a pseudo-terminal the
    ///     acknowledgment is lost when the host flushes the line, and is indistinguishable from bytes sent later.
    public func receive(_ bytes: [UInt8], rate: Int? = nil) {
        change { state in
            if let rate, !state.understands(rate) { return }
            for byte in bytes where state.isPluggedIn { state.receive(byte) }
        }
    }

    /// Sets the observer, which is called on the thread that calls the board.  It replaces an earlier observer.
    public func observe(_ observer: @escaping @Sendable (Event) -> Void) {
        change { state in
            state.observer = observer
            state.events = state.isPluggedIn ? [] : [.unplugged]
        }
    }

    /// Changes the state, then notifies the observer of events in order and outside the lock, so that it may call back.
    private func change(_ body: @Sendable (inout State) -> Void) {
        var more = state.withLock { state in
            body(&state)
            if state.observer == nil { state.events = [] }
            defer { state.isDelivering = state.isDelivering || !state.events.isEmpty }
            return !state.isDelivering && !state.events.isEmpty
        }
        while more {
            let (observer, events) = state.withLock { state in
                defer { state.events = [] }
                if state.events.isEmpty { state.isDelivering = false }
                return (state.observer, state.events)
            }
            for event in events { observer?(event) }
            more = !events.isEmpty
        }
    }
}

private struct State {
    var chip: SoftwarePN532
    var isPluggedIn = true
    var observer: (@Sendable (SoftwarePN532Board.Event) -> Void)?
    /// The events not yet delivered to an observer, and a flag that a thread is about to deliver them.
    var events: [SoftwarePN532Board.Event] = []
    var isDelivering = false
    /// The rate in baud (SetSerialBaudRate, 7.2.8), and the rate after the host acknowledges the response.
    var rate = 115_200
    private var nextRate: Int?

    private var receiver = PN532FrameReceiver()
    /// The number of rising edges still missing until the chip wakes (7.2.11).
    private var sleep = Self.wakingEdges
    private var lastAnswer: [UInt8] = []
    /// A command that looks for cards and has found none so far, and the time at which its search ends.
    private var search: (command: [UInt8], end: Time.Instant)?

    var faults: [PN532BoardFault] = [] {
        didSet {
            arguments = Dictionary(faults.map { ($0.kind, $0.argument) }, uniquingKeysWith: { $1 })
            cardFaults.list = faults.compactMap { fault in
                fault.kind.ofCard.map { SoftwareReaderFault($0, fault.argument) }
            }
            (frames, damaged, generator) = (0, 0, 0)
        }
    }
    private var arguments: [PN532BoardFault.Kind: Int] = [:]
    private var cardFaults = SoftwareReaderFaults()
    private var frames = 0
    private(set) var commandCount = 0
    private var damaged = 0
    private var generator: UInt64 = 0

    private static let wakingEdges = 5
    private static let rates = [9600, 19200, 38400, 57600, 115_200, 230_400, 460_800, 921_600, 1_288_000]

    init(chip: SoftwarePN532) { self.chip = chip }

    // MARK: From the host

    mutating func understands(_ other: Int) -> Bool {
        if other == nextRate { (rate, nextRate) = (other, nil) }
        return other == rate
    }

    mutating func receive(_ byte: UInt8) {
        guard sleep == 0 else {
            // The start bit is low, the stop bit high: each run of ones is an edge.
            let bits = UInt16(byte) << 1 | 0x200
            sleep = max(sleep - (bits & ~(bits << 1)).nonzeroBitCount, 0)
            return
        }
        guard let frame = receiver.take(byte) else { return }
        frames += 1
        if let due = arguments[.unplug], frames >= due { return unplug() }
        switch frame {
        case .acknowledgment:
            if let nextRate { rate = nextRate }
            nextRate = nil
            abort()
        case .negativeAcknowledgment:
            if !lastAnswer.isEmpty { send(lastAnswer) }
        case .command(let command):
            abort()
            if arguments[.noAcknowledgment] == nil { send(PN532Frame.acknowledgment) }
            carryOut(command)
        }
    }

    /// Ends the chip's current work.
    private mutating func abort() {
        events.append(.withdrawn)
        search = nil
    }

    private mutating func carryOut(_ command: [UInt8]) {
        commandCount += 1
        chip.cardTime = .zero
        let code = command.count > 1 ? command[1] : nil
        if arguments[.endlessExtension] != nil, code == 0x40 || code == 0x42 { return }
        // SetSerialBaudRate and its response belong to the line, not to the chip behind it.
        if code == 0x10 {
            guard command.count == 3, command[2] < Self.rates.count else { return answer(nil) }
            nextRate = Self.rates[Int(command[2])]
            return answer([0x11])
        }
        let response = chip.execute(command.dropFirst(), faults: &cardFaults)
        guard let patience = patience(command, response) else {
            answer(response, delay: chip.cardTime)
            if code == 0x16 { sleep = Self.wakingEdges }
            return
        }
        search = (command, chip.time.now + patience)
        // A search of an hour or more has no scheduled answer.
        if patience < .seconds(3600) { answer(response, delay: patience) }
    }

    /// Returns the time for which a command continues to look for cards; nil for a completed command.
    private func patience(_ command: [UInt8], _ response: [UInt8]?) -> Duration? {
        guard let response, response.count == 2, response[1] == 0x00 else { return nil }
        switch (response[0], command) {
        case (0x4B, _) where chip.passiveRetries == 0xFF: return .seconds(1_000_000)
        case (0x61, let command):
            let (times, period, types) = (Int(command[2]), Int(command[3]), command.count - 4)
            return times == 0xFF ? .seconds(1_000_000) : .milliseconds(150 * times * period * types)
        default: return nil
        }
    }

    /// Repeats a pending search after a card has arrived.
    mutating func searchAgain() {
        guard let (command, end) = search, end > chip.time.now,
            let response = chip.execute(command.dropFirst(), faults: &cardFaults), response.count > 2
        else { return }
        abort()
        answer(response, delay: .milliseconds(5))
    }

    // MARK: To the host

    /// - Parameter response: from its code on; nil for an error frame.
    private mutating func answer(_ response: [UInt8]?, delay: Duration = .zero) {
        lastAnswer = response.map { PN532Frame.response([0xD5] + $0) } ?? PN532Frame.error
        if arguments[.errorFrames] != nil { lastAnswer = PN532Frame.error }
        var frame = lastAnswer
        if arguments[.oversizedLength] != nil { frame.replaceSubrange(3..<5, with: [0xFF, 0xFF, 0xFF, 0xFF, 0x02]) }
        frame.removeLast(min(arguments[.truncatedFrames] ?? 0, frame.count))
        send(frame, delay: delay + .milliseconds(min(arguments[.slow] ?? 0, 1_000_000_000)))
    }

    private mutating func send(_ frame: [UInt8], delay: Duration = .zero) {
        guard arguments[.mute] == nil else { return }
        var frame = frame
        // The checksum is the last byte but one; an acknowledgment contains none.
        if frame.count > 6, let most = arguments[.wrongChecksum], damaged < most {
            damaged += 1
            frame[frame.count - 2] ^= 0x55
        }
        if let count = arguments[.garbage] { frame = randomBytes(min(count, 100_000)) + frame }
        if let count = arguments[.onlyGarbage] { frame = randomBytes(min(count, 100_000)) }
        events.append(.ready(bytes: frame, delay: delay))
    }

    mutating func unplug() {
        guard isPluggedIn else { return }
        isPluggedIn = false
        events.append(.unplugged)
    }

    /// SplitMix64.
    private mutating func randomBytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in
            generator &+= 0x9E37_79B9_7F4A_7C15
            var z = generator
            z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
            z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
            return UInt8(truncatingIfNeeded: z ^ (z >> 31))
        }
    }
}
