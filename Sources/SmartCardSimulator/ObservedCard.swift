import Synchronization

/// A card that records its exchanges.
///
///     let card = ObservedCard(visa)
///     reader.insert(card)
///     …
///     #expect(card.exchanges.count == 4)
///
/// It keeps all exchanges until ``forget()``, so it suits tests only.
public final class ObservedCard: VirtualCard {
    /// An ISO-DEP exchange.
    public struct Exchange: Hashable, Sendable {
        /// The command APDU.
        public let command: [UInt8]
        /// The response APDU; nil where the card stayed mute.
        public let response: [UInt8]?
    }

    private let card: any VirtualCard
    private let seen = Mutex<[Exchange]>([])

    public init(_ card: any VirtualCard) { self.card = card }

    /// The exchanges since the last ``forget()``, in their order.
    public var exchanges: [Exchange] { seen.withLock { $0 } }

    public func forget() { seen.withLock { $0 = [] } }

    public var radio: VirtualCardRadio { card.radio }

    public func reset() { card.reset() }

    public func exchange(_ command: [UInt8]) -> [UInt8]? {
        let response = card.exchange(command)
        seen.withLock { $0.append(Exchange(command: command, response: response)) }
        return response
    }

    public func exchangeNative(_ command: [UInt8]) -> [UInt8]? { card.exchangeNative(command) }

    public func processingTime(of command: [UInt8]) -> Duration { card.processingTime(of: command) }

    public func notice(_ event: RadioEvent) -> Bool { card.notice(event) }

    public var answersAnyReader: Bool { card.answersAnyReader }
}
