/// A reader, as an app shows and chooses it.
///
/// Two values are equal if their ``serial`` is: they are of one reader, whatever else has changed of it.
public struct CardReader: Identifiable, Sendable {
    public var id: String { serial }
    /// The same each time the reader is plugged in: its serial number, or where it has none of its own its model and port,
    /// `072F:2200@1-2#0`.
    public let serial: String
    /// USB's: `072F:2200`; nil for a reader that is not on USB.
    public let vendorIdentifier: String?
    public let name: String?
    public let status: CardReaderStatus
    /// Nil where the reader does not tell.
    public let softwareVersion: String?
    /// From 0 to 1; nil for a reader that lives on its cable.
    public let batteryLevel: Float?
    public let readerType: CardReaderType
    /// What the app's ``ReaderLocationProvider`` said when the reader was connected; nil before.
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

    /// How a reader of this type is found.
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

    /// Whether every field is the same.
    func isIdentical(to other: Self) -> Bool {
        self == other && vendorIdentifier == other.vendorIdentifier && name == other.name && status == other.status
            && softwareVersion == other.softwareVersion && batteryLevel == other.batteryLevel
            && readerType == other.readerType && locationId == other.locationId
    }

    /// The same reader, connected and at a place.
    func connected(at locationId: String?) -> Self {
        CardReader(
            serial: serial, vendorIdentifier: vendorIdentifier, name: name,
            status: CardReaderStatus(connected: true, remembered: status.remembered),
            softwareVersion: softwareVersion, batteryLevel: batteryLevel, readerType: readerType,
            locationId: locationId)
    }
}

public struct CardReaderStatus: Hashable, Sendable {
    /// Of the reader that `connect` has returned, until it is disconnected.
    public let connected: Bool
    /// Whether a connection to it has succeeded before.
    public let remembered: Bool

    public init(connected: Bool, remembered: Bool) { (self.connected, self.remembered) = (connected, remembered) }
}

public enum CardReaderType: String, CaseIterable, Codable, Hashable, Sendable {
    case chipper, stripeM2, wisepad3, appleBuiltIn
    /// ACS ACR122U, and readers that say they are one.
    case acr122u
    /// Another reader on USB.
    case usbCCID
    /// A simulated one, or one that pcscd has from elsewhere.
    case other

    /// The model, for statistics.
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
    /// Of telephones; finds nothing here.
    case localMobile
    /// Finds nothing here.
    case bluetoothScan
    /// PC/SC and USB together.
    case usb
    /// The readers of a ``SimulatedReaders``.
    case simulated
}

public enum CardReaderServiceDiscoveryStatus: Hashable, Sendable {
    case idle, discovering, fault
}

public enum CardReaderServiceStatus: Hashable, Sendable {
    case ready
    /// The last search has failed.
    case fault
}

public enum PaymentStatus: Hashable, Sendable {
    /// No reader is connected, or the last card has to be removed, or the payment service makes an intent.
    case notReady
    /// A payment can begin.
    case ready
    /// A card is awaited, or being read.
    case waitingForInput
    /// The payment service is asked.
    case processing
}

public struct CardReaderConnectionOptions: Hashable, Sendable {
    public let builtInOptions: BuiltInCardReaderConnectionOptions?
    /// Whether a reader that was unplugged is connected again when it is back.
    public let autoReconnect: Bool

    public init(builtInOptions: BuiltInCardReaderConnectionOptions? = nil, autoReconnect: Bool = true) {
        (self.builtInOptions, self.autoReconnect) = (builtInOptions, autoReconnect)
    }
}

public struct BuiltInCardReaderConnectionOptions: Hashable, Sendable {
    /// Whether a merchant who has not accepted the terms yet accepts them by connecting.
    public let termsOfServiceAcceptancePermitted: Bool

    public init(termsOfServiceAcceptancePermitted: Bool) {
        self.termsOfServiceAcceptancePermitted = termsOfServiceAcceptancePermitted
    }
}
