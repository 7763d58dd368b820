import SmartCard

extension EntryPoint {
    /// Runs a transaction with an imaginary card, up to GET PROCESSING OPTIONS, once for each kernel.
    ///
    /// Call it while the terminal is being prepared, or waits for a card: tables and other data that a process loads
    /// once are then loaded, and the first card waits no longer than any other.  It leaves no trace.
    public func rehearse() {
        guard let currency = Currency["EUR"], let date = CalendarDate(year: 2026, month: 1, day: 1),
            let time = TerminalTime(date, hour: 0, minute: 0, second: 0),
            let transaction = Transaction(
                .purchase, amount: 2, currency: currency, time: time, unpredictableNumber: [0, 0, 0, 0],
                sequenceCounter: 1)
        else { return }
        for kernel in kernels.identifiers {
            guard let aid = configuration.combinations.first(where: { $0.kernel == kernel })?.aid else { continue }
            var rehearsal = self
            var event = Event.startA(transaction)
            // Pre-processing, activation, two SELECTs and GET PROCESSING OPTIONS.
            for _ in 0..<5 {
                switch rehearsal.next(event).action {
                case .activateField: event = .cardPresent
                case .send(let command): event = .response(RehearsalCard(aid: aid).answer(to: command), after: .zero)
                case .exchange: event = .terminalData(DataRecord())
                case .switchFieldOff: event = .fieldIsOff
                case .finish: break
                }
            }
        }
    }

}

extension CardInspector {
    /// Reads a card that is not there, for who waits for one: what a process reads once is read then, as with
    /// ``EntryPoint/rehearse()``.  Nothing of it stays.
    public func rehearse() async {
        guard let aid = AID([0xA0, 0x00, 0x00, 0x00, 0x03, 0x10, 0x10]) else { return }
        _ = try? await inspect(RehearsalCard(aid: aid))
    }
}

/// A card that has one application, with a PDOL, and goes no further than that.
private struct RehearsalCard: CardChannel {
    let aid: AID

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU { answer(to: command) }

    func answer(to command: CommandAPDU) -> ResponseAPDU {
        func object(_ tag: [UInt8], _ value: [UInt8]) -> [UInt8] {
            tag + [UInt8(truncatingIfNeeded: value.count)] + value
        }
        guard command.ins == 0xA4 else { return ResponseAPDU(data: [], status: 0x6985) }
        let content: [UInt8]
        if command.data == Array(aid.bytes) {
            // Label; PDOL: TTQ, amount, unpredictable number.
            let pdol: [UInt8] = [0x9F, 0x66, 0x04, 0x9F, 0x02, 0x06, 0x9F, 0x37, 0x04]
            content = object([0x50], Array("CARD".utf8)) + object([0x9F, 0x38], pdol)
        } else {
            let entry = object([0x61], object([0x4F], Array(aid.bytes)) + object([0x87], [0x01]))
            content = object([0xBF, 0x0C], entry)
        }
        return ResponseAPDU(
            data: object([0x6F], object([0x84], command.data) + object([0xA5], content)), status: .success)
    }
}
