import Foundation

/// One read: what a card is read for, how, and in which session.
package struct ReadRequest: Sendable {
    /// Of this read alone; that of its result.
    let id: UUID
    let card: CardRequest
    let options: PaymentCardReader.Options
    let session: TerminalSession
    /// The application's own, which a stored payment keeps unread; nil if there is nothing.
    let attachment: Data?

    init(
        _ card: CardRequest, _ options: PaymentCardReader.Options, in session: TerminalSession, as id: UUID = UUID(),
        attachment: Data? = nil
    ) {
        (self.card, self.options, self.session, self.id, self.attachment) = (card, options, session, id, attachment)
    }
}
