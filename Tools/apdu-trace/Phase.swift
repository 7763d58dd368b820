import SmartCard
import SmartCardTrace

/// The purpose of a command to a card or its reader in a transaction (EMV Contactless Book A, 5.8; Book 3, 10).
enum Phase: String, CaseIterable {
    case selection, options, records, authentication, cryptogram, other, reader

    var name: String {
        switch self {
        case .selection: "selection"
        case .options: "processing options"
        case .records: "records and data"
        case .authentication: "authentication"
        case .cryptogram: "cryptogram"
        case .other: "other"
        case .reader: "reader commands"
        }
    }

    /// - Parameter command: the command on `layer`.
    /// - Parameter before: the purpose of the command before it, the rest of whose answer this one may fetch.
    init(_ layer: TraceEvent.Layer, _ command: [UInt8], behind before: Phase) {
        guard layer == .apdu, let command = try? CommandAPDU(command) else {
            self = layer == .escape ? .reader : .other
            return
        }
        self =
            switch (command.cla, command.ins) {
            case (0xFF, _): .reader
            case (_, 0xC0): before
            case (_, 0xA4): .selection
            case (0x80, 0xA8): .options
            // READ RECORD, READ BINARY, GET DATA.
            case (_, 0xB2), (_, 0xB0), (_, 0xCA): .records
            // INTERNAL, EXTERNAL and GENERAL AUTHENTICATE, EXCHANGE RELAY RESISTANCE DATA.
            case (_, 0x88), (_, 0x82), (_, 0x86), (_, 0x87), (0x80, 0xEA): .authentication
            // GENERATE AC, COMPUTE CRYPTOGRAPHIC CHECKSUM.
            case (0x80, 0xAE), (0x80, 0x2A): .cryptogram
            default: .other
            }
    }
}
