import Synchronization

/// A MIFARE Classic 1K (NXP MF1S50yyX/V1), without the cipher.
///
/// A reader's chip performs the three-pass authentication by itself.  The command that it passes on, `60`/`61` block
/// key UID, stands for the whole authentication.
///
/// After any refusal the card returns to IDLE and is silent until it is selected again, like the chip (8.2 and figure
/// 4).
final class MIFAREClassicCard: VirtualCard {
    private typealias Keys = MIFAREClassicMemory.Keys

    let radio: VirtualCardRadio
    private let uid: [UInt8]
    private let state: Mutex<State>

    private struct State {
        var memory: MIFAREClassicMemory
        var isActive = true
        /// The sector that is open, and by which key.
        var session: (sector: Int, key: Keys)?
        /// The transfer buffer (12.4).
        var buffer: (value: Int32, address: UInt8)?
    }

    init(radio: VirtualCardRadio, memory: MIFAREClassicMemory) {
        self.radio = radio
        if case .typeA(let uid, _, _, _) = radio { self.uid = uid } else { uid = [] }
        state = Mutex(State(memory: memory))
    }

    func reset() {
        state.withLock {
            $0.isActive = true
            $0.session = nil
            $0.buffer = nil
        }
    }

    func exchangeNative(_ command: [UInt8]) -> [UInt8]? {
        state.withLock { state in
            guard state.isActive else { return nil }
            let answer = respond(to: command, &state)
            if answer == nil {
                state.isActive = false
                state.session = nil
                state.buffer = nil
            }
            return answer
        }
    }

    /// The commands of table 9.
    private func respond(to command: [UInt8], _ state: inout State) -> [UInt8]? {
        guard command.count >= 2 else { return nil }
        let block = Int(command[1])
        let data = Array(command[2...])
        switch (command[0], data.count) {
        case (0x60, 10): return authenticate(.a, block, data, &state)
        case (0x61, 10): return authenticate(.b, block, data, &state)
        case (0x30, 0): return read(block, state)
        case (0xA0, 16): return write(block, data, &state)
        case (0xC0, 4), (0xC1, 4), (0xC2, 4): return calculate(command[0], block, data, &state)
        case (0xB0, 0): return transfer(block, &state)
        // 50 00 is HLTA, which has no answer.
        default: return nil
        }
    }

    /// A key and the four bytes of the UID that its owner has seen last.
    private func authenticate(_ key: Keys, _ block: Int, _ data: [UInt8], _ state: inout State) -> [UInt8]? {
        state.session = nil
        state.buffer = nil
        guard block < MIFAREClassicMemory.blockCount, data[6...].elementsEqual(uid.suffix(4)),
            data[..<6].elementsEqual(state.memory.key(key, sector: block / 4))
        else { return nil }
        state.session = (block / 4, key)
        return []
    }

    /// The key that opened the sector of `block`; nil if that is not open, or no access is due.
    private func key(for block: Int, _ state: State) -> Keys? {
        guard let session = state.session, session.sector == block / 4,
            let trailer = state.memory.trailerRights(sector: session.sector)
        else { return nil }
        // A key B that can be read is data and opens nothing (table 8, note 1).
        return session.key == .b && trailer.readKeyB != .none ? nil : session.key
    }

    private func read(_ block: Int, _ state: State) -> [UInt8]? {
        guard let key = key(for: block, state) else { return nil }
        var content = state.memory[block]
        guard block % 4 == 3 else {
            guard let rights = state.memory.rights(sector: block / 4, index: block % 4), rights.read.contains(key)
            else {
                return nil
            }
            return content
        }
        // Keys that cannot be read come as zeros (8.6.3).
        guard let rights = state.memory.trailerRights(sector: block / 4) else { return nil }
        for i in 0..<6 { content[i] = 0 }
        if !rights.readAccess.contains(key) { for i in 6..<10 { content[i] = 0 } }
        if !rights.readKeyB.contains(key) { for i in 10..<16 { content[i] = 0 } }
        return content
    }

    private func write(_ block: Int, _ data: [UInt8], _ state: inout State) -> [UInt8]? {
        // The manufacturer block is written in the factory only (8.6.1).
        guard block != 0, let key = key(for: block, state) else { return nil }
        guard block % 4 == 3 else {
            guard let rights = state.memory.rights(sector: block / 4, index: block % 4), rights.write.contains(key)
            else { return nil }
            state.memory[block] = data
            return []
        }
        // Each part of the trailer has a separate access right; parts without write access stay unchanged.
        guard let rights = state.memory.trailerRights(sector: block / 4) else { return nil }
        var content = state.memory[block]
        var changed = false
        for (right, range) in [(rights.writeKeyA, 0..<6), (rights.writeAccess, 6..<10), (rights.writeKeyB, 10..<16)]
        where right.contains(key) {
            content.replaceSubrange(range, with: data[range])
            changed = true
        }
        guard changed else { return nil }
        state.memory[block] = content
        return []
    }

    /// DECREMENT, INCREMENT, RESTORE into the transfer buffer.
    private func calculate(_ command: UInt8, _ block: Int, _ data: [UInt8], _ state: inout State) -> [UInt8]? {
        guard block % 4 != 3, let key = key(for: block, state),
            let rights = state.memory.rights(sector: block / 4, index: block % 4),
            (command == 0xC1 ? rights.increment : rights.decrement).contains(key),
            let source = MIFAREClassicMemory.value(of: state.memory[block])
        else { return nil }
        let operand = Int32(bitPattern: data.reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
        let (result, overflow): (Int32, Bool) =
            switch command {
            case 0xC0: source.value.subtractingReportingOverflow(operand)
            case 0xC1: source.value.addingReportingOverflow(operand)
            default: (source.value, false)
            }
        guard !overflow else { return nil }
        state.buffer = (result, source.address)
        return []
    }

    private func transfer(_ block: Int, _ state: inout State) -> [UInt8]? {
        guard block != 0, block % 4 != 3, let key = key(for: block, state), let buffer = state.buffer,
            let rights = state.memory.rights(sector: block / 4, index: block % 4), rights.decrement.contains(key)
        else { return nil }
        state.memory[block] = MIFAREClassicMemory.valueBlock(buffer.value, address: buffer.address)
        return []
    }
}
