package import EMVContactless
import Glibc

extension TerminalTime {
    /// The time of this machine's clock in its time zone.
    package static var now: TerminalTime { TerminalTime(secondsSince1970: Double(time(nil))) }
}

extension CardInspector {
    /// An inspector with an unpredictable number and this machine's date.
    package static var withSystemValues: CardInspector {
        let today = TerminalTime.now.date
        return CardInspector(
            unpredictableNumber: (0..<4).map { _ in UInt8.random(in: 0...255) },
            // YYMMDD, tag 9A.
            date: [today.year % 100, today.month, today.day].map { UInt8($0 / 10 << 4 | $0 % 10) })
    }
}
