public import SmartCard

/// Which kernel processes a contactless application (EMV Contactless Book B, 3.3.2.5 and table 3-5).
public struct KernelIdentifier: RawRepresentable, Hashable, Sendable, ExpressibleByIntegerLiteral {
    /// One byte, or three for a domestic kernel, most significant first.
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }
    public init(integerLiteral value: UInt32) { rawValue = value }

    /// No particular kernel is asked for: the reader may use whichever it has for the application.
    public static let any: KernelIdentifier = 0

    /// The kernel that a directory entry asks for.
    ///
    /// - Parameters:
    ///   - value: the Kernel Identifier, tag 9F2A, of the entry; nil if it has none.
    ///   - aid: the ADF name of the entry, whose registered application provider decides if `value` is absent or empty.
    /// - Returns: nil if `value` is malformed, and the entry has to be skipped.
    public static func requested(by value: (some Collection<UInt8>)?, aid: AID) -> KernelIdentifier? {
        guard let value, let first = value.first else { return defaultKernel(for: aid) }
        // Bits 8 and 7: 00 international, 01 reserved, 10 domestic in the format of EMVCo, 11 domestic, proprietary.
        guard first & 0x80 != 0 else { return KernelIdentifier(rawValue: UInt32(first)) }
        guard value.count >= 3 else { return nil }
        return KernelIdentifier(rawValue: value.prefix(3).reduce(0) { $0 << 8 | UInt32($1) })
    }

    /// The kernel of the registered application provider; ``any`` for one that has none of its own.
    public static func defaultKernel(for aid: AID) -> KernelIdentifier {
        switch DataElement.Scope(aid: aid) {
        case .mastercard: 2
        case .visa: 3
        case .americanExpress: 4
        case .jcb: 5
        case .discover: 6
        case .unionPay: 7
        default: .any
        }
    }

    /// Whether it is one that a country or scheme assigned: bit 8 of the first byte is set.
    public var isDomestic: Bool { rawValue > 0xFF ? rawValue & 0x80_0000 != 0 : rawValue & 0x80 != 0 }

    /// Bits 6 to 1 of the first byte.
    public var shortKernelID: UInt8 {
        UInt8(truncatingIfNeeded: rawValue > 0xFF ? rawValue >> 16 : rawValue) & 0x3F
    }
}

extension KernelIdentifier: CustomStringConvertible {
    /// `Kernel 3 (Visa)`; for a domestic kernel its three bytes.
    public var description: String {
        let name: String? =
            switch rawValue {
            case 1: "Visa, JCB"
            case 2: "Mastercard"
            case 3: "Visa"
            case 4: "American Express"
            case 5: "JCB"
            case 6: "Discover"
            case 7: "UnionPay"
            case 8: "EMVCo"
            default: nil
            }
        if self == .any { return "any kernel" }
        if rawValue > 0xFF || isDomestic {
            let bytes = [16, 8, 0].map { UInt8(truncatingIfNeeded: rawValue >> $0) }
            return "domestic kernel \(rawValue > 0xFF ? bytes.hex : bytes.suffix(1).hex)"
        }
        return "Kernel \(rawValue)" + (name.map { " (\($0))" } ?? "")
    }
}

/// The Application Priority Indicator, tag 87 (EMV Book 1, 12.2.3, table 48): the order in which the issuer wants the
/// applications of a card used.
public struct ApplicationPriority: Hashable, Sendable, Comparable {
    /// 1, the highest, to 15; 16 for an application without priority, which comes last.
    public let rank: Int
    /// Whether the application may be selected only with the cardholder's confirmation: bit 8.
    public let requiresConfirmation: Bool

    /// - Parameter value: the value of tag 87; nil or empty if the entry has none.
    public init(_ value: (some Collection<UInt8>)?) {
        let byte = value?.first ?? 0
        rank = byte & 0x0F == 0 ? 16 : Int(byte & 0x0F)
        requiresConfirmation = byte & 0x80 != 0
    }

    /// The application to be tried earlier is the smaller one.
    public static func < (a: ApplicationPriority, b: ApplicationPriority) -> Bool { a.rank < b.rank }
}

/// An application identifier that is publicly known.
public struct KnownApplication: Hashable, Sendable {
    public let aid: AID
    /// Who runs it: the payment scheme.
    public let scheme: String
    public let product: String
    /// Where it is used, or what else there is to say; possibly empty.
    public let remark: String

    /// The kernel for it unless its directory entry asks for another.
    public var kernel: KernelIdentifier { KernelIdentifier.defaultKernel(for: aid) }

    /// Every application of the table, ordered by AID.
    public static let all: [KnownApplication] = table.split(separator: "\n").compactMap { row($0) }
        .sorted { $0.aid.bytes.lexicographicallyPrecedes($1.aid.bytes) }

    /// The known application whose AID is the longest beginning of `aid`, as partial selection has it.
    public static func matching(_ aid: AID) -> KnownApplication? {
        all.filter { aid.matches(prefix: $0.aid) }.max { $0.aid.bytes.count < $1.aid.bytes.count }
    }

    /// The scheme that registered the first five bytes of `aid`.
    public static func scheme(of aid: AID) -> String? {
        all.first { $0.aid.rid.elementsEqual(aid.rid) }?.scheme
    }

    static func row(_ line: Substring) -> KnownApplication? {
        let columns = line.split(separator: "|", omittingEmptySubsequences: false).map { $0.trimmingSpaces }
        guard columns.count == 4, let bytes = try? [UInt8](hex: columns[0]), let aid = AID(bytes) else { return nil }
        return KnownApplication(aid: aid, scheme: columns[1], product: columns[2], remark: columns[3])
    }
}
