/// The metrics of this package: the one place for their names, their meanings, and their labels.
package let metrics = MetricTable()

/// All metrics.
///
/// The terminal, the store, the forwarder and the bridge count here what happens.  An article of this module has the same table
/// for people.
package struct MetricTable: Sendable {
    // MARK: Terminal

    package let readerPresent = Level<NoLabels>("reader_present", "1 while the terminal has its reader, otherwise 0.")
    package let preparations = Count<Preparation>("preparations_total", "Preparations of the reader, by result.")
    package let reads = Count<TwoLabels<Request, ReadResult>>(
        "reads_total", "Reads that ended, by what was requested and by result.")
    package let cardTime = Times<NoLabels>(
        "card_seconds", "Time from the detection of a card or phone to the end of its read.",
        bounds: [0.1, 0.2, 0.3, 0.5, 0.75, 1, 2, 5, 15])

    // MARK: Payments

    package let payments = Count<TwoLabels<PaymentKind, PaymentResult>>(
        "payments_total", "Online payments and refunds that the payment service was asked for, by result.")
    package let reversals = Count<Reversal>(
        "reversals_total", "Attempts to have a payment reversed, by result.")
    package let unsettledPayments = Level<NoLabels>(
        "unsettled_payments", "Online payments whose outcome or reversal is not known.")
    package let serviceCalls = Count<TwoLabels<ServiceCall, Answer>>(
        "service_calls_total", "Calls of the payment service, by result.")
    package let serviceTime = Times<ServiceCall>(
        "service_call_seconds", "Time for the payment service to answer a call, or to fail to.",
        bounds: [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60])

    // MARK: Store

    package let storedPayments = Count<StoreEvent>(
        "stored_payments_total", "Payments that were stored, and what became of stored payments.")
    package let storeLevel = Level<StoreState>("store_payments", "Payments in the store, by state.")
    package let oldestPayment = Level<NoLabels>(
        "store_oldest_payment_timestamp_seconds",
        "Unix time at which the oldest payment in the store was made; 0 for none.")
    package let storeFailures = Count<StoreFailureReason>("store_failures_total", "Failures of the store, by reason.")
    package let storeTime = Times<NoLabels>(
        "store_write_seconds", "Time to write to the store.", bounds: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 2])

    // MARK: Forwarder

    package let forwardedPayments = Count<Forwarded>(
        "forwarded_payments_total", "Stored payments that the forwarder has finished, by result.")
    package let forwardingPaused = Level<NoLabels>(
        "forwarding_paused", "1 while forwarding pauses because of a failure, otherwise 0.")

    // MARK: Bridge

    package let pageConnected = Level<NoLabels>("bridge_page_connected", "1 while a page is connected, otherwise 0.")
    package let refusedPages = Count<Refusal>(
        "bridge_refused_pages_total", "Connections of pages that were refused, by reason.")
    package let refusedMessages = Count<NoLabels>(
        "bridge_refused_messages_total", "Messages of pages that were refused: malformed, or too many at a time.")
    package let requests = Count<TwoLabels<Action, Status>>(
        "bridge_requests_total", "Requests of pages that ended, by status.")
    package let requestTime = Times<Action>(
        "bridge_request_seconds", "Time to answer a page's request.", bounds: [0.01, 0.1, 0.5, 1, 2.5, 5, 15, 60])

    /// The rows, in this order.
    package var rows: [MetricRow] { Mirror(reflecting: self).children.compactMap { ($0.value as? any Metric)?.row } }
}

/// The labels.
extension MetricTable {
    package enum Preparation: String, MetricLabel {
        case prepared
        case failed

        package static let name = "result"
    }

    package enum Request: String, MetricLabel {
        case payment
        case pass
        case paymentAndPass = "payment_and_pass"

        package static let name = "request"
    }

    package enum ReadResult: String, MetricLabel {
        case completed
        /// The card declined.
        case declined
        /// The card failed, or cannot be used here.
        case failed
        case cancelled
        /// There is no reader, or it failed.
        case readerFailed = "reader_failed"
        /// The session, the policy of the store, or the store itself did not permit the payment.
        case refused

        package static let name = "result"
    }

    package enum PaymentKind: String, MetricLabel {
        case payment
        case refund

        package static let name = "kind"
    }

    package enum PaymentResult: String, MetricLabel {
        case approved
        case declined
        /// The payment service did nothing.
        case refused
        /// The payment may have been made.
        case unknown

        package static let name = "result"
    }

    package enum Reversal: String, MetricLabel {
        case confirmed
        case unconfirmed

        package static let name = "result"
    }

    package enum ServiceCall: String, MetricLabel {
        case token
        case payment
        case refund
        case inquiry
        case reversal
        case batch

        package static let name = "call"
    }

    package enum Answer: String, MetricLabel {
        case answered
        case refused
        case notAuthorized = "not_authorized"
        case unavailable
        case tooLarge = "too_large"
        case noAnswer = "no_answer"

        package static let name = "result"
    }

    package enum StoreEvent: String, MetricLabel {
        case stored
        case withdrawn
        case setAside = "set_aside"
        case putBack = "put_back"
        /// Deleted with the payment service's consent.
        case resolved
        /// Deleted after a person found out the decision.
        case released

        package static let name = "event"
    }

    package enum StoreState: String, MetricLabel {
        case stored
        case setAside = "set_aside"
        case batched
        case sent
        case approved
        case declined
        case unknown

        package static let name = "state"
    }

    package enum StoreFailureReason: String, MetricLabel {
        case key
        case full
        case notWritable = "not_writable"
        case damaged
        case version
        case system

        package static let name = "reason"
    }

    package enum Forwarded: String, MetricLabel {
        case approved
        case declined
        case setAside = "set_aside"

        package static let name = "result"
    }

    package enum Refusal: String, MetricLabel {
        case address
        case host
        case origin
        case handshake
        case token
        case anotherPage = "another_page"

        package static let name = "reason"
    }

    package enum Action: String, MetricLabel {
        case hello = "bridge.hello"
        case query = "capability.query"
        case readDocument = "nfc.read"
        case cancelDocument = "nfc.cancel"
        case getOrder = "order.get"
        case startPayment = "payment.start"
        case cancelPayment = "payment.cancel"
        case readPass = "pass.read"
        case printReceipt = "receipt.print"
        case captureDocument = "camera.document.capture"
        case captureSelfie = "camera.selfie.capture"
        case say = "speech.say"
        case stopSaying = "speech.stop"
        case checkout
        /// An action of the application, or one that nobody knows.
        case other

        package static let name = "action"

        /// Returns the label for the action of a page's request, whatever a page wrote there.
        package init(of action: String) {
            self = Self(rawValue: action) ?? (action.hasPrefix("checkout.") ? .checkout : .other)
        }
    }

    package enum Status: String, MetricLabel {
        case success
        case unsupported
        case cancelled
        case error
        /// The page went before the answer.
        case abandoned

        package static let name = "status"
    }
}
