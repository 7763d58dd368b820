import SmartCard

extension DataElement {
    /// A human-readable notation of an element's value, where it differs from hexadecimal digits.
    private enum Notation {
        case date, time, amount, country, currency, languages, aid, account, track2, number, kernel
    }

    private static let notations: [TLVTag: Notation] = [
        0x9A: .date, 0x5F24: .date, 0x5F25: .date, 0x5F26: .date, 0x9F21: .time,
        0x9F02: .amount, 0x9F03: .amount, 0x9F5D: .amount, 0x9F77: .amount, 0x9F78: .amount, 0x9F79: .amount,
        0x9F50: .amount, 0x9F54: .amount, 0x9F5C: .amount, 0x9F6B: .amount, 0x9F6D: .amount, 0x9F7B: .amount,
        0xDF8104: .amount, 0xDF8105: .amount, 0xDF8123: .amount, 0xDF8124: .amount, 0xDF8125: .amount,
        0xDF8126: .amount, 0x9F820D: .amount, 0x9F820E: .amount,
        0x5F28: .country, 0x9F1A: .country, 0x5F55: .country, 0x5F56: .country, 0x9F57: .country, 0x5F2C: .country,
        0x5F2A: .currency, 0x9F42: .currency, 0x9F3C: .currency, 0x9F51: .currency, 0x9F76: .currency,
        0x9F3B: .currency,
        0x5F2D: .languages,
        0x4F: .aid, 0x84: .aid, 0x9F06: .aid,
        0x5A: .account, 0x57: .track2,
        0x9F36: .number, 0x9F13: .number, 0x9F17: .number, 0x81: .number, 0x9F04: .number, 0x9F1B: .number,
        0x9F14: .number, 0x9F23: .number, 0x88: .number,
        0x9F2A: .kernel,
    ]

    /// Returns the value in the clear in human-readable form; nil if that adds nothing to its hexadecimal digits.
    static func text(of tag: TLVTag, value: [UInt8], element: DataElement?, currency: Currency?) -> String? {
        guard let element, !value.isEmpty else { return nil }
        if case .template = element.scope {
        } else if let text = notation(of: tag, value, element, currency) {
            return text
        }
        switch element.format {
        case .alphabetic, .alphanumeric, .alphanumericSpecial: return printable(value)
        case .numeric where element.length.upperBound <= 19:
            let digits = value.hex
            return digits.allSatisfy(\.isNumber) ? Currency.insertPoint(in: digits, exponent: 0) : nil
        default: return nil
        }
    }

    private static func notation(
        of tag: TLVTag, _ value: [UInt8], _ element: DataElement, _ currency: Currency?
    ) -> String? {
        guard let notation = notations[tag] else { return nil }
        // A tag with several meanings is an amount only if its format says so.
        let digits = value.hex
        switch notation {
        case .amount, .date, .time, .currency, .country:
            guard element.format == .numeric || element.format == .alphabetic else { return nil }
        default: break
        }
        switch notation {
        case .date:
            guard value.count == 3, let month = ExpirationDate(packed: value), let day = Int(digits.suffix(2)) else {
                return nil
            }
            return "\(month)-\(day < 10 ? "0" : "")\(day)"
        case .time:
            guard value.count == 3, digits.allSatisfy(\.isNumber) else { return nil }
            return "\(digits.prefix(2)):\(digits.dropFirst(2).prefix(2)):\(digits.suffix(2))"
        case .amount:
            guard value.count == 6, digits.allSatisfy(\.isNumber) else { return nil }
            return currency?.format(digits) ?? Currency.insertPoint(in: digits, exponent: 0)
        case .country:
            let found = element.format == .numeric ? Country[packed: value] : printable(value).flatMap { Country[$0] }
            return found.map { "\($0.alpha2) \($0.name)" }
        case .currency:
            let codes = stride(from: 0, to: value.count - 1, by: 2).map { Currency[packed: value[$0...($0 + 1)]] }
            let known = codes.compactMap { $0.map { "\($0.code) \($0.name)" } }
            return known.isEmpty ? nil : known.joined(separator: ", ")
        case .languages:
            guard let text = printable(value), text.utf8.count % 2 == 0 else { return nil }
            let codes = stride(from: 0, to: text.count, by: 2).map { text.dropFirst($0).prefix(2) }
            return codes.map { Language[$0]?.name ?? String($0) }.joined(separator: ", ")
        case .aid:
            guard let aid = AID(value), let known = KnownApplication.matching(aid) else { return nil }
            return "\(known.scheme): \(known.product)"
        case .account:
            return PAN(packed: value)?.digits
        case .track2:
            return (try? Track2(value)).map {
                "\($0.pan.digits), expires \($0.expiration.map { "\($0)" } ?? "never")"
                    + ($0.serviceCode.map { ", service code \($0)" } ?? "")
            }
        case .number:
            guard value.count <= 4 else { return nil }
            return "\(value.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })"
        case .kernel:
            guard let first = value.first else { return nil }
            let raw = first & 0x80 == 0 ? UInt32(first) : value.prefix(3).reduce(0) { $0 << 8 | UInt32($1) }
            return "\(KernelIdentifier(rawValue: raw))"
        }
    }

    /// Returns `value` as text if it is: characters of ISO/IEC 8859-1 without control characters and without trailing
    /// padding.
    private static func printable(_ value: [UInt8]) -> String? {
        let text = value.reversed().drop { $0 == 0x00 || $0 == 0x20 }.reversed()
        guard text.allSatisfy({ (0x20...0x7E).contains($0) || $0 >= 0xA0 }) else { return nil }
        var result = ""
        for byte in text { result.unicodeScalars.append(Unicode.Scalar(byte)) }
        return result
    }
}
