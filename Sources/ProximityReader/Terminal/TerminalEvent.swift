import Foundation
import Waiting

/// An event of the reader, and the read that it belongs to.
struct TerminalEvent: Sendable {
    let event: PaymentCardReader.Event
    /// The read; nil between reads.
    let read: UUID?
}

extension Multicast where Element == TerminalEvent {
    /// Events are for a display: a slow consumer gets the newest.
    convenience init() { self.init(keeping: .newest(1024)) }

    func send(_ event: PaymentCardReader.Event, of read: UUID? = nil) { send(TerminalEvent(event: event, read: read)) }

    /// Returns the events from now on.
    ///
    /// - Parameter read: the read to report on; nil for all events.
    func stream(of read: UUID?) -> AsyncStream<PaymentCardReader.Event> {
        stream { read == nil || $0.read == read ? $0.event : nil }
    }
}
