import Foundation
import SmartCard
import ToolReaders
import ToolSupport
import WalletPasses

/// The keys are documented in reader-probe(1) and stable; absent values are null.
extension Report {
    /// The report of `pass`.  What passes contain is masked, character by character, unless it is to be shown.
    struct Passes: Encodable {
        struct Field: Encodable {
            /// `redemptionValue`, `objectID`, `tapID` and so on.
            let name: String
            let value: String
        }

        /// A pass of Google's wallet, or its customer.
        struct Object: Encodable {
            /// `loyalty`, `offer`, `giftCard`, … or `customer`
            let kind: String
            let fields: [Field]
        }

        struct Entry: Encodable {
            let merchant: String
            /// `success`, `notFound`, `notActivated`, …
            let status: String
            /// The status in words.
            let text: String
            /// The issuer's text for the merchant; hexadecimal if it is no text.
            @OrNull var data: String?
            /// The phone's clock: `2026-11-25T08:45:12Z`; null from Google's wallet.
            @OrNull var date: String?
            @OrNull var mobileToken: String?
            /// All that Google's wallet handed over.
            let objects: [Object]
        }

        let reader: Reader
        /// `apple` or `google`; null if no wallet answered.
        @OrNull var wallet: String?
        /// True for a card without passes, or a phone that does not show any.
        let isPlainCard: Bool
        /// The merchants that were asked for.
        let entries: [Entry]
        /// Why the wallet as a whole could not be read.
        @OrNull var failure: String?
        /// True if there is a pass that was accepted.
        let isRead: Bool
    }
}

extension Report.Passes {
    init(_ outcome: PassReading.Outcome, reader: ReaderIdentity, isRevealed: Bool) {
        let mask = PersonalMask(isRevealed: isRevealed)
        self.reader = Report.Reader(reader)
        _wallet = OrNull(wrappedValue: outcome.wallet.map { "\($0)" })
        isPlainCard = outcome.isPlainCard
        entries = outcome.entries.map { Entry($0, mask) }
        _failure = OrNull(wrappedValue: outcome.failure.map { "\($0)" })
        isRead = outcome.entries.contains { $0.pass != nil }
    }
}

extension Report.Passes.Entry {
    fileprivate init(_ entry: PassReading.Entry, _ mask: PersonalMask) {
        (merchant, status, text) = (entry.id, entry.status.name, "\(entry.status)")
        let pass = entry.pass
        _data = OrNull(wrappedValue: pass.map { mask.shown($0.data) })
        _date = OrNull(wrappedValue: pass?.date.map { $0.formatted(.iso8601) })
        _mobileToken = OrNull(wrappedValue: pass?.mobileToken.map { mask.shown($0) })
        objects = (pass?.objects ?? []).map { Report.Passes.Object($0, mask) }
    }
}

extension Report.Passes.Object {
    fileprivate init(_ object: SmartTapObject, _ mask: PersonalMask) {
        typealias Value = (name: String, value: String?)
        let values: [Value]
        let issuer: SmartTapIssuer?
        switch object {
        case .pass(let pass):
            (kind, issuer) = ("\(pass.kind)", pass.issuer)
            values = [
                ("objectID", pass.objectID.map { mask.shown($0.hex) }),
                ("redemptionValue", pass.redemptionValue.map { mask.shown($0) }),
                ("pin", pass.pin.map { mask.shown($0) }),
                ("verificationCode", pass.verificationCode.map { mask.shown($0) }),
                ("expiration", pass.expiration.map { mask.shown($0) }),
                ("transactionCounter", pass.transactionCounter.map { mask.shown($0) }),
            ]
        case .customer(let customer):
            (kind, issuer) = ("customer", customer.issuer)
            values = [
                ("identifier", customer.identifier.map { mask.shown($0) }),
                ("language", customer.language.map { mask.shown($0) }),
                ("tapID", customer.tapID.map { mask.shown($0) }),
            ]
        }
        let first: Value = ("issuer", issuer.map { "\($0.kind.map { "\($0)" } ?? "unknown") \($0.identifier.hex)" })
        fields = ([first] + values).compactMap { name, value in
            value.map { Report.Passes.Field(name: name, value: $0) }
        }
    }
}

extension PersonalMask {
    fileprivate func shown(_ data: PassData) -> String {
        let text = data.text.flatMap { text in
            text.unicodeScalars.contains { $0.properties.generalCategory == .control } ? nil : text
        }
        return shown(text ?? data.bytes.hex)
    }
}

extension PassReading.Status {
    /// The name in JSON.
    fileprivate var name: String {
        switch self {
        case .success: "success"
        case .notFound: "notFound"
        case .notActivated: "notActivated"
        case .wrongParameters: "wrongParameters"
        case .wrongLength: "wrongLength"
        case .userInterventionRequired: "userInterventionRequired"
        case .incorrectData: "incorrectData"
        case .unsupportedVersion: "unsupportedVersion"
        case .readFailure: "readFailure"
        }
    }
}

/// Passes as text for people.
struct PassText {
    private let report: Report.Passes

    init(_ report: Report.Passes) { self.report = report }

    var text: String {
        let reader = Self.field("Reader", "\(report.reader.name)  (\(report.reader.backend))")
        let end = Terminal.styled(report.isRead ? "Passes read" : "No pass read", .bold)
        return ([reader] + lines + ["", end]).joined(separator: "\n")
    }

    /// The passes, without reader and end.
    var lines: [String] {
        var lines = [Self.field("Wallet", wallet)]
        if let failure = report.failure {
            lines.append("   " + Terminal.styled("! \(failure.withoutControls)", .warning))
        }
        for entry in report.entries {
            lines += ["", Self.field("Merchant", entry.merchant), Self.field("Status", entry.text)]
            let values = [("Pass", entry.data), ("Phone's time", entry.date), ("Token", entry.mobileToken)]
            lines += values.compactMap { name, value in value.map { Self.field(name, $0) } }
            for object in entry.objects {
                lines.append(Self.field("Object", object.kind.words))
                lines += object.fields.map { "     \($0.name.words.padding(to: 22)) \($0.value.withoutControls)" }
            }
        }
        return lines
    }

    private var wallet: String {
        switch report.wallet {
        case "apple": "Apple's"
        case "google": "Google's"
        default: report.isPlainCard ? "none: a plain card, or a phone that shows no passes" : "none that can be read"
        }
    }

    /// A field of one line: no text of a phone looks like a line of this report.
    private static func field(_ name: String, _ value: String) -> String { CardText.field(name, value.withoutControls) }
}
