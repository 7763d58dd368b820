import ComposableCheckout
import EMVContactless
import Foundation
public import KioskKit
import Logging
public import ProximityReader

/// The requests of a page about money: `order.get`, `payment.start` and `payment.cancel`.
///
/// The page names an order and never an amount.  It receives the messages for the customer as `payment.state`, and the
/// outcome when the application's orders have it.  A page that goes away ends the wait for a card; a card that was read
/// is charged nevertheless, and the next page is shown the outcome.
@MainActor public final class PaymentCapability: BridgeRequestHandler {
    /// Fixes the price between pass and payment, while the customer holds the phone to the reader.
    public typealias Pricing = @Sendable (KioskOrder, VASReadResult?) async throws -> KioskPrice

    private struct Attempt {
        let order: KioskOrder
        var state: TapState
        var outcome: [String: JSONValue]?
        var price: KioskPrice?
    }

    private let service: TapToPayService
    private let orders: any KioskOrders
    private let pricing: Pricing?
    private weak var host: BridgeHost?
    private var attempt: Attempt?
    /// The order as the application last told it.
    private var lastOrder: KioskOrder?
    /// The language that the page named last; nil if none.
    private var pageLocale: Locale?
    private var isUnderWay = false
    private var isReaderThere = false
    private var watches: [Task<Void, Never>] = []
    private let canPrintReceipts: Bool

    /// - Parameters:
    ///   - service: the reader and its payment service, which is initialized.
    ///   - orders: what is to be paid.
    ///   - pricing: fixes the price, knowing the passes of the customer; nil: no passes are read.
    ///   - canPrintReceipts: true if a ``ReceiptCapability`` is registered.
    public init(
        _ service: TapToPayService, orders: any KioskOrders, pricing: Pricing? = nil, canPrintReceipts: Bool = false
    ) {
        (self.service, self.orders, self.pricing) = (service, orders, pricing)
        self.canPrintReceipts = canPrintReceipts
    }

    deinit { for watch in watches { watch.cancel() } }

    public let actions = ["order.get", "payment.start", "payment.cancel"]

    public var capabilities: [String: CapabilityState] {
        [
            "payment.start": CapabilityState(
                isSupported: isReaderThere, permissionState: isReaderThere ? .granted : .unavailable,
                reason: isReaderThere ? nil : "no reader is ready")
        ]
    }

    public var snapshot: [String: JSONValue] {
        let order = lastOrder?.json(kioskLocale) ?? .null
        guard let attempt else { return ["payment": nil, "order": order] }
        var payment: [String: JSONValue] = [
            "order": .string(attempt.order.id), "state": .string(attempt.state.rawValue),
        ]
        payment.merge(attempt.outcome ?? [:]) { present, _ in present }
        return ["payment": .object(payment), "order": order]
    }

    public func attach(to host: BridgeHost) {
        self.host = host
        let messages = ProximityReaderSystem.messages(of: service.reader)
        let events = service.reader.events
        let presence = ProximityReaderSystem.presence(of: service.reader)
        let pageMessages = host.messages
        watches = [
            Task { [weak self] in for await message in messages { self?.show(message) } },
            Task { [weak self] in for await event in events { self?.take(event) } },
            Task { [weak self] in for await message in pageMessages { self?.take(message) } },
            Task { [weak self] in for await isThere in presence { self?.take(isReaderThere: isThere) } },
            Task { [weak self] in _ = await self?.presentOrder() },
        ]
        host.onBackground { [weak self] in await self?.service.suspend() }
        host.onForeground { [weak self] in
            do { try await self?.service.resume() } catch {
                logger.warning("the reader is not ready after the pause: \(loggable(error))")
            }
        }
    }

    public func pageLeft() { pageLocale = nil }

    public func isTakingPayment() async -> Bool { isUnderWay }

    private var kioskLocale: Locale { host?.locale ?? Locale(identifier: "en_US") }

    private func take(isReaderThere: Bool) {
        self.isReaderThere = isReaderThere
        host?.capabilitiesChanged()
    }

    // MARK: What the customer is shown

    private func show(_ request: UserInterfaceRequest) {
        guard let state = TapMessage(request).flatMap({ TapState(rawValue: $0.rawValue) }) else { return }
        show(state)
    }

    private func take(_ event: PaymentCardReader.Event) {
        switch event {
        case .readyForTap: show(.presentCard)
        case .cardDetected: show(.reading)
        case .readRetry: if attempt?.state != .seePhone { show(.tryAgain) }
        case .removeCard: show(.removeCard)
        case .readCompleted: show(.processing)
        case .notReady, .updateProgress, .readCancelled, .readNotCompleted, .pinEntryRequested, .pinEntryCompleted,
            .userInterfaceDismissed:
            break
        }
    }

    /// A customer who has seen the outcome is gone, and the next one does not see it.
    private func take(_ message: BridgeMessage) {
        guard ["journey.complete", "journey.cancel"].contains(message.payload.action), !isUnderWay else { return }
        attempt = nil
    }

    private func show(_ state: TapState) {
        guard isUnderWay, let attempt, attempt.state != state, !attempt.state.isOutcome else { return }
        self.attempt?.state = state
        host?.send(
            event: "payment.state", data: ["order": .string(attempt.order.id), "state": .string(state.rawValue)])
    }

    // MARK: Requests

    public func handle(_ request: BridgeMessage, _ responder: BridgeResponder) async {
        let data = request.payload.data ?? [:]
        if let asked = data["locale"]?.text { pageLocale = Locale(bcp47: asked) }
        let locale = pageLocale ?? kioskLocale
        switch request.payload.action {
        case "order.get":
            let order = await presentOrder()
            responder.respond(status: .success, data: ["order": order?.json(locale) ?? .null])
        case "payment.cancel":
            let isCancelled = isUnderWay ? await service.cancelRead() : false
            responder.respond(status: .success, data: ["cancelled": .bool(isCancelled)])
        default:
            await start(data, locale, responder)
        }
    }

    private func presentOrder() async -> KioskOrder? {
        lastOrder = await orders.currentOrder()
        return lastOrder
    }

    private func start(_ data: [String: JSONValue], _ locale: Locale, _ responder: BridgeResponder) async {
        guard !isUnderWay else { return responder.fail(.init(.busy, "a payment is under way")) }
        // Of two that begin at once, each says so before it asks for the other.
        isUnderWay = true
        guard await host?.isTakingPayment(besides: self) != true else {
            isUnderWay = false
            return responder.fail(.init(.busy, "a checkout takes a payment"))
        }
        let order = await presentOrder()
        guard let order, let id = data["order"]?.text, id == order.id else {
            isUnderWay = false
            return responder.fail(.init(.invalidRequest, "order: that of the present order is due"))
        }
        guard order.status == .open else {
            isUnderWay = false
            let code = order.status == .paid ? "ALREADY_PAID" : "OUTCOME_UNKNOWN"
            return responder.fail(.init(code: code, message: "the order is not open", recoverable: false))
        }
        attempt = Attempt(order: order, state: .idle)
        // A page that goes away ends the wait for a card, and nothing else: a payment that was begun comes to its end.
        let payment = Task { await pay(order, locale) }
        let result = await withTaskCancellationHandler {
            await payment.value
        } onCancel: {
            Task { [service] in await service.cancelRead() }
        }
        switch result {
        case .success(let answer): responder.respond(status: .success, data: answer)
        case .failure(let error): responder.fail(error)
        }
    }

    /// Takes the payment, and settles the order before anybody is told.
    private func pay(_ order: KioskOrder, _ locale: Locale) async -> Result<[String: JSONValue], BridgeErrorPayload> {
        defer { isUnderWay = false }
        do {
            return await settle(try await charge(order), order, locale)
        } catch TapToPayError.outcomeUnknown(let key) {
            return await settle(.unknown(key: key), order, locale)
        } catch {
            let reason = BridgeErrorPayload(payment: error)
            await settle(order.id, .cancelled)
            if case TapToPayError.anotherInterfaceNeeded = error { show(.otherCard) } else { show(.cancelled) }
            return .failure(reason)
        }
    }

    private func settle(_ id: String, _ outcome: KioskPaymentOutcome) async {
        await orders.settle(id, outcome)
        _ = await presentOrder()
    }

    private func settle(
        _ outcome: KioskPaymentOutcome, _ order: KioskOrder, _ locale: Locale
    ) async -> Result<[String: JSONValue], BridgeErrorPayload> {
        await settle(order.id, outcome)
        guard outcome != .cancelled else {
            show(.cancelled)
            return .failure(.init(.cancelled, "a pass was read, and no card to pay with"))
        }
        let answer = answer(outcome, order, locale)
        attempt?.outcome = answer
        switch outcome {
        case .approved: show(.approved)
        case .declined: show(.declined)
        case .cancelled: show(.cancelled)
        case .unknown: show(.unknown)
        }
        return .success(answer)
    }

    private func charge(_ order: KioskOrder) async throws -> KioskPaymentOutcome {
        guard let pricing else {
            return outcome(
                try await service.charge(amount: order.total, currency: order.currencyCode), of: order.total)
        }
        let request = PaymentCardTransactionRequest(amount: order.total, currencyCode: order.currencyCode)
        let result = try await service.charge(request, with: VASRequest()) { [weak self] passes in
            let price = try await pricing(order, passes)
            await self?.fix(price)
            return price.amount
        }
        guard let payment = result.payment, let amount = result.amount else { return .cancelled }
        return outcome(payment, of: amount)
    }

    private func fix(_ price: KioskPrice) { attempt?.price = price }

    private func outcome(_ payment: KioskKit.PaymentResult, of amount: Decimal) -> KioskPaymentOutcome {
        payment.status == .approved ? .approved(amount, payment) : .declined(message: payment.message)
    }

    private func answer(
        _ outcome: KioskPaymentOutcome, _ order: KioskOrder, _ locale: Locale
    ) -> [String: JSONValue] {
        var answer: [String: JSONValue] = [
            "receipt": false, "amount": .money(attempt?.price?.amount ?? order.total, order.currencyCode, locale),
        ]
        switch outcome {
        case .approved(let amount, let payment):
            answer["outcome"] = "approved"
            answer["amount"] = .money(amount, order.currencyCode, locale)
            answer["receipt"] = .bool(canPrintReceipts && payment.hasReceipt)
        case .declined(let message):
            answer["outcome"] = "declined"
            answer["message"] = message.map { .string($0) }
        case .cancelled: answer["outcome"] = "cancelled"
        case .unknown: answer["outcome"] = "unknown"
        }
        if let price = attempt?.price, let member = price.member {
            answer["loyalty"] = [
                "member": .string(member), "saved": .money(order.total - price.amount, order.currencyCode, locale),
            ]
        }
        return answer
    }
}

extension BridgeErrorPayload {
    /// The answer to a request for a payment that was not made.
    init(payment error: any Error) {
        switch error {
        case PaymentCardReaderSession.ReadError.readCancelled: self.init(.cancelled, "the payment was canceled")
        case PaymentCardReaderSession.ReadError.readerSessionBusy: self.init(.busy, "the reader is in use")
        case PaymentCardReaderSession.ReadError.readerNotAvailable:
            self.init(code: "READER_DISCONNECTED", message: "the reader was unplugged", recoverable: true)
        case PaymentCardReaderSession.ReadError.paymentCardDeclined:
            self.init(code: "CARD_DECLINED", message: "the card declined", recoverable: true)
        case let error as PaymentCardReaderSession.ReadError:
            self.init(code: "READ_FAILED", message: error.localizedDescription, recoverable: true)
        case let error as PaymentCardReaderError:
            self.init(code: "READER_NOT_READY", message: error.localizedDescription, recoverable: true)
        case TapToPayError.anotherInterfaceNeeded:
            self.init(
                code: "OTHER_CARD_NEEDED", message: "the card cannot be tapped for this payment", recoverable: true)
        case let error as TapToPayError:
            self.init(code: "NOT_PAID", message: error.description, recoverable: true)
        case let error as PaymentServiceError:
            self.init(code: "NOT_PAID", message: "the payment service: \(error)", recoverable: true)
        default: self.init(.internalError, "the payment failed: \(loggable(error))")
        }
    }
}
