import Waiting

/// A phone's decision by the frames that a reader polls with: enhanced contactless polling, as kormax observed it.
struct PhonePolling: Hashable, Sendable {
    /// The wish of a reader, as its last polling frame states it.
    enum Wish: Hashable, Sendable {
        /// A pass or, without one, a payment: terminal capabilities 00 00 00.
        case passOrPayment
        /// 00 00 01
        case passAndPayment
        /// 00 00 02
        case passOnly
        /// 00 00 03
        case paymentOnly
        /// The networks of a transit operator, a bit each.
        case transit(networks: [UInt8])
        /// A wish that phones keep quiet, or for something that is neither pass nor payment.
        case nothingHere

        /// Parses a polling frame (`6A`, version, content); nil for any other frame.
        init?(_ bytes: [UInt8]) {
            guard bytes.count >= 5, bytes[0] == 0x6A else { return nil }
            switch bytes[1] {
            case 0x01:
                guard bytes.count == 5 else { return nil }
                self =
                    switch (bytes[2], bytes[3], bytes[4]) {
                    case (0x00, 0x00, 0x00): .passOrPayment
                    case (0x00, 0x00, 0x01): .passAndPayment
                    case (0x00, 0x00, 0x02): .passOnly
                    case (0x00, 0x00, 0x03): .paymentOnly
                    default: .nothingHere
                    }
            case 0x02:
                // Configuration, whose low nibble counts the data; type; subtype; terminal capabilities of three bytes.
                guard bytes.count == 5 + Int(bytes[2] & 0x0F) else { return nil }
                self = bytes[3] == 0x01 ? .transit(networks: Array(bytes.dropFirst(8))) : .nothingHere
            default: return nil
            }
        }
    }

    /// The requests for cards that were heard, by their modulation.
    private var requests: [RadioFrame.Modulation: Int] = [:]
    /// The reader's last wish.
    private(set) var wish: Wish?
    private var fieldLoss: Time.Instant?
    private var isDeselected = false
    /// The reader has closed a session as it should, and the phone says so.
    private(set) var isDone = false

    /// True if enough was heard.  With one technology polled a phone decides after the third request, with two after the second
    /// loop, with three after the first.
    private var isDecided: Bool {
        let loops = requests.values.min() ?? 0
        switch requests.count {
        case 0: return false
        case 1: return loops >= 3
        case 2: return loops >= 2
        default: return loops >= 1
        }
    }

    /// - Returns: true if the phone has decided before this frame, and the frame is a request.
    mutating func hear(_ frame: RadioFrame) -> Bool {
        guard frame.isRequest else {
            if let said = Wish(frame.bytes) { wish = said }
            return false
        }
        defer { requests[frame.modulation, default: 0] += 1 }
        return isDecided
    }

    /// The phone has been selected.
    mutating func begin() { (isDeselected, isDone) = (false, false) }

    mutating func deselect() { isDeselected = true }

    /// S(DESELECT) and a field that drops are the end.
    mutating func loseField(at instant: Time.Instant) {
        guard isDeselected else {
            fieldLoss = instant
            return
        }
        self = PhonePolling()
        isDone = true
    }

    /// Forgets the frames heard before the field dropped: after 300 ms, for transit after 750 ms.
    mutating func regainField(at instant: Time.Instant) {
        guard let loss = fieldLoss else { return }
        var grace = Duration.milliseconds(300)
        if case .transit = wish { grace = .milliseconds(750) }
        fieldLoss = nil
        guard instant - loss > grace else { return }
        let wasDone = isDone
        self = PhonePolling()
        isDone = wasDone
    }
}

/// The networks in the polling frame of a transit operator that takes payment cards, by the beginnings of their AIDs.
enum TransitNetwork {
    private static let table: [(aid: [UInt8], byte: Int, bit: UInt8)] = [
        ([0xA0, 0x00, 0x00, 0x00, 0x03, 0x20, 0x20], 0, 0x80),  // V PAY
        ([0xA0, 0x00, 0x00, 0x00, 0x03, 0x20, 0x10], 0, 0x40),  // Visa Electron
        ([0xA0, 0x00, 0x00, 0x00, 0x03], 0, 0x20),  // Visa
        ([0xA0, 0x00, 0x00, 0x00, 0x04, 0x30, 0x60], 0, 0x08),  // Maestro
        ([0xA0, 0x00, 0x00, 0x00, 0x04], 0, 0x10),  // Mastercard
        ([0xA0, 0x00, 0x00, 0x01, 0x52], 0, 0x02),  // Discover
        ([0xA0, 0x00, 0x00, 0x00, 0x25], 0, 0x01),  // American Express
        ([0xA0, 0x00, 0x00, 0x00, 0x65], 1, 0x01),  // JCB
    ]

    /// Returns true if a mask admits the network of an application.
    static func admits(_ mask: [UInt8], _ application: [UInt8]) -> Bool {
        guard let row = table.first(where: { application.starts(with: $0.aid) }), row.byte < mask.count else {
            return false
        }
        return mask[row.byte] & row.bit != 0
    }
}
