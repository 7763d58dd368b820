public import SmartCard

/// Reads a file: a value without I/O (ISO/IEC 7816-4, 11.3; ICAO 9303-10, 3.6.3).
///
/// The first command selects the file by its short identifier and asks for as much as fits.  A chip that refuses this is
/// asked for the header alone, and then for no byte beyond the end; one that knows no short identifiers gets SELECT.
///
/// Most files are one data object, whose header tells its length.  EF.ATR/INFO is several objects, and is read to its end.
struct FileReader: Sendable {
    /// The next step of the reader.
    enum Step: Sendable {
        case send(CommandAPDU)
        /// The data object, without what follows it in the file; or all of the file.
        case done([UInt8])
        case failed(FileError)
    }

    private enum State {
        case new
        case selecting
        /// Waiting for the first bytes once more, before going on behind them.
        case comparing(ReadBefore)
        /// Waiting for bytes from the end of ``bytes`` on.
        case reading(count: Int)
        case over
    }

    /// The longest file that is read.
    static let maximumLength = 1 << 20
    /// The bytes that disclose the length of the longest one, and that no file is shorter than.
    private static let headerLength = 6
    /// READ BINARY of an odd instruction begins where 15 bits of offset end.
    private static let oddOffset = 1 << 15
    /// The longest header of object 53.
    private static let oddOverhead = 4

    /// The part of a file that was read before its card was lost.
    private struct ReadBefore {
        let bytes: [UInt8]
        let length: Int
    }

    let file: ElementaryFile
    /// The most data bytes of a response.
    private var chunk: Int
    /// The most data bytes of a response to a short command.
    private let shortChunk: Int
    private var usesShortIdentifier: Bool
    /// True if the chip refuses to be asked for more than there is.
    private var isCautious = false
    private var state = State.new
    private(set) var bytes: [UInt8] = []
    /// The length of the data object, once its header is known.  A file of several has none.
    private(set) var length: Int?

    private var before: ReadBefore?

    /// - Parameters:
    ///   - chunk: the most data bytes of a response, 16 to 65,536.
    ///   - shortChunk: the same for a short command, where secure messaging takes some of the 256.
    ///   - usesShortIdentifier: false to select the file by its identifier at once.
    ///   - interrupted: a reader of the same file, which goes on where that one stopped if the file begins as it did then.
    init(
        _ file: ElementaryFile, chunk: Int, shortChunk: Int = ATRInfo.shortResponse,
        usesShortIdentifier: Bool = true, resuming interrupted: FileReader? = nil
    ) {
        (self.file, self.chunk, self.shortChunk) = (file, min(max(chunk, 16), 65_536), shortChunk)
        self.usesShortIdentifier = usesShortIdentifier
        guard let interrupted, let length = interrupted.length, interrupted.bytes.count >= Self.headerLength else {
            return
        }
        before = ReadBefore(bytes: interrupted.bytes, length: length)
    }

    /// Takes the response to the last command; nil at the start.
    mutating func next(_ response: ResponseAPDU?) -> Step {
        switch (state, response) {
        case (.new, nil): return before.map { compare($0) } ?? (usesShortIdentifier ? read() : select())
        case (.comparing(let before), let response?):
            let isSame = response.status == .success && response.data == Array(before.bytes.prefix(response.data.count))
            if isSame, response.data.count >= Self.headerLength { (bytes, length) = (before.bytes, before.length) }
            return read()
        case (.selecting, let response?):
            // A warning is an answer: some chips call a file deactivated that they let nobody read.
            guard response.status == .success else { return fail(response.status) }
            return read()
        case (.reading(let count), let response?): return take(response, count)
        default: return end(.failed(.malformed))
        }
    }

    private mutating func end(_ step: Step) -> Step {
        state = .over
        return step
    }

    private mutating func fail(_ status: StatusWord) -> Step {
        switch status {
        case .fileNotFound, 0x6A88, 0x6283: end(.failed(.absent))
        case 0x6982: end(.failed(.denied))
        default: end(.failed(.status(status)))
        }
    }

    // MARK: Commands

    private mutating func read() -> Step {
        let left = length.map { $0 - bytes.count }
        let offset = bytes.count
        let isOdd = offset >= Self.oddOffset
        let count = min(left ?? (isCautious ? Self.headerLength : chunk), isOdd ? chunk - Self.oddOverhead : chunk)
        state = .reading(count: count)
        if offset == 0, usesShortIdentifier {
            return send(0xB0, 0x80 | file.shortIdentifier, 0x00, count)
        }
        guard !isOdd else {
            // The offset in object 54; the bytes come in object 53.
            let bytes = [16, 8, 0].map { UInt8(truncatingIfNeeded: offset >> $0) }
            let ne = count + (count > 255 ? 4 : count > 127 ? 3 : 2)
            return send(0xB1, 0x00, 0x00, ne, TLVTag(0x54).encode(bytes.drop { $0 == 0 }))
        }
        return send(0xB0, UInt8(truncatingIfNeeded: offset >> 8), UInt8(truncatingIfNeeded: offset), count)
    }

    /// Asks for bytes that are known: they select the file, and show that it is the same.
    private mutating func compare(_ before: ReadBefore) -> Step {
        state = .comparing(before)
        return send(0xB0, 0x80 | file.shortIdentifier, 0x00, min(before.bytes.count, 32))
    }

    private func send(_ ins: UInt8, _ p1: UInt8, _ p2: UInt8, _ ne: Int, _ data: [UInt8] = []) -> Step {
        .send(
            CommandAPDU(
                unchecked: (0x00, ins, p1, p2), data: data, ne: ne,
                lengthCoding: ne > shortChunk ? .extended : .short))
    }

    private mutating func select() -> Step {
        usesShortIdentifier = false
        state = .selecting
        // Without Le, which some chips refuse here.
        return .send(CommandAPDU(unchecked: (0x00, 0xA4, 0x02, 0x0C), data: file.identifier))
    }

    // MARK: Responses

    private mutating func take(_ response: ResponseAPDU, _ count: Int) -> Step {
        switch response.status {
        // 6282: the end came first.
        case .success, 0x6282: break
        default: return retry(after: response.status, count)
        }
        guard let data = content(response.data), !data.isEmpty, data.count <= count else {
            // An end with nothing before it.
            return response.status == 0x6282 ? retry(after: 0x6282, count) : end(.failed(.malformed))
        }
        bytes += data
        guard let tag = file.tag else {
            guard bytes.count <= Self.maximumLength else { return end(.failed(.tooLong)) }
            return response.status == 0x6282 ? end(.done(bytes)) : read()
        }
        if length == nil {
            switch Self.length(of: bytes, tag) {
            case .known(let length) where length <= Self.maximumLength: self.length = length
            case .known: return end(.failed(.tooLong))
            case .unknown where response.status == .success && bytes.count < Self.headerLength: break
            default: return end(.failed(.malformed))
            }
        }
        guard let length, bytes.count >= length else {
            // Where the file ends before its object does, somebody cut it off.
            return response.status == 0x6282 ? end(.failed(.truncated)) : read()
        }
        return end(.done(Array(bytes.prefix(length))))
    }

    /// The bytes in a response; nil if they are not as the command asked.
    private func content(_ data: [UInt8]) -> [UInt8]? {
        guard bytes.count >= Self.oddOffset else { return data }
        guard let object = (try? TLVList(data, padding: []))?.first, object.tag == 0x53 else { return nil }
        return Array(object.value)
    }

    /// Asks differently after a refusal, as long as there is a way to.
    private mutating func retry(after status: StatusWord, _ count: Int) -> Step {
        let isAboutLength = [0x6700, 0x6B00, 0x6282, 0x6F00].contains(status) || StatusWord.Family.wrongLe ~= status
        if bytes.isEmpty, usesShortIdentifier, status == 0x6A86 || status == 0x6981 || status == 0x6D00 {
            return select()
        }
        guard isAboutLength else { return fail(status) }
        if file.tag == nil {
            // The end is near; it is here where not even one byte is left.
            guard count > 1 else { return bytes.isEmpty ? fail(status) : end(.done(bytes)) }
            chunk = count / 2
            return read()
        }
        if length == nil, !isCautious {
            isCautious = true
            return read()
        }
        if bytes.isEmpty, usesShortIdentifier { return select() }
        guard length != nil, count > Self.leastChunk else { return fail(status) }
        chunk = max(min(count, chunk) / 2, Self.leastChunk)
        return read()
    }

    private static let leastChunk = 64

    /// The length of a data object with its header.
    private enum Length {
        case known(Int)
        /// There are too few bytes.
        case unknown
        case malformed
    }

    private static func length(of bytes: [UInt8], _ tag: UInt8) -> Length {
        guard bytes.first == tag else { return .malformed }
        guard bytes.count > 1 else { return .unknown }
        guard bytes[1] >= 0x80 else { return .known(2 + Int(bytes[1])) }
        let count = Int(bytes[1] & 0x7F)
        guard (1...3).contains(count) else { return .malformed }
        guard bytes.count >= 2 + count else { return .unknown }
        return .known(2 + count + bytes[2..<2 + count].reduce(0) { $0 << 8 | Int($1) })
    }
}

/// A file that could not be read.
public enum FileError: Error, Hashable, Sendable {
    /// The chip does not have the file.
    case absent
    /// The chip does not let this reader read it.
    case denied
    /// The file does not contain the object that it should, or a response breaks the rules of READ BINARY.
    case malformed
    /// The file ends before its object does.
    case truncated
    /// The object claims more than a mebibyte.
    case tooLong
    case status(StatusWord)
}

extension FileError: CustomStringConvertible {
    public var description: String {
        switch self {
        case .absent: "the chip does not have the file"
        case .denied: "the chip does not let this reader read the file"
        case .malformed: "the file is not as ICAO 9303 has it"
        case .truncated: "the file ends before its contents do"
        case .tooLong: "the file claims to be longer than a mebibyte"
        case .status(let status): "the chip refused to read the file: \(status)"
        }
    }
}
