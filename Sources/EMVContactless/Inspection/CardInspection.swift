public import SmartCard

/// The result of inspecting a card.
public struct CardInspection: Sendable {
    /// The way in which the applications were found.
    public enum Directory: String, Hashable, Sendable {
        /// The contactless directory 2PAY.SYS.DDF01 (EMV Contactless Book B, 3.3).
        case ppse = "PPSE"
        /// The contact directory 1PAY.SYS.DDF01 (EMV Book 1, 12.2), which some cards have instead.
        case pse = "PSE"
        /// Known AIDs, tried one by one.
        case aidList = "AID list"
    }

    /// The directory; nil if no application was found.
    public internal(set) var directory: Directory?
    /// The applications, in the order of the directory.
    public internal(set) var applications: [InspectedApplication] = []
    /// The errors in the directory.
    public internal(set) var findings: [String] = []
    /// The error that interrupted the inspection; everything read before is kept.
    public internal(set) var interruption: CardError?

    /// Creates the inspection of a card without applications.
    public init() {}
}

/// The result of inspecting an application.
public struct InspectedApplication: Sendable {
    public let aid: AID
    /// The directory entry, the objects inside template 61; nil if the application was found by its AID.
    public internal(set) var directoryEntry: TLVList?
    /// The FCI template 6F; nil if the card supplied none that could be parsed.
    public internal(set) var fci: TLVList?
    /// The answer to GET PROCESSING OPTIONS, in either format (EMV Book 3, 6.5.8.4).
    public internal(set) var processingOptions: TLVList?
    /// The AIP, tag 82, two bytes.
    public internal(set) var applicationInterchangeProfile: [UInt8]?
    /// The AFL, tag 94, four bytes for each entry.
    public internal(set) var applicationFileLocator: [UInt8]?
    public internal(set) var records: [Record] = []
    /// The objects that GET DATA returned.
    public internal(set) var data: [TLVList] = []
    /// The answer to GENERATE AC, in either format (EMV Book 3, 6.5.5.4).
    public internal(set) var cryptogramResponse: TLVList?
    /// The transaction log, one array of bytes for each record, with the layout of tag 9F4F.
    public internal(set) var log: [[UInt8]] = []
    /// Descriptions of the errors, in the order in which they were found.
    public internal(set) var findings: [String] = []

    /// A record that the AFL names.
    public struct Record: Sendable {
        /// The short file identifier, 1 to 30.
        public let sfi: UInt8
        public let number: UInt8
        /// True if the AFL includes the record in offline data authentication.
        public let isSigned: Bool
        /// The objects of the record, normally one template 70; nil if they could not be parsed.
        public let objects: TLVList?
    }

    /// A primitive data object, and the place where it was found.
    public struct Element: Sendable {
        public let object: TLV
        public let origin: Origin

        public enum Origin: Hashable, Sendable, CustomStringConvertible {
            case directory, fci, processingOptions, record(sfi: UInt8, number: UInt8), getData, generateAC

            /// The place as text: `PPSE entry`, `FCI`, `GPO`, `record 2.1` (SFI and number), `GET DATA` or `GENERATE
            /// AC`.
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

    /// All primitive data objects, in the order in which the card supplied them.
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

    /// The kernel that the directory entry requests, otherwise that of the scheme (EMV Contactless Book B, 3.3.2.5);
    /// nil if the request is malformed.
    public var kernel: KernelIdentifier? { .requested(by: directoryEntry?[0x9F2A]?.value, aid: aid) }

    /// The scheme that decides the meaning of ambiguous tags in this application.
    public var scope: DataElement.Scope {
        let scope = kernel.map { DataElement.Scope(kernel: $0) } ?? .common
        return scope == .common ? DataElement.Scope(aid: aid) : scope
    }

    /// Returns the value of the first object with `tag`, in the order of ``elements``.
    public func value(_ tag: TLVTag) -> [UInt8]? {
        elements.first { $0.object.tag == tag }.map { Array($0.object.value) }
    }
}
