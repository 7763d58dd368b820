public import Foundation
public import ProximityReader
import Synchronization
import Waiting

/// The result of a tap that reads passes and pays.
public struct PassPayment: Sendable {
    /// The passes; nil if none were read.  What they contain is personal data.
    public let passes: VASReadResult?
    /// The card; nil if there was none to pay with, or nothing to pay.
    public let card: PaymentCardReadResult?
    /// The payment service's decision, whether approved or declined; nil without a card.
    public let payment: PaymentResult?
    /// The amount to pay, in the currency's major unit; nil if none was fixed, as the pass ended the tap.
    public let amount: Decimal?
}

extension VASReadResult {
    /// The first pass that was read, as it may be shown and printed: its last four letters or digits; nil without one.
    package var maskedNumber: String? { entries.lazy.compactMap(\.maskedNumber).first }
}

extension VASReadResult.ReadEntry {
    /// The pass as it may be shown and printed: its last four letters or digits; nil if it was not read.
    package var maskedNumber: String? {
        guard status == .success, let number = customerVASData.flatMap({ String(data: $0, encoding: .utf8) }) else {
            return nil
        }
        // Whoever issued the pass wrote it.
        let shown = number.filter { $0.isASCII && ($0.isLetter || $0.isNumber) }
        return "****" + shown.suffix(4)
    }
}

/// Payments with passes: the journal has the amount that is left after the discount.
extension TapToPayService {
    /// Returns the amount to pay, in the currency's major unit: at most that of the request, 0 for nothing.
    ///
    /// It is called between pass and payment, while the customer holds the phone to the reader, and has to answer at
    /// once, within ``TapToPayService/pricingTime``.  Its parameter is nil unless a pass was read and accepted.
    public typealias Pricing = @Sendable (VASReadResult?) async throws -> Decimal

    /// The time limit for ``Pricing``.
    public static var pricingTime: Duration { .seconds(2) }

    /// Waits for a phone, and reads its passes.
    ///
    /// - Throws: `PaymentCardReaderSession.ReadError`, with the case `vasReadFail` for a phone that breaks the protocol;
    ///   ``TapToPayError/notInitialized``; `PaymentCardReaderError`.
    public func readPasses(_ passes: VASRequest) async throws -> VASReadResult {
        let tap = try await read { TapResult(passes: try await $0.readVAS(passes)) }
        guard let passes = tap.passes else { throw PaymentCardReaderSession.ReadError.vasReadFail }
        return passes
    }

    /// Waits for a phone, reads its passes, and has the payment service charge its card: in one tap.
    ///
    /// The pass is read first.  Then `price` fixes the amount, which the card learns, the journal records, and the
    /// payment service charges.  A card without passes pays, too.  A phone that has a pass and no card, or leaves after
    /// its pass was read, pays nothing: the pass is the result.
    ///
    /// - Parameters:
    ///   - request: the amount before any discount.
    ///   - passes: the merchants whose passes are read.
    ///   - stopsOnPass: true to end as soon as a pass was read, so that there is a payment only without one.
    ///   - price: the amount to pay, knowing the passes; nil: that of the request.
    /// - Throws: ``TapToPayError``, with the case ``TapToPayError/noPrice`` if `price` took too long; errors of `price`;
    ///   `PaymentCardReaderSession.ReadError`, with the case `vasReadFail` if a phone stayed locked, so that there is neither
    ///   a pass nor a payment; `PaymentCardReaderError`, ``PaymentServiceError``.
    public func charge(
        _ request: PaymentCardTransactionRequest, with passes: VASRequest, stopsOnPass: Bool = false,
        price: Pricing? = nil
    ) async throws -> PassPayment {
        try checkWritten()
        let fixed = FixedAmount(price, of: request.amount)
        let tap: TapResult
        do {
            tap = try await read(
                request, passes, stopsOnPass: stopsOnPass, beginning: fixed.forget, pricing: fixed.fix)
        } catch let error as NoAmount {
            throw error.reason
        }
        guard let card = tap.payment else {
            let hasPass = tap.passes?.entries.contains { $0.status == .success } ?? false
            guard hasPass || fixed.amount != nil else { throw PaymentCardReaderSession.ReadError.vasReadFail }
            return PassPayment(passes: tap.passes, card: nil, payment: nil, amount: fixed.amount)
        }
        let amount = fixed.amount ?? request.amount
        let payment = try await authorize(card, amount: amount, currency: request.currencyCode)
        return PassPayment(passes: tap.passes, card: card, payment: payment, amount: amount)
    }

    /// The amount that was fixed during a tap.
    private final class FixedAmount: Sendable {
        private let price: Pricing?
        private let full: Decimal
        private let state = Mutex<Decimal?>(nil)

        init(_ price: Pricing?, of full: Decimal) { (self.price, self.full) = (price, full) }

        var amount: Decimal? { state.withLock { $0 } }

        /// Begins with no amount: a tap that is begun again fixes its own.
        @Sendable func forget() { state.withLock { $0 = nil } }

        @Sendable func fix(_ passes: VASReadResult?) async throws -> Decimal {
            let amount: Decimal =
                if let price {
                    try await waiting(atMost: pricingTime, or: TapToPayError.noPrice) { try await price(passes) }
                } else { full }
            state.withLock { $0 = amount }
            return amount
        }
    }
}
