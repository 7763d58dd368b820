import SmartCard

/// The exchange of a command APDU and its response through XfrBlock, at the reader's exchange level.  Does no I/O.
struct APDUExchange: Sendable {
    /// The next step.
    enum Step: Equatable {
        case send(CCIDCommand)
        /// All bytes of the response; empty if the card was silent.
        case done([UInt8])
        case failed(CardError)

        static func == (a: Step, b: Step) -> Bool {
            switch (a, b) {
            case (.send(let a), .send(let b)): a == b
            case (.done(let a), .done(let b)): a == b
            case (.failed(let a), .failed(let b)): a.description == b.description
            default: false
            }
        }
    }

    private enum Level {
        case wholeAPDU
        case chainedAPDU(APDUChain)
        case t0
        case t1(T1Protocol)
    }

    private var level: Level
    private let maximumData: Int

    /// - Parameter t1: the protocol's state, for a reader of TPDU level with a T=1 card.
    init(_ descriptor: CCIDDescriptor, t1: T1Protocol?) throws(CardError) {
        maximumData = descriptor.maximumData
        switch (descriptor.exchangeLevel, t1) {
        case (.shortAPDU, _): level = .wholeAPDU
        case (.extendedAPDU, _): level = .chainedAPDU(APDUChain(maximumData: descriptor.maximumData))
        case (.tpdu, nil): level = .t0
        case (.tpdu, let t1?): level = .t1(t1)
        case (.character, _):
            throw CardError(.unsupported, "the reader exchanges single characters")
        }
    }

    /// The T=1 state from which the next APDU continues.
    var t1: T1Protocol? {
        if case .t1(let t1) = level { t1 } else { nil }
    }

    /// Returns the first step for `command`, a complete APDU.
    mutating func start(_ command: [UInt8]) -> Step {
        switch level {
        case .wholeAPDU:
            return whole(command)
        case .chainedAPDU(var chain):
            defer { level = .chainedAPDU(chain) }
            return chain.start(command)
        case .t0:
            switch Self.t0TPDU(command) {
            case .success(let tpdu): return whole(tpdu)
            case .failure(let error): return .failed(error)
            }
        case .t1(var t1):
            defer { level = .t1(t1) }
            return step(t1.start(command))
        }
    }

    /// Returns the next step after an answer.  The caller handles failed commands, except a mute card in T=1.
    mutating func received(_ answer: CCIDAnswer) -> Step {
        switch level {
        case .wholeAPDU, .t0:
            return .done(answer.data)
        case .chainedAPDU(var chain):
            defer { level = .chainedAPDU(chain) }
            return chain.received(answer)
        case .t1(var t1):
            defer { level = .t1(t1) }
            return step(answer.data.isEmpty ? t1.receivedNothing() : t1.received(answer.data))
        }
    }

    /// Returns true if T=1 can recover from `error`: silence and garbled blocks.
    func repairs(_ error: CCIDError) -> Bool {
        t1 != nil && [.mute, .parity, .overrun].contains(error)
    }

    /// Announces our field size to a T=1 card.
    mutating func announce(ifsd: Int) -> Step {
        guard var t1 else { return .done([]) }
        defer { level = .t1(t1) }
        return step(t1.announce(ifsd: ifsd))
    }

    private func whole(_ bytes: [UInt8]) -> Step {
        bytes.count <= maximumData
            ? .send(.xfrBlock(bytes))
            : .failed(CardError(.tooLong, "\(bytes.count) bytes; this reader takes \(maximumData)"))
    }

    private func step(_ step: T1Protocol.Step) -> Step {
        switch step {
        case .send(let block, let waitingTime): .send(.xfrBlock(block, waitingIntegers: waitingTime))
        case .done(let response): .done(response)
        case .failed(let kind, let detail): .failed(CardError(kind, detail))
        }
    }

    /// Returns the T=0 TPDU of an APDU (ISO/IEC 7816-3, 12.2): five header bytes and the data.
    ///
    /// It omits the Le of a case 4 command; the card then answers 61xx, as through PC/SC.
    private static func t0TPDU(_ bytes: [UInt8]) -> Result<[UInt8], CardError> {
        guard let command = try? CommandAPDU(bytes) else { return .success(bytes) }
        guard command.lengthCoding == .short else {
            return .failure(CardError(.tooLong, "T=0 has no extended length"))
        }
        return switch command.case {
        case .noData: .success(bytes + [0x00])
        case .dataSentAndExpected: .success(Array(bytes.dropLast()))
        default: .success(bytes)
        }
    }
}

/// An APDU in parts, for readers of extended APDU level (USB CCID 1.10, 6.1.4 and 6.2.1).
struct APDUChain: Sendable {
    /// wLevelParameter and bChainParameter.
    private enum Part {
        static let whole: UInt8 = 0x00
        static let begins: UInt8 = 0x01
        static let ends: UInt8 = 0x02
        static let continues: UInt8 = 0x03
        /// Invites the other side to continue.
        static let goOn: UInt8 = 0x10
    }

    /// The header, three-byte Lc, the longest data and Le.
    static let longestCommand = 4 + 3 + 65_535 + 2
    static let longestResponse = 65_538
    static let mostParts = 10_000

    private let maximumData: Int
    private var outgoing: ArraySlice<UInt8> = []
    private var incoming: [UInt8] = []
    private var isReceiving = false
    private var parts = 0

    init(maximumData: Int) { self.maximumData = max(maximumData, 1) }

    mutating func start(_ command: [UInt8]) -> APDUExchange.Step {
        guard command.count <= Self.longestCommand else {
            return .failed(CardError(.tooLong, "\(command.count) bytes"))
        }
        (outgoing, incoming, isReceiving, parts) = (command[...], [], false, 0)
        return send(command.count <= maximumData ? Part.whole : Part.begins)
    }

    mutating func received(_ answer: CCIDAnswer) -> APDUExchange.Step {
        parts += 1
        guard parts <= Self.mostParts else { return .failed(CardError(.malformedAnswer, "a chain without end")) }
        if !outgoing.isEmpty {
            // Anything but an invitation ends the command early.
            guard answer.last == Part.goOn else { return .done(answer.data) }
            return send(outgoing.count <= maximumData ? Part.ends : Part.continues)
        }
        let isFirst = !isReceiving
        isReceiving = true
        incoming += answer.data
        guard incoming.count <= Self.longestResponse else {
            return .failed(CardError(.malformedAnswer, "a response without end"))
        }
        switch answer.last {
        case Part.whole where isFirst, Part.ends where !isFirst: return .done(incoming)
        case Part.begins where isFirst, Part.continues where !isFirst:
            return .send(.xfrBlock([], level: UInt16(Part.goOn)))
        default:
            return .failed(CardError(.malformedAnswer, "bChainParameter \([answer.last].hex) out of turn"))
        }
    }

    private mutating func send(_ part: UInt8) -> APDUExchange.Step {
        let data = outgoing.prefix(maximumData)
        outgoing = outgoing.dropFirst(maximumData)
        return .send(.xfrBlock(Array(data), level: UInt16(part)))
    }
}
