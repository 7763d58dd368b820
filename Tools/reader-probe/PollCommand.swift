import ArgumentParser
import CardReaders
import Logging
import SmartCard
import SmartCardPN532
import Synchronization
import ToolReaders
import ToolSupport
import WalletPasses

struct PollCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "poll", abstract: "Looks for cards with the reader's own chip, and shows what it sends meanwhile.",
        discussion: """
            Polls for cards of types A and B and FeliCa until one answers. With --frames, the polls alternate with the frames \
            that tell phones what a terminal is for; each kind is shown with its checksum and with what answers, and \
            finally how often it was sent, and how long a loop takes.

            For an ACR122U and for PN532 boards. Other programs do not see cards on the reader meanwhile.

            reader-probe poll --frames --purpose pass --card phone-apple
            """)

    enum Purpose: String, ExpressibleByArgument, CaseIterable {
        case payment, pass
        case passOrPayment = "pass-or-payment"
        case passAndPayment = "pass-and-payment"
        case identity, transit

        fileprivate var frame: PollingFrame {
            switch self {
            case .payment: .payment
            case .pass: .passOnly
            case .passOrPayment: .passOrPayment
            case .passAndPayment: .passAndPayment
            case .identity: .identity
            case .transit: .transportForLondon
            }
        }
    }

    @Flag(help: "Send frames for phones between the polls, and show them.")
    var frames = false

    @Option(
        help: .init(
            """
            What the frames say that the terminal is for (implies --frames): payment, pass, pass-or-payment, pass-and-payment, \
            identity (documents), or transit (as Transport for London). Default: pass-or-payment.
            """, valueName: "purpose"))
    var purpose: Purpose?

    @OptionGroup var readerOptions: ReaderOptions

    @OptionGroup var format: JSONOption

    func run() async throws {
        guard let reader = try await readerOptions.reader(withChip: try await readerOptions.readers()) else {
            throw FieldCapabilities.noBroadcast
        }
        let purpose = purpose ?? .passOrPayment
        let frame = frames || self.purpose != nil ? BroadcastFrame(purpose.frame.bytes) : nil
        let seen = Mutex(SentFrames(purpose: purpose))
        let (json, logger) = (format.json, readerOptions.logger)
        if !json { Terminal.print(Terminal.styled(reader.identity.name, .bold)) }
        let event = try await reader.withChip { chip in
            try await chip.poll(
                [.typeA, .typeB, .felica212], within: readerOptions.patience ?? .seconds(1_000_000_000),
                every: .milliseconds(50), broadcast: frame
            ) { broadcast in
                let (row, isNew) = seen.withLock { $0.add(broadcast) }
                logger?.trace("frame: \(row.text)")
                if isNew, !json { Terminal.print("   " + row.text) }
            }
        }
        let report = Report.Polling(reader: reader.identity, sent: seen.withLock { $0 }, event)
        if json {
            try Report.print(report)
        } else {
            Terminal.print(report.text)
        }
        if event == nil { throw CardError(.cardAbsent) }
    }
}

/// The frames that were sent: one row for each technology and outcome.
private struct SentFrames {
    let purpose: PollCommand.Purpose
    private(set) var rows: [Report.SentFrame] = []
    /// The times of the frames of the first technology, and those between them.
    private(set) var loops = 0
    private var last: ContinuousClock.Instant?
    private var periods: [Duration] = []
    private static let maximumPeriods = 1000

    init(purpose: PollCommand.Purpose) { self.purpose = purpose }

    /// - Returns: the row of the frame; true if it is new.
    mutating func add(_ broadcast: Broadcast) -> (Report.SentFrame, Bool) {
        if broadcast.technology == .typeA {
            loops += 1
            if let last, periods.count < Self.maximumPeriods { periods.append(broadcast.instant - last) }
            last = broadcast.instant
        }
        let row = Report.SentFrame(purpose.rawValue, broadcast)
        if let index = rows.firstIndex(where: { $0.isSame(row) }) {
            rows[index].count += 1
            return (rows[index], false)
        }
        // A reader that answers otherwise each time cannot fill the memory.
        if rows.count < 64 { rows.append(row) }
        return (row, true)
    }

    /// The median time of a loop, in milliseconds; nil for less than two loops.
    var period: Double? {
        let sorted = periods.sorted()
        guard !sorted.isEmpty else { return nil }
        return (sorted[sorted.count / 2] / .milliseconds(1) * 10).rounded() / 10
    }
}

extension Report {
    /// A frame that was sent, as printed by `poll --json`.
    fileprivate struct SentFrame: Encodable {
        /// `payment`, `pass`, …
        let purpose: String
        /// `type-a` or `type-b`
        let technology: String
        /// Hexadecimal, with checksum.
        let frame: String
        /// `silence`, `answer` or `failure`
        let outcome: String
        /// The bytes that answered, in hexadecimal.
        @OrNull var answer: String?
        @OrNull var error: String?
        var count = 1

        init(_ purpose: String, _ broadcast: Broadcast) {
            self.purpose = purpose
            technology = broadcast.technology.name
            frame = broadcast.frame.hex
            switch broadcast.outcome {
            case .silence: outcome = "silence"
            case .answer(let bytes):
                outcome = "answer"
                answer = bytes.hex
            case .failure(let failure):
                outcome = "failure"
                error = "\(failure)"
            }
        }

        func isSame(_ other: SentFrame) -> Bool {
            (technology, outcome, answer, error) == (other.technology, other.outcome, other.answer, other.error)
        }

        var text: String {
            let what = answer.map { "answer \($0)" } ?? error ?? outcome
            return "\(purpose)  \(technology)  \(Terminal.styled(frame, .dim))  \(what)"
        }
    }

    /// The findings of polling, as printed by `poll --json`.
    fileprivate struct Polling: Encodable {
        struct Card: Encodable {
            /// `type-a`, `type-b` or `felica`
            let technology: String
            let identifier: String
            @OrNull var ats: String?
        }

        let reader: Reader
        let frames: [SentFrame]
        /// The loops without a card in which frames were sent.
        let loops: Int
        /// The median time of a loop, in milliseconds.
        @OrNull var period: Double?
        /// The cards that answered: none, one, or those that collide.
        let cards: [Card]

        init(reader: ReaderIdentity, sent: SentFrames, _ event: PollingEvent?) {
            self.reader = Reader(reader)
            (frames, loops) = (sent.rows, sent.loops)
            cards =
                switch event {
                case .found(let target, _): [Card(target)]
                case .collision(let targets): targets.map(Card.init)
                case .lost, nil: []
                }
            period = sent.period
        }

        var text: String {
            var lines: [String] = []
            if loops > 0 {
                let counts = frames.map { "\($0.technology) \($0.count)" }.joined(separator: ", ")
                lines.append(
                    CardText.field("Loops", "\(loops)" + (period.map { ", one every \($0) ms" } ?? "") + " (\(counts))")
                )
            }
            for card in cards {
                let ats = card.ats.map { ", ATS \($0)" } ?? ""
                lines.append(CardText.field("Card", "\(card.technology) \(card.identifier)\(ats)"))
            }
            if cards.count > 1 { lines.append(CardText.field("", "more than one: remove all but one")) }
            if cards.isEmpty { lines.append(CardText.field("Card", "none")) }
            return lines.joined(separator: "\n")
        }
    }
}

extension Report.Polling.Card {
    init(_ target: PN532Target) {
        identifier = target.identifier.hex
        switch target.card {
        case .typeA(_, _, _, let bytes):
            technology = PollingTechnology.typeA.name
            ats = bytes?.hex
        case .typeB: technology = PollingTechnology.typeB.name
        case .felica: technology = PollingTechnology.felica212.name
        }
    }
}

extension PollingTechnology {
    fileprivate var name: String {
        switch self {
        case .typeA: "type-a"
        case .typeB: "type-b"
        case .felica212, .felica424: "felica"
        }
    }
}
