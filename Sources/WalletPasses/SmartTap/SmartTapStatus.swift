public import SmartCard

/// The meaning of a status word of Google's wallet (Smart Tap 2.1), by its first byte where the word is not known.
public enum SmartTapStatus: Hashable, Sendable {
    case success
    /// The wallet has no pass for the collector.
    case noPass
    /// The phone would take a signature made before; treated as success.
    case preSignedAuthentication
    /// More of the answer waits for GET ADDITIONAL DATA.
    case moreData
    /// 92xx: once more, at once.
    case transient(StatusWord)
    /// 93xx: the holder unlocks the phone, or chooses a pass, and taps again.
    case deviceLocked
    case choosesPass
    case userAction(StatusWord)
    /// 94xx: the phone does not accept what the terminal sent.
    case unknownCommand
    case notParsed
    case invalidCrypto
    case moreNotApplicable
    case moreNotAvailable
    case tooManyRequests
    case noMerchant
    case invalidPush
    case terminalError(StatusWord)
    /// 95xx: nothing will help in this tap.
    case authenticationFailed
    case unsupportedVersion
    case permanent(StatusWord)
    /// A status word without a meaning for Smart Tap.
    case other(StatusWord)

    /// Google's APDU reference; proxmark3's `cmdhfgst.c` and kormax' `google-smart-tap` have the same words.  kormax' table
    /// prints `90 91` for more data, its text and proxmark3 use `91 00`.
    private static let table: [StatusWord: SmartTapStatus] = [
        0x9000: .success, 0x9001: .noPass, 0x9002: .preSignedAuthentication, 0x9100: .moreData, 0x9300: .deviceLocked,
        0x9302: .choosesPass, 0x9400: .unknownCommand, 0x9402: .notParsed, 0x9403: .invalidCrypto,
        0x9404: .moreNotApplicable, 0x9405: .moreNotAvailable, 0x9406: .tooManyRequests, 0x9407: .noMerchant,
        0x9408: .invalidPush, 0x9500: .authenticationFailed, 0x9502: .unsupportedVersion,
    ]

    public init(_ word: StatusWord) {
        if let known = Self.table[word] {
            self = known
            return
        }
        self =
            switch word.sw1 {
            case 0x91: .moreData
            case 0x92: .transient(word)
            case 0x93: .userAction(word)
            case 0x94: .terminalError(word)
            case 0x95: .permanent(word)
            default: .other(word)
            }
    }
}

/// The last byte of a session record: what the phone says about the request (kormax, `google-smart-tap`, Statuses).
public enum SmartTapSessionStatus: UInt8, Hashable, Sendable, CaseIterable {
    case unknown = 0x00
    case ok = 0x01
    case invalidFormat = 0x02
    case unsupportedVersion = 0x03
    case invalidSequenceNumber = 0x04
    case unknownMerchant = 0x05
    case merchantMissing = 0x06
    case serviceMissing = 0x07
    case resend = 0x08
    case notYetAvailable = 0x09

    /// True where the same request may succeed with the next sequence number.
    var wantsRetry: Bool { [.invalidSequenceNumber, .resend, .notYetAvailable].contains(self) }
}
