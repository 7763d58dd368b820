/// An event at the connected reader.
public enum CardReaderEvent: Sendable {
    /// The reader waits for a card.
    case waitingForInput(CardReaderInput)
    /// A message for the customer, worded by this library and not by a driver.
    case displayMessage(String)
    /// A card is in the field.
    case cardInserted
    /// The card that had to be removed before a payment is gone.
    case cardRemoved
    /// The card for whose removal ``CardReaderService/waitForInsertedCardToBeRemoved()`` waited is gone.
    case cardRemovedAfterClientSidePaymentCapture
    /// The card's data is read and sealed.  The payment service is asked next.
    case cardDetailsCollected
    case lowBattery
    case lowBatteryResolved
    /// The reader left without being asked to.
    case disconnected(DisconnectReason)
}

/// An earlier name of ``CardReaderEvent``.
public typealias CardReaderEventType = CardReaderEvent

/// The ways in which a card can be presented.
public struct CardReaderInput: OptionSet, Hashable, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static let none: CardReaderInput = []
    public static let swipe = CardReaderInput(rawValue: 1)
    public static let insert = CardReaderInput(rawValue: 2)
    public static let tap = CardReaderInput(rawValue: 4)
}

/// The reason for which a reader left.
public enum DisconnectReason: Hashable, Sendable {
    case usbDisconnected
    /// pcscd was stopped or does not answer.
    case serviceStopped
    case criticallyLowBattery
    case poweredOff
    case unknown
}

/// The progress of reconnecting a reader that left.
public enum CardReaderReconnection: Sendable {
    /// The service waits for the reader.  Canceling gives up.
    case started(serial: String, cancelable: any FallibleCancelable)
    case succeeded(CardReader)
    case failed(serial: String, any Error)
}

/// The progress of an update of a reader's software.
public enum CardReaderSoftwareUpdateState: Sendable {
    case available
    case started(cancelable: (any FallibleCancelable)?)
    /// The update is being installed.
    ///
    /// - Parameter progress: from 0 to 1; it never decreases.
    case installing(progress: Float)
    case failed(error: any Error)
    case completed
    case none
}

/// An operation that can be canceled, or may refuse to be.
public protocol FallibleCancelable: Sendable {
    /// Cancels the operation.
    ///
    /// - Parameter completion: called once.
    func cancel(completion: @escaping @Sendable (Result<Void, any Error>) -> Void)
}

/// A message for customers.  The cases are in the order of the steps of a payment.
public enum ReaderDisplayMessage: String, CaseIterable, Hashable, Sendable {
    case retryCard, insertCard, insertOrSwipeCard, swipeCard, removeCard, multipleContactlessCardsDetected
    case tryAnotherReadMethod, tryAnotherCard, cardRemovedTooEarly

    public var text: String {
        switch self {
        case .retryCard: "Present the card again"
        case .insertCard: "Insert the card"
        case .insertOrSwipeCard: "Insert or swipe the card"
        case .swipeCard: "Swipe the card"
        case .removeCard: "Remove the card"
        case .multipleContactlessCardsDetected: "Present one card only"
        case .tryAnotherReadMethod: "Use the card another way"
        case .tryAnotherCard: "Try another card"
        case .cardRemovedTooEarly: "The card was removed too early"
        }
    }
}
