/// What happens at the connected reader.
public enum CardReaderEvent: Sendable {
    /// The reader waits for a card.
    case waitingForInput(CardReaderInput)
    /// To be shown to the customer, in words of this library and not of a driver.
    case displayMessage(String)
    /// A card is in the field.
    case cardInserted
    /// The card is gone that had to be removed before a payment.
    case cardRemoved
    /// The card is gone that was waited for by ``CardReaderService/waitForInsertedCardToBeRemoved()``.
    case cardRemovedAfterClientSidePaymentCapture
    /// The card's data are read and sealed: the payment service is asked next.
    case cardDetailsCollected
    case lowBattery
    case lowBatteryResolved
    /// The reader has left without being asked to.
    case disconnected(DisconnectReason)
}

/// The name that events had first.
public typealias CardReaderEventType = CardReaderEvent

/// How a card can be presented.
public struct CardReaderInput: OptionSet, Hashable, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static let none: CardReaderInput = []
    public static let swipe = CardReaderInput(rawValue: 1)
    public static let insert = CardReaderInput(rawValue: 2)
    public static let tap = CardReaderInput(rawValue: 4)
}

/// Why a reader has left.
public enum DisconnectReason: Hashable, Sendable {
    case usbDisconnected
    /// pcscd was stopped or does not answer.
    case serviceStopped
    case criticallyLowBattery
    case poweredOff
    case unknown
}

/// How the connection to a reader that has left is made again.
public enum CardReaderReconnection: Sendable {
    /// It is waited for.  Cancelling gives it up.
    case started(serial: String, cancelable: any FallibleCancelable)
    case succeeded(CardReader)
    case failed(serial: String, any Error)
}

/// The update of a reader's software.
public enum CardReaderSoftwareUpdateState: Sendable {
    case available
    case started(cancelable: (any FallibleCancelable)?)
    /// - Parameter progress: from 0 to 1, never less than before.
    case installing(progress: Float)
    case failed(error: any Error)
    case completed
    case none
}

/// Something that can be cancelled, or may refuse to be.
public protocol FallibleCancelable: Sendable {
    /// - Parameter completion: called once.
    func cancel(completion: @escaping @Sendable (Result<Void, any Error>) -> Void)
}

/// What customers are told, in the order of what is to be done.
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
