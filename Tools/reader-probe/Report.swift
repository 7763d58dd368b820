import EMVContactless
import Foundation
import SmartCard

/// What `--json` prints.  The keys are documented in reader-probe(1) and do not change; absent values are null.
enum Report {
    struct Reader: Encodable, Sendable {
        let name: String
        let backend: String
        @OrNull var vendor: String?
        @OrNull var serialNumber: String?

        init(_ identity: ReaderIdentity) {
            name = identity.name
            backend = identity.backend.rawValue
            _vendor = OrNull(wrappedValue: identity.vendor)
            _serialNumber = OrNull(wrappedValue: identity.serialNumber)
        }
    }

    /// A reader and what lies on it.
    struct Slot: Encodable {
        let reader: Reader
        /// `empty`, `card`, `mute`, `unknown`
        let state: String
        @OrNull var atr: String?
        /// For a person; may change.
        @OrNull var technology: String?
        @OrNull var inUse: Bool?

        init(_ identity: ReaderIdentity, _ state: SlotState) {
            reader = Reader(identity)
            switch state {
            case .empty: self.state = "empty"
            case .card(let atr, let held):
                self.state = "card"
                self.atr = atr.bytes.hex
                technology = atr.technology
                inUse = held
            case .muteCard: self.state = "mute"
            case .unknown: self.state = "unknown"
            }
        }
    }

    struct List: Encodable {
        let readers: [Slot]
    }

    struct Card: Encodable {
        let atr: String
        @OrNull var uid: String?
        let type: String
        let technology: String
        @OrNull var ats: String?
        let historicalBytes: String
        let defects: [String]

        init(_ summary: CardSummary) {
            atr = summary.atr.bytes.hex
            uid = summary.uid?.hex
            type = summary.type
            technology = summary.technology
            ats = summary.ats?.bytes.hex
            historicalBytes =
                if case .typeA(let bytes, _) = summary.atr.contactless { bytes.hex } else {
                    summary.atr.historicalBytes.hex
                }
            defects = summary.atr.defects.map(\.description)
        }
    }

    /// For `card` and `emv`.
    struct Probe<Application: Encodable>: Encodable {
        let reader: Reader
        let card: Card
        /// `PPSE`, `PSE`, `AID list`, or null if there is no application.
        @OrNull var directory: String?
        let applications: [Application]
        let findings: [String]
        /// Why reading ended before its time; null if it did not.
        @OrNull var interruption: String?
    }

    struct Exchange: Encodable {
        let command: String
        /// The response data, masked; null if there was no response.
        @OrNull var data: String?
        @OrNull var status: String?
        @OrNull var statusName: String?
        @OrNull var error: String?
    }

    struct Exchanges: Encodable {
        let reader: Reader
        let exchanges: [Exchange]
    }

    static func print(_ report: some Encodable, redactor: Redactor = Redactor()) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        try output(encoder, report, redactor)
    }

    /// On one line, for streams of objects.
    static func printLine(_ report: some Encodable) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        try output(encoder, report, Redactor())
    }

    private static func output(_ encoder: JSONEncoder, _ report: some Encodable, _ redactor: Redactor) throws {
        Terminal.print(redactor.redacted(String(decoding: try encoder.encode(report), as: UTF8.self)))
    }
}

/// An optional that is encoded as null rather than left out, so that every key is always there.
@propertyWrapper
struct OrNull<Value: Encodable>: Encodable {
    var wrappedValue: Value?

    init(wrappedValue: Value?) { self.wrappedValue = wrappedValue }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        if let wrappedValue { try container.encode(wrappedValue) } else { try container.encodeNil() }
    }
}

extension OrNull: Sendable where Value: Sendable {}

/// Takes account numbers and names that a card has shown out of everything that is printed, wherever else the card has
/// put them: in a label, a log record, an object that nobody knows.
struct Redactor {
    /// More numbers and names than any card has; a card with thousands must not keep the search going for hours.
    private static let maximumSecrets = 32

    private var replacements: [(secret: String, shown: String)] = []

    init() {}

    init(hiding inspection: CardInspection) {
        self.init(
            hiding: inspection.applications.flatMap(\.elements).map { ($0.object.tag, Array($0.object.value)) })
    }

    init(hiding objects: [(tag: TLVTag, value: [UInt8])]) {
        for (tag, value) in objects {
            switch SensitiveData.exposures[tag] {
            case .accountNumber:
                hide(digits: String(value.hex.prefix { ("0"..."9").contains($0) }))
            case .nothing where [0x5F20, 0x9F0B].contains(tag):
                let name = String(decoding: value, as: UTF8.self).trimmingCharacters(in: .whitespaces)
                if name.count >= 5 { hide(name, shown: String(repeating: "*", count: name.count)) }
            default: break
            }
        }
        // The longest first, so that none leaves a part of another behind.
        replacements.sort { $0.secret.count > $1.secret.count }
    }

    private mutating func hide(digits: String) {
        guard digits.count >= 12 else { return }
        hide(digits, shown: SensitiveData.maskingAccountNumber(digits))
    }

    private mutating func hide(_ secret: String, shown: String) {
        guard replacements.count < 2 * Self.maximumSecrets, !replacements.contains(where: { $0.secret == secret })
        else { return }
        replacements.append((secret, shown))
        let coded = Array(secret.utf8).hex
        replacements.append((coded, String(repeating: "*", count: coded.count)))
    }

    func redacted(_ text: String) -> String {
        replacements.reduce(text) { $0.replacingOccurrences(of: $1.secret, with: $1.shown) }
    }
}
