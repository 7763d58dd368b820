import EMVContactless
import SmartCard
import SmartCardSimulator

/// A card that does whatever a string of bytes tells it, from plausible answers to nonsense, against Entry Point and
/// the kernels; or somebody between them and another card, which signs what it says.  A fuzzer writes the string.
struct HostileCard {
    private var bytes: ArraySlice<UInt8>
    /// The other card.
    private let card: (any VirtualCard)?

    /// Whether a Mastercard application was selected last.
    private var isMastercard = false

    init(_ bytes: some Collection<UInt8>, before card: (any VirtualCard)? = nil) {
        (self.bytes, self.card) = (ArraySlice(bytes), card)
    }

    /// What came of a transaction: how many commands there were, and the outcomes; nil if it had no end.
    struct Result {
        var commands = 0
        var final: FinalOutcome?
    }

    /// Plays a whole transaction, with the issuer's answer where one is asked for.
    mutating func play(_ entryPoint: EntryPoint, _ transaction: Transaction, startsAtB: Bool = false) -> Result {
        var entryPoint = entryPoint
        var result = Result()
        var event = startsAtB ? EntryPoint.Event.startB(transaction) : .startA(transaction)
        var isAuthorized = false
        // More than every bound of Entry Point's allows.
        for _ in 0..<(EntryPoint.maximumCommands * EntryPoint.maximumActivations * 2) {
            switch entryPoint.next(event).action {
            case .activateField: event = activate()
            case .switchFieldOff: event = .fieldIsOff
            case .exchange(let exchange): event = .terminalData(answer(exchange))
            case .send(let command):
                result.commands += 1
                event = answer(command)
            case .finish(let final):
                let response = OnlineResponse(
                    authorizationResponseCode: take(2), issuerAuthenticationData: take(8),
                    scripts: [TLVTag(0x71).encode(TLVTag(0x86).encode(take(Int(take() & 0x1F))))])
                guard !isAuthorized, final.outcome.isRestarted(by: response) else {
                    result.final = final
                    return result
                }
                isAuthorized = true
                event = .onlineResponse(response)
            }
        }
        return result
    }

    /// Plays card and terminal against Kernel 2 alone, whose application has been selected.
    ///
    /// - Parameter watch: sees the kernel after each step.
    /// - Returns: the outcome, nil if it does not come; how many commands and questions there were.
    mutating func play(_ kernel: Kernel2, watch: (Kernel2) -> Void) -> (outcome: Outcome?, count: Int) {
        isMastercard = true
        var kernel = kernel
        var event = KernelEvent.start
        for count in 0..<2_000 {
            let step = kernel.next(event)
            watch(kernel)
            switch step.action {
            case .outcome(let outcome): return (outcome, count)
            case .exchange(let exchange): event = .terminalData(answer(exchange))
            case .send(let command):
                switch answer(command) {
                case .response(let response, let duration): event = .response(response, after: duration)
                default: event = .communicationError(.transmission)
                }
            }
        }
        return (nil, 2_000)
    }

    private mutating func take() -> UInt8 { bytes.popFirst() ?? 0 }

    private mutating func take(_ count: Int) -> [UInt8] { (0..<count).map { _ in take() } }

    private mutating func activate() -> EntryPoint.Event {
        card?.reset()
        return switch take() & 0x1F {
        case 0x1D: .collision
        case 0x1E: .collisionOver
        case 0x1F: .communicationError(.timeout)
        default: .cardPresent
        }
    }

    private mutating func answer(_ command: CommandAPDU) -> EntryPoint.Event {
        if let card { return passOn(command, card) }
        // RECOVER AC: a card that has nothing to recover.
        if command.ins == 0xD0, take() & 0x03 == 0 { return response([], 0x6985) }
        let data: [UInt8]
        switch take() & 0x0F {
        case 0x0F: return .communicationError([.timeout, .transmission, .protocol][Int(take() % 3)])
        case 0x0E: return response([], StatusWord(take(), take()))
        case 0x0D: data = take(Int(take()))
        default: data = plausible(command)
        }
        return response(data, 0x9000)
    }

    /// What the other card answers, as it is up to 7F; then changed, cut off, with another status, not at all, or replaced.
    private mutating func passOn(_ command: CommandAPDU, _ card: any VirtualCard) -> EntryPoint.Event {
        let whim = take()
        // FF: the command does not get there.
        guard whim != 0xFF, let bytes = card.exchange(command.bytes), var response = try? ResponseAPDU(bytes) else {
            return .communicationError(.timeout)
        }
        switch whim {
        case 0x80...0xBF where !response.data.isEmpty:
            var data = response.data
            data[Int(take()) % data.count] ^= whim & 0x3F
            response = ResponseAPDU(data: data, status: response.status)
        case 0xC0...0xCF: response = ResponseAPDU(data: response.data.dropLast(Int(take())), status: response.status)
        case 0xD0...0xDF: response = ResponseAPDU(data: response.data, status: StatusWord(take(), take()))
        case 0xE0...0xEF: return .communicationError(.timeout)
        case 0xF0...0xFE: response = ResponseAPDU(data: plausible(command), status: 0x9000)
        default: break
        }
        return .response(response, after: card.processingTime(of: command.bytes))
    }

    private func response(_ data: [UInt8], _ status: StatusWord) -> EntryPoint.Event {
        .response(ResponseAPDU(data: data, status: status), after: .milliseconds(20))
    }

    // MARK: Plausible answers

    private mutating func plausible(_ command: CommandAPDU) -> [UInt8] {
        if command.ins == 0xA4 { isMastercard = command.data.starts(with: [0xA0, 0x00, 0x00, 0x00, 0x04]) }
        if isMastercard { return plausibleMastercard(command) }
        return switch command.ins {
        case 0xA4 where command.data.starts(with: Array("2PAY".utf8)): directory()
        case 0xA4: template(0x6F, [(0x84, command.data), (0xA5, fci())])
        case 0xA8 where take() & 0x0F == 0: TLVTag(0x80).encode(take(2) + locator())
        case 0xA8: template(0x77, objects(Self.processingOptions))
        case 0xB2: template(0x70, objects(Self.record))
        case 0xAE, 0x88: template(0x77, objects(Self.cryptogram))
        case 0xCA: TLVTag(rawValue: UInt32(command.p1) << 8 | UInt32(command.p2)).encode(take(Int(take() & 0x07)))
        default: []
        }
    }

    private mutating func directory() -> [UInt8] {
        let entries = (0...Int(take() & 0x03)).flatMap { _ -> [UInt8] in
            let kernel = take()
            let name: [UInt8] = [0xA0, 0, 0, 0, kernel & 0x80 == 0 ? 3 : 4, 0x10, 0x10] + take(Int(take() & 0x03))
            return template(0x61, [(0x4F, name), (0x87, take(1)), (0x9F2A, [kernel & 0x0F])])
        }
        return template(0x6F, [(0x84, Array("2PAY.SYS.DDF01".utf8)), (0xA5, TLVTag(0xBF0C).encode(entries))])
    }

    private mutating func fci() -> [UInt8] {
        let list: [UInt8] = [
            0x9F, 0x66, 0x04, 0x9F, 0x02, 0x06, 0x9F, 0x03, 0x06, 0x9F, 0x1A, 0x02, 0x95, 0x05, 0x5F, 0x2A, 0x02, 0x9A,
            0x03, 0x9C, 0x01, 0x9F, 0x37, 0x04,
        ]
        return template(
            nil,
            [
                (0x50, Array("VISA".utf8)), (0x9F38, list + take(Int(take() & 0x03))), (0x5F2D, Array("ende".utf8)),
                (0xBF0C, template(nil, [(0x9F5A, [0x11, 0x08, 0x40, 0x08, 0x40])])),
            ])
    }

    private mutating func locator() -> [UInt8] {
        (0..<Int(take() & 0x03)).flatMap { _ -> [UInt8] in
            let byte = take()
            return byte == 0xFF ? take(4) : [(byte & 0x0F) << 3, 1, 1 + byte >> 6, byte >> 4 & 0x01]
        }
    }

    private enum Value {
        /// So many bytes that the string tells.
        case told(Int)
        case fixed([UInt8])
        case locator
    }

    private static let track2: [UInt8] = [
        0x47, 0x61, 0x73, 0x90, 0x01, 0x01, 0x00, 0x10, 0xD3, 0x11, 0x22, 0x01, 0x11, 0x43, 0x80, 0x44, 0x89,
    ]

    private static let processingOptions: [(TLVTag, Value)] = [
        (0x82, .told(2)), (0x94, .locator), (0x57, .fixed(track2)), (0x5F34, .told(1)), (0x9F10, .told(7)),
        (0x9F26, .told(8)), (0x9F27, .told(1)), (0x9F36, .told(2)), (0x9F6C, .told(2)), (0x9F6E, .told(4)),
        (0x9F4B, .told(128)), (0x9F5D, .told(6)), (0x9F7C, .told(8)), (0x5F20, .told(4)),
    ]

    private static let record: [(TLVTag, Value)] = [
        (0x5A, .fixed(Array(track2.prefix(8)))), (0x57, .fixed(track2)), (0x5F24, .fixed([0x31, 0x12, 0x31])),
        (0x5F25, .told(3)), (0x5F28, .fixed([0x08, 0x40])), (0x9F07, .told(2)), (0x9F08, .told(2)), (0x8F, .told(1)),
        (0x90, .told(128)), (0x92, .told(20)), (0x9F32, .fixed([0x03])), (0x9F46, .told(128)), (0x9F47, .fixed([0x03])),
        (0x9F48, .told(42)), (0x9F4A, .fixed([0x82])), (0x9F69, .told(7)), (0x93, .told(128)), (0x8C, .told(6)),
        (0x8D, .told(6)), (0x8E, .told(12)), (0x9F42, .told(2)), (0x5F20, .told(8)),
    ]

    private static let cryptogram: [(TLVTag, Value)] = [
        (0x9F27, .told(1)), (0x9F36, .told(2)), (0x9F26, .told(8)), (0x9F10, .told(18)), (0x9F4B, .told(128)),
    ]

    /// The objects, each left out, sent twice or changed in length where the string says so.
    private mutating func objects(_ table: [(TLVTag, Value)]) -> [(TLVTag, [UInt8])] {
        table.flatMap { tag, value -> [(TLVTag, [UInt8])] in
            let whim = take()
            if whim > 0xF0 { return [] }
            var content: [UInt8] =
                switch value {
                case .fixed(let bytes): bytes
                case .told(let count): take(count)
                case .locator: locator()
                }
            if whim > 0xE8 { content = Array(content.dropLast()) }
            if whim > 0xE0 && whim <= 0xE8 { content.append(take()) }
            return whim == 0xE0 ? [(tag, content), (tag, content)] : [(tag, content)]
        }
    }

    /// A template, or its value alone; what lies in it may be padded, cut off or of a length that lies.
    private mutating func template(_ tag: TLVTag?, _ objects: [(TLVTag, [UInt8])]) -> [UInt8] {
        var value = objects.flatMap { $0.0.encode($0.1) }
        switch take() {
        case 0xFF: value = value.dropLast()
        case 0xFE: value += [0x00, 0x00]
        case 0xFD: value.append(take())
        default: break
        }
        return tag?.encode(value) ?? value
    }

    // MARK: Mastercard

    /// What the terminal says to a kernel that asks: what it wants, or not, and sometimes what it writes.
    private mutating func answer(_ exchange: DataExchange) -> DataRecord {
        var record = DataRecord(exchange.dataNeeded.map { .init($0, take(Int(take() & 0x0F))) })
        if take() & 0x03 != 0 { record[0xDF8110] = [take() & 0x01] }
        if take() & 0x01 != 0 {
            record[0xDF8112] = [0x9F, 0x70, 0x9F, 0x50]
            record[0xFF8102] = [0x9F, 0x75, 0x01, take()]
        }
        if take() & 0x01 != 0 {
            for (tag, count) in [(0xDF60, 8), (0xDF62, 1), (0xDF63, 3), (0xDF8108, 1), (0xDF8109, 8), (0xDF810A, 1)]
                as [(TLVTag, Int)]
            { record[tag] = take(count) }
        }
        return record
    }

    private mutating func plausibleMastercard(_ command: CommandAPDU) -> [UInt8] {
        switch command.ins {
        case 0xA4:
            let issuer: [(TLVTag, Value)] = [
                (0x9F5D, .told(3)), (0x9F5E, .fixed([0x54, 0x13, 0x33, 0x00, 0x89, 0x01, 0x04, 0x34, 0x01])),
            ]
            let options = template(0xBF0C, objects(issuer))
            return template(
                0x6F,
                [
                    (0x84, command.data),
                    (0xA5, TLVTag(0x9F38).encode([0x9F, 0x35, 0x01, 0x9F, 0x53, 0x01]) + options),
                ])
        case 0xA8:
            // Plausible is either mode, with or without relay resistance and all the rest.
            let kind = take()
            var profile: [UInt8] = [0x18 | kind & 0x03, kind & 0x10 == 0 ? 0x80 : 0x00]
            if kind & 0x20 != 0 { profile[1] |= 0x01 }
            let isMagStripe = profile[1] & 0x80 == 0
            return template(
                0x77,
                objects([
                    (0x82, .fixed(profile)),
                    (
                        0x94,
                        kind & 0x40 != 0 ? .locator : .fixed(isMagStripe ? [8, 1, 1, 0] : [0x10, 1, 1, kind >> 7])
                    ),
                    (0x9F5F, .told(1)), (0x9F7D, .told(8)), (0x9F7F, .told(4)), (0x9F6F, .told(1)),
                ]))
        case 0xB2 where command.p2 >> 3 == 1: return template(0x70, objects(Self.magStripeRecord))
        case 0xB2: return template(0x70, objects(Self.mastercardRecord))
        case 0xEA: return [0x80, 0x0A] + take(4) + [0, take(), 0, take(), 0, take()]
        case 0xAE, 0xD0: return template(0x77, objects(Self.mastercardCryptogram))
        case 0x2A: return template(0x77, objects(Self.checksum))
        case 0xCA:
            let tag = TLVTag(rawValue: UInt32(command.p1) << 8 | UInt32(command.p2))
            return tag.encode(take(tag == 0x9F50 ? 6 : Int(take() & 0x07)))
        default: return []
        }
    }

    private static let mastercardTrack: [UInt8] = [
        0x54, 0x13, 0x33, 0x00, 0x89, 0x01, 0x04, 0x34, 0xD3, 0x11, 0x22, 0x01, 0x99, 0x99, 0x99, 0x99, 0x99, 0x99,
        0x9F,
    ]

    private static let mastercardRecord: [(TLVTag, Value)] = [
        (0x5A, .fixed(Array(mastercardTrack.prefix(8)))), (0x5F24, .fixed([0x31, 0x12, 0x31])),
        (0x5F34, .fixed([0x01])),
        (0x57, .fixed(mastercardTrack)),
        (0x8C, .fixed([0x9F, 0x02, 0x06, 0x95, 0x05, 0x9F, 0x37, 0x04, 0x9F, 0x53, 0x01])),
        (0x8E, .told(14)), (0x9F07, .told(2)), (0x9F0F, .told(5)), (0x9F4A, .fixed([0x82])), (0x8F, .told(1)),
        (0x90, .told(144)), (0x9F32, .fixed([0x03])), (0x9F46, .told(144)), (0x9F47, .fixed([0x03])),
        (0x9F51, .fixed([0x9F, 0x37, 0x04])), (0x9F5B, .fixed([0xDF, 0x60, 0x08, 0xDF, 0x61, 0x08, 0xDF, 0x63, 0x10])),
        (0x9F6E, .told(6)),
    ]

    private static let magStripeRecord: [(TLVTag, Value)] = [
        (0x9F6B, .fixed(mastercardTrack)), (0x9F65, .fixed([0x00, 0x0E])), (0x9F66, .fixed([0x0E, 0x70])),
        (0x9F67, .fixed([0x03])), (0x9F62, .told(6)), (0x9F63, .told(6)), (0x9F64, .told(1)),
        (0x9F69, .fixed([0x9F, 0x6A, 0x04, 0x9F, 0x7E, 0x01])),
    ]

    private static let mastercardCryptogram: [(TLVTag, Value)] = [
        (0x9F27, .told(1)), (0x9F36, .told(2)), (0x9F26, .told(8)), (0x9F10, .told(18)), (0xDF4B, .told(3)),
    ]

    private static let checksum: [(TLVTag, Value)] = [
        (0x9F61, .told(2)), (0x9F60, .told(2)), (0x9F36, .told(2)), (0xDF4B, .told(3)),
    ]
}
