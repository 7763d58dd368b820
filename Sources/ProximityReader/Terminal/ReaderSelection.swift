import CardReaders
import SmartCard

extension ProximityReaderSystem.ReaderChoice {
    /// Finds the reader, which must be attached.
    ///
    /// - Throws: `CardError`, of kind `noReader` if there is none.
    func find() async throws -> any CardReader {
        switch self {
        case .reader(let reader): return reader
        case .pcsc: return try await CardReaders.Machine(.pcsc).reader()
        case .usb: return try await CardReaders.Machine(.usb).reader()
        case .automatic: return try await CardReaders.Machine().reader()
        case .serialNumber(let number):
            for reader in try await CardReaders.Machine().readers() where await reader.details().serialNumber == number
            {
                return reader
            }
            throw CardError(.noReader, "none has the serial number \(number)")
        }
    }
}

extension PaymentCardReaderError {
    /// Maps a reader's error during preparation.
    init(_ error: CardError) {
        self =
            switch error.kind {
            case .noReader, .readerGone: .unsupported
            case .noService, .versionMismatch: .serviceConnectionError
            case .permissionDenied: .notAllowed
            case .readerBusy, .sharing: .readerBusy
            case .unsupported, .protocolMismatch: .modelNotSupported
            default: .prepareFailed(error.description)
            }
    }
}

extension PaymentCardReaderSession.ReadError {
    /// Maps a reader's error during a read.
    ///
    /// - Parameter isFieldUp: true if the reader had already been made ready for cards.
    init(_ error: CardError, isFieldUp: Bool = true) {
        self =
            switch error.kind {
            case .noReader, .readerGone: .readerNotAvailable
            case .noService, .versionMismatch: .readerServiceConnectionError
            case .permissionDenied: .readNotAllowed
            case .readerBusy, .sharing: .readerSessionBusy
            case .unsupported: .readerInitializationFailed
            case .readerTimeout: .readerServiceError
            default: isFieldUp ? .readerServiceError : .readerInitializationFailed
            }
    }
}
