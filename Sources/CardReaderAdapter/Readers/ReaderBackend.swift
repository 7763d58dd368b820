/// The source of a service's readers: this machine, or a script.
package protocol ReaderBackend: Sendable {
    func supports(_ method: CardReaderDiscoveryMethod, _ type: CardReaderType) -> Bool

    /// Lists all attached readers: the present list first, then a new list with each change, until nobody listens.
    func attachedReaders() -> AsyncThrowingStream<[AttachedReader], any Error>

    /// Prepares a reader for payments.
    ///
    /// - Parameters:
    ///   - token: used once, here.
    ///   - update: receives the progress of an update that the reader requires first.
    /// - Throws: ``SoftwareUpdateFailure`` if the update failed; otherwise any error that ``UnderlyingError`` can be
    ///   created from.
    func open(
        _ reader: AttachedReader, token: String, acceptingTerms: Bool,
        update: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void
    ) async throws -> any ReaderLink
}

/// An attached reader, and the handle by which the backend reaches it.
package struct AttachedReader: Sendable {
    package let reader: CardReader
    /// The backend's handle, opaque to the service.
    package let handle: any Sendable

    package init(_ reader: CardReader, handle: any Sendable) { (self.reader, self.handle) = (reader, handle) }
}

/// A reader that is ready for payments.
package protocol ReaderLink: Sendable {
    /// The reader's events, for one task.  The sequence ends after ``LinkEvent/left(_:)``.
    var events: AsyncStream<LinkEvent> { get }

    /// Waits for a card and reads it.
    ///
    /// - Parameter tell: receives each step; the last one before this returns.
    /// - Throws: any error that ``UnderlyingError`` can be created from.
    func collect(
        _ request: CollectionRequest, tell: @escaping @Sendable (CardReaderEvent) -> Void
    ) async throws -> CollectedCard

    /// Ends the wait for a card.
    ///
    /// - Returns: false if there was no wait, or if a card is present: it is read to its end.
    func cancelCollection() async throws -> Bool

    /// Returns when no card is present, the reader is gone, or the task is canceled.
    ///
    /// - Parameter cardIsThere: called once, if a card has to be removed.
    /// - Returns: true if no card is present.
    func waitForRemoval(_ cardIsThere: @escaping @Sendable () -> Void) async -> Bool

    /// Installs the available update, if there is one.
    ///
    /// - Throws: ``SoftwareUpdateFailure``.
    func installUpdate(_ tell: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void) async throws

    /// Releases the reader.
    func close() async
}

package enum LinkEvent: Sendable {
    /// A property of the reader changed, such as the charge of its battery.
    case changed(CardReader)
    case happened(CardReaderEvent)
    case left(DisconnectReason)
}

/// The purpose of a read: a payment or a refund, with its amount.
package struct CollectionRequest: Sendable {
    package enum Kind: Hashable, Sendable { case purchase, refund }
    package let kind: Kind
    /// The amount in the currency's minor unit.
    package let amount: UInt
    package let currency: String
    /// The order to store.  If not nil, the terminal writes the payment to the disk when the card has been read.
    package let order: StoredOrder?

    package init(kind: Kind, amount: UInt, currency: String, order: StoredOrder? = nil) {
        (self.kind, self.amount, self.currency, self.order) = (kind, amount, currency, order)
    }
}

/// The reason for which a reader was not updated.
package struct SoftwareUpdateFailure: Error, Sendable {
    package let underlyingError: UnderlyingError
    package let batteryLevel: Double?

    package init(_ underlyingError: UnderlyingError, batteryLevel: Double?) {
        (self.underlyingError, self.batteryLevel) = (underlyingError, batteryLevel)
    }
}
