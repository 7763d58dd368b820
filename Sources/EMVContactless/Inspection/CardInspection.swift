public import SmartCard

/// What an inspection found on a card.
public struct CardInspection: Sendable {
    /// How the applications were found.
    public enum Directory: String, Hashable, Sendable {
        /// The contactless directory 2PAY.SYS.DDF01 (EMV Contactless Book B, 3.3).
        case ppse = "PPSE"
        /// The contact directory 1PAY.SYS.DDF01 (EMV Book 1, 12.2), which some cards have instead.
        case pse = "PSE"
        /// Known AIDs, tried one by one.
        case aidList = "AID list"
    }

    /// Nil if no application was found.
    public internal(set) var directory: Directory?
    /// In the order of the directory.
    public internal(set) var applications: [InspectedApplication] = []
    /// What is out of order in the directory.
    public internal(set) var findings: [String] = []
    /// Why the inspection ended before its time; what was read until then is there.
    public internal(set) var interruption: CardError?

    /// Of a card without applications.
    public init() {}
}

/// What an inspection found in one application.
public struct InspectedApplication: Sendable {
    public let aid: AID
    /// The directory's entry for it, the objects inside template 61; nil if it was found by its AID.
    public internal(set) var directoryEntry: TLVList?
    /// The FCI template 6F; nil if the card gave none that could be read.
    public internal(set) var fci: TLVList?
    /// The answer to GET PROCESSING OPTIONS, whichever of the two formats it had (EMV Book 3, 6.5.8.4).
    public internal(set) var processingOptions: TLVList?
    /// AIP, tag 82, two bytes.
    public internal(set) var applicationInterchangeProfile: [UInt8]?
    /// AFL, tag 94, four bytes an entry.
    public internal(set) var applicationFileLocator: [UInt8]?
    public internal(set) var records: [Record] = []
    /// Objects that GET DATA gave.
    public internal(set) var data: [TLVList] = []
    /// The answer to GENERATE AC, whichever of the two formats it had (EMV Book 3, 6.5.5.4).
    public internal(set) var cryptogramResponse: TLVList?
    /// The transaction log as it is, one array of bytes a record, laid out as tag 9F4F says.
    public internal(set) var log: [[UInt8]] = []
    /// What is out of order, in words, in the order in which it was met.
    public internal(set) var findings: [String] = []

    /// A record that the AFL names.
    public struct Record: Sendable {
        /// Short file identifier, 1 to 30.
        public let sfi: UInt8
        public let number: UInt8
        /// Whether the AFL has it take part in offline data authentication.
        public let isSigned: Bool
        /// The objects of the record, normally one template 70; nil if they could not be read.
        public let objects: TLVList?
    }

    /// A primitive data object, and where it was found.
    public struct Element: Sendable {
        public let object: TLV
        public let origin: Origin

        public enum Origin: Hashable, Sendable, CustomStringConvertible {
            case directory, fci, processingOptions, record(sfi: UInt8, number: UInt8), getData, generateAC

            /// `PPSE entry`, `FCI`, `GPO`, `record 2.1` (SFI and number), `GET DATA` or `GENERATE AC`.
            public var description: String {
                switch self {
                case .directory: "directory"
                case .fci: "FCI"
                case .processingOptions: "GPO"
                case .record(let sfi, let number): "record \(sfi).\(number)"
                case .getData: "GET DATA"
                case .generateAC: "GENERATE AC"
                }
            }
        }
    }

    /// Every primitive data object, in the order in which the card gave them.
    public var elements: [Element] {
        var found: [Element] = []
        func add(_ list: TLVList?, _ origin: Element.Origin) {
            for object in list?.flattened ?? [] where !object.tag.isConstructed {
                found.append(Element(object: object, origin: origin))
            }
        }
        add(directoryEntry, .directory)
        add(fci, .fci)
        add(processingOptions, .processingOptions)
        for record in records { add(record.objects, .record(sfi: record.sfi, number: record.number)) }
        for object in data { add(object, .getData) }
        add(cryptogramResponse, .generateAC)
        return found
    }

    /// The kernel that the directory entry asks for, or else that of the scheme (EMV Contactless Book B, 3.3.2.5); nil
    /// if the entry asks for one in a way that has no meaning.
    public var kernel: KernelIdentifier? { .requested(by: directoryEntry?[0x9F2A]?.value, aid: aid) }

    /// Whose meaning tags have in this application that mean different things.
    public var scope: DataElement.Scope {
        let scope = kernel.map { DataElement.Scope(kernel: $0) } ?? .common
        return scope == .common ? DataElement.Scope(aid: aid) : scope
    }

    /// The value of the first object with `tag` that the card gave, in the order of ``elements``.
    public func value(_ tag: TLVTag) -> [UInt8]? {
        elements.first { $0.object.tag == tag }.map { Array($0.object.value) }
    }
}
