import CardEncryption
import CardReaders
import EMVContactless
import Foundation
import Logging
import SmartCard
import Waiting
import WalletPasses

/// The terminal's reads of passes: a loop that carries out the steps of ``PassPart``.
extension PaymentTerminal {
    /// Reads the passes of a phone, and has it pay in the same ISO-DEP session where the request goes on to that.
    func read(
        _ passes: RequestedPasses, _ transaction: Transaction?, _ request: ReadRequest, _ reader: AttachedReader,
        _ field: EventfulField
    ) async throws -> TapResult {
        var part = PassPart(passes.purpose, ownerTime: configuration.ownerTime)
        let start = Time.now
        var isHeld = false
        while true {
            guard let (card, reply) = try await presented(field, quietly: isHeld, passes, request, reader) else {
                continue
            }
            let step = part.next(reply.answer, at: Time.now - start)
            // The application learns of a phone again when its owner has opened it.
            if isHeld, step != .seePhone {
                isHeld = false
                try await field.tellCard()
            }
            switch step {
            case .finish: return TapResult(passes: reply.result)
            case .pay:
                return try await pay(
                    transaction, request, reader, PassedField(field, card, passesStand: reply.answer == .pass),
                    reply.result)
            case .seePhone:
                if !isHeld {
                    messages.send(UserInterfaceRequest(.seePhone, .readyToRead))
                    try await field.requestAgain()
                }
                isHeld = true
            case .anotherCard: try await field.waitForAnotherCard()
            case .again: break
            case .fail: throw PaymentCardReaderSession.ReadError.vasReadFail
            }
        }
    }

    /// The event of a card that could not be activated.
    private struct AbsentCard: CardChannel {
        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU { throw CardError(.cardAbsent) }
    }

    private struct Reply {
        let answer: PassPart.Answer
        /// The findings; nil if no merchant was asked for.
        var result: VASReadResult?
    }

    /// Waits for a card, and asks it for passes.
    ///
    /// - Returns: nil while there are several.
    private func presented(
        _ field: EventfulField, quietly: Bool, _ passes: RequestedPasses, _ request: ReadRequest,
        _ reader: AttachedReader
    ) async throws -> (card: any CardChannel, Reply)? {
        let card: any CardChannel
        switch quietly ? try await field.activateQuietly() : try await field.activate() {
        case .card(let found): card = found
        case .collision, .collisionOver: return nil
        case .communicationError: return (AbsentCard(), Reply(answer: .lost))
        }
        do {
            return (card, try await ask(reader.stack.over(card), passes, request))
        } catch let error as CardError {
            guard CommunicationError(error) != nil else { throw error }
            logger.notice("the phone left while its passes were read")
            return (card, Reply(answer: .lost))
        }
    }

    /// Asks the phone for the passes of the merchants.
    private func ask(_ card: any CardChannel, _ passes: RequestedPasses, _ request: ReadRequest) async throws -> Reply {
        var conversation = passes.conversation(passMemory)
        var step = conversation.next(nil)
        while case .send(let command) = step { step = conversation.next(try await card.transmit(command)) }
        guard case .finished(let findings) = step else { return Reply(answer: .malformed) }
        passMemory.keep(conversation, hasNew: findings.entries.contains { $0.contents != nil })
        for note in findings.notes { logger.warning("a pass is refused: \(note)") }
        var entries: [VASReadResult.ReadEntry] = []
        for entry in findings.entries {
            entries.append(
                VASReadResult.ReadEntry(
                    id: entry.id, customerVASData: try await data(entry, request), status: entry.status))
        }
        return Reply(
            answer: findings.answer,
            result: entries.isEmpty ? nil : VASReadResult(of: request.id.uuidString, entries))
    }

    /// Returns a pass for the application: in the clear if this machine has the merchant's key, otherwise sealed.
    private func data(_ entry: PassFindings.Entry, _ request: ReadRequest) async throws -> Data? {
        switch entry.contents {
        case .clear(let data): return data.withUnsafeBytes { Data($0) }
        case .cryptogram(let bytes):
            let sealed = try await sealed(
                ClearCardData(bytes), boundTo: request.id.uuidString, in: request.session,
                header: JWEHeader(
                    keyID: request.session.token.recipient?.keyID, type: "pass-data+jwe",
                    contentType: "application/vas-cryptogram",
                    fields: [
                        "sid": request.session.id, "rid": request.id.uuidString,
                        "mid": request.session.token.merchant, "pti": entry.id,
                    ]))
            return sealed.map { Data($0.description.utf8) }
        case nil: return nil
        }
    }

    // MARK: Payment

    /// Has a phone pay whose passes were read.
    ///
    /// - Parameter phone: the field with it.
    private func pay(
        _ transaction: Transaction?, _ request: ReadRequest, _ reader: AttachedReader, _ phone: PassedField,
        _ passes: VASReadResult?
    ) async throws -> TapResult {
        guard var transaction else { throw PaymentCardReaderSession.ReadError.readNotAllowed }
        var request = request
        if let pricing = request.pricing, case .transaction(let terms) = request.card {
            let amount: Decimal
            do { amount = try await pricing(phone.passesStand ? passes : nil) } catch { throw NoAmount(reason: error) }
            if amount == 0 { return TapResult(passes: passes) }
            // What the store admitted, and the application recorded, is not exceeded.
            guard amount <= terms.amount else { throw PaymentCardReaderSession.ReadError.invalidAmount }
            if amount != terms.amount {
                let discounted = CardRequest.transaction(terms.with(amount))
                (request.card, transaction) = (discounted, try nextTransaction(discounted))
            }
        }
        do {
            return TapResult(
                payment: try await pay(transaction, request, reader, phone, passesStand: phone.passesStand),
                passes: passes)
        } catch is PassedField.PhoneLeft {
            logger.notice("the phone left after its pass was read")
            return TapResult(passes: passes)
        }
    }
}

extension PaymentCardTransactionRequest {
    /// Returns the same request for another amount.
    func with(_ amount: Decimal) -> Self {
        var other = Self(amount: amount, currencyCode: currencyCode, for: type)
        other.preferredAIDList = preferredAIDList
        other.userInterfaceLanguage = userInterfaceLanguage
        other.useISOCurrencySymbol = useISOCurrencySymbol
        other.transactionDescription = transactionDescription
        return other
    }
}
