/// A file of a travel document's chip (ICAO 9303-10, 3 and 4).
public enum ElementaryFile: Hashable, Sendable {
    /// The facts that the chip tells of itself, in the master file, free to read.
    case atrInfo
    /// The variants of access control, in the master file, free to read.
    case cardAccess
    /// The signed list of protocols, in the master file.
    case cardSecurity
    /// The data groups that are there; not signed.
    case com
    /// The signature over the data groups.
    case sod
    /// A data group, 1 to 16.
    case dataGroup(Int)

    /// The file identifier.
    var identifier: [UInt8] {
        switch self {
        case .atrInfo: [0x2F, 0x01]
        case .cardAccess: [0x01, 0x1C]
        case .cardSecurity, .sod: [0x01, 0x1D]
        case .com: [0x01, 0x1E]
        case .dataGroup(let number): [0x01, UInt8(truncatingIfNeeded: number)]
        }
    }

    /// The short identifier, in P1 of READ BINARY.
    var shortIdentifier: UInt8 { identifier[1] & 0x1F }

    /// True for a file of the master file, beside the application of travel documents.
    var isInMasterFile: Bool { [.atrInfo, .cardAccess, .cardSecurity].contains(self) }

    /// The tag of the object that the file is; nil for a file of several objects.
    var tag: UInt8? {
        switch self {
        case .atrInfo: nil
        case .cardAccess: 0x31
        case .cardSecurity: 0x30
        case .com: 0x60
        case .sod: 0x77
        case .dataGroup(let number): Self.groupTags[number - 1]
        }
    }

    private static let groupTags: [UInt8] = [
        0x61, 0x75, 0x63, 0x76, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6A, 0x6B, 0x6C, 0x6D, 0x6E, 0x6F, 0x70,
    ]

    /// Returns the data group with this number; nil unless it is 1 to 16.
    public static func group(_ number: Int) -> ElementaryFile? {
        (1...16).contains(number) ? .dataGroup(number) : nil
    }
}

extension ElementaryFile: CustomStringConvertible {
    /// The name in ICAO 9303: `DG1`, `EF.SOD`.
    public var description: String {
        switch self {
        case .atrInfo: "EF.ATR/INFO"
        case .cardAccess: "EF.CardAccess"
        case .cardSecurity: "EF.CardSecurity"
        case .com: "EF.COM"
        case .sod: "EF.SOD"
        case .dataGroup(let number): "DG\(number)"
        }
    }
}
