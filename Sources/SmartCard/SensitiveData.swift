/// The rules for showing card data: which data objects contain the account number, a track, a name or a secret, and how
/// much of each may be shown.
public enum SensitiveData {
    /// The part of a data object that may be shown.
    public enum Exposure: Hashable, Sendable {
        /// Packed digits that begin with an account number: its first six and last four digits.
        case accountNumber
        /// Only the length.
        case nothing
    }

    /// The data objects that hold cardholder data (EMV Book 3, Annex A; EMV Contactless Book C-2, Annex A;
    /// ISO/IEC 7816-6).
    ///
    /// The list includes the ICC certificates: anyone with the issuer's public key can recover the account number from
    /// them (EMV Book 2, 6.4).
    public static let exposures: [TLVTag: Exposure] = [
        0x5A: .accountNumber,  // PAN
        0x57: .accountNumber,  // track 2 equivalent data
        0x9F6B: .accountNumber,  // track 2 data
        0x56: .nothing,  // track 1 data
        0x5F20: .nothing,  // cardholder name
        0x9F0B: .nothing,  // cardholder name extended
        0x9F1F: .nothing,  // track 1 discretionary data
        0x9F20: .nothing,  // track 2 discretionary data
        0x5F53: .nothing,  // IBAN
        0x58: .nothing,  // track 3 equivalent data
        0xDF812A: .nothing, 0xDF812B: .nothing,  // DD Card (Track1), DD Card (Track2)
        0x9F46: .nothing,  // ICC public key certificate
        0x9F2D: .nothing,  // ICC PIN encipherment public key certificate
        0x99: .nothing,  // transaction PIN data
        0x5B: .nothing,  // name of an individual
        0x5F21: .nothing, 0x5F22: .nothing, 0x5F23: .nothing,  // tracks 1, 2 and 3 as on the stripe
    ]

    /// Long random values, and the chip's production data, whose dates may look like digits of an account number:
    /// cryptograms, certificates and related objects (EMV Book 2), CPLC.
    private static let randomObjects: Set<TLVTag> = [
        0x90, 0x92, 0x93, 0x9F10, 0x9F26, 0x9F2E, 0x9F2F, 0x9F32, 0x9F47, 0x9F48, 0x9F4B, 0x9F4C, 0x9F7F,
    ]

    /// The part of `value`, the value of the primitive object `tag`, that may be shown; nil for all of it.
    ///
    /// An object outside ``exposures`` shows nothing if it contains an account number, as issuers' proprietary objects
    /// may.
    public static func exposure(of value: some Collection<UInt8>, in tag: TLVTag) -> Exposure? {
        if let exposure = exposures[tag] { return exposure }
        // Letters read as packed digits form account numbers by chance: VISA DEBIT is 56 49 53 41 20 44 45 42 49 54.
        let isText = value.allSatisfy { (0x20...0x7E).contains($0) }
        let isHidden = !randomObjects.contains(tag) && containsAccountNumber(Array(value), packed: !isText)
        return isHidden ? .nothing : nil
    }

    /// Returns `value` of the object `tag` as hexadecimal digits, with `*` for each digit that must not be shown.
    ///
    ///     masked([0x47, 0x61, 0x73, 0x90, 0x01, 0x01, 0x00, 0x10], of: 0x5A)   // "476173******0010"
    public static func masked(_ value: some Collection<UInt8>, of tag: TLVTag) -> String {
        switch exposure(of: value, in: tag) {
        case nil: value.hex
        case .accountNumber: maskingAccountNumber(value.hex)
        case .nothing: String(repeating: "*", count: value.count * 2)
        }
    }

    /// Returns an account number (ISO/IEC 7812-1, 4: 8 to 19 digits) with `*` for each hidden digit.  The package
    /// truncates account numbers only here: two different truncations of one number reveal more than either (PCI SSC,
    /// FAQ 1091 and 1117).
    ///
    /// It shows the first six and the last four digits, which PCI DSS 3.4.1 and FAQ 1091 permit for every brand and
    /// every length from 13 digits.  Of a shorter number it shows the last four, never more than half.  Fewer than 8
    /// digits are not an account number, and it shows none of them.
    ///
    ///     4761739001010010   ->   476173******0010
    ///     476173900101       ->   ********0101
    ///
    /// - Parameter digits: ASCII digits.  Do not make a clear number a `String` for this call: the string would stay in
    ///   memory.
    package static func truncated(_ digits: some Collection<UInt8>) -> String {
        let (first, last) =
            switch digits.count {
            case 13...: (6, 4)
            case 8...: (0, 4)
            default: (0, 0)
            }
        let hidden = [UInt8](repeating: UInt8(ascii: "*"), count: digits.count - first - last)
        return String(decoding: digits.prefix(first) + hidden + digits.suffix(last), as: UTF8.self)
    }

    /// Returns `digits`, an account number and perhaps the rest of a track, with `*` for each hidden digit.
    ///
    /// It shows the first six and last four digits of the account number, fewer if the number is short (PCI SSC, FAQ
    /// 1091), and nothing behind the separator, which is `D` or `=`.  A trailing `F` is padding and stays.
    public static func maskingAccountNumber(_ digits: String) -> String {
        let end = digits.utf8.firstIndex { !(0x30...0x39).contains($0) } ?? digits.endIndex
        let shown = truncated(digits.utf8[..<end])
        guard end < digits.endIndex else { return shown }
        let rest = digits[end...]
        if rest.allSatisfy({ $0 == "F" }) { return shown + rest }
        return shown + rest.prefix(1) + String(repeating: "*", count: rest.count - 1)
    }

    /// Returns the BER-TLV in `data` with masked primitive values, as `70[ 5A:476173******0010 ]`.  Returns nil if
    /// `data` is empty or not entirely BER-TLV: such data may contain anything.
    public static func maskedTLV(_ data: [UInt8]) -> String? {
        guard let list = try? TLVList(data), !list.isEmpty else { return nil }
        return text(list) { masked($0.value, of: $0.tag) }
    }

    /// Returns the BER-TLV in an answer with masked primitive values, as ``maskedTLV(_:)``; of an answer with passes, no value
    /// is shown.
    package static func maskedTLV(_ data: [UInt8], answering command: CommandAPDU) -> String? {
        guard holdsPasses(answering: command) else { return maskedTLV(data) }
        guard let list = try? TLVList(data), !list.isEmpty else { return nil }
        return text(list, hidden)
    }

    private static func hidden(_ object: TLV) -> String { String(repeating: "*", count: object.value.count * 2) }

    private static func text(_ list: TLVList, _ masked: (TLV) -> String) -> String {
        list.map { object in
            object.tag.isConstructed
                ? "\(object.tag)[ \(text(object.children, masked)) ]" : "\(object.tag):\(masked(object))"
        }.joined(separator: " ")
    }

    /// True if the answer to `command` holds passes of a phone's wallet, sealed or not: a sealed one could be played back.
    package static func holdsPasses(answering command: CommandAPDU) -> Bool {
        WalletCommand(command)?.answersPasses == true
    }

    /// Returns response data as hexadecimal digits, with `*` for each digit that must not be shown.
    ///
    /// In BER-TLV, ``exposure(of:in:)`` decides.  Other data is hidden entirely if it is a record, or if digits in it,
    /// packed or as text, form an account number with a valid check digit.  Of passes in a phone's wallet no value is shown.
    public static func maskedHex(_ data: [UInt8], answering command: CommandAPDU) -> String {
        let holdsPasses = holdsPasses(answering: command)
        guard let list = try? TLVList(data), !list.isEmpty else {
            let isRecord = command.cla != 0xFF && command.ins == 0xB2
            return isRecord || holdsPasses || containsAccountNumber(data)
                ? String(repeating: "*", count: data.count * 2) : data.hex
        }
        var text = ""
        var done = 0
        for object in list.flattened where !object.tag.isConstructed {
            guard holdsPasses || exposure(of: object.value, in: object.tag) != nil else { continue }
            let value = holdsPasses ? hidden(object) : masked(object.value, of: object.tag)
            text += data[done..<object.value.startIndex].hex + value
            done = object.value.endIndex
        }
        return text + data[done...].hex
    }

    /// Instructions whose command data comes only from the terminal: SELECT, GET PROCESSING OPTIONS, GENERATE AC,
    /// INTERNAL AUTHENTICATE, COMPUTE CRYPTOGRAPHIC CHECKSUM, EXCHANGE RELAY RESISTANCE DATA.
    private static let openInstructions: Set<UInt8> = [0xA4, 0xA8, 0xAE, 0x88, 0x2A, 0xEA]

    /// Returns true if the data field of `command` may be shown: it contains no PIN, key or cardholder data.
    public static func showsData(of command: CommandAPDU) -> Bool {
        command.cla != 0xFF && openInstructions.contains(command.ins)
    }

    /// Returns a command as hexadecimal digits, with `*` for its data unless ``showsData(of:)`` is true.
    public static func maskedHex(_ command: CommandAPDU) -> String {
        let bytes = command.bytes
        guard !command.data.isEmpty, !showsData(of: command) else { return bytes.hex }
        let header = command.lengthCoding == .short ? 5 : 7
        return bytes.prefix(header).hex + String(repeating: "*", count: command.data.count * 2)
            + bytes.dropFirst(header + command.data.count).hex
    }

    /// Returns true if `data` contains 13 to 19 consecutive digits that form an account number with a valid check digit
    /// (ISO/IEC 7812-1, Annex B): as text or, unless `packed` is false, packed.
    static func containsAccountNumber(_ data: [UInt8], packed isPacked: Bool = true) -> Bool {
        func digit(_ character: UInt8) -> UInt8? { (0x30...0x39).contains(character) ? character - 0x30 : nil }
        let packed = isPacked ? data.flatMap { [$0 >> 4, $0 & 0x0F] }.map { $0 < 10 ? $0 : nil } : []
        return [packed, data.map(digit)].contains { symbols in
            symbols.split(separator: nil).contains { run in hasAccountNumber(in: run.compactMap(\.self)) }
        }
    }

    /// Returns true if a part of `digits` is an account number: an issuer's first digits and a valid check digit.
    private static func hasAccountNumber(in digits: [UInt8]) -> Bool {
        digits.indices.contains { start in
            startsIssuer(digits[start...])
                && (13...19).contains { length in
                    start + length <= digits.count && isAccountNumber(digits[start..<start + length])
                }
        }
    }

    /// Returns true if `digits`, each 0 to 9, are 13 to 19, begin with a payment card issuer's digits, and have a valid
    /// check digit.
    package static func isAccountNumber(_ digits: ArraySlice<UInt8>) -> Bool {
        (13...19).contains(digits.count) && startsIssuer(digits) && checks(digits)
    }

    /// Returns true if the value of `tag` is long and random, so that digits in it mean nothing.
    package static func isRandom(_ tag: TLVTag) -> Bool { randomObjects.contains(tag) }

    /// Checks the first digits of payment card issuers, ``IssuerNetwork/beginnings``.
    private static func startsIssuer(_ digits: ArraySlice<UInt8>) -> Bool {
        beginnings[Int(digits.first ?? 0)].contains { digits.starts(with: $0) }
    }

    /// The beginnings of account numbers, by their first digit.
    private static let beginnings: [[[UInt8]]] = (UInt8(0)...UInt8.max).map { digit in
        IssuerNetwork.beginnings.filter { $0.first == digit }
    }

    /// Checks digits, each 0 to 9, by the Luhn formula (ISO/IEC 7812-1, Annex B).
    package static func checks(_ digits: some BidirectionalCollection<UInt8>) -> Bool {
        digits.reversed().enumerated().reduce(0) { sum, next in
            let doubled = Int(next.element) * (next.offset % 2 + 1)
            return sum + doubled / 10 + doubled % 10
        } % 10 == 0
    }
}
