/// A command APDU (ISO/IEC 7816-4, 5.1): four header bytes, a data field, and the length expected back.
///
/// The value remembers whether its lengths are coded short or extended, so a command read from bytes gives exactly
/// those bytes back.
public struct CommandAPDU: Hashable, Sendable {
    /// The coding of Lc and Le (ISO/IEC 7816-4, 5.1).
    public enum LengthCoding: Hashable, Sendable {
        /// One byte each: Nc up to 255, Ne up to 256.
        case short
        /// Two or three bytes: Nc up to 65,535, Ne up to 65,536.
        case extended
    }

    /// The four cases of ISO/IEC 7816-3, 12.1: with or without a data field, with or without an expected response.
    public enum Case: Int, Hashable, Sendable {
        case noData = 1
        case dataExpected, dataSent, dataSentAndExpected
    }

    public var cla: UInt8
    public var ins: UInt8
    public var p1: UInt8
    public var p2: UInt8
    /// The command data field, Nc bytes.
    public private(set) var data: [UInt8]
    /// Ne, the greatest number of response data bytes expected; nil when there is no Le field.
    public private(set) var ne: Int?
    public private(set) var lengthCoding: LengthCoding

    /// A command from its parts.  Lengths are coded short where they fit, unless `lengthCoding` asks for extended.
    ///
    /// - Parameters:
    ///   - cla: the class byte.
    ///   - ins: the instruction byte.
    ///   - p1: the first parameter byte.
    ///   - p2: the second parameter byte.
    ///   - data: at most 65,535 bytes; empty for no Lc field.
    ///   - ne: 1 to 65,536, or nil for no Le field.
    ///   - lengthCoding: short where it fits, or extended always.
    /// - Throws: ``APDUError`` if `data` is longer than 65,535 bytes, or `ne` is outside 1...65,536.
    public init(
        cla: UInt8, ins: UInt8, p1: UInt8, p2: UInt8, data: [UInt8] = [], ne: Int? = nil,
        lengthCoding: LengthCoding = .short
    ) throws(APDUError) {
        guard data.count <= 65_535 else { throw .dataTooLong(data.count) }
        if let ne, !(1...65_536).contains(ne) { throw .neOutOfRange(ne) }
        self.init(
            unchecked: (cla, ins, p1, p2), data: data, ne: ne,
            lengthCoding: data.count > 255 || ne ?? 0 > 256 ? .extended : lengthCoding)
    }

    /// Creates a command that is correct by construction.  `data` is at most 255 bytes and `ne` at most 256 in short
    /// coding.
    package init(
        unchecked header: (UInt8, UInt8, UInt8, UInt8), data: [UInt8] = [], ne: Int? = nil,
        lengthCoding: LengthCoding = .short
    ) {
        (cla, ins, p1, p2) = header
        self.data = data
        self.ne = ne
        self.lengthCoding = lengthCoding
    }

    /// Parses a complete command.
    ///
    /// - Throws: ``APDUError`` with the offset of the first byte that does not fit a case of ISO/IEC 7816-3, 12.1.3.
    public init(_ bytes: some Collection<UInt8>) throws(APDUError) {
        let b = Array(bytes)
        guard b.count >= 4 else { throw .truncated(offset: b.count) }
        let header = (b[0], b[1], b[2], b[3])
        func short(_ le: UInt8) -> Int { le == 0 ? 256 : Int(le) }
        func extended(at i: Int) -> Int {
            let le = Int(b[i]) << 8 | Int(b[i + 1])
            return le == 0 ? 65_536 : le
        }
        switch b.count {
        case 4:
            self.init(unchecked: header)
        case 5:
            self.init(unchecked: header, ne: short(b[4]))
        case _ where b[4] != 0:
            let end = 5 + Int(b[4])
            guard b.count >= end else { throw .truncated(offset: b.count) }
            guard b.count <= end + 1 else { throw .trailingBytes(offset: end + 1) }
            self.init(unchecked: header, data: Array(b[5..<end]), ne: b.count > end ? short(b[end]) : nil)
        case 6:
            throw .truncated(offset: 6)
        case 7:
            self.init(unchecked: header, ne: extended(at: 5), lengthCoding: .extended)
        default:
            let nc = Int(b[5]) << 8 | Int(b[6])
            guard nc > 0 else { throw .emptyExtendedData(offset: 5) }
            let end = 7 + nc
            guard b.count >= end, b.count != end + 1 else { throw .truncated(offset: b.count) }
            guard b.count <= end + 2 else { throw .trailingBytes(offset: end + 2) }
            self.init(
                unchecked: header, data: Array(b[7..<end]), ne: b.count > end ? extended(at: end) : nil,
                lengthCoding: .extended)
        }
    }

    public var `case`: Case {
        switch (data.isEmpty, ne) {
        case (true, nil): .noData
        case (true, _): .dataExpected
        case (false, nil): .dataSent
        case (false, _): .dataSentAndExpected
        }
    }

    /// The encoded command.
    public var bytes: [UInt8] {
        var out = [cla, ins, p1, p2]
        out.reserveCapacity(data.count + 9)
        let extended = lengthCoding == .extended && self.case != .noData
        if extended { out.append(0) }
        if !data.isEmpty {
            if extended { out.append(UInt8(truncatingIfNeeded: data.count >> 8)) }
            out.append(UInt8(truncatingIfNeeded: data.count))
            out += data
        }
        if let ne {
            if extended { out.append(UInt8(truncatingIfNeeded: ne >> 8)) }
            out.append(UInt8(truncatingIfNeeded: ne))
        }
        return out
    }

    /// The same command with another Ne; extended if `ne` or the data needs it.
    ///
    /// Values outside 1...65,536 become the nearest bound.
    public func with(ne: Int?) -> CommandAPDU {
        let ne = ne.map { min(max($0, 1), 65_536) }
        return CommandAPDU(
            unchecked: (cla, ins, p1, p2), data: data, ne: ne, lengthCoding: ne ?? 0 > 256 ? .extended : lengthCoding)
    }
}

extension CommandAPDU: CustomStringConvertible {
    /// The header and the lengths, never the data: `00 A4 04 00, 14 bytes, Ne 256`.
    public var description: String {
        [cla, ins, p1, p2].hex(separator: " ") + (data.isEmpty ? "" : ", \(data.count) bytes")
            + (ne.map { ", Ne \($0)" } ?? "")
    }
}

extension CommandAPDU {
    /// SELECT by DF name, first or only occurrence, FCI returned (ISO/IEC 7816-4, 11.2.2).
    ///
    /// - Parameter name: up to 255 bytes; of a longer one only the first 255 are sent.
    public static func select(_ name: some Collection<UInt8>) -> CommandAPDU {
        CommandAPDU(unchecked: (0x00, 0xA4, 0x04, 0x00), data: Array(name.prefix(255)), ne: 256)
    }

    /// READ RECORD, the record `number` of the file with short identifier `sfi` (ISO/IEC 7816-4, 11.4.3).
    ///
    /// - Parameters:
    ///   - number: the number of the record, from 1.
    ///   - sfi: 0 to 30; higher bits are dropped.
    public static func readRecord(_ number: UInt8, sfi: UInt8) -> CommandAPDU {
        CommandAPDU(unchecked: (0x00, 0xB2, number, (sfi & 0x1F) << 3 | 0x04), ne: 256)
    }

    /// GET RESPONSE for `ne` bytes, 1 to 256 (ISO/IEC 7816-4, 11.8.1).
    public static func getResponse(cla: UInt8, ne: Int) -> CommandAPDU {
        CommandAPDU(unchecked: (cla, 0xC0, 0x00, 0x00), ne: min(max(ne, 1), 256))
    }
}

/// A response APDU (ISO/IEC 7816-4, 5.1): a data field and two status bytes.
public struct ResponseAPDU: Hashable, Sendable {
    /// The response data field, without the status word.
    public var data: [UInt8]
    public var status: StatusWord

    public init(data: [UInt8] = [], status: StatusWord) {
        self.data = data
        self.status = status
    }

    /// Parses a response: any data, then SW1 SW2.
    ///
    /// - Throws: ``APDUError/truncated(offset:)`` for fewer than two bytes.
    public init(_ bytes: some BidirectionalCollection<UInt8>) throws(APDUError) {
        var data = Array(bytes)
        guard data.count >= 2 else { throw .truncated(offset: data.count) }
        let (sw2, sw1) = (data.removeLast(), data.removeLast())
        self.init(data: data, status: StatusWord(sw1, sw2))
    }

    /// The encoded response.
    public var bytes: [UInt8] { data + [status.sw1, status.sw2] }
}

extension ResponseAPDU: CustomStringConvertible {
    /// The length and the status, never the data: `18 bytes, 9000 normal processing`.
    public var description: String { (data.isEmpty ? "" : "\(data.count) bytes, ") + status.description }
}

/// Bytes or parts that are not an APDU.
public enum APDUError: Error, Hashable, Sendable {
    /// The bytes end at `offset`, where more were due.
    case truncated(offset: Int)
    /// The command is complete and bytes follow from `offset` on.
    case trailingBytes(offset: Int)
    /// An extended Lc of zero, which ISO/IEC 7816-3 does not allow.
    case emptyExtendedData(offset: Int)
    /// More command data than an APDU can carry.
    case dataTooLong(Int)
    /// An Ne that no Le can express.
    case neOutOfRange(Int)
}

extension APDUError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .truncated(let offset): "the APDU ends too early, at offset \(offset)"
        case .trailingBytes(let offset): "the APDU is complete, but bytes follow from offset \(offset)"
        case .emptyExtendedData(let offset): "an extended Lc of zero at offset \(offset)"
        case .dataTooLong(let count): "\(count) bytes of command data; an APDU holds 65535"
        case .neOutOfRange(let ne): "Ne of \(ne); an APDU expresses 1 to 65536"
        }
    }
}
