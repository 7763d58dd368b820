import SmartCard

/// The statements that only EMV Contactless Book C-2 gives a meaning.
extension CardFileReader {
    /// Registered application provider identifier.
    static let mastercard: [UInt8] = [0xA0, 0x00, 0x00, 0x00, 0x04]

    /// `checksum-key KEY`, the issuer's.
    static func checksum(
        _ statement: Statement, _ objects: [CardFileObject]
    ) throws(CardFileError) -> CryptographicChecksum {
        let issuerKey = TripleDES(try statement.bytes(16...16))
        let (digits, sequence) = try account(statement, objects)
        guard let key = issuerKey?.cardKey(pan: digits, sequence: sequence) else {
            throw statement.error("a key has 16 bytes")
        }
        return CryptographicChecksum(key: key)
    }

    static func dataStorage(
        _ statement: Statement, _ fci: [CardFileObject]
    ) throws(CardFileError) -> DataStorage {
        guard let identifier = fci.value(of: 0x9F5E), (8...11).contains(identifier.count) else {
            throw statement.error("data storage needs the DS ID, 9F5E of 8 to 11 bytes, in “fci”")
        }
        var section = try Section(statement, ["summary", "availability", "slot"])
        var storage = DataStorage(
            identifier: identifier, summary: try section.required("summary").bytes(8...8),
            availability: try section.required("availability").bytes(1...1)[0])
        for slot in section.all("slot") {
            let name = try slot.value().bytes([:])
            guard name.count == 8 else { throw slot.error("a DS Requested Operator ID has 8 bytes") }
            guard storage.slots[name] == nil else { throw slot.error("the operator has a slot already") }
            var body = try Section(slot, ["control", "digest", "data"])
            storage.slots[name] = DataStorage.Slot(
                control: try body.required("control").bytes(1...1)[0],
                digest: try body.required("digest").bytes(8...8),
                data: try body.bytes("data", 0...160) ?? [])
        }
        return storage
    }
}
