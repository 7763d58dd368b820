public import CardEncryption
public import EMVContactless
public import Foundation
import Logging
public import SmartCard
import Synchronization
import Waiting
public import WalletPasses

/// The settings that Apple's interface lacks: the reader, the terminal, the keys.
///
/// Set them once, before the first use of ``PaymentCardReader``.  Without them the first reader found is used, with a
/// test configuration, and the log says so.
public enum ProximityReaderSystem {
    /// The choice of the reader.
    public enum ReaderChoice: Sendable {
        /// The first reader that pcscd lists; if it lists none or does not run, the first one on USB.
        case automatic
        /// The first reader that pcscd lists.
        case pcsc
        /// The first reader on USB, driven by this process.
        case usb
        /// The reader with this serial number, wherever it is plugged in.
        case serialNumber(String)
        /// The given reader: a software reader, a replayed trace, or another implementation.
        case reader(any CardReader)
    }

    /// The key that seals card data.
    public enum CardDataKey: Sendable {
        /// The public key that each token names: a JWE for its owner.
        case ofToken
        /// The next AES DUKPT key of this device, whatever the token names; the envelope is bound to the identifier of
        /// the result, in UTF-8.
        case dukpt(AESDUKPTDevice, options: AESDUKPTDevice.Options = .init())
        /// The next TDES DUKPT key of this device, whatever the token names; the envelope is neither authenticated nor
        /// bound to anything.
        case tdesDUKPT(TDESDUKPTDevice, options: TDESDUKPTDevice.Options = .init())
    }

    /// The settings of a terminal, not yet checked: see ``validated()``.
    public struct Configuration: Sendable {
        public var reader = ReaderChoice.automatic
        /// The accepted cards, and the terminal's abilities to verify cardholders.
        public var terminal = ReaderConfiguration.unattendedTest
        /// The certification authorities' public keys.
        public var certificationAuthorityKeys = CAPublicKeys.published
        /// The keys with which the payment service signs tokens: a JSON Web Key Set (RFC 7517).
        public var tokenKeys = TestPaymentService.keySet
        /// The required `iss` of a token; nil accepts any.
        public var tokenIssuer: String?
        /// The required member of a token's `aud`; nil accepts any.
        public var tokenAudience: String?
        /// The required `mid` of a token; nil accepts any.
        public var merchant: String?
        /// The required `tpid` of a token; nil accepts any.
        public var terminalProfile: String?
        public var cardDataKey = CardDataKey.ofToken
        /// The merchants whose passes this machine opens, with their keys: valid since its creation.  The passes of other
        /// merchants are sealed for the payment service.
        public var passes: PassConfiguration?
        /// The version of the terms that merchants accept by linking their account.  After a change of the version an
        /// account is no longer linked.
        public var termsVersion = "1"
        /// The folder of the records, created with mode 0700 if necessary.
        public var folder = Self.defaultFolder
        /// The time for which a session is valid after its preparation, unless its token expires earlier.
        public var sessionLifetime = Duration.seconds(24 * 60 * 60)
        /// The rules for storing payments while there is no network; nil stores nothing.
        public var storeAndForward: StoreAndForwardPolicy?
        /// The key that wraps the store's key.  By default the systemd credential ``storeCredential`` of this service,
        /// if there is one.  With nil only the file's mode protects the store's key, and the log says so.
        public var storeWrappingKey = try? WrappingKey.systemdCredential(Self.storeCredential)
        /// The name of the credential in `LoadCredentialEncrypted=`: at least 32 random bytes.
        public static let storeCredential = "swift-contactless-store"
        /// Returns the time since boot, including sleep.
        public var uptime: @Sendable () -> Duration = { Machine.uptime() }
        /// Returns an identifier that changes with each boot.
        public var bootIdentifier: @Sendable () -> String = { Machine.bootIdentifier() }
        /// The address of logind's bus; nil for the system bus.
        package var systemBus: String?
        /// The time for which a locked phone that stays in the field is asked again.
        package var ownerTime = Duration.seconds(30)
        /// The interval at which the clock is checked for a session's end.
        package var clockTick = Duration.seconds(60)
        /// The time limit for reading a card.  A reader that exceeds it counts as hanging.
        package var transactionTime = Duration.seconds(120)
        /// The time limit for a reader's answer, longer than any driver's own limit.  A reader that exceeds it counts
        /// as hanging.
        package var answerTime = Duration.seconds(10)
        /// Returns the machine's time.
        public var now: @Sendable () -> Date = { Date() }

        public init() {}

        /// The default folder: `$STATE_DIRECTORY`, which systemd sets for a service with a state directory; otherwise
        /// `swift-contactless` in `$XDG_STATE_HOME`, by default `~/.local/state`.
        public static var defaultFolder: URL {
            let environment = ProcessInfo.processInfo.environment
            if let folder = environment["STATE_DIRECTORY"]?.split(separator: ":").first {
                return URL(filePath: String(folder), directoryHint: .isDirectory)
            }
            let state =
                environment["XDG_STATE_HOME"].flatMap {
                    $0.isEmpty ? nil : URL(filePath: $0, directoryHint: .isDirectory)
                }
                ?? FileManager.default.homeDirectoryForCurrentUser.appending(path: ".local/state")
            return state.appending(path: "swift-contactless", directoryHint: .isDirectory)
        }
    }

    private static let state = Mutex<(configuration: ValidatedConfiguration?, isInUse: Bool)>((nil, false))

    /// Sets the configuration of this process.
    ///
    /// - Precondition: called once, before the first ``PaymentCardReader`` is created.
    public static func bootstrap(_ configuration: ValidatedConfiguration) {
        state.withLock { state in
            precondition(
                !state.isInUse, "the reader is in use: call bootstrap(_:) before the first PaymentCardReader is made")
            precondition(state.configuration == nil, "bootstrap(_:) has been called before")
            state.configuration = configuration
        }
    }

    /// The process's choice of a reader so far.
    static var readerChoice: ReaderChoice { state.withLock { $0.configuration?.reader } ?? .automatic }

    /// Returns the configuration of this process, which can no longer change.
    static func use() -> ValidatedConfiguration {
        let configuration = state.withLock { state in
            state.isInUse = true
            return state.configuration
        }
        if configuration == nil {
            logger.notice("no ProximityReaderSystem.bootstrap(_:): the first reader found is used")
        }
        let used = configuration ?? .forTests
        if used.tokenVerifier.hasTestKey {
            logger.notice("tokens of the test payment service are good, which anybody can sign")
        }
        if used.storeAndForward != nil, used.storeWrappingKey == nil {
            logger.log(
                level: used.terminal.environment == .test ? .notice : .warning,
                "the store's key is not wrapped: set storeWrappingKey, or have systemd load a credential \(Configuration.storeCredential)"
            )
        }
        if used.terminal.environment == .test { logger.notice("a terminal for tests") }
        return used
    }
}

let logger = Logger(label: "ProximityReader")

/// Returns a text for the log, or for another error: a foreign error's text is not safe to log, so it is named by its
/// type.
func loggable(_ error: any Error) -> String {
    switch error {
    case let error as CardError: error.description
    case let error as JWKError: error.description
    case let error as StoreFailure: error.description
    case let error as TokenVerifier.UnusableKeys: error.description
    case let error as VASFreshnessFile.Failure: error.description
    default: "\(type(of: error))"
    }
}
