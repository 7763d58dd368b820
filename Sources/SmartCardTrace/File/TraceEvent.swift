public import SmartCard

/// One thing that happened between a program, a reader and a card.
public struct TraceEvent: Hashable, Sendable {
    /// When it happened, since the trace began, by a clock that never goes back.  Kept to the nanosecond.
    public var time: Duration
    public var what: What

    public init(at time: Duration, _ what: What) {
        self.time = time
        self.what = what
    }

    public enum What: Hashable, Sendable {
        /// The reader that the events after this one are about.
        case reader(ReaderIdentity)
        /// The slot came to hold this.
        case slot(SlotState)
        /// A card was powered and connected to.
        case connected(ATR, TransmissionProtocol)
        /// The connected card was reset, and has forgotten selection and security state.
        case reset
        /// The program gave the card back.
        case disconnected(CardDisposition)
        /// The reader's field was switched on or off.
        case field(isOn: Bool)
        /// Bytes from the program toward the card.
        case sent(Layer, [UInt8])
        /// Bytes from the card toward the program; on the layer ``Layer/apdu`` the status word is among them.
        case received(Layer, [UInt8])
        /// An operation failed.  On a layer, the failure replaces the answer.
        case failed(Operation, Failure)
        /// A note for people who read the trace.
        case note(String)
        /// A note for programs that read the trace, such as the request and its result.  This library does not
        /// interpret it.  A key is a word of ``TraceFormat/isKey(_:)``; the last value of a key counts.
        case meta(key: String, value: String)
        /// The items that have been taken out of the trace; see ``TraceRedaction``.
        case redacted(Set<RedactedItem>)
    }

    /// The layer of an event's bytes.
    public enum Layer: String, Hashable, Sendable, CaseIterable {
        /// Command and response APDUs (ISO/IEC 7816-4, 5.1).
        case apdu
        /// Commands to the reader itself, and its answers (PC/SC part 3: escape).
        case escape
        /// CCID messages with their header (CCID 1.10, 6).
        case ccid
        /// Frames of a PN532, from preamble to postamble (PN532 user manual, 6.2.1).
        case pn532
        /// Frames of ISO/IEC 14443 as they are on the air, CRC included.
        case rf
        /// Frames of ISO/IEC 14443 without CRC.
        case rfPayload = "rf-payload"
    }

    /// The operation that failed.
    public enum Operation: Hashable, Sendable {
        case connect
        case reset
        /// The exchange whose `sent` stands before, on the same layer.
        case exchange(Layer)
        /// Watching the slot.
        case slot
    }

    /// Why it failed.
    public struct Failure: Hashable, Sendable {
        /// The kind, as in `CardError`; nil if the program itself gave up waiting (cancellation).
        public var kind: CardError.Kind?
        public var detail: String?

        public init(_ kind: CardError.Kind?, _ detail: String? = nil) {
            self.kind = kind
            self.detail = detail
        }
    }

    /// A kind of data that redaction replaces.
    public enum RedactedItem: String, Hashable, Sendable, CaseIterable {
        case accountNumber = "account-number"
        case track
        case name
        case pin
        case key
        case certificate
        case cryptogram
        case log
        /// The data of a travel document and its holder, and public keys that identify it.
        case document
        /// The messages of an encrypted session, which nobody can continue without them.
        case session
        /// The contents of a pass from a phone's wallet, sealed or not, and what identifies its customer.
        case pass
    }
}

/// The events of one slot of one reader, in the order of time.
///
/// On each layer an answer belongs to the oldest unanswered command before it.  On ``TraceEvent/Layer/apdu`` a command
/// gets no answer after a card is connected or reset.
public struct Trace: Hashable, Sendable {
    public var events: [TraceEvent]

    public init(_ events: [TraceEvent] = []) { self.events = events }
}

extension Trace {
    /// The trace's notes for programs, by key; see ``TraceEvent/What/meta(key:value:)``.
    public var meta: [String: String] {
        events.reduce(into: [:]) { meta, event in
            if case .meta(let key, let value) = event.what { meta[key] = value }
        }
    }
}

extension Trace {
    /// A command and its result.
    public struct Exchange: Hashable, Sendable {
        public let layer: TraceEvent.Layer
        /// The index of the event with the command.
        public let commandIndex: Int
        public let command: [UInt8]
        /// The index of the event with the answer or its failure; nil if the trace contains neither.
        public fileprivate(set) var answerIndex: Int?
        /// The answer or its failure; nil if the trace contains neither.
        public fileprivate(set) var answer: Answer?
        /// From the command to the answer.
        public fileprivate(set) var duration = Duration.zero
    }

    public enum Answer: Hashable, Sendable {
        case bytes([UInt8])
        case failure(TraceEvent.Failure)
    }

    /// Returns the exchanges on `layers`, in the order of their commands.  An answer without a command belongs to a
    /// command before the trace began, and is omitted.
    public func exchanges(on layers: Set<TraceEvent.Layer> = [.apdu, .escape]) -> [Exchange] {
        var exchanges: [Exchange] = []
        // The exchanges without answer on each layer, and the number of those answered since.
        var open: [TraceEvent.Layer: (exchanges: [Int], answered: Int)] = [:]
        for (index, event) in events.enumerated() {
            let (layer, answer): (TraceEvent.Layer, Answer)
            switch event.what {
            case .sent(let layer, let bytes) where layers.contains(layer):
                open[layer, default: ([], 0)].exchanges.append(exchanges.count)
                exchanges.append(Exchange(layer: layer, commandIndex: index, command: bytes))
                continue
            case .received(let answered, let bytes): (layer, answer) = (answered, .bytes(bytes))
            case .failed(.exchange(let failed), let failure): (layer, answer) = (failed, .failure(failure))
            case .connected, .reset:
                open[.apdu] = nil
                continue
            default: continue
            }
            guard let waiting = open[layer], waiting.answered < waiting.exchanges.count else { continue }
            let exchange = waiting.exchanges[waiting.answered]
            open[layer]?.answered += 1
            exchanges[exchange].answer = answer
            exchanges[exchange].answerIndex = index
            exchanges[exchange].duration = event.time - events[exchanges[exchange].commandIndex].time
        }
        return exchanges
    }
}
