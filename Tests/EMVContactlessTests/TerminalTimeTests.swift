import EMVContactless
import Foundation
import TestSupport
import Testing

@Suite struct TerminalTimeTests {
    // The clock's start, a leap day, the turn of a century, the last second of 2099, a second before the start.
    @Test("a time is that of Foundation's calendar", arguments: [0, 951_782_400, 946_684_799.9, 4_102_444_799, -1])
    func time(_ seconds: Double) throws {
        let parts = Calendar(identifier: .gregorian).dateComponents(
            [.year, .month, .day, .hour, .minute, .second], from: Date(timeIntervalSince1970: seconds))
        let date = try CalendarDate(
            year: #require(parts.year), month: #require(parts.month), day: #require(parts.day))
        let expected = try TerminalTime(
            #require(date), hour: #require(parts.hour), minute: #require(parts.minute), second: #require(parts.second))
        expectEqual(TerminalTime(secondsSince1970: seconds), expected)
    }

    @Test("a clock out of the calendar is at the first of January 2000", arguments: [1e18, -1e18])
    func outOfRange(_ seconds: Double) throws {
        let date = try #require(CalendarDate(year: 2000, month: 1, day: 1))
        expectEqual(TerminalTime(secondsSince1970: seconds), TerminalTime(date))
    }

    @Test("no number of seconds traps", arguments: [Double.nan, .infinity, -.infinity, .greatestFiniteMagnitude])
    func noTrap(_ seconds: Double) {
        _ = TerminalTime(secondsSince1970: seconds)
    }
}
