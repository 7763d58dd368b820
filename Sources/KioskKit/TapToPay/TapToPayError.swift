public import Foundation

/// The reason for which there was no payment, or none that is known.
public enum TapToPayError: Error, Hashable, Sendable {
    /// No reader is prepared.
    case notInitialized
    /// The read returned no card data.
    case noCardData
    /// The card declined nothing, and has to be inserted or swiped: `ProximityReaderSystem.messages(of:)` delivers
    /// EMV's message for it.
    case anotherInterfaceNeeded
    /// The application did not say in time what is to be paid: see ``TapToPayService/pricingTime``.  Nothing was.
    case noPrice
    /// The payment could not be recorded: the payment service was not asked; or its approval is being reversed; or it
    /// was asked for a reversal, and did not answer.
    case notRecorded(String)
    /// An earlier payment has to be reversed, and the disk does not record that: see ``JournalAlarm``.  The payment
    /// service was not asked.
    case reversalNotRecorded(key: String)
    /// The payment is being reversed, and is not requested again.
    case takenBack
    /// The payment service was asked and did not answer: the customer may have paid.  ``TapToPayService/resolve(_:)``
    /// finds out; ``TapToPayService/reverse(_:)`` ensures that they have not.
    case outcomeUnknown(key: String)
}

extension TapToPayError: LocalizedError, CustomStringConvertible {
    public var description: String {
        switch self {
        case .notInitialized: "The reader is not ready. Make it ready first."
        case .noCardData: "The card gave no data that can be charged. Try another one."
        case .anotherInterfaceNeeded:
            "The card cannot be tapped for this payment. Insert or swipe it, or try another one."
        case .noPrice: "The price after the discount did not come in time: nothing was paid. Try again."
        case .notRecorded(let reason):
            "The payment could not be recorded: \(reason). Check the folder's disk and owner, and try again."
        case .reversalNotRecorded(let key):
            "The payment \(key) has to be taken back, and that cannot be written down. Make room on the folder's disk, and try again."
        case .takenBack: "This payment is being reversed. Read the card again for another one."
        case .outcomeUnknown(let key):
            "The payment service did not answer: it is unknown whether the payment was made. Ask it for the key \(key) before the customer pays again."
        }
    }
    public var errorDescription: String? { description }
}
