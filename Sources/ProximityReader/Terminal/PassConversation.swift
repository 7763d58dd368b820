import Foundation
import SmartCard
import WalletPasses

/// The conversation with a phone about passes, as a value without I/O: by the configuration's merchants and their keys,
/// or for pass types whose keys only the payment service or the merchant has.
enum PassConversation {
    case opened(PassReading)
    /// Apple Wallet alone, with the phone's responses so far.
    case sealed(AppleVAS, [ResponseAPDU])

    enum Step {
        case send(CommandAPDU)
        case finished(PassFindings)
    }

    /// Takes the phone's response; nil at the start.
    mutating func next(_ response: ResponseAPDU?) -> Step {
        switch self {
        case .opened(var reading):
            let step = reading.next(response)
            self = .opened(reading)
            switch step {
            case .send(let command): return .send(command)
            case .finished(let outcome): return .finished(PassFindings(outcome))
            }
        case .sealed(var vas, var responses):
            let step = vas.next(response)
            if let response { responses.append(response) }
            self = .sealed(vas, responses)
            switch step {
            case .send(let command): return .send(command)
            case .finished(let outcome): return .finished(PassFindings(outcome, responses))
            }
        }
    }
}

/// The result of a conversation.
struct PassFindings {
    struct Entry {
        /// The merchant's name.
        let id: String
        let status: VASReadResult.ReadEntry.Status
        var contents: Contents?
    }

    /// A pass.
    enum Contents {
        case clear(PassData)
        /// Encrypted to the merchant: tag 9F27.
        case cryptogram([UInt8])
    }

    let answer: PassPart.Answer
    var entries: [Entry] = []
    /// The reasons for which passes are refused: sentences for the log, without what the passes contain.
    var notes: [String] = []

    init(_ outcome: PassReading.Outcome) {
        for entry in outcome.entries {
            if case .readFailure(let failure) = entry.status { notes.append("\(entry.id): \(failure)") }
            entries.append(
                Entry(id: entry.id, status: .init(entry.status), contents: entry.pass.map { .clear($0.data) }))
        }
        if let failure = outcome.failure { notes.append("\(failure)") }
        answer = Self.answer(
            isMalformed: outcome.failure != nil, isHeld: outcome.wantsAnotherTap, statuses: entries.map(\.status))
    }

    /// - Parameter responses: the responses to SELECT and to each GET DATA.
    init(_ outcome: AppleVAS.Outcome, _ responses: [ResponseAPDU]) {
        var isMalformed = false
        switch outcome {
        case .read(let answers):
            for (entry, response) in zip(answers, responses.dropFirst()) {
                if case .other(let word) = entry.status { notes.append("status \(word)") }
                entries.append(
                    Entry(
                        id: entry.merchant.passTypeIdentifier, status: .init(PassReading.Status(entry.status)),
                        contents: entry.cryptogram.flatMap { _ in Self.cryptogram(response) }))
            }
        case .smartTap, .noPasses: break
        case .malformed:
            isMalformed = true
            notes.append("the phone breaks the protocol")
        }
        answer = Self.answer(
            isMalformed: isMalformed,
            isHeld: entries.contains { [.vasDataNotActivated, .userInterventionRequired].contains($0.status) },
            statuses: entries.map(\.status))
    }

    private static func answer(
        isMalformed: Bool, isHeld: Bool, statuses: [VASReadResult.ReadEntry.Status]
    ) -> PassPart.Answer {
        if isHeld { return .held }
        if statuses.contains(.success) { return .pass }
        if isMalformed { return .malformed }
        return statuses.isEmpty ? .noWallet : .noPass
    }

    private static func cryptogram(_ response: ResponseAPDU) -> Contents? {
        (try? TLVList(response.data))?.first { $0.tag == 0x70 }?.children.first { $0.tag == 0x9F27 }
            .map { .cryptogram(Array($0.value)) }
    }
}

extension VASReadResult.ReadEntry.Status {
    /// Apple's statuses are those of Core NFC's table (`NFCVASErrorCode`).  A pass that is refused, because it does not
    /// decrypt, was seen before or is of another time, is incorrect data.
    init(_ status: PassReading.Status) {
        switch status {
        case .success: self = .success
        case .notFound, .readFailure(.noPass): self = .vasDataNotFound
        case .notActivated: self = .vasDataNotActivated
        case .wrongParameters: self = .wrongP1P2
        case .wrongLength: self = .wrongCommandLength
        case .userInterventionRequired: self = .userInterventionRequired
        case .incorrectData, .readFailure: self = .incorrectData
        case .unsupportedVersion: self = .unsupportedApplicationVersion
        }
    }
}
