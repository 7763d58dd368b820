import SmartCard
import Waiting

/// Sends a frame between polls, with the chip set up so that this costs little, and restores the chip for cards.
///
/// A PN532 can send such frames (kormax, apple-enhanced-contactless-polling, who observed phones); the steps follow from
/// the state in which its polls leave it.
struct Broadcaster {
    /// The registers of the contactless interface unit (PN532/C1 data sheet, 8.6.23.3 to 8.6.23.62).
    private enum Register {
        static let transmitMode: UInt16 = 0x6302
        static let receiveMode: UInt16 = 0x6303
        static let transmitAuto: UInt16 = 0x6305
        static let manualReceive: UInt16 = 0x630D
        static let bitFraming: UInt16 = 0x633D
    }

    /// The bits of CIU_TxMode and CIU_RxMode.
    private enum Mode {
        /// The chip appends or checks a checksum.
        static let checksum: UInt8 = 0x80
        static let framing: UInt8 = 0x03
        static let framingB: UInt8 = 0x03
        /// 106 kbit/s, framing of type A, no checksum.
        static let plainA: UInt8 = 0x00
    }

    /// Force100ASK in CIU_TxAuto: the carrier is switched off and on, as type A has it.
    private static let fullModulation: UInt8 = 0x40
    /// ParityDisable in CIU_ManualRCV.
    private static let noParity: UInt8 = 0x10

    /// The time from a frame to the next poll.  Phones tolerate others; this is the best of those that were tried
    /// (kormax), and ISO/IEC 14443-3, 5.2 gives cards as long to notice a change of modulation.
    static let guardTime = Duration.milliseconds(5)

    private let chip: PN532
    private let frame: BroadcastFrame
    private let observe: (@Sendable (Broadcast) -> Void)?
    /// True while the chip has the short time limit and polls once.
    private var isSetUp = false
    /// The chip or its reader does not pass frames on.
    private var isRefused = false

    init(_ chip: PN532, _ frame: BroadcastFrame, _ observe: (@Sendable (Broadcast) -> Void)?) {
        (self.chip, self.frame, self.observe) = (chip, frame, observe)
    }

    /// Sends the frame of type A before the first poll.
    ///
    /// A phone that lies there may have heard the polls that the reader makes by itself, and answers the next one: the last
    /// frame decides what it shows (kormax, apple-enhanced-contactless-polling).
    ///
    /// - Returns: false if the reader does not pass it on.
    mutating func sendFirst() async throws -> Bool {
        try await send(for: .typeA) { me, bytes in
            try await me.beginTypeA()
            return try await me.exchange(bytes)
        }
    }

    /// Sends the frame after a poll for `technology` that nothing answered.
    ///
    /// - Returns: false if this technology has no such frame, or the reader does not pass it on.
    mutating func send(after technology: PollingTechnology) async throws -> Bool {
        try await send(for: technology) { me, bytes in
            technology == .typeB ? try await me.sendAsTypeB(bytes) : try await me.sendAsTypeA(bytes)
        }
    }

    private mutating func send(
        for technology: PollingTechnology, by body: (Self, [UInt8]) async throws -> Broadcast.Outcome
    ) async throws -> Bool {
        guard !isRefused, let bytes = frame.framed(for: technology) else { return false }
        try await setUp()
        let outcome: Broadcast.Outcome
        do {
            outcome = try await body(self, bytes)
        } catch let error as CardError where error.isOfChip {
            isRefused = error.kind == .unsupported
            outcome = .failure(error)
        }
        observe?(Broadcast(frame: bytes, technology: technology, outcome: outcome, instant: Time.now))
        return !isRefused
    }

    /// Sets the chip up for whole frames of type A, whatever it has sent before.  The poll that follows does so for itself.
    private func beginTypeA() async throws {
        let registers = try await chip.readRegisters([Register.transmitAuto, Register.manualReceive])
        try await chip.writeRegisters([
            (Register.transmitMode, Mode.plainA), (Register.receiveMode, Mode.plainA),
            (Register.transmitAuto, registers[0] | Self.fullModulation),
            (Register.manualReceive, registers[1] & ~Self.noParity), (Register.bitFraming, 0x00),
        ])
    }

    /// After REQA the chip appends no checksum and still sends seven bits of the last byte, which would truncate the
    /// frame.
    private func sendAsTypeA(_ bytes: [UInt8]) async throws -> Broadcast.Outcome {
        try await chip.writeRegisters([(Register.bitFraming, 0x00)])
        return try await exchange(bytes)
    }

    /// After REQB the chip appends checksums: it stops for this frame, which has one, and goes on for cards.
    private func sendAsTypeB(_ bytes: [UInt8]) async throws -> Broadcast.Outcome {
        let addresses = [Register.transmitMode, Register.receiveMode]
        let before = try await chip.readRegisters(addresses)
        let framed = before.map { $0 & ~(Mode.checksum | Mode.framing) | Mode.framingB }
        let chip = chip
        let result: Result<Broadcast.Outcome, any Error>
        do {
            try await chip.writeRegisters(zip(addresses, framed).map { ($0, $1) })
            result = .success(try await exchange(bytes))
        } catch {
            result = .failure(error)
        }
        try await toTheEnd { try await chip.writeRegisters(zip(addresses, before).map { ($0, $1) }) }
        return try result.get()
    }

    /// - Throws: `CardError` for anything but silence and an answer.
    private func exchange(_ bytes: [UInt8]) async throws -> Broadcast.Outcome {
        do {
            return .answer(try await chip.communicateThrough(bytes))
        } catch let error as CardError where error.kind == .noAnswer {
            return .silence
        }
    }

    /// An unanswered frame takes 0.8 ms instead of 51.2, and each poll is one request: phones count them.
    private mutating func setUp() async throws {
        guard !isSetUp else { return }
        isSetUp = true
        try await chip.configure(.timings(atr: .init(rawValue: 0x0B), exchange: .init(rawValue: 0x04)))
        try await chip.configure(.retries(atr: 0x01, psl: 0x01, passiveActivation: 0x00))
    }

    /// Restores the time limit for exchanges with cards and the two attempts of ``ACR122U/withChip(_:)``, even if the
    /// task is canceled.
    mutating func end() async throws {
        guard isSetUp else { return }
        let chip = chip
        try await toTheEnd {
            try await chip.configure(.initialTimings)
            try await chip.configure(.retries(atr: 0x01, psl: 0x01, passiveActivation: 0x01))
        }
        isSetUp = false
    }
}

extension CardError {
    /// True if the chip or its reader answered by an error of its own: the link to it works.
    fileprivate var isOfChip: Bool { kind == .unsupported || cause is PN532Error || cause is ACR122UStatus }
}
