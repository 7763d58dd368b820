/// A line of a server of the Speech Synthesis Interface Protocol (SSIP, chapter 3, General Rules): three digits, then
/// a hyphen if more lines follow, else a space, then text.
struct SSIPLine: Hashable, Sendable {
    let code: Int
    let isLast: Bool
    let text: String
    /// The position of its first byte in all that the server has sent.
    let offset: Int

    /// The parts of a line, without its end; nil for another form.
    init?(_ bytes: some Collection<UInt8>, at offset: Int) {
        let bytes = Array(bytes)
        self.offset = offset
        guard bytes.count >= 4, bytes[..<3].allSatisfy({ 0x30...0x39 ~= $0 }),
            bytes[3] == UInt8(ascii: "-") || bytes[3] == UInt8(ascii: " ")
        else { return nil }
        code = bytes[..<3].reduce(0) { $0 * 10 + Int($1 - 0x30) }
        isLast = bytes[3] == UInt8(ascii: " ")
        text = String(decoding: bytes[4...], as: UTF8.self)
    }
}

/// The server's bytes, taken apart into lines that end with CR LF.
struct SSIPLines {
    /// The length of a line, which the protocol does not limit.
    static let length = 1024

    private var rest: [UInt8] = []
    /// The number of bytes in complete lines.
    private var offset = 0

    /// Takes bytes as they come.
    ///
    /// - Returns: the lines that they complete.
    mutating func receive(_ bytes: some Sequence<UInt8>) throws(SpeechError) -> [SSIPLine] {
        var lines: [SSIPLine] = []
        for byte in bytes {
            guard byte == UInt8(ascii: "\n") else {
                guard rest.count < Self.length else { throw .violation(offset: offset, due: "the end of a line") }
                rest.append(byte)
                continue
            }
            guard rest.last == UInt8(ascii: "\r") else {
                throw .violation(offset: offset + rest.count, due: "CR before LF")
            }
            guard let line = SSIPLine(rest.dropLast(), at: offset) else {
                throw .violation(offset: offset, due: "three digits, and a hyphen or a space")
            }
            lines.append(line)
            offset += rest.count + 1
            rest = []
        }
        return lines
    }
}
