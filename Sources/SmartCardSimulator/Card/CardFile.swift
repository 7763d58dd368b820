/// A readable text description of a card: its radio identity, its applications or memory, and its test keys.
///
/// <doc:CardFileFormat> documents the format.
///
///     let card = try CardFile(parsing: text).makeCard()
///
/// Parsing is strict: anything outside the format is an error that names its line.  Parsing opens no file; the caller
/// supplies the text.
public struct CardFile: Sendable {
    /// The maximum size of a card file, in bytes.
    public static let maximumSize = 65_536

    /// A one-line description of the card: the text after `card KIND`.
    public let summary: String
    /// The card's radio identity.
    public let radio: VirtualCardRadio
    let kind: Kind

    enum Kind: Sendable {
        case emv(EMVPersonality, phone: WalletPhone.Configuration?)
        case isoDEP
        case mifareClassic(MIFAREClassicMemory)
        case ntag213(NTAG213Memory)
        case ndefType4(Type4TagCard.Configuration)
        case felica([FeliCaCard.System])
        case passport(PassportCard.Configuration)
    }

    /// Reads the text of a card file.
    ///
    /// - Throws: ``CardFileError`` for the first thing that is wrong.
    public init(parsing text: some StringProtocol) throws(CardFileError) { try self.init(parsing: Array(text.utf8)) }

    /// Reads the bytes of a card file: ASCII, except in comments.
    ///
    /// - Throws: ``CardFileError`` for the first thing that is wrong.
    public init(parsing bytes: [UInt8]) throws(CardFileError) {
        self = try CardFileReader.read(CardFileSyntax.parse(bytes))
    }

    init(summary: String, radio: VirtualCardRadio, kind: Kind) {
        self.summary = summary
        self.radio = radio
        self.kind = kind
    }

    /// Returns a new card as the file describes it, in the state after personalization.
    public func makeCard() -> any VirtualCard {
        switch kind {
        case .emv(let personality, let phone?):
            WalletPhone(phone, over: EMVCard(radio: radio, personality: personality))
        case .emv(let personality, nil): EMVCard(radio: radio, personality: personality)
        case .isoDEP: ISODEPCard(radio: radio)
        case .mifareClassic(let memory): MIFAREClassicCard(radio: radio, memory: memory)
        case .ntag213(let memory): NTAG213Card(radio: radio, memory: memory)
        case .ndefType4(let configuration): Type4TagCard(radio: radio, configuration: configuration)
        case .felica(let systems): FeliCaCard(radio: radio, systems: systems)
        case .passport(let configuration): PassportCard(configuration, radio: radio)
        }
    }
}

/// Text that is not a card file.
public struct CardFileError: Error, Hashable, Sendable {
    /// The line at fault, counted from 1.
    public let line: Int
    /// The problem, and where it helps, the correct form.
    public let reason: String
}

extension CardFileError: CustomStringConvertible {
    /// `line 12: “sak” takes 1 byte, not 2`
    public var description: String { "line \(line): \(reason)" }
}
