/// Integrated data storage, version 1, with DES (EMV Contactless Book C-2, IDS).
///
/// Operators keep their own data in slots on the card.  Functions bind the data to the operator that may write them.
struct DataStorage: Hashable, Sendable {
    struct Slot: Hashable, Sendable {
        /// DS Slot Management Control (9F6F): bit 8 permanent, bit 7 volatile.
        var control: UInt8
        /// DS Digest H (DF61), 8 bytes: an operator that knows its input may write.
        var digest: [UInt8]
        /// The operator's data, up to 160 bytes.
        var data: [UInt8]
    }

    /// The transaction data that GENERATE AC supplies.
    struct Circumstances: Hashable, Sendable {
        /// Amount, Authorized (9F02), 6 bytes.
        var amount: [UInt8]
        /// Transaction Currency Code (5F2A), 2 bytes.
        var currency: [UInt8]
        /// P1 of the command, bits 8 and 7; with bit 5 for the first GENERATE AC.
        var referenceControl: UInt8
        /// 4 bytes.
        var unpredictableNumber: [UInt8]
        /// DS Unpredictable Number (9F7F), 4 bytes.
        var storageNumber: [UInt8]
    }

    /// DS ID (9F5E), 8 to 11 bytes.
    let identifier: [UInt8]
    /// DS Summary, 8 bytes: follows from all that has ever been written.
    var summary: [UInt8]
    /// DS Slot Availability (9F5F): bit 8 a permanent slot, bit 7 a volatile one.
    var availability: UInt8
    /// By DS Requested Operator ID (9F5C), 8 bytes.
    var slots: [[UInt8]: Slot] = [:]

    /// Writes the operator's data if it is permitted.
    ///
    /// - Parameters:
    ///   - input: DS Input (Card) (DF60), the input of the slot's digest; unused for a slot that is still free.
    ///   - slot: the new content of the slot.
    /// - Returns: true if the data have been written.
    mutating func write(
        _ slot: Slot, of storageOperator: [UInt8], input: [UInt8], _ circumstances: Circumstances
    ) -> Bool {
        if let old = slots[storageOperator] {
            guard digest(of: input, storageOperator, control: old.control) == old.digest else { return false }
        } else {
            guard slot.control & availability & 0xC0 != 0 else { return false }
        }
        guard let next = summary(after: circumstances) else { return false }
        summary = next
        slots[storageOperator] = slot
        return true
    }

    /// DS Partial Key, 12 bytes: each byte of the first and the last six of the DS ID as two decimal digits, doubled (Book
    /// C-2, 8.2).
    var partialKey: [UInt8] {
        (identifier.prefix(6) + identifier.suffix(6)).map { ($0 >> 4 &* 10 &+ $0 & 0x0F) &* 2 }
    }

    /// The one-way function OWHF2 (Book C-2, 8.2): the digest, 8 bytes.
    ///
    /// - Returns: nil if the lengths are others than 8, or libcrypto refuses.
    func digest(of input: [UInt8], _ storageOperator: [UInt8], control: UInt8) -> [UInt8]? {
        // A slot both permanent and volatile belongs to no operator.
        let owner = control & 0xC0 == 0xC0 ? [UInt8](repeating: 0, count: 8) : storageOperator
        guard input.count == 8, owner.count == 8 else { return nil }
        let left = partialKey.prefix(6) + owner[4..<6]
        let right = partialKey.suffix(6) + owner[6..<8]
        return Self.cipher(Array(left), Array(right), Self.xor(owner, input)).map { Self.xor($0, input) }
    }

    /// Returns the next summary by the one-way function OWHF1.
    ///
    /// The Book leaves the function to the card; a Mastercard computes it from the summary before the write, and this
    /// is the computation of a published test tool.
    func summary(after the: Circumstances) -> [UInt8]? {
        guard summary.count == 8, the.amount.count == 6, the.currency.count == 2, the.unpredictableNumber.count == 4,
            the.storageNumber.count == 4
        else { return nil }
        let head = [the.referenceControl & 0xF0 | the.currency[0] & 0x0F, the.currency[1]]
        let first = Self.xor(summary, [0, 0, 0, 0] + the.amount.suffix(2) + the.storageNumber.suffix(2))
        let second = head + the.unpredictableNumber + the.storageNumber.prefix(2)
        let left = partialKey.prefix(6) + the.storageNumber.prefix(2)
        let right = partialKey.suffix(6) + the.storageNumber.suffix(2)
        guard let inner = TripleDES.single(Array(left), first).map({ Self.xor($0, first) }) else { return nil }
        return Self.cipher(inner, Array(right), second).map { Self.xor(Self.xor($0, first), second) }
    }

    /// Encrypts, decrypts and encrypts with two keys in turn.
    private static func cipher(_ left: [UInt8], _ right: [UInt8], _ block: [UInt8]) -> [UInt8]? {
        TripleDES(left + right)?.encrypt(block)
    }

    private static func xor(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] { zip(a, b).map { $0 ^ $1 } }
}
