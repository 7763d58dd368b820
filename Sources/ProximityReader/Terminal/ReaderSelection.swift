import Logging
import SmartCard
import SmartCardPCSC
import SmartCardUSB

extension ProximityReaderSystem.ReaderChoice {
    /// The reader, which must be attached.
    ///
    /// - Throws: `CardError`, of kind `noReader` where there is none.
    func find() async throws -> any CardReader {
        switch self {
        case .reader(let reader): return reader
        case .pcsc: return try Self.first(of: await Self.pcscReaders())
        case .usb: return try Self.first(of: await USBReaders().readers())
        case .automatic: return try Self.first(of: await Self.allReaders())
        case .serialNumber(let number):
            for reader in try await Self.allReaders() where await reader.fullIdentity().serialNumber == number {
                return reader
            }
            throw CardError(.noReader, "none has the serial number \(number)")
        }
    }

    /// Those of pcscd first; a reader that pcscd drives is on USB, too.
    private static func allReaders() async throws -> [any CardReader] {
        do {
            let readers = try await pcscReaders()
            return readers + (await readersOnUSB())
        } catch let error as CardError {
            let readers = await readersOnUSB()
            // What is wrong with pcscd is what has to be mended.
            if readers.isEmpty { throw error }
            return readers
        }
    }

    private static func readersOnUSB() async -> [any CardReader] {
        do {
            return try await USBReaders().readers()
        } catch {
            logger.debug("readers on USB: \(loggable(error))")
            return []
        }
    }

    private static func pcscReaders() async throws -> [any CardReader] {
        do {
            return try await withTimeLimit(.seconds(5)) { try await PCSCService().readers() }
        } catch let error as CardError where error.kind == .noReader {
            return []
        } catch let error as CardError where error.kind == .readerTimeout {
            throw CardError(
                .noService, "pcscd hangs", hint: "Start it anew: sudo systemctl restart pcscd.socket pcscd.service")
        }
    }

    /// Of a reader with two interfaces, the contactless one.
    private static func first(of readers: [any CardReader]) throws -> any CardReader {
        let contactless = readers.first { reader in
            ["PICC", "CONTACTLESS", " CL"].contains { reader.identity.name.uppercased().contains($0) }
        }
        guard let reader = contactless ?? readers.first else { throw CardError(.noReader) }
        return reader
    }
}

extension PaymentCardReaderError {
    /// What a reader's error is when it is being prepared.
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
    /// What a reader's error is when a card is being read.
    ///
    /// - Parameter isFieldUp: whether the reader had been made ready for cards before.
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
