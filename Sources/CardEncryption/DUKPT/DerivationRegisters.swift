/// The differences between AES and TDES DUKPT: the range of the counter, and the derivation of a key from another.
protocol DUKPTScheme: Sendable {
    /// The number of bits of the transaction counter, and so of registers for intermediate derivation keys.
    static var counterBits: Int { get }
    /// The maximum number of one bits in a counter.
    static var maximumOneBits: Int { get }
    /// The beginning of the state on the disk: the initial key's identifier, and other data for reading the keys.
    var stateHeader: [UInt8] { get }
    var keyLength: Int { get }

    /// Derives the key of `counter` from `parent`, the key of the counter without its lowest one bit.
    func derive(counter: UInt32, from parent: SecretKey, into child: UnsafeMutableRawBufferPointer) throws(DUKPTError)
}

extension DUKPTScheme {
    /// Returns true if a transaction may have this counter.
    static func isValid(_ counter: UInt32) -> Bool {
        counter != 0 && counter.nonzeroBitCount <= maximumOneBits && counter.leadingZeroBitCount >= 32 - counterBits
    }

    /// Returns the next counter; 0 after the last.
    static func counter(after counter: UInt32) -> UInt32 {
        let step = counter.nonzeroBitCount < maximumOneBits ? 1 : counter & (~counter &+ 1)
        let (next, overflows) = counter.addingReportingOverflow(step)
        return !overflows && isValid(next) ? next : 0
    }

    /// Returns the number of counters from this one on, including it.
    static func count(from counter: UInt32) -> Int {
        guard counter != 0 else { return 0 }
        /// Returns the number of values with the given number of bits and at most the given number of one bits.
        func numbers(bits: Int, ones: Int) -> Int {
            guard ones >= 0 else { return 0 }
            var (sum, term) = (0, 1)
            for k in 0...min(bits, ones) {
                sum += term
                term = term * (bits - k) / (k + 1)
            }
            return sum
        }
        var (before, ones) = (0, 0)
        for bit in stride(from: counterBits - 1, through: 0, by: -1) where counter & 1 << bit != 0 {
            // The values that have a zero here, and agree above.
            before += numbers(bits: bit, ones: maximumOneBits - ones)
            ones += 1
        }
        return numbers(bits: counterBits, ones: maximumOneBits) - before
    }

    /// Returns the registers that contain a key when `counter` is next, as bits: the register of its lowest one bit,
    /// and those of the zero bits above it that are the lowest one bit of a later counter.  The others are erased, or
    /// not derived yet.
    static func registersInUse(before counter: UInt32) -> UInt32 {
        guard counter != 0 else { return 0 }
        let lowest = counter.trailingZeroBitCount
        var registers: UInt32 = 1 << lowest
        for bit in (lowest + 1)..<max(lowest + 1, counterBits) where counter & 1 << bit == 0 {
            let above = bit == 31 ? 0 : counter >> (bit + 1)
            if above.nonzeroBitCount < maximumOneBits { registers |= 1 << bit }
        }
        return registers
    }

    /// Derives the key of `counter` from the initial key, in one step for each one bit from the highest.
    func transactionKey(initialKey: SecretKey, counter: UInt32) throws(DUKPTError) -> SecretKey {
        guard Self.isValid(counter) else { throw .keySerialNumber }
        var key = initialKey
        var reached: UInt32 = 0
        for bit in stride(from: Self.counterBits - 1, through: 0, by: -1) where counter & 1 << bit != 0 {
            reached |= 1 << bit
            key = try derived(counter: reached, from: key)
        }
        return key
    }

    private func derived(counter: UInt32, from parent: SecretKey) throws(DUKPTError) -> SecretKey {
        try SecretKey(count: keyLength) { key throws(DUKPTError) in
            try derive(counter: counter, from: parent, into: key)
        }
    }
}

/// The intermediate derivation keys of a transaction-originating device, in wiped storage (X9.24-3:2017, 6;
/// X9.24-1:2009, A.2).  Not safe for concurrent use.
final class DerivationRegisters<Scheme: DUKPTScheme> {
    let scheme: Scheme
    /// The counter of the next transaction; 0 when all are used up.
    private(set) var counter: UInt32
    /// The registers: register *n* at *n* times the length of a key; unused ones are zero.
    let storage: WipedStorage

    /// Loads an initial key: fills all registers, and counts from 1.
    init(scheme: Scheme, initialKey: SecretKey) throws(DUKPTError) {
        guard initialKey.count == scheme.keyLength else { throw .keyLength(initialKey.count) }
        self.scheme = scheme
        counter = 1
        storage = WipedStorage(count: Scheme.counterBits * scheme.keyLength)
        for bit in 0..<Scheme.counterBits {
            try scheme.derive(counter: 1 << bit, from: initialKey, into: register(bit))
        }
    }

    /// Restores registers.
    ///
    /// - Parameter contents: the result of ``save()`` without the header.
    /// - Returns: nil if the contents are invalid.
    init?(scheme: Scheme, contents: UnsafeRawBufferPointer) {
        guard contents.count >= 4 else { return nil }
        let counter = contents.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
        guard counter == 0 || Scheme.isValid(counter) else { return nil }
        let inUse = Scheme.registersInUse(before: counter)
        guard contents.count == 4 + inUse.nonzeroBitCount * scheme.keyLength else { return nil }
        self.scheme = scheme
        self.counter = counter
        storage = WipedStorage(count: Scheme.counterBits * scheme.keyLength)
        var offset = 4
        for bit in 0..<Scheme.counterBits where inUse & 1 << bit != 0 {
            register(bit).copyBytes(from: contents[offset..<(offset + scheme.keyLength)])
            offset += scheme.keyLength
        }
    }

    private func register(_ bit: Int) -> UnsafeMutableRawBufferPointer {
        UnsafeMutableRawBufferPointer(
            rebasing: storage.bytes[(bit * scheme.keyLength)..<((bit + 1) * scheme.keyLength)])
    }

    /// Takes the next transaction's key out of its register, derives the keys of later ones from it, and advances the
    /// counter.  The key must not be used before the new state is on the disk.
    ///
    /// - Throws: ``DUKPTError/exhausted``.
    func take() throws(DUKPTError) -> (counter: UInt32, key: SecretKey) {
        let taken = counter
        guard taken != 0 else { throw .exhausted }
        let lowest = taken.trailingZeroBitCount
        let key = SecretKey(register(lowest))
        if taken.nonzeroBitCount < Scheme.maximumOneBits {
            for bit in 0..<lowest { try scheme.derive(counter: taken | 1 << bit, from: key, into: register(bit)) }
        }
        register(lowest).initializeMemory(as: UInt8.self, repeating: 0)
        counter = Scheme.counter(after: taken)
        return (taken, key)
    }

    /// Returns the state: the counter (4 bytes) ‖ the keys in use, from the register of the lowest bit on.
    func save() -> WipedStorage {
        let inUse = Scheme.registersInUse(before: counter)
        let contents = WipedStorage(count: 4 + inUse.nonzeroBitCount * scheme.keyLength)
        for i in 0..<4 { contents.bytes[i] = UInt8(truncatingIfNeeded: counter >> (24 - 8 * i)) }
        var offset = 4
        for bit in 0..<Scheme.counterBits where inUse & 1 << bit != 0 {
            contents.bytes[offset...].copyBytes(from: register(bit))
            offset += scheme.keyLength
        }
        return contents
    }
}
