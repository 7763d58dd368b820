import CardEncryption
public import EMVContactless
package import Foundation

extension ProximityReaderSystem {
    /// A valid configuration: only ``Configuration/validated()`` creates one.
    @dynamicMemberLookup
    public struct ValidatedConfiguration: Sendable {
        private var configuration: Configuration
        /// The terminal's configuration, with its kernels.
        public let terminal: ReaderConfiguration.Validated
        /// The verifier for ``Configuration/tokenKeys``.
        let tokenVerifier: TokenVerifier

        /// Returns a setting of the configuration.
        public subscript<Value>(dynamicMember member: KeyPath<Configuration, Value>) -> Value {
            configuration[keyPath: member]
        }

        /// Returns the same terminal with another reader.
        public func with(_ reader: ReaderChoice) -> Self {
            var other = self
            other.configuration.reader = reader
            return other
        }

        /// Validates a configuration.
        ///
        /// - Throws: the errors of ``Configuration/validated()``.
        fileprivate init(_ configuration: Configuration) throws {
            terminal = try configuration.terminal.validated()
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

        /// Checks the systemd credential.
        ///
        /// - Throws: if there is a credential that is not a key, so that no key is stored unwrapped for that reason.
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

        /// Checks that the store's key can be used: the credential is a key, and opens the store in `folder` if there is
        /// one.  A store that is not wrapped yet then is.
        ///
        /// - Throws: ``StoreFailure``.
        package static func checkStore(in folder: URL = Configuration.defaultFolder) async throws {
            var wrapping: WrappingKey?
            do throws(KeyFileError) { wrapping = try .systemdCredential(Configuration.storeCredential) } catch {
                guard error.reason == .noCredential else { throw StoreFailure(error) }
            }
            guard RecordStore.exists(in: folder) else { return }
            let store = RecordStore(folder: folder, wrapping: wrapping, now: { Date() })
            let result: Result<Preparation?, any Error>
            do { result = .success(try await store.preparation()) } catch { result = .failure(error) }
            await store.close()
            _ = try result.get()
        }

        /// The configuration of a process that sets none: a terminal for tests, which stores nothing.
        static let forTests: Self = {
            do { return try Configuration().validated() } catch {
                preconditionFailure("the configuration that nothing was set of is good")
            }
        }()
    }
}

extension ProximityReaderSystem.Configuration {
    /// Validates the settings, which is the only way to a terminal.
    ///
    /// Reads the credential for the store's key if payments are to be stored and ``storeWrappingKey`` is nil.
    ///
    /// - Throws: `ConfigurationError` if the terminal's configuration is invalid;
    ///   ``PaymentCardReaderError/prepareFailed(_:)`` if ``tokenKeys`` is not a key set; if a terminal for live cards
    ///   has a key that anybody can sign with; if such a terminal stores payments without a ``tokenIssuer`` or a
    ///   ``tokenAudience``; if the credential for the store's key is unusable; if ``cardDataKey`` has options that its
    ///   device cannot seal with.
    public func validated() throws -> ProximityReaderSystem.ValidatedConfiguration { try .init(self) }
}
