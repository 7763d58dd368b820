public import SmartCard

extension CommandAPDU {
    /// Returns a GET PROCESSING OPTIONS command (EMV Book 3, 6.5.8).  It wraps `data`, the values for the PDOL, in tag
    /// 83.
    ///
    /// - Parameter data: at most 252 bytes, as for any DOL; only the first 252 are sent.
    public static func getProcessingOptions(_ data: [UInt8]) -> CommandAPDU {
        CommandAPDU(unchecked: (0x80, 0xA8, 0x00, 0x00), data: TLVTag(0x83).encode(data.prefix(252)), ne: 256)
    }

    /// Returns a GENERATE AC command (EMV Book 3, 6.5.5).
    ///
    /// - Parameters:
    ///   - referenceControl: P1; 00 requests an AAC, 40 a TC, 80 an ARQC.
    ///   - data: the values for the CDOL, and for the DSDOL of Kernel 2; only the first 255 bytes are sent.
    public static func generateAC(referenceControl: UInt8, data: [UInt8]) -> CommandAPDU {
        CommandAPDU(unchecked: (0x80, 0xAE, referenceControl, 0x00), data: Array(data.prefix(255)), ne: 256)
    }

    /// Returns an EXTERNAL AUTHENTICATE command (EMV Book 3, 6.5.4).
    ///
    /// - Parameter data: the issuer authentication data, 8 to 16 bytes; only the first 255 are sent.
    public static func externalAuthenticate(_ data: [UInt8]) -> CommandAPDU {
        CommandAPDU(unchecked: (0x00, 0x82, 0x00, 0x00), data: Array(data.prefix(255)))
    }

    /// Returns an EXCHANGE RELAY RESISTANCE DATA command (EMV Contactless Book C-2, 5.3).
    ///
    /// - Parameter entropy: the terminal's entropy, 4 bytes; only the first 255 are sent.
    public static func exchangeRelayResistanceData(_ entropy: [UInt8]) -> CommandAPDU {
        CommandAPDU(unchecked: (0x80, 0xEA, 0x00, 0x00), data: Array(entropy.prefix(255)), ne: 256)
    }

    /// Returns a COMPUTE CRYPTOGRAPHIC CHECKSUM command (EMV Contactless Book C-2, 5.2).
    ///
    /// - Parameter data: the values for the UDOL, at most 252 bytes; only the first 252 are sent.
    public static func computeCryptographicChecksum(_ data: [UInt8]) -> CommandAPDU {
        CommandAPDU(unchecked: (0x80, 0x2A, 0x8E, 0x80), data: Array(data.prefix(252)), ne: 256)
    }

    /// Returns a RECOVER AC command (EMV Contactless Book C-2, 5.8).
    ///
    /// - Parameter data: the values for the DRDOL, at most 252 bytes; only the first 252 are sent.
    public static func recoverAC(_ data: [UInt8]) -> CommandAPDU {
        CommandAPDU(unchecked: (0x80, 0xD0, 0x00, 0x00), data: Array(data.prefix(252)), ne: 256)
    }

    /// Returns a GET DATA command for the object `tag`, whose tag has one or two bytes (EMV Book 3, 6.5.7).
    public static func getData(_ tag: TLVTag) -> CommandAPDU {
        CommandAPDU(
            unchecked: (
                0x80, 0xCA, UInt8(truncatingIfNeeded: tag.rawValue >> 8), UInt8(truncatingIfNeeded: tag.rawValue)
            ), ne: 256)
    }

    /// Returns a PUT DATA command for the object `tag`, whose tag has one or two bytes (EMV Contactless Book C-2,
    /// 5.7).
    ///
    /// - Parameters:
    ///   - tag: a tag of one or two bytes.
    ///   - value: at most 255 bytes; only the first 255 are sent.
    public static func putData(_ tag: TLVTag, _ value: [UInt8]) -> CommandAPDU {
        CommandAPDU(
            unchecked: (
                0x80, 0xDA, UInt8(truncatingIfNeeded: tag.rawValue >> 8), UInt8(truncatingIfNeeded: tag.rawValue)
            ), data: Array(value.prefix(255)))
    }
}
