/// The payments that are not resolved, the oldest first.
///
/// Finding a payment by its `id`, adding and removing take amortized constant time.
struct StoredPayments: Sendable {
    /// The slots; nil where a payment was removed.  The last slot is never nil.
    private var slots: [StoreLedger.Payment?] = []
    /// The first slot that is not nil, or the end.
    private var start = 0
    private var places: [String: Int] = [:]

    var count: Int { places.count }
    var first: StoreLedger.Payment? { start < slots.count ? slots[start] : nil }

    subscript(id: String) -> StoreLedger.Payment? { places[id].flatMap { slots[$0] } }

    /// Adds a payment, unless there is one with this `id`.
    mutating func append(_ payment: StoreLedger.Payment) -> Bool {
        guard places[payment.id] == nil else { return false }
        places[payment.id] = slots.count
        slots.append(payment)
        return true
    }

    mutating func update(_ id: String, _ body: (inout StoreLedger.Payment) -> Void) {
        guard let place = places[id], var payment = slots[place] else { return }
        body(&payment)
        slots[place] = payment
    }

    @discardableResult mutating func remove(_ id: String) -> StoreLedger.Payment? {
        guard let place = places.removeValue(forKey: id), let payment = slots[place] else { return nil }
        slots[place] = nil
        while let last = slots.last, last == nil { slots.removeLast() }
        if start > slots.count { start = slots.count }
        while start < slots.count, slots[start] == nil { start += 1 }
        if places.count * 2 < slots.count { close() }
        return payment
    }

    /// Numbers the entries of all payments, in their order and without gaps.
    mutating func renumber(from first: Int64) {
        var next = first
        for place in start..<slots.count where slots[place] != nil {
            slots[place]?.entry = next
            next += 1
        }
    }

    /// Removes the empty slots.
    private mutating func close() {
        slots.removeAll { $0 == nil }
        start = 0
        for (place, payment) in slots.enumerated() { if let payment { places[payment.id] = place } }
    }
}

extension StoredPayments: Sequence {
    func makeIterator() -> some IteratorProtocol<StoreLedger.Payment> {
        slots[start...].lazy.compactMap { $0 }.makeIterator()
    }
}
