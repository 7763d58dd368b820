/// Sealed card data, the only output of this module.  It may be printed, stored and sent.
public enum SealedCardData: Hashable, Sendable {
    /// A JWE in compact form.
    case jwe(CompactJWE)
    /// An envelope under an AES DUKPT key.
    case aesDUKPT(AESDUKPTEnvelope)
    /// An envelope under a TDES DUKPT key, for acquirers that accept nothing newer.
    case tdesDUKPT(TDESDUKPTEnvelope)
}

extension SealedCardData: CustomStringConvertible {
    /// The compact form of a JWE; an envelope in Base64 (RFC 4648, section 4).
    public var description: String {
        switch self {
        case .jwe(let jwe): jwe.text
        case .aesDUKPT(let envelope): Base64.standard.encode(envelope.bytes)
        case .tdesDUKPT(let envelope): Base64.standard.encode(envelope.bytes)
        }
    }

    /// Parses the text of ``description``.
    ///
    /// - Throws: ``JWEError``, ``DUKPTError``.
    public init(parsing text: some StringProtocol) throws {
        // Base64 contains no periods.
        if text.utf8.contains(UInt8(ascii: ".")) {
            self = .jwe(try CompactJWE(parsing: text))
            return
        }
        guard text.utf8.count <= CompactJWE.maximumLength else { throw DUKPTError.envelope(at: 0) }
        let bytes: [UInt8]
        do {
            bytes = try Base64.standard.decode(text.utf8)
        } catch {
            throw DUKPTError.notBase64(at: error.offset)
        }
        switch bytes.first {
        case AESDUKPTEnvelope.version: self = .aesDUKPT(try AESDUKPTEnvelope(bytes))
        case TDESDUKPTEnvelope.version: self = .tdesDUKPT(try TDESDUKPTEnvelope(bytes))
        default: throw DUKPTError.envelope(at: 0)
        }
    }
}

/// Coded as one string.
extension SealedCardData: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        do {
            try self.init(parsing: text)
        } catch {
            throw DecodingError.dataCorruptedError(in: container, debugDescription: "\(error)")
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}
