package import EMVContactless
public import FoundationEssentials
public import KioskKit
import ProximityReader

/// A message for the customer while they pay by tap.
public enum TapMessage: String, Hashable, Codable, Sendable, CaseIterable {
    case presentCard, reading, seePhone, tryAgain, otherCard, removeCard, processing
}

extension TapMessage {
    /// Messages of EMV Contactless Book A, table 9-3, and what a customer is shown for them.
    private static let kernelMessages: [UserInterfaceRequest.Message: TapMessage] = [
        .presentCard: .presentCard, .processing: .reading, .seePhone: .seePhone, .presentCardAgain: .tryAgain,
        .presentOneCardOnly: .tryAgain, .processingError: .tryAgain, .insertOrSwipeCard: .otherCard,
        .insertSwipeOrTryAnotherCard: .otherCard, .insertCard: .otherCard, .removeCard: .removeCard,
        .cardReadRemoveCard: .removeCard, .authorizing: .processing,
    ]

    /// Creates what a customer is shown for a kernel's request; nil if it has nothing for them.
    package init?(_ request: UserInterfaceRequest) {
        guard let message = request.message.flatMap({ Self.kernelMessages[$0] }) else { return nil }
        self = message
    }
}

/// The reader that takes payments by tap.
public protocol TapReader: Sendable {
    /// True while a reader is attached: the present value first, then each change.
    var presence: AsyncStream<Bool> { get }
    /// The messages for the customer, from now on.
    var messages: AsyncStream<TapMessage> { get }
    /// Waits for a card and has the payment service charge it.
    ///
    /// - Throws: ``TapFailure``.
    func charge(amount: Decimal, currency: String) async throws(TapFailure) -> PaymentResult
    /// Ends the wait for a card.
    ///
    /// - Returns: false if a card was found already: its payment continues.
    func cancel() async -> Bool
    /// Asks for a payment whose result was not known.
    ///
    /// - Returns: nil if the payment was not made and will not be.
    /// - Throws: ``CheckoutError`` if it is still not known.
    func resolve(_ key: String, amount: Decimal, currency: String) async throws(CheckoutError) -> PaymentResult?
}

/// The reason for which there was no payment by tap, or none that is known.
public enum TapFailure: Error, Hashable, Sendable {
    /// The customer or the program has ended the wait for a card.
    case cancelled
    /// Nothing was paid.
    case failed(CheckoutError)
    /// The customer may have paid.
    case unknown(key: String)
}

/// A `TapToPayService` as the checkout's reader.  Its journal has each payment before the payment service is asked.
public struct TapToPayReader: TapReader {
    private let service: TapToPayService

    public init(_ service: TapToPayService) { self.service = service }

    public var presence: AsyncStream<Bool> { ProximityReaderSystem.presence(of: service.reader) }

    public var messages: AsyncStream<TapMessage> {
        let (stream, continuation) = AsyncStream<TapMessage>.makeStream(bufferingPolicy: .bufferingNewest(16))
        let requests = ProximityReaderSystem.messages(of: service.reader)
        let events = service.reader.events
        let kernel = Task {
            for await request in requests {
                if let message = TapMessage(request) { continuation.yield(message) }
            }
        }
        let reader = Task {
            for await event in events {
                switch event {
                case .readyForTap: continuation.yield(.presentCard)
                case .cardDetected: continuation.yield(.reading)
                case .removeCard: continuation.yield(.removeCard)
                case .readCompleted: continuation.yield(.processing)
                default: continue
                }
            }
        }
        continuation.onTermination = { _ in
            kernel.cancel()
            reader.cancel()
        }
        return stream
    }

    public func charge(amount: Decimal, currency: String) async throws(TapFailure) -> PaymentResult {
        do {
            return Self.result(try await service.charge(amount: amount, currency: currency), amount, currency)
        } catch PaymentCardReaderSession.ReadError.readCancelled {
            throw .cancelled
        } catch TapToPayError.outcomeUnknown(let key) {
            throw .unknown(key: key)
        } catch let error as PaymentServiceError {
            throw .failed(.refused(code: "payment_service", message: "\(error)"))
        } catch let error as TapToPayError {
            throw .failed(.refused(code: "tap", message: error.description))
        } catch {
            // The reader's own: a card that cannot be read, a reader that was unplugged.
            throw .failed(.refused(code: "reader", message: error.localizedDescription))
        }
    }

    public func cancel() async -> Bool { await service.cancelRead() }

    public func resolve(
        _ key: String, amount: Decimal, currency: String
    ) async throws(CheckoutError) -> PaymentResult? {
        do {
            return try await service.resolve(key).map { Self.result($0, amount, currency) }
        } catch {
            throw .transport(reason: error.localizedDescription, mayHaveHappened: true)
        }
    }

    private static func result(
        _ result: KioskKit.PaymentResult, _ amount: Decimal, _ currency: String
    ) -> PaymentResult {
        PaymentResult(
            paymentID: result.id, status: result.status == .approved ? .success : .failed, errorMessage: result.message,
            amount: amount, currency: currency, method: .tap, tap: result)
    }
}
