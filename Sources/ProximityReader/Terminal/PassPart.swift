/// The part of a read that is about passes, as a value without I/O: what follows from a phone's answer.
struct PassPart: Sendable {
    enum Purpose: Sendable, CaseIterable {
        case passes
        /// A pass ends the read; without one a payment follows.
        case passesOrPayment
        /// A payment follows, whether there is a pass or not.
        case passesAndPayment
    }

    /// A phone's or a card's answer.
    enum Answer: Sendable, CaseIterable {
        /// There is at least one pass.
        case pass
        /// The phone is locked, or asks its owner for something.
        case held
        /// None of the requested passes is there.
        case noPass
        /// There is no wallet: a plain card, or a phone that has no passes.
        case noWallet
        case malformed
        /// The phone left, or could not be activated.
        case lost
    }

    enum Step: Sendable, Equatable {
        case finish
        case pay
        /// Ask the owner to look at the phone, and ask the phone again.
        case seePhone
        /// Wait until the card is gone, and for another one.
        case anotherCard
        /// Wait for it again.
        case again
        case fail
    }

    let purpose: Purpose
    /// The time for the owner of a phone that stays in the field.
    private let ownerTime: Duration
    /// The first and the last answer of such a phone.
    private var held: (first: Duration, last: Duration)?
    /// The number of times in succession that it was lost.
    private var losses = 0

    private static let longestPause = Duration.seconds(5)

    init(_ purpose: Purpose, ownerTime: Duration) { (self.purpose, self.ownerTime) = (purpose, ownerTime) }

    /// Takes an answer.
    ///
    /// - Parameter time: the time since any fixed moment.
    mutating func next(_ answer: Answer, at time: Duration) -> Step {
        losses = answer == .lost ? losses + 1 : 0
        switch (answer, purpose) {
        case (.pass, .passes), (.pass, .passesOrPayment): return .finish
        case (.held, _):
            // A phone that stays is asked again within a second or so; after a longer time it is another tap.
            let isSameTap = held.map { time - $0.last < Self.longestPause } ?? false
            let first = isSameTap ? held?.first ?? time : time
            held = (first, time)
            return time - first < ownerTime ? .seePhone : .finish
        case (.lost, _): return losses < 3 ? .again : .anotherCard
        case (.noPass, .passes): return .finish
        case (.noWallet, .passes): return .anotherCard
        case (.malformed, .passes): return .fail
        case (.pass, _), (.noPass, _), (.noWallet, _), (.malformed, _): return .pay
        }
    }
}

/// The result of a read: the halves that were read.
package struct TapResult: Sendable {
    package var payment: PaymentCardReadResult?
    package var passes: VASReadResult?

    package init(payment: PaymentCardReadResult? = nil, passes: VASReadResult? = nil) {
        (self.payment, self.passes) = (payment, passes)
    }

    /// False if a card declined or failed.
    var isSuccess: Bool { payment.map { $0.outcome == .success } ?? true }
}
