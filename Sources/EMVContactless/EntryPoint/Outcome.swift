public import SmartCard

/// How a kernel, or Entry Point, ends its part of a transaction, with every parameter of it (EMV Contactless Book A,
/// 6.2, table 6-1).
///
/// An outcome is a value.  That a card declines, wants another interface or is no good is no error of this program.
public struct Outcome: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// This combination of application and kernel is not to be used; the next one is.
        case selectNext
        /// The card is to be presented again.
        case tryAgain
        case approved
        case declined
        /// The issuer has to decide.
        case onlineRequest
        /// The card has to be used through another interface.
        case tryAnotherInterface
        case endApplication

        /// Whether the transaction has been decided, or the issuer decides it.
        var isDecision: Bool { [.approved, .declined, .onlineRequest].contains(self) }
    }

    /// Where Entry Point goes on (Book B, 3).
    public enum Start: String, Hashable, Sendable {
        /// With pre-processing.
        case a = "A"
        /// With protocol activation.
        case b = "B"
        /// With combination selection.
        case c = "C"
        /// With kernel activation.
        case d = "D"
    }

    /// Which answer of the issuer makes Entry Point start again.
    public enum OnlineResponseData: String, Hashable, Sendable {
        /// One that holds data for the card.
        case emvData
        /// Any one.
        case any
    }

    /// How the cardholder is verified (Book A, table 6-1, CVM).
    public enum CVM: String, Hashable, Sendable, CaseIterable, Codable {
        /// The issuer verifies a PIN that the cardholder has yet to enter.
        case onlinePIN
        /// The cardholder has yet to sign.
        case signature
        /// The cardholder's own device has verified the cardholder: "confirmation code verified".
        case deviceCVM
        /// The cardholder is not verified.  An optional `CVM` is compared with `CVM.none`, since a bare `.none` is its nil.
        case none
    }

    public enum Interface: String, Hashable, Sendable {
        case contactChip, magneticStripe
    }

    public var kind: Kind
    /// nil: Entry Point does not start again.
    public var start: Start?
    public var onlineResponseData: OnlineResponseData?
    /// nil: not applicable.
    public var cvm: CVM?
    /// Whether the card has proved offline that it is genuine; nil if it did not have to.
    public var isAuthentic: Bool?
    /// To be shown at once.
    public var userInterfaceRequest: UserInterfaceRequest?
    /// To be shown when Entry Point starts again.
    public var userInterfaceRequestOnRestart: UserInterfaceRequest?
    /// For the authorisation and the clearing of the transaction.
    public var dataRecord: DataRecord?
    /// What else the kernel has to tell.
    public var discretionaryData: DataRecord?
    /// What a receipt has to state; nil unless the transaction is approved, declined or goes online.
    public var receiptFacts: ReceiptFacts?
    /// Tag 5F25, which no book has in the data record; nil if the card did not give it.
    public var effectiveDate: [UInt8]?
    /// With ``Kind/tryAnotherInterface``; nil: not applicable.
    public var alternateInterfacePreference: Interface?
    /// Whether a receipt has to be offered.
    public var receipt: Bool
    /// For how long the field is switched off, in milliseconds; nil: it stays on.
    public var fieldOff: Int?
    /// How long the card may stay in the field while the issuer decides, in milliseconds; 0: not at all.
    public var removalTimeout: Int
    /// The transactions that a card may have to recover from now on; nil: as before.
    public var tornTransactions: TornTransactionLog?
    /// Why, for a log or a test bench: a sentence without card data.
    public var reason: String

    public init(
        _ kind: Kind, start: Start? = nil, onlineResponseData: OnlineResponseData? = nil, cvm: CVM? = nil,
        userInterfaceRequest: UserInterfaceRequest? = nil, userInterfaceRequestOnRestart: UserInterfaceRequest? = nil,
        dataRecord: DataRecord? = nil, discretionaryData: DataRecord? = nil,
        alternateInterfacePreference: Interface? = nil, receipt: Bool = false, fieldOff: Int? = nil,
        removalTimeout: Int = 0, reason: String
    ) {
        self.kind = kind
        self.start = start
        self.onlineResponseData = onlineResponseData
        self.cvm = cvm
        self.userInterfaceRequest = userInterfaceRequest
        self.userInterfaceRequestOnRestart = userInterfaceRequestOnRestart
        self.dataRecord = dataRecord
        self.discretionaryData = discretionaryData
        self.alternateInterfacePreference = alternateInterfacePreference
        self.receipt = receipt
        self.fieldOff = fieldOff
        self.removalTimeout = removalTimeout
        self.reason = reason
    }
}

/// Data objects that a kernel hands out, in the clear.  It prints masked, as `SensitiveData` has it.
public struct DataRecord: Hashable, Sendable {
    public struct Element: Hashable, Sendable {
        public let tag: TLVTag
        public let value: [UInt8]

        public init(_ tag: TLVTag, _ value: [UInt8]) {
            self.tag = tag
            self.value = value
        }
    }

    /// In the order in which the kernel put them.
    public private(set) var elements: [Element]

    public init(_ elements: [Element] = []) { self.elements = elements }

    /// The value of `tag`; setting nil takes the element out.
    public subscript(tag: TLVTag) -> [UInt8]? {
        get { elements.first { $0.tag == tag }?.value }
        set {
            let index = elements.firstIndex { $0.tag == tag }
            switch (index, newValue) {
            case (let index?, let value?): elements[index] = Element(tag, value)
            case (let index?, nil): elements.remove(at: index)
            case (nil, let value?): elements.append(Element(tag, value))
            case (nil, nil): break
            }
        }
    }

    /// The elements as BER-TLV, one behind the other.
    public var encoded: [UInt8] { elements.flatMap { $0.tag.encode($0.value) } }
}

extension DataRecord.Element: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// `5A:476173******0010`
    public var description: String {
        if tag.isConstructed, let objects = SensitiveData.maskedTLV(value) { return "\(tag)[ \(objects) ]" }
        return "\(tag):\(SensitiveData.masked(value, of: tag))"
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}

extension DataRecord: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { elements.map(\.description).joined(separator: " ") }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}
