import Foundation

extension ASN1 {
    /// A moment: UTCTime or GeneralizedTime, in universal time (RFC 5280, 4.1.2.5).
    func moment(_ due: String) throws(MalformedObject) -> Date {
        let isGeneralized = tag == Tag.generalizedTime
        let digits = content.dropLast()
        // The seconds of a UTCTime may be absent in old certificates.
        let counts = isGeneralized ? [14] : [12, 10]
        guard isGeneralized || tag == Tag.utcTime, content.last == UInt8(ascii: "Z"), counts.contains(digits.count),
            digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) })
        else { throw fault(due) }
        var pairs: [Int] = []
        for index in stride(from: digits.startIndex, to: digits.endIndex, by: 2) {
            pairs.append(Int(digits[index] - 0x30) * 10 + Int(digits[index + 1] - 0x30))
        }
        let year = isGeneralized ? pairs[0] * 100 + pairs[1] : pairs[0] + (pairs[0] < 50 ? 2000 : 1900)
        let parts = Array(pairs.dropFirst(isGeneralized ? 2 : 1)) + [0]
        guard year > 0, (1...12).contains(parts[0]), (1...31).contains(parts[1]), parts[2] < 24, parts[3] < 60,
            parts[4] <= 60
        else { throw fault(due) }
        let days = Self.days(year, parts[0], parts[1])
        return Date(timeIntervalSince1970: Double(days * 86_400 + parts[2] * 3600 + parts[3] * 60 + parts[4]))
    }

    /// The days since 1970, in the Gregorian calendar.  A year begins in March, so that its leap day is the last one.
    private static func days(_ year: Int, _ month: Int, _ day: Int) -> Int {
        let year = month > 2 ? year : year - 1
        let month = month > 2 ? month - 3 : month + 9
        return year * 365 + year / 4 - year / 100 + year / 400 + (153 * month + 2) / 5 + day - 1 - 719_468
    }
}
