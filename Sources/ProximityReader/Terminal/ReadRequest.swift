import Foundation

/// A request to read a card: the purpose, the options, and the session.
package struct ReadRequest: Sendable {
    /// An identifier of this read and of its result.
    let id: UUID
    let card: CardRequest
    let options: PaymentCardReader.Options
    let session: TerminalSession
    /// The application's data, which a stored payment keeps unread; nil if there is none.
    let attachment: Data?

    init(
        _ card: CardRequest, _ options: PaymentCardReader.Options, in session: TerminalSession, as id: UUID = UUID(),
        attachment: Data? = nil
    ) {
        (self.card, self.options, self.session, self.id, self.attachment) = (card, options, session, id, attachment)
    }
}
