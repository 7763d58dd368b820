package import SmartCard

/// The calls of a program to a reader with their results, and the changes of the slot.
struct ReplayScript: Sendable {
    enum Step: Sendable {
        case connect(Result<Connection, CardError>)
        case reset(Result<Void, CardError>)
        case disconnect
        case exchange(Exchange)
        case slot(SlotState)
        case slotFailed(CardError)
    }

    struct Connection: Sendable {
        let atr: ATR
        let transmissionProtocol: TransmissionProtocol
    }

    struct Exchange: Sendable {
        let layer: TraceEvent.Layer
        /// The index of the command's event.
        let event: Int
        let command: [UInt8]
        /// nil: the trace ends before it, or knows none.
        let answer: Result<[UInt8], CardError>?
        /// From the command to the answer.
        let duration: Duration

        init(_ exchange: Trace.Exchange) {
            layer = exchange.layer
            event = exchange.commandIndex
            command = exchange.command
            answer = exchange.answer.map { answer in
                switch answer {
                case .bytes(let bytes): .success(bytes)
                case .failure(let failure): .failure(failure.error)
                }
            }
            duration = exchange.duration
        }
    }

    private(set) var steps: [Step] = []
    private(set) var identity = ReaderIdentity(name: "replayed trace", backend: .replay)
    /// True if the trace contains connections, as a trace of a bare channel does not.
    private(set) var hasConnections = false
    /// The connection that is assumed if the trace names none.
    private(set) var card = Connection(atr: ATR([]), transmissionProtocol: .t1)

    init(_ trace: Trace) {
        var exchanges = trace.exchanges()[...]
        var hasIdentity = false
        var hasCard = false
        for (index, event) in trace.events.enumerated() {
            switch event.what {
            case .reader(let recorded) where !hasIdentity:
                identity = recorded
                identity.backend = .replay
                hasIdentity = true
            case .slot(let state):
                steps.append(.slot(state))
                if case .card(let atr, _) = state, !hasCard {
                    card = Connection(atr: atr, transmissionProtocol: .t1)
                    hasCard = true
                }
            case .connected(let atr, let transmissionProtocol):
                let connection = Connection(atr: atr, transmissionProtocol: transmissionProtocol)
                steps.append(.connect(.success(connection)))
                if !hasConnections { card = connection }
                (hasConnections, hasCard) = (true, true)
            case .reset: steps.append(.reset(.success(())))
            case .disconnected: steps.append(.disconnect)
            case .sent:
                guard let exchange = exchanges.first, exchange.commandIndex == index else { continue }
                exchanges = exchanges.dropFirst()
                steps.append(.exchange(Exchange(exchange)))
            case .failed(.connect, let failure): steps.append(.connect(.failure(failure.error)))
            case .failed(.reset, let failure): steps.append(.reset(.failure(failure.error)))
            case .failed(.slot, let failure): steps.append(.slotFailed(failure.error))
            case .reader, .received, .failed, .field, .note, .meta, .redacted: break
            }
        }
    }
}

extension TraceEvent.Failure {
    /// The error that the program receives on replay.
    ///
    /// If the program gave up waiting, the error is that the card did not answer: a replay does not keep a program
    /// waiting forever.
    var error: CardError {
        kind.map { CardError($0, detail) } ?? CardError(.noAnswer, "the program gave up here when it was recorded")
    }
}

extension ReplayScript.Step {
    /// For a person, without card data: `> apdu 00A40400…`
    ///
    /// - Parameter hidden: the events of the trace that hold account numbers.
    func text(hiding hidden: Set<Int>) -> String {
        switch self {
        case .connect(.success): "connect"
        case .connect(.failure(let error)): "connect -> \(error.kind.rawValue)"
        case .reset: "reset"
        case .disconnect: "disconnect"
        case .exchange(let exchange): exchange.text(isHidden: hidden.contains(exchange.event))
        case .slot: "slot"
        case .slotFailed: "slot failed"
        }
    }
}

extension ReplayScript.Exchange {
    /// Returns the command, masked, and its result in a few words: `00B2010C00 -> 9000`.
    func text(isHidden: Bool) -> String {
        let outcome =
            switch answer {
            case .success(let bytes)?:
                layer == .apdu ? bytes.suffix(2).hex : "\(bytes.count) bytes"
            case .failure(let error)?: error.kind.rawValue
            case nil: "?"
            }
        return "\(Self.text(layer, command, isHidden: isHidden)) -> \(outcome)"
    }

    /// A command for a person, masked; of one that `isHidden` no more than the header is shown.
    static func text(_ layer: TraceEvent.Layer, _ command: [UInt8], isHidden: Bool) -> String {
        let masked = (try? CommandAPDU(command)).map { isHidden ? $0.headerHex : SensitiveData.maskedHex($0) }
        let text = masked ?? "\(command.count) bytes"
        return layer == .apdu ? text : "\(layer.rawValue) \(text)"
    }
}

extension CommandAPDU {
    /// CLA, INS, P1 and P2 as hexadecimal digits, with `*` for each digit after them.
    package var headerHex: String { [cla, ins, p1, p2].hex + String(repeating: "*", count: 2 * (bytes.count - 4)) }
}
