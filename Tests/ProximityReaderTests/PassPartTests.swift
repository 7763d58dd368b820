import Foundation
import SmartCard
import Testing

@testable import ProximityReader

/// What follows from a phone's answer, for each call of Apple's interface.
@Suite struct PassPartTests {
    typealias Row = (PassPart.Answer, passes: PassPart.Step, or: PassPart.Step, and: PassPart.Step)

    /// Apple's documentation of `stopOnVASResult`: true ends as soon as a pass was read, false has both.
    private static let table: [Row] = [
        (.pass, passes: .finish, or: .finish, and: .pay),
        (.held, passes: .seePhone, or: .seePhone, and: .seePhone),
        (.noPass, passes: .finish, or: .pay, and: .pay),
        (.noWallet, passes: .anotherCard, or: .pay, and: .pay),
        (.malformed, passes: .fail, or: .pay, and: .pay),
        (.lost, passes: .again, or: .again, and: .again),
    ]

    @Test("each answer has its step") func table() {
        #expect(Set(Self.table.map(\.0)).count == PassPart.Answer.allCases.count)
        for row in Self.table {
            for (purpose, step) in [
                (PassPart.Purpose.passes, row.passes), (.passesOrPayment, row.or), (.passesAndPayment, row.and),
            ] {
                var part = PassPart(purpose, ownerTime: .seconds(30))
                #expect(part.next(row.0, at: .zero) == step, "\(row.0), \(purpose)")
            }
        }
    }

    @Test("a phone that stays locked is asked until its owner's time is over", arguments: PassPart.Purpose.allCases)
    func held(_ purpose: PassPart.Purpose) {
        var part = PassPart(purpose, ownerTime: .seconds(30))
        for second in 0..<30 { #expect(part.next(.held, at: .seconds(5 + second)) == .seePhone) }
        #expect(part.next(.held, at: .seconds(35)) == .finish)
    }

    @Test("the next locked phone has its own time", arguments: PassPart.Purpose.allCases)
    func heldAgain(_ purpose: PassPart.Purpose) {
        var part = PassPart(purpose, ownerTime: .seconds(30))
        #expect(part.next(.held, at: .zero) == .seePhone)
        for second in 31..<61 { #expect(part.next(.held, at: .seconds(second)) == .seePhone) }
        #expect(part.next(.held, at: .seconds(61)) == .finish)
    }

    @Test("what cannot be read three times in succession has to leave", arguments: PassPart.Purpose.allCases)
    func lost(_ purpose: PassPart.Purpose) {
        var part = PassPart(purpose, ownerTime: .seconds(30))
        let answers: [PassPart.Answer] = [.lost, .lost, .held, .lost, .lost, .lost]
        #expect(answers.map { part.next($0, at: .zero) } == [.again, .again, .seePhone, .again, .again, .anotherCard])
    }
}
