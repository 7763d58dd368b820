import SmartCard

/// The CVM list, tag 8E: cardholder verification rules in the issuer's order of preference (EMV Book 3, Annex C3).
public struct CVMList: Hashable, Sendable {
    /// One cardholder verification rule.
    public struct Rule: Hashable, Sendable {
        /// The CVM code, including bit 7, which says whether to continue if the method fails.
        public let code: UInt8
        public let condition: UInt8

        public init(code: UInt8, condition: UInt8) {
            self.code = code
            self.condition = condition
        }

        /// True if the next rule applies when this one fails.
        public var continuesOnFailure: Bool { code & 0x40 != 0 }

        /// Bits 6 to 1 of the code: the method.
        var methodCode: UInt8 { code & 0x3F }
    }

    /// The amounts X and Y of the conditions, in the minor unit of the application currency.
    public let amountX: UInt32
    public let amountY: UInt32
    public let rules: [Rule]

    /// Parses a CVM list.
    ///
    /// - Returns: nil unless there are two amounts followed by an even number of bytes.
    public init?(_ bytes: some Collection<UInt8>) {
        let bytes = Array(bytes)
        guard bytes.count >= 8, bytes.count % 2 == 0 else { return nil }
        amountX = bytes[0..<4].reduce(0) { $0 << 8 | UInt32($1) }
        amountY = bytes[4..<8].reduce(0) { $0 << 8 | UInt32($1) }
        rules = stride(from: 8, to: bytes.count, by: 2).map { Rule(code: bytes[$0], condition: bytes[$0 + 1]) }
    }

    static func bitMeanings(_ value: [UInt8]) -> [BitMeaning] {
        guard let list = CVMList(value) else {
            return [BitMeaning("not two amounts and pairs of bytes", kind: .malformed)]
        }
        return [BitMeaning("amount X \(list.amountX)", byte: 1), BitMeaning("amount Y \(list.amountY)", byte: 5)]
            + zip(0..., list.rules).map { BitMeaning("\($1)", byte: 9 + 2 * $0) }
    }
}

extension CVMList.Rule: CustomStringConvertible {
    /// The rule as text: `Signature (paper); if terminal supports the CVM; otherwise next`.
    public var description: String {
        func meaning(_ byte: Int, _ value: UInt8) -> String {
            let bytes = byte == 1 ? [value] : [0x3F, value]
            return BitTable.cvmResults.decode(bytes).first { $0.byte == byte && $0.mask != 0x40 && $0.kind == .known }?
                .meaning ?? "reserved (\([value].hex))"
        }
        return "\(meaning(1, code & 0xBF)); \(meaning(2, condition).lowercasingFirst); otherwise "
            + (continuesOnFailure ? "next" : "fail")
    }
}

extension String {
    /// The text with its first letter in lower case.
    var lowercasingFirst: String { prefix(1).lowercased() + dropFirst() }
}
