import SmartCard

/// The personalization of an EMV card: its directory and its applications.
struct EMVPersonality: Sendable {
    /// The DF name of the directory, `2PAY.SYS.DDF01` (EMV Contactless Book B, 3.3.2).
    static let directoryName = Array("2PAY.SYS.DDF01".utf8)

    /// The FCI of the PPSE; nil for a card without a PPSE.
    var directory: [UInt8]?
    /// The status word of SELECT of the PPSE.
    var directoryStatus: StatusWord?
    var applications: [EMVApplication]
    /// The additional time the card takes for each command.
    var delays: [EMVApplication.Command: Duration] = [:]
    /// The maximum number of data bytes in the response to each command.
    var truncations: [EMVApplication.Command: Int] = [:]
    /// The command at which the card is torn from the field, once.
    var tear: Tear?

    struct Tear: Hashable, Sendable {
        var command: EMVApplication.Command
        /// True if the card has carried out the command, so that only the response is lost.
        var isHeard: Bool
    }
}

/// One application of an EMV card.
struct EMVApplication: Sendable {
    /// A command that the card knows.
    enum Command: String, CaseIterable, Sendable {
        case select
        case gpo
        case internalAuthenticate = "internal-authenticate"
        case generateAC = "generate-ac"
        case readRecord = "read-record"
        case getData = "get-data"
        case externalAuthenticate = "external-authenticate"
        case putData = "put-data"
        case applicationBlock = "application-block"
        case applicationUnblock = "application-unblock"
        case exchangeRelayResistanceData = "exchange-relay-resistance-data"
        case computeCryptographicChecksum = "compute-cryptographic-checksum"
        case recoverAC = "recover-ac"
        /// PUT DATA without secure messaging, for the data envelopes of EMV Contactless Book C-2.
        case putEnvelope = "put-envelope"

        /// Class and instruction (EMV Book 3, 6.5; Book 1, 11.3; EMV Contactless Book C-2, 5; PUT DATA with secure
        /// messaging: EMV Card Personalization Specification).
        var code: (cla: UInt8, ins: UInt8) {
            switch self {
            case .select: (0x00, 0xA4)
            case .gpo: (0x80, 0xA8)
            case .internalAuthenticate: (0x00, 0x88)
            case .generateAC: (0x80, 0xAE)
            case .readRecord: (0x00, 0xB2)
            case .getData: (0x80, 0xCA)
            case .externalAuthenticate: (0x00, 0x82)
            case .putData: (0x04, 0xDA)
            case .applicationBlock: (0x84, 0x1E)
            case .applicationUnblock: (0x84, 0x18)
            case .exchangeRelayResistanceData: (0x80, 0xEA)
            case .computeCryptographicChecksum: (0x80, 0x2A)
            case .recoverAC: (0x80, 0xD0)
            case .putEnvelope: (0x80, 0xDA)
            }
        }

        init?(cla: UInt8, ins: UInt8) {
            guard let command = Self.allCases.first(where: { $0.code == (cla, ins) }) else { return nil }
            self = command
        }
    }

    /// The status word that a file states for a command.
    struct Status: Hashable, Sendable {
        var word: StatusWord
        /// True if the command succeeds after the card has left the field and returned, and is then refused again.
        var untilPresentedAgain: Bool
    }

    /// Cryptogram Information Data, bits 8 and 7 (EMV Book 3, 6.5.5.4).
    ///
    /// The simulator does not import EMVContactless: card and terminal do not make one mistake together.
    enum Cryptogram: UInt8, CaseIterable, Sendable {
        case aac = 0x00
        case tc = 0x40
        case arqc = 0x80

        /// The spelling in a card file.
        var name: String {
            switch self {
            case .aac: "aac"
            case .tc: "tc"
            case .arqc: "arqc"
            }
        }
    }

    /// The response to a command with a configurable response, such as GET PROCESSING OPTIONS or GENERATE AC (EMV Book
    /// 3, 6.5; EMV Contactless Book C-2, 5).
    struct Response: Sendable {
        /// Format 1, template 80: the values alone.  Else format 2, template 77: the objects.
        var valuesOnly: Bool
        var objects: [CardFileObject]

        func encoded(_ named: [NamedValue: [UInt8]]) -> [UInt8] {
            valuesOnly ? TLVTag(0x80).encode(values(named)) : TLVTag(0x77).encode(objects.encoded(named))
        }

        /// The values of the objects, in their order.
        func values(_ named: [NamedValue: [UInt8]]) -> [UInt8] {
            objects.flatMap { object -> [UInt8] in
                guard case .primitive(_, let value) = object else { return object.encoded(named) }
                return value.bytes(named)
            }
        }
    }

    /// Responses to one command, each for a case.
    struct Responses: Sendable {
        struct Case: Sendable {
            /// The cryptogram it goes with; nil for any.
            var cryptogram: Cryptogram?
            /// Only where the reader takes a signature with the cryptogram.
            var isSigned: Bool
            var response: Response
        }

        var cases: [Case] = []

        /// The response of the case that says most of those that apply.
        ///
        /// An AAC is signed only by a card that has a case for that (EMV Contactless Book C-2, Application Capabilities
        /// Information: CDA supported over TC, ARQC and AAC).
        subscript(cryptogram: Cryptogram, signed signed: Bool) -> Response? {
            cases
                .filter { one in
                    (one.cryptogram ?? cryptogram) == cryptogram
                        && (!one.isSigned || signed && (cryptogram != .aac || one.cryptogram == .aac))
                }
                .max { Self.rank($0) < Self.rank($1) }?.response
        }

        private static func rank(_ one: Case) -> Int { (one.isSigned ? 2 : 0) + (one.cryptogram == nil ? 0 : 1) }

        var objects: [CardFileObject] { cases.flatMap(\.response.objects) }
        /// The response that a signature goes with: a signed one or a TC, else the first.
        var authenticated: Response? {
            (cases.first { $0.isSigned || $0.cryptogram == .tc } ?? cases.first)?.response
        }
    }

    /// The address of a record.
    struct RecordAddress: Hashable, Comparable, Sendable {
        /// Short file identifier, 1 to 30.
        var sfi: UInt8
        /// 1 to 255.
        var number: UInt8

        static func < (a: Self, b: Self) -> Bool { (a.sfi, a.number) < (b.sfi, b.number) }
    }

    struct Record: Sendable {
        var objects: [CardFileObject]
        /// True if the signatures of issuer and card cover it (EMV Book 3, 10.3).
        var isSigned: Bool
    }

    /// The highest cryptogram that the card gives when it is asked to approve offline.
    enum Decision: Hashable, Sendable {
        /// TC up to this amount in the smallest unit of the currency, ARQC above it.
        case approve(upTo: UInt64)
        /// Never TC.
        case online
        /// Always AAC.
        case decline
        /// AAC, and never TC once the card has left the field and come back, with its holder's confirmation.
        case declineUntilPresentedAgain
    }

    var aid: AID
    /// The bytes that the reader appends to the AID in SELECT (Extended Selection, 9F29); usually empty.
    var extendedSelection: [UInt8] = []
    /// The response to SELECT, template 6F.
    var fci: [UInt8]
    /// PDOL (tag 9F38): the data that GET PROCESSING OPTIONS supplies.
    var pdol: DOL = DOL()
    var processingOptions = Responses()
    /// DDOL (tag 9F49): the data that INTERNAL AUTHENTICATE supplies.  The default contains the unpredictable number.
    var ddol: DOL = DOL()
    /// The answer to INTERNAL AUTHENTICATE; nil for an application without that command.
    var internalAuthenticate: Response?
    /// CDOL1 (tag 8C): the data that GENERATE AC supplies.
    var cdol1: DOL = DOL()
    /// The answers to GENERATE AC; empty for an application without it.
    var generateAC = Responses()
    /// DRDOL (tag 9F51): the data that RECOVER AC supplies; nil for an application that recovers nothing.
    var drdol: DOL?
    /// The answer to EXCHANGE RELAY RESISTANCE DATA; nil for an application without the protocol.
    var relayResistance: Response?
    /// UDOL (tag 9F69): the data that COMPUTE CRYPTOGRAPHIC CHECKSUM supplies.  The default contains 9F6A.
    var udol: DOL = DOL()
    /// The answers to COMPUTE CRYPTOGRAPHIC CHECKSUM; empty for an application without it.
    var cryptographicChecksum = Responses()
    var checksum: CryptographicChecksum?
    /// DSDOL (tag 9F5B): the data that GENERATE AC may supply after the data for CDOL1.
    var dsdol: DOL?
    var dataStorage: DataStorage?
    var cryptogram: ApplicationCryptogram?
    var authentication: CardAuthentication?
    /// The updates by the issuer; nil for an application that accepts none.
    var issuerUpdate: IssuerUpdate?
    /// The values that follow from the keys.
    var keyValues: [NamedValue: [UInt8]] = [:]
    var decision: Decision = .online
    var records: [RecordAddress: Record] = [:]
    /// Application File Locator (tag 94).
    var afl: [UInt8] = []
    /// True if files 1 to 10 can be read before GET PROCESSING OPTIONS.
    var recordsReadableAtOnce = false
    /// The objects that GET DATA gives.
    var data: [TLVTag: [UInt8]] = [:]
    /// The counter before the first transaction.
    var atc: UInt16 = 0
    var statuses: [Command: Status] = [:]

    /// The DF name.
    var name: [UInt8] { aid.bytes + extendedSelection }

    var recordObjects: [CardFileObject] { records.sorted { $0.key < $1.key }.flatMap(\.value.objects) }
}

/// A data object list (EMV Book 3, 5.4): tags and lengths, and so the form of a command's data field.
struct DOL: Hashable, Sendable {
    struct Entry: Hashable, Sendable {
        var tag: TLVTag
        var length: Int
    }

    /// The room in a command data field after the tag and length of template 83, in bytes.
    static let maximumLength = 252
    /// The data for INTERNAL AUTHENTICATE on a card without DDOL (EMV Book 2, 6.5.1): 9F37.
    static let defaultDDOL = DOL([0x9F, 0x37, 0x04]) ?? DOL()
    /// The data for COMPUTE CRYPTOGRAPHIC CHECKSUM on a card without UDOL (EMV Contactless Book C-2, Default UDOL):
    /// 9F6A.
    static let defaultUDOL = DOL([0x9F, 0x6A, 0x04]) ?? DOL()

    var entries: [Entry] = []

    init() {}

    /// - Returns: nil if the bytes are not a list of tags and one-byte lengths, or ask for more than 252 bytes.
    init?(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while let first = rest.popFirst() {
            var tag = UInt32(first)
            if first & 0x1F == 0x1F {
                var count = 1
                var more = true
                while more {
                    guard count < 4, let next = rest.popFirst() else { return nil }
                    tag = tag << 8 | UInt32(next)
                    more = next & 0x80 != 0
                    count += 1
                }
            }
            guard let length = rest.popFirst() else { return nil }
            entries.append(Entry(tag: TLVTag(rawValue: tag), length: Int(length)))
        }
        guard length <= Self.maximumLength else { return nil }
    }

    /// Returns the number of bytes that the list requests for `tag`; nil if it does not request it.
    func length(of tag: TLVTag) -> Int? { entries.first { $0.tag == tag }?.length }

    /// The number of bytes that the list requests.
    var length: Int { entries.reduce(0) { $0 + $1.length } }

    /// The values in `data`; nil unless it has just the bytes that the list asks for.
    ///
    /// - Parameter lastIsShort: the last value may have fewer, as it is not filled up (EMV Contactless Book C-2, DSDOL).
    func values(in data: ArraySlice<UInt8>, lastIsShort: Bool = false) -> [TLVTag: [UInt8]]? {
        let least = lastIsShort ? length - (entries.last?.length ?? 0) : length
        guard (least...length).contains(data.count) else { return nil }
        var rest = data
        var values: [TLVTag: [UInt8]] = [:]
        for entry in entries {
            values[entry.tag] = values[entry.tag] ?? Array(rest.prefix(entry.length))
            rest = rest.dropFirst(entry.length)
        }
        return values
    }
}
