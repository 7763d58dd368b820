import Crypto
import Foundation
import GRDB

/// The payments that were forwarded.
extension StoreBook {
    /// The time for which forwarded payments are remembered.
    static let memory: TimeInterval = 30 * 24 * 3600

    func remember(_ payment: StoreLedger.Payment, at time: Date, _ database: Database) throws {
        let detail = try Self.encoder.encode(ProximityReaderSystem.Ledger.Payment(resolved: payment))
        let (time, card) = (Int64(time.timeIntervalSince1970 * 1000), payment.card?.reference)
        let box = try AES.GCM.seal(
            detail, using: detailKey, authenticating: Self.associatedData(payment.id, time, card))
        try database.cachedStatement(sql: "INSERT INTO past VALUES (?, ?, ?, ?, ?)").execute(arguments: [
            payment.number, payment.id, time, card, box.combined,
        ])
    }

    private static func associatedData(_ payment: String, _ time: Int64, _ card: String?) -> Data {
        Data("\(payment)\n\(time)\n\(card ?? "")".utf8)
    }

    /// Returns true if a payment was forwarded.
    func remembers(_ payment: String) throws -> Bool {
        try reading {
            try Bool.fetchOne($0, sql: "SELECT 1 FROM past WHERE payment = ?", arguments: [payment]) ?? false
        }
    }

    /// Returns the forwarded payments, in the order in which they were stored.
    ///
    /// - Parameter card: the card; nil stands for all cards.
    func forwardedPayments(of card: StoredCard? = nil) throws -> [ProximityReaderSystem.Ledger.Payment] {
        try reading { database in
            let rows = try Row.fetchCursor(
                database,
                sql:
                    "SELECT payment, time, card, detail FROM past \(card == nil ? "" : "WHERE card = ? ")ORDER BY number",
                arguments: card.map { [$0.reference] } ?? [])
            var payments: [ProximityReaderSystem.Ledger.Payment] = []
            while let row = try rows.next() {
                do {
                    let bytes = try AES.GCM.open(
                        AES.GCM.SealedBox(combined: row[3] as Data), using: detailKey,
                        authenticating: Self.associatedData(row[0], row[1], row[2]))
                    payments.append(try JSONDecoder().decode(ProximityReaderSystem.Ledger.Payment.self, from: bytes))
                } catch {
                    throw StoreFailure.damaged(
                        "what is remembered of payment \(row[0] as String) is not what was written")
                }
            }
            return payments
        }
    }

    func reading<Value>(_ body: (Database) throws -> Value) throws -> Value {
        do {
            return try database.read(body)
        } catch {
            throw Self.told(error)
        }
    }
}
