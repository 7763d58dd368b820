package import SmartCard
import Synchronization

/// The field with a phone whose passes were read: the first activation finds it as it is, without DESELECT, so that the
/// payment follows in the same session.
package final class PassedField: ContactlessField {
    /// The phone left after its passes were read, and before it began to pay.
    package struct PhoneLeft: Error {}

    private struct State {
        var isGiven = false
        /// True if the payment has begun: the phone may be presented again.
        var hasBegun = false
    }

    private let field: any ContactlessField
    private let card: any CardChannel
    /// True if there are passes, which are a result even if the phone leaves or has no card.
    package let passesStand: Bool
    private let state = Mutex(State())

    /// - Parameters:
    ///   - field: the field with the phone.
    ///   - card: the phone.
    ///   - passesStand: true if it gave passes.
    package init(_ field: any ContactlessField, _ card: any CardChannel, passesStand: Bool) {
        (self.field, self.card, self.passesStand) = (field, card, passesStand)
    }

    /// - Throws: ``PhoneLeft`` where the passes are the result, and else the errors of the field.
    package func activate() async throws -> FieldEvent {
        let before = state.withLock { state in
            defer { state.isGiven = true }
            return state
        }
        guard before.isGiven else { return .card(Watched(field: self)) }
        guard before.hasBegun || !passesStand else { throw PhoneLeft() }
        return try await field.activate()
    }

    package func deactivate(for duration: Duration) async throws { try await field.deactivate(for: duration) }

    package func waitForRemoval() async throws { try await field.waitForRemoval() }

    package func release() async throws { try await field.release() }

    package var capabilities: FieldCapabilities { field.capabilities }

    /// The phone, and whether it has begun to pay.
    private struct Watched: CardChannel {
        let field: PassedField

        func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
            let response = try await field.card.transmit(command)
            if response.status == .success { field.state.withLock { $0.hasBegun = true } }
            return response
        }
    }
}
