package import Foundation
import WalletPasses

/// A request to read a card or passes: the purpose, the options, and the session.
package struct ReadRequest: Sendable {
    /// Fixes the amount to pay, knowing the passes; nil if none were read.  Zero: nothing is to be paid.
    package typealias Pricing = @Sendable (VASReadResult?) async throws -> Decimal

    /// An identifier of this read and of its result.
    let id: UUID
    /// The payment; nil for a read of passes alone.
    var card: CardRequest?
    /// The passes; nil for a read of a card alone.
    let passes: RequestedPasses?
    let options: PaymentCardReader.Options
    let session: TerminalSession
    /// The application's data, which a stored payment keeps unread; nil if there is none.
    let attachment: Data?
    /// Called between pass and payment; nil: the amount of the request is to be paid.
    let pricing: Pricing?

    init(
        _ card: CardRequest?, _ options: PaymentCardReader.Options, in session: TerminalSession, as id: UUID = UUID(),
        attachment: Data? = nil, passes: RequestedPasses? = nil, pricing: Pricing? = nil
    ) {
        (self.card, self.options, self.session, self.id, self.attachment) = (card, options, session, id, attachment)
        (self.passes, self.pricing) = (passes, pricing)
    }

    /// The frame that tells phones what this read is for.
    var frame: PollingFrame { passes.map { PollingFrame(for: $0.purpose.mode) } ?? .payment }
}

/// The application did not say what is to be paid: nothing was.
package struct NoAmount: Error {
    package let reason: any Error
}
