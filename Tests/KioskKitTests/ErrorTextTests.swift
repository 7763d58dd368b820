import Foundation
import KioskKit
import Testing

/// What a person reads of each error of KioskKit's.
@Suite struct ErrorTextTests {
    private static let service: [PaymentServiceError] = [
        .noAnswer("the line is dead"), .refused(code: "merchant", message: "No such merchant."),
        .notAuthorised("its key has expired"), .unavailable("status 429"), .tooLarge("status 413"),
    ]
    private static let tap: [TapToPayError] = [
        .notInitialized, .noCardData, .notRecorded("the disk is full"), .reversalNotRecorded(key: "KEY-1"),
        .takenBack, .outcomeUnknown(key: "KEY-1"),
    ]
    private static let failures: [TapFailure] = [
        .unanswered, .timedOut, .service("the line is dead"), .outcomeUnknown(key: "KEY-1"),
    ]

    @Test("each error has a text of its own, in words, that says what to do next")
    func texts() {
        let texts = (Self.service as [any Error] + Self.tap as [any Error]).map(\.localizedDescription)
        #expect(Set(texts).count == texts.count)
        for text in texts {
            #expect(text.hasSuffix("."))
            #expect(text.firstMatch(of: #/\b[a-z]+[A-Z]|\(\)/#) == nil, "\(text)")
            #expect(text.split(separator: #/[.:] (?=[A-Z])/#).count >= 2, "\(text)")
        }
        let parts = [
            "the line is dead", "No such merchant", "its key has expired", "status 429", "status 413", "", "", "disk",
        ]
        for (text, part) in zip(texts, parts) {
            #expect(part.isEmpty || text.contains(part))
        }
        let failures = Self.failures.map(\.description)
        #expect(Set(failures).count == failures.count && failures.allSatisfy { !$0.isEmpty })
        #expect(failures[3].contains("KEY-1"))
    }
}
