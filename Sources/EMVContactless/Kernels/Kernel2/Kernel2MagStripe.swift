import SmartCard

/// Mag-stripe mode (EMV Contactless Book C-2, 6: S7, S8, S78, S13 and S14): the card supplies tracks, and digits for
/// them that differ each time.
///
/// The waiting times after a failure, S13.2, S13.30, S13.42.1, S13.44.1 and their counterparts in S14, are left out.
extension Kernel2 {
    mutating func takeMagStripeRecord(_ response: ResponseAPDU) throws(Termination) -> KernelStep {
        // S7.9 and S7.10
        guard response.status == .success else { throw notThisCard(response, to: "READ RECORD") }
        // S7.11 to S7.13
        try storeRecord(response)
        // S7.14 and S7.15
        exchange.dataNeeded += data.missing(for: data[.udol]).filter { !exchange.dataNeeded.contains($0) }
        // S7.16 to S7.19
        if let command = records?.command { return send(command, then: .waitingForMagStripeRecord) }
        try checkTracks()
        return try proceedMagStripe()
    }

    /// S7.20 to S7.23
    private mutating func checkTracks() throws(Termination) {
        for tag in [.track2Data, .punatcTrack2, .pcvc3Track2, .natcTrack2] as [TLVTag] where data[tag] == nil {
            throw notThisCard(.cardDataMissing, "the card does not give \(tag)")
        }
        unpredictableDigits = unpredictableDigits(.punatcTrack2, .natcTrack2)
        var isConsistent = (0...8).contains(unpredictableDigits)
        if data[.track1Data] != nil {
            isConsistent =
                isConsistent && data[.pcvc3Track1] != nil && data[.punatcTrack1] != nil && data[.natcTrack1] != nil
                && unpredictableDigits(.punatcTrack1, .natcTrack1) == unpredictableDigits
        }
        guard isConsistent else {
            throw notThisCard(.cardDataError, "the positions of the unpredictable digits do not fit")
        }
        guard let second = data[.track2Data], let track = try? Track2(second) else {
            throw notThisCard(.cardDataError, "9F6B is not a track")
        }
        data[.ddCardTrack2] = Self.packedDigits(track.discretionaryData)
        if let first = data[.track1Data] {
            guard let track = try? Track1(first) else { throw notThisCard(.cardDataError, "56 is not a track") }
            data[.ddCardTrack1] = Array(track.discretionaryData.utf8)
        }
    }

    /// Positions for the unpredictable number and the counter, without those of the counter.
    private func unpredictableDigits(_ positions: TLVTag, _ counterDigits: TLVTag) -> Int {
        (data[positions] ?? []).reduce(0) { $0 + $1.nonzeroBitCount } - data.number(counterDigits)
    }

    /// S78
    mutating func proceedMagStripe() throws(Termination) -> KernelStep {
        // S78.1 to S78.7
        if isHeldBack { return waitForFirstWriteFlag(.waitingForMagStripeFirstWriteFlag) }
        // S78.10 and S78.11
        guard amount <= transactionLimit else {
            throw selectNext(.maximumLimitExceeded, "the amount is above the limit")
        }
        // S78.12 to S78.14
        collectAllReadTags()
        // S78.15 and 8.1: a separate number, with as many digits as there are positions.
        let random = activation.unpredictableNumbers.next().reduce(0) { $0 << 8 | UInt64($1) }
        let modulus = (0..<unpredictableDigits).reduce(1 as UInt64) { product, _ in product * 10 }
        data[.unpredictableNumberNumeric] = packed(random % modulus, bytes: 4)
        // S78.16 to S78.22
        if verifiesOnDevice, exceedsCVMLimit {
            data[.mobileSupportIndicator] = [data.byte(.mobileSupportIndicator) | MobileSupport.cvmRequired.rawValue]
        }
        do throws(MalformedCardData) {
            let related = try data.related(to: data[.udol] ?? data[.defaultUDOL] ?? [])
            return send(
                .computeCryptographicChecksum(related),
                then: verifiesOnDevice ? .waitingForChecksumOnDevice : .waitingForChecksum)
        } catch {
            throw notThisCard(.cardDataError, "UDOL: \(error.reason)")
        }
    }

    /// S13.9 to S13.13, S14.9 to S14.13
    private mutating func storeChecksum(_ response: ResponseAPDU) throws(Termination) {
        guard response.status == .success else {
            throw notThisCard(response, to: "COMPUTE CRYPTOGRAPHIC CHECKSUM")
        }
        try store(response, to: "COMPUTE CRYPTOGRAPHIC CHECKSUM")
        // S13.12.1, S14.12.1
        shown.append(UserInterfaceRequest(.clearDisplay, .cardReadSuccessfully))
    }

    mutating func takeChecksum(_ response: ResponseAPDU) throws(Termination) -> KernelStep {
        try storeChecksum(response)
        // S13.14.1 and S13.14.4
        guard data[.applicationTransactionCounter] != nil else {
            throw notThisCard(.cardDataMissing, "the card does not give 9F36")
        }
        // S13.14.2 to S13.14.4, S13.41 to S13.45
        guard data[.cvc3Track2] != nil else {
            guard data[.posCardholderInteractionInformation] != nil else {
                throw notThisCard(.cardDataMissing, "the card does not give 9F61")
            }
            return withoutChecksum()
        }
        // S13.14.5
        try requireChecksumOfTrack1()
        // S13.15 to S13.23
        try completeTracks()
        // S13.24 to S13.26
        cvm = Self.magStripeCVM(
            data.byte(exceedsCVMLimit ? .magStripeCVMCapabilityRequired : .magStripeCVMCapabilityNotRequired))
        receipt = exceedsCVMLimit || cvm == .signature
        return online("mag-stripe mode goes online")
    }

    mutating func takeChecksumOnDevice(_ response: ResponseAPDU) throws(Termination) -> KernelStep {
        try storeChecksum(response)
        // S14.14 and S14.17
        for tag in [.applicationTransactionCounter, .posCardholderInteractionInformation] as [TLVTag]
        where data[tag] == nil {
            throw notThisCard(.cardDataMissing, "the card does not give \(tag)")
        }
        // S14.15, S14.19.1 to S14.23
        guard data[.cvc3Track2] != nil else { return withoutChecksum() }
        // S14.16
        try requireChecksumOfTrack1()
        // S14.20 to S14.21.1
        guard hasVerifiedOnDevice || !exceedsCVMLimit else {
            throw notThisCard(.cardDataError, "the device has not verified the cardholder")
        }
        // S14.24 to S14.31
        try completeTracks()
        // S14.32 to S14.34
        cvm = hasVerifiedOnDevice ? .deviceCVM : Outcome.CVM.none
        receipt = hasVerifiedOnDevice && exceedsCVMLimit
        return online("mag-stripe mode goes online")
    }

    private func online(_ reason: String) -> KernelStep {
        KernelStep(.outcome(outcome(.onlineRequest, hasDataRecord: true, reason: reason)))
    }

    /// Handles a device that returns no checksum, and gives the reason: the cardholder has to act, or it declines
    /// (S13.41 to S13.45, S14.19.1 to S14.23).
    private mutating func withoutChecksum() -> KernelStep {
        if asksForSecondTap { return seePhone() }
        return KernelStep(
            .outcome(
                outcome(
                    .declined,
                    request: UserInterfaceRequest(.notAuthorized, .notReady, holdTime: messageHoldTime),
                    hasDataRecord: true, reason: "the device gives no checksum")))
    }

    private func requireChecksumOfTrack1() throws(Termination) {
        guard data[.track1Data] == nil || data[.cvc3Track1] != nil else {
            throw notThisCard(.cardDataMissing, "the card does not give 9F60")
        }
    }

    /// S13.15 to S13.23, S14.25 to S14.31
    private mutating func completeTracks() throws(Termination) {
        // nUN', which tells the issuer whether the device has verified the cardholder.
        let indicator = hasVerifiedOnDevice ? (unpredictableDigits + 5) % 10 : unpredictableDigits
        func digits(_ positions: TLVTag, _ checksum: TLVTag, _ counter: TLVTag, _ checksumPositions: TLVTag)
            -> DynamicDigits
        {
            DynamicDigits(
                checksum: data.number(checksum), checksumPositions: data[checksumPositions] ?? [],
                unpredictableNumber: data[.unpredictableNumberNumeric] ?? [],
                unpredictableDigits: unpredictableDigits, counter: data.number(.applicationTransactionCounter),
                counterDigits: data.number(counter), positions: data[positions] ?? [], indicator: indicator)
        }
        let second = digits(.punatcTrack2, .cvc3Track2, .natcTrack2, .pcvc3Track2)
        guard let track = data[.track2Data].flatMap({ second.complete(track2: $0) }) else {
            throw notThisCard(.cardDataError, "9F6B has no room for the dynamic digits")
        }
        data[.track2Data] = track
        guard let value = data[.track1Data] else { return }
        let first = digits(.punatcTrack1, .cvc3Track1, .natcTrack1, .pcvc3Track1)
        guard let track = first.complete(track1: value) else {
            throw notThisCard(.cardDataError, "56 has no room for the dynamic digits")
        }
        data[.track1Data] = track
    }

    /// DF811E and DF812C have the values of the outcome parameter set.
    private static func magStripeCVM(_ capability: UInt8) -> Outcome.CVM? {
        switch MagStripeCVM(capability: capability) {
        case .noCVM: Outcome.CVM.none
        case .signature: .signature
        case .onlinePIN: .onlinePIN
        default: nil
        }
    }

    /// Format cn.
    private static func packedDigits(_ digits: String) -> [UInt8] {
        (try? [UInt8](hex: digits.count % 2 == 0 ? digits : digits + "F")) ?? []
    }
}

/// The dynamic digits in the discretionary data of a track (Book C-2, S13.18 to S13.22).
///
/// Positions are counted from the end: the last bit of a map stands for the last digit.
struct DynamicDigits {
    /// CVC3, a number of two bytes.
    let checksum: Int
    /// PCVC3.
    let checksumPositions: [UInt8]
    /// Digits in format n.
    let unpredictableNumber: [UInt8]
    /// nUN.
    let unpredictableDigits: Int
    /// ATC.
    let counter: Int
    /// NATC.
    let counterDigits: Int
    /// PUNATC: the positions furthest from the end are for the counter, the others for the unpredictable number.
    let positions: [UInt8]
    /// nUN', in the last position.
    let indicator: Int

    /// Completes track 2.
    ///
    /// - Parameter track: tag 9F6B.
    /// - Returns: nil if it is not a track, or lacks one of the positions.
    func complete(track2 track: [UInt8]) -> [UInt8]? {
        guard let count = (try? Track2(track))?.discretionaryData.count else { return nil }
        var digits = Array(track.hex.utf8)
        let filling = digits.reversed().prefix { $0 == UInt8(ascii: "F") }.count
        let end = digits.count - filling
        guard place(in: &digits, (end - count)..<end) else { return nil }
        return try? [UInt8](hex: String(decoding: digits, as: UTF8.self))
    }

    /// Completes track 1.
    ///
    /// - Parameter track: tag 56.
    /// - Returns: nil if it is not a track, or lacks one of the positions.
    func complete(track1 track: [UInt8]) -> [UInt8]? {
        guard let count = (try? Track1(track))?.discretionaryData.count else { return nil }
        var track = track
        guard place(in: &track, (track.count - count)..<track.count) else { return nil }
        return track
    }

    /// Places the digits in the range.
    ///
    /// - Returns: false if a position is not in the range.
    private func place(in text: inout [UInt8], _ range: Range<Int>) -> Bool {
        // From the last position to the first.
        func list(_ map: [UInt8]) -> [Int] {
            map.reversed().enumerated().flatMap { byte, bits in
                (0..<8).filter { bits & 1 << $0 != 0 }.map { byte * 8 + $0 }
            }
        }
        // From the last digit to the first.
        func digits(_ number: UInt64, _ count: Int) -> [UInt8] {
            var rest = number
            return (0..<count).map { _ in
                defer { rest /= 10 }
                return UInt8(ascii: "0") + UInt8(rest % 10)
            }
        }
        let checksumPlaces = list(checksumPositions)
        let places = list(positions)
        guard let last = range.last, places.count == unpredictableDigits + counterDigits,
            (checksumPlaces + places).allSatisfy({ $0 < range.count })
        else { return false }
        func put(_ digits: [UInt8], _ places: some Sequence<Int>) {
            for (digit, place) in zip(digits, places) { text[last - place] = digit }
        }
        put(digits(UInt64(checksum), checksumPlaces.count), checksumPlaces)
        let number = UInt64(unpredictableNumber.hex) ?? 0
        put(digits(number, unpredictableDigits), places.prefix(unpredictableDigits))
        put(digits(UInt64(counter), counterDigits), places.dropFirst(unpredictableDigits))
        text[last] = UInt8(ascii: "0") + UInt8(indicator)
        return true
    }
}
