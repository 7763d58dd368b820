import ArgumentParser
import CardEncryption
import FlyingFox
import FlyingSocks
import Foundation
import Glibc
import ToolSupport

@main
struct PSPSandbox: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "psp-sandbox",
        abstract: "A simulated payment service: issues reader tokens, opens card data, decides by amount.",
        discussion: """
            No money moves. Anyone can sign as this service: its key is published, and only terminals with the default \
            configuration trust it. Account numbers are always printed masked. Decisions are lost at exit without \
            --books; card data sealed for it can be opened afterwards only with a --card-data-key.

            REQUESTS
              GET  /keys           the keys that sign tokens: a JSON Web Key Set
              POST /reader-tokens  {"merchant": "…"} or {}
                                   {"token"}
              POST /payments       {"cardData", "amount": "12.34", "currency": "EUR",
                                   "receiptFacts"}
                                   {"id", "kind", "status", "responseCode", "message",
                                   "amount", "currency", "card", "idempotencyKey",
                                   "time", "receiptFacts"}
              POST /refunds        the same, for a card that was read for a refund
              GET  /decision       the decision under a key, also in a batch
                                   {"payment": …} or {"payment": null}
              POST /reversals      reverses the approval under a key; under an
                                   unknown key, no payment will be approved:
                                   {"amount", "currency"}, if given, then appear in
                                   its decision
              POST /batches        a StoreAndForwardBatch
                                   {"deletionToken", "payments"}
              POST /terminals      enrolls a reader: {"certificateRequest"}, or
                                   {"leafCertificate", "intermediateCertificate": […]}
                                   {"leafCertificate", "intermediateCertificate": […]}
              GET  /payments       all decisions so far
              POST /checkout-sessions
                                   {"amount", "currency", "country", "reference"}
                                   {"id", "amount", "currency", "country",
                                   "reference", "methods": [{"id", "kind", "networks",
                                   "surcharge", "networkSurcharges"}], "card":
                                   {"networks", "fields", "billingFields",
                                   "recipient": JWK}}
              GET  /checkout-sessions/ID
                                   the same
              POST /checkout-tokens
                                   {"session", "cardData"}
                                   {"session", "token", "network", "masked"}
              POST /checkout-payments
                                   {"session", "method", "token", "voucher",
                                   "network", "amount", "currency", "billing"}
                                   {"id", "session", "method", "kind", "status",
                                   "responseCode", "message", "amount", "currency",
                                   "masked", "network", "token", "challenge",
                                   "idempotencyKey", "time"}
              GET  /checkout-payments
                                   the payment under a key
                                   {"payment": …} or {"payment": null}
              GET  /checkout-payments/ID
                                   a payment
              GET  /challenges/ID  a page with two buttons
              POST /challenges/ID  {"outcome": "passed"} or {"outcome": "failed"}
                                   the payment
              POST /faults         a fault of the next calls:
                                   {"kind", "calls": 3, "status": 403}
              GET  /faults         {"fault": …, "delayed"}: the number of calls that
                                   wait to be performed late
              POST /delayed        performs those calls now
                                   {"performed"}: how many, once they are performed

            cardData is PaymentCardReadResult.paymentCardData, which must be a JWE: DUKPT envelopes are not opened here. \
            amount, currency and type must be those for which the card was read. receiptFacts are the kernel's data for a \
            receipt, BER-TLV in hexadecimal digits, and are returned unchanged. status is "approved" or "declined". Every \
            request about a payment requires the header Idempotency-Key: a known key gets its first answer again, and \
            nothing else happens. In a batch, each payment's id is its key. A refusal is {"error": {"code", "message"}} \
            with a status of 400 or above, and has no effect; with 409, an earlier call had one.

            FAULTS
              POST /faults replaces the previous fault; "calls": 0 ends it. kind is "refused": every request of the merchant \
            is refused, with that status or 403, and has no effect; "declined": payments are declined, regardless of their \
            amount; "late": answers are late; "delayed": the call is performed late, or when \
            POST /delayed asks for it, even if its caller has left; "lost": \
            the call is performed, and the connection is closed without an answer. The last four apply to payments, \
            refunds, batches, and the tokens, payments and challenges of checkouts only.

            BATCHES
              They require the header Reader-Identifier: the reader that the deletion token is for. The key of the leaf \
            certificate must sign each payment and the batch, and the intermediate certificate the leaf certificate. The \
            intermediate certificate is trusted as received if the reader is not enrolled; a real service would not allow \
            this, nor does this one with --enrolled-only. Payments that can never be decided are missing in the answer \
            and in the token: those sealed for another key, and those received before with another id.
              POST /terminals enrolls the reader in the header Reader-Identifier: until this service exits, the key of that \
            leaf certificate must sign its batches. The certificates are those of the terminal's batches, or this service \
            issues them, by a test authority whose key is published, for a PKCS #10 request in DER and Base64, such as \
            that of openssl req -new.
              The deletion token is a JSON web token with iss, aud (the Reader-Identifier), jti, bid (the batch's id), \
            cnt (its count), hash, iat, exp, and ids if only some may be deleted; it differs each time. The hash is \
            SHA-256, in Base64url, of the batch's canonical form: the lines "swift-contactless batch 1", id, count, and \
            for each payment its id, a space, and the SHA-256 in hexadecimal digits of the lines \
            "swift-contactless payment 1", id, paymentCardData, generalCardData and attachment, if there is one.

            CHECKOUTS
              A session is a sum that is paid once. Its methods and fields are those of --checkout-configuration, a JSON \
            file: {"methods": [{"id", "kind", "networks", "surcharge", "networkSurcharges"}], "card": {"networks", "fields", \
            "billingFields"}}; only id and kind of a method are required. Kinds are card, voucher, and tap, whose cards are \
            charged with POST /payments. Surcharges are amounts in the major unit; networkSurcharges, by network, replace \
            surcharge. Sessions and tokens are lost at exit, payments are not with --books.
              cardData is a JWE for the session's recipient. Its content is a JSON object of strings: number, cvv, \
            expiryMonth (two digits), expiryYear (four), and perhaps cardholderName. This service forgets all of it but the \
            masked number, the networks, and whether it is a published test number for 3-D Secure. A token is valid in its \
            session only.
              The amount of a payment is the session's with the surcharge of method and network; network is one of the \
            card's, the likeliest if there is none. billing, texts by field, is checked and forgotten. status is "authorized", "declined" or "pending": with a challenge, until \
            somebody posts its outcome; otherwise for the time of --late. While a payment is pending, or after one is \
            authorized, the session accepts no other. A voucher is 6 to 64 capital letters, digits and “-”, and is redeemed \
            once; codes that begin with UNKNOWN or EXPIRED are declined.

            AMOUNTS
              The last two digits of the amount in minor units determine the decision:
            \(AmountRule.help)

            EXIT STATUS
              0  done
              2  the command line or a file is invalid, or the port is in use

            EXAMPLES
              psp-sandbox
              curl -s -d '{}' http://127.0.0.1:8790/reader-tokens
            """,
        version: PackageVersion.current)

    @Option(help: "The port; 0 selects a free one.")
    var port: UInt16 = 8790

    @Option(
        help: """
            The address to listen on. Any address but 127.0.0.1 gives others access: anyone can request tokens, and a \
            client that never ends its request is not disconnected.
            """)
    var address = "127.0.0.1"

    @Option(help: .init("The merchant for tokens, if a request names none.", valueName: "name"))
    var merchant = "sandbox-merchant"

    @Option(help: .init("The lifetime of tokens.", valueName: "seconds"))
    var tokenLifetime: Double = 48 * 3600

    @Option(help: .init("The delay of late answers.", valueName: "seconds"))
    var late: Double = 30

    @Option(
        help: .init(
            "The file with the key that opens card data, created if missing. By default, each start makes a new key.",
            valueName: "file"))
    var cardDataKey: String?

    @Option(
        help: .init(
            "The file to which every decision is written before it is answered, and from which it is read at start; created if missing. "
                + "Without it, decisions are lost at exit.", valueName: "file"))
    var books: String?

    @Option(
        help: .init(
            "The JSON file with the methods and card fields of checkouts. By default, there are all methods.",
            valueName: "file"))
    var checkoutConfiguration: String?

    @Flag(help: "Accept batches from enrolled readers only.")
    var enrolledOnly = false

    @Flag(help: "Print the address and nothing else.")
    var quiet = false

    @Flag(help: "Exit at the end of standard input, for programs that start this one.")
    var endWithInput = false

    static func main() async {
        do {
            try await parse().run()
        } catch {
            Glibc.exit(Terminal.report(error, of: self))
        }
    }

    func validate() throws {
        guard tokenLifetime >= 1, tokenLifetime <= 1e9 else { throw ValidationError("--token-lifetime: 1 and more.") }
        guard (0...86_400).contains(late) else { throw ValidationError("--late: 0 to 86400.") }
    }

    func run() async throws {
        signal(SIGPIPE, SIG_IGN)
        // Books that may not grow are an answer, not an end.
        signal(SIGXFSZ, SIG_IGN)
        let keys = try await SandboxKeys(
            cardDataKey: try await usable(
                key, or: "Give --card-data-key a new file, or one that only this user can read and write."))
        let checkout = try await usable(
            { try checkoutConfiguration.map(CheckoutConfiguration.init(file:)) ?? .standard },
            or: "See CHECKOUTS in psp-sandbox --help.")
        let sandbox = try await usable(
            {
                let sandbox = Sandbox(
                    keys: keys, books: try Books(books), needsEnrollment: enrolledOnly, checkout: checkout)
                try await sandbox.settleAll()
                return sandbox
            }, or: "Give --books a file that this user may write, in a folder that exists.")
        let routes = Routes(
            sandbox: sandbox, keys: keys, merchant: merchant, tokenLifetime: tokenLifetime,
            lateness: .seconds(late), log: { [quiet] line in if !quiet { Self.print(line) } })
        let socketAddress: sockaddr_in
        do {
            socketAddress = try .inet(ip4: address, port: port)
        } catch {
            throw ValidationError("--address: \(address) is no IPv4 address.")
        }
        // Longer than the latest answer.
        let server = HTTPServer(
            address: socketAddress, timeout: late + 60, logger: .disabled, handler: routes)
        let running = Task { try await server.run() }
        do {
            try await server.waitUntilListening()
        } catch {
            running.cancel()
            throw ToolError.usage(
                "\(address):\(port) cannot be listened on", "Is it in use? Take another one with --port.")
        }
        if case .ip4(let ip, let port) = await server.listeningAddress {
            Self.print("psp-sandbox listens on http://\(ip):\(port)")
        }
        if endWithInput { Self.endWithInput() }
        try await running.value
    }

    /// Returns what a file is for, or throws the failure with a remedy.
    private func usable<Content>(_ content: () async throws -> Content, or remedy: String) async throws -> Content {
        do {
            return try await content()
        } catch {
            throw ToolError.usage("\(error)", remedy)
        }
    }

    private func key() throws -> JWEPrivateKey {
        guard let path = cardDataKey else { return try JWEPrivateKey(generating: .ecdhES, keyID: UUID().uuidString) }
        let file = KeyFile(path)
        if FileManager.default.fileExists(atPath: path) { return try JWEPrivateKey(file) }
        let key = try JWEPrivateKey(generating: .ecdhES, keyID: UUID().uuidString)
        try key.save(to: file)
        return key
    }

    private static func endWithInput() {
        Thread.detachNewThread {
            while FileHandle.standardInput.availableData.count > 0 {}
            Glibc.exit(0)
        }
    }

    /// Prints text from clients without control characters, which could steer the terminal.
    private static func print(_ line: String) {
        let text = String(
            String.UnicodeScalarView(
                line.unicodeScalars.map { $0.properties.generalCategory == .control ? "\u{FFFD}" : $0 }))
        try? FileHandle.standardOutput.write(contentsOf: Data((text + "\n").utf8))
    }
}
