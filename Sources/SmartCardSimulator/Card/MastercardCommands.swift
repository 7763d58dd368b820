import SmartCard

/// The commands that only EMV Contactless Book C-2 defines, and its additions to the others.
extension EMVCard {
    /// The maximum number of relay resistance exchanges in one transaction; the terminal does not try more often.
    private static let maximumRelays = 3

    // MARK: EXCHANGE RELAY RESISTANCE DATA

    /// The terminal's entropy in, the card's and its times out.  The signature of GENERATE AC has both.
    func exchangeRelayResistanceData(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard let (index, application) = application(state) else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        guard let response = application.relayResistance else { return ResponseAPDU(status: 0x6D00) }
        guard command.p1 == 0, command.p2 == 0 else { return ResponseAPDU(status: 0x6A86) }
        guard command.data.count == 4 else { return ResponseAPDU(status: 0x6700) }
        guard var transaction = state.transaction, !transaction.isDone, transaction.relays < Self.maximumRelays else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        let status = status(of: .exchangeRelayResistanceData, index, &state)
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }
        transaction.relays += 1
        var drawn = transaction
        drawn.draw(from: [UInt8(truncatingIfNeeded: transaction.relays)] + command.data)
        transaction.named[.relayEntropy] = drawn.named[.unpredictableNumber]
        transaction.relayData = command.data + response.values(transaction.named)
        state.transaction = transaction
        return ResponseAPDU(data: response.encoded(transaction.named), status: status)
    }

    // MARK: COMPUTE CRYPTOGRAPHIC CHECKSUM

    /// Mag-stripe mode: the unpredictable number in, CVC3 and counter out.
    func computeCryptographicChecksum(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard let (index, application) = application(state) else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        guard !application.cryptographicChecksum.cases.isEmpty else { return ResponseAPDU(status: 0x6D00) }
        guard command.p1 == 0x8E, command.p2 == 0x80 else { return ResponseAPDU(status: 0x6A86) }
        guard var transaction = state.transaction, !transaction.isDone else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        guard let values = application.udol.values(in: command.data[...]) else { return ResponseAPDU(status: 0x6700) }
        let status = status(of: .computeCryptographicChecksum, index, &state)
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }
        transaction.isDone = true
        transaction.terminal.merge(values) { $1 }
        let kind = decide(index, asked: .arqc, transaction.terminal, &state)
        guard let response = application.cryptographicChecksum[kind, signed: false] else {
            return ResponseAPDU(status: 0x6F00)
        }
        for (name, tag) in [(NamedValue.cvc3Track1, 0x56), (.cvc3Track2, 0x9F6B)] as [(NamedValue, TLVTag)] {
            guard let track = application.recordObjects.value(of: tag) else { continue }
            transaction.named[name] = application.checksum?(
                track: track, unpredictableNumber: transaction.terminal[0x9F6A] ?? [],
                atc: transaction.named[.atc] ?? [])
        }
        state.transaction = transaction
        return ResponseAPDU(data: response.encoded(transaction.named), status: status)
    }

    // MARK: RECOVER AC

    /// Repeats the response to the last GENERATE AC, for a terminal that knows its request.
    func recoverAC(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard let (index, application) = application(state) else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        guard let drdol = application.drdol else { return ResponseAPDU(status: 0x6D00) }
        guard command.p1 == 0, command.p2 == 0 else { return ResponseAPDU(status: 0x6A86) }
        guard state.transaction?.isDone == false else { return ResponseAPDU(status: .conditionsNotSatisfied) }
        guard let values = drdol.values(in: command.data[...]) else { return ResponseAPDU(status: 0x6700) }
        let status = status(of: .recoverAC, index, &state)
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }
        guard let torn = state.recoverable[index], values.allSatisfy({ torn.terminal[$0] == $1 }) else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        state.transaction?.isDone = true
        return ResponseAPDU(data: torn.response, status: status)
    }

    // MARK: PUT DATA

    /// The unprotected data envelopes 9F75 to 9F79, those of them that the card has.
    func putEnvelope(_ command: CommandAPDU, _ state: inout State) -> ResponseAPDU {
        guard let (index, application) = application(state) else {
            return ResponseAPDU(status: .conditionsNotSatisfied)
        }
        let tag = TLVTag(rawValue: UInt32(command.p1) << 8 | UInt32(command.p2))
        guard (0x9F75...0x9F79).contains(tag.rawValue), application.data[tag] != nil else {
            return ResponseAPDU(status: 0x6A88)
        }
        guard state.transaction != nil else { return ResponseAPDU(status: .conditionsNotSatisfied) }
        guard command.data.count <= 192 else { return ResponseAPDU(status: 0x6700) }
        let status = status(of: .putEnvelope, index, &state)
        guard Self.carriesData(status) else { return ResponseAPDU(status: status) }
        state.written[index, default: [:]][tag] = command.data
        return ResponseAPDU(status: status)
    }

    // MARK: Integrated data storage

    /// Reads the data that GET PROCESSING OPTIONS returns to a terminal that names an operator.
    static func read(_ storage: DataStorage, _ transaction: inout Transaction) {
        guard let storageOperator = transaction.terminal[0x9F5C], storageOperator.contains(where: { $0 != 0 }) else {
            return
        }
        transaction.storageOperator = storageOperator
        transaction.named[.storageSummary] = storage.summary
        transaction.named[.storageNumber] = transaction.named[.unpredictableNumber]
        guard let slot = storage.slots[storageOperator] else {
            transaction.named[.storageAvailability] = [storage.availability]
            return
        }
        transaction.named[.storageControl] = [slot.control]
        transaction.named[.storageData] = slot.data
    }

    /// Writes the data that GENERATE AC supplies for DSDOL.
    ///
    /// - Returns: false if the data could not be written and the terminal wants the transaction declined in this case
    ///   (DS ODS Info, bit 4).
    static func write(
        _ values: [TLVTag: [UInt8]], _ referenceControl: UInt8, _ transaction: Transaction,
        _ storage: inout DataStorage?
    ) -> Bool {
        let information = values[0xDF62]?.first ?? 0
        let slot = DataStorage.Slot(
            control: information & 0xE0, digest: values[0xDF61] ?? [], data: values[0xDF63] ?? [])
        let circumstances = DataStorage.Circumstances(
            amount: transaction.terminal[0x9F02] ?? [], currency: transaction.terminal[0x5F2A] ?? [],
            referenceControl: referenceControl | 0x10, unpredictableNumber: transaction.terminal[0x9F37] ?? [],
            storageNumber: transaction.named[.storageNumber] ?? [])
        let isWritten = storage?.write(
            slot, of: transaction.storageOperator ?? [], input: values[0xDF60] ?? [], circumstances)
        return isWritten == true || information & 0x08 == 0
    }
}
