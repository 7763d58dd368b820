import Foundation
import KioskKit
import Logging
package import ProximityReader
import SmartCard
import SmartCardPCSC
package import SmartCardUSB
import Synchronization

/// The readers of this machine: PC/SC and the USB together, each reader once.
package final class MachineReaders: ReaderBackend {
    private let configuration: ProximityReaderSystem.ValidatedConfiguration
    private let store: RecordStore?
    private let usb: USBReaders
    private let usesPCSC: Bool
    private let survey: Survey

    package init(
        _ configuration: ProximityReaderSystem.ValidatedConfiguration, store: RecordStore? = nil,
        usb: USBReaders = USBReaders(), usesPCSC: Bool = true
    ) {
        (self.configuration, self.store, self.usb, self.usesPCSC) = (configuration, store, usb, usesPCSC)
        survey = Survey(usb: usb, usesPCSC: usesPCSC)
    }

    package func supports(_ method: CardReaderDiscoveryMethod, _ type: CardReaderType) -> Bool {
        guard method == .usb, [.acr122u, .usbCCID, .other].contains(type) else { return false }
        let socket = ProcessInfo.processInfo.environment["PCSCLITE_CSOCK_NAME"] ?? "/run/pcscd/pcscd.comm"
        let files = FileManager.default
        return !usesPCSC || files.fileExists(atPath: socket) || files.fileExists(atPath: "/dev/bus/usb")
    }

    package func attachedReaders() -> AsyncThrowingStream<[AttachedReader], any Error> {
        let (usb, usesPCSC, survey) = (usb, usesPCSC, survey)
        return AsyncThrowingStream { continuation in
            let task = Task {
                let (changes, change) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
                change.yield()
                let watches = [
                    Self.watch(change) {
                        guard usesPCSC else { return try await Task.sleep(for: .seconds(1 << 32)) }
                        for try await event in PCSCService().events(waitForService: true) {
                            switch event {
                            case .readerAttached, .readerRemoved, .serviceUnavailable: change.yield()
                            case .cardInserted, .cardMute, .cardRemoved, .usageChanged: break
                            }
                        }
                    },
                    Self.watch(change) { for try await _ in usb.events() { change.yield() } },
                ]
                var nextLook: Task<Void, any Error>?
                defer {
                    for watch in watches { watch.cancel() }
                    nextLook?.cancel()
                }
                do {
                    for await _ in changes {
                        nextLook?.cancel()
                        let found = try await survey.readers()
                        continuation.yield(found.readers)
                        nextLook = found.lookAgain.map { time in
                            Task {
                                try await Task.sleep(until: time, clock: .continuous)
                                change.yield()
                            }
                        }
                    }
                    continuation.finish()
                } catch {
                    continuation.finish(throwing: error)
                }
            }
            continuation.onTermination = { _ in task.cancel() }
        }
    }

    /// Runs `body` until the task is cancelled: what ends or fails is begun again, after a look at what was missed.
    private static func watch(
        _ change: AsyncStream<Void>.Continuation, _ body: @escaping @Sendable () async throws -> Void
    ) -> Task<Void, any Error> {
        Task {
            for attempt in 0... {
                do { try await body() } catch { logger.notice("readers cannot be watched: \(type(of: error))") }
                try await Task.sleep(for: .seconds(1 << min(attempt, 6)))
                change.yield()
            }
        }
    }

    private static let logger = Logger(label: "CardReaderAdapter")

    package func open(
        _ reader: AttachedReader, token: String, acceptingTerms: Bool,
        update: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void
    ) async throws -> any ReaderLink {
        guard let device = reader.handle as? any SmartCard.CardReader else { throw CardError(.readerGone) }
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
            await (device as? USBReader)?.close()
            throw error
        }
    }

    /// Looks at what is attached.
    private actor Survey {
        private let usb: USBReaders
        private let usesPCSC: Bool
        private var roster = ReaderRoster()
        /// What the drivers have told, of the readers that are there.
        private var known: [String: ReaderRoster.PCSCFacts] = [:]

        init(usb: USBReaders, usesPCSC: Bool) { (self.usb, self.usesPCSC) = (usb, usesPCSC) }

        /// - Returns: the readers, and when to look again though nothing has changed, if ever.
        /// - Throws: `CardError`, if neither pcscd nor the USB can be looked at: what is wrong with pcscd.
        func readers() async throws -> (readers: [AttachedReader], lookAgain: ContinuousClock.Instant?) {
            let ofPCSC = await Self.result { [usesPCSC] in usesPCSC ? try await Self.ofPCSC() : [] }
            let ofUSB = await Self.result { [usb] in try await usb.readers() }
            if case .failure(let error) = ofPCSC, case .failure = ofUSB { throw error }
            let (readers, devices) = ((try? ofPCSC.get()) ?? [], (try? ofUSB.get()) ?? [])
            var facts: [ReaderRoster.PCSCFacts] = []
            for reader in readers { facts.append(await self.facts(of: reader)) }
            known = Dictionary(
                facts.filter(\.isComplete).map { ($0.name, $0) }, uniquingKeysWith: { first, _ in first })
            let entries = roster.entries(
                pcsc: facts,
                usb: devices.map { .init(device: $0.device, interface: $0.id.interface, slot: $0.id.slot) })
            let attached = entries.map { entry in
                switch entry.source {
                case .pcsc(let index): AttachedReader(entry.reader, handle: readers[index])
                case .usb(let index): AttachedReader(entry.reader, handle: devices[index])
                }
            }
            // Who has not answered in time may have readers all the same.
            let isLate = [ofPCSC.map { _ in }, ofUSB.map { _ in }].contains { result in
                if case .failure(let error as CardError) = result { error.kind == .readerTimeout } else { false }
            }
            return (attached, isLate ? .now + .seconds(1) : roster.changesAt)
        }

        private static func result<Value: Sendable>(
            _ body: @escaping @Sendable () async throws -> Value
        ) async -> Result<Value, any Error> {
            do { return .success(try await withTimeLimit(.seconds(5), body)) } catch { return .failure(error) }
        }

        private static func ofPCSC() async throws -> [PCSCReader] {
            do { return try await PCSCService().readers() } catch let error as CardError where error.kind == .noReader {
                return []
            }
        }

        private func facts(of reader: PCSCReader) async -> ReaderRoster.PCSCFacts {
            if let facts = known[reader.name] { return facts }
            do {
                return try await withTimeLimit(.seconds(5)) {
                    let direct = try await reader.connect(sharing: .direct)
                    let facts = ReaderRoster.PCSCFacts(
                        name: reader.name, vendor: try? await direct.attribute(.vendorName),
                        serialNumber: try? await direct.attribute(.serialNumber),
                        version: try? await direct.attribute(.readerVersion),
                        channel: try? await direct.attribute(.channelID))
                    await direct.disconnect(.leave)
                    return facts
                }
            } catch {
                return ReaderRoster.PCSCFacts(name: reader.name, isComplete: false)
            }
        }
    }
}

/// A reader of this machine, with a session of ProximityReader.
private final class TerminalLink: ReaderLink {
    let events: AsyncStream<LinkEvent>
    private let device: any SmartCard.CardReader
    private let reader: PaymentCardReader
    private var terminal: PaymentTerminal { reader.terminal }
    /// With the payment service's token.
    private let online: PaymentCardReaderSession
    /// The terminal's present one: ``online``, or one that stores.
    private let current: Mutex<PaymentCardReaderSession>
    private let watch: Task<Void, Never>

    init(_ device: any SmartCard.CardReader, _ reader: PaymentCardReader, _ session: PaymentCardReaderSession) {
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
            // One that has begun tells its end.
            if error.isOfARead { try? await waiting(atMost: .seconds(5)) { await teller.value } }
            throw error
        }
        await teller.value
        guard let sealed = result.paymentCardData else { throw UnderlyingError.readerCommunicationError }
        return CollectedCard(
            id: result.id, sealedData: sealed, generalData: result.generalCardData,
            applicationIdentifier: result.applicationTypeIdentifier, facts: result.facts)
    }

    /// Reads a card in the session for it: a terminal has one at a time, and the online one is made anew with its token.
    private func read(
        _ transaction: PaymentCardTransactionRequest, _ order: StoredOrder?
    ) async throws -> PaymentCardReadResult {
        if let order {
            let storing = try await reader.prepareStoreAndForward()
            current.withLock { $0 = storing }
            return try await storing.readPaymentCard(transaction, as: order.id, attachment: order.attachment)
        }
        if current.withLock({ $0 !== online }) {
            try await online.prepareAgain()
            current.withLock { $0 = online }
        }
        return try await online.readPaymentCard(transaction)
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
            // Gone, and the card with it.
        }
        return false
    }

    /// No reader of this machine can be updated from here.
    func installUpdate(_ tell: @escaping @Sendable (CardReaderSoftwareUpdateState) -> Void) async throws {}

    func close() async {
        watch.cancel()
        await terminal.end()
        await (device as? USBReader)?.close()
    }
}

extension CardReaderEvent {
    /// - Returns: nil for an event that apps are not told of.
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
    /// Whether a card was waited for, and not refused before.
    fileprivate var isOfARead: Bool {
        switch self {
        case .noReaderSession, .readerSessionExpired, .readerTokenExpired, .readFromBackgroundError,
            .readerSessionBusy, .invalidAmount, .invalidCurrencyCode, .invalidPreferredAID, .readNotAllowed:
            false
        default: true
        }
    }
}
