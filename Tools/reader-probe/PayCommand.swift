import ArgumentParser
import CardReaders
import EMVContactless
import Foundation
import Logging
import SmartCard
import ToolReaders
import ToolSupport
import WalletPasses

struct PayCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "pay", abstract: "Performs a contactless transaction, as a test bench would.",
        discussion: """
            Runs Entry Point and the kernel that the card requests, and prints the outcome with all its parameters, the \
            data record and the kernel's verification results. No issuer is contacted and no money moves: an online request is \
            the end, unless --online-response contains the issuer's answer.

            With --pass-config the passes of a phone are read first, in the same tap. Where no payment follows, as the phone is \
            locked or has left, the passes alone are shown.

            The exit status is 0 for every outcome, including a decline and “try another interface”; 7 if a phone stayed locked.

            reader-probe pay --virtual --amount 12.34 --currency EUR
            """)

    @OptionGroup var payment: PaymentOptions

    @Option(
        help: .init(
            "The issuer's answer to an online request: BER-TLV of 8A, 91, 71 and 72. Default: none.",
            valueName: "hex|file"))
    var onlineResponse: String?

    @Flag(
        help: """
            Find cards with the PN532 of an ACR122U, which detects more than one. Other programs do not see \
            cards on the reader meanwhile.
            """)
    var detectCollisions = false

    @Option(
        help: .init(
            """
            Read the passes of these merchants first, in the same tap: the merchants and their keys, in JSON; see \
            reader-probe(1), WALLET PASSES.
            """, valueName: "file"))
    var passConfig: String?

    @OptionGroup var readerOptions: ReaderOptions
    @OptionGroup var output: OutputOptions

    /// The passes are the whole result.
    private struct NoPayment: Error {
        let passes: Report.Passes
        /// True if the phone left; false if its holder did not unlock it.
        let phoneLeft: Bool
    }

    func run() async throws {
        let transaction = try payment.transaction()
        let tap = try passConfig.map {
            try PassTap($0, mode: .passAndPayment, patience: readerOptions.patience)
        }
        let terminal = ContactlessTerminal(try payment.entryPoint())
        let issuer = try issuerResponse()
        var messages: [UserInterfaceRequest] = []
        let logger = readerOptions.logger
        if let refused = terminal.refusal(of: transaction, show: { messages.append($0) }) {
            return try show(refused, transaction, on: nil, messages, issuer)
        }
        terminal.rehearse()
        func pay(_ reader: any CardReader, _ field: any ContactlessField) async throws -> ContactlessTerminal.Report {
            let stack = Stack(.ofEMVContactless, for: reader, logger: logger)
            defer { Terminal.endProgress() }
            return try await terminal.perform(
                transaction, in: field, layers: { stack.over($0) }, authorize: { _ in issuer }
            ) { request in
                messages.append(request)
                Terminal.progress(request.text)
                logger?.trace("message: \(request.text), \(request.status)")
            }
        }
        guard let tap else {
            let reader = try await readerOptions.waitForCard(on: try await readerOptions.readers())
            let result = try await using(reader) { try await pay(reader, $0) }
            return try show(result, transaction, on: reader.identity, messages, issuer)
        }
        do {
            let (result, passes, identity) = try await readerOptions.withPhoneField(
                for: .passAndPayment, needsChip: detectCollisions
            ) { reader, field in
                let stack = Stack(.ofEMVContactless, for: reader, logger: logger)
                let asked = try await tap.read(in: field) { stack.over($0) }
                let passes = Report.Passes(asked.outcome, reader: reader.identity, isRevealed: output.reveal)
                guard asked.outcome.mayPayNow else { throw NoPayment(passes: passes, phoneLeft: false) }
                do {
                    let hasPass = asked.outcome.entries.contains { $0.pass != nil }
                    let phone = PassedField(field, asked.card, passesStand: hasPass)
                    return (try await pay(reader, phone), passes, reader.identity)
                } catch is PassedField.PhoneLeft {
                    throw NoPayment(passes: passes, phoneLeft: true)
                }
            }
            try show(result, transaction, on: identity, messages, issuer, passes)
        } catch let end as NoPayment {
            if output.json { try Report.print(end.passes) } else { Terminal.print(PassText(end.passes).text) }
            guard end.phoneLeft else { throw ExitCode(7) }
            throw ToolError(
                status: 5, summary: "the phone left after its passes were read, and has not paid",
                hint: "Hold the phone on the reader until it shows that it is done.")
        }
    }

    /// Lends the field of the reader to `body`.
    private func using<Result: Sendable>(
        _ reader: any CardReader, _ body: (any ContactlessField) async throws -> Result
    ) async throws -> Result {
        guard !detectCollisions else {
            return try await reader.withChipField(patience: readerOptions.patience, body)
        }
        let field = CardReaderField(reader, patience: readerOptions.patience)
        do {
            let result = try await body(field)
            await field.release(.leave)
            return result
        } catch {
            await field.release(.leave)
            throw error
        }
    }

    /// - Parameter reader: nil if no reader was required.
    private func show(
        _ result: ContactlessTerminal.Report, _ transaction: Transaction, on reader: ReaderIdentity?,
        _ messages: [UserInterfaceRequest], _ issuer: OnlineResponse?, _ passes: Report.Passes? = nil
    ) throws {
        let report = Report.Payment(
            reader: reader, transaction: transaction, messages: messages, result: result, answer: issuer,
            passes: passes, reveal: output.reveal)
        let redactor = output.reveal ? Redactor() : Redactor(hiding: result)
        if output.json {
            try Report.print(report, redactor: redactor)
        } else {
            Terminal.print(redactor.redacted(PaymentText(report).text))
        }
    }

    // MARK: Arguments

    private func issuerResponse() throws -> OnlineResponse? {
        guard let onlineResponse else { return nil }
        // Text that is not hexadecimal names a file that contains it.
        func bytes(_ text: String) -> [UInt8]? { try? [UInt8](hex: text.filter { !$0.isWhitespace }) }
        let isFile = FileManager.default.fileExists(atPath: onlineResponse)
        guard isFile || bytes(onlineResponse) != nil else {
            throw ToolError.usage(
                "--online-response: “\(onlineResponse)” is neither hexadecimal nor a file",
                "For example: --online-response 8A023030")
        }
        let answer =
            try bytes(onlineResponse)
            ?? bytes(String(decoding: PaymentOptions.contents(of: onlineResponse), as: UTF8.self))
        guard let bytes = answer, let objects = try? TLVList(bytes),
            !objects.isEmpty,
            objects.allSatisfy({ [0x8A, 0x91, 0x71, 0x72].contains($0.tag) })
        else {
            throw ToolError.usage(
                "--online-response is not BER-TLV of 8A, 91, 71 and 72",
                "An approval with issuer authentication data: --online-response 8A0230309108AABBCCDD11223344")
        }
        return OnlineResponse(
            authorizationResponseCode: objects[0x8A].map { Array($0.value) },
            issuerAuthenticationData: objects[0x91].map { Array($0.value) },
            scripts: objects.filter { [0x71, 0x72].contains($0.tag) }.map { Array($0.encoded) })
    }
}

extension UserInterfaceRequest {
    /// The message and the reader's state, for people.
    var text: String {
        let amount = value.map { value in
            switch value {
            case .amount(let units, let currency): currency.format("\(units)")
            case .balance(let units, let currency): "balance \(currency.format("\(units)"))"
            }
        }
        return [message.map { "\($0)" } ?? "", amount ?? ""].filter { !$0.isEmpty }.joined(separator: "  ")
    }
}
