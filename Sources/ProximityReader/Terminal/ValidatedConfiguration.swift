import CardEncryption
import EMVContactless

extension ProximityReaderSystem {
    /// A configuration that a terminal can have: only ``Configuration/validated()`` makes one.
    @dynamicMemberLookup
    public struct ValidatedConfiguration: Sendable {
        private var configuration: Configuration
        /// Of ``Configuration/tokenKeys``.
        let tokenVerifier: TokenVerifier

        /// What the configuration says.
        public subscript<Value>(dynamicMember member: KeyPath<Configuration, Value>) -> Value {
            configuration[keyPath: member]
        }

        /// The same terminal with another reader.
        public func with(_ reader: ReaderChoice) -> Self {
            var other = self
            other.configuration.reader = reader
            return other
        }

        /// - Throws: as ``Configuration/validated()``.
        fileprivate init(_ configuration: Configuration) throws {
            try configuration.terminal.validate()
            let isTest = configuration.terminal.environment == .test
            do {
                tokenVerifier = try TokenVerifier(keySet: configuration.tokenKeys)
            } catch {
                throw PaymentCardReaderError.prepareFailed("the payment service's keys: \(loggable(error))")
            }
            guard isTest || !tokenVerifier.hasTestKey else {
                throw PaymentCardReaderError.prepareFailed(
                    "anybody can sign as the test payment service; set tokenKeys")
            }
            if configuration.storeAndForward != nil {
                guard isTest || configuration.tokenIssuer != nil && configuration.tokenAudience != nil else {
                    throw PaymentCardReaderError.prepareFailed(
                        "payments are to be stored; set tokenIssuer and tokenAudience")
                }
                if configuration.storeWrappingKey == nil { try Self.checkCredential() }
            }
            if case .dukpt(let device, let options) = configuration.cardDataKey {
                do { try device.check(options) } catch {
                    throw PaymentCardReaderError.prepareFailed(
                        "the options of DUKPT: \(error.description). \(error.hint)")
                }
            }
            self.configuration = configuration
        }

        /// - Throws: if there is one that is no key, so that nothing rests unwrapped for that reason.
        private static func checkCredential() throws {
            do {
                _ = try WrappingKey.systemdCredential(Configuration.storeCredential)
            } catch {
                guard error.reason == .noCredential else {
                    throw PaymentCardReaderError.prepareFailed(
                        "the credential for the store's key: \(error.description)")
                }
            }
        }

        /// What a process has that sets nothing: a terminal for tests, which stores nothing.
        static let forTests: Self = {
            do { return try Configuration().validated() } catch {
                preconditionFailure("the configuration that nothing was set of is good")
            }
        }()
    }
}

extension ProximityReaderSystem.Configuration {
    /// The only way to a terminal.
    ///
    /// Reads the credential for the store's key, if payments are to be stored and ``storeWrappingKey`` is nil.
    ///
    /// - Throws: `ConfigurationError` if the terminal's configuration is not one; ``PaymentCardReaderError/prepareFailed(_:)``
    ///   if ``tokenKeys`` is no key set, or has a key that anybody can sign with for a terminal that takes live cards; if such
    ///   a terminal stores payments and has no ``tokenIssuer`` or ``tokenAudience``; if there is a credential for the store's
    ///   key that cannot be used; if ``cardDataKey`` has options that its device cannot seal with.
    public func validated() throws -> ProximityReaderSystem.ValidatedConfiguration { try .init(self) }
}
