import EMVContactless
import SmartCard
import SmartCardSimulator
import SmartCardTrace
import ToolReaders
import ToolSupport

/// The test authority's signatures in a trace: the card certificates, and the signatures by their keys, that
/// ``Reissue`` leaves there.  They contain no account number apart from that in the data objects.
enum TestSignatures {
    /// The values of those objects of `trace` that stand authentication under the test authorities.
    static func all(in trace: Trace) -> Set<[UInt8]> {
        let messages = TraceMessage.all(in: trace)
        return RecordedApplication.all(in: messages).reduce(into: []) { values, application in
            values.formUnion(Self.values(application, messages))
        }
    }

    private static func values(_ application: RecordedApplication, _ messages: [TraceMessage]) -> [[UInt8]] {
        let card = application.objects(messages)
        let signatures = ([0x93, 0x9F46] as [TLVTag]).compactMap { card[$0] }
        guard signatures.contains(where: { $0.contains { $0 != 0 } }), let keys = keys(application, card),
            let name = AID(card[0x84] ?? application.name)
        else { return [] }
        let terminal = application.terminalData(card)
        let date = terminal.byTag[0x9A].flatMap { CalendarDate(packed: $0) } ?? TerminalTime.now.date
        let authentication = OfflineDataAuthentication(keys: keys, environment: .test, aid: name, date: date)
        let records = application.signedRecords(card, messages)
        var values: [[UInt8]] = []
        if let signature = card[0x93] {
            let purposes: [SignaturePurpose] = [.offlineApproval, .onlineAuthorization]
            let isSigned = purposes.contains { purpose in
                (try? authentication.sda(of: records, for: purpose) { card[$0] }.get()) != nil
            }
            if isSigned { values.append(signature) }
        }
        if let certificate = card[0x9F46],
            (try? authentication.iccKey(signing: records) { card[$0] }.get()) != nil
        {
            values.append(certificate)
            // Everybody has the key that signs these.
            for exchange in application.answers {
                let list = try? TLVList(messages[exchange.answer].bytes)
                values += list?.flattened.filter { $0.tag == 0x9F4B }.map { Array($0.value) } ?? []
            }
        }
        return values
    }

    /// The key of the test authority that would have signed certificates of such lengths.
    private static func keys(_ application: RecordedApplication, _ card: [TLVTag: [UInt8]]) -> CAPublicKeys? {
        let number = (card[0x5A] ?? card[0x57]).map { PackedNumber.digits($0) }
        guard let number, let lengths = Reissue.lengths(card),
            let authority = TestCertification(
                rid: Array((card[0x84] ?? application.name).prefix(5)), accountNumber: number, lengths: lengths)?
                .authority,
            let key = try? CAPublicKey(
                environment: .test, rid: authority.rid, index: authority.index, modulus: authority.modulus,
                exponent: authority.exponent, checksum: authority.checksum,
                expiration: CalendarDate(packed: authority.expires))
        else { return nil }
        return CAPublicKeys([key])
    }
}
