public import SmartCard

extension ReplayReader {
    /// Makes every call of `trace`, in order, to a reader that plays it; returns the place of the first call whose
    /// result differs from the trace, or nil if there is none.
    ///
    /// - Parameters:
    ///   - trace: the trace to play.
    ///   - connections: the connections that are open when the trace begins.
    public static func rehearse(
        _ trace: Trace, connections: [(atr: ATR, transmissionProtocol: TransmissionProtocol)] = []
    ) async -> (event: Int, reason: String)? {
        let openings = connections.map { TraceEvent(at: .zero, .connected($0.atr, $0.transmissionProtocol)) }
        let events = openings + trace.events
        let answers = Dictionary(
            uniqueKeysWithValues: Trace(events).exchanges().map { ($0.commandIndex, $0.answer) })
        let reader = ReplayReader(Trace(events))
        // A bare channel has no connections: the first call finds the card connected.
        let hasConnections = events.contains { if case .connected = $0.what { true } else { false } }
        // A trace does not say which of several it is that sends, or is given back: all of them are to the same card.
        var cards: [any CardConnection] = []
        for (index, event) in events.enumerated() {
            func fault(_ reason: String) -> (event: Int, reason: String) {
                (max(0, index - (events.count - trace.events.count)), reason)
            }
            do {
                switch event.what {
                case .connected: cards.append(try await reader.connect())
                case .failed(.connect, let failure):
                    if let reason = await missing(failure, { _ = try await reader.connect() }) { return fault(reason) }
                case .disconnected(let disposition):
                    await cards.popLast()?.disconnect(disposition)
                case .sent(.escape, let command):
                    let answer = answers[index] ?? nil
                    if let reason = await difference(answer, { try await reader.transmitToReader(command) }) {
                        return fault(reason)
                    }
                case .reset, .failed(.reset, _), .sent(.apdu, _):
                    if cards.isEmpty, !hasConnections { cards.append(try await reader.connect()) }
                    guard let card = cards.last else { return fault("there is no connection to the card") }
                    switch event.what {
                    case .sent(_, let bytes):
                        let command = try CommandAPDU(bytes)
                        let answer = answers[index] ?? nil
                        if let reason = await difference(answer, { try await card.transmit(command).bytes }) {
                            return fault(reason)
                        }
                    case .failed(_, let failure):
                        if let reason = await missing(failure, { try await card.reset() }) { return fault(reason) }
                    default: try await card.reset()
                    }
                default: break
                }
            } catch let error as ReplayMismatch {
                return fault(error.reason)
            } catch {
                return fault("\(error)")
            }
        }
        do { try reader.checkPlayedThrough() } catch { return (max(0, trace.events.count - 1), error.reason) }
        return nil
    }

    /// Returns the problem if `call` does not return `answer`.
    private static func difference(_ answer: Trace.Answer?, _ call: () async throws -> [UInt8]) async -> String? {
        switch answer {
        case .failure(let failure): return await missing(failure) { _ = try await call() }
        case .bytes(let bytes):
            do {
                return try await call() == bytes ? nil : "another answer is played"
            } catch {
                return (error as? ReplayMismatch)?.reason ?? "\(error)"
            }
        case nil: return "there is no answer"
        }
    }

    /// Returns the problem if `call` does not fail with `failure`.
    private static func missing(_ failure: TraceEvent.Failure, _ call: () async throws -> Void) async -> String? {
        do {
            try await call()
            return "\(failure.error.kind.rawValue) is not played"
        } catch let error as CardError {
            return error.kind == failure.error.kind ? nil : "\(error.kind.rawValue) is played"
        } catch {
            return (error as? ReplayMismatch)?.reason ?? "\(error)"
        }
    }
}
