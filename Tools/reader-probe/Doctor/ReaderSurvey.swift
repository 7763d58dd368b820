import CardReaders
import SmartCard
import SmartCardPCSC
import Synchronization
import ToolReaders
import ToolSupport

extension MachineFacts {
    /// The time limit of each call to pcscd.
    private static let limit = Duration.seconds(20)

    /// Asks each reader for its facts, and a card, if there is one, for a response.
    ///
    /// - Parameter patience: the longest wait for a card.
    mutating func askReaders(of machine: Machine, patience: Duration) async {
        let listing = await machine.look()
        let found = listing.readers
        service.refusal = isWithoutService ? listing.failures[.usb] : listing.failures[.pcsc]
        let start = ContinuousClock.now
        for reader in found {
            readers.append(await Self.look(at: reader))
        }
        // A person who must present a card gets this time once, not for each reader.
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
        var facts = Reader(name: reader.identity.name, isOfService: reader.identity.backend == .pcsc)
        do {
            facts.state = try await reader.currentState()
            // pcscd powers a card once, when it comes.
            if facts.state == .muteCard, let reader = reader as? any MuteCardReader {
                await reader.powerMuteCard()
                facts.state = try await reader.currentState()
            }
        } catch {
            facts.failure = error.asCardError
            return facts
        }
        if let model = reader.model, model.functions[.firmware] != nil, [nil, .contactless].contains(reader.slot) {
            facts.model = model
            do {
                let told = try await withTimeLimit(limit) {
                    try await reader.withLink { try await ReaderItself(model, over: $0) }
                }
                (facts.firmware, facts.route, facts.polling) = (told.firmware, told.route, told.polling)
            } catch {
                facts.routeFailure = error.asCardError
            }
        }
        facts.exchange = await exchange(with: reader, facts.state)
        return facts
    }

    /// Sends one command without side effects to whatever answers.
    private static func exchange(with reader: any CardReader, _ state: SlotState) async -> Exchange? {
        let technology: String
        let command: [UInt8]
        switch state {
        case .empty, .unknown: return nil
        case .muteCard: return .failed(CardError(.cardMute))
        case .card(let atr, _):
            technology = atr.technology
            // Every contactless reader returns the UID (PC/SC part 3, 3.2.2.1.3); a contact card responds to the
            // selection of its master file (ISO/IEC 7816-4, 11.2.2).
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

/// The facts that a reader reports over one link.
struct ReaderItself {
    let firmware: String
    /// The route of the commands, for people.
    let route: String
    /// The search for cards; nil if the reader does not report it.
    let polling: ReaderCommands.Polling?

    init(_ model: Model, over link: any ReaderLink) async throws {
        let way = Way(link)
        let commands = ReaderCommands(of: model, over: way)
        do {
            firmware = try await commands.firmwareVersion()
        } catch let error as CardError where error.kind == .malformedAnswer {
            // A copy of a reader may return anything.
            guard let answer = way.last.withLock({ $0.answer }) else { throw error }
            firmware = String(decoding: answer, as: UTF8.self)
        }
        route = way.last.withLock { $0.route }?.name ?? "CCID over USB"
        polling = try? await commands.polling()
    }

    /// Records the route of commands.
    private final class Way: ReaderLink {
        let last = Mutex<(answer: [UInt8]?, route: PCSCRoute?)>((nil, nil))
        private let link: any ReaderLink
        private let ofService: PCSCReaderLink?

        init(_ link: any ReaderLink) {
            self.link = link
            ofService = ((link as? RestoringLink)?.base ?? link) as? PCSCReaderLink
        }

        func transmit(_ command: [UInt8]) async throws -> [UInt8] {
            guard let ofService else {
                let answer = try await link.transmit(command)
                last.withLock { $0 = (answer, nil) }
                return answer
            }
            let (answer, route) = try await ofService.transmitWithRoute(command)
            last.withLock { $0 = (answer, route) }
            return answer
        }

        func close() async {}
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
