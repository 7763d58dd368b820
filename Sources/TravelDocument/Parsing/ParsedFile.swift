/// A file of a travel document, parsed.  Nothing in it has been verified.
public enum ParsedFile: Hashable, Sendable {
    /// EF.ATR/INFO.
    case atrInfo(ATRInfo)
    /// EF.COM.
    case commonDataElements(CommonDataElements)
    /// DG1.
    case machineReadableZone(MachineReadableZone)
    /// DG2.
    case encodedFaces(EncodedFaces)
    /// DG5.
    case displayedPortraits(DisplayedPortraits)
    /// DG7.
    case displayedSignatures(DisplayedSignatures)
    /// DG11.
    case additionalPersonalDetails(AdditionalPersonalDetails)
    /// DG12.
    case additionalDocumentDetails(AdditionalDocumentDetails)
    /// DG13.
    case optionalDetails(OptionalDetails)
    /// DG14.
    case securityOptions(SecurityOptions)
    /// DG15.
    case activeAuthenticationPublicKey(ActiveAuthenticationPublicKey)
    /// DG16.
    case personsToNotify(PersonsToNotify)

    /// Parses a file.
    ///
    /// - Parameters:
    ///   - bytes: all of the file, and nothing after it: at most 1 MiB.
    ///   - file: the file's name.
    /// - Returns: nil for the files in the master file that others than ``ATRInfo`` parse, for EF.SOD, and for data groups
    ///   with biometrics other than a face and those that are reserved.
    /// - Throws: ``TravelDocumentFormatError``.
    public init?(parsing bytes: [UInt8], of file: ElementaryFile) throws(TravelDocumentFormatError) {
        switch file {
        case .atrInfo: self = .atrInfo(try ATRInfo(parsing: bytes))
        case .com: self = .commonDataElements(try CommonDataElements(parsing: bytes))
        case .dataGroup(1): self = .machineReadableZone(try MachineReadableZone(parsing: bytes))
        case .dataGroup(2): self = .encodedFaces(try EncodedFaces(parsing: bytes))
        case .dataGroup(5): self = .displayedPortraits(try DisplayedPortraits(parsing: bytes))
        case .dataGroup(7): self = .displayedSignatures(try DisplayedSignatures(parsing: bytes))
        case .dataGroup(11): self = .additionalPersonalDetails(try AdditionalPersonalDetails(parsing: bytes))
        case .dataGroup(12): self = .additionalDocumentDetails(try AdditionalDocumentDetails(parsing: bytes))
        case .dataGroup(13): self = .optionalDetails(try OptionalDetails(parsing: bytes))
        case .dataGroup(14): self = .securityOptions(try SecurityOptions(parsing: bytes))
        case .dataGroup(15):
            self = .activeAuthenticationPublicKey(try ActiveAuthenticationPublicKey(parsing: bytes))
        case .dataGroup(16): self = .personsToNotify(try PersonsToNotify(parsing: bytes))
        case .cardAccess, .cardSecurity, .sod, .dataGroup: return nil
        }
    }
}
