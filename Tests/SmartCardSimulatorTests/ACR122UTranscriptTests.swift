import TestSupport
import Testing

@testable import SmartCardSimulator

/// Exchanges with real readers, each replayed against the software reader of that firmware (``ReaderCapture/all``).
@Suite struct ACR122UTranscriptTests {
    private func replay(_ capture: ReaderCapture) -> [String] {
        let bus = ACR122UBus(capture.firmware.profile, faults: capture.faults)
        // A timeout is one without a card: the card comes after it.
        let (early, late) = (capture.before.prefix { $0.hasSuffix("00 84 00 00 08") }, capture.before)
        for message in early { _ = bus.send(message) }
        if let card = capture.card { bus.reader.insert(card.card) }
        for message in late.dropFirst(early.count) { _ = bus.send(message) }
        return bus.send(capture.command)
    }

    @Test(
        "the software reader answers as the real one did, but for the differences that are listed",
        arguments: ReaderCapture.all)
    func same(_ capture: ReaderCapture) {
        let answers = replay(capture)
        if let difference = capture.difference {
            expectEqual(answers, difference.answers, "the listed difference is another one, or is none any more")
            #expect(difference.answers != capture.answers && !difference.reason.isEmpty)
        } else {
            expectEqual(answers, capture.answers)
        }
    }

    /// Each of firmware 2.14, 2.15, 2.16 and the Touchatag's, with and without a card.
    @Test func enough() {
        #expect(ReaderCapture.all.count >= 18 && ReaderCapture.all.filter { $0.difference != nil }.count == 3)
        expectEqual(Set(ReaderCapture.all.map(\.firmware)).count, 5)
    }
}
