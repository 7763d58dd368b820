import Synchronization

/// A CCID reader in software: a USB device on which cards are laid.
public protocol SoftwareReader: SoftwareUSBDevice {
    /// The cards on the reader, in the order in which they came.
    var cards: [any VirtualCard] { get }
    /// The active faults.  Setting them restarts their counts.
    var faults: [SoftwareReaderFault] { get nonmutating set }

    /// Puts a card on the reader, next to any cards already there.  Does nothing if the card is already there.
    func insert(_ card: any VirtualCard)
    /// Takes `card` away, or all cards for nil.
    func remove(_ card: (any VirtualCard)?)
}

/// The state of a software device, with its undelivered events.
protocol ObservedState {
    var observer: (@Sendable (SoftwareUSBEvent) -> Void)? { get }
    /// The events not yet delivered to an observer, and a flag that a thread is about to deliver them.
    var events: [SoftwareUSBEvent] { get set }
    var isDelivering: Bool { get set }

    /// Adds the events for a change of presence.
    mutating func reportPresence()
}

extension Mutex where Value: ObservedState {
    /// Changes the state, reports a change of presence, and notifies the observer of events in order and outside the
    /// lock, so that it may call back.
    func change<Result: Sendable>(_ body: @Sendable (inout Value) -> Result) -> Result {
        let (result, delivers) = withLock { state in
            let result = body(&state)
            state.reportPresence()
            if state.observer == nil { state.events = [] }
            let delivers = !state.isDelivering && !state.events.isEmpty
            if delivers { state.isDelivering = true }
            return (result, delivers)
        }
        var more = delivers
        while more {
            let (observer, events) = withLock { state in
                defer { state.events = [] }
                if state.events.isEmpty { state.isDelivering = false }
                return (state.observer, state.events)
            }
            for event in events { observer?(event) }
            more = !events.isEmpty
        }
        return result
    }
}

/// Puts the messages of a bulk OUT endpoint together.
struct CCIDAssembler {
    let maximumData: Int
    /// The part of a message received so far.
    private var incoming: [UInt8] = []
    /// The remaining bytes of a message too long for the buffer, which are discarded.
    private var surplus = 0

    init(maximumData: Int) { self.maximumData = maximumData }

    /// A part of a message or a whole one.  A transfer that is no multiple of 64 bytes ends the message (USB 2.0,
    /// 5.8.3); one that is may end it too.
    ///
    /// - Returns: the message that is complete; without data, and `isWhole` false, for one whose dwLength is wrong.
    mutating func receive(_ bytes: [UInt8]) -> (command: CCIDCommand, isWhole: Bool)? {
        let isLast = !bytes.count.isMultiple(of: 64) || bytes.isEmpty
        if surplus > 0 {
            surplus = isLast ? 0 : max(surplus - bytes.count, 0)
            return nil
        }
        incoming += bytes
        guard incoming.count >= CCIDCommand.headerSize else {
            // Without a whole header there is no sequence number to answer with.
            if isLast { incoming = [] }
            return nil
        }
        let header = incoming.prefix(CCIDCommand.headerSize)
        let length = Int(header[1]) | Int(header[2]) << 8 | Int(header[3]) << 16 | Int(header[4]) << 24
        let arrived = incoming.count - CCIDCommand.headerSize
        var command = CCIDCommand(
            kind: CCIDCommand.Kind(rawValue: header[0]), slot: header[5], sequence: header[6],
            parameters: Array(header[7..<10]))
        if length > maximumData || arrived > length || isLast && arrived < length {
            surplus = isLast ? 0 : max(length - arrived, 0)
            incoming = []
            return (command, false)
        }
        guard arrived == length else { return nil }
        command.data = Array(incoming.dropFirst(CCIDCommand.headerSize))
        incoming = []
        return (command, true)
    }

    /// Forgets a message that is incomplete.
    mutating func clear() { incoming = [] }
}
