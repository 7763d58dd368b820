/// The type of cryptogram that a card generated: bits 8 and 7 of the cryptogram information data (EMV Book 3, 6.5.5.4,
/// table 15).
public enum ApplicationCryptogramType: UInt8, Hashable, Sendable, CaseIterable {
    /// The card declines.
    case aac = 0x00
    /// The card approves offline.
    case tc = 0x40
    /// The card requests the issuer's decision.
    case arqc = 0x80

    /// Reads the type from cryptogram information data.
    ///
    /// - Parameter information: tag 9F27.
    /// - Returns: nil for the value that is reserved for future use.
    public init?(cryptogramInformationData information: UInt8) { self.init(rawValue: information & 0xC0) }
}

extension ApplicationCryptogramType: CustomStringConvertible {
    /// The type's abbreviation: `AAC`, `TC` or `ARQC`.
    public var description: String {
        switch self {
        case .aac: "AAC"
        case .tc: "TC"
        case .arqc: "ARQC"
        }
    }
}

/// Encoded as its abbreviation.
extension ApplicationCryptogramType: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let name = try container.decode(String.self)
        guard let type = Self.allCases.first(where: { $0.description == name }) else {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "no type of cryptogram")
        }
        self = type
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
