public import SmartCard

/// The values that a Response Message Template Format 1, tag 80, contains without their tags (EMV Book 3, 6.5).
public struct ResponseFormat1: Sendable {
    private let fixed: [(tag: TLVTag, length: Int)]
    /// The last value: the bytes that remain, and absent if none do.
    private let last: (tag: TLVTag, lengths: ClosedRange<Int>)

    /// An answer to GET PROCESSING OPTIONS: Application Interchange Profile and, if present, Application File Locator
    /// (6.5.8.4).
    public static let processingOptions = Self(fixed: [(0x82, 2)], last: (0x94, 0...252))
    /// The same, where the locator must be present.
    static let processingOptionsWithLocator = Self(fixed: [(0x82, 2)], last: (0x94, 4...252))
    /// An answer to GENERATE AC: Cryptogram Information Data, ATC, Application Cryptogram and, if present, Issuer
    /// Application Data (6.5.5.4).
    public static let applicationCryptogram = Self(
        fixed: [(0x9F27, 1), (0x9F36, 2), (0x9F26, 8)], last: (0x9F10, 0...32))

    /// Splits the value of the template.
    ///
    /// - Returns: the values in order, with their tags; nil if there are too few bytes, or too many.
    public func split(_ value: some Collection<UInt8>) -> [(tag: TLVTag, value: [UInt8])]? {
        var rest = ArraySlice(Array(value))
        guard last.lengths.contains(rest.count - fixed.reduce(0) { $0 + $1.length }) else { return nil }
        var values: [(tag: TLVTag, value: [UInt8])] = []
        for (tag, length) in fixed {
            values.append((tag, Array(rest.prefix(length))))
            rest = rest.dropFirst(length)
        }
        return rest.isEmpty ? values : values + [(last.tag, Array(rest))]
    }

    /// Splits the value of the template, and annotates its values.
    ///
    /// - Returns: nil if there are too few bytes, or too many.
    public func annotations(
        of value: some Collection<UInt8>, scope: DataElement.Scope = .common
    ) -> [Annotation]? {
        split(value)?.map { Annotation(tag: $0.tag, value: $0.value, scope: scope) }
    }
}
