import Crypto
import Foundation
import GRDB

/// The outcomes of payments until the application acknowledges them, each written together with the entry of its
/// decision.
extension StoreBook {
    typealias Outcome = ProximityReaderSystem.Ledger.Outcome

    func add(_ outcome: Outcome, as number: Int64, _ database: Database) throws {
        let box = try AES.GCM.seal(
            Self.encoder.encode(outcome), using: detailKey, authenticating: Self.outcomeName(number, outcome.id))
        try database.cachedStatement(sql: "INSERT INTO outcome VALUES (?, ?, ?)").execute(arguments: [
            number, outcome.id, box.combined,
        ])
    }

    private static func outcomeName(_ number: Int64, _ payment: String) -> Data { Data("\(number)\n\(payment)".utf8) }

    /// Returns the outcomes after `number`, in the order of the decisions.
    func outcomes(after number: Int64, limit: Int) throws -> [(number: Int64, outcome: Outcome)] {
        try reading { database in
            let rows = try Row.fetchCursor(
                database, sql: "SELECT number, payment, detail FROM outcome WHERE number > ? ORDER BY number LIMIT ?",
                arguments: [number, Int64(limit)])
            var outcomes: [(Int64, Outcome)] = []
            while let row = try rows.next() {
                do {
                    let bytes = try AES.GCM.open(
                        AES.GCM.SealedBox(combined: row[2] as Data), using: detailKey,
                        authenticating: Self.outcomeName(row[0], row[1]))
                    outcomes.append((row[0], try JSONDecoder().decode(Outcome.self, from: bytes)))
                } catch {
                    throw StoreFailure.damaged("the outcome of payment \(row[1] as String) is not what was written")
                }
            }
            return outcomes
        }
    }

    func countOutcomes() throws -> Int {
        try reading { try Int.fetchOne($0, sql: "SELECT count(*) FROM outcome") ?? 0 }
    }

    func acknowledge(_ payment: String) throws {
        do {
            try database.write {
                try $0.execute(sql: "DELETE FROM outcome WHERE payment = ?", arguments: [payment])
            }
        } catch {
            throw Self.told(error)
        }
    }
}
