import EMVContactless
import Foundation
import SmartCard
import ToolSupport

/// The keys are documented in reader-probe(1) and stable; absent values are null.
extension Report {
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

    /// A reader and its card.
    struct Slot: Encodable {
        let reader: Reader
        /// `empty`, `card`, `mute`, `unknown`
        let state: String
        @OrNull var atr: String?
        /// The technology for people; may change.
        @OrNull var technology: String?
        @OrNull var inUse: Bool?
        /// The reason why the state is unknown; null if it is known.
        @OrNull var error: String?

        init(_ seen: SeenReader) {
            reader = Reader(seen.identity)
            error = seen.error.map { "\($0)" }
            switch seen.state {
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

    /// The report of `card` and `emv`.
    struct Probe<Application: Encodable>: Encodable {
        let reader: Reader
        let card: Card
        /// `PPSE`, `PSE`, `AID list`, or null if there is no application.
        @OrNull var directory: String?
        let applications: [Application]
        let findings: [String]
        /// The error that interrupted reading; null if none did.
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
}
