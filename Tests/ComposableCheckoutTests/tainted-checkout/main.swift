import CardEncryption
import ComposableCheckout
import Foundation
import Glibc
import Logging

// Takes a card that is typed on a form, as a kiosk does, tells every state, and stays: CheckoutTaintTests look for the card in
// this process's memory.  Arguments: submit, cancel or idle; digits to be found.  Standard input has the number, the security
// code and the one-time code, each on a line.
LoggingSystem.bootstrap { label in
    var handler = StreamLogHandler.standardError(label: label)
    handler.logLevel = .trace
    return handler
}

/// A payment service that approves everything.
struct Service: ConfigurationRepository, PaymentMethodRepository, TokenizationRepository, PaymentRepository {
    let configuration: CheckoutConfiguration
    func configuration() async throws(CheckoutError) -> CheckoutConfiguration { configuration }
    func paymentMethods() async throws(CheckoutError) -> [PaymentMethod] { configuration.methods }
    func tokenize(_ card: SealedCardData, idempotencyKey: String) async throws(CheckoutError) -> PaymentToken {
        print("sealed: \(card)")
        return PaymentToken(id: "tok_1", network: nil, masked: "")
    }
    func pay(_ request: PaymentRequest, idempotencyKey: String) async throws(CheckoutError) -> PaymentResult {
        print("request: \(request)")
        return PaymentResult(
            paymentID: "pay_1", status: .success, amount: request.amount, currency: request.currency, method: .card)
    }
    func result(for idempotencyKey: String) async throws(CheckoutError) -> PaymentResult? { nil }
    func completeChallenge(of paymentID: String) async throws(CheckoutError) -> PaymentResult {
        throw .refused(code: "not_found", message: paymentID)
    }
}

// So that looking for digits is known to find them: packed, in memory that is not wiped.
let digits = CommandLine.arguments[2].utf8.map { $0 - UInt8(ascii: "0") }
let control = UnsafeMutableRawBufferPointer.allocate(byteCount: digits.count / 2, alignment: 1)
for index in control.indices { control[index] = digits[2 * index] << 4 | digits[2 * index + 1] }

let key = try JWEPrivateKey(generating: .ecdhES, keyID: "cards-1")
let service = Service(
    configuration: CheckoutConfiguration(
        session: "cs_1", amount: 10, currency: "EUR", methods: [PaymentMethod(id: "card", kind: .card)],
        card: CardConfiguration(fields: [.cardNumber, .expiryDate, .cvv, .otpCode], recipient: key.publicJWK)))
let root = CompositionRoot(
    configurations: service, methods: service, tokens: service, payments: service, permitsCardEntry: true)
let checkout = try await root.checkout()
await checkout.start()
for await state in checkout.paymentMethodSelection.state() where state != .loading { break }
await checkout.paymentMethodSelection.onPaymentMethodSelected(service.configuration.methods[0])
guard let form = await checkout.getPaymentMethodScope(CardFormScope.self) else { exit(1) }

/// Types a line of standard input, key by key, as a page sends it.
func type(_ field: ComposableInputElementType) async {
    var typed = ""
    typed.reserveCapacity(40)
    var character: UInt8 = 0
    while read(0, &character, 1) == 1, character != UInt8(ascii: "\n") {
        typed.unicodeScalars.append(Unicode.Scalar(character))
        await form.update(field, typed)
        tell()
    }
    await form.leave(field)
    tell()
}

func tell() {
    guard let state = form.currentState, let json = try? JSONEncoder().encode(state) else { return }
    print("state: \(String(decoding: json, as: UTF8.self))")
    print("state: \(state)")
}

await type(.cardNumber)
await type(.cvv)
await type(.otpCode)
await form.updateExpiryDate("12/39")
tell()
switch CommandLine.arguments[1] {
case "submit": print("result: \(try await form.submit()?.status.rawValue ?? "nothing")")
case "cancel": await form.cancel()
default: await checkout.idle()
}
tell()
print("done")
fflush(nil)
try await Task.sleep(for: .seconds(600))
