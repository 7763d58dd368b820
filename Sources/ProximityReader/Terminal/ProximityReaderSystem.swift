public import CardEncryption
public import EMVContactless
public import Foundation
import Logging
public import SmartCard
import Synchronization
import Waiting

/// What Apple's interface has no place for: which reader, which terminal, whose keys.
///
/// Set once, before the first use of ``PaymentCardReader``.  Without it everything works with the first reader that is found
/// and a configuration for tests, and the log says so.
public enum ProximityReaderSystem {
    /// Which reader is used.
    public enum ReaderChoice: Sendable {
        /// The first that pcscd lists, or if it lists none or does not run, the first on USB.
        case automatic
        /// The first that pcscd lists.
        case pcsc
        /// The first on USB, driven by this process.
        case usb
        /// The one with this serial number, wherever it is plugged in.
        case serialNumber(String)
        /// This one: a virtual reader, a replayed trace, one of another make.
        case reader(any CardReader)
    }

    /// Who seals card data.
    public enum CardDataKey: Sendable {
        /// The public key that each token names: a JWE for its owner.
        case ofToken
        /// The next key of this device, whatever the token names; the envelope is bound to the identifier of the result, in
        /// UTF-8.
        case dukpt(AESDUKPTDevice, options: AESDUKPTDevice.Options = .init())
        /// The next key of this device, whatever the token names; the envelope is neither authenticated nor bound to anything.
        case tdesDUKPT(TDESDUKPTDevice, options: TDESDUKPTDevice.Options = .init())
    }

    /// What is set of a terminal, before anybody has looked whether it is right: ``validated()`` does.
    public struct Configuration: Sendable {
        public var reader = ReaderChoice.automatic
        /// What the terminal accepts, and what it has to verify cardholders with.
        public var terminal = ReaderConfiguration.unattendedTest
        /// The certification authorities' keys.
        public var certificationAuthorityKeys = CAPublicKeys.published
        /// The keys of the payment service, which signs tokens: a JSON Web Key Set (RFC 7517).
        public var tokenKeys = TestPaymentService.keySet
        /// What a token's `iss` must be; nil: anything.
        public var tokenIssuer: String?
        /// What must be among a token's `aud`; nil: anything.
        public var tokenAudience: String?
        /// What a token's `mid` must be; nil: anything.
        public var merchant: String?
        /// What a token's `tpid` must be; nil: anything.
        public var terminalProfile: String?
        public var cardDataKey = CardDataKey.ofToken
        /// The version of the terms that merchants accept by linking their account.  Another one than was accepted makes
        /// the account not linked.
        public var termsVersion = "1"
        /// Where records are kept: a folder, made if need be with mode 0700.
        public var folder = Self.defaultFolder
        /// How long a session lasts after it was prepared, if its token does not expire before.
        public var sessionLifetime = Duration.seconds(24 * 60 * 60)
        /// What may be stored while there is no network; nil: nothing.
        public var storeAndForward: StoreAndForwardPolicy?
        /// Wraps the key of the store: where systemd has the credential ``storeCredential`` for this service, that; nil: the
        /// file's mode is all that protects the key, and the log says so.
        public var storeWrappingKey = try? WrappingKey.systemdCredential(Self.storeCredential)
        /// The name of the credential, as `LoadCredentialEncrypted=` has it: at least 32 random bytes.
        public static let storeCredential = "swift-contactless-store"
        /// The time since this machine was started, asleep or not.
        public var uptime: @Sendable () -> Duration = { Machine.uptime() }
        /// Another one after each start of this machine.
        public var bootIdentifier: @Sendable () -> String = { Machine.bootIdentifier() }
        /// The address of the bus that logind is on; nil: the system's.
        package var systemBus: String?
        /// How often the clock is looked at for a session's end.
        package var clockTick = Duration.seconds(60)
        /// The longest that a card is read for, before the reader is taken for one that hangs.
        package var transactionTime = Duration.seconds(120)
        /// The longest that a reader takes to answer, longer than any driver takes to give up, before it is taken for one
        /// that hangs.
        package var answerTime = Duration.seconds(10)
        /// This machine's time.
        public var now: @Sendable () -> Date = { Date() }

        public init() {}

        /// `$STATE_DIRECTORY`, which systemd gives to a service that has one; else `swift-contactless` in
        /// `$XDG_STATE_HOME`, which is `~/.local/state` if it is not set.
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
    /// - Precondition: once, and before the first ``PaymentCardReader`` is made.
    public static func bootstrap(_ configuration: ValidatedConfiguration) {
        state.withLock { state in
            precondition(
                !state.isInUse, "the reader is in use: call bootstrap(_:) before the first PaymentCardReader is made")
            precondition(state.configuration == nil, "bootstrap(_:) has been called before")
            state.configuration = configuration
        }
    }

    /// Which reader the process has chosen so far.
    static var readerChoice: ReaderChoice { state.withLock { $0.configuration?.reader } ?? .automatic }

    /// The configuration of this process, which stays it from now on.
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

extension ProximityReaderSystem {
    /// The messages that the kernels have for the people at a reader, from now on (EMV Contactless Book A, 9): also what
    /// ``PaymentCardReader/events`` has no word for, such as 1D, “insert card”, of a card that wants its contacts.
    ///
    /// Each call gives a stream of its own, which holds the last 64 until they are taken.
    public static func messages(of reader: PaymentCardReader) -> AsyncStream<UserInterfaceRequest> {
        reader.terminal.messages.stream()
    }
}

let logger = Logger(label: "ProximityReader")

/// An error as a log may have it, or the text of another: one of somebody else's may say anything, and so it is named by its
/// type alone.
func loggable(_ error: any Error) -> String {
    switch error {
    case let error as CardError: error.description
    case let error as JWKError: error.description
    case let error as StoreFailure: error.description
    case let error as TokenVerifier.UnusableKeys: error.description
    default: "\(type(of: error))"
    }
}
