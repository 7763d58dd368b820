public import Foundation

/// An object that supplies the token for connecting a reader.
public protocol ReaderTokenProvider: Sendable {
    /// Fetches a token.
    ///
    /// - Parameter completion: call it once, with a token that was never given before.  Later calls are ignored.
    func fetchToken(completion: @escaping @Sendable (Result<String, any Error>) -> Void)
}

/// An object that supplies the location of the reader.
public protocol ReaderLocationProvider: Sendable {
    /// Fetches the location.
    ///
    /// - Parameter completion: call it once, as in ``ReaderTokenProvider/fetchToken(completion:)``.
    func fetchDefaultLocationID(completion: @escaping @Sendable (Result<String, any Error>) -> Void)
}

/// The shop's data, which the service requests from the app when it connects a reader.
public protocol CardReaderConfigProvider: ReaderLocationProvider, ReaderTokenProvider {}

/// The reason for which an app cannot supply the location of its readers.
public enum CardReaderConfigError: Error, Hashable, Sendable {
    /// The address of the store is incomplete.
    ///
    /// - Parameter adminUrl: the page on which a person can complete it.
    case incompleteStoreAddress(adminUrl: URL?)
    case invalidPostalCode
}
