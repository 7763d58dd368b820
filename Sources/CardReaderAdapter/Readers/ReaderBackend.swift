/// Where a service's readers are: on this machine, or in a script.
package protocol ReaderBackend: Sendable {
    func supports(_ method: CardReaderDiscoveryMethod, _ type: CardReaderType) -> Bool

    /// The readers that are attached, all of them: as they are now, then with each change, until nobody listens.
    func attachedReaders() -> AsyncThrowingStream<[AttachedReader], any Error>

    /// Makes a reader ready for payments.
    ///
    /// - Parameters:
    ///   - token: used here, and never again.
    ///   - update: told of an update that the reader needs first.
    /// - Throws: ``SoftwareUpdateFailure`` if that failed; anything that an ``UnderlyingError`` can be made of.
    func open(
        _ reader: AttachedReader, token: String, acceptingTerms: Bool,
        update: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void
    ) async throws -> any ReaderLink
}

/// A reader that is attached, and what the backend reaches it by.
package struct AttachedReader: Sendable {
    package let reader: CardReader
    /// The backend's own.
    package let handle: any Sendable

    package init(_ reader: CardReader, handle: any Sendable) { (self.reader, self.handle) = (reader, handle) }
}

/// A reader that is ready for payments.
package protocol ReaderLink: Sendable {
    /// What becomes of the reader, for one task: ends after ``LinkEvent/left(_:)``.
    var events: AsyncStream<LinkEvent> { get }

    /// Waits for a card and reads it.
    ///
    /// - Parameter tell: told of each step, the last one before this returns.
    /// - Throws: anything that an ``UnderlyingError`` can be made of.
    func collect(
        _ request: CollectionRequest, tell: @escaping @Sendable (CardReaderEvent) -> Void
    ) async throws -> CollectedCard

    /// Ends the wait for a card.
    ///
    /// - Returns: false if there was none, or a card is there, which is read to its end.
    func cancelCollection() async throws -> Bool

    /// Returns when no card is there, the reader is gone, or the task is cancelled.
    ///
    /// - Parameter cardIsThere: called once, if a card has to be waited for.
    /// - Returns: whether no card is there.
    func waitForRemoval(_ cardIsThere: @escaping @Sendable () -> Void) async -> Bool

    /// Installs the update that is available, if there is one.
    ///
    /// - Throws: ``SoftwareUpdateFailure``.
    func installUpdate(_ tell: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void) async throws

    /// Gives the reader back.
    func close() async
}

package enum LinkEvent: Sendable {
    /// Some field is another now, such as the battery's.
    case changed(CardReader)
    case happened(CardReaderEvent)
    case left(DisconnectReason)
}

/// What a card is read for.
package struct CollectionRequest: Sendable {
    package enum Kind: Hashable, Sendable { case purchase, refund }
    package let kind: Kind
    /// In the currency's minor unit.
    package let amount: UInt
    package let currency: String
    /// Not nil: the terminal stores the payment, on the disk when the card has been read.
    package let order: StoredOrder?

    package init(kind: Kind, amount: UInt, currency: String, order: StoredOrder? = nil) {
        (self.kind, self.amount, self.currency, self.order) = (kind, amount, currency, order)
    }
}

/// Why a reader was not updated.
package struct SoftwareUpdateFailure: Error, Sendable {
    package let underlyingError: UnderlyingError
    package let batteryLevel: Double?

    package init(_ underlyingError: UnderlyingError, batteryLevel: Double?) {
        (self.underlyingError, self.batteryLevel) = (underlyingError, batteryLevel)
    }
}
