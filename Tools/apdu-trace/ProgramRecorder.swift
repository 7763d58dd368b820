import CPCSCEvents
import SmartCard
import SmartCardTrace
import ToolSupport

/// A recorder of the PC/SC calls that programs report, with one trace for each reader.  For one thread.
final class ProgramRecorder {
    /// The source of a call.
    private struct Caller: Hashable {
        let process: EventSocket.Process
        let thread: UInt64
    }

    private struct Handle: Hashable {
        let process: EventSocket.Process
        let card: UInt64
    }

    /// A connection of a program.
    private struct Connection {
        let slot: SlotRecorder
        /// Connected to the card, and not to the reader alone.
        var hasCard: Bool
        let number: Int
    }

    private let start: UInt64
    /// Makes the writer of the reader number `index`, from zero.
    private let makeWriter: (_ index: Int) throws -> TraceWriter
    private var slots: [String: SlotRecorder] = [:]
    private var recorded: [SlotRecorder] = []
    private var connections: [Handle: Connection] = [:]
    private var connectionCount = 0

    /// The maximum numbers of a program's connections and of readers, beyond any legitimate use.
    private static let (maximumConnections, maximumSlots) = (1024, 64)

    /// The first error of a writer.
    private(set) var failure: (any Error)?
    /// The names of the readers that have a trace, in the order of their numbers.
    var readers: [String] { recorded.map(\.name) }

    init(start: UInt64, _ makeWriter: @escaping (_ index: Int) throws -> TraceWriter) {
        self.start = start
        self.makeWriter = makeWriter
    }

    /// Takes a process's message; nil when the process has ended.
    func take(_ message: EventSocket.Message?, from process: EventSocket.Process) {
        guard let message else {
            for slot in slots.values { slot.end { $0.process == process } }
            connections = connections.filter { $0.key.process != process }
            return
        }
        let head = message.head
        let handle = Handle(process: process, card: head.card)
        let caller = Caller(process: process, thread: head.thread)
        let result = PCSCResult(head.status)
        let isSuccess = result.isSuccess
        let connection = connections[handle]

        func record(_ slot: SlotRecorder?, _ what: TraceEvent.What, _ turn: SlotRecorder.Turn = .none) {
            let time = Duration.nanoseconds(Int64(clamping: head.time - min(head.time, start)))
            slot?.record(TraceEvent(at: time, what), by: caller, turn)
        }
        func failed(_ operation: TraceEvent.Operation) -> TraceEvent.What {
            .failed(operation, result.failure(of: operation))
        }
        let transmissionProtocol = TransmissionProtocol(pcsc: UInt64(head.protocol))

        switch pcsc_event_kind(head.kind) {
        case PCSC_CONNECTED:
            let slot = slot(message.text)
            guard isSuccess else { return record(slot, failed(.connect)) }
            let hasCard = head.protocol != 0
            if let slot { open(handle, Connection(slot: slot, hasCard: hasCard, number: connectionCount)) }
            guard hasCard else { return }
            begin(slot)
            record(slot, .connected(ATR(message.data), transmissionProtocol))
        case PCSC_RECONNECTED:
            guard let connection else { return }
            let isReset = head.argument != 0
            guard isSuccess else {
                if isReset { record(connection.slot, failed(.reset)) }
                return
            }
            let hasCard = head.protocol != 0
            connections[handle]?.hasCard = hasCard
            if hasCard, !connection.hasCard {
                begin(connection.slot)
                record(connection.slot, .connected(ATR(message.data), transmissionProtocol))
            } else if hasCard, isReset {
                record(connection.slot, .reset)
            }
        case PCSC_DISCONNECTED:
            // Where it failed the program still has the card, unless it never had.
            guard isSuccess || head.status == Self.invalidHandle else { return }
            connections[handle] = nil
            if let connection, connection.hasCard {
                record(connection.slot, .disconnected(.init(pcsc: UInt64(head.argument))))
            }
        case PCSC_TRANSACTION_ENDED:
            if isSuccess { record(connection?.slot, .reset) }
        case PCSC_TRANSMIT:
            record(connection?.slot, .sent(.apdu, message.data), .begins(.apdu))
        case PCSC_TRANSMITTED:
            let what: TraceEvent.What =
                if !isSuccess {
                    failed(.exchange(.apdu))
                } else if message.data.isEmpty {
                    .failed(.exchange(.apdu), .init(.noAnswer, "the driver reports success with no data"))
                } else {
                    .received(.apdu, message.data)
                }
            record(connection?.slot, what, .ends(.apdu))
        case PCSC_CONTROL where PCSCControl.escapeCodes.contains(UInt64(head.argument)):
            begin(connection?.slot)
            record(connection?.slot, .sent(.escape, message.data), .begins(.escape))
        case PCSC_CONTROLLED where PCSCControl.escapeCodes.contains(UInt64(head.argument)):
            record(
                connection?.slot,
                isSuccess ? .received(.escape, message.data) : failed(.exchange(.escape)), .ends(.escape))
        case PCSC_CONTROLLED:
            // Other driver commands concern the driver alone, and may belong to a PIN pad.
            let code = String(head.argument, radix: 16, uppercase: true)
            let outcome = isSuccess ? "\(message.data.count) bytes" : result.failure().detail ?? ""
            record(connection?.slot, .note("control code \(code): \(outcome)"))
        case PCSC_READER_STATE:
            guard let slot = slot(message.text) else { return }
            if head.argument & (Self.stateUnknown | Self.stateUnavailable) != 0 {
                record(slot, .failed(.slot, .init(.readerGone)))
            } else if let state = SlotState(pcsc: UInt64(head.argument), atr: message.data) {
                record(slot, .slot(state))
            }
        default: break
        }
    }

    /// Nothing more comes.
    func end() {
        for slot in slots.values { slot.end { _ in true } }
        // Who connected to nothing has at least watched, or tried.
        guard recorded.isEmpty else { return }
        begin(slots.values.min { ($0.rank, $0.name) < ($1.rank, $1.name) })
    }

    private func slot(_ name: String) -> SlotRecorder? {
        if let slot = slots[name] { return slot }
        guard slots.count < Self.maximumSlots else { return nil }
        let slot = SlotRecorder(name)
        slots[name] = slot
        return slot
    }

    /// From now on `slot` has a trace.
    private func begin(_ slot: SlotRecorder?) {
        guard let slot, !slot.hasBegun else { return }
        do {
            slot.begin(try makeWriter(recorded.count)) { [weak self] error in
                if self?.failure == nil { self?.failure = error }
            }
        } catch {
            failure = failure ?? error
            slot.begin(nil) { _ in }
        }
        recorded.append(slot)
    }

    private func open(_ handle: Handle, _ connection: Connection) {
        // Contexts may be released with all they hold; that is not told.
        if connections.count >= Self.maximumConnections,
            let oldest = connections.min(by: { $0.value.number < $1.value.number })
        {
            connections[oldest.key] = nil
        }
        connectionCount += 1
        connections[handle] = connection
    }

    /// SCARD_E_INVALID_HANDLE
    private static let invalidHandle: UInt32 = 0x8010_0003
    private static let (stateUnknown, stateUnavailable): (UInt32, UInt32) = (0x04, 0x08)

    // MARK: One reader

    /// The events of one reader: kept until it has a trace, and put in order where several threads use the card.
    private final class SlotRecorder {
        enum Turn {
            case begins(TraceEvent.Layer)
            case ends(TraceEvent.Layer)
            case none

            var isEnd: Bool { if case .ends = self { true } else { false } }
        }

        let name: String
        private(set) var hasBegun = false
        private var writer: TraceWriter?
        private var fail: (any Error) -> Void = { _ in }
        private var early: [TraceEvent] = []
        private var lastSlot: SlotState?
        private var hasFailed = false
        /// The call whose exchange is under way.
        private var turn: (caller: Caller, layer: TraceEvent.Layer)?
        /// The events of other callers meanwhile.
        private var later: [(event: TraceEvent, caller: Caller, turn: Turn)] = []

        private static let (maximumEarly, maximumLater) = (64, 4096)

        init(_ name: String) { self.name = name }

        /// The rank of a trace: readers that a program could not use come first, then those that it only watched.
        var rank: Int { hasFailed ? 0 : early.isEmpty ? 2 : 1 }

        func begin(_ writer: TraceWriter?, _ fail: @escaping (any Error) -> Void) {
            (self.writer, self.fail, hasBegun) = (writer, fail, true)
            let first = early.first?.time ?? .zero
            write(TraceEvent(at: first, .reader(ReaderIdentity(name: name, backend: .pcsc))))
            lastSlot = nil
            for event in early { write(event) }
            early = []
        }

        /// Records an event of `caller`.
        ///
        /// While an exchange is under way, events of other callers wait for its end: on each layer an answer belongs to
        /// the oldest unanswered command.  A thread that does something else has left its exchange, as by siglongjmp.
        func record(_ event: TraceEvent, by caller: Caller, _ turn: Turn) {
            if let (holder, layer) = self.turn, holder == caller, !turn.isEnd {
                self.turn = nil
                write(TraceEvent(at: event.time, .failed(.exchange(layer), .init(nil, "the program left the call"))))
                recordLater()
            }
            if let current = self.turn, current.caller != caller, later.count < Self.maximumLater {
                later.append((event, caller, turn))
                return
            }
            switch turn {
            case .begins(let layer): self.turn = (caller, layer)
            case .ends(let layer):
                // This is the answer to a command that was not reported.
                guard self.turn?.caller == caller, self.turn?.layer == layer else { return }
                self.turn = nil
            case .none: break
            }
            write(event)
            if self.turn == nil { recordLater() }
        }

        /// The callers that `isGone` names do nothing more.
        func end(_ isGone: (Caller) -> Bool) {
            while let (caller, layer) = turn, isGone(caller) {
                turn = nil
                write(TraceEvent(at: .zero, .failed(.exchange(layer), .init(nil, "the program ended"))))
                recordLater()
            }
        }

        private func recordLater() {
            var waiting = later[...]
            later = []
            while let (event, caller, turn) = waiting.popFirst() { record(event, by: caller, turn) }
        }

        private func write(_ event: TraceEvent) {
            switch event.what {
            case .slot(let state):
                guard state != lastSlot else { return }
                lastSlot = state
            case .failed(let operation, _):
                hasFailed = true
                // Any later state is new.
                if operation == .slot { lastSlot = nil }
            default: break
            }
            guard hasBegun else {
                if early.count == Self.maximumEarly { early.removeFirst() }
                early.append(event)
                return
            }
            do { try writer?.write(event) } catch {
                writer = nil
                fail(error)
            }
        }
    }
}
