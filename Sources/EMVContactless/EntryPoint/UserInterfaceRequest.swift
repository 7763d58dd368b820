import SmartCard

/// A kernel's or Entry Point's request to the user interface of the reader (EMV Contactless Book A, 6.3 and 9).
public struct UserInterfaceRequest: Hashable, Sendable {
    /// A standard message (Book A, table 9-3).  The terminal chooses its text and language.
    public struct Message: RawRepresentable, Hashable, Sendable {
        /// The message identifier.
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// 03: the transaction is approved.
        public static let approved = Message(rawValue: 0x03)
        /// 07: the transaction is declined.
        public static let notAuthorized = Message(rawValue: 0x07)
        /// 09: the PIN is to be entered.
        public static let enterPIN = Message(rawValue: 0x09)
        /// 0F: the card could not be processed.
        public static let processingError = Message(rawValue: 0x0F)
        /// 10: the card is no longer needed.
        public static let removeCard = Message(rawValue: 0x10)
        /// 14: the reader is idle.
        public static let welcome = Message(rawValue: 0x14)
        /// 15: the reader waits for a card.
        public static let presentCard = Message(rawValue: 0x15)
        /// 16: the card must stay in the field.
        public static let processing = Message(rawValue: 0x16)
        /// 17: the card can be removed.
        public static let cardReadRemoveCard = Message(rawValue: 0x17)
        /// 18: the transaction needs another interface than the contactless one.
        public static let insertOrSwipeCard = Message(rawValue: 0x18)
        /// 19: there is more than one card in the field.
        public static let presentOneCardOnly = Message(rawValue: 0x19)
        /// 1A: the transaction is approved, and the cardholder has to sign.
        public static let approvedSign = Message(rawValue: 0x1A)
        /// 1B: the issuer is being asked.
        public static let authorizing = Message(rawValue: 0x1B)
        /// 1C: this card does not work contactless.
        public static let insertSwipeOrTryAnotherCard = Message(rawValue: 0x1C)
        /// 1D: the card requires its contact interface.
        public static let insertCard = Message(rawValue: 0x1D)
        /// 1E: the display is cleared.
        public static let clearDisplay = Message(rawValue: 0x1E)
        /// 20: the cardholder has to do something on the device.
        public static let seePhone = Message(rawValue: 0x20)
        /// 21: the card left too early, or is needed once more.
        public static let presentCardAgain = Message(rawValue: 0x21)
    }

    /// The state of the reader, for its lights and tones (Book A, table 9-2).
    public enum Status: UInt8, Hashable, Sendable {
        /// The reader cannot accept a card.
        case notReady = 0x00
        /// The reader is idle.
        case idle = 0x01
        /// The reader waits for a card.
        case readyToRead = 0x02
        /// A card is being read, and must stay.
        case processing = 0x03
        /// The card can be removed.
        case cardReadSuccessfully = 0x04
        /// The card could not be processed.
        case processingError = 0x05
    }

    /// An amount to show with the message.
    public enum Value: Hashable, Sendable {
        /// The transaction's amount, in the currency's minor unit.
        case amount(UInt64, currency: Currency)
        /// The balance that the card can still spend offline, in the currency's minor unit.
        case balance(UInt64, currency: Currency)
    }

    /// The message; nil leaves the display unchanged (Book A, table 6-2).
    public var message: Message?
    /// The state for the reader's lights and tones (Book A, table 9-2).
    public var status: Status
    /// The minimum time for which the message stays, in milliseconds.
    public var holdTime: Int
    /// The cardholder's languages as ISO 639-1 codes in order of preference, from the card (tag 5F2D); empty if
    /// unknown.
    public var languagePreference: [String]
    /// The amount to show with the message (Book A, table 6-2); nil for none.
    public var value: Value?

    public init(
        _ message: Message?, _ status: Status, holdTime: Int = 0, languagePreference: [String] = [],
        value: Value? = nil
    ) {
        self.message = message
        self.status = status
        self.holdTime = holdTime
        self.languagePreference = languagePreference
        self.value = value
    }
}

extension UserInterfaceRequest.Message: CustomStringConvertible {
    /// The English text of Book A, table 9-3, in the book's own British spelling (“Not authorised”); the identifier of any
    /// other message.
    public var description: String { Self.texts[self] ?? "message \([rawValue].hex)" }

    private static let texts: [Self: String] = [
        .approved: "Approved",
        .notAuthorized: "Not authorised",
        .enterPIN: "Please enter your PIN",
        .processingError: "Processing error",
        .removeCard: "Please remove card",
        .welcome: "Welcome",
        .presentCard: "Present card",
        .processing: "Processing",
        .cardReadRemoveCard: "Card read OK, please remove card",
        .insertOrSwipeCard: "Please insert or swipe card",
        .presentOneCardOnly: "Please present one card only",
        .approvedSign: "Approved, please sign",
        .authorizing: "Authorising, please wait",
        .insertSwipeOrTryAnotherCard: "Insert, swipe or try another card",
        .insertCard: "Please insert card",
        .clearDisplay: "",
        .seePhone: "See phone for instructions",
        .presentCardAgain: "Present card again",
    ]
}
