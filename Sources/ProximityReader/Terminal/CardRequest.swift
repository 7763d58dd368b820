import EMVContactless
import Foundation
import SmartCard

/// The purpose of a read.
enum CardRequest: Sendable {
    case transaction(PaymentCardTransactionRequest)
    case verification(PaymentCardVerificationRequest)

    /// Returns the transaction for the kernels.
    ///
    /// - Throws: `ReadError` of the cases `invalidAmount`, `invalidCurrencyCode` and `invalidPreferredAID`.
    func transaction(
        at date: Date, unpredictableNumber: [UInt8], sequenceCounter: UInt32
    ) throws(PaymentCardReaderSession.ReadError) -> Transaction {
        let code: String
        let amount: Decimal
        let kind: Transaction.Kind
        switch self {
        case .transaction(let request):
            (code, amount) = (request.currencyCode, request.amount)
            kind = request.type == .refund ? .refund : .purchase
            guard amount > 0 else { throw .invalidAmount }
        case .verification(let request):
            (code, amount, kind) = (request.currencyCode, 0, .purchase)
        }
        guard let currency = Currency[code.uppercased()], currency.code == code.uppercased() else {
            throw .invalidCurrencyCode
        }
        _ = try preferredAIDs()
        guard let units = Self.minorUnits(amount, exponent: currency.exponent ?? 0),
            let transaction = Transaction(
                kind, amount: units, currency: currency,
                time: TerminalTime(secondsSince1970: date.timeIntervalSince1970),
                unpredictableNumber: unpredictableNumber, sequenceCounter: sequenceCounter)
        else { throw .invalidAmount }
        return transaction
    }

    /// Returns the preferred AIDs in descending order.
    func preferredAIDs() throws(PaymentCardReaderSession.ReadError) -> [AID] {
        guard case .transaction(let request) = self else { return [] }
        let names = request.preferredAIDList.compactMap { AID([UInt8]($0)) }
        guard names.count == request.preferredAIDList.count, names.count <= 4 else { throw .invalidPreferredAID }
        return names
    }

    /// Converts an amount to minor units.
    ///
    /// - Returns: nil for an amount that is not a whole number of minor units, or has more than twelve digits.
    private static func minorUnits(_ amount: Decimal, exponent: Int) -> UInt64? {
        guard !amount.isNaN else { return nil }
        var shifted = amount * pow(Decimal(10), exponent)
        var whole = Decimal()
        NSDecimalRound(&whole, &shifted, 0, .plain)
        guard whole == shifted, whole >= 0, whole <= Decimal(Transaction.maximumAmount) else { return nil }
        return UInt64(whole.description)
    }
}
