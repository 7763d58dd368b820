import SmartCard

/// The computation of an Application Cryptogram: its key and its input (EMV Book 2, 8.1 and Annex A1).
///
/// The parts are separate because each cryptogram version combines them differently:
///
/// | version | session key | padding | data |
/// |---|---|---|---|
/// | Visa CVN 10 | none | zeros | 9F02 9F03 9F1A 95 5F2A 9A 9C 9F37 82 9F36, CVR = 9F10[4-7] |
/// | Visa CVN 17 | none | zeros | 9F02 9F37 9F36, CVR byte 2 = 9F10[5] |
/// | Visa CVN 18 | common | 80 | as 10, with the whole of 9F10 in place of the CVR |
/// | M/Chip CVN 10 hex | mastercard | 80 | as Visa CVN 10, CVR = 9F10[3-8] |
/// | M/Chip CVN 14 hex | common | 80 | as M/Chip CVN 10 |
struct ApplicationCryptogram: Hashable, Sendable {
    /// The derivation of the session key from the card's master key (EMV Book 2, Annex A1.3).
    enum SessionKey: String, CaseIterable, Sendable {
        /// The master key itself.
        case none
        /// EMV's common session key from the ATC.
        case common
        /// M/Chip's, from the ATC and the unpredictable number.
        case mastercard
    }

    /// A data object, or some of its bytes counted from 1.
    struct Datum: Hashable, Sendable {
        var tag: TLVTag
        var bytes: ClosedRange<Int>?
    }

    var issuerKey: TripleDES
    /// The digits of the account number.
    var pan: [UInt8]
    /// PAN sequence number, two digits in a byte.
    var sequence: UInt8
    var sessionKey: SessionKey
    var padding: TripleDES.Padding
    var data: [Datum]

    /// The ICC master key.
    var masterKey: TripleDES? { issuerKey.cardKey(pan: pan, sequence: sequence) }

    /// The key for one transaction.
    func key(atc: [UInt8], unpredictableNumber: [UInt8]) -> TripleDES? {
        guard let master = masterKey else { return nil }
        let tail: [UInt8]
        switch sessionKey {
        case .none: return master
        case .common: tail = [0, 0, 0, 0]
        case .mastercard: tail = unpredictableNumber
        }
        guard atc.count == 2, tail.count == 4 else { return nil }
        // Annex A1.3.1: R with its third byte F0 for the left half of the key and 0F for the right.
        let r = atc + [0xF0, 0x00] + tail + atc + [0x0F, 0x00] + tail
        return master.encrypt(r).flatMap { TripleDES($0.map(TripleDES.withOddParity)) }
    }

    /// The message the MAC is over, before padding; nil if `value` does not know one of the data.
    func message(_ value: (TLVTag) -> [UInt8]?) -> [UInt8]? {
        var message: [UInt8] = []
        for datum in data {
            guard let bytes = value(datum.tag) else { return nil }
            guard let part = datum.bytes else {
                message += bytes
                continue
            }
            guard part.lowerBound >= 1, part.upperBound <= bytes.count else { return nil }
            message += bytes[(part.lowerBound - 1)..<part.upperBound]
        }
        return message
    }

    /// The cryptogram, 8 bytes (EMV Book 2, 8.1.2).
    ///
    /// - Parameter value: the data objects of the transaction, the terminal's and the card's.
    func callAsFunction(_ value: (TLVTag) -> [UInt8]?) -> [UInt8]? {
        guard let message = message(value), let atc = value(0x9F36) else { return nil }
        return key(atc: atc, unpredictableNumber: value(0x9F37) ?? [])?.mac(message, padding: padding)
    }
}
