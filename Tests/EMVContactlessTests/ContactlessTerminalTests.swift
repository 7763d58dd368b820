import EMVContactless
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing
import Waiting

/// The driver over a field that is a script.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct ContactlessTerminalTests {
    private static let selectPPSE = "00A404000E325041592E5359532E444446303100"

    private func terminal() throws -> ContactlessTerminal {
        ContactlessTerminal(
            EntryPoint(configuration: try ReaderConfiguration.test.validated(for: [3: Confirming.self])))
    }

    /// A card whose only application is Visa's, by its whole name.
    private static let directory = Answer.response(
        "6F 20 84 0E 32 50 41 59 2E 53 59 53 2E 44 44 46 30 31 A5 0E BF 0C 0B 61 09 4F 07 A0 00 00 00 03 10 10 90 00")
    private static let fci = Answer.response("6F 11 84 07 A0 00 00 00 03 10 10 A5 06 9F 38 03 9F 66 04 90 00")

    @Test func aTransactionAndItsTimes() async throws {
        let field = ScriptedField([.card([Self.directory, Self.fci, .response("01 90 00")])])
        let shown = Mutex<[UserInterfaceRequest]>([])
        let report = try await terminal().perform(purchase(1234), in: field) { request in
            shown.withLock { $0.append(request) }
        }
        expectEqual(report.outcome.kind, .approved)
        expectEqual(shown.withLock { $0 }, [.init(.presentCard, .readyToRead)])
        expectEqual(
            field.commands, [Self.selectPPSE, "00A4040007A000000003101000", Confirming.command])
        expectEqual(report.exchanges.map(\.header.hex), ["00A40400", "00A40400", "80CA9F36"])
        expectEqual(report.exchanges.map(\.status), [0x9000, 0x9000, 0x9000])
        expectEqual(report.exchanges.map(\.duration), [.milliseconds(5), .milliseconds(5), .milliseconds(5)])
        expectEqual(report.cardTime, .milliseconds(15))
    }

    /// Book B, 3.1.1.13: a transaction that pre-processing refuses asks for no card.
    @Test func aRefusalComesBeforeTheCard() async throws {
        let shown = Mutex<[UserInterfaceRequest]>([])
        let report = try #require(
            try terminal().refusal(of: purchase(10_000_00)) { request in
                shown.withLock { $0.append(request) }
            })
        #expect(report.outcome.kind == .tryAnotherInterface && report.exchanges.isEmpty)
        expectEqual(shown.withLock { $0 }, [.init(.insertOrSwipeCard, .processingError)])
        let field = ScriptedField([])
        let performed = try await terminal().perform(purchase(10_000_00), in: field) { _ in }
        #expect(performed.final == report.final && field.activations == 0)
        #expect(try terminal().refusal(of: purchase(1234)) == nil)
    }

    /// "Try another interface" is itself, and says what to do: 1D, where the card wants its contacts.
    @Test(arguments: [
        ("mastercard-decline", "1D"), ("visa-oda-fails-switch", "1D"),
    ])
    func anotherInterface(_ card: String, _ message: String) async throws {
        var configuration = ReaderConfiguration.test
        for index in configuration.combinations.indices { configuration.combinations[index].floorLimit = nil }
        let terminal = ContactlessTerminal(
            EntryPoint(configuration: try configuration.validated(), keys: FuzzTargets.keys))
        let field = LosingKernel2Field(try #require(VirtualCards.named(card)), lost: -1, hasRecovery: false)
        let shown = Mutex<[UserInterfaceRequest]>([])
        let report = try await terminal.perform(purchase(12_34), in: field) { request in
            shown.withLock { $0.append(request) }
        }
        #expect(report.outcome.kind == .tryAnotherInterface && report.receiptFacts == nil, "\(report.outcome.reason)")
        #expect(shown.withLock { $0.last?.message.map { [$0.rawValue].hex } } == message)
    }

    /// What the reader reports of a card that goes, and what the kernel is told.
    @Test(arguments: [
        (CardError.Kind.cardRemoved, CommunicationError.timeout), (.noAnswer, .timeout), (.readerTimeout, .timeout),
        (.cardAbsent, .timeout), (.notTransacted, .transmission), (.cardReset, .transmission),
        (.malformedAnswer, .protocol), (.protocolMismatch, .protocol), (.unsupported, .protocol), (.tooLong, .protocol),
    ])
    func aCardThatGoes(_ kind: CardError.Kind, _ expected: CommunicationError) async throws {
        let field = ScriptedField([.card([Self.directory, Self.fci, .failure(kind)])])
        let report = try await terminal().perform(purchase(1), in: field) { _ in }
        expectEqual(report.outcome.kind, .endApplication)
        expectEqual(report.outcome.reason, "\(expected)")
        expectEqual(report.exchanges.last?.status, nil)
    }

    /// In the selection the card is asked for again (Book B, 3.3.3.7).
    @Test func aCardThatGoesTooEarlyIsAskedForAgain() async throws {
        let field = ScriptedField([
            .communicationError(.timeout), .card([.failure(.cardRemoved)]),
            .card([Self.directory, .failure(.notTransacted)]),
            .card([Self.directory, Self.fci, .response("01 90 00")]),
        ])
        let report = try await terminal().perform(purchase(1), in: field) { _ in }
        expectEqual(report.outcome.kind, .approved)
        expectEqual(field.activations, 4)
    }

    @Test func collisionsAndSeePhone() async throws {
        let field = ScriptedField([
            .collision, .collisionOver, .card([Self.directory, Self.fci, .response("02 90 00")]),
            .card([Self.directory, Self.fci, .response("01 90 00")]),
        ])
        let shown = Mutex<[UserInterfaceRequest.Message?]>([])
        let report = try await terminal().perform(purchase(1), in: field) { request in
            shown.withLock { $0.append(request.message) }
        }
        expectEqual(report.outcome.kind, .approved)
        expectEqual(
            shown.withLock { $0 },
            [
                .presentCard, .presentOneCardOnly, .presentOneCardOnly, .seePhone, .presentCardAgain,
            ])
        expectEqual(field.pauses, [.milliseconds(1300)])
    }

    /// Reader and program have failed, not the card.
    @Test(arguments: [CardError.Kind.readerGone, .readerBusy, .noService, .permissionDenied, .disconnected])
    func whatIsAnError(_ kind: CardError.Kind) async throws {
        let field = ScriptedField([.card([Self.directory, .failure(kind)])])
        let error = await #expect(throws: CardError.self) {
            try await terminal().perform(purchase(1), in: field) { _ in }
        }
        expectEqual(error?.kind, kind)
    }

    @Test func theIssuerIsAskedAndTheCardToldWhatItSaid() async throws {
        let issuer = OnlineResponse(
            authorizationResponseCode: Array("00".utf8), issuerAuthenticationData: [0xAA, 0xBB, 0xCC, 0xDD])
        let field = ScriptedField([
            .card([Self.directory, Self.fci, .response("03 90 00")]), .card([Self.fci, .response("01 90 00")]),
        ])
        let asked = Mutex<[FinalOutcome]>([])
        let report = try await terminal().perform(
            purchase(1), in: field,
            authorize: { outcome in
                asked.withLock { $0.append(outcome) }
                return issuer
            }, show: { _ in })
        expectEqual(asked.withLock { $0.map(\.outcome.kind) }, [.onlineRequest])
        #expect(report.outcome.kind == .approved && report.outcome.reason == "AABBCCDD")
        expectEqual(report.onlineRequest, asked.withLock(\.first))
    }

    /// The card may stay for 20 ms, and the issuer takes longer: it has to be removed, and the answer still counts.
    @Test func theCardIsLetGoWhenTheIssuerTakesLong() async throws {
        let field = ScriptedField([
            .card([Self.directory, Self.fci, .response("04 90 00")]), .card([Self.fci, .response("01 90 00")]),
        ])
        let shown = Mutex<[UserInterfaceRequest.Message?]>([])
        let report = try await terminal().perform(
            purchase(1), in: field,
            authorize: { _ in
                try await wait(for: "the pause") { !field.pauses.isEmpty }
                return OnlineResponse(issuerAuthenticationData: [0xAA])
            },
            show: { request in shown.withLock { $0.append(request.message) } })
        #expect(report.outcome.kind == .approved && report.outcome.reason == "AA")
        expectEqual(field.pauses, [.zero])
        expectEqual(shown.withLock { $0 }, [.presentCard, .removeCard, .presentCard])
    }

    /// Without a removal timeout nobody asks for the card's removal, however long the issuer takes.
    @Test func theCardNeedNotBeLetGo() async throws {
        let field = ScriptedField([
            .card([Self.directory, Self.fci, .response("03 90 00")]), .card([Self.fci, .response("01 90 00")]),
        ])
        let shown = Mutex<[UserInterfaceRequest.Message?]>([])
        let report = try await terminal().perform(
            purchase(1), in: field,
            authorize: { _ in
                // A removal would come.
                try await Time.sleep(for: .seconds(60))
                return OnlineResponse(issuerAuthenticationData: [0xAA])
            },
            show: { request in shown.withLock { $0.append(request.message) } })
        #expect(report.outcome.kind == .approved && field.pauses.isEmpty)
        expectEqual(shown.withLock { $0 }, [.presentCard, .presentCard])
    }

    /// What the issuer has decided is not lost with the card.
    @Test func theCardDoesNotComeBackForTheIssuersMessage() async throws {
        let field = ScriptedField([.card([Self.directory, Self.fci, .response("03 90 00")])])
        let report = try await terminal().perform(
            purchase(1), in: field,
            authorize: { _ in OnlineResponse(issuerAuthenticationData: [0xAA, 0xBB, 0xCC, 0xDD]) }, show: { _ in })
        expectEqual(field.activations, 2)
        #expect(report.outcome.kind == .onlineRequest && report.exchanges.count == 3)
        expectEqual(report.notes, ["the card was not presented again for the issuer's message"])
    }

    /// Nor with the reader, whether it fails when it is to find the card again or in an exchange.
    @Test(
        arguments: [
            [.failure(.readerGone)], [.failure(.other)], [.card([.failure(.readerGone)])],
            [.card([fci, .failure(.readerBusy)])],
        ] as [[ScriptedField.Event]])
    private func theReaderFailsAfterTheIssuersAnswer(_ events: [ScriptedField.Event]) async throws {
        let field = ScriptedField([.card([Self.directory, Self.fci, .response("03 90 00")])] + events)
        let report = try await terminal().perform(
            purchase(1), in: field, authorize: { _ in OnlineResponse(issuerAuthenticationData: [0xAA]) },
            show: { _ in })
        #expect(report.outcome.kind == .onlineRequest && report.final == report.onlineRequest)
        expectEqual(report.exchanges.count, field.commands.count)
        #expect(report.notes.count == 1 && report.notes[0].hasPrefix("the card was not told"), "\(report.notes)")
    }

    /// The field cannot be switched off for the card to be removed, and the issuer is heard all the same.
    @Test func theReaderFailsWhileTheIssuerIsAsked() async throws {
        let field = ScriptedField(
            [.card([Self.directory, Self.fci, .response("04 90 00")]), .card([Self.fci, .response("01 90 00")])],
            pausing: .readerGone)
        let report = try await terminal().perform(
            purchase(1), in: field,
            authorize: { _ in
                try await wait(for: "the pause") { !field.pauses.isEmpty }
                // A cancellation would come.
                try await Time.sleep(for: .seconds(1))
                return OnlineResponse(issuerAuthenticationData: [0xAA])
            }, show: { _ in })
        #expect(report.outcome.kind == .approved && report.outcome.reason == "AA")
        #expect(report.notes.contains { $0.hasPrefix("the field was not switched off") }, "\(report.notes)")
    }

    @Test func theIssuerCannotBeAsked() async throws {
        struct Unreachable: Error {}
        let field = ScriptedField([.card([Self.directory, Self.fci, .response("03 90 00")])])
        await #expect(throws: Unreachable.self) {
            try await terminal().perform(
                purchase(1), in: field, authorize: { _ in throw Unreachable() }, show: { _ in })
        }
    }

    @Test func nobodyPresentsACard() async throws {
        let error = await #expect(throws: CardError.self) {
            try await terminal().perform(purchase(1), in: ScriptedField([])) { _ in }
        }
        expectEqual(error?.kind, .cardAbsent)
    }

    @Test(arguments: [nil, OnlineResponse(authorizationResponseCode: Array("05".utf8))])
    func withoutDataForTheCardTheRequestIsTheEnd(_ response: OnlineResponse?) async throws {
        let field = ScriptedField([.card([Self.directory, Self.fci, .response("03 90 00")])])
        let report = try await terminal().perform(
            purchase(1), in: field, authorize: { _ in response }, show: { _ in })
        expectEqual(report.outcome.kind, .onlineRequest)
    }

    /// While a card is waited for, and in an exchange, the first or one after the issuer's answer.
    @Test(
        arguments: [
            ([.never], 0), ([.card([.never])], 1), ([.card([directory, fci, .never])], 3),
            ([.card([directory, fci, .response("03 90 00")]), .card([fci, .never])], 5),
        ] as [([ScriptedField.Event], Int)])
    private func cancelled(_ events: [ScriptedField.Event], _ commands: Int) async throws {
        let field = ScriptedField(events)
        let transaction = try purchase(1)
        let terminal = try terminal()
        let task = Task {
            try await terminal.perform(
                transaction, in: field, authorize: { _ in OnlineResponse(issuerAuthenticationData: [0xAA]) },
                show: { _ in })
        }
        try await wait(for: "the last command") {
            field.activations >= events.count && field.commands.count >= commands
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        expectEqual(field.commands.count, commands)
    }

    /// The issuer's answer is waited for alone, and (04) while the card may stay.
    @Test(arguments: ["03 90 00", "04 90 00"])
    func cancelledWhileTheIssuerIsAsked(_ answer: String) async throws {
        let field = ScriptedField([.card([Self.directory, Self.fci, .response(answer)])])
        let transaction = try purchase(1)
        let terminal = try terminal()
        let (events, log) = AsyncStream<String>.makeStream()
        let task = Task {
            try await terminal.perform(
                transaction, in: field,
                authorize: { _ in
                    log.yield("asked")
                    do {
                        try await Time.sleep(for: .seconds(3600))
                    } catch {
                        log.yield("cancelled")
                        throw error
                    }
                    return nil
                }, show: { _ in })
        }
        var iterator = events.makeAsyncIterator()
        await expectEqual(iterator.next(), "asked")
        task.cancel()
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        await expectEqual(iterator.next(), "cancelled")
    }
}

private enum Answer: Sendable {
    case response(String)
    case failure(CardError.Kind)
    case never
}

/// A field in which one thing after the other happens.
private final class ScriptedField: ContactlessField {
    enum Event: Sendable {
        case card([Answer]), collision, collisionOver, communicationError(CommunicationError)
        case failure(CardError.Kind), never
    }

    private struct State {
        var events: [Event]
        var activations = 0
        var answers: [Answer] = []
        var commands: [String] = []
        var pauses: [Duration] = []
    }
    private let state: Mutex<State>

    private let pauseError: CardError.Kind?

    /// - Parameter pauseError: what the field throws when it is to be switched off.
    init(_ events: [Event], pausing pauseError: CardError.Kind? = nil) {
        state = Mutex(State(events: events))
        self.pauseError = pauseError
    }

    var activations: Int { state.withLock { $0.activations } }
    var commands: [String] { state.withLock { $0.commands } }
    var pauses: [Duration] { state.withLock { $0.pauses } }

    func activate() async throws -> FieldEvent {
        let event = state.withLock { state in
            state.activations += 1
            return state.events.isEmpty ? nil : state.events.removeFirst()
        }
        switch event {
        case .card(let answers):
            state.withLock { $0.answers = answers }
            return .card(Card(field: self))
        case .collision: return .collision
        case .collisionOver: return .collisionOver
        case .communicationError(let error): return .communicationError(error)
        case .failure(let kind): throw CardError(kind)
        case .never:
            try await Time.sleep(for: .seconds(3600))
            throw CardError(.cardAbsent)
        case nil: throw CardError(.cardAbsent)
        }
    }

    func deactivate(for duration: Duration) async throws {
        state.withLock { $0.pauses.append(duration) }
        if let pauseError { throw CardError(pauseError) }
    }

    func waitForRemoval() async throws {}

    private struct Card: CardChannel {
        let field: ScriptedField

        /// Each answer takes 5 ms.
        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
            try await Time.sleep(for: .milliseconds(5))
            let answer = field.state.withLock { state in
                state.commands.append(command.bytes.hex)
                return state.answers.isEmpty ? nil : state.answers.removeFirst()
            }
            switch answer {
            case .response(let text): return try ResponseAPDU([UInt8](hex: text))
            case .failure(let kind): throw CardError(kind)
            case .never:
                try await Time.sleep(for: .seconds(3600))
                throw CardError(.noAnswer)
            case nil: throw CardError(.noAnswer)
            }
        }
    }
}

/// A kernel that sends one command, and whose outcome the answer gives.
private struct Confirming: ActivatableKernel {
    static let command = "80CA9F3600"
    private let activation: KernelActivation

    init(_ activation: KernelActivation) { self.activation = activation }

    mutating func next(_ event: KernelEvent) -> KernelStep {
        switch event {
        case .start, .terminalData: return KernelStep(.send(.getData(0x9F36)))
        case .communicationError(let error): return KernelStep(.outcome(Outcome(.endApplication, reason: "\(error)")))
        case .response(let response, _):
            switch response.data.first {
            case 1:
                let data = activation.onlineResponse?.issuerAuthenticationData ?? []
                return KernelStep(.outcome(Outcome(.approved, reason: data.hex)))
            case 2:
                return KernelStep(
                    .outcome(
                        Outcome(
                            .tryAgain, start: .b, userInterfaceRequest: .init(.seePhone, .processingError),
                            userInterfaceRequestOnRestart: .init(.presentCardAgain, .readyToRead), fieldOff: 1300,
                            reason: "see phone")))
            case let code:
                return KernelStep(
                    .outcome(
                        Outcome(
                            .onlineRequest, start: .b, onlineResponseData: .emvData,
                            removalTimeout: code == 4 ? 20 : 0, reason: "the issuer decides")))
            }
        }
    }
}
