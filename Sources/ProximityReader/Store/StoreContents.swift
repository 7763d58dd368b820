import CardEncryption
import Crypto
import Foundation
import GRDB
import Logging

/// The data of a payment on the disk, apart from its entry.
struct StoredContent {
    let paymentCardData: String
    let generalCardData: String
    /// The application's data; empty if there is none.
    let attachment: Data
    /// The data for the receipt, in BER-TLV; empty if there is none.
    let facts: Data
    /// The signature of the payment's canonical form: the two numbers of ECDSA.
    let signature: Data

    var fields: [UInt8] {
        var fields = StoreFields(
            capacity: 256 + paymentCardData.utf8.count + generalCardData.utf8.count + attachment.count + facts.count)
        fields.append(paymentCardData)
        fields.append(generalCardData)
        fields.append(attachment)
        fields.append(facts)
        fields.append(signature)
        return fields.bytes
    }

    init(_ payment: RecordStore.Payment, signature: Data) {
        paymentCardData = payment.paymentCardData
        generalCardData = payment.generalCardData
        attachment = payment.attachment ?? Data()
        facts = payment.facts
        self.signature = signature
    }

    init?(fields: Data) {
        guard let fields = StoreFields.split(fields), fields.count == 5 else { return nil }
        paymentCardData = String(decoding: fields[0], as: UTF8.self)
        generalCardData = String(decoding: fields[1], as: UTF8.self)
        (attachment, facts, signature) = (fields[2], fields[3], fields[4])
    }

    private var attachmentText: String? { attachment.isEmpty ? nil : attachment.base64EncodedString() }

    func canonicalForm(of id: String) -> Data {
        StoredPaymentCardReadResult.canonicalForm(
            id: id, paymentCardData: paymentCardData, generalCardData: generalCardData, attachment: attachmentText)
    }

    /// Returns the payment in the form for a payment service.
    func result(of id: String) throws -> StoredPaymentCardReadResult {
        let signature = try P256.Signing.ECDSASignature(rawRepresentation: signature).derRepresentation
        return StoredPaymentCardReadResult(
            id: id, paymentCardData: paymentCardData, generalCardData: generalCardData, attachment: attachmentText,
            signature: signature.base64EncodedString())
    }
}

/// The stored payments, sealed with the device's key, each in the row of its entry.
extension StoreBook {
    func sealed(_ content: StoredContent, as number: Int64) throws -> Data {
        try key().seal(content.fields, as: Self.name(number))
    }

    func contents(of payments: [StoreLedger.Payment]) throws -> [StoredPaymentCardReadResult] {
        try zip(payments, storedContents(of: payments)).map { try $1.result(of: $0.id) }
    }

    func storedContents(of payments: [StoreLedger.Payment]) throws -> [StoredContent] {
        try reading { database in try payments.map { try content(of: $0, database) } }
    }

    func content(of payment: StoreLedger.Payment, _ database: Database) throws -> StoredContent {
        let statement = try database.cachedStatement(
            sql: "SELECT sequence, content FROM entry WHERE sequence = ? AND content IS NOT NULL")
        guard let row = try Row.fetchOne(statement, arguments: [payment.entry]) else {
            throw StoreFailure.damaged("payment \(payment.id) is missing")
        }
        return try content(row, of: payment)
    }

    /// Checks the contents of the table.
    ///
    /// - Throws: ``StoreFailure`` unless there is exactly one content for each payment.
    func checkContents(_ database: Database) throws {
        let rows = try Row.fetchCursor(
            database,
            sql: "SELECT sequence, content FROM entry WHERE content IS NOT NULL ORDER BY sequence")
        var payments = ledger.payments.makeIterator()
        while let row = try rows.next() {
            let number: Int64 = row[0]
            guard let payment = payments.next(), payment.entry <= number else {
                throw StoreFailure.damaged("content \(number) belongs to no payment")
            }
            guard payment.entry == number else { throw StoreFailure.damaged("payment \(payment.id) is missing") }
            _ = try content(row, of: payment)
        }
        guard let missing = payments.next() else { return }
        throw StoreFailure.damaged("payment \(missing.id) is missing")
    }

    private func content(_ row: Row, of payment: StoreLedger.Payment) throws -> StoredContent {
        let key = try key()
        guard let content = Self.content(row[0], row[1], key),
            PaymentHash(SHA256.hash(data: content.canonicalForm(of: payment.id))) == payment.hash
        else { throw StoreFailure.damaged("payment \(payment.id) is not what was stored") }
        return content
    }

    private static func content(_ number: Int64, _ sealed: Data?, _ key: DeviceKey) -> StoredContent? {
        sealed.flatMap { try? key.open($0, as: name(number)) }.flatMap { StoredContent(fields: $0) }
    }

    static func name(_ number: Int64) -> Data { withUnsafeBytes(of: number.bigEndian) { Data($0) } }

    /// Returns the payments of a store that cannot be opened, as far as they are readable and bear this device's
    /// signature, the oldest first.  The store is unchanged.
    ///
    /// - Throws: ``StoreFailure``, if there is no key or no database.
    static func salvage(_ folder: URL, wrapping: WrappingKey?) throws -> [StoredPaymentCardReadResult] {
        let copy = FileManager.default.temporaryDirectory.appending(path: "store-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: copy) }
        do {
            let key = try DeviceKey(KeyFile(folder.appending(path: "store.key").path, wrappedBy: wrapping)) { false }
            try FileManager.default.createDirectory(
                at: copy, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            for name in ["store.sqlite", "store.sqlite-wal"] {
                let file = folder.appending(path: name)
                guard name == "store.sqlite" || FileManager.default.fileExists(atPath: file.path) else { continue }
                try FileManager.default.copyItem(at: file, to: copy.appending(path: name))
            }
            let database = try DatabaseQueue(path: copy.appending(path: "store.sqlite").path)
            var payments: [Int64: StoredPaymentCardReadResult] = [:]
            // An unreadable page ends a query: query from both ends.
            for order in ["ASC", "DESC"] {
                do {
                    try database.read { database in
                        let rows = try Row.fetchCursor(
                            database,
                            sql:
                                "SELECT sequence, content, subject FROM entry WHERE content IS NOT NULL ORDER BY sequence \(order)"
                        )
                        while let row = try rows.next() {
                            guard let content = content(row[0], row[1], key),
                                let payment = try? content.result(of: row[2]), payment.isSigned(by: key)
                            else { continue }
                            payments[row[0]] = payment
                        }
                    }
                } catch {
                    logger.warning("store: \(StoreFailure(error))")
                }
            }
            return payments.sorted { $0.key < $1.key }.map(\.value)
        } catch {
            throw told(error)
        }
    }
}

extension StoredPaymentCardReadResult {
    func isSigned(by key: DeviceKey) -> Bool {
        guard let der = Data(base64Encoded: signature),
            let signature = try? P256.Signing.ECDSASignature(derRepresentation: der)
        else { return false }
        return key.signer.publicKey.isValidSignature(signature, for: canonicalForm)
    }
}
