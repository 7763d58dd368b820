import SmartCard

/// What a kernel or Entry Point wants shown to the people at the reader (EMV Contactless Book A, 6.3 and 9).
public struct UserInterfaceRequest: Hashable, Sendable {
    /// A standard message (Book A, table 9-3).  What it says in which language is the terminal's affair.
    public struct Message: RawRepresentable, Hashable, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let approved = Message(rawValue: 0x03)
        public static let notAuthorised = Message(rawValue: 0x07)
        public static let enterPIN = Message(rawValue: 0x09)
        public static let processingError = Message(rawValue: 0x0F)
        public static let removeCard = Message(rawValue: 0x10)
        public static let welcome = Message(rawValue: 0x14)
        public static let presentCard = Message(rawValue: 0x15)
        public static let processing = Message(rawValue: 0x16)
        public static let cardReadRemoveCard = Message(rawValue: 0x17)
        public static let insertOrSwipeCard = Message(rawValue: 0x18)
        public static let presentOneCardOnly = Message(rawValue: 0x19)
        public static let approvedSign = Message(rawValue: 0x1A)
        public static let authorising = Message(rawValue: 0x1B)
        public static let insertSwipeOrTryAnotherCard = Message(rawValue: 0x1C)
        public static let insertCard = Message(rawValue: 0x1D)
        public static let clearDisplay = Message(rawValue: 0x1E)
        public static let seePhone = Message(rawValue: 0x20)
        public static let presentCardAgain = Message(rawValue: 0x21)
    }

    /// What the reader is doing, for its lights and tones (Book A, table 9-2).
    public enum Status: UInt8, Hashable, Sendable {
        case notReady = 0x00
        case idle = 0x01
        case readyToRead = 0x02
        case processing = 0x03
        case cardReadSuccessfully = 0x04
        case processingError = 0x05
    }

    /// An amount to be shown with the message.
    public enum Value: Hashable, Sendable {
        /// The transaction's amount, in the currency's minor unit.
        case amount(UInt64, currency: Currency)
        /// What the card may still spend offline, in the currency's minor unit.
        case balance(UInt64, currency: Currency)
    }

    public var message: Message?
    public var status: Status
    /// How long the message stays at least, in milliseconds.
    public var holdTime: Int
    /// ISO 639-1 codes in the cardholder's order of preference, as the card has them (tag 5F2D); empty if unknown.
    public var languagePreference: [String]
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
    /// The English text of Book A, table 9-3; the identifier for one that is not among them.
    public var description: String { Self.texts[self] ?? "message \([rawValue].hex)" }

    private static let texts: [Self: String] = [
        .approved: "Approved",
        .notAuthorised: "Not authorised",
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
        .authorising: "Authorising, please wait",
        .insertSwipeOrTryAnotherCard: "Insert, swipe or try another card",
        .insertCard: "Please insert card",
        .clearDisplay: "",
        .seePhone: "See phone for instructions",
        .presentCardAgain: "Present card again",
    ]
}
