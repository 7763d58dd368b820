import Foundation
import ProximityReader
import Testing

/// What a person reads of each error.
@Suite struct ErrorTextTests {
    static let reader: [PaymentCardReaderError] = [
        .notAllowed, .backgroundRequestNotAllowed, .unsupported, .osVersionNotSupported, .modelNotSupported,
        .passcodeDisabled, .networkError, .networkAuthenticationError, .serviceConnectionError, .notReady,
        .emptyReaderToken, .invalidReaderToken(nil), .invalidReaderToken("it is too long"), .prepareFailed(nil),
        .prepareFailed("the reader failed"), .prepareExpired, .tokenExpired, .deviceBanned(nil),
        .deviceBanned(Date(timeIntervalSince1970: 2_000_000_000)), .readerMemoryFull, .readerBusy, .accountNotLinked,
        .accountAlreadyLinked, .accountLinkingFailed, .accountLinkingRequiresiCloudSignIn, .accountLinkingCancelled,
        .accountLinkingCheckFailed, .merchantBlocked, .accountDeactivated, .invalidMerchant,
        .storeAndForwardNotAllowed, .storeAndForwardSessionExpired, .storeAndForwardSessionInvalidated,
        .storeAndForwardTokenIssuerChanged, .unknown(code: 7), .requestInterrupted,
    ]
    static let read: [PaymentCardReaderSession.ReadError] = [
        .readNotAllowed, .readFromBackgroundError, .readerServiceConnectionError, .readerServiceError,
        .noReaderSession, .readerSessionExpired, .readerTokenExpired, .readerSessionNetworkError,
        .readerSessionAuthenticationError, .readerSessionBusy, .readCancelled, .invalidAmount, .invalidCurrencyCode,
        .invalidPreferredAID, .nfcDisabled, .readNotAllowedDuringCall, .passcodeDisabled, .cardReadFailed,
        .vasReadFail, .paymentReadFailed, .paymentCardDeclined, .invalidVASMerchants(nil),
        .invalidVASMerchants("too many"), .invalidVASRequestParameters(nil), .invalidVASRequestParameters("too long"),
        .pinEntryFailed, .pinTokenInvalid, .pinEntryTimeout, .pinCancelled, .pinNotAllowed,
        .storeAndForwardDeclineFailed, .storeAndForwardResultNotFound, .unknown(code: 7), .readerInitializationFailed,
        .readerNotAvailable, .cardNotSupported,
    ]
    static let store: [PaymentCardReaderStore.StoreError] = [
        .notAllowed, .busy, .unknown(code: 13), .networkError, .passcodeDisabled, .storeAndForwardResultsNotFound,
        .storeAndForwardBatchNotFound, .storeAndForwardBatchSizeInvalid, .storeAndForwardBatchAlreadyExists,
        .storeAndForwardDeletionTokenInvalid, .storeAndForwardDeletionTokenExpired,
    ]
    /// About which nobody can do anything, or needs to.
    private static let plain: Set<String> = [
        "readCancelled", "pinCancelled", "accountAlreadyLinked", "storeAndForwardResultNotFound",
        "storeAndForwardResultsNotFound",
    ]

    /// The cases that Apple's interface has, by AppleSurface.txt.
    private static func cases(of type: String) throws -> Set<String> {
        let file = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "AppleSurface.txt")
        var isType = false
        var names: Set<String> = []
        for line in try String(contentsOf: file, encoding: .utf8).split(separator: "\n") {
            if !line.hasPrefix(" ") { isType = line.hasPrefix("enum \(type):") }
            guard isType, let name = line.firstMatch(of: #/^ +case (\w+)/#)?.output.1 else { continue }
            names.insert(String(name))
        }
        return names
    }

    @Test(
        "each error of Apple's has a text of its own, in words, that says what to do next",
        arguments: [
            ("PaymentCardReaderError", reader as [any Error]),
            ("PaymentCardReaderSession.ReadError", read as [any Error]),
            ("PaymentCardReaderStore.StoreError", store as [any Error]),
        ])
    func texts(_ type: String, _ errors: [any Error]) throws {
        func name(_ error: any Error) -> String { String("\(error)".prefix { $0 != "(" }) }
        #expect(try Set(errors.map(name)) == Self.cases(of: type), "each case is here")
        let texts = errors.map(\.localizedDescription)
        #expect(Set(texts).count == errors.count)
        for (error, text) in zip(errors, texts) {
            #expect(text.hasSuffix(".") && !text.contains("could not be completed"))
            // No names of Swift's: of two words, in one.
            #expect(text.firstMatch(of: #/\b[a-z]+[A-Z]/#) == nil, "\(text)")
            #expect(text.firstMatch(of: #/Optional|nil|\(\)/#) == nil, "\(text)")
            // What is wrong, and what to do about it.
            let sentences = text.split(separator: #/[.:] (?=[A-Z])/#).count
            #expect(sentences >= 2 || Self.plain.contains(name(error)), "\(text)")
        }
    }
}
