public import SmartCard

extension CommandAPDU {
    /// GET PROCESSING OPTIONS (EMV Book 3, 6.5.8): `data` is what the PDOL asks for, wrapped in tag 83 here.
    ///
    /// - Parameter data: at most 252 bytes, as a DOL gives; of more only the first 252 are sent.
    public static func getProcessingOptions(_ data: [UInt8]) -> CommandAPDU {
        CommandAPDU(unchecked: (0x80, 0xA8, 0x00, 0x00), data: TLVTag(0x83).encode(data.prefix(252)), ne: 256)
    }

    /// GENERATE AC (EMV Book 3, 6.5.5).
    ///
    /// - Parameters:
    ///   - referenceControl: P1; 00 asks for an AAC, 40 for a TC, 80 for an ARQC.
    ///   - data: what the CDOL asks for, and the DSDOL of Kernel 2, at most 255 bytes; of more only those are sent.
    public static func generateAC(referenceControl: UInt8, data: [UInt8]) -> CommandAPDU {
        CommandAPDU(unchecked: (0x80, 0xAE, referenceControl, 0x00), data: Array(data.prefix(255)), ne: 256)
    }

    /// EXTERNAL AUTHENTICATE (EMV Book 3, 6.5.4).
    ///
    /// - Parameter data: the issuer authentication data, 8 to 16 bytes; of more than 255 only those are sent.
    public static func externalAuthenticate(_ data: [UInt8]) -> CommandAPDU {
        CommandAPDU(unchecked: (0x00, 0x82, 0x00, 0x00), data: Array(data.prefix(255)))
    }

    /// EXCHANGE RELAY RESISTANCE DATA (EMV Contactless Book C-2, 5.3).
    ///
    /// - Parameter entropy: the terminal's, 4 bytes; of more than 255 only those are sent.
    public static func exchangeRelayResistanceData(_ entropy: [UInt8]) -> CommandAPDU {
        CommandAPDU(unchecked: (0x80, 0xEA, 0x00, 0x00), data: Array(entropy.prefix(255)), ne: 256)
    }

    /// COMPUTE CRYPTOGRAPHIC CHECKSUM (EMV Contactless Book C-2, 5.2).
    ///
    /// - Parameter data: what the UDOL asks for, at most 252 bytes; of more only the first 252 are sent.
    public static func computeCryptographicChecksum(_ data: [UInt8]) -> CommandAPDU {
        CommandAPDU(unchecked: (0x80, 0x2A, 0x8E, 0x80), data: Array(data.prefix(252)), ne: 256)
    }

    /// RECOVER AC (EMV Contactless Book C-2, 5.8).
    ///
    /// - Parameter data: what the DRDOL asks for, at most 252 bytes; of more only the first 252 are sent.
    public static func recoverAC(_ data: [UInt8]) -> CommandAPDU {
        CommandAPDU(unchecked: (0x80, 0xD0, 0x00, 0x00), data: Array(data.prefix(252)), ne: 256)
    }

    /// PUT DATA for the object `tag`, of one or two bytes (EMV Contactless Book C-2, 5.7).
    ///
    /// - Parameter value: at most 255 bytes; of more only those are sent.
    public static func putData(_ tag: TLVTag, _ value: [UInt8]) -> CommandAPDU {
        CommandAPDU(
            unchecked: (
                0x80, 0xDA, UInt8(truncatingIfNeeded: tag.rawValue >> 8), UInt8(truncatingIfNeeded: tag.rawValue)
            ), data: Array(value.prefix(255)))
    }
}
