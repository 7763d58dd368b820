import SmartCard

/// The host's side of the block protocol T=1 (ISO/IEC 7816-3, 11).  Does no I/O.
///
/// It keeps the protocol's state between APDUs: sequence numbers and field sizes.
struct T1Protocol: Sendable {
    /// The next step.
    enum Step: Equatable {
        /// Send a block.  `waitingTime` multiplies the block waiting time, once.
        case send([UInt8], waitingTime: UInt8 = 0)
        case done([UInt8])
        case failed(CardError.Kind, String)
    }

    /// The number of attempts before the next measure (ISO/IEC 7816-3, 11.6.3.2, rule 7.4).
    static let mostAttempts = 3
    /// A limit above the longest response of one APDU.
    static let longestResponse = 65_538
    static let mostSupervisoryBlocks = 1000

    /// The longest information field that the card accepts.
    private(set) var ifsc: Int
    private(set) var ifsd: Int
    private let usesCRC: Bool
    /// N(S) of our next I-block, and of the card's.
    private var ns: UInt8 = 0
    private var nr: UInt8 = 0

    // The current exchange.
    private var outgoing: ArraySlice<UInt8> = []
    private var incoming: [UInt8] = []
    /// The S-block request that is repeated until it is answered, while no I-block is pending.
    private var request: [UInt8] = []
    private var purpose = Purpose.command
    private var failures = 0
    private var resynchronizations = 0
    private var supervisoryBlocks = 0

    private enum Purpose { case command, fieldSize, resynchronization }

    /// - Parameter ifsd: initially 32, whatever the reader's maximum (11.4.2).
    init(ifsc: UInt8, usesCRC: Bool, ifsd: Int = 32) {
        self.ifsc = max(Int(ifsc), 1)
        self.usesCRC = usesCRC
        self.ifsd = ifsd
    }

    // MARK: Starting

    /// Starts sending `command`, an APDU or other bytes.
    mutating func start(_ command: [UInt8]) -> Step {
        begin(.command)
        outgoing = command[...]
        sizePendingBlock()
        return .send(informationBlock)
    }

    /// Announces our field size to the card (11.4.2).  ``ifsd`` changes once the card agrees.
    mutating func announce(ifsd: Int) -> Step {
        let size = UInt8(clamping: min(max(ifsd, 1), 254))
        begin(.fieldSize)
        request = block(pcb: SBlock.ifsRequest, [size])
        return .send(request)
    }

    private mutating func begin(_ purpose: Purpose) {
        self.purpose = purpose
        (outgoing, incoming) = ([], [])
        (failures, resynchronizations, supervisoryBlocks) = (0, 0, 0)
    }

    // MARK: Receiving

    /// Processes a block, or other bytes in its place.
    mutating func received(_ bytes: [UInt8]) -> Step {
        guard let block = parse(bytes) else { return repair(asking: .checkError) }
        switch block.kind {
        case .information(let sequence, let more): return receivedInformation(block.data, sequence, more)
        case .ready(let sequence): return receivedReady(sequence)
        case .supervisory(let pcb): return receivedSupervisory(pcb, block.data)
        }
    }

    /// Processes the card's silence (rule 7.1).
    mutating func receivedNothing() -> Step { repair(asking: .otherError) }

    private mutating func receivedInformation(_ data: ArraySlice<UInt8>, _ sequence: UInt8, _ more: Bool) -> Step {
        guard purpose == .command, sequence == nr else { return repair(asking: .otherError) }
        if !outgoing.isEmpty {
            // An I-block acknowledges our last one; it is out of place earlier.
            guard pendingIsLast else { return repair(asking: .otherError) }
            acknowledge()
        }
        guard incoming.count + data.count <= Self.longestResponse else {
            return .failed(.malformedAnswer, "a response without end")
        }
        failures = 0
        nr ^= 1
        incoming += data
        return more ? .send(ready(.noError)) : .done(incoming)
    }

    /// Processes an R-block: the card waits for I-block number `sequence` (rules 2 and 7.2).
    private mutating func receivedReady(_ sequence: UInt8) -> Step {
        guard purpose == .command else { return repair(asking: .otherError) }
        // Our command has arrived completely: the card means our acknowledgment of its last block.
        guard !outgoing.isEmpty else { return nextMeasure() ?? .send(ready(.noError)) }
        if sequence == ns { return nextMeasure() ?? .send(informationBlock) }
        guard !pendingIsLast else { return repair(asking: .otherError) }
        failures = 0
        acknowledge()
        sizePendingBlock()
        return .send(informationBlock)
    }

    private mutating func receivedSupervisory(_ pcb: UInt8, _ data: ArraySlice<UInt8>) -> Step {
        supervisoryBlocks += 1
        guard supervisoryBlocks <= Self.mostSupervisoryBlocks else {
            return .failed(.noAnswer, "supervisory blocks without end")
        }
        switch pcb {
        case SBlock.resynchResponse where purpose == .resynchronization:
            // Both sides restart (rule 6.2); the command is lost.
            (ns, nr) = (0, 0)
            outgoing = []
            return .failed(.notTransacted, "T=1 had to resynchronize")
        case SBlock.ifsResponse where purpose == .fieldSize:
            guard data.elementsEqual(request.dropFirst(3).prefix(1)), let size = data.first else {
                return repair(asking: .otherError)
            }
            ifsd = Int(size)
            return .done([])
        case SBlock.waitingTimeRequest where data.count == 1:
            failures = 0
            return .send(block(pcb: SBlock.waitingTimeResponse, Array(data)), waitingTime: data.first ?? 1)
        case SBlock.ifsRequest where data.count == 1:
            guard let size = data.first, (1...254).contains(size) else { return repair(asking: .otherError) }
            ifsc = Int(size)
            return .send(block(pcb: SBlock.ifsResponse, Array(data)))
        case SBlock.abortRequest:
            // The card aborts its chain or ours (rule 9).  Blocks after the answer belong to no command.
            outgoing = []
            return .failed(.notTransacted, "the card aborted the chain")
        default:
            return repair(asking: .otherError)
        }
    }

    // MARK: Errors

    /// The error code in an R-block (11.3.2.2).
    private enum ReadyError: UInt8 { case noError = 0, checkError = 1, otherError = 2 }

    /// Requests the block again or repeats ours, then resynchronizes, then gives up (rule 7).
    private mutating func repair(asking error: ReadyError) -> Step {
        nextMeasure() ?? .send(purpose == .command ? ready(error) : request)
    }

    /// Returns the next measure; nil while attempts are left.
    private mutating func nextMeasure() -> Step? {
        failures += 1
        guard failures >= Self.mostAttempts else { return nil }
        guard purpose != .fieldSize else { return .failed(.noAnswer, "no T=1 block from the card") }
        guard resynchronizations < Self.mostAttempts else {
            return .failed(.noAnswer, "the card does not resynchronize T=1")
        }
        resynchronizations += 1
        purpose = .resynchronization
        failures = Self.mostAttempts - 1
        request = block(pcb: SBlock.resynchRequest, [])
        return .send(request)
    }

    // MARK: Blocks

    private enum SBlock {
        static let resynchRequest: UInt8 = 0xC0
        static let ifsRequest: UInt8 = 0xC1
        static let abortRequest: UInt8 = 0xC2
        static let waitingTimeRequest: UInt8 = 0xC3
        static let resynchResponse: UInt8 = 0xE0
        static let ifsResponse: UInt8 = 0xE1
        static let waitingTimeResponse: UInt8 = 0xE3
    }

    private enum BlockKind {
        case information(UInt8, more: Bool)
        case ready(UInt8)
        case supervisory(UInt8)
    }

    /// The number of bytes of `outgoing` in the pending I-block.
    private var pendingCount = 0
    private var pendingIsLast: Bool { pendingCount == outgoing.count }

    /// Sizes a block once: a repeated block stays the same even if the card has changed its IFSC.
    private mutating func sizePendingBlock() { pendingCount = min(outgoing.count, ifsc) }

    private mutating func acknowledge() {
        outgoing = outgoing.dropFirst(pendingCount)
        ns ^= 1
    }

    private var informationBlock: [UInt8] {
        block(pcb: ns << 6 | (pendingIsLast ? 0x00 : 0x20), Array(outgoing.prefix(pendingCount)))
    }

    private func ready(_ error: ReadyError) -> [UInt8] { block(pcb: 0x80 | nr << 4 | error.rawValue, []) }

    /// Returns an encoded block: NAD 00, PCB, LEN, the information field, and the check bytes.
    private func block(pcb: UInt8, _ data: [UInt8]) -> [UInt8] {
        let body = [0x00, pcb, UInt8(clamping: data.count)] + data
        return body + check(body)
    }

    private func check(_ body: some Collection<UInt8>) -> [UInt8] {
        guard usesCRC else { return [body.reduce(0, ^)] }
        // CRC of ISO/IEC 13239 (11.3.4), most significant byte first, not inverted, as in libccid and openct.
        let crc = body.reduce(UInt16(0xFFFF)) { crc, byte in
            (0..<8).reduce(crc ^ UInt16(byte)) { crc, _ in crc & 1 == 1 ? crc >> 1 ^ 0x8408 : crc >> 1 }
        }
        return [UInt8(crc >> 8), UInt8(crc & 0xFF)]
    }

    /// - Returns: nil for an invalid block.
    private func parse(_ bytes: [UInt8]) -> (kind: BlockKind, data: ArraySlice<UInt8>)? {
        let checkSize = usesCRC ? 2 : 1
        guard bytes.count >= 3 + checkSize, bytes[2] <= 254, bytes.count == 3 + Int(bytes[2]) + checkSize else {
            return nil
        }
        let body = bytes.dropLast(checkSize)
        guard check(body).elementsEqual(bytes.suffix(checkSize)) else { return nil }
        let pcb = bytes[1]
        let data = body.dropFirst(3)
        if pcb & 0x80 == 0 {
            return pcb & 0x1F == 0 ? (.information(pcb >> 6 & 1, more: pcb & 0x20 != 0), data) : nil
        }
        if pcb & 0x40 == 0 {
            return pcb & 0x2C == 0 && data.isEmpty ? (.ready(pcb >> 4 & 1), data) : nil
        }
        return (.supervisory(pcb), data)
    }
}
