public import Foundation

/// What is marked: account number, name, discretionary data and PIN that are nobody else's, and every form that they may be
/// written in.
public enum Taint {
    /// TEST: of a range that no issuer has.
    public static let accountNumber = "4999998213746504"
    /// TEST
    public static let name = "MARKED/MALLORY"
    /// TEST: of track 2.
    public static let discretionaryData = "8213746519"
    /// TEST: as long as a PIN may be (ISO 9564-1).
    public static let pin = "839274650183"

    static let secrets = [accountNumber, name, discretionaryData, pin]

    /// As the card file `visa` has them.
    private static let published = ["4761739001010010", "TAPPER/TESSA", "1143804489"]

    /// The card file `text`, marked.
    public static func marking(_ text: String) -> String {
        zip(published, secrets).reduce(text) { text, change in text.replacing(change.0, with: change.1) }
    }

    /// One secret in one form.
    public struct Form: Sendable {
        public let name: String
        public let bytes: [UInt8]

        public init(name: String, bytes: [UInt8]) { (self.name, self.bytes) = (name, bytes) }
    }

    public static let forms: [Form] = secrets.flatMap(forms(of:))

    /// A secret as text, as packed digits from either half of a byte, and what programs print of these.
    public static func forms(of secret: String) -> [Form] {
        var values = [("\(secret)", Array(secret.utf8))]
        if secret.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            values.append(("\(secret) packed", packed(secret[...])))
            values.append(("\(secret) packed from the second digit", packed(secret.dropFirst())))
        }
        let wide = [
            Form(name: "\(secret) in UTF-16", bytes: secret.utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }),
            Form(
                name: "\(secret) in UTF-16, the other way round",
                bytes: secret.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }),
        ]
        return wide
            + values.flatMap { name, bytes in printed(bytes).map { Form(name: "\(name) \($0.0)", bytes: $0.1) } }
    }

    private static func packed(_ digits: Substring) -> [UInt8] {
        stride(from: 0, to: digits.count / 2 * 2, by: 2).compactMap {
            UInt8(digits.dropFirst($0).prefix(2), radix: 16)
        }
    }

    private static func printed(_ bytes: [UInt8]) -> [(String, [UInt8])] {
        let hex = bytes.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
        var forms = [
            ("as it is", bytes), ("in hexadecimal digits", Array(hex.utf8)),
            ("in hexadecimal capitals", Array(hex.uppercased().utf8)),
            // Without spaces, as everything is looked through.
            ("as numbers", Array(bytes.map { "\($0)" }.joined(separator: ",").utf8)),
        ]
        // Base64 of something that these are a part of, wherever they begin: the characters that no neighbor has a bit of.
        for before in 0..<3 {
            let text = Data([UInt8](repeating: 0, count: before) + bytes + [0, 0]).base64EncodedString()
            let first = (before * 8 + 5) / 6
            let inner = text.dropFirst(first).prefix((before + bytes.count) * 8 / 6 - first)
            forms.append(("in Base64, \(before)", Array(inner.utf8)))
            let url = inner.replacing("+", with: "-").replacing("/", with: "_")
            if url != inner { forms.append(("in Base64url, \(before)", Array(url.utf8))) }
        }
        return forms
    }

    /// The forms that `bytes` have, as they are and without what stands between hexadecimal digits and numbers.
    public static func found(in bytes: Data) -> [String] {
        found(forms, in: bytes) + found(forms, in: bytes.filter { !separators.contains($0) }).map { "\($0), spaced" }
    }

    /// The forms that a process's memory has, without looking between the bytes.
    public static func found(_ forms: [Form], in bytes: Data) -> [String] {
        bytes.withUnsafeBytes { bytes in
            forms.filter { form in contains(form.bytes, in: bytes) }.map(\.name)
        }
    }

    private static func contains(_ part: [UInt8], in bytes: UnsafeRawBufferPointer) -> Bool {
        guard let base = bytes.baseAddress else { return false }
        return memmem(base, bytes.count, part, part.count) != nil
    }

    /// memmem(3), which Glibc does not show to Swift: a hundred megabytes are looked through for each form.
    private static let memmem = unsafeBitCast(
        dlsym(nil, "memmem"),
        to: (@convention(c) (UnsafeRawPointer, Int, UnsafeRawPointer, Int) -> UnsafeRawPointer?).self)

    private static let separators = Set(" \t\r\n:-".utf8)

    /// What a core dump of a process has: every part of its memory that it can write to.
    ///
    /// - Throws: what keeps a part from being read, whole.
    public static func memory(of pid: Int32) throws -> [(name: String, bytes: Data)] {
        let maps = try String(contentsOfFile: "/proc/\(pid)/maps", encoding: .utf8)
        let memory = try FileHandle(forReadingFrom: URL(filePath: "/proc/\(pid)/mem"))
        defer { try? memory.close() }
        return try maps.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: " ", omittingEmptySubsequences: true)
            let bounds = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
            guard fields[1].hasPrefix("rw"), bounds.count == 2 else { return nil }
            try memory.seek(toOffset: bounds[0])
            var bytes = Data()
            while bytes.count < Int(bounds[1] - bounds[0]) {
                guard let more = try memory.read(upToCount: Int(bounds[1] - bounds[0]) - bytes.count), !more.isEmpty
                else { throw ReadShort(part: String(line)) }
                bytes += more
            }
            return (fields.count > 5 ? String(fields[5]) : String(fields[0]), bytes)
        }
    }

    struct ReadShort: Error { let part: String }

    /// All files below a folder.
    public static func files(below folder: URL) -> [URL] {
        let all = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil)?.allObjects as? [URL]
        return (all ?? []).filter { !$0.hasDirectoryPath }
    }
}
