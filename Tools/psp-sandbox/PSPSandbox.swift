import ArgumentParser
import CardEncryption
import FlyingFox
import FlyingSocks
import Foundation
import Glibc

@main
struct PSPSandbox: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "psp-sandbox",
        abstract: "A payment service for development: issues reader tokens, opens card data, decides by amount.",
        discussion: """
            No money moves. Everybody can sign as this service: its key is published, and trusted only by terminals \
            without a configuration of their own. Account numbers are never printed but masked. What was decided it \
            forgets when it ends, unless there are --books; card data that were sealed for it can be opened after that \
            if there is a --card-data-key.

            REQUESTS
              GET  /keys           what tokens are signed with: a JSON Web Key Set
              POST /reader-tokens  {"merchant": "…"} or {}
                                   {"token"}
              POST /payments       {"cardData", "amount": "12.34", "currency": "EUR",
                                   "receiptFacts"}
                                   {"id", "kind", "status", "responseCode", "message",
                                   "amount", "currency", "card", "idempotencyKey",
                                   "time", "receiptFacts"}
              POST /refunds        likewise, for a card that was read for a refund
              GET  /decision       what was decided under a key, of a batch as well
                                   {"payment": …} or {"payment": null}
              POST /reversals      takes back what was approved under a key; where
                                   nothing was, nothing will be: {"amount",
                                   "currency"}, if they are known, are what is said
                                   of that
              POST /batches        a StoreAndForwardBatch
                                   {"deletionToken", "payments"}
              POST /terminals      enrols a reader: {"certificateRequest"}, or
                                   {"leafCertificate", "intermediateCertificate": […]}
                                   {"leafCertificate", "intermediateCertificate": […]}
              GET  /payments       everything that was decided so far
              POST /faults         what goes wrong with the next calls:
                                   {"kind", "calls": 3, "status": 403}
              GET  /faults         {"fault": …, "delayed"}: how many calls wait to be
                                   carried out late

            cardData is PaymentCardReadResult.paymentCardData, which must be a JWE: envelopes of DUKPT are not opened here. \
            amount, currency and type must be what the card was read for. receiptFacts are what the kernel tells for a \
            receipt, BER-TLV in hexadecimal digits; they come back as they came. status is "approved" or "declined". All that concerns a payment needs the header Idempotency-Key: a \
            key that is known gets the answer of the first time, and nothing else is done. In a batch each payment's id \
            is its key. What is refused is answered {"error": {"code", "message"}} with a status of 400 and above, and \
            has done nothing; with 409 something was done before.

            FAULTS
              POST /faults replaces the fault before it; "calls": 0 ends it. kind is "refused": the merchant is, whatever it \
            asks for, with that status, 403 if none is given, and nothing is done; "declined": payments are, whatever their \
            amount; "late": answers come late; "delayed": the call is carried out late, also where its caller has left; \
            "lost": the call is carried out, and the connection closed without an answer. The last four concern payments, refunds and batches alone.

            BATCHES
              They need the header Reader-Identifier: which reader the deletion token is for. Each payment must be \
            signed by the key of the leaf certificate, so must the batch, and the leaf certificate by the intermediate \
            one. That is trusted as it comes where the reader is not enrolled, which a real service would not allow, nor does \
            this one with --enrolled-only. Payments that can never be decided \
            are missing in the answer and in the token: those that are sealed for another key, and those that came \
            before with another id.
              POST /terminals enrols the reader of the header Reader-Identifier: from then on its batches must be signed by the \
            key of that leaf certificate, until this service ends. The certificates are those of the terminal's batches; or \
            they are issued here, by a test authority whose key is published, for a PKCS #10 request in DER and Base64 such as \
            openssl req -new makes.
              The deletion token is a JSON web token with iss, aud (the Reader-Identifier), jti, bid (the batch's id), \
            cnt (its count), hash, iat, exp, and ids if not all may be deleted; another one each time. The hash is \
            SHA-256, in Base64url, of the batch's canonical form: the lines "swift-contactless batch 1", id, count, and \
            for each payment its id, a space, and the SHA-256 in hexadecimal digits of the lines \
            "swift-contactless payment 1", id, paymentCardData, generalCardData and attachment, if there is one.

            AMOUNTS
              The last two digits of the amount in minor units decide:
            \(AmountRule.help)

            EXAMPLES
              psp-sandbox
              curl -s -d '{}' http://127.0.0.1:8790/reader-tokens
            """)

    @Option(help: "The port; 0 for any that is free.")
    var port: UInt16 = 8790

    @Option(
        help: """
            The address to listen on. Another one than 127.0.0.1 lets others in: everybody can ask for tokens, and a \
            client that never ends its request is not cut off.
            """)
    var address = "127.0.0.1"

    @Option(help: .init("The merchant that tokens are for, where none is asked for.", valueName: "name"))
    var merchant = "sandbox-merchant"

    @Option(help: .init("How long tokens are good.", valueName: "seconds"))
    var tokenLifetime: Double = 48 * 3600

    @Option(help: .init("How late answers are that come late.", valueName: "seconds"))
    var late: Double = 30

    @Option(
        help: .init(
            "Where the key that opens card data is kept, made if it is not there. Without it, a new one each time.",
            valueName: "file"))
    var cardDataKey: String?

    @Option(
        help: .init(
            "Where every decision is written before it is answered, and read when this starts; made if it is not there. "
                + "Without it, all is forgotten at the end.", valueName: "file"))
    var books: String?

    @Flag(help: "Take batches only of readers that are enrolled.")
    var enrolledOnly = false

    @Flag(help: "Print the address and nothing else.")
    var quiet = false

    @Flag(help: "End when standard input does: for programs that start this one.")
    var endWithInput = false

    func validate() throws {
        guard tokenLifetime >= 1, tokenLifetime <= 1e9 else { throw ValidationError("--token-lifetime: 1 and more.") }
        guard (0...86_400).contains(late) else { throw ValidationError("--late: 0 to 86400.") }
    }

    func run() async throws {
        signal(SIGPIPE, SIG_IGN)
        // Books that may not grow are an answer, not an end.
        signal(SIGXFSZ, SIG_IGN)
        let keys = try await SandboxKeys(cardDataKey: try key())
        let sandbox: Sandbox
        do {
            sandbox = Sandbox(keys: keys, books: try Books(books), needsEnrollment: enrolledOnly)
        } catch {
            Self.complain("\(error)")
            throw ExitCode(1)
        }
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
            Self.complain("\(address):\(port) cannot be listened on. Is it in use? Take another one with --port.")
            throw ExitCode(1)
        }
        if case .ip4(let ip, let port) = await server.listeningAddress {
            Self.print("psp-sandbox listens on http://\(ip):\(port)")
        }
        if endWithInput { Self.endWithInput() }
        try await running.value
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

    private static func complain(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data("psp-sandbox: \(text)\n".utf8))
    }
}
