import SmartCard
import Waiting

/// A PN532 on a serial line: commands begin with `D4`, responses with `D5`.
final class HSULink: Sendable {
    private let line: SerialLine
    private let limits: HSUExchange.Limits
    private let turn = Turn()

    init(_ line: SerialLine, limits: HSUExchange.Limits) {
        self.line = line
        self.limits = limits
    }

    var chip: PN532 {
        PN532(maximumInput: HSUFrame.maximumLength - 2) { [self] in try await transmit($0) }
    }

    /// Wakes the chip, aborts a command that another program left, and checks that it is a PN532.
    ///
    /// - Throws: `CardError` of kind `readerTimeout` if nothing answers at this rate.
    func wakeUp(at rate: SerialRate) async throws -> PN532.FirmwareVersion {
        try line.setRate(rate)
        // The wake-up bytes are lost, and possibly the next frame while the oscillator starts.
        var tries = 3
        let waking = PN532(maximumInput: HSUFrame.maximumLength - 2) { [self] in
            try await transmit(
                $0, preamble: HSUFrame.wakeUpBytes,
                limits: HSUExchange.Limits(acknowledgment: limits.acknowledgment / 3, response: .seconds(1)))
        }
        while true {
            do {
                try await waking.useNoSAM()
                break
            } catch let error as CardError where error.kind == .readerTimeout && tries > 1 {
                tries -= 1
            }
        }
        let firmware = try await chip.firmwareVersion()
        guard firmware.chip == 0x32 else {
            throw CardError(.unsupported, "a chip \([firmware.chip].hex), which is no PN532")
        }
        return firmware
    }

    /// Switches chip and line to another rate.
    func change(to rate: SerialRate) async throws {
        try await chip.setSerialRate(rate)
        line.send(HSUFrame.acknowledgmentBytes)
        try line.setRate(rate)
        try await toTheEnd { try await Time.sleep(for: .milliseconds(2)) }
    }

    /// - Parameters:
    ///   - command: at least 2 bytes, beginning with `D4`.
    ///   - preamble: sent before its frame.
    func transmit(
        _ command: [UInt8], preamble: [UInt8] = [], limits: HSUExchange.Limits? = nil
    ) async throws -> [UInt8] {
        guard command.count <= HSUFrame.maximumLength else {
            throw CardError(.tooLong, "\(command.count) bytes for the PN532, which takes \(HSUFrame.maximumLength)")
        }
        try await turn.take()
        defer { turn.pass() }
        let start = SerialLine.now
        let exchange = HSUExchange(command, preamble: preamble, limits: limits ?? self.limits, now: start)
        switch await line.perform(exchange) {
        case .success(let response):
            ExchangeStopwatch.current?.add(SerialLine.now - start)
            return response
        case .failure(.cancelled): throw CancellationError()
        case .failure(let failure): throw failure.error
        }
    }
}

extension HSUFailure {
    fileprivate var error: CardError {
        switch self {
        case .noAcknowledgment:
            CardError(
                .readerTimeout, "the PN532 does not acknowledge a command", cause: self,
                hint: "Check the board's power, that TX goes to RX and RX to TX, and that its switches say HSU (UART).")
        case .noResponse:
            CardError(
                .readerTimeout, "the PN532 gives no response", cause: self,
                hint: "Present the card again; if it recurs, take the board's power away for a moment.")
        case .rejected: CardError(.unsupported, "the PN532 does not understand the command", cause: self)
        case .damaged:
            CardError(
                .malformedAnswer, "what comes from the PN532 is damaged", cause: self,
                hint: "Use shorter wires and a lower rate, and check that no other device is on the line.")
        case .gone: CardError(.readerGone, cause: self)
        case .closed, .cancelled: CardError(.disconnected, cause: self)
        }
    }
}
