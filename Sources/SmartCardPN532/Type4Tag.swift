public import SmartCard

/// An NFC Forum Type 4 Tag (Type 4 Tag Operation 2.0) on any APDU channel.
///
///     let tag = Type4Tag(connection)
///     print(try await tag.readNDEF().records.first?.uri ?? "none")
///
/// Each call selects the NDEF application anew: version 2.0 first, then 1.0.  NDEF files have up to 32,767 bytes; only
/// short APDUs are used.
public struct Type4Tag: NDEFTag {
    private let card: any CardChannel

    public init(_ card: any CardChannel) { self.card = WrongLeLayer(GetResponseLayer(card)) }

    private static let application: [UInt8] = [0xD2, 0x76, 0x00, 0x00, 0x85, 0x01, 0x01]
    private static let applicationVersion1: [UInt8] = [0xD2, 0x76, 0x00, 0x00, 0x85, 0x01, 0x00]
    private static let capabilityContainer: [UInt8] = [0xE1, 0x03]
    /// READ BINARY with an even instruction has a 15-bit offset (ISO/IEC 7816-4).
    private static let maximumFile = 0x7FFF

    /// The capability container (5.1): access to the NDEF file.
    private struct Capability {
        let version: NDEFStatus.Version
        /// MLe and MLc, limited to short APDUs.
        let mostRead: Int
        let mostWritten: Int
        let file: [UInt8]
        let fileSize: Int
        let isReadable: Bool
        let isWritable: Bool

        /// CCLEN(2) version MLe(2) MLc(2), then `04 06` file(2) size(2) read write.
        init(_ cc: [UInt8]) throws {
            guard cc.count >= 15 else {
                throw TagError.malformed("a capability container of \(cc.count) bytes", offset: 0)
            }
            func word(_ i: Int) -> Int { Int(cc[i]) << 8 | Int(cc[i + 1]) }
            guard (15...0xFFFE).contains(word(0)) else { throw TagError.malformed("CCLEN of \(word(0))", offset: 0) }
            version = NDEFStatus.Version(cc[2])
            guard (1...3).contains(version.major) else { throw TagError.notNDEF("mapping version \(version)") }
            guard word(3) >= 0x0F else { throw TagError.malformed("MLe of \(word(3))", offset: 3) }
            guard word(5) >= 0x01 else { throw TagError.malformed("MLc of \(word(5))", offset: 5) }
            mostRead = min(word(3), 256)
            mostWritten = min(word(5), 255)
            guard cc[7] == 0x04, cc[8] == 0x06 else {
                throw TagError.notNDEF("its first control TLV is \([cc[7], cc[8]].hex)")
            }
            file = [cc[9], cc[10]]
            // Reserved identifiers (5.1.2).
            guard ![0x0000, 0xE102, 0xE103, 0x3F00, 0x3FFF, 0xFFFF].contains(word(9)) else {
                throw TagError.malformed("an NDEF file \(file.hex)", offset: 9)
            }
            guard (5...0xFFFE).contains(word(11)) else {
                throw TagError.malformed("an NDEF file of \(word(11)) bytes", offset: 11)
            }
            fileSize = min(word(11), Type4Tag.maximumFile)
            isReadable = cc[13] == 0x00
            isWritable = cc[14] == 0x00
        }

        var capacity: Int { fileSize - 2 }
    }

    public func ndefStatus() async throws -> NDEFStatus {
        let (capability, length) = try await detect()
        return NDEFStatus(
            version: capability.version, capacity: capability.capacity, length: length,
            isWritable: capability.isWritable)
    }

    public func readNDEF() async throws -> NDEFMessage {
        let (capability, length) = try await detect()
        return try NDEFMessage(await read(at: 2, count: length, most: capability.mostRead))
    }

    /// NDEF Update Procedure (5.4.7): NLEN of zero, the message, its length.
    public func writeNDEF(_ message: NDEFMessage) async throws {
        let (capability, _) = try await detect()
        guard capability.isWritable else { throw TagError.readOnly }
        let data = message.bytes
        guard data.count <= capability.capacity else {
            throw TagError.tooLong(data.count, capacity: capability.capacity)
        }
        try await update(at: 0, [0x00, 0x00], most: capability.mostWritten)
        try await update(at: 2, data, most: capability.mostWritten)
        try await update(at: 0, UInt16(truncatingIfNeeded: data.count).bigEndianBytes, most: capability.mostWritten)
    }

    /// NDEF Detection Procedure (5.4.1): application, capability container, NDEF file, NLEN.
    private func detect() async throws -> (Capability, length: Int) {
        // Mapping version 1.0 uses another name, and another P2 for files (5.5).
        var p2: UInt8 = 0x0C
        if try await card.transmit(.select(Self.application)).status != .success {
            guard try await card.transmit(.select(Self.applicationVersion1)).status == .success else {
                throw TagError.notNDEF("no NDEF application")
            }
            p2 = 0x00
        }
        try await selectFile(Self.capabilityContainer, p2)
        let capability = try Capability(await read(at: 0, count: 15, most: 15))
        guard capability.isReadable else { throw TagError.notNDEF("its NDEF file takes authentication") }
        try await selectFile(capability.file, p2)
        let nlen = try await read(at: 0, count: 2, most: 15)
        let length = Int(nlen[0]) << 8 | Int(nlen[1])
        guard length <= capability.capacity else {
            throw TagError.malformed("NLEN of \(length) in a file of \(capability.fileSize) bytes", offset: 0)
        }
        return (capability, length)
    }

    private func selectFile(_ file: [UInt8], _ p2: UInt8) async throws {
        let command = try CommandAPDU(cla: 0x00, ins: 0xA4, p1: 0x00, p2: p2, data: file)
        let status = try await card.transmit(command).status
        guard status == .success else { throw TagError.notNDEF("file \(file.hex): \(status)") }
    }

    /// The number of times that a card may return less than requested: one byte at a time, a file would take minutes.
    private static let maximumShortAnswers = 16

    /// Repeats READ BINARY as necessary.  A card may return fewer bytes than requested, but not none.
    private func read(at offset: Int, count: Int, most: Int) async throws -> [UInt8] {
        var data: [UInt8] = []
        var shortAnswers = 0
        while data.count < count {
            let position = UInt16(truncatingIfNeeded: offset + data.count).bigEndianBytes
            let ne = min(count - data.count, most)
            let response = try await card.transmit(
                CommandAPDU(cla: 0x00, ins: 0xB0, p1: position[0], p2: position[1], ne: ne))
            guard response.status == .success else { throw TagError.refused("to read its file (\(response.status))") }
            if response.data.count < ne { shortAnswers += 1 }
            guard (1...ne).contains(response.data.count), shortAnswers <= Self.maximumShortAnswers else {
                throw CardError(.malformedAnswer, "\(response.data.count) bytes of \(ne) read")
            }
            data += response.data
        }
        return data
    }

    private func update(at offset: Int, _ data: [UInt8], most: Int) async throws {
        var done = 0
        while done < data.count {
            let position = UInt16(truncatingIfNeeded: offset + done).bigEndianBytes
            let part = Array(data[done..<min(done + most, data.count)])
            let response = try await card.transmit(
                CommandAPDU(cla: 0x00, ins: 0xD6, p1: position[0], p2: position[1], data: part))
            guard response.status == .success else { throw TagError.refused("to write its file (\(response.status))") }
            done += part.count
        }
    }
}
