public import SmartCard

/// The identifier of a kernel for contactless applications (EMV Contactless Book B, 3.3.2.5 and table 3-5).
public struct KernelIdentifier: RawRepresentable, Hashable, Sendable, ExpressibleByIntegerLiteral {
    /// The identifier: one byte, or three for a domestic kernel, most significant first.
    public let rawValue: UInt32

    public init(rawValue: UInt32) { self.rawValue = rawValue }
    public init(integerLiteral value: UInt32) { rawValue = value }

    /// No particular kernel is requested: the reader may use any that it has for the application.
    public static let any: KernelIdentifier = 0

    /// Returns the kernel that a directory entry requests.
    ///
    /// - Parameters:
    ///   - value: the Kernel Identifier, tag 9F2A, of the entry; nil if it has none.
    ///   - aid: the ADF name of the entry, whose registered application provider decides if `value` is absent or
    ///     empty.
    /// - Returns: nil if `value` is malformed, so that the entry has to be skipped.
    public static func requested(by value: (some Collection<UInt8>)?, aid: AID) -> KernelIdentifier? {
        guard let value, let first = value.first else { return defaultKernel(for: aid) }
        // Bits 8 and 7: 00 international, 01 reserved, 10 domestic in the format of EMVCo, 11 domestic, proprietary.
        guard first & 0x80 != 0 else { return KernelIdentifier(rawValue: UInt32(first)) }
        guard value.count >= 3 else { return nil }
        return KernelIdentifier(rawValue: value.prefix(3).reduce(0) { $0 << 8 | UInt32($1) })
    }

    /// Returns the default kernel for the registered application provider (EMV Contactless Book B, table 3-6).
    ///
    /// - Returns: ``any`` for a provider that is not in the table, such as Visa's and Mastercard's second ones, A000000098
    ///   and A000000005.
    public static func defaultKernel(for aid: AID) -> KernelIdentifier { defaultKernels[aid.rid.hex] ?? .any }

    /// The table has A000000152 for Discover.  A000000324, of its older cards, is here, too.
    private static let defaultKernels: [String: KernelIdentifier] = [
        "A000000004": 2, "A000000003": 3, "A000000025": 4, "A000000065": 5, "A000000152": 6, "A000000324": 6,
        "A000000333": 7,
    ]

    /// True if a country or a scheme assigned the identifier: bit 8 of the first byte is set.
    public var isDomestic: Bool { rawValue > 0xFF ? rawValue & 0x80_0000 != 0 : rawValue & 0x80 != 0 }

    /// The short kernel identifier, bits 6 to 1 of the first byte.
    public var shortKernelID: UInt8 {
        UInt8(truncatingIfNeeded: rawValue > 0xFF ? rawValue >> 16 : rawValue) & 0x3F
    }
}

extension KernelIdentifier: CustomStringConvertible {
    /// The identifier as text: `Kernel 3 (Visa)`; three bytes for a domestic kernel.
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

/// The Application Priority Indicator, tag 87: the issuer's order of preference for the applications of a card (EMV
/// Book 1, 12.2.3, table 48).
public struct ApplicationPriority: Hashable, Sendable, Comparable {
    /// The rank from 1, the highest, to 15; 16, the last, for an application without priority.
    public let rank: Int
    /// True if the application may be selected only with the cardholder's confirmation: bit 8.
    public let requiresConfirmation: Bool

    /// Creates a priority.
    ///
    /// - Parameter value: the value of tag 87; nil or empty if the entry has none.
    public init(_ value: (some Collection<UInt8>)?) {
        let byte = value?.first ?? 0
        rank = byte & 0x0F == 0 ? 16 : Int(byte & 0x0F)
        requiresConfirmation = byte & 0x80 != 0
    }

    /// Compares two priorities: the application to try earlier is the smaller one.
    public static func < (a: ApplicationPriority, b: ApplicationPriority) -> Bool { a.rank < b.rank }
}

/// An application identifier that is publicly known.
public struct KnownApplication: Hashable, Sendable {
    public let aid: AID
    /// The payment scheme of the application.
    public let scheme: String
    public let product: String
    /// A remark, such as the region of use; may be empty.
    public let remark: String

    /// The kernel for the application unless its directory entry requests another.
    public var kernel: KernelIdentifier { KernelIdentifier.defaultKernel(for: aid) }

    /// All known applications, ordered by AID.
    public static let all: [KnownApplication] = LoadedOnce.reading {
        table.split(separator: "\n").compactMap { row($0) }
            .sorted { $0.aid.bytes.lexicographicallyPrecedes($1.aid.bytes) }
    }

    /// Returns the known application with the longest AID that `aid` begins with, as for partial selection.
    public static func matching(_ aid: AID) -> KnownApplication? {
        all.filter { aid.matches(prefix: $0.aid) }.max { $0.aid.bytes.count < $1.aid.bytes.count }
    }

    /// Returns the scheme that registered the first five bytes of `aid`.
    public static func scheme(of aid: AID) -> String? {
        all.first { $0.aid.rid.elementsEqual(aid.rid) }?.scheme
    }

    static func row(_ line: Substring) -> KnownApplication? {
        let columns = line.split(separator: "|", omittingEmptySubsequences: false).map { $0.trimmingSpaces }
        guard columns.count == 4, let bytes = try? [UInt8](hex: columns[0]), let aid = AID(bytes) else { return nil }
        return KnownApplication(aid: aid, scheme: columns[1], product: columns[2], remark: columns[3])
    }
}
