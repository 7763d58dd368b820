import SmartCardTrace

/// The exchanges with a card that a reader's chip makes for a program: its commands to the chip carry them.
struct CarriedExchanges {
    /// The events that carry the bytes of one.
    struct Carrier {
        /// The index of the last of them.
        let last: Int
        /// The places of its bytes, in order.
        fileprivate let parts: [TraceMessage.Part]

        /// The hidden places of each carrying event.
        ///
        /// - Parameter shown: the carried bytes in hexadecimal, with `*` for what is hidden; all are where it has others.
        func masks(_ shown: String?) -> [(index: Int, mask: Mask)] {
            let count = parts.reduce(0) { $0 + $1.place.count }
            var digits = Array(shown ?? "")[...]
            if digits.count != 2 * count { digits = [Character](repeating: "*", count: 2 * count)[...] }
            return parts.map { part in
                defer { digits = digits.dropFirst(2 * part.place.count) }
                return (part.event, Mask(start: 2 * part.place.lowerBound, hidden: digits.prefix(2 * part.place.count)))
            }
        }
    }

    /// The places of an event's hexadecimal bytes that are hidden.
    struct Mask {
        fileprivate let start: Int
        fileprivate let hidden: ArraySlice<Character>

        /// `*` for each digit that is hidden, something else for the others.
        func digits(count: Int) -> [Character] {
            let before = [Character](repeating: " ", count: min(start, count)) + hidden
            return before + [Character](repeating: " ", count: max(0, count - before.count))
        }
    }

    private(set) var trace = Trace()
    /// For each event of the trace, its carrier; nil for one that is there as it was.
    private(set) var carriers: [Carrier?] = []

    /// Returns those of each layer on which `trace` has commands to a chip.
    static func all(in trace: Trace) -> [CarriedExchanges] {
        [TraceEvent.Layer.escape, .apdu].filter { layer in trace.events.contains { $0.isForChip(layer) } }
            .map { CarriedExchanges(trace, $0) }
    }

    private init(_ whole: Trace, _ layer: TraceEvent.Layer) {
        var raiser = LayerRaiser()
        for (index, event) in whole.events.enumerated() {
            switch event.what {
            case .sent(let other, _), .received(let other, _), .failed(.exchange(let other), _):
                guard other == layer else { continue }
            default: break
            }
            for raised in raiser.raise(event, number: index).events {
                trace.events.append(raised.event)
                carriers.append(raised.isCarried(by: event) ? Carrier(last: index, parts: raised.parts) : nil)
            }
        }
    }
}

extension Raised.Event {
    fileprivate func isCarried(by carrier: TraceEvent) -> Bool {
        switch event.what {
        case .sent(.apdu, _), .received(.apdu, _), .failed(.exchange(.apdu), _): event.what != carrier.what
        default: false
        }
    }
}

extension TraceEvent {
    /// True for a command to the PN532 of a reader (ACS ACR122U API v2.04, 5.1).
    fileprivate func isForChip(_ wanted: Layer) -> Bool {
        guard case .sent(wanted, let bytes) = what else { return false }
        return bytes.starts(with: [0xFF, 0x00, 0x00, 0x00]) && bytes.dropFirst(5).first == 0xD4
    }
}
