import CardEncryption
import Foundation
import SmartCard
import ToolReaders
import ToolSupport
import WalletPasses

/// The reading of passes in a reader's field: of whichever phone is tapped, and once more after its holder has unlocked it.
struct PassTap {
    /// A phone, or a card, that was asked for its passes and is still there.
    struct Asked {
        let outcome: PassReading.Outcome
        let card: any CardChannel
    }

    private let configuration: PassConfiguration
    private let mode: PassReading.Mode
    /// The longest time for the holder of a phone that is locked.
    private let patience: Duration

    /// A phone that leaves so often in succession is not waited for.
    private static let maximumLosses = 3
    /// Longer than phones forgive a field that drops: 300 ms for payments (kormax, `apple-enhanced-contactless-polling`).
    private static let pause = Duration.milliseconds(400)

    /// - Parameters:
    ///   - path: the merchants and their keys, in JSON.
    ///   - mode: the purpose of the tap.
    ///   - patience: the longest time for the holder of a phone that is locked; nil: half a minute.
    /// - Throws: ``ToolError`` for a file that cannot be used, with its place.
    init(_ path: String, mode: PassReading.Mode, patience: Duration?) throws {
        _ = try PaymentOptions.contents(of: path)
        do throws(PassConfigurationError) {
            configuration = try PassConfiguration(contentsOf: path)
        } catch {
            let format = "The format: reader-probe(1), WALLET PASSES."
            guard case .keyFile(let fault) = error.reason else { throw ToolError.usage("\(path): \(error)", format) }
            throw ToolError.usage("\(path): \(error)", fault.hint)
        }
        (self.mode, self.patience) = (mode, patience ?? .seconds(30))
    }

    /// Waits for a phone and asks it for passes.
    ///
    /// - Parameters:
    ///   - field: is left on, with the phone in it.
    ///   - layers: wraps the channel to the phone.
    /// - Throws: `CardError` if the reader fails, or nothing is presented; ``ToolError`` for a phone that leaves each time.
    func read(
        in field: any ContactlessField, layers: (any CardChannel) -> any CardChannel
    ) async throws -> Asked {
        let start = ContinuousClock.now
        var held: Asked?
        var losses = 0
        while losses < Self.maximumLosses {
            try Task.checkCancellation()
            do {
                switch try await field.activate() {
                case .card(let card):
                    let asked = Asked(outcome: try await ask(layers(card)), card: card)
                    guard asked.outcome.wantsAnotherTap, ContinuousClock.now - start < patience else { return asked }
                    if held == nil { Terminal.remark("see phone: it is locked, or asks its holder for something") }
                    (held, losses) = (asked, 0)
                    try await field.deactivate(for: Self.pause)
                case .collision: Terminal.progress("Present one phone only")
                case .collisionOver: break
                case .communicationError: losses += 1
                }
            } catch let error as CardError {
                // A holder who goes away has seen the phone: its last answer stands.
                if error.kind == .cardAbsent, let held { return held }
                guard CommunicationError(error) != nil, error.kind != .cardAbsent || losses > 0 else { throw error }
                losses = error.kind == .cardAbsent ? Self.maximumLosses : losses + 1
            }
        }
        throw ToolError(
            status: 5, summary: "the phone left before its passes were read",
            hint: "Hold the phone on the reader until it shows that it is done.")
    }

    private func ask(_ phone: any CardChannel) async throws -> PassReading.Outcome {
        // Nothing is kept: whether a pass was seen in an earlier run is not known.
        var reading = PassReading(
            configuration.allRequests, configuration: configuration, mode: mode,
            freshness: VASFreshness(tolerance: configuration.clockTolerance), at: .now)
        var step = reading.next(nil)
        while true {
            switch step {
            case .send(let command): step = reading.next(try await phone.transmit(command))
            case .finished(let outcome): return outcome
            }
        }
    }
}
