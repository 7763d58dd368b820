extension PaymentCardReader {
    public enum Event: Sendable {
        /// The progress of ``PaymentCardReader/prepare(using:)``: 0 to 100.
        case updateProgress(Int)
        /// The reader was unplugged, the machine goes to sleep, or the session has expired.  Reads fail until that
        /// changes; after an expiration, until the reader is prepared again.
        case notReady
        /// The reader waits for a card.
        case readyForTap
        /// A card is in the field, and must stay there.
        case cardDetected
        /// The card can be removed.  The next read waits until it is gone.
        case removeCard
        /// The card data is read and sealed.
        case readCompleted
        /// The card has to be presented again, or alone.
        case readRetry
        case readCancelled
        /// The read ended without a result.
        case readNotCompleted
        /// Never sent: there is no PIN pad.
        case pinEntryRequested
        /// Never sent: there is no PIN pad.
        case pinEntryCompleted
        /// The read is over; its user interface can be dismissed.
        case userInterfaceDismissed

        /// The name of the case.
        public var name: String {
            switch self {
            case .updateProgress: "updateProgress"
            case .notReady: "notReady"
            case .readyForTap: "readyForTap"
            case .cardDetected: "cardDetected"
            case .removeCard: "removeCard"
            case .readCompleted: "readCompleted"
            case .readRetry: "readRetry"
            case .readCancelled: "readCancelled"
            case .readNotCompleted: "readNotCompleted"
            case .pinEntryRequested: "pinEntryRequested"
            case .pinEntryCompleted: "pinEntryCompleted"
            case .userInterfaceDismissed: "userInterfaceDismissed"
            }
        }
    }

    @available(*, deprecated, message: "Use Event")
    public enum UpdateEvent: Sendable {
        case progress(Int)
        case notReady

        /// The name of the case.
        public var name: String {
            switch self {
            case .progress: "progress"
            case .notReady: "notReady"
            }
        }
    }
}

extension PaymentCardReaderSession {
    @available(*, deprecated, message: "Use PaymentCardReader.Event")
    public enum Event: Sendable, Hashable {
        case readyForTap
        case cardDetected
        case removeCard
        case completed
        case retry
        case readCancelled
        case readNotCompleted

        /// The name of the case.
        public var name: String { "\(self)" }
    }
}
