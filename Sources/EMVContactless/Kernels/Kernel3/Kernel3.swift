import SmartCard

/// Kernel 3, for Visa cards in EMV mode (EMV Contactless Book C-3): one GET PROCESSING OPTIONS requests the card's
/// decision, the named records are read, and the card may leave; the rest is decided without it.
///
/// Mag-stripe mode (MSD) is not supported.
///
/// For each requirement of Book C-3 that a comment cites, the rules table of the tests records whether it could be
/// checked against the text of the book.
public struct Kernel3: ActivatableKernel {
    let activation: KernelActivation
    var options: Options { activation.options() }
    /// The qualifiers as sent to the card.
    var terminalTransactionQualifiers: TerminalTransactionQualifiers = []
    /// The ISO 639-1 codes from the FCI.
    private let languagePreference: [String]
    var card = TLVDatabase(rules: .kernel3)
    var signedRecords = StaticDataToBeAuthenticated()
    private var state = State.idle

    private enum State: Sendable {
        case idle
        case processingOptions
        case records(RecordReader)
        case issuerUpdate(IssuerUpdate)
        case finished
    }

    /// An early end of the processing.
    struct Termination: Error {
        let outcome: Outcome
    }

    public init(_ activation: KernelActivation) {
        self.activation = activation
        languagePreference = activation.languagePreference
    }

    public mutating func next(_ event: KernelEvent) -> KernelStep {
        var step: KernelStep
        do { step = try act(on: event) } catch { step = KernelStep(.outcome(error.outcome)) }
        // Book A, 6.3
        for index in step.userInterfaceRequests.indices {
            step.userInterfaceRequests[index].languagePreference = languagePreference
        }
        if case .outcome(var outcome) = step.action {
            outcome.userInterfaceRequest?.languagePreference = languagePreference
            outcome.userInterfaceRequestOnRestart?.languagePreference = languagePreference
            if outcome.kind.isDecision { outcome.receiptFacts = receiptFacts(outcome) }
            step.action = .outcome(outcome)
            state = .finished
        }
        return step
    }

    private mutating func act(on event: KernelEvent) throws(Termination) -> KernelStep {
        switch (state, event) {
        case (.idle, .start):
            // Book C-3, 6: the issuer has answered, and the card is present again.
            guard let response = activation.onlineResponse else {
                state = .processingOptions
                return KernelStep(.send(try initiateApplicationProcessing()))
            }
            return proceed(IssuerUpdate(response))
        case (.processingOptions, .response(let response, _)):
            try takeProcessingOptions(response)
            // Book C-3, 5.3: there may be no records to read.
            guard let locator = card[0x94] else { return conclude() }
            do throws(RecordReaderError) { return proceed(try RecordReader(locator)) } catch {
                throw .endApplication("\(error)")
            }
        case (.records(var reader), .response(let response, _)):
            try take(response, of: &reader)
            return proceed(reader)
        case (.issuerUpdate(var update), .response(let response, _)):
            update.take(response.status)
            return proceed(update)
        case (.issuerUpdate(var update), .communicationError):
            // The issuer's decision stands.  No command is sent twice: a card may refuse one that it has executed.
            update.interrupt()
            return KernelStep(.outcome(complete(update)))
        case (.processingOptions, .communicationError), (.records, .communicationError):
            throw .tryAgain
        default:
            throw .endApplication("an event that does not follow from the step before")
        }
    }

    /// Book C-3, 5.3.
    private mutating func take(_ response: ResponseAPDU, of reader: inout RecordReader) throws(Termination) {
        let objects: TLVList?
        do throws(RecordReaderError) { objects = try reader.take(response) } catch {
            throw .endApplication("\(error)")
        }
        guard let objects else { return }
        do throws(MalformedCardData) { try card.store(objects) } catch { throw .endApplication(error.reason) }
    }

    private mutating func proceed(_ reader: RecordReader) -> KernelStep {
        guard let command = reader.command else {
            signedRecords = reader.signedRecords
            return conclude()
        }
        state = .records(reader)
        return KernelStep(.send(command))
    }

    /// Book C-3, 5.4 to 5.9.
    private mutating func conclude() -> KernelStep {
        // Book C-3, 5.4.1.1: the card may leave.
        let cardRead = UserInterfaceRequest(.cardReadRemoveCard, .cardReadSuccessfully)
        let outcome: Outcome
        do { outcome = try decide() } catch { outcome = error.outcome }
        return KernelStep(.outcome(outcome), showing: [cardRead])
    }

    /// Book C-3, 6.2.
    private mutating func proceed(_ update: IssuerUpdate) -> KernelStep {
        var update = update
        guard let command = update.next() else { return KernelStep(.outcome(complete(update))) }
        state = .issuerUpdate(update)
        return KernelStep(.send(command))
    }
}

/// Contains clear account data, and prints without it.
extension Kernel3: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "Kernel 3" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: ["masked": description]) }
}
