package import CardReaders
import CardReceipts
import Foundation
import KioskKit
package import ProximityReader
import SmartCard
import Synchronization
import Waiting

/// The readers of this machine, over all backends.
package final class MachineReaders: ReaderBackend {
    private let configuration: ProximityReaderSystem.ValidatedConfiguration
    private let store: RecordStore?
    private let machine: Machine

    package init(
        _ configuration: ProximityReaderSystem.ValidatedConfiguration, store: RecordStore? = nil,
        machine: Machine = Machine()
    ) {
        (self.configuration, self.store, self.machine) = (configuration, store, machine)
    }

    package func supports(_ method: CardReaderDiscoveryMethod, _ type: CardReaderType) -> Bool {
        method == .usb && [.acr122u, .usbCCID, .other].contains(type) && machine.isPresent
    }

    package func attachedReaders() -> AsyncThrowingStream<[AttachedReader], any Error> {
        AsyncThrowingStream { continuation in
            let task = Task { [machine] in
                for await listing in machine.listings() {
                    // pcscd's failure is the one to report: it is the one to repair.
                    if let error = listing.failures[.pcsc], listing.failures[.usb] != nil {
                        return continuation.finish(throwing: error)
                    }
                    continuation.yield(listing.readers.map { AttachedReader(CardReader($0), handle: $0) })
                }
                continuation.finish()
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    package func open(
        _ reader: AttachedReader, token: String, acceptingTerms: Bool,
        update: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void
    ) async throws -> any ReaderLink {
        guard let device = reader.handle as? MachineReader else { throw CardError(.readerGone) }
        var options = PaymentCardReader.Options()
        options.returnReadResultImmediately = true
        let terminal = PaymentCardReader(
            options: options, terminal: PaymentTerminal(configuration.with(.reader(device)), store: store))
        let token = PaymentCardReader.Token(rawValue: token)
        if try await !terminal.isAccountLinked(using: token) {
            guard acceptingTerms else { throw PaymentCardReaderError.accountNotLinked }
            try await terminal.linkAccount(using: token)
        }
        do {
            return TerminalLink(device, terminal, try await terminal.prepare(using: token))
        } catch {
            await device.close()
            throw error
        }
    }
}

extension CardReader {
    fileprivate init(_ reader: MachineReader) {
        self.init(
            serial: reader.id, vendorIdentifier: reader.usbID, name: reader.name, softwareVersion: reader.version,
            readerType: reader.model?.commands == .pseudoAPDUs ? .acr122u : reader.usbID != nil ? .usbCCID : .other)
    }
}

/// A reader of this machine, with its ProximityReader session.
private final class TerminalLink: ReaderLink {
    let events: AsyncStream<LinkEvent>
    private let device: MachineReader
    private let reader: PaymentCardReader
    private var terminal: PaymentTerminal { reader.terminal }
    /// The session with the payment service's token.
    private let online: PaymentCardReaderSession
    /// The terminal's present session: ``online``, or one that stores.
    private let current: Mutex<PaymentCardReaderSession>
    private let watch: Task<Void, Never>

    init(_ device: MachineReader, _ reader: PaymentCardReader, _ session: PaymentCardReaderSession) {
        (self.device, self.reader, online) = (device, reader, session)
        current = Mutex(session)
        let (events, continuation) = AsyncStream.makeStream(of: LinkEvent.self)
        self.events = events
        watch = Task {
            var end: (any Error)?
            do { for try await _ in device.slotStates() {} } catch { end = error }
            if !Task.isCancelled { continuation.yield(.left(DisconnectReason(end))) }
            continuation.finish()
        }
    }

    deinit { watch.cancel() }

    func collect(
        _ request: CollectionRequest, tell: @escaping @Sendable (CardReaderEvent) -> Void
    ) async throws -> CollectedCard {
        let multiplier = MinorUnits.multiplier(of: request.currency) ?? 1
        let transaction = PaymentCardTransactionRequest(
            amount: Decimal(request.amount) / multiplier, currencyCode: request.currency.uppercased(),
            for: request.kind == .purchase ? .purchase : .refund)
        let readerEvents = online.readerEvents
        let teller = Task {
            for await event in readerEvents {
                if let event = CardReaderEvent(event) { tell(event) }
                switch event {
                case .readCompleted, .readNotCompleted, .readCancelled: return
                default: break
                }
            }
        }
        defer { teller.cancel() }
        let result: PaymentCardReadResult
        do {
            result = try await read(transaction, request.order)
        } catch let error as PaymentCardReaderSession.ReadError {
            // A read that has begun reports its end.
            if error.isOfARead { try? await waiting(atMost: .seconds(5)) { await teller.value } }
            throw error
        } catch let error as AnotherInterfaceNeeded {
            try? await waiting(atMost: .seconds(5)) { await teller.value }
            throw error
        }
        await teller.value
        guard let sealed = result.paymentCardData else { throw UnderlyingError.readerCommunicationError }
        return CollectedCard(
            id: result.id, sealedData: sealed, generalData: result.generalCardData,
            applicationIdentifier: result.applicationTypeIdentifier, facts: result.facts)
    }

    /// Reads a card in the given session.  A terminal has one session at a time; the online one is re-created with its
    /// token.
    private func read(
        _ transaction: PaymentCardTransactionRequest, _ order: StoredOrder?
    ) async throws -> PaymentCardReadResult {
        if let order {
            let storing = try await reader.prepareStoreAndForward()
            current.withLock { $0 = storing }
            return try await storing.read(transaction, as: order.id, attachment: order.attachment)
        }
        if current.withLock({ $0 !== online }) {
            try await online.prepareAgain()
            current.withLock { $0 = online }
        }
        return try await online.read(transaction)
    }

    func cancelCollection() async throws -> Bool { try await current.withLock { $0 }.cancelRead() }

    func waitForRemoval(_ cardIsThere: @escaping @Sendable () -> Void) async -> Bool {
        var isTold = await terminal.waitForRemoval(cardIsThere)
        do {
            for try await state in device.slotStates() {
                switch state {
                case .empty: return true
                case .card, .muteCard:
                    if !isTold { cardIsThere() }
                    isTold = true
                case .unknown: break
                }
            }
        } catch {
            // The reader is gone, and the card with it.
        }
        return false
    }

    /// Does nothing: the software of no reader here can be updated from this machine.
    func installUpdate(_ tell: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void) async throws {}

    func close() async {
        watch.cancel()
        await terminal.end()
        await device.close()
    }
}

extension CardReaderEvent {
    /// Maps a terminal's event.
    ///
    /// - Returns: nil for an event that apps do not receive.
    init?(_ event: PaymentCardReader.Event) {
        switch event {
        case .readyForTap: self = .waitingForInput(.tap)
        case .cardDetected: self = .cardInserted
        case .readRetry: self = .displayMessage(ReaderDisplayMessage.retryCard.text)
        case .removeCard: self = .displayMessage(ReaderDisplayMessage.removeCard.text)
        case .readCompleted: self = .cardDetailsCollected
        case .updateProgress, .notReady, .readCancelled, .readNotCompleted, .pinEntryRequested, .pinEntryCompleted,
            .userInterfaceDismissed:
            return nil
        }
    }
}

extension PaymentCardReaderSession.ReadError {
    /// True if a card was awaited, so that the read was not refused before it began.
    fileprivate var isOfARead: Bool {
        switch self {
        case .noReaderSession, .readerSessionExpired, .readerTokenExpired, .readFromBackgroundError,
            .readerSessionBusy, .invalidAmount, .invalidCurrencyCode, .invalidPreferredAID, .readNotAllowed:
            false
        default: true
        }
    }
}
