import EMVContactless
import SmartCard

/// A kernel from outside the module: GET PROCESSING OPTIONS, the records, and one GENERATE AC.  It authenticates no card, so it
/// is for a reader that goes online, or for test cards.
struct DomesticKernel: ActivatableKernel {
    /// The options in a combination's JSON.
    struct Options: KernelOptions {
        static let keys: Set<String> = ["onlineAbove", "receiptAbove"]
        /// The amount above which the card is asked for an ARQC.
        var onlineAbove: UInt64 = 0
        /// The amount above which a receipt is offered; nil: never.
        var receiptAbove: UInt64?

        init() {}

        init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            onlineAbove = try container.decodeIfPresent(UInt64.self, forKey: .onlineAbove) ?? 0
            receiptAbove = try container.decodeIfPresent(UInt64.self, forKey: .receiptAbove)
        }
    }

    /// The number of transactions that this terminal has approved offline in a row.
    struct Memory: KernelMemory {
        var approvals = 0
    }

    /// The limit of ``Memory/approvals``, after which the next transaction goes online.
    static let maximumApprovals = 1

    private enum State {
        case idle
        case processingOptions
        case records(ArraySlice<CommandAPDU>)
        case cryptogram(requested: ApplicationCryptogramType)
    }

    /// An early end of the processing.
    private struct Termination: Error {
        let outcome: Outcome

        init(_ reason: String, _ kind: Outcome.Kind = .endApplication) {
            outcome = Outcome(
                kind, start: kind == .tryAgain ? .b : nil,
                userInterfaceRequest: UserInterfaceRequest(.insertSwipeOrTryAnotherCard, .processingError),
                reason: reason)
        }
    }

    static let mandatoryData: [TLVTag] = [0x9F1A]

    static func validate(
        _ combination: Combination, _ options: Options, at path: String
    ) throws(ConfigurationError) {
        guard let limit = combination.transactionLimit, options.onlineAbove >= limit else { return }
        throw ConfigurationError(
            path: "\(path).options.onlineAbove", reason: "no amount above it is below the transaction limit")
    }

    private let activation: KernelActivation
    private var state = State.idle
    private var card: [TLVTag: [UInt8]] = [:]

    init(_ activation: KernelActivation) { self.activation = activation }

    mutating func next(_ event: KernelEvent) -> KernelStep {
        do { return try act(on: event) } catch { return KernelStep(.outcome(error.outcome)) }
    }

    private mutating func act(on event: KernelEvent) throws(Termination) -> KernelStep {
        switch (state, event) {
        case (.idle, .start):
            state = .processingOptions
            let fci = try objects(activation.selectResponse, in: 0x6F)
            let list = fci[0xA5]?.children[0x9F38].map { Array($0.value) } ?? []
            return KernelStep(.send(.getProcessingOptions(try values(for: list, "PDOL"))))
        case (.processingOptions, .response(let response, _)):
            store(try objects(response, in: 0x77))
            return try readRecords()
        case (.records(let rest), .response(let response, _)):
            store(try objects(response, in: 0x70))
            return try read(rest)
        case (.cryptogram(let requested), .response(let response, _)):
            store(try objects(response, in: 0x77))
            return KernelStep(
                .outcome(try decide(requested)),
                showing: [UserInterfaceRequest(.cardReadRemoveCard, .cardReadSuccessfully)])
        case (_, .communicationError): throw Termination("the card left", .tryAgain)
        default: throw Termination("an event that does not follow from the step before")
        }
    }

    private mutating func readRecords() throws(Termination) -> KernelStep {
        guard let value = card[0x94], let locator = try? ApplicationFileLocator(value) else {
            throw Termination("the card names no records")
        }
        let commands = locator.entries.flatMap { entry in
            entry.records.map { CommandAPDU.readRecord($0, sfi: entry.sfi) }
        }
        return try read(commands[...])
    }

    private mutating func read(_ commands: ArraySlice<CommandAPDU>) throws(Termination) -> KernelStep {
        guard let command = commands.first else { return try requestCryptogram() }
        state = .records(commands.dropFirst())
        return KernelStep(.send(command))
    }

    private mutating func requestCryptogram() throws(Termination) -> KernelStep {
        let options: Options = activation.options()
        let goesOnline =
            activation.transaction.amount > options.onlineAbove || memory.approvals >= Self.maximumApprovals
        let requested: ApplicationCryptogramType = goesOnline ? .arqc : .tc
        state = .cryptogram(requested: requested)
        let data = try values(for: card[0x8C] ?? [], "CDOL1")
        return KernelStep(.send(.generateAC(referenceControl: requested.rawValue, data: data)))
    }

    private func decide(_ requested: ApplicationCryptogramType) throws(Termination) -> Outcome {
        guard let information = card[0x9F27]?.first, card[0x9F26] != nil else {
            throw Termination("the card gives no cryptogram")
        }
        var kept = memory
        var outcome: Outcome
        switch ApplicationCryptogramType(cryptogramInformationData: information) {
        case .tc where requested == .tc:
            kept.approvals += 1
            outcome = Outcome(.approved, cvm: Outcome.CVM.none, reason: "approved offline")
            outcome.userInterfaceRequest = UserInterfaceRequest(.approved, .cardReadSuccessfully)
        case .arqc:
            kept.approvals = 0
            outcome = Outcome(.onlineRequest, cvm: Outcome.CVM.none, reason: "the transaction goes online")
            outcome.userInterfaceRequest = UserInterfaceRequest(.authorizing, .cardReadSuccessfully)
        default:
            outcome = Outcome(.declined, cvm: Outcome.CVM.none, reason: "the card declines")
            outcome.userInterfaceRequest = UserInterfaceRequest(.notAuthorized, .cardReadSuccessfully)
        }
        outcome.memory = kept
        outcome.receipt =
            activation.options(Options.self).receiptAbove.map { activation.transaction.amount > $0 } ?? false
        let tags: [TLVTag] = [0x57, 0x5F34, 0x82, 0x9F10, 0x9F26, 0x9F27, 0x9F36]
        outcome.dataRecord = DataRecord(
            tags.compactMap { tag in card[tag].map { .init(tag, $0) } }
                + ([0x9F02, 0x9F1A, 0x9F37, 0x9A] as [TLVTag]).compactMap { tag in
                    activation.terminalData[tag].map { .init(tag, $0) }
                })
        return outcome
    }

    private var memory: Memory { activation.memory as? Memory ?? Memory() }

    private func values(for list: [UInt8], _ name: String) throws(Termination) -> [UInt8] {
        guard let list = try? DataObjectList(list) else { throw Termination("\(name): malformed") }
        return list.value { activation.terminalData[$0] }
    }

    private func objects(_ response: ResponseAPDU, in template: TLVTag) throws(Termination) -> TLVList {
        guard response.status == .success else { throw Termination("the card answers \(response.status)") }
        guard let objects = try? TLVList(response.data), objects.count == 1, let found = objects[template] else {
            throw Termination("not one template \(template)")
        }
        return found.children
    }

    private mutating func store(_ objects: TLVList) {
        for object in objects where !object.tag.isConstructed { card[object.tag] = Array(object.value) }
    }
}
