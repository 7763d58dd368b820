import CardEncryption
import EMVContactless
import Foundation
import SmartCard

/// The facts that the sandbox keeps of card data, none of which are secret, before it forgets the data.
struct Card {
    let kind: Sandbox.Kind
    let units: UInt64
    let currency: Currency
    /// The account number, masked.
    let account: String

    /// The reasons why card data is not accepted.
    enum Failure: Error {
        /// The data is sealed for somebody else, or under a key that is lost.
        case otherKey
        case unreadable(String)
    }

    /// - Throws: ``Failure``.
    init(opening cardData: String, with key: JWEPrivateKey) throws {
        let jwe: CompactJWE
        do {
            guard case .jwe(let sealed) = try SealedCardData(parsing: cardData) else {
                throw Failure.unreadable("The card data is no JWE.")
            }
            jwe = sealed
        } catch let failure as Failure {
            throw failure
        } catch {
            throw Failure.unreadable("The card data is no JWE.")
        }
        do {
            // Only the masked account leaves the closure; its copies are wiped when they are freed (CWipedHeap).
            self = try key.open(jwe) { try Card(Array($0)) }
        } catch let error as JWEError {
            if case .otherKey = error.reason { throw Failure.otherKey }
            throw Failure.unreadable("The card data cannot be opened: \(error)")
        }
    }

    private init(_ bytes: [UInt8]) throws {
        var values: [TLVTag: ArraySlice<UInt8>] = [:]
        do {
            try TLVList.walk(bytes) { tag, range, _ in
                if values[tag] == nil { values[tag] = bytes[range] }
            }
        } catch {
            throw Failure.unreadable("The card data is no BER-TLV.")
        }
        // In mag-stripe mode Kernel 2 has Track 2 Data in 9F6B (EMV Contactless Book C-2, A.1).
        guard let units = values[0x9F02].flatMap({ UInt64($0.hex) }),
            let currency = values[0x5F2A].flatMap({ Currency[packed: Array($0)] }),
            let kind = values[0x9C].flatMap({ Self.kinds[Array($0)] }),
            let track = values[0x57] ?? values[0x9F6B]
        else {
            throw Failure.unreadable(
                "The card data lack an amount (9F02), a currency (5F2A), a type (9C) or a track (57, 9F6B).")
        }
        self.kind = kind
        self.units = units
        self.currency = currency
        account = String(SensitiveData.masked(track, of: 0x57).prefix { $0 != "D" })
    }

    /// Tag 9C: the first digits of the processing code of ISO 8583.
    private static let kinds: [[UInt8]: Sandbox.Kind] = [[0x00]: .payment, [0x20]: .refund]

    /// In the currency's major unit.
    var amount: String { currency.text(ofUnits: units) }
}

extension Currency {
    /// Returns an amount in minor units as text in the major unit.
    func text(ofUnits units: UInt64) -> String {
        let exponent = exponent ?? 0
        guard exponent > 0 else { return String(units) }
        let digits = String(repeating: "0", count: max(0, exponent + 1 - String(units).count)) + String(units)
        return digits.dropLast(exponent) + "." + digits.suffix(exponent)
    }
}
