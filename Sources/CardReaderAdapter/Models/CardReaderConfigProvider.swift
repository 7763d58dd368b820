public import Foundation

/// Gives the token that a reader is connected with.
public protocol ReaderTokenProvider: Sendable {
    /// - Parameter completion: to be called once, with a token that has not been given before.  What is said later, or
    ///   again, is not listened to.
    func fetchToken(completion: @escaping @Sendable (Result<String, any Error>) -> Void)
}

/// Tells where the reader is.
public protocol ReaderLocationProvider: Sendable {
    /// - Parameter completion: as for ``ReaderTokenProvider/fetchToken(completion:)``.
    func fetchDefaultLocationID(completion: @escaping @Sendable (Result<String, any Error>) -> Void)
}

/// What the app knows of its shop, and the service asks when it connects.
public protocol CardReaderConfigProvider: ReaderLocationProvider, ReaderTokenProvider {}

/// Why an app cannot say where its readers are.
public enum CardReaderConfigError: Error, Hashable, Sendable {
    /// - Parameter adminUrl: where it can be completed.
    case incompleteStoreAddress(adminUrl: URL?)
    case invalidPostalCode
}
