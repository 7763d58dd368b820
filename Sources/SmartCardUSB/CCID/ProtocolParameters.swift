import SmartCard

/// The protocol parameters in SetParameters (USB CCID 1.10, 6.1.7), from the card's ATR (ISO/IEC 7816-3, 8.3 and 11.4).
struct ProtocolParameters: Hashable, Sendable {
    let transmissionProtocol: TransmissionProtocol
    /// TA1: clock rate conversion and baud rate adjustment, 11 if absent.
    let fd: UInt8
    private let isInverse: Bool
    /// TC1.
    private let guardTime: UInt8
    /// WI of T=0 (TC2), BWI and CWI of T=1 (TBi).
    private let waitingIntegers: UInt8
    /// IFSC of T=1 (TAi), 1 to 254.
    let ifsc: UInt8
    /// True if T=1 blocks end with a CRC instead of an LRC.
    let usesCRC: Bool

    var protocolNumber: UInt8 { transmissionProtocol == .t0 ? 0 : 1 }

    /// - Parameter fd: overrides the speed in the ATR.
    init(_ atr: ATR, _ transmissionProtocol: TransmissionProtocol, fd: UInt8? = nil) {
        self.transmissionProtocol = transmissionProtocol
        let global = atr.interfaceGroups.first
        self.fd = fd ?? global?.ta ?? 0x11
        isInverse = atr.convention == .inverse
        guardTime = global?.tc ?? 0
        // Specific interface bytes begin at the second TD that names T.
        let specific = atr.interfaceGroups.dropFirst(2).first { $0.t == 1 }
        if transmissionProtocol == .t0 {
            waitingIntegers = atr.interfaceGroups.dropFirst().first?.tc ?? 0x0A
            (ifsc, usesCRC) = (0x20, false)
        } else {
            waitingIntegers = specific?.tb ?? 0x4D
            let announced = specific?.ta ?? 0x20
            ifsc = (1...254).contains(announced) ? announced : 0x20
            usesCRC = specific?.tc.map { $0 & 1 == 1 } ?? false
        }
    }

    /// abProtocolDataStructure: 5 bytes for T=0, 7 for T=1.
    var bytes: [UInt8] {
        let convention: UInt8 = isInverse ? 0x02 : 0x00
        return transmissionProtocol == .t0
            ? [fd, convention, guardTime, waitingIntegers, 0x00]
            : [fd, 0x10 | convention | (usesCRC ? 0x01 : 0x00), guardTime, waitingIntegers, 0x00, ifsc, 0x00]
    }

    /// Returns the longest time for a T=1 block: BWT until it begins, plus 260 characters (ISO/IEC 7816-3, 11.4.3).
    ///
    /// - Parameter kilohertz: the clock.
    func timeForABlock(kilohertz: UInt32) -> Duration {
        let clock = max(kilohertz, 1000)
        let (bwi, cwi) = (min(waitingIntegers >> 4, 9), waitingIntegers & 0x0F)
        let etus = 11 + (11 + 1 << UInt64(cwi)) + 260 * (12 + UInt64(guardTime == 0xFF ? 0 : guardTime))
        let rate = Self.rate(fd: fd, kilohertz: clock) ?? UInt64(clock) * 1000 / 372
        let microseconds = 960 * 372 * 1000 * (1 << UInt64(bwi)) / UInt64(clock) + 1_000_000 * etus / max(rate, 1)
        return .microseconds(Int64(microseconds)) + .seconds(1)
    }

    /// Returns the bit/s at a clock of `kilohertz` (ISO/IEC 7816-3, tables 7 and 8); nil for reserved values.
    static func rate(fd: UInt8, kilohertz: UInt32) -> UInt64? {
        let f = [372, 372, 558, 744, 1116, 1488, 1860, 0, 0, 512, 768, 1024, 1536, 2048, 0, 0] as [UInt64]
        let d = [0, 1, 2, 4, 8, 16, 32, 64, 12, 20, 0, 0, 0, 0, 0, 0] as [UInt64]
        let (fi, di) = (f[Int(fd >> 4)], d[Int(fd & 0x0F)])
        return fi > 0 && di > 0 ? UInt64(kilohertz) * 1000 * di / fi : nil
    }
}

/// The protocol and speed for a card, and the steps to set them.
struct ProtocolChoice: Hashable, Sendable {
    let parameters: ProtocolParameters
    /// The PPS request to send first, if any (ISO/IEC 7816-3, 9).
    let pps: [UInt8]?
    /// True if the reader must receive the parameters.
    let setsParameters: Bool

    /// - Throws: `CardError` of kind `protocolMismatch` if the reader supports none of the card's protocols.
    init(_ atr: ATR, _ descriptor: CCIDDescriptor) throws(CardError) {
        let offered = atr.protocols.compactMap { $0 == 0 ? TransmissionProtocol.t0 : $0 == 1 ? .t1 : nil }
        // TA2: the card is in specific mode and offers no choice (ISO/IEC 7816-3, 8.3).
        let ta2 = atr.interfaceGroups.dropFirst().first?.ta
        // The reader makes up a contactless card's ATR: it names T=0 first but means T=1 (PC/SC part 3, 3.1.3.2.3).
        let preferred = atr.contactless == nil ? offered : offered.filter { $0 == .t1 } + offered
        let candidates = ta2 == nil ? preferred : Array(offered.prefix(1))
        let handlesAPDUs = descriptor.exchangeLevel == .shortAPDU || descriptor.exchangeLevel == .extendedAPDU
        guard
            let chosen = candidates.first(where: descriptor.speaks)
                // The reader has negotiated with the card, whatever the ATR says.
                ?? (handlesAPDUs ? [.t1, .t0].first(where: descriptor.speaks) ?? .t1 : nil)
        else { throw CardError(.protocolMismatch) }

        let features = descriptor.features
        guard !features.contains(.automaticParameterNegotiation) else {
            (parameters, pps, setsParameters) = (ProtocolParameters(atr, chosen), nil, false)
            return
        }
        let offeredSpeed = atr.interfaceGroups.first?.ta ?? 0x11
        let isFastEnough =
            ProtocolParameters.rate(fd: offeredSpeed, kilohertz: descriptor.defaultClock)
            .map { $0 <= UInt64(descriptor.maximumDataRate) } ?? false
        let speed = ta2 != nil || isFastEnough ? offeredSpeed : 0x11
        parameters = ProtocolParameters(atr, chosen, fd: speed)
        setsParameters = true
        let needsPPS = ta2 == nil && (chosen != offered.first || speed != 0x11)
        guard needsPPS, !features.contains(.automaticPPS), descriptor.exchangeLevel == .tpdu else {
            pps = nil
            return
        }
        let request = [0xFF, speed == 0x11 ? 0x00 : 0x10 | parameters.protocolNumber] as [UInt8]
        let body = speed == 0x11 ? [0xFF, parameters.protocolNumber] : request + [speed]
        pps = body + [body.reduce(0, ^)]
    }
}
