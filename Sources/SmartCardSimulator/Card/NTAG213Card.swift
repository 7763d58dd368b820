import Synchronization

/// An NTAG213 (NXP NTAG213/215/216, section 10), a Type 2 Tag of the NFC Forum.
///
/// After anything refused the tag falls back to IDLE and is silent until it is selected again (8.4).  The originality
/// signature (READ_SIG) is NXP's to make, so this tag refuses it.
final class NTAG213Card: VirtualCard {
    /// GET_VERSION (table 28): NXP, NTAG, 50 pF, version 1.0, 144 bytes, ISO/IEC 14443-3.
    private static let version: [UInt8] = [0x00, 0x04, 0x04, 0x02, 0x01, 0x00, 0x0F, 0x03]

    let radio: VirtualCardRadio
    private let state: Mutex<State>

    private struct State {
        var memory: NTAG213Memory
        var isActive = true
        var isAuthenticated = false
        var hasCounted = false
        /// These two outlive the field.
        var wrongPasswords = 0
        var counter: UInt32 = 0

        /// The number of pages that can be read now.
        var readablePages: Int {
            guard memory.protectsReading, !isAuthenticated else { return NTAG213Memory.pageCount }
            return min(memory.firstProtectedPage, NTAG213Memory.pageCount)
        }

        func canWrite(_ page: Int) -> Bool {
            isAuthenticated || page < memory.firstProtectedPage
        }

        /// A page as a reader sees it: password and PACK come as zeros (8.8.1).
        func visible(_ page: Int) -> [UInt8] {
            page == NTAG213Memory.passwordPage || page == NTAG213Memory.packPage ? [0, 0, 0, 0] : memory[page]
        }

        /// The counter counts the first read after power-up (8.7).
        mutating func count() {
            guard memory.countsReading, !hasCounted else { return }
            hasCounted = true
            counter = min(counter + 1, 0xFF_FFFF)
        }
    }

    init(radio: VirtualCardRadio, memory: NTAG213Memory) {
        self.radio = radio
        state = Mutex(State(memory: memory))
    }

    func reset() {
        state.withLock {
            $0.isActive = true
            $0.isAuthenticated = false
            $0.hasCounted = false
        }
    }

    func exchangeNative(_ command: [UInt8]) -> [UInt8]? {
        state.withLock { state in
            guard state.isActive else { return nil }
            let answer = respond(to: command, &state)
            if answer == nil {
                state.isActive = false
                state.isAuthenticated = false
            }
            return answer
        }
    }

    /// The commands of table 22.
    private func respond(to command: [UInt8], _ state: inout State) -> [UInt8]? {
        guard let code = command.first else { return nil }
        let parameters = Array(command.dropFirst())
        switch (code, parameters.count) {
        case (0x60, 0): return Self.version
        case (0x30, 1): return read(Int(parameters[0]), &state)
        case (0x3A, 2): return fastRead(Int(parameters[0]), Int(parameters[1]), &state)
        case (0xA2, 5): return write(Int(parameters[0]), Array(parameters[1...]), &state)
        // COMPATIBILITY_WRITE: both parts in one, of which the first four bytes count.
        case (0xA0, 17): return write(Int(parameters[0]), Array(parameters[1..<5]), &state)
        case (0x39, 1): return readCounter(parameters[0], state)
        case (0x1B, 4): return authenticate(parameters, &state)
        default: return nil
        }
    }

    /// Returns four pages; page 0 follows the last readable page (10.2).
    private func read(_ page: Int, _ state: inout State) -> [UInt8]? {
        let count = state.readablePages
        guard page < count else { return nil }
        state.count()
        return (page..<page + 4).flatMap { state.visible($0 % count) }
    }

    private func fastRead(_ first: Int, _ last: Int, _ state: inout State) -> [UInt8]? {
        guard first <= last, last < state.readablePages else { return nil }
        state.count()
        return (first...last).flatMap { state.visible($0) }
    }

    private func write(_ page: Int, _ data: [UInt8], _ state: inout State) -> [UInt8]? {
        guard data.count == 4, (NTAG213Memory.staticLockPage..<NTAG213Memory.pageCount).contains(page),
            state.canWrite(page), !state.memory.isLocked(page)
        else { return nil }
        switch page {
        case NTAG213Memory.staticLockPage:
            state.memory.setStaticLocks(data[2...])
        case NTAG213Memory.capabilityPage:
            // One-time programmable: bits are set and never cleared (8.5.4).
            state.memory[page] = zip(state.memory[page], data).map { $0 | $1 }
        case NTAG213Memory.dynamicLockPage:
            state.memory.setDynamicLocks(data[..<3])
        default:
            state.memory[page] = data
        }
        return []
    }

    private func readCounter(_ number: UInt8, _ state: State) -> [UInt8]? {
        guard number == 0x02, state.memory.countsReading else { return nil }
        return (0..<3).map { UInt8(truncatingIfNeeded: state.counter >> (8 * UInt32($0))) }
    }

    private func authenticate(_ password: [UInt8], _ state: inout State) -> [UInt8]? {
        let limit = state.memory.attemptLimit
        guard limit == 0 || state.wrongPasswords < limit else { return nil }
        guard password == state.memory[NTAG213Memory.passwordPage] else {
            state.wrongPasswords = min(state.wrongPasswords + 1, 8)
            return nil
        }
        state.wrongPasswords = 0
        state.isAuthenticated = true
        return Array(state.memory[NTAG213Memory.packPage].prefix(2))
    }
}
