package import SmartCard

extension ACR122U {
    /// What a command to an ACR122U or its PN532 changes for longer than a connection lasts, in the order in which it is put
    /// back.
    ///
    /// The chip cannot be asked for its parameters, retries and timings: they become what they are after a reset, automatic
    /// RATS as the operating parameter has it.  What neither can be read nor is the chip's own stays: the timeout and
    /// the buzzer on detection (ACS API v2.04, 6.6 and 6.7).
    package static let settings: [ReaderSetting] = [
        // RFConfiguration (UM0701-02, 7.3.1): CfgItem 02, 04 and 05.
        chipSetting("timings", changes: [[0x32, 0x02]]) { _ in
            [0x32] + PN532.RFConfiguration.initialTimings.bytes
        },
        chipSetting("retries of an exchange", changes: [[0x32, 0x04]]) { _ in
            [0x32] + PN532.RFConfiguration.exchangeRetries(0x00).bytes
        },
        // InListPassiveTarget, InATR, InJumpForDEP, InJumpForPSL, InAutoPoll; InRelease of all (UM0701-02, 7.3).  A target
        // that cannot be released may have left.
        chipSetting("targets", changes: [0x4A, 0x50, 0x56, 0x46, 0x60].map { [$0] }, mayFail: true) { _ in
            [0x52, 0x00]
        },
        chipSetting("retries", changes: [[0x32, 0x05]]) { _ in
            [0x32] + PN532.RFConfiguration.initialRetries.bytes
        },
        chipSetting("parameters", changes: [[0x12]], read: readOperatingParameter) { answer in
            let parameter = PICCOperatingParameter(restoring: answer)
            var parameters = PN532.Parameters.initial
            if !parameter.contains(.automaticATS) { parameters.remove(.automaticRATS) }
            return [0x12, parameters.rawValue]
        },
        chipSetting("field", changes: [[0x32, 0x01]]) { _ in
            [0x32] + PN532.RFConfiguration.field(isOn: true).bytes
        },
        ReaderSetting(
            "PICC operating parameter", changes: [[0xFF, 0x00, 0x51]], read: readOperatingParameter,
            restore: { [0xFF, 0x00, 0x51, PICCOperatingParameter(restoring: $0).rawValue, 0x00] },
            isDone: { command, answer in answer == [0x90, command[3]] || answer == [command[3]] }),
    ]

    /// Beginnings of what whoever borrows the chip sends: listing targets, parameters, retries, field, operating parameter.
    static let commandsOfChipUse: [[UInt8]] =
        [[0x4A], [0x12], [0x32, 0x05], [0x32, 0x01]].map { [0xFF, 0x00, 0x00, 0x00, 0x00, 0xD4] + $0 }
        + [[0xFF, 0x00, 0x51]]

    private static let readOperatingParameter: [UInt8] = [0xFF, 0x00, 0x50, 0x00, 0x00]

    /// - Parameters:
    ///   - changes: commands of the chip, without `D4`.
    ///   - restore: likewise.
    private static func chipSetting(
        _ name: String, changes: [[UInt8]], read: [UInt8]? = nil, mayFail: Bool = false,
        restore: @escaping @Sendable ([UInt8]?) -> [UInt8]
    ) -> ReaderSetting {
        let isDone: @Sendable ([UInt8], [UInt8]) -> Bool = { $1.first == 0xD5 && $1.suffix(2) == [0x90, 0x00] }
        return ReaderSetting(
            name, changes: changes.map { change in [0xFF, 0x00, 0x00, 0x00, nil, 0xD4] + change.map(Optional.some) },
            read: read,
            restore: { answer in
                let command = [0xD4] + restore(answer)
                return [0xFF, 0x00, 0x00, 0x00, UInt8(truncatingIfNeeded: command.count)] + command
            }, isDone: mayFail ? nil : isDone)
    }
}

extension PICCOperatingParameter {
    /// What a reader is left with whose answer to `FF 00 50` was this: its initial value where it did not look for cards by
    /// itself, because somebody had left it so, and no program would find a card on it.
    fileprivate init(restoring answer: [UInt8]?) {
        let value: UInt8? =
            switch answer {
            case let answer? where answer.count == 1: answer[0]
            case let answer? where answer.count == 2 && answer[0] == 0x90: answer[1]
            default: nil
            }
        let parameter = value.map(Self.init(rawValue:)) ?? .initial
        self = parameter.contains(.automaticPolling) ? parameter : .initial
    }
}
