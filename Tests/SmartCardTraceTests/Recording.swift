import EMVContactless
import SmartCard
import SmartCardSimulator
import SmartCardTrace
import Synchronization

/// A trace that is being recorded in memory.
final class Recording: Sendable {
    private let text: Text
    let recorder: TraceRecorder

    private final class Text: Sendable {
        let bytes = Mutex<[UInt8]>([])
    }

    init() throws {
        let text = Text()
        self.text = text
        recorder = TraceRecorder(try TraceWriter { line in text.bytes.withLock { $0 += line } })
    }

    /// What has been recorded so far, read back from its text.
    func trace() throws -> Trace { try Trace(text: String(decoding: text.bytes.withLock { $0 }, as: UTF8.self)) }
}

/// A virtual reader with `card` on it.
func virtualReader(_ card: String) -> VirtualReader {
    let device = SoftwareACR122U()
    if let card = VirtualCards.named(card) { device.insert(card) }
    return VirtualReader(device)
}

/// A purchase, on a day when the virtual cards are valid.
func purchase(amount: UInt64, unpredictableNumber: [UInt8], day: Int = 1) -> Transaction? {
    guard let euro = Currency["EUR"], let date = CalendarDate(year: 2025, month: 6, day: day),
        let time = TerminalTime(date, hour: day, minute: 0, second: 0)
    else { return nil }
    return Transaction(
        .purchase, amount: amount, currency: euro, time: time, unpredictableNumber: unpredictableNumber)
}

/// What comes of `transaction` on `reader`.
func pay(_ transaction: Transaction, on reader: any CardReader) async throws -> Outcome {
    let field = CardReaderField(reader)
    let terminal = ContactlessTerminal(
        EntryPoint(configuration: .test, keys: .published))
    let report = try await terminal.perform(transaction, in: field) { _ in }
    await field.release(.leave)
    return report.outcome
}
