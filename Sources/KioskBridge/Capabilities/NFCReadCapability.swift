import CardReaders
import Foundation
import SmartCard
public import TravelDocument
import Waiting

/// The capability `nfc.read`: reads a travel document that the customer puts on the reader.
///
/// The page sends what opens the chip: the machine readable zone, or the card access number.  It receives progress as
/// `nfc.progress`, and then the holder's data, the portrait, and what is to be believed of both.  Nothing is kept.
@MainActor public final class NFCReadCapability: BridgeRequestHandler {
    private let reader: KioskReader
    private let trust: @Sendable () throws -> TrustList
    private let limit: Duration
    private weak var host: BridgeHost?
    private var isAttached = false
    private var watch: Task<Void, Never>?
    /// Ends the reading that is under way.
    private var cancel: (@Sendable () -> Void)?

    /// - Parameters:
    ///   - reader: the reader of the kiosk.
    ///   - trust: returns the authorities to believe, at each reading.
    ///   - limit: the time for the customer to put the document there.
    public init(
        reader: KioskReader = .automatic, trust: @escaping @Sendable () throws -> TrustList,
        limit: Duration = .seconds(30)
    ) {
        (self.reader, self.trust, self.limit) = (reader, trust, limit)
    }

    deinit { watch?.cancel() }

    public let actions = ["nfc.read", "nfc.cancel"]

    public var capabilities: [String: CapabilityState] {
        [
            "nfc.read": CapabilityState(
                isSupported: isAttached, permissionState: isAttached ? .granted : .unavailable,
                reason: isAttached ? nil : "no contactless reader is attached")
        ]
    }

    public func attach(to host: BridgeHost) {
        self.host = host
        let presence = reader.presence()
        watch?.cancel()
        watch = Task { [weak self] in
            for await isAttached in presence { self?.readerChanged(isAttached) }
        }
    }

    private func readerChanged(_ isAttached: Bool) {
        NFCTagReaderSession.report(isAttached)
        self.isAttached = isAttached
        host?.capabilitiesChanged()
    }

    public func handle(_ request: BridgeMessage, _ responder: BridgeResponder) async {
        guard request.payload.action == "nfc.read" else {
            cancel?()
            return responder.respond(status: .success, data: [:])
        }
        guard cancel == nil else { return responder.fail(.init(.busy, "a document is being read")) }
        do throws(BridgeErrorPayload) {
            let data = request.payload.data ?? [:]
            let patience = try patience(data)
            let answer: [String: JSONValue]
            switch data["type"] {
            case nil, "document":
                let wanted = try DocumentRequest(data)
                answer = try await run(request.correlationId) { [reader, trust] tell in
                    try await Self.read(wanted, on: reader, trust: trust, within: patience, tell).data
                }
            case "ndef":
                let message = try await run(request.correlationId) { [reader] tell in
                    try await Self.readTag(on: reader, within: patience, tell)
                }
                answer = ["records": .array(message.records.map(Self.json))]
            default: throw BridgeErrorPayload(.invalidRequest, "type: document or ndef is due")
            }
            responder.respond(status: .success, data: answer)
        } catch {
            responder.fail(error)
        }
    }

    private func patience(_ data: [String: JSONValue]) throws(BridgeErrorPayload) -> Duration {
        guard let timeout = data["timeout"] else { return limit }
        guard let seconds = timeout.wholeNumber, (1...120).contains(seconds) else {
            throw BridgeErrorPayload(.invalidRequest, "timeout: 1 to 120 seconds are due")
        }
        return .seconds(seconds)
    }

    /// Runs a reading, and tells the page its progress.
    private func run<Value: Sendable>(
        _ correlationId: String,
        _ body: @escaping @Sendable (@escaping @Sendable (Progress) -> Void) async throws -> Value
    ) async throws(BridgeErrorPayload) -> Value {
        let (progress, steps) = AsyncStream<Progress>.makeStream()
        let told = Task { [weak self] in
            for await step in progress { self?.host?.send(event: "nfc.progress", data: step.data(of: correlationId)) }
        }
        let task = Task {
            defer { steps.finish() }
            return try await body { steps.yield($0) }
        }
        cancel = { task.cancel() }
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            task.cancel()
        }
        await told.value
        cancel = nil
        do { return try result.get() } catch { throw BridgeErrorPayload(reading: error) }
    }

    /// Waits for a card.
    private nonisolated static func card(
        on reader: any CardReader, within patience: Duration, _ tell: @Sendable (Progress) -> Void
    ) async throws -> any CardConnection {
        tell(Progress(step: .present, fraction: 0))
        let late = BridgeErrorPayload(.timeout, "no document within \(patience.components.seconds) seconds")
        _ = try await withTimeLimit(patience, or: late) { try await reader.waitForCard() }
        tell(Progress(step: .access, fraction: 0))
        return try await withTimeLimit(Stack.longestExchange) { try await reader.connect() }
    }

    /// Waits for a tag, and reads its message.
    @concurrent private static func readTag(
        on reader: KioskReader, within patience: Duration, _ tell: @escaping @Sendable (Progress) -> Void
    ) async throws -> NDEFMessage {
        let reader = try await reader.find()
        let card = try await card(on: reader, within: patience, tell)
        let result: Result<NDEFMessage, any Error>
        do { result = .success(try await card.readNDEF()) } catch { result = .failure(error) }
        await card.disconnect(.leave)
        return try result.get()
    }

    /// Returns a record as the page sees it: a text, an address, or its kind alone.
    private static func json(_ record: NDEFRecord) -> JSONValue {
        if let text = record.text { return ["type": "text", "text": .string(text.text)] }
        if let uri = record.uri { return ["type": "uri", "uri": .string(uri)] }
        return ["type": .string("\(record.format)")]
    }

    /// Waits for the document, opens its chip, reads, and judges: signatures and pictures take a while.
    @concurrent private static func read(
        _ request: DocumentRequest, on reader: KioskReader, trust: @Sendable () throws -> TrustList,
        within patience: Duration,
        _ tell: @escaping @Sendable (Progress) -> Void
    ) async throws -> DocumentAnswer {
        let reader = try await reader.find()
        let card = try await card(on: reader, within: patience, tell)
        let chip = TravelDocumentChip(
            over: Stack(for: reader).over(card), connection: card,
            longestAPDU: reader.model.map(\.longestCommand) ?? 261)
        let meter = Lock(ProgressMeter(files: request.dataGroups.count + 1))
        let result: Result<DocumentReading, any Error>
        do {
            result = .success(
                try await chip.read(dataGroups: request.dataGroups, with: request.key) { event in
                    if let progress = meter.withLock({ $0.progress(after: event) }) { tell(progress) }
                })
        } catch {
            result = .failure(error)
        }
        await card.disconnect(.leave)
        if case .success = result { tell(Progress(step: .checking, fraction: 1)) }
        return DocumentAnswer(try result.get(), trust: try trust(), at: Date())
    }
}

/// A step of a reading, as the page shows it.
struct Progress: Hashable, Sendable {
    enum Step: String, Sendable {
        /// The customer is to put the document on the reader.
        case present
        case access
        case reading
        case checking
    }

    let step: Step
    /// 0 to 1.
    let fraction: Double

    func data(of request: String) -> [String: JSONValue] {
        ["request": .string(request), "step": .string(step.rawValue), "fraction": .number(fraction)]
    }
}

/// The progress of a reading in twentieths, so that a page gets no more than some dozen events.
struct ProgressMeter {
    /// The number of files that are expected: the wanted ones and EF.SOD.
    let files: Int
    private var done = 0.0
    private var told = -1

    init(files: Int) { self.files = max(files, 1) }

    /// - Returns: nil if the page need not be told.
    mutating func progress(after event: ReadingEvent) -> Progress? {
        var part = 0.0
        switch event {
        case .opened: break
        case .progress(_, let progress): part = Double(progress.bytes) / Double(max(progress.length, 1))
        case .read, .failed: done += 1
        }
        // A chip with more files than were asked for, such as DG14, stays below the end.
        let twentieths = min(Int((done + min(part, 1)) / Double(files) * 20), 19)
        guard twentieths > told else { return nil }
        told = twentieths
        return Progress(step: .reading, fraction: Double(twentieths) / 20)
    }
}

extension BridgeErrorPayload {
    /// The answer to a request whose reading failed.
    init(reading error: any Error) {
        switch error {
        case let error as BridgeErrorPayload: self = error
        case is CancellationError: self.init(.cancelled, "the reading was canceled")
        case let error as CardError: self.init(error)
        case let error as AccessError:
            self.init(code: "ACCESS_DENIED", message: "the chip does not open: \(error)", recoverable: true)
        case ChipError.notATravelDocument:
            self.init(code: "NOT_A_DOCUMENT", message: "the card is no travel document", recoverable: true)
        case let error as NDEFError:
            self.init(code: "NOT_A_DOCUMENT", message: "the tag's message: \(error)", recoverable: true)
        case let error as NoNDEFTag: self.init(code: "NOT_A_DOCUMENT", message: error.description, recoverable: true)
        case let error as SecureMessagingError:
            self.init(code: "CARD_REMOVED", message: "the reading broke off: \(error)", recoverable: true)
        default: self.init(.internalError, "the reading failed: \(loggable(error))")
        }
    }

    /// The answer to a request that a reader's error ended.
    init(_ error: CardError) {
        switch error.kind {
        case .noReader: self.init(.unsupported, "no contactless reader is attached")
        case .readerGone, .disconnected:
            self.init(code: "READER_DISCONNECTED", message: "the reader was unplugged", recoverable: true)
        case .readerBusy, .sharing: self.init(.busy, error.description)
        case .permissionDenied: self.init(.permissionDenied, error.description)
        case .cardAbsent, .cardRemoved, .cardReset, .cardMute, .noAnswer, .notTransacted:
            self.init(code: "CARD_REMOVED", message: error.description, recoverable: true)
        case .noService, .versionMismatch, .readerTimeout, .malformedAnswer, .unsupported, .tooLong, .protocolMismatch,
            .other:
            self.init(code: BridgeErrorCode.internalError.rawValue, message: error.description, recoverable: true)
        }
    }
}
