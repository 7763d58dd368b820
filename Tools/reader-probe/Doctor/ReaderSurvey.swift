import SmartCard
import SmartCardPCSC
import SmartCardPN532
import ToolSupport

extension Machine {
    /// How long anything that pcscd is asked may take.
    private static let limit = Duration.seconds(20)

    /// Asks each reader what it is, and a card, if one comes, for an answer.
    ///
    /// - Parameter patience: how long to wait for a card where none is.
    /// - Parameter list: what lists the readers.  Where it fails, that is the service's refusal.
    mutating func askReaders(
        patience: Duration, _ list: @escaping @Sendable () async throws -> [any CardReader]
    ) async {
        let found: [any CardReader]
        do {
            found = try await withTimeLimit(Self.limit) { try await list() }
        } catch {
            let error = error.asCardError
            if error.kind != .noReader { service.refusal = error }
            return
        }
        let start = ContinuousClock.now
        for reader in found {
            readers.append(await Self.look(at: reader))
        }
        // Whoever has to put a card on is given the time once, not for each reader.
        if !readers.contains(where: { $0.exchange != nil }), patience > .zero, !readers.isEmpty {
            Terminal.progress("Put a card on the reader… (Ctrl-C to go on without)")
            defer { Terminal.endProgress() }
            while ContinuousClock.now - start < patience, !readers.contains(where: { $0.exchange != nil }) {
                for index in found.indices {
                    guard let state = try? await found[index].currentState(), state.hasCard else { continue }
                    readers[index].state = state
                    readers[index].exchange = await Self.exchange(with: found[index], state)
                }
                try? await Task.sleep(for: .milliseconds(200))
            }
        }
    }

    private static func look(at reader: any CardReader) async -> Reader {
        var facts = Reader(name: reader.identity.name)
        do {
            facts.state = try await reader.currentState()
        } catch {
            facts.failure = error.asCardError
            return facts
        }
        if reader.identity.name.contains("ACR122") {
            do {
                let (answer, route) = try await withTimeLimit(limit) {
                    try await reader.transmitNamingRoute([0xFF, 0x00, 0x48, 0x00, 0x00])
                }
                facts.firmware = String(decoding: answer, as: UTF8.self)
                facts.route = route
                facts.operatingParameter = try? await withTimeLimit(limit) {
                    try await ACR122U(over: reader).operatingParameter()
                }
            } catch {
                facts.routeFailure = error.asCardError
            }
        }
        facts.exchange = await exchange(with: reader, facts.state)
        return facts
    }

    /// One command that changes nothing, with whatever answers it.
    private static func exchange(with reader: any CardReader, _ state: SlotState) async -> Exchange? {
        let technology: String
        let command: [UInt8]
        switch state {
        case .empty, .unknown: return nil
        case .muteCard: return .failed(CardError(.cardMute))
        case .card(let atr, _):
            technology = atr.technology
            // Every reader of contactless cards answers with the UID (PC/SC part 3, 3.2.2.1.3); a card with contacts
            // has something to say of its master file (ISO/IEC 7816-4, 11.2.2).
            command =
                atr.contactless != nil ? [0xFF, 0xCA, 0x00, 0x00, 0x00] : [0x00, 0xA4, 0x00, 0x00, 0x02, 0x3F, 0x00]
        }
        do {
            let response = try await withTimeLimit(limit) {
                let card = try await reader.connect()
                do {
                    let response = try await card.transmit(try CommandAPDU(command))
                    await card.disconnect(.leave)
                    return response
                } catch {
                    await card.disconnect(.leave)
                    throw error
                }
            }
            return .answered(command: command.hex, status: "\(response.status)", technology: technology)
        } catch {
            return .failed(error.asCardError)
        }
    }
}

extension CardReader {
    /// As ``transmitToReader(_:)``, with the way that the command went, for a person.
    func transmitNamingRoute(_ command: [UInt8]) async throws -> (answer: [UInt8], route: String) {
        guard let reader = self as? PCSCReader else {
            return (
                try await transmitToReader(command), identity.backend == .usb ? "CCID over USB" : "the built-in reader"
            )
        }
        let (answer, route) = try await reader.transmitToReaderWithRoute(command)
        return (answer, route.name)
    }
}

extension PCSCRoute {
    fileprivate var name: String {
        switch self {
        case .cardConnection: "the connection to the card"
        case .directConnection: "SCardTransmit on a direct connection"
        case .escape: "SCardControl, escape"
        }
    }
}

extension Error {
    fileprivate var asCardError: CardError { self as? CardError ?? CardError(.other, "\(self)", cause: self) }
}
