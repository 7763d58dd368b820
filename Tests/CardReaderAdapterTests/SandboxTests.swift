import CardReaderAdapter
import CardReaders
import CardReceipts
import Foundation
import Glibc
import ProximityReader
import SmartCardSimulator
import SmartCardUSB
import TestSupport
import Testing
import USBTestSupport

/// The service with the real psp-sandbox behind it, and a software ACR122U before it: what a kiosk has, but for the money.
@Suite(.timeLimit(.minutes(10))) struct SandboxTests {
    private struct Bench {
        let bus = SoftwareUSBBus()
        let device = SoftwareACR122U()
        let program: Program
        let address: String
        let sandbox: SandboxPaymentProcessor
        let service: ContactlessReaderService
        let events: Seen<CardReaderEvent>
        let folder = FileManager.default.temporaryDirectory.appending(path: "sandbox-\(UUID().uuidString)")

        init() async throws {
            program = try Program([Program.built("psp-sandbox"), "--port", "0", "--late", "0"])
            try await program.wait(for: "address") { $0.output.contains("\n") }
            let line = try #require(program.output.split(separator: "\n").first, "\(program.error)")
            address = String(try #require(line.split(separator: " ").last))
            sandbox = SandboxPaymentProcessor(try #require(URL(string: address)), patience: .seconds(120))
            var limits = ContactlessReaderService.TimeLimits()
            limits.processor = .seconds(240)
            service = ContactlessReaderService(
                processor: sandbox,
                backend: MachineReaders(
                    try .forVirtualCards(in: folder, tokenKeys: TestPaymentService.keySet),
                    machine: Machine(.usb, usb: USBReaders(on: bus))),
                journal: .folder(folder.appending(path: "intents")), limits: limits)
            events = Seen(service.readerEvents)
            bus.plug(device)
            try service.start(sandbox, discoveryMethod: .usb)
            for try await list in service.discoveredReaders {
                if let reader = list.first { try await service.connect(reader, options: nil) }
            }
        }

        func end() {
            program.signal(SIGKILL)
            try? FileManager.default.removeItem(at: folder)
        }

        /// Presents a virtual card, Visa's published test card if none is named, when the reader waits for one, and takes it away at the end.
        func tap<Result: Sendable>(
            _ card: String = "visa", _ call: @escaping @Sendable () async throws -> Result
        ) async throws -> Result {
            let count = events.all.count { $0.text == "waiting 4" }
            let task = Task { try await call() }
            try await wait(for: "wait for a card") { events.all.count { $0.text == "waiting 4" } == count + 1 }
            device.insert(try #require(VirtualCards.named(card)))
            let result = await task.result
            device.remove()
            return try result.get()
        }

        func pay(_ amount: String, card: String = "visa") async throws -> PaymentIntent {
            let parameters = PaymentIntentParameters(amount: try #require(Decimal(string: amount)), currency: "eur")
            return try await tap(card) { [service] in try await service.capturePayment(parameters) }
        }

        /// What psp-sandbox has booked, as it says to curl: kind, amount, status.
        func books() async throws -> [String] {
            let outcome = try await Program.run(["curl", "-s", "-m", "100", "\(address)/payments"])
            let payments = try JSONSerialization.jsonObject(with: Data(outcome.output.utf8)) as? [[String: Any]] ?? []
            return payments.map { "\($0["kind"] ?? "") \($0["amount"] ?? "") \($0["status"] ?? "")" }
        }
    }

    private static func details(_ intent: PaymentIntent) throws -> CardPresentTransactionDetails {
        guard case .cardPresent(let details)? = intent.paymentMethod() else { throw AdapterBench.Missing() }
        return details
    }

    @Test("the real psp-sandbox takes, captures, takes back and gives back, each once")
    func sandbox() async throws {
        let bench = try await Bench()
        defer { bench.end() }
        let paid = try await bench.tap { [bench] in
            try await bench.service.collectPayment(
                PaymentIntentParameters(amount: 12.34, currency: "eur"),
                onProcessing: { _ in bench.device.remove() }, capture: { try await bench.sandbox.capture($0) })
        }
        #expect(paid.status == .succeeded && paid.amount == 1234)
        let details = try Self.details(paid)
        // TEST: 4761 7390 0101 0010
        #expect(details.last4 == "0010" && details.brand == .visa)
        // What the kernel has told comes as far as the receipt, and with it the time of the answer.
        let receipt = try ReceiptContent(
            merchant: Sample.merchant, order: Sample.order(1234), intent: paid)
        #expect(receipt.parameters.card.emv?.applicationIdentifier.hasPrefix("A0000000031010") == true)
        #expect(receipt.parameters.card.emv?.applicationCryptogram?.count == 16)

        // Its answer is lost: nobody pays twice, and the second question gets the first one's answer.
        #expect(
            await failure { _ = try await bench.pay("10.96") } == "paymentCapture(underlyingError: requestTimedOut)")
        #expect(
            await failure {
                _ = try await bench.service.capturePayment(PaymentIntentParameters(amount: 1, currency: "eur"))
            } == "intentCreation(underlyingError: paymentOutcomeUnknown)")
        #expect(try await bench.service.retryActivePaymentIntent().status == .requiresCapture)
        // The same, taken back.
        #expect(await failure { _ = try await bench.pay("20.96") } != nil)
        try await bench.service.cancelPaymentIntent()
        #expect(await bench.service.activePaymentIntent == nil)
        let reversed = try await bench.pay("7.00")
        // A processor of another process knows of no intent, and asks the sandbox.
        let restarted = SandboxPaymentProcessor(try #require(URL(string: bench.address)), patience: .seconds(120))
        let unknown = PaymentIntent(
            id: reversed.id, status: .unknown, created: reversed.created, amount: reversed.amount,
            currency: reversed.currency)
        let found = try await restarted.retrieve(unknown)
        #expect(found.status == .requiresCapture)
        // And its receipt has what the kernel has told, and the time of the decision.
        let copy = try ReceiptContent(
            merchant: Sample.merchant, order: Sample.order(700), intent: found)
        #expect(copy.parameters.card.emv?.applicationCryptogram?.count == 16)
        #expect(try copy.parameters.card == ReceiptCard(Self.details(reversed)))
        #expect(found.charges.map(\.created) == reversed.charges.map(\.created))
        let another = CollectedCard(id: "another-card", sealedData: "another card")
        do {
            _ = try await restarted.process(unknown, card: another, idempotencyKey: another.id)
            Issue.record("a second card was charged")
        } catch let error as PaymentProcessorError {
            #expect(error.reason == .unknownIntent && error.intent?.status == .requiresCapture)
        }
        try await restarted.cancel(unknown)
        try await restarted.cancel(unknown)
        #expect(try await restarted.retrieve(unknown).status == .canceled)
        #expect(try await bench.sandbox.retrieve(reversed).status == .canceled)
        #expect(await failure { _ = try await bench.sandbox.capture(reversed) } != nil)

        #expect(
            await failure { _ = try await bench.pay("10.51") }?.contains("insufficientFunds") == true)
        #expect(
            await failure { _ = try await bench.pay("10.13") } == "paymentCapture(underlyingError: invalidAmount)")
        let refund = RefundParameters(chargeId: paid.charges[0].id, amount: 5, currency: "eur")
        #expect(try await bench.tap { try await bench.service.refundPayment(parameters: refund) } == "success")
        let declined = RefundParameters(chargeId: paid.charges[0].id, amount: 5.14, currency: "eur")
        let error = await failure {
            _ = try await bench.tap { try await bench.service.refundPayment(parameters: declined) }
        }
        #expect(error?.contains("invalidAccount") == true && error?.contains("shouldRetry: false") == true)

        #expect(
            try await bench.books() == [
                "payment 12.34 approved", "payment 10.96 approved", "payment 20.96 declined", "payment 7.00 declined",
                "payment 10.51 declined", "refund 5.00 approved", "refund 5.14 declined",
            ])
        // A card that was read in mag-stripe mode is no EMV card.
        let stripe = try Self.details(try await bench.pay("1.00", card: "mastercard-stripe"))
        #expect(stripe.readMethod == .contactlessMagneticStripe && stripe.brand == .masterCard)

        bench.program.signal(SIGKILL)
        _ = try await bench.program.outcome()
        #expect(
            await failure { _ = try await bench.pay("1.00") }
                == "paymentCapture(underlyingError: notConnectedToInternet)")
        bench.device.remove()
    }
}

/// What the processor makes of answers that are no answers of the sandbox's.
@Suite(.timeLimit(.minutes(5))) struct SandboxAnswerTests {
    @Test("an answer that is longer than any of the sandbox's is none", arguments: [10, 3 << 20])
    func length(_ count: Int) async throws {
        let server = try OneAnswer(#"{"payment":null,"padding":"\#(String(repeating: "a", count: count))"}"#)
        let sandbox = SandboxPaymentProcessor(server.address, patience: .seconds(60))
        let intent = PaymentIntent(
            id: "intent-1", status: .unknown, created: Date(), amount: 1234, currency: "eur")
        guard count > 1 << 20 else {
            #expect(try await sandbox.retrieve(intent).status == .requiresPaymentMethod)
            return
        }
        await #expect(throws: PaymentProcessorError(.noAnswer)) { _ = try await sandbox.retrieve(intent) }
    }
}

/// Answers each request over HTTP with one body, until it is let go of.
private final class OneAnswer: Sendable {
    let address: URL
    private let descriptor: Int32

    struct Failure: Error { let code = errno }

    init(_ body: String) throws {
        let listening = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        guard withLocalAddress(0, { bind(listening, $0, $1) }) == 0, listen(listening, 8) == 0,
            let url = try URL(string: "http://127.0.0.1:\(localPort(of: listening))")
        else { throw Failure() }
        (descriptor, address) = (listening, url)
        let answer = Array(
            "HTTP/1.1 200 OK\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)".utf8)
        Thread.detachNewThread {
            while case let connection = accept(listening, nil, nil), connection >= 0 {
                var request = [UInt8](repeating: 0, count: 4096)
                _ = recv(connection, &request, request.count, 0)
                var sent = 0
                while sent < answer.count {
                    // Who has heard enough closes the connection.
                    let count = answer[sent...].withUnsafeBytes {
                        send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                    }
                    guard count > 0 else { break }
                    sent += count
                }
                close(connection)
            }
        }
    }

    deinit {
        shutdown(descriptor, Int32(SHUT_RDWR))
        close(descriptor)
    }
}
