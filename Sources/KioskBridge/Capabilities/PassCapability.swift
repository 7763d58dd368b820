public import KioskKit
public import ProximityReader
import Waiting

/// The request `pass.read`, which reads the loyalty passes of a phone.
///
/// The page receives each pass's merchant, its status, and the last four characters of its number.  The pass itself is
/// the application's.
@MainActor public final class PassCapability: BridgeRequestHandler {
    private let service: TapToPayService
    private let passesRead: @Sendable (VASReadResult) async -> Void
    private let limit: Duration
    private var isReading = false
    /// The passes of the customer who is there; nil if none were read.
    public private(set) var passes: VASReadResult?
    private var watch: Task<Void, Never>?

    /// - Parameters:
    ///   - service: the reader, which is initialized, with the merchant's passes configured.
    ///   - limit: the time for the customer to hold a phone there; then the reader is free again.
    ///   - passesRead: takes what was read, before the page is told.
    public init(
        _ service: TapToPayService, limit: Duration = .seconds(30),
        passesRead: @escaping @Sendable (VASReadResult) async -> Void = { _ in }
    ) {
        (self.service, self.limit, self.passesRead) = (service, limit, passesRead)
    }

    deinit { watch?.cancel() }

    public let actions = ["pass.read"]
    public var capabilities: [String: CapabilityState] { ["pass.read": CapabilityState(isSupported: true)] }

    public func attach(to host: BridgeHost) {
        let messages = host.messages
        watch = Task { [weak self] in
            // The next customer has other passes.
            for await message in messages where ["journey.complete", "journey.cancel"].contains(message.payload.action)
            {
                self?.passes = nil
            }
        }
    }

    public func pageLeft() { passes = nil }

    public func handle(_ request: BridgeMessage, _ responder: BridgeResponder) async {
        guard !isReading else { return responder.fail(.init(.busy, "passes are being read")) }
        isReading = true
        defer { isReading = false }
        do {
            let passes = try await Self.read(service, within: limit)
            await passesRead(passes)
            self.passes = passes
            responder.respond(status: .success, data: ["passes": .array(passes.entries.map(Self.json))])
        } catch let error as BridgeErrorPayload {
            responder.fail(error)
        } catch {
            responder.fail(BridgeErrorPayload(payment: error))
        }
    }

    private nonisolated static func read(
        _ service: TapToPayService, within limit: Duration
    ) async throws -> VASReadResult {
        let late = BridgeErrorPayload(.timeout, "no phone within \(limit.components.seconds) seconds")
        return try await withTimeLimit(limit, or: late) { try await service.readPasses(VASRequest()) }
    }

    private static func json(_ entry: VASReadResult.ReadEntry) -> JSONValue {
        var pass: [String: JSONValue] = ["merchant": .string(entry.id), "status": .string("\(entry.status)")]
        pass["member"] = entry.maskedNumber.map { .string($0) }
        return .object(pass)
    }
}
