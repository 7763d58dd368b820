import SmartCard

/// The lengths of APDUs that a chip states in EF.ATR/INFO (ISO/IEC 7816-4, 12.7.1; ICAO 9303-10, 3.6.4).
struct ChipBuffers: Hashable, Sendable {
    /// The data bytes of a short response.
    static let shortResponse = 256

    /// In bytes, with header and length fields.
    let longestCommand: Int
    /// In bytes, with the status word.
    let longestResponse: Int

    /// READ BINARY of the file, all of it, by its short identifier.
    static let command = CommandAPDU(unchecked: (0x00, 0xB0, 0x81, 0x00), ne: 256)

    /// - Parameter file: EF.ATR/INFO.
    /// - Returns: nil if the chip does not state its buffers, or does not know extended lengths.
    init?(_ file: [UInt8]) {
        guard let objects = try? TLVList(file) else { return nil }
        // Card capabilities: bit 7 of the third byte stands for extended lengths.
        if let capabilities = objects[0x47]?.value, capabilities.count == 3, capabilities.last.map({ $0 & 0x40 }) == 0 {
            return nil
        }
        guard let lengths = objects[0x7F66]?.children, lengths.count == 2, lengths.allSatisfy({ $0.tag == 0x02 }) else {
            return nil
        }
        let numbers = lengths.map { object in
            object.value.count <= 4 ? object.value.reduce(0) { $0 << 8 | Int($1) } : 0
        }
        (longestCommand, longestResponse) = (numbers[0], numbers[1])
    }

    /// Returns the most data bytes of a response that both sides can do.
    ///
    /// - Parameter longestAPDU: that of the reader.
    func longestResponse(_ longestAPDU: Int) -> Int {
        max(Self.shortResponse, min(longestResponse, longestAPDU, 65_538) - 2)
    }
}
