/// The abilities of a terminal, as it states them to Google's wallet (Smart Tap 2.1, POS capabilities record `pcr`).
public struct SmartTapCapabilities: Hashable, Sendable {
    /// The terminal's kind and connection: byte 0.
    public struct System: OptionSet, Hashable, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let standalone = System(rawValue: 0x01)
        public static let semiIntegrated = System(rawValue: 0x02)
        public static let unattended = System(rawValue: 0x04)
        public static let online = System(rawValue: 0x08)
        public static let offline = System(rawValue: 0x10)
        public static let mobileMarketing = System(rawValue: 0x20)
        /// The terminal inflates compressed answers.
        public static let zlib = System(rawValue: 0x40)
    }

    /// The means to show or print messages: byte 1.
    public struct UserInterface: OptionSet, Hashable, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let printer = UserInterface(rawValue: 0x01)
        public static let printerGraphics = UserInterface(rawValue: 0x02)
        public static let display = UserInterface(rawValue: 0x04)
        public static let images = UserInterface(rawValue: 0x08)
        public static let audio = UserInterface(rawValue: 0x10)
        public static let animation = UserInterface(rawValue: 0x20)
        public static let video = UserInterface(rawValue: 0x40)
    }

    /// The terminal's part at checkout: byte 2.
    public struct Checkout: OptionSet, Hashable, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let payment = Checkout(rawValue: 0x01)
        public static let digitalReceipt = Checkout(rawValue: 0x02)
        public static let serviceIssuance = Checkout(rawValue: 0x04)
        /// Data for terminals over the air.
        public static let terminalData = Checkout(rawValue: 0x08)
    }

    /// The ways to verify a holder: byte 3.
    public struct Verification: OptionSet, Hashable, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let onlinePIN = Verification(rawValue: 0x01)
        /// PIN on the customer's device.
        public static let devicePIN = Verification(rawValue: 0x02)
        public static let signature = Verification(rawValue: 0x04)
        public static let none = Verification(rawValue: 0x08)
        public static let deviceCode = Verification(rawValue: 0x10)
        public static let serviceCode = Verification(rawValue: 0x20)
        public static let identityDocument = Verification(rawValue: 0x40)
        public static let biometric = Verification(rawValue: 0x80)
    }

    /// The purpose of a tap: byte 4.
    public struct TapMode: OptionSet, Hashable, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        public static let passOnly = TapMode(rawValue: 0x01)
        public static let paymentOnly = TapMode(rawValue: 0x02)
        public static let passAndPayment = TapMode(rawValue: 0x04)
        public static let passOverPayment = TapMode(rawValue: 0x08)
    }

    public var system: System
    public var userInterface: UserInterface
    public var checkout: Checkout
    public var verification: Verification

    public init(
        system: System, userInterface: UserInterface = [], checkout: Checkout = [], verification: Verification = []
    ) {
        (self.system, self.userInterface) = (system, userInterface)
        (self.checkout, self.verification) = (checkout, verification)
    }

    /// An unattended kiosk with a display, which takes payment without verification and inflates.
    public static let kiosk = SmartTapCapabilities(
        system: [.unattended, .zlib], userInterface: .display, checkout: .payment, verification: .none)

    /// The five bytes of the record.
    func bytes(for mode: PassReading.Mode) -> [UInt8] {
        let tap: TapMode =
            switch mode {
            case .passOnly: .passOnly
            case .passOrPayment: .passOverPayment
            case .passAndPayment: .passAndPayment
            case .paymentOnly: .paymentOnly
            }
        return [system.rawValue, userInterface.rawValue, checkout.rawValue, verification.rawValue, tap.rawValue]
    }
}
