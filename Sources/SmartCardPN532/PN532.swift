public import SmartCard
import Waiting

/// A PN532 (NXP UM0701-02) behind a reader's direct transmit or on a serial line, with its commands as an initiator.
///
/// It throws `CardError`; if the chip reports an error code, the cause is a ``PN532Error``.  Answers are parsed
/// strictly: one that is too short, too long or to another command is a `malformedAnswer`.
public struct PN532: Sendable {
    /// Sends a command, beginning with `D4`, and returns the response, beginning with `D5`.
    let transmit: @Sendable ([UInt8]) async throws -> [UInt8]

    /// The greatest number of bytes after `D4` and the command code.
    private let maximumInput: Int

    /// Uses the chip in an ACR122U, which passes on 254 bytes in all (nfcpy, clf/acr122.py): its direct transmit takes
    /// 255, but a chip's normal frame carries no more than that.
    public init(over reader: ACR122U) {
        self.init(maximumInput: 252) { try await reader.directTransmit($0) }
    }

    init(maximumInput: Int, transmit: @escaping @Sendable ([UInt8]) async throws -> [UInt8]) {
        self.maximumInput = maximumInput
        self.transmit = transmit
    }

    /// The longest response that is assembled from parts: an extended response APDU.
    private static let maximumResponse = 65_538
    /// The greatest number of parts: enough for that response in parts of 65 bytes.
    private static let maximumParts = 1024

    /// The commands of UM0701-02, 7.2 and 7.3, that this type uses.
    enum Command: UInt8 {
        case diagnose = 0x00
        case getFirmwareVersion = 0x02
        case getGeneralStatus = 0x04
        case readRegister = 0x06
        case writeRegister = 0x08
        case setSerialBaudRate = 0x10
        case setParameters = 0x12
        case samConfiguration = 0x14
        case rfConfiguration = 0x32
        case inDataExchange = 0x40
        case inCommunicateThru = 0x42
        case inDeselect = 0x44
        case inListPassiveTarget = 0x4A
        case inRelease = 0x52
        case inSelect = 0x54
    }

    /// Sends a command and returns the bytes after the response code.
    private func send(_ command: Command, _ input: [UInt8] = []) async throws -> [UInt8] {
        guard input.count <= maximumInput else {
            throw CardError(.tooLong, "\(input.count) bytes for the PN532; this reader takes \(maximumInput)")
        }
        let response = try await transmit([0xD4, command.rawValue] + input)
        guard response.count >= 2, response[0] == 0xD5, response[1] == command.rawValue &+ 1 else {
            throw Self.malformed(command, response)
        }
        return Array(response.dropFirst(2))
    }

    /// Sends a command whose response is only the response code.
    private func sendWithoutAnswer(_ command: Command, _ input: [UInt8]) async throws {
        let output = try await send(command, input)
        guard output.isEmpty else { throw Self.malformed(command, output) }
    }

    /// Sends a command whose response is a status byte, with data if `data` is true.
    private func sendForStatus(
        _ command: Command, _ input: [UInt8], data: Bool = false
    ) async throws -> (data: [UInt8], isMore: Bool) {
        let output = try await send(command, input)
        guard let status = output.first else { throw Self.malformed(command, output) }
        // Bits 0 to 5 are the error code, bit 6 is MI, bit 7 indicates a NAD (7.1).
        guard status & 0x3F == 0 else { throw PN532Error(rawValue: status & 0x3F).error }
        let rest = output.dropFirst(status & 0x80 != 0 ? 2 : 1)
        guard data || rest.isEmpty else { throw Self.malformed(command, output) }
        return (Array(rest), status & 0x40 != 0)
    }

    private static func malformed(_ command: Command, _ output: [UInt8]) -> CardError {
        CardError(.malformedAnswer, "\(output.count) bytes to PN532 command \([command.rawValue].hex)")
    }

    // MARK: The chip

    /// The result of GetFirmwareVersion (7.2.2).
    public struct FirmwareVersion: Hashable, Sendable {
        /// `32` for a PN532.
        public let chip: UInt8
        public let version: UInt8
        public let revision: UInt8
        /// Bit 0 ISO/IEC 14443 type A, bit 1 type B, bit 2 ISO/IEC 18092.
        public let support: UInt8
    }

    public func firmwareVersion() async throws -> FirmwareVersion {
        let output = try await send(.getFirmwareVersion)
        guard output.count == 4 else { throw Self.malformed(.getFirmwareVersion, output) }
        return FirmwareVersion(chip: output[0], version: output[1], revision: output[2], support: output[3])
    }

    /// The result of GetGeneralStatus (7.2.3).
    public struct GeneralStatus: Hashable, Sendable {
        /// A target that the chip communicates with.
        public struct Target: Hashable, Sendable {
            /// Tg, from 1.
            public let number: UInt8
            /// Bit rates: `00` 106, `01` 212, `02` 424 kbit/s.
            public let receiveRate: UInt8
            public let transmitRate: UInt8
            /// `00` ISO/IEC 14443, `10` FeliCa, `01` active mode, `02` Jewel.
            public let modulation: UInt8
        }

        /// The last error; nil for none.
        public let lastError: PN532Error?
        /// True if another device's field is present.
        public let isExternalFieldPresent: Bool
        public let targets: [Target]
        public let samStatus: UInt8
    }

    public func generalStatus() async throws -> GeneralStatus {
        let output = try await send(.getGeneralStatus)
        guard output.count >= 4, output[2] <= 2, output.count == 4 + 4 * Int(output[2]) else {
            throw Self.malformed(.getGeneralStatus, output)
        }
        return GeneralStatus(
            lastError: output[0] == 0 ? nil : PN532Error(rawValue: output[0]),
            isExternalFieldPresent: output[1] != 0,
            targets: stride(from: 3, to: output.count - 1, by: 4).map {
                GeneralStatus.Target(
                    number: output[$0], receiveRate: output[$0 + 1], transmitRate: output[$0 + 2],
                    modulation: output[$0 + 3])
            },
            samStatus: output[output.count - 1])
    }

    /// Reads up to 126 registers in the order of `addresses` (7.2.4).
    public func readRegisters(_ addresses: [UInt16]) async throws -> [UInt8] {
        let output = try await send(.readRegister, addresses.flatMap(\.bigEndianBytes))
        guard output.count == addresses.count else { throw Self.malformed(.readRegister, output) }
        return output
    }

    /// Writes up to 84 registers in order (7.2.5).
    public func writeRegisters(_ values: [(address: UInt16, value: UInt8)]) async throws {
        try await sendWithoutAnswer(.writeRegister, values.flatMap { $0.address.bigEndianBytes + [$0.value] })
    }

    /// SetParameters (7.2.9).
    public func setParameters(_ parameters: Parameters) async throws {
        try await sendWithoutAnswer(.setParameters, [parameters.rawValue])
    }

    /// SAMConfiguration (7.2.10): no SAM.  This also ends the low-power mode in which the chip wakes up.
    func useNoSAM() async throws { try await sendWithoutAnswer(.samConfiguration, [0x01]) }

    /// SetSerialBaudRate (7.2.8).  It takes effect once the host has acknowledged the response.
    func setSerialRate(_ rate: SerialRate) async throws {
        try await sendWithoutAnswer(.setSerialBaudRate, [rate.rawValue])
    }

    /// Returns true if the selected ISO/IEC 14443-4 card is still present; the card keeps its state (Diagnose, 7.2.1,
    /// test 06).
    func senseCard() async throws -> Bool {
        let output = try await send(.diagnose, [0x06])
        guard output.count == 1 else { throw Self.malformed(.diagnose, output) }
        return output[0] == 0x00
    }

    /// RFConfiguration (7.3.1).
    public func configure(_ item: RFConfiguration) async throws {
        try await sendWithoutAnswer(.rfConfiguration, item.bytes)
    }

    /// Removes power from all cards for `pause` and restores it.
    ///
    /// The field is on again afterwards, even if the wait is canceled.
    public func cycleField(pause: Duration = .milliseconds(10)) async throws {
        try await configure(.field(isOn: false))
        let wait: Result<Void, any Error>
        do { wait = .success(try await Time.sleep(for: pause)) } catch { wait = .failure(error) }
        try await toTheEnd { try await configure(.field(isOn: true)) }
        try wait.get()
    }

    // MARK: Targets

    /// Finds and selects cards of one technology (InListPassiveTarget, 7.3.5).  Earlier selections end.
    ///
    /// - Parameters:
    ///   - technology: the technology and rate to poll for.
    ///   - most: 1 or 2; other values become the nearest bound.  Two FeliCa cards are told apart by time slots, others
    ///     by anticollision.
    /// - Returns: the targets; two of them are a collision.
    public func listTargets(_ technology: PollingTechnology, most: Int = 1) async throws -> [PN532Target] {
        let most = UInt8(min(max(most, 1), 2))
        return try await list(technology, most: most, technology.initiatorData(most: most))
    }

    /// Finds and selects the type A card with this UID, among any other cards.
    ///
    /// - Parameter uid: 4, 7 or 10 bytes, without cascade tags.
    /// - Returns: nil if it is absent.
    public func listTarget(uid: [UInt8]) async throws -> PN532Target? {
        // The chip expects the cascade tag 88 before each part except the last (ISO/IEC 14443-3, 6.5.4).
        let cascaded: [UInt8]
        switch uid.count {
        case 4: cascaded = uid
        case 7: cascaded = [0x88] + uid
        case 10: cascaded = [0x88] + uid[..<3] + [0x88] + uid[3...]
        default: throw CardError(.unsupported, "a UID of \(uid.count) bytes")
        }
        return try await list(.typeA, most: 1, cascaded).first
    }

    private func list(
        _ technology: PollingTechnology, most: UInt8, _ initiatorData: [UInt8]
    ) async throws -> [PN532Target] {
        let output = try await send(.inListPassiveTarget, [most, technology.modulation] + initiatorData)
        guard let targets = PN532Target.list(output, technology), targets.count <= Int(most) else {
            throw Self.malformed(.inListPassiveTarget, output)
        }
        return targets
    }

    /// Exchanges `data` of any length with a target (InDataExchange, 7.3.8).
    ///
    /// For an ISO/IEC 14443-4 card, the data is an APDU, and the chip runs the protocol.  For other cards, it is one of
    /// their own commands that the chip knows.
    ///
    /// - Parameters:
    ///   - data: the bytes to send.
    ///   - number: Tg, 1 or 2.
    public func exchange(_ data: [UInt8], with number: UInt8) async throws -> [UInt8] {
        var rest = data[...]
        // MI in the target number: more of the command follows.
        while rest.count > maximumInput - 1 {
            let part = rest.prefix(maximumInput - 1)
            rest = rest.dropFirst(part.count)
            _ = try await sendForStatus(.inDataExchange, [number & 0x07 | 0x40] + part)
        }
        var answer = try await sendForStatus(.inDataExchange, [number & 0x07] + rest, data: true)
        var response = answer.data
        var parts = 1
        while answer.isMore {
            guard parts < Self.maximumParts, response.count <= Self.maximumResponse else {
                throw CardError(.malformedAnswer, "a chained response without end")
            }
            answer = try await sendForStatus(.inDataExchange, [number & 0x07], data: true)
            response += answer.data
            parts += 1
        }
        return response
    }

    /// Sends an unmodified frame with a checksum, and returns the received frame without it (InCommunicateThru, 7.3.9).
    ///
    /// - Parameter frame: up to 252 bytes.
    public func communicateThrough(_ frame: [UInt8]) async throws -> [UInt8] {
        try await sendForStatus(.inCommunicateThru, frame, data: true).data
    }

    /// Halts a target, which can be selected again; 0 for all (InDeselect, 7.3.10).
    public func deselect(_ number: UInt8 = 0) async throws {
        _ = try await sendForStatus(.inDeselect, [number])
    }

    /// Halts and releases a target; 0 for all (InRelease, 7.3.11).
    public func release(_ number: UInt8 = 0) async throws {
        _ = try await sendForStatus(.inRelease, [number])
    }

    /// Selects a target again (InSelect, 7.3.12).
    public func select(_ number: UInt8) async throws {
        _ = try await sendForStatus(.inSelect, [number])
    }

    /// Returns an APDU channel to an ISO/IEC 14443-4 card that ``listTargets(_:most:)`` found.
    public func channel(to target: PN532Target) -> any CardChannel {
        TargetChannel(chip: self, number: target.number)
    }
}

private struct TargetChannel: CardChannel {
    let chip: PN532
    let number: UInt8

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        let response = try await chip.exchange(command.bytes, with: number)
        guard !response.isEmpty else { throw CardError(.noAnswer) }
        do {
            return try ResponseAPDU(response)
        } catch {
            throw CardError(.malformedAnswer, cause: error)
        }
    }
}

extension UInt16 {
    var bigEndianBytes: [UInt8] { [UInt8(truncatingIfNeeded: self >> 8), UInt8(truncatingIfNeeded: self)] }
}
