package import SmartCard

extension ACR122U {
    /// The settings of an ACR122U and its PN532 that outlive a connection, in the order in which they are restored.
    ///
    /// The chip does not report its parameters, retries and timings: they return to their reset values, automatic RATS
    /// to the operating parameter's.  The timeout and the buzzer on detection are not restored: they can neither be
    /// read nor reset through the chip (ACS API v2.04, 6.6 and 6.7).
    package static let settings: [ReaderSetting] = [
        // RFConfiguration (UM0701-02, 7.3.1): CfgItem 02, 04 and 05.
        chipSetting("timings", changes: [[0x32, 0x02]]) { _ in
            [0x32] + PN532.RFConfiguration.initialTimings.bytes
        },
        chipSetting("retries of an exchange", changes: [[0x32, 0x04]]) { _ in
            [0x32] + PN532.RFConfiguration.exchangeRetries(0x00).bytes
        },
        // InListPassiveTarget, InATR, InJumpForDEP, InJumpForPSL, InAutoPoll; InRelease of all targets (UM0701-02,
        // 7.3).  A target that cannot be released may have left.
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

    /// The beginnings of the commands that a borrower of the chip sends: listing targets, parameters, retries, field,
    /// operating parameter.
    static let commandsOfChipUse: [[UInt8]] =
        [[0x4A], [0x12], [0x32, 0x05], [0x32, 0x01]].map { [0xFF, 0x00, 0x00, 0x00, 0x00, 0xD4] + $0 }
        + [[0xFF, 0x00, 0x51]]

    private static let readOperatingParameter: [UInt8] = [0xFF, 0x00, 0x50, 0x00, 0x00]

    /// - Parameters:
    ///   - changes: chip commands, without `D4`.
    ///   - restore: a chip command, without `D4`.
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
    /// Derives the parameter to restore from the answer to `FF 00 50`: the initial value if the reader did not poll.
    /// An earlier program left it so, and no program would find a card.
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
