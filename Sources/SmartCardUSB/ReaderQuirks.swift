/// How a reader departs from USB CCID, or from what one would expect of a reader.
///
/// Those that the driver heeds by itself for every reader have no case: bError is read only when a command failed, an
/// answer without data means a silent card, and answers from the reader are handed on however short they are.
public enum ReaderQuirk: String, Hashable, Sendable, CaseIterable {
    /// Commands of class FF in XfrBlock are the reader's own; they need no card.
    case commandsByXfrBlock = "commands-by-xfrblock"
    /// Any bPowerSelect will do: there is nothing to choose between.
    case anyVoltage = "any-voltage"
    /// bmICCStatus of XfrBlock and Escape says nothing of a card; only GetSlotStatus does.
    case falseStatusInExchanges = "false-status-in-exchanges"
    /// GetSlotStatus says nothing either: only the interrupt endpoint tells of cards.
    case presenceByInterruptOnly = "presence-by-interrupt-only"
    /// After a message of more than 64 bytes bSeq of the answer may be one too low.
    case sequenceBehindAfterLongMessage = "sequence-behind"
    /// IccPowerOn without a card succeeds with the ATR `3B 00`.
    case emptyATRWithoutCard = "empty-atr-without-card"
    /// The first GetSlotStatus may take a second.
    case slowStart = "slow-start"
    /// Of its interfaces only one at a time takes commands.
    case oneInterfaceAtATime = "one-interface-at-a-time"
    /// Commands cannot be aborted.
    case noAbort = "no-abort"
    /// Answers of a byte or two stand where a status word is due: `7F`, `90 7F`.
    case shortAnswers = "short-answers"
    /// Light and buzzer commands are answered when the blinking is over.
    case blockingLights = "blocking-lights"
    /// MIFARE Classic: every failure is `63 00`, and after a failed authentication the card has to be selected anew.
    case mifareFailsWithoutCause = "mifare-fails-without-cause"
    /// GET_CLOCK_FREQUENCIES and GET_DATA_RATES are answered with garbage.
    case garbageRates = "garbage-rates"
    /// SET_INTERFACE makes clones hang.
    case hangsOnSetInterface = "hangs-on-set-interface"
}

/// A reader, or a range of its firmware, and its quirks.
public struct KnownReader: Hashable, Sendable {
    public let vendorID: UInt16
    public let productID: UInt16
    /// bcdDevice.
    public let releases: ClosedRange<UInt16>
    public let name: String
    public let quirks: Set<ReaderQuirk>

    private init(
        _ vendorID: UInt16, _ productID: UInt16, _ releases: ClosedRange<UInt16>, _ name: String,
        _ quirks: Set<ReaderQuirk>
    ) {
        (self.vendorID, self.productID, self.releases) = (vendorID, productID, releases)
        (self.name, self.quirks) = (name, quirks)
    }

    /// The quirks of all entries that fit.
    public static func quirks(vendorID: UInt16, productID: UInt16, release: UInt16) -> Set<ReaderQuirk> {
        all.filter { $0.vendorID == vendorID && $0.productID == productID && $0.releases.contains(release) }
            .reduce(into: []) { $0.formUnion($1.quirks) }
    }

    private static let anyRelease: ClosedRange<UInt16> = 0x0000...0xFFFF

    /// Every reader with a quirk.  Several entries may fit one reader; their quirks add up.
    public static let all: [KnownReader] = [
        // ACS ACR122U, every firmware: no abort, as the kernel's pn533_usb says; the rest from captures (libnfc#263,
        // libnfc#535, libnfc#576, nfcpy#105, nfcpy#154) and the ACS API v2.04.
        KnownReader(
            0x072F, 0x2200, anyRelease, "ACS ACR122U",
            [
                .commandsByXfrBlock, .anyVoltage, .falseStatusInExchanges, .sequenceBehindAfterLongMessage,
                .emptyATRWithoutCard, .slowStart, .noAbort, .shortAnswers, .blockingLights, .mifareFailsWithoutCause,
                .hangsOnSetInterface,
            ]),
        // acsccid: the slot status of these is not to be trusted.
        KnownReader(0x072F, 0x2200, 0x0200...0x0204, "ACS ACR122U 2.00 to 2.04", [.presenceByInterruptOnly]),
        // pyscard#18
        KnownReader(0x072F, 0x2200, 0x0214...0x0214, "ACS ACR122U 2.14", [.garbageRates]),
        // Touchatag: Escape fails with bError 05 or 07 (libnfc#201)
        KnownReader(
            0x072F, 0x90CC, anyRelease, "ACS ACR122 (Touchatag)",
            [.commandsByXfrBlock, .anyVoltage, .noAbort, .blockingLights]),
        // libccid keeps the interfaces of these apart in time.
        KnownReader(0x072F, 0x221A, anyRelease, "ACS ACR1251", [.oneInterfaceAtATime]),
        KnownReader(0x072F, 0x223B, anyRelease, "ACS ACR1252", [.oneInterfaceAtATime]),
        KnownReader(0x072F, 0x2259, anyRelease, "ACS ACR1252IMP", [.oneInterfaceAtATime]),
        KnownReader(0x072F, 0x2303, anyRelease, "ACS ACR1552", [.oneInterfaceAtATime]),
        KnownReader(0x076B, 0x5422, anyRelease, "HID OMNIKEY 5422", [.oneInterfaceAtATime]),
        // libccid waits longer for the first slot status of these.
        KnownReader(0x04E6, 0x5293, anyRelease, "Identiv SCL011", [.slowStart]),
        KnownReader(0x04E6, 0x5790, anyRelease, "Identiv uTrust 3700 F", [.slowStart]),
        KnownReader(0x04E6, 0x5791, anyRelease, "Identiv uTrust 3701 F", [.slowStart]),
        KnownReader(0x04E6, 0x5724, anyRelease, "Identiv uTrust 4701 F", [.slowStart]),
    ]
}
