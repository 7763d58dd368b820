public import SmartCard

/// A data element: the meaning of a tag in the EMV books, a scheme's specification or ISO/IEC 7816.
///
/// One tag may have different meanings in different schemes, and inside different templates; see ``Scope``.
///
///     DataElement[0x9F02]?.name               // "Amount, Authorised (Numeric)"
///     DataElement[0x9F6E, .visa]?.name        // "Form Factor Indicator (FFI)"
///     DataElement[0x9F6E, .mastercard]?.name  // "Third Party Data"
public struct DataElement: Hashable, Sendable {
    public let tag: TLVTag
    /// The name in the specification.
    public let name: String
    public let format: Format
    /// The permitted lengths in bytes.  Without a bound in the specification the maximum is that of a short APDU, 255.
    public let length: ClosedRange<Int>
    /// The party that supplies the value.
    public let source: Source
    /// The scope in which the tag has this meaning.
    public let scope: Scope
    /// The specification that defines the element, such as `EMV Book 3`.
    public let document: String

    /// The coding of a value (EMV Book 3, 4.3 and Annex A).
    public enum Format: String, Hashable, Sendable, CaseIterable {
        /// Two digits per byte, right-justified, padded with leading zeros.
        case numeric = "n"
        /// Two digits per byte, left-justified, padded with trailing `F`.
        case compressedNumeric = "cn"
        /// Letters.
        case alphabetic = "a"
        /// Letters and digits.
        case alphanumeric = "an"
        /// Letters, digits and other printable characters.
        case alphanumericSpecial = "ans"
        /// A number, a set of bits or plain bytes.
        case binary = "b"
        /// Coded as the specification describes for this element.
        case variable = "var"
        /// Further data objects.
        case constructed = "constructed"
    }

    /// The party that supplies a value.
    public enum Source: String, Hashable, Sendable, CaseIterable {
        case card, terminal, issuer
        /// The kernel computes the value, or it is a setting of the kernel.
        case kernel
    }

    /// The scope in which a tag has its meaning.
    public enum Scope: Hashable, Sendable {
        /// Everywhere: the EMV books and the interindustry tags of ISO/IEC 7816.
        case common
        /// Kernel 2, M/Chip and PayPass.
        case mastercard
        /// Kernels 1 and 3, VIS and VCPS.
        case visa
        /// Kernel 4, AEIPS and Expresspay.
        case americanExpress
        /// Kernel 5, J/Smart and J/Speedy.
        case jcb
        /// Kernel 6, D-PAS and Zip.
        case discover
        /// Kernel 7, PBOC and QuickPass.
        case unionPay
        /// Kernel 8, EMVCo's kernel.
        case kernel8
        /// Interac Flash.
        case interac
        /// The commands of the EMV Card Personalization Specification.
        case personalization
        /// GlobalPlatform cards: the issuer security domain and the objects that it manages.
        case globalPlatform
        /// Answers of a PC/SC 2 reader to its transparent-session pseudo-APDUs.
        case reader
        /// Directly inside this template, whatever the tag means elsewhere.
        case template(TLVTag)
    }
}

extension DataElement {
    /// All elements, ordered by tag.
    public static let all: [DataElement] = tables.flatMap { $0.elements }.sorted { $0.tag < $1.tag }

    /// Returns the meaning of `tag` for a scheme and inside `template`; nil if it is in no table.
    ///
    /// The most specific meaning wins: first the template's, then the scheme's, then the common one.  ``Scope/common``
    /// means that the scheme is unknown; the tag then has a scheme's meaning only if all schemes that define it agree.
    public static subscript(tag: TLVTag, scope: Scope = .common, in template: TLVTag? = nil) -> DataElement? {
        guard let candidates = byTag[tag] else { return nil }
        func meaning(_ scope: Scope) -> DataElement? { candidates.first { $0.scope == scope } }
        if let template, let found = meaning(.template(template)) { return found }
        if let found = meaning(scope) ?? meaning(.common) { return found }
        let schemes = candidates.filter { $0.scope.isScheme }
        return scope == .common && Set(schemes.map(\.name)).count == 1 ? schemes.first : nil
    }

    /// Returns all meanings of `tag`, in the order of the tables.
    public static func meanings(of tag: TLVTag) -> [DataElement] { byTag[tag] ?? [] }

    private static let byTag = LoadedOnce.reading {
        Dictionary(grouping: tables.flatMap { $0.elements }, by: \.tag)
    }
}

extension DataElement.Scope {
    /// True if the scope is a payment scheme or kernel.
    var isScheme: Bool {
        switch self {
        case .common, .template, .personalization, .globalPlatform, .reader: false
        default: true
        }
    }

    /// Creates the scope for the application provider registered in `aid`; ``common`` for other providers.
    public init(aid: AID) { self = Self.providers[aid.rid.hex] ?? .common }

    /// Creates the scope for the scheme whose cards `kernel` processes; ``common`` for a kernel without a scheme.
    public init(kernel: KernelIdentifier) {
        self =
            switch kernel {
            case 1, 3: .visa
            case 2: .mastercard
            case 4: .americanExpress
            case 5: .jcb
            case 6: .discover
            case 7: .unionPay
            case 8: .kernel8
            default: .common
            }
    }

    private static let providers: [String: Self] = [
        "A000000004": .mastercard, "A000000005": .mastercard, "A000000003": .visa, "A000000098": .visa,
        "A000000025": .americanExpress, "A000000065": .jcb, "A000000152": .discover, "A000000324": .discover,
        "A000000333": .unionPay, "A000000277": .interac, "A000000151": .globalPlatform,
    ]
}

extension DataElement: CustomStringConvertible {
    /// The tag and the name: `9F02 Amount, Authorised (Numeric)`.
    public var description: String { "\(tag) \(name)" }
}

/// A table of data elements with one specification and scope: a row for each, `tag|name|format|length|source`.
///
/// The length is in bytes: one number, a range `2-8`, or `var`.
struct DataElementTable: Sendable {
    let scope: DataElement.Scope
    let document: String
    let rows: String

    // Bytes, not characters: a process reads hundreds of rows before it shows its first line.
    var elements: [DataElement] { rows.columns(at: "\n").compactMap { element($0) } }

    func element(_ row: some StringProtocol) -> DataElement? {
        let columns = row.columns(at: "|").map { $0.trimmingSpaces }
        guard columns.count == 5, let tag = UInt32(columns[0], radix: 16),
            let format = DataElement.Format(rawValue: columns[2]), let length = Self.length(columns[3]),
            let source = DataElement.Source(rawValue: columns[4])
        else { return nil }
        return DataElement(
            tag: TLVTag(rawValue: tag), name: columns[1], format: format, length: length, source: source, scope: scope,
            document: document)
    }

    private static func length(_ text: String) -> ClosedRange<Int>? {
        guard text != "var" else { return 0...255 }
        let bounds = text.columns(at: "-").compactMap { Int($0) }
        guard let low = bounds.first, let high = bounds.last, low <= high else { return nil }
        return low...high
    }
}

extension Substring {
    /// The text without spaces at its ends.
    var trimmingSpaces: String {
        let rest = utf8.drop { $0 == UInt8(ascii: " ") }
        guard let last = rest.lastIndex(where: { $0 != UInt8(ascii: " ") }) else { return "" }
        return String(Substring(rest[...last]))
    }
}

extension StringProtocol {
    /// The pieces between separators of one byte, without empty ones.
    func columns(at separator: Unicode.Scalar) -> [Substring] {
        Substring(self).utf8.split(separator: UInt8(ascii: separator)).map { Substring($0) }
    }
}
