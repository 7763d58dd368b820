public import SmartCard

/// The records of Smart Tap, which nest NDEF messages in records (Google's APDU reference; kormax, Record types).
enum SmartTapRecords {
    /// The first byte of a value that states its format (kormax, Data format).
    enum Format: UInt8 {
        case unspecified = 0x00
        case ascii = 0x01
        case utf8 = 0x02
        case utf16 = 0x03
        case binary = 0x04
        case decimal = 0x05
    }

    /// The version in `ngr` and `srq`.
    static let version: [UInt8] = [0x00, 0x01]

    /// An external record, whose type is its name.
    static func record(_ name: String, _ payload: [UInt8]) -> NDEFRecord {
        NDEFRecord(unchecked: .external, Array(name.utf8), [], payload)
    }

    static func record(_ name: String, prefix: [UInt8] = [], _ records: [NDEFRecord]) -> NDEFRecord {
        record(name, prefix + NDEFMessage(records).bytes)
    }

    /// `ses`: session, sequence number, status.
    struct Session: Hashable {
        var identifier: [UInt8]
        var sequence: UInt8
        var status: UInt8 = SmartTapSessionStatus.ok.rawValue

        var record: NDEFRecord { SmartTapRecords.record("ses", identifier + [sequence, status]) }
    }

    // MARK: Parsing

    /// Returns the name of a record: its type; the identifier where the type is a well-known one, such as `T`.
    static func name(_ record: NDEFRecord) -> String? {
        String(validating: record.format == .wellKnown ? record.id : record.type, as: UTF8.self)
    }

    /// Returns the payload of the first record with this name.
    static func payload(_ name: String, in records: [NDEFRecord]) -> [UInt8]? {
        records.first { self.name($0) == name }?.payload
    }

    /// Parses a message in a record.
    static func records(_ bytes: [UInt8], at place: SmartTapFault.Place) throws(SmartTapFault) -> [NDEFRecord] {
        do throws(NDEFError) { return try NDEFMessage(bytes).records } catch { throw .record(place, error) }
    }

    static func session(in records: [NDEFRecord]) throws(SmartTapFault) -> Session {
        guard let bytes = payload("ses", in: records), bytes.count == 10 else { throw .missing(.session) }
        return Session(identifier: Array(bytes.prefix(8)), sequence: bytes[8], status: bytes[9])
    }

    /// The value of a record, without its first byte, which states a format or, in a text, the length of its language.
    ///
    /// - Returns: nil for a record without that byte, or text that is none.
    static func value(_ record: NDEFRecord) -> [UInt8]? {
        guard let first = record.payload.first else { return nil }
        // RTD Text 1.0, 3.2.1; Google's phones write 00 and no language.
        if record.format == .wellKnown, record.type == [UInt8(ascii: "T")] {
            return record.text.map { Array($0.text.utf8) }
        }
        let rest = Array(record.payload.dropFirst())
        switch Format(rawValue: first) {
        case .utf16:
            guard rest.count.isMultiple(of: 2) else { return nil }
            let units = stride(from: 0, to: rest.count, by: 2).map { UInt16(rest[$0]) << 8 | UInt16(rest[$0 + 1]) }
            return String(validating: units, as: UTF16.self).map { Array($0.utf8) }
        case .decimal: return Array(rest.hex.utf8.prefix { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        default: return rest
        }
    }
}

/// An answer of Google's wallet that is not Smart Tap's.
public enum SmartTapFault: Error, Hashable, Sendable {
    /// A part of an answer.
    public enum Place: String, Hashable, Sendable {
        case selection, negotiation, answer, bundle, object
        case session, nonce, devicePublicKey
    }

    /// The bytes are not NDEF.
    case record(Place, NDEFError)
    /// A part that is not there, or not of its length.
    case missing(Place)
    /// The records are of another session.
    case otherSession
    /// The phone's key is not on P-256.
    case deviceKey
    /// The key of the collector did not sign.
    case signature
    /// Passes in the clear, though a secure channel was agreed on.
    case notEncrypted
    /// Changed on its way, or sealed with another key.
    case notAuthentic
    /// The bytes are not in zlib's format.
    case notInflated
    /// More bytes, parts or records than ``SmartTap/maximumLength`` and its like permit.
    case tooLong
    /// A command that the conversation does not expect a response to.
    case order
}

extension SmartTapFault: CustomStringConvertible {
    public var description: String {
        switch self {
        case .record(let place, let error): "the phone's \(place.rawValue) is not NDEF: \(error)"
        case .missing(let place): "the phone's answer is without its \(place.rawValue), or that has another length"
        case .otherSession: "the phone answers in another session"
        case .deviceKey: "the phone's key is not on P-256"
        case .signature: "the collector's key does not sign"
        case .notEncrypted: "the phone sends passes that are not encrypted"
        case .notAuthentic: "the passes were changed, or sealed with another key"
        case .notInflated: "the passes are compressed, but not by zlib"
        case .tooLong: "the phone's answer is longer than any pass"
        case .order: "a response without a command"
        }
    }
}
