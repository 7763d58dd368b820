import SmartCard

/// A card's description of itself, without any application.
struct CardSummary {
    let atr: ATR
    let uid: [UInt8]?
    /// The whole ATS, if the reader reports it.
    let ats: ATS?

    /// Asks the reader for facts missing in the ATR: `FF CA` is PC/SC part 3, 3.2.2.1.3.
    init(atr: ATR, channel: any CardChannel) async throws {
        func getData(_ p1: UInt8) async throws -> [UInt8]? {
            let command = CommandAPDU(unchecked: (0xFF, 0xCA, p1, 0x00), ne: 256)
            do {
                let response = try await channel.transmit(command)
                return response.status == .success && !response.data.isEmpty ? response.data : nil
            } catch let error as CardError where error.kind == .malformedAnswer || error.kind == .noAnswer {
                return nil
            }
        }
        self.atr = atr
        uid = try await getData(0x00)
        if case .typeA(_, let known) = atr.contactless {
            ats = if let known { known } else { try await getData(0x01).flatMap { ATS($0) } }
        } else {
            ats = nil
        }
    }

    /// One of `type-a`, `type-b`, `storage`, `contact`, `none`, `unknown`.
    var type: String {
        switch atr.contactless {
        case .typeA: "type-a"
        case .typeB: "type-b"
        case .storageCard: "storage"
        case .noCard: "none"
        case nil: atr.convention == nil ? "unknown" : "contact"
        }
    }

    /// The technology for people: `ISO 14443-4 type A`, `MIFARE Classic 1K (ISO 14443 A, part 3)`.
    var technology: String { atr.technology }
}

extension ATR {
    var technology: String {
        switch contactless {
        case .typeA: "ISO 14443-4 type A"
        case .typeB: "ISO 14443-4 type B"
        // The ACR122U reports its own names, F0xx, with the standard of type A, which those cards do not follow.
        case .storageCard(let standard, let name):
            name.rawValue >> 8 == 0xF0 || "\(name)" == "\(standard)" ? "\(name)" : "\(name) (\(standard))"
        case .noCard: "no card"
        case nil: convention == nil ? "unknown card" : "contact card"
        }
    }
}
