public import Foundation
public import SmartCard

/// A pass that was read.
public struct Pass: Hashable, Sendable {
    /// The issuer's text for the merchant: a member number, most of the time.  From Google's wallet, the redemption value
    /// of the first pass.
    public let data: PassData
    /// The phone's clock when it was tapped; nil from Google's wallet.
    public let date: Date?
    /// Identifies the customer to the merchant; nil from today's phones.  Nothing authenticates it.
    public let mobileToken: PassData?
    /// All that Google's wallet handed over; empty from Apple's.
    public let objects: [SmartTapObject]

    init(data: PassData, date: Date, mobileToken: PassData?) {
        (self.data, self.date, self.mobileToken, objects) = (data, date, mobileToken, [])
    }

    init(_ objects: [SmartTapObject]) {
        let values = objects.lazy.compactMap { object in
            if case .pass(let pass) = object { pass.redemptionValue } else { nil }
        }
        (data, date, mobileToken, self.objects) = (values.first ?? PassData([]), nil, nil, objects)
    }
}

extension PassReading {
    public enum Wallet: Hashable, Sendable {
        case apple, google
    }

    /// The end of a merchant's question: the eight of Core NFC's table (`NFCVASErrorCode`), and everything else.
    public enum Status: Hashable, Sendable {
        /// A pass, or nothing in return for a URL.
        case success
        /// The wallet has no pass of the merchant.
        case notFound
        /// The phone is locked, or the pass waits for its holder: tap again.
        case notActivated
        case wrongParameters
        case wrongLength
        /// The phone asks its holder for something: tap again.
        case userInterventionRequired
        case incorrectData
        case unsupportedVersion
        case readFailure(Failure)

        /// True if the holder acts on the phone and taps again.
        public var wantsAnotherTap: Bool { self == .notActivated || self == .userInterventionRequired }
    }

    /// Why a pass, or all of them, could not be read.
    public enum Failure: Hashable, Sendable {
        /// A status word of no meaning for passes.
        case status(StatusWord)
        /// The phone breaks the protocol.
        case malformed
        /// Success without a pass.
        case noPass
        case notDecrypted(VASCryptogram.Fault)
        /// Seen before.
        case replayed
        /// The phone's clock and this machine's differ by more than the tolerance: seconds, positive if the phone's is ahead.
        case clockDiffers(seconds: Int)
        /// Google's wallet refused with a status word that is none of Core NFC's.
        case refused(SmartTapStatus)
        /// Google's wallet refused in its session record; nil for a status that is not known.
        case rejected(SmartTapSessionStatus?)
        /// Google's wallet breaks the protocol.
        case smartTap(SmartTapFault)
    }

    /// The answer for one merchant.
    public struct Entry: Hashable, Sendable, Identifiable {
        /// The merchant's name in the configuration.
        public let id: String
        public let wallet: Wallet
        public let status: Status
        /// The pass; nil without success, and for a merchant whose URL alone was sent.
        public let pass: Pass?

        init(_ id: String, _ wallet: Wallet, _ status: Status, _ pass: Pass? = nil) {
            (self.id, self.wallet, self.status, self.pass) = (id, wallet, status, pass)
        }
    }

    /// The end of a tap.
    public struct Outcome: Hashable, Sendable {
        /// The wallet that answered; nil: none.
        public let wallet: Wallet?
        /// The merchants that were asked, in order.  After one that waits for its holder, none is asked.
        public let entries: [Entry]
        /// True for a card without an application for passes, or a phone that does not show one.
        public let isPlainCard: Bool
        /// The failure of the wallet as a whole; nil if it could be read.
        public let failure: Failure?
        /// True if a payment may follow in the same ISO-DEP session, without DESELECT.
        public let mayPayNow: Bool

        /// True if the phone shows a pass and waits for its holder: say so, end with DESELECT and the field off, and poll again.
        public var wantsAnotherTap: Bool { entries.contains { $0.status.wantsAnotherTap } }

        init(
            mode: Mode, wallet: Wallet? = nil, entries: [Entry] = [], isPlainCard: Bool = false, failure: Failure? = nil
        ) {
            (self.wallet, self.entries, self.isPlainCard, self.failure) = (wallet, entries, isPlainCard, failure)
            let waits = entries.contains { $0.status.wantsAnotherTap }
            switch mode {
            case .passOnly: mayPayNow = false
            case .passOrPayment: mayPayNow = !waits && !entries.contains { $0.status == .success }
            case .passAndPayment: mayPayNow = !waits
            case .paymentOnly: mayPayNow = true
            }
        }
    }
}

extension PassReading.Status {
    /// Apple's words in Core NFC's terms.
    package init(_ status: AppleVAS.Status) {
        self =
            switch status {
            case .success: .success
            case .passNotFound: .notFound
            case .notActivated: .notActivated
            case .wrongParameters: .wrongParameters
            case .wrongLength: .wrongLength
            case .userInterventionRequired: .userInterventionRequired
            case .incorrectData: .incorrectData
            case .unsupportedVersion: .unsupportedVersion
            case .noPass: .readFailure(.noPass)
            case .other(let word): .readFailure(.status(word))
            }
    }

    /// Google's words in Core NFC's terms.
    init(_ status: SmartTapStatus) {
        self =
            switch status {
            case .noPass: .notFound
            case .deviceLocked: .notActivated
            case .choosesPass, .userAction: .userInterventionRequired
            case .notParsed, .moreNotApplicable: .incorrectData
            case .unsupportedVersion: .unsupportedVersion
            case .success, .preSignedAuthentication, .moreData, .transient, .unknownCommand, .invalidCrypto,
                .moreNotAvailable, .tooManyRequests, .noMerchant, .invalidPush, .terminalError, .authenticationFailed,
                .permanent, .other:
                .readFailure(.refused(status))
            }
    }

    init(_ status: SmartTapSessionStatus?) {
        self =
            switch status {
            case .invalidFormat: .incorrectData
            case .unsupportedVersion: .unsupportedVersion
            default: .readFailure(.rejected(status))
            }
    }
}
