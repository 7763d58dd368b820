import Foundation
import Waiting

/// What the reader does, and in which read.
struct TerminalEvent: Sendable {
    let event: PaymentCardReader.Event
    /// nil between reads.
    let read: UUID?
}

extension Multicast where Element == TerminalEvent {
    /// The events are what a screen shows: a consumer that is slow gets the newest.
    convenience init() { self.init(keeping: .newest(1024)) }

    func send(_ event: PaymentCardReader.Event, of read: UUID? = nil) { send(TerminalEvent(event: event, read: read)) }

    /// The events from now on.
    ///
    /// - Parameter read: nil; else only those of this read.
    func stream(of read: UUID?) -> AsyncStream<PaymentCardReader.Event> {
        stream { read == nil || $0.read == read ? $0.event : nil }
    }
}
