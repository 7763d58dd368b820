import SmartCard
import SmartCardSimulator
import SmartCardTrace
import TravelDocument

/// Readings of travel documents whose holder is the specimen of ICAO 9303-4 and 9303-5, appendix B.  // TEST
enum DocumentReadings {
    static let passport = "P<UTOERIKSSON<<ANNA<MARIA<<<<<<<<<<<<<<<<<<<L898902C36UTO7408122F1204159ZE184226B<<<<<10"
    static let identityCard =
        "I<UTOD231458907<<<<<<<<<<<<<<<7408122F1204159UTO<<<<<<<<<<<6ERIKSSON<<ANNA<MARIA<<<<<<<<<<"

    /// What no redacted trace has: parts of both zones, alone and as keys are made from them.
    static let secrets = [
        "L898902C", "ZE184226B", "D23145890", "19740812", "740812", "120415", "7408122F1204159", "L898902C36",
        "ANNA<MARIA",
        "12.08.1974", "12081974", "ERIKSSON<<ANNA", "MAIN STREET", "5551234",
    ]

    /// Reads the virtual card `name` through a recorder below secure messaging.
    static func encrypted(_ name: String, _ dataGroups: Set<Int> = [1, 2]) async throws -> (
        trace: Trace, reading: DocumentReading
    ) {
        let recording = try Recording()
        let reader = recording.recorder.recording(virtualReader(name))
        _ = try await reader.waitForCard()
        let card = try await reader.connect()
        let chip = TravelDocumentChip(over: card, connection: card)
        let zone = try MachineReadableZone(name == "identity-card" ? identityCard : passport)
        let reading = try await chip.read(dataGroups: dataGroups, with: AccessKey(zone))
        await card.disconnect(.leave)
        return (try recording.trace(), reading)
    }

    /// How a file is read in the clear.
    enum Way: CaseIterable {
        /// READ BINARY after SELECT, a few bytes first.
        case selected
        /// By its short identifier.
        case named
        /// With offsets in objects.
        case odd
        /// With a wrong Le before each command.
        case wrongLe
        /// By GET RESPONSE.
        case getResponse
        /// As ``selected``, under a name of the application that the trace does not have any longer.
        case unnamed
    }

    /// The exchanges in which `files` are read in the clear, `chunk` bytes at a time.
    static func clear(
        _ files: [(identifier: UInt16, bytes: [UInt8])], _ way: Way, chunk: Int = 200
    ) -> [(command: [UInt8], response: [UInt8])] {
        var exchanges: [(command: [UInt8], response: [UInt8])] = []
        if way != .unnamed {
            exchanges.append(([0x00, 0xA4, 0x04, 0x0C, 0x07, 0xA0, 0, 0, 0x02, 0x47, 0x10, 0x01], [0x90, 0x00]))
        }
        for (identifier, bytes) in files {
            let (high, low) = (UInt8(identifier >> 8), UInt8(identifier & 0xFF))
            if way != .named { exchanges.append(([0x00, 0xA4, 0x02, 0x0C, 0x02, high, low], [0x90, 0x00])) }
            var offset = 0
            while offset < bytes.count {
                let data = Array(bytes[offset...].prefix(offset == 0 ? 8 : chunk))
                let (p1, p2, le) = (UInt8(offset >> 8), UInt8(offset & 0xFF), UInt8(data.count))
                switch way {
                case .named where offset == 0:
                    exchanges.append(([0x00, 0xB0, 0x80 | low & 0x1F, 0x00, le], data + [0x90, 0x00]))
                case .odd:
                    let length = data.count < 0x80 ? [le] : [0x81, le]
                    exchanges.append(
                        ([0x00, 0xB1, 0, 0, 0x04, 0x54, 0x02, p1, p2, 0x00], [0x53] + length + data + [0x90, 0x00]))
                case .wrongLe:
                    exchanges.append(([0x00, 0xB0, p1, p2, 0x00], [0x6C, le]))
                    exchanges.append(([0x00, 0xB0, p1, p2, le], data + [0x90, 0x00]))
                case .getResponse:
                    exchanges.append(([0x00, 0xB0, p1, p2, le], data.prefix(3) + [0x61, le - 3]))
                    exchanges.append(([0x00, 0xC0, 0x00, 0x00, le - 3], data.dropFirst(3) + [0x90, 0x00]))
                default: exchanges.append(([0x00, 0xB0, p1, p2, le], data + [0x90, 0x00]))
                }
                offset += data.count
            }
        }
        return exchanges
    }

    static func trace(_ exchanges: [(command: [UInt8], response: [UInt8])]) -> Trace {
        Trace(
            exchanges.flatMap { exchange in
                [.sent(.apdu, exchange.command), .received(.apdu, exchange.response)].map { TraceEvent(at: .zero, $0) }
            })
    }

    /// Puts the files of a trace in the clear together again: the data of READ BINARY and GET RESPONSE after each SELECT or
    /// short identifier.
    static func files(in trace: Trace) -> [[UInt8]] {
        var files: [[UInt8]] = []
        for exchange in trace.exchanges() {
            guard case .bytes(var data)? = exchange.answer else { continue }
            data.removeLast(2)
            switch (exchange.command[1], exchange.command[2]) {
            case (0xA4, 0x02), (0xB0, 0x80...): files.append([])
            default: break
            }
            if exchange.command[1] == 0xB1 { data.removeFirst(data[1] == 0x81 ? 3 : 2) }
            if !data.isEmpty { files[files.count - 1] += data }
        }
        return files
    }

    // MARK: Files

    private static func object(_ tag: TLVTag, _ value: [UInt8]) -> [UInt8] { tag.encode(value) }
    private static func text(_ tag: TLVTag, _ value: String) -> [UInt8] { tag.encode(Array(value.utf8)) }

    /// DG11, DG12, DG13 and DG16 of the specimen, with what ICAO 9303-10, 4.7.11 to 4.7.16 has for each.  // TEST
    static let details: [(identifier: UInt16, bytes: [UInt8])] = [
        (
            0x010B,
            object(
                0x6B,
                [0x5C, 0x0A, 0x5F, 0x0E, 0x5F, 0x10, 0x5F, 0x2B, 0x5F, 0x42, 0x5F, 0x12]
                    + text(0x5F0E, "ERIKSSON<<ANNA<MARIA") + text(0x5F10, "ZE184226B") + text(0x5F2B, "19740812")
                    + text(0x5F42, "1 MAIN STREET<ZENITH") + text(0x5F12, "+1 555 1234"))
        ),
        (
            0x010C,
            object(
                0x6C,
                [0x5C, 0x04, 0x5F, 0x19, 0x5F, 0x26] + text(0x5F19, "ZENITH")
                    + object(0x5F26, [0x20, 0x02, 0x04, 0x16])
            )
        ),
        (0x010D, object(0x6D, text(0x04, "L898902C3 ERIKSSON ANNA MARIA"))),
        (
            0x0110,
            object(
                0x70,
                [0x02, 0x01, 0x01]
                    + object(
                        0xA1,
                        text(0x5F50, "20020416") + text(0x5F51, "ERIKSSON<<BRITTA") + text(0x5F52, "+1 555 1234")
                            + text(0x5F53, "1 MAIN STREET<ZENITH")))
        ),
    ]
}
