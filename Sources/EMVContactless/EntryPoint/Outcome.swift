public import SmartCard

/// The outcome of a kernel or of Entry Point, with all its parameters (EMV Contactless Book A, 6.2, table 6-1).
///
/// An outcome is a value.  A card that declines, requires another interface or is invalid is not an error of this
/// program.
public struct Outcome: Hashable, Sendable {
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        /// This combination of application and kernel must not be used; the next one is.
        case selectNext
        /// The card is to be presented again.
        case tryAgain
        case approved
        case declined
        /// The issuer decides.
        case onlineRequest
        /// The card has to be used through another interface.
        case tryAnotherInterface
        case endApplication

        /// True if the transaction is decided, or the issuer decides it.
        var isDecision: Bool { [.approved, .declined, .onlineRequest].contains(self) }
    }

    /// The start at which Entry Point continues (Book B, 3).
    public enum Start: String, Hashable, Sendable {
        /// Start with pre-processing.
        case a = "A"
        /// Start with protocol activation.
        case b = "B"
        /// Start with combination selection.
        case c = "C"
        /// Start with kernel activation.
        case d = "D"
    }

    /// The answers of the issuer that restart Entry Point.
    public enum OnlineResponseData: String, Hashable, Sendable {
        /// An answer that contains data for the card.
        case emvData
        /// Any answer.
        case any
    }

    /// The method of cardholder verification (Book A, table 6-1, CVM).
    public enum CVM: String, Hashable, Sendable, CaseIterable, Codable {
        /// The issuer verifies a PIN that the cardholder has yet to enter.
        case onlinePIN
        /// The cardholder has yet to sign.
        case signature
        /// The consumer device has verified the cardholder: "confirmation code verified".
        case deviceCVM
        /// The cardholder is not verified.  Compare an optional `CVM` with `CVM.none`: a bare `.none` is Optional's
        /// nil.
        case none
    }

    public enum Interface: String, Hashable, Sendable {
        case contactChip, magneticStripe
    }

    public var kind: Kind
    /// The start; nil: Entry Point does not start again.
    public var start: Start?
    public var onlineResponseData: OnlineResponseData?
    /// The cardholder verification method; nil: not applicable.
    public var cvm: CVM?
    /// True if the card was authenticated offline; nil if that was not required.
    public var isAuthentic: Bool?
    /// The user interface request to show at once.
    public var userInterfaceRequest: UserInterfaceRequest?
    /// The user interface request to show when Entry Point starts again.
    public var userInterfaceRequestOnRestart: UserInterfaceRequest?
    /// The data for authorization and clearing.
    public var dataRecord: DataRecord?
    /// Further data of the kernel.
    public var discretionaryData: DataRecord?
    /// The facts for a receipt; nil unless the transaction is approved, declined or goes online.
    public var receiptFacts: ReceiptFacts?
    /// Tag 5F25, the effective date, which no book includes in the data record; nil if the card did not supply it.
    public var effectiveDate: [UInt8]?
    /// The interface to use with ``Kind/tryAnotherInterface``; nil: not applicable.
    public var alternateInterfacePreference: Interface?
    /// True if a receipt has to be offered.
    public var receipt: Bool
    /// The time for which the field is switched off, in milliseconds; nil: it stays on.
    public var fieldOff: Int?
    /// The time for which the card may stay in the field while the issuer decides, in milliseconds; 0: none.
    public var removalTimeout: Int
    /// The memory that the kernel keeps for its next activation; nil: unchanged.
    public var memory: (any KernelMemory)? {
        get { erasedMemory.value as? any KernelMemory }
        set { erasedMemory = Erased(newValue) }
    }
    private var erasedMemory = Erased(nil)
    /// The reason, for a log or a test bench: a sentence without card data.
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

/// A kernel's data objects, in the clear.  A record prints masked by `SensitiveData`.
public struct DataRecord: Hashable, Sendable {
    public struct Element: Hashable, Sendable {
        public let tag: TLVTag
        public let value: [UInt8]

        public init(_ tag: TLVTag, _ value: [UInt8]) {
            self.tag = tag
            self.value = value
        }
    }

    /// The elements, in the kernel's order.
    public private(set) var elements: [Element]

    public init(_ elements: [Element] = []) { self.elements = elements }

    /// The value of `tag`; setting nil removes the element.
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

    /// The elements as concatenated BER-TLV.
    public var encoded: [UInt8] { elements.flatMap { $0.tag.encode($0.value) } }
}

extension DataRecord.Element: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The masked elements: `5A:476173******0010`.
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
