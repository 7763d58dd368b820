import SmartCard

/// Bytes as spaced hexadecimal digits, with a comment behind `|` on each line.
func bytes(_ text: String) -> [UInt8] {
    let digits = text.split(separator: "\n").map { $0.prefix { $0 != "|" } }.joined(separator: " ")
    return (try? [UInt8](hex: digits)) ?? []
}
