import SmartCard

/// The relay resistance protocol (EMV Contactless Book C-2, 3.10 and 6.6, SR1): the time of the card's answer shows
/// whether it is nearby.  All times are in units of 100 microseconds.
extension Kernel2 {
    /// S3.61 to S3.64, and SR1.23 to SR1.27: each attempt uses a number that the card has not received, in the PDOL or
    /// before, so that nobody can have asked a distant card in advance.
    mutating func exchangeRelayResistanceData() -> KernelStep {
        let entropy = activation.unpredictableNumbers.next()
        data[.unpredictableNumber] = entropy
        data[.terminalRelayResistanceEntropy] = entropy
        return send(.exchangeRelayResistanceData(entropy), then: .waitingForRelayResistanceData)
    }

    mutating func takeRelayResistanceData(
        _ response: ResponseAPDU, after duration: Duration
    ) throws(Termination) -> KernelStep {
        // SR1.11 to SR1.13
        guard response.status == .success else {
            throw notThisCard(response, to: "EXCHANGE RELAY RESISTANCE DATA")
        }
        // SR1.14 to SR1.17: the last answer of a card that is asked again counts.
        let answer = response.data
        guard answer.count == 12, answer[0] == 0x80, answer[1] == 10 else {
            throw notThisCard(.parsingError, "EXCHANGE RELAY RESISTANCE DATA: not template 80 with 10 bytes")
        }
        data[.deviceRelayResistanceEntropy] = Array(answer[2..<6])
        data[.minimumRelayResistanceTime] = Array(answer[6..<8])
        data[.maximumRelayResistanceTime] = Array(answer[8..<10])
        data[.deviceEstimatedTransmissionTime] = Array(answer[10..<12])

        // SR1.18
        let (least, most) = (data.number(.minimumRelayResistanceTime), data.number(.maximumRelayResistanceTime))
        let (estimated, expected) = (
            data.number(.deviceEstimatedTransmissionTime), data.number(.terminalExpectedResponseTime)
        )
        let transmission = data.number(.terminalExpectedCommandTime) + min(estimated, expected)
        let measured = max(0, min(Self.units(duration) - transmission, 0xFFFF))
        data[.measuredRelayResistanceTime] = [UInt8(measured >> 8), UInt8(truncatingIfNeeded: measured)]

        // SR1.19 to SR1.21
        guard measured >= max(0, least - data.number(.minimumRelayResistanceGracePeriod)) else {
            throw notThisCard(.cardDataError, "the card answers before it can have an answer")
        }
        let isLate = measured > most + data.number(.maximumRelayResistanceGracePeriod)
        // SR1.22 to SR1.27
        let tries = data.byte(.rrpCounter)
        if isLate, tries < 2 {
            data[.rrpCounter] = [tries + 1]
            return exchangeRelayResistanceData()
        }
        // SR1.28 and SR1.29
        if isLate { verificationResults.insert(.relayResistanceTimeLimitsExceeded) }
        // SR1.30 and SR1.31
        let tolerance = data.number(.transmissionTimeMismatchThreshold)
        let isMismatch =
            estimated == 0 || expected == 0 || estimated * 100 / expected < tolerance
            || expected * 100 / estimated < tolerance
        if isMismatch || max(0, measured - least) > data.number(.relayResistanceAccuracyThreshold) {
            verificationResults.insert(.relayResistanceThresholdExceeded)
        }
        // SR1.32
        verificationResults.insert(.relayResistanceProtocolPerformed)
        return try beginReading()
    }

    private static func units(_ duration: Duration) -> Int {
        let (seconds, attoseconds) = duration.components
        guard seconds < 3_600 else { return Int.max / 2 }
        return Int(seconds) * 10_000 + Int(attoseconds / 100_000_000_000_000)
    }

    private static let signedData: [TLVTag] = [
        .terminalRelayResistanceEntropy, .deviceRelayResistanceEntropy, .minimumRelayResistanceTime,
        .maximumRelayResistanceTime, .deviceEstimatedTransmissionTime,
    ]

    /// The data that a card signs with its cryptogram after it has performed the protocol, in this order (S910.3.1,
    /// S910.4.1).
    var relayResistanceData: [UInt8] {
        Self.signedData.flatMap { data[$0] ?? [] }
    }
}
