/// The request `receipt.print`, which prints the receipt of a paid order.
@MainActor public final class ReceiptCapability: BridgeRequestHandler {
    private let printing: @Sendable (_ order: String, _ locale: String?) async throws -> Void
    private var isPrinting = false

    /// - Parameter print: prints the receipt of an order, in the language that the page shows; nil if it names none.
    ///   It throws ``BridgeErrorPayload``, or any error for `PRINT_FAILED`.
    public init(print: @escaping @Sendable (_ order: String, _ locale: String?) async throws -> Void) {
        printing = print
    }

    public let actions = ["receipt.print"]
    public var capabilities: [String: CapabilityState] { ["receipt.print": CapabilityState(isSupported: true)] }

    public func handle(_ request: BridgeMessage, _ responder: BridgeResponder) async {
        guard let order = request.payload.data?["order"]?.text, (1...64).contains(order.utf8.count) else {
            return responder.fail(.init(.invalidRequest, "order: 1 to 64 characters are due"))
        }
        guard !isPrinting else { return responder.fail(.init(.busy, "a receipt is being printed")) }
        isPrinting = true
        defer { isPrinting = false }
        do {
            let locale = request.payload.data?["locale"]?.text
            try await printing(order, locale.flatMap { $0.utf8.count <= 35 ? $0 : nil })
            responder.respond(status: .success, data: ["printed": true])
        } catch let error as BridgeErrorPayload {
            responder.fail(error)
        } catch {
            responder.fail(.init(code: "PRINT_FAILED", message: "the printer: \(loggable(error))", recoverable: true))
        }
    }
}
