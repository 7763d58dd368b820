/// A reader, as an app shows it and lets a user choose it.
///
/// Two values are equal if their ``serial`` is equal: they stand for one reader, even if other properties have
/// changed.
public struct CardReader: Identifiable, Sendable {
    public var id: String { serial }
    /// An identifier that is the same each time the reader is plugged in: the serial number, or, for a reader without
    /// one, the model and port, `072F:2200@1-2#0`.
    public let serial: String
    /// The USB vendor and product identifiers, `072F:2200`; nil for a reader that is not on USB.
    public let vendorIdentifier: String?
    public let name: String?
    public let status: CardReaderStatus
    /// The version of the firmware; nil if the reader does not report it.
    public let softwareVersion: String?
    /// The charge of the battery, from 0 to 1; nil for a reader that is powered by its cable.
    public let batteryLevel: Float?
    public let readerType: CardReaderType
    /// The location that the app's ``ReaderLocationProvider`` gave when the reader was connected; nil before.
    public let locationId: String?

    public init(
        serial: String, vendorIdentifier: String? = nil, name: String? = nil,
        status: CardReaderStatus = CardReaderStatus(connected: false, remembered: false),
        softwareVersion: String? = nil, batteryLevel: Float? = nil, readerType: CardReaderType = .other,
        locationId: String? = nil
    ) {
        (self.serial, self.vendorIdentifier, self.name) = (serial, vendorIdentifier, name)
        (self.status, self.softwareVersion, self.batteryLevel) = (status, softwareVersion, batteryLevel)
        (self.readerType, self.locationId) = (readerType, locationId)
    }

    /// The discovery method that finds readers of this type.
    public var discoveryMethod: CardReaderDiscoveryMethod {
        switch readerType {
        case .chipper, .stripeM2, .wisepad3: .bluetoothScan
        case .appleBuiltIn: .localMobile
        case .acr122u, .usbCCID: .usb
        case .other: vendorIdentifier == CardReader.simulatedVendor ? .simulated : .usb
        }
    }

    static let simulatedVendor = "simulated"
}

extension CardReader: Equatable {
    public static func == (a: Self, b: Self) -> Bool { a.serial == b.serial }

    /// Compares all properties, not the serial alone.
    func isIdentical(to other: Self) -> Bool {
        self == other && vendorIdentifier == other.vendorIdentifier && name == other.name && status == other.status
            && softwareVersion == other.softwareVersion && batteryLevel == other.batteryLevel
            && readerType == other.readerType && locationId == other.locationId
    }

    /// Returns the same reader in its connected state, at the given location.
    func connected(at locationId: String?) -> Self {
        CardReader(
            serial: serial, vendorIdentifier: vendorIdentifier, name: name,
            status: CardReaderStatus(connected: true, remembered: status.remembered),
            softwareVersion: softwareVersion, batteryLevel: batteryLevel, readerType: readerType,
            locationId: locationId)
    }
}

public struct CardReaderStatus: Hashable, Sendable {
    /// True from the moment `connect` returns the reader until it is disconnected.
    public let connected: Bool
    /// True if an earlier connection to the reader succeeded.
    public let remembered: Bool

    public init(connected: Bool, remembered: Bool) { (self.connected, self.remembered) = (connected, remembered) }
}

public enum CardReaderType: String, CaseIterable, Codable, Hashable, Sendable {
    case chipper, stripeM2, wisepad3, appleBuiltIn
    /// An ACS ACR122U, or a reader that identifies itself as one.
    case acr122u
    /// Any other USB reader.
    case usbCCID
    /// A simulated reader, or one that pcscd reaches by other means than USB.
    case other

    /// The model name, for statistics.
    public var model: String {
        switch self {
        case .chipper: "CHIPPER_2X"
        case .stripeM2: "STRIPE_M2"
        case .wisepad3: "WISEPAD_3"
        case .appleBuiltIn: "BUILT_IN"
        case .acr122u: "ACR122U"
        case .usbCCID: "USB_CCID"
        case .other: "UNKNOWN"
        }
    }
}

public enum CardReaderDiscoveryMethod: Hashable, Sendable {
    /// The contract's method for phones; finds nothing here.
    case localMobile
    /// The contract's method for Bluetooth; finds nothing here.
    case bluetoothScan
    /// Readers over PC/SC and over USB.
    case usb
    /// The readers of ``SimulatedReaders``.
    case simulated
}

public enum CardReaderServiceDiscoveryStatus: Hashable, Sendable {
    case idle, discovering, fault
}

public enum CardReaderServiceStatus: Hashable, Sendable {
    case ready
    /// The last search failed.
    case fault
}

public enum PaymentStatus: Hashable, Sendable {
    /// No reader is connected, the last card is still to be removed, or the payment service is creating an intent.
    case notReady
    /// A payment can begin.
    case ready
    /// The reader waits for a card or reads one.
    case waitingForInput
    /// The payment service processes the payment.
    case processing
}

public struct CardReaderConnectionOptions: Hashable, Sendable {
    public let builtInOptions: BuiltInCardReaderConnectionOptions?
    /// True to reconnect a reader that was unplugged when it returns.
    public let autoReconnect: Bool

    public init(builtInOptions: BuiltInCardReaderConnectionOptions? = nil, autoReconnect: Bool = true) {
        (self.builtInOptions, self.autoReconnect) = (builtInOptions, autoReconnect)
    }
}

public struct BuiltInCardReaderConnectionOptions: Hashable, Sendable {
    /// True if connecting accepts the terms of service for a merchant who has not accepted them yet.
    public let termsOfServiceAcceptancePermitted: Bool

    public init(termsOfServiceAcceptancePermitted: Bool) {
        self.termsOfServiceAcceptancePermitted = termsOfServiceAcceptancePermitted
    }
}
