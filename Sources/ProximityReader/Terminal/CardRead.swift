import CardEncryption
import EMVContactless
import Foundation
import SmartCard

/// The result of a transaction, from which a ``PaymentCardReadResult`` is made.
struct CardRead {
    private let report: ContactlessTerminal.Report
    private let transaction: Transaction
    let id: String
    /// The terminal's names of the applications.
    private let applications: [AID]

    init(_ report: ContactlessTerminal.Report, _ transaction: Transaction, id: String, applications: [AID]) {
        self.report = report
        self.transaction = transaction
        self.id = id
        self.applications = applications
    }

    var outcome: Outcome { report.outcome }

    /// The reason for which there was no payment; nil if the card agreed to one.
    var error: PaymentCardReaderSession.ReadError? {
        switch outcome.kind {
        // There is no PIN pad: without verification there is no payment.
        case .approved where cvm == .onlinePIN, .onlineRequest where cvm == .onlinePIN: .pinNotAllowed
        case .approved, .onlineRequest: nil
        case .declined: .paymentCardDeclined
        case .tryAgain: .cardReadFailed
        case .tryAnotherInterface: .cardNotSupported
        case .selectNext, .endApplication:
            if report.final.kernel != nil { .paymentReadFailed } else { wasLost ? .cardReadFailed : .cardNotSupported }
        }
    }

    /// True if an application of the card and a kernel for it were found.
    var hasApplication: Bool { report.final.kernel != nil }

    var needsAnotherInterface: Bool { outcome.kind == .tryAnotherInterface }

    /// True if the card left each time before an application was selected.
    private var wasLost: Bool { report.exchanges.last.map { $0.status == nil } ?? false }

    /// The required cardholder verification method; nil for none.
    var cvm: Outcome.CVM? { outcome.cvm }

    /// Returns the kernel's data record, the agreed amounts, and the application's name: concatenated BER-TLV objects;
    /// nil if there is no record.
    func clearData() throws -> ClearCardData? {
        guard let record = outcome.dataRecord else { return nil }
        let terms = Self.terms.filter { record[$0] == nil }.map { $0.encode(transaction.dataObjects[$0] ?? []) }
        let parts =
            record.elements.map { $0.tag.encode($0.value) } + terms + [name.map { TLVTag(0x84).encode($0) } ?? []]
        return try ClearCardData(capacity: parts.reduce(0) { $0 + $1.count }) { buffer in
            var count = 0
            for part in parts {
                UnsafeMutableRawBufferPointer(rebasing: buffer[count...]).copyBytes(from: part)
                count += part.count
            }
            return count
        }
    }

    /// Returns the header of the seal, which is bound to the data.
    func header(_ session: TerminalSession, reader: ReaderIdentity) -> JWEHeader {
        var fields = ["sid": session.id, "rid": id, "mid": session.token.merchant]
        fields["tpid"] = session.token.terminalProfile
        fields["rdr"] = reader.serialNumber ?? reader.name
        return JWEHeader(
            keyID: session.token.recipient?.keyID, type: "card-data+jwe", contentType: "application/emv-tlv",
            fields: fields)
    }

    func result(_ sealed: SealedCardData?) -> PaymentCardReadResult {
        let general = generalData
        return PaymentCardReadResult(
            id: id, paymentCardData: sealed?.description,
            generalCardData: general.isEmpty ? nil : Data(general).base64EncodedString(),
            applicationTypeIdentifier: knownName?.hex,
            outcome: error == nil ? .success : outcome.kind == .declined ? .cardDeclined : .failure,
            cardEffectiveState: effectiveState, cardExpirationState: expirationState,
            facts: report.receiptFacts, needsAnotherInterface: needsAnotherInterface)
    }

    // MARK: In the clear

    private var name: [UInt8]? { report.final.name }

    /// The terminal's name of the application: a card may put anything after an AID.
    private var knownName: [UInt8]? {
        applications.map(\.bytes).filter { name?.starts(with: $0) ?? false }.max { $0.count < $1.count }
    }

    /// The data that tells the payment service how the transaction went, without identifying the card.
    private var generalData: [UInt8] {
        let record = outcome.dataRecord
        let terms = transaction.dataObjects.filter { Self.terms.contains($0.key) }
        var bytes: [UInt8] = []
        func add(_ tag: TLVTag, _ value: [UInt8]?) { if let value { bytes += tag.encode(value) } }
        for tag in Self.generalTags { add(tag, record?[tag] ?? (record == nil ? nil : terms[tag])) }
        // The 4 bytes of Kernel 3 (Book C-3, 4.1.1.1); in any other length a card may put anything there.
        if let value = record?[0x9F6E], value.count == 4 { add(0x9F6E, value) }
        add(0x4F, knownName)
        if let facts = report.receiptFacts { bytes += facts.encoded } else { add(0x95, record?[0x95]) }
        return bytes
    }

    /// The terms of the charge, which the data record of mag-stripe mode lacks (Book C-2, table 4.10).
    private static let terms: [TLVTag] = [0x9F02, 0x9F03, 0x5F2A, 0x9A, 0x9C]

    private static let generalTags: [TLVTag] = [
        0x9F02, 0x9F03, 0x5F2A, 0x9A, 0x9C, 0x9F1A, 0x9F33, 0x82, 0x9F36, 0x9F39,
    ]

    private var effectiveState: PaymentCardReadResult.CardEffectiveState? {
        (outcome.effectiveDate ?? outcome.dataRecord?[0x5F25]).map { value in
            guard let first = CalendarDate(packed: value) else { return .invalid }
            return first <= transaction.time.date ? .active : .inactive
        }
    }

    /// The state of the expiration date: from tag 5F24, otherwise from the track: `D YYMM`.
    private var expirationState: PaymentCardReadResult.CardExpirationState? {
        guard let record = outcome.dataRecord else { return nil }
        if let value = record[0x5F24] {
            guard let last = CalendarDate(packed: value) else { return .invalid }
            return last < transaction.time.date ? .expired : .notExpired
        }
        guard let track = record[0x57] else { return .unknown }
        return Self.expiration(ofTrack: track, on: transaction.time.date)
    }

    private static func expiration(
        ofTrack track: [UInt8], on day: CalendarDate
    ) -> PaymentCardReadResult.CardExpirationState {
        let digits = track.flatMap { [Int($0 >> 4), Int($0 & 15)] }
        guard let separator = digits.firstIndex(of: 0xD), separator + 4 < digits.count else { return .invalid }
        let date = digits[(separator + 1)...(separator + 4)]
        guard date.allSatisfy({ $0 < 10 }) else { return .invalid }
        let parts = Array(date)
        let (year, month) = (2000 + parts[0] * 10 + parts[1], parts[2] * 10 + parts[3])
        guard (1...12).contains(month) else { return .invalid }
        return (year, month) < (day.year, day.month) ? .expired : .notExpired
    }
}

extension CardRead {
    /// The account number; nil if the card did not supply it.
    var accountNumber: PAN? {
        let record = outcome.dataRecord
        return record?[0x5A].flatMap { PAN(packed: $0) } ?? record?[0x57].flatMap { (try? Track2($0))?.pan }
    }

    /// The PAN sequence number, tag 5F34.
    var sequenceNumber: UInt8? { outcome.dataRecord?[0x5F34].flatMap { $0.count == 1 ? $0[0] : nil } }

    /// The kernel's findings about the card.
    var findings: TerminalVerificationResults {
        var findings = outcome.dataRecord?[0x95].flatMap { TerminalVerificationResults($0) } ?? []
        switch outcome.isAuthentic {
        case true?: break
        case false?: findings.insert(.ddaFailed)
        case nil: findings.insert(.offlineDataAuthenticationNotPerformed)
        }
        return findings
    }
}
