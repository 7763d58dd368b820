public import SmartCard

/// An EMV command whose status words have a meaning beyond ISO/IEC 7816-4.
public enum EMVCommand: String, Hashable, Sendable, CaseIterable {
    case select = "SELECT"
    case getProcessingOptions = "GET PROCESSING OPTIONS"
    case readRecord = "READ RECORD"
    case getData = "GET DATA"
    case generateAC = "GENERATE AC"
    case computeCryptographicChecksum = "COMPUTE CRYPTOGRAPHIC CHECKSUM"
    case internalAuthenticate = "INTERNAL AUTHENTICATE"
    case externalAuthenticate = "EXTERNAL AUTHENTICATE"
    case verify = "VERIFY"
    case getChallenge = "GET CHALLENGE"

    /// Identifies the command of `apdu` by its class and instruction bytes; nil for a command that EMV does not
    /// define.
    public init?(_ apdu: CommandAPDU) {
        let found: EMVCommand? =
            switch (apdu.cla & 0x80, apdu.ins) {
            case (0x00, 0xA4): .select
            case (0x80, 0xA8): .getProcessingOptions
            case (0x00, 0xB2): .readRecord
            case (0x80, 0xCA): .getData
            case (0x80, 0xAE): .generateAC
            case (0x80, 0x2A): .computeCryptographicChecksum
            case (0x00, 0x88): .internalAuthenticate
            case (0x00, 0x82): .externalAuthenticate
            case (0x00, 0x20): .verify
            case (0x00, 0x84): .getChallenge
            default: nil
            }
        guard let found else { return nil }
        self = found
    }
}

extension StatusWord {
    /// Returns the meaning of the status word for `command`; nil if EMV adds nothing to `name`.
    public func meaning(for command: EMVCommand) -> String? {
        if command == .verify && Family.counter.contains(self) {
            let tries = Int(sw2 & 0x0F)
            return tries == 0 ? "wrong PIN, no tries left" : "wrong PIN, \(tries) \(tries == 1 ? "try" : "tries") left"
        }
        return Self.emvMeanings[command]?[self]
    }

    /// EMV Book 1, 11.3.5; Book 3, 6.5 and 10.5.1; Contactless Books C-2 and C-3, GET PROCESSING OPTIONS.
    private static let emvMeanings: [EMVCommand: [StatusWord: String]] = [
        .select: [
            0x6283: "the application is blocked",
            0x6285: "the application is terminated; to Interac, blocked with its data still there",
            0x6A81: "the card is blocked, or does not support SELECT",
            0x6A82: "no such application on the card, or no further one of that name",
        ],
        .getProcessingOptions: [
            0x6984: "the card wants the contact interface: try another interface",
            0x6985: "the card does not want this transaction with this application: select the next one",
            0x6986: "the cardholder has to confirm on the device: see the phone, then try again",
            0x6700: "the data for the PDOL have the wrong length",
            0x6A80: "the data for the PDOL are wrong",
        ],
        .readRecord: [
            0x6A83: "no such record; within the AFL an error"
        ],
        .getData: [
            0x6A81: "the card does not give this data object",
            0x6A88: "no such data object",
        ],
        .generateAC: [
            0x6985: "no further cryptogram in this transaction"
        ],
        .computeCryptographicChecksum: [
            0x6985: "the card declines mag-stripe mode",
            0x6986: "the cardholder has to confirm on the device",
        ],
        .externalAuthenticate: [
            0x6300: "issuer authentication failed",
            0x6985: "issuer authentication was done already",
        ],
        .verify: [
            0x6983: "the PIN is blocked",
            0x6984: "the PIN is blocked: the tries were used up before",
        ],
        .internalAuthenticate: [:],
        .getChallenge: [:],
    ]
}
