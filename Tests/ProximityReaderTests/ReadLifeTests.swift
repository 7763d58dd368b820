import Foundation
import SmartCard
import Testing

@testable import ProximityReader

/// A read's life as a table: what happens, and what is done.  No reader, no time.
@Suite(.timeLimit(.minutes(5))) struct ReadLifeTests {
    typealias Event = ReadLife.Event

    private static let success = result(.success)

    private static func result(_ outcome: PaymentCardReadResult.ReadOutcome) -> TapResult {
        TapResult(
            payment: PaymentCardReadResult(
                id: "1", paymentCardData: nil, generalCardData: nil, applicationTypeIdentifier: nil, outcome: outcome,
                cardEffectiveState: nil, cardExpirationState: nil))
    }

    private static let passes = TapResult(passes: VASReadResult(of: "1", []))

    private static func text(_ action: ReadLife.Action) -> String {
        switch action {
        case .tell(let event): event.name
        case .stop: "stop"
        case .start(.answer): "start answer"
        case .start(.transaction(let card)): "start transaction \(card)"
        case .start(.removal): "start removal"
        case .abandonReader: "abandon"
        case .leaveCard: "leave card"
        case .makeRoom: "make room"
        case .checkSession: "check"
        case .refuse(let error): "refuse \(error is CancellationError ? "stopped" : "\(error)")"
        case .answer(let result): "answer \(result.payment.map { "\($0.outcome)" } ?? "passes")"
        case .fail(let error): "fail \(error)"
        }
    }

    /// What is done at the last of the events.
    private static func last(_ events: [Event], atOnce: Bool = false) -> [String] {
        var life = ReadLife(returnsAtOnce: atOnce)
        return events.map { life.next($0) }.last?.map(text) ?? []
    }

    private static let begun: [Event] = [.admitted(cardIsLeft: false), .turnCame]
    private static let shown = begun + [.field(.readyForTap)]
    private static let card = shown + [.field(.cardDetected)]
    private static let sealed = card + [.sealed]
    private static let interrupted = Event.interrupted(.readCancelled)

    struct Row: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let events: [Event]
        let actions: [String]
        var atOnce = false

        init(_ name: String, _ events: [Event], _ actions: [String], atOnce: Bool = false) {
            (testDescription, self.events, self.actions, self.atOnce) = (name, events, actions, atOnce)
        }
    }

    private static let rows: [Row] = [
        Row("admitted", [.admitted(cardIsLeft: false)], []),
        Row("admitted, with a card left", [.admitted(cardIsLeft: true)], ["removeCard"]),
        Row("ready", shown, ["readyForTap"]),
        Row("a card", card, ["cardDetected", "start transaction 1", "check"]),
        Row("a second card", card + [.field(.cardDetected)], ["cardDetected", "check"]),
        Row("too many cards", shown + [.field(.readRetry)], ["readRetry"]),
        Row("sealed", sealed, []),
        Row(
            "completed", sealed + [.completed(success)],
            ["leave card", "removeCard", "readCompleted", "make room", "start removal"]),
        Row(
            "completed, and told at once", sealed + [.completed(success)],
            ["leave card", "removeCard", "readCompleted", "make room", "answer success", "start removal"], atOnce: true),
        Row(
            "a decline as a result", sealed + [.completed(result(.cardDeclined))],
            ["leave card", "removeCard", "readNotCompleted", "make room", "start removal"]),
        Row(
            "the card is taken", sealed + [.completed(success), .cardGone],
            ["userInterfaceDismissed", "answer success"]),
        Row(
            "the card is taken after the answer", sealed + [.completed(success), .cardGone], ["userInterfaceDismissed"],
            atOnce: true),
        Row(
            "the card stays", sealed + [.completed(success), .timeOver(.removal)],
            ["userInterfaceDismissed", "answer success"]),
        Row("the card is taken late", sealed + [.completed(success), .timeOver(.removal), .cardGone], []),
        Row("cancelled before its turn", [interrupted], ["stop", "start answer"]),
        Row("admitted after it was cancelled", [interrupted, .admitted(cardIsLeft: true)], ["refuse readCancelled"]),
        Row("its turn after it was cancelled", [interrupted, .turnCame], ["refuse readCancelled"]),
        Row("cancelled while a card is awaited", shown + [interrupted], ["stop", "start answer"]),
        Row("cancelled twice", shown + [interrupted, interrupted], []),
        Row("cancelled with a card", card + [interrupted], []),
        Row(
            "cancelled with a card, which pays", card + [interrupted, .sealed, .completed(success)],
            ["leave card", "removeCard", "readCompleted", "make room", "start removal"]),
        Row(
            "cancelled with a card that has to come back", card + [interrupted, .field(.readyForTap)],
            ["refuse readCancelled"]),
        Row("a card after it was cancelled", shown + [interrupted, .field(.cardDetected)], ["refuse readCancelled"]),
        Row(
            "stopped", shown + [interrupted, .failed(CancellationError())],
            ["readCancelled", "make room", "userInterfaceDismissed", "fail readCancelled"]),
        Row(
            "stopped by sleep",
            shown + [.interrupted(.readFromBackgroundError), .failed(CancellationError())],
            ["readCancelled", "make room", "userInterfaceDismissed", "fail readFromBackgroundError"]),
        Row(
            "stopped by a reader that is gone",
            shown + [.interrupted(.readerNotAvailable), .failed(CancellationError())],
            ["readNotCompleted", "make room", "userInterfaceDismissed", "fail readerNotAvailable"]),
        Row(
            "the reader is gone, with a card",
            card + [.interrupted(.readerNotAvailable), .failed(PaymentCardReaderSession.ReadError.cardReadFailed)],
            [
                "leave card", "removeCard", "readNotCompleted", "make room", "userInterfaceDismissed",
                "fail cardReadFailed",
            ]),
        Row(
            "the reader hangs after it was cancelled", shown + [interrupted, .timeOver(.answer(.readCancelled))],
            ["stop", "abandon", "readCancelled", "make room", "userInterfaceDismissed", "fail readCancelled"]),
        Row(
            "the reader hangs with a card", card + [.timeOver(.transaction(1))],
            [
                "stop", "abandon", "leave card", "removeCard", "readNotCompleted", "make room",
                "userInterfaceDismissed", "fail readerServiceError",
            ]),
        Row(
            "the card has to come back", card + [.field(.removeCard), .field(.readyForTap), .field(.cardDetected)],
            ["cardDetected", "start transaction 2", "check"]),
        Row("time is over for a card that is gone", card + [.field(.removeCard), .timeOver(.transaction(1))], []),
        Row(
            "time is over for an earlier card",
            card + [.field(.removeCard), .field(.readyForTap), .field(.cardDetected), .timeOver(.transaction(1))], []),
        Row(
            "cancelled while a card has to leave", card + [.field(.removeCard), interrupted], ["stop", "start answer"]),
        Row(
            "passes", card + [.completed(passes)],
            ["leave card", "removeCard", "readCompleted", "make room", "start removal"]),
        Row(
            "passes, told at once", card + [.completed(passes)],
            ["leave card", "removeCard", "readCompleted", "make room", "answer passes", "start removal"], atOnce: true),
        Row("time is over for a payment that may be stored", sealed + [.timeOver(.transaction(1))], []),
        Row(
            "refused by the store's policy", [.failed(PaymentCardReaderSession.ReadError.readNotAllowed)],
            ["make room", "fail readNotAllowed"]),
        Row(
            "the session ended during the wait",
            card + [.failed(PaymentCardReaderSession.ReadError.readerSessionExpired)],
            [
                "leave card", "removeCard", "readNotCompleted", "make room", "userInterfaceDismissed",
                "fail readerSessionExpired",
            ]),
        Row("sealed after it was given up", card + [.timeOver(.transaction(1)), .sealed], ["refuse stopped"]),
        Row(
            "ready after it was given up", card + [.timeOver(.transaction(1)), .field(.readyForTap)], ["refuse stopped"]
        ),
        Row(
            "completed after it was given up", card + [.timeOver(.transaction(1)), .completed(success)],
            ["refuse stopped"]
        ),
        Row("failed after it was given up", card + [.timeOver(.transaction(1)), .failed(CancellationError())], []),
        Row("cancelled after its end", sealed + [.completed(success), interrupted], []),
    ]

    @Test("what happens, and what is done", arguments: rows)
    func row(_ row: Row) { #expect(Self.last(row.events, atOnce: row.atOnce) == row.actions) }

    @Test("a read that has failed is over: nothing more is done, whatever happens")
    func over() {
        let events: [Event] = [
            .interrupted(.readCancelled), .timeOver(.transaction(1)), .timeOver(.removal), .cardGone,
        ]
        for event in events {
            #expect(Self.last([.failed(CancellationError()), event]).isEmpty)
        }
    }
}
