import Foundation
import KioskKit
import Testing

/// What a person reads of each error of KioskKit's.
@Suite struct ErrorTextTests {
    private static let service: [PaymentServiceError] = [
        .noAnswer("the line is dead"), .refused(code: "merchant", message: "No such merchant."),
        .notAuthorized("its key has expired"), .unavailable("status 429"), .tooLarge("status 413"),
    ]
    private static let tap: [TapToPayError] = [
        .notInitialized, .noCardData, .anotherInterfaceNeeded, .noPrice, .notRecorded("the disk is full"),
        .reversalNotRecorded(key: "KEY-1"),
        .takenBack, .outcomeUnknown(key: "KEY-1"),
    ]
    private static let failures: [TapFailure] = [
        .unanswered, .timedOut, .service("the line is dead"), .outcomeUnknown(key: "KEY-1"),
    ]

    /// The cases that an enumeration has in its source, which one line each declares.
    private static func cases(of type: String, in file: String) throws -> Set<String> {
        let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Sources/KioskKit")
        let source = try String(contentsOf: folder.appending(path: file), encoding: .utf8)
        let body = try #require(source.split(separator: "enum \(type):").last?.split(separator: "\n}").first)
        return Set(body.matches(of: #/\n    case (\w+)/#).map { String($0.output.1) })
    }

    @Test("each case is in the lists here, once")
    func lists() throws {
        func check(_ values: [some Hashable], _ type: String, _ file: String) throws {
            let cases = try Self.cases(of: type, in: file)
            // Of those without a value nothing but the text can be had.
            let names = Set(values.map { Mirror(reflecting: $0).children.first?.label ?? "\($0)" })
            #expect(names.count == cases.count && values.count == cases.count, "\(type): \(cases)")
            #expect(names.filter { !$0.contains(" ") }.isSubset(of: cases))
        }
        try check(Self.service, "PaymentServiceError", "PaymentServiceProvider.swift")
        try check(Self.tap, "TapToPayError", "TapToPay/TapToPayError.swift")
        try check(Self.failures, "TapFailure", "TapTransaction/TapTransactionState.swift")
    }

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
            "the line is dead", "No such merchant", "its key has expired", "status 429", "status 413", "", "", "",
            "", "disk",
        ]
        for (text, part) in zip(texts, parts) {
            #expect(part.isEmpty || text.contains(part))
        }
        let failures = Self.failures.map(\.description)
        #expect(Set(failures).count == failures.count && failures.allSatisfy { !$0.isEmpty })
        #expect(failures[3].contains("KEY-1"))
    }
}
