/// A reader's departure from USB CCID or from expected behavior.  Each case changes the driver's behavior.
///
/// Precautions that the driver takes with all readers have no case: it reads bError only after a failed command, takes
/// an answer without data for a silent card, and passes on a reader's own answers however short.  Requests that it
/// never sends have none either: SET_INTERFACE, which makes clones hang (libnfc#535, libnfc#576), and queries of clock
/// frequencies and data rates, for which firmware 2.14 returns garbage (pyscard#18).
public enum ReaderQuirk: String, Hashable, Sendable, CaseIterable {
    /// Commands of class FF in XfrBlock address the reader and need no card.
    case commandsByXfrBlock = "commands-by-xfrblock"
    /// Any bPowerSelect works: the reader has no choice of voltages.
    case anyVoltage = "any-voltage"
    /// The bmICCStatus of XfrBlock and Escape does not describe the card; only that of GetSlotStatus does.
    case falseStatusInExchanges = "false-status-in-exchanges"
    /// GetSlotStatus is wrong as well: only the interrupt endpoint reports cards.
    case presenceByInterruptOnly = "presence-by-interrupt-only"
    /// After a message of more than 64 bytes, the bSeq of the answer may be one too low.
    case sequenceBehindAfterLongMessage = "sequence-behind"
    /// IccPowerOn without a card succeeds with the ATR `3B 00`.
    case emptyATRWithoutCard = "empty-atr-without-card"
    /// The first GetSlotStatus may take a second.
    case slowStart = "slow-start"
    /// Only one of its interfaces at a time takes commands.
    case oneInterfaceAtATime = "one-interface-at-a-time"
    /// Commands cannot be aborted.
    case noAbort = "no-abort"
    /// The answer to a light or buzzer command comes after the blinking.
    case blockingLights = "blocking-lights"
    /// The reader looks for cards only after an IccPowerOff.
    case looksAfterPowerOff = "looks-after-power-off"
}

/// A reader, or a range of its firmware versions, with its quirks.
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

    /// Returns the quirks of all matching entries.
    public static func quirks(vendorID: UInt16, productID: UInt16, release: UInt16) -> Set<ReaderQuirk> {
        all.filter { $0.vendorID == vendorID && $0.productID == productID && $0.releases.contains(release) }
            .reduce(into: []) { $0.formUnion($1.quirks) }
    }

    private static let anyRelease: ClosedRange<UInt16> = 0x0000...0xFFFF

    /// Every reader with a quirk.  Several entries may match one reader; their quirks add up.
    public static let all: [KnownReader] = [
        // ACS ACR122U, every firmware: no abort, according to the kernel's pn533_usb; bSeq as in acsccid; the rest from
        // captures (libnfc#263, nfcpy#105, nfcpy#154) and the ACS API v2.04.
        KnownReader(
            0x072F, 0x2200, anyRelease, "ACS ACR122U",
            [
                .commandsByXfrBlock, .anyVoltage, .falseStatusInExchanges, .sequenceBehindAfterLongMessage,
                .emptyATRWithoutCard, .slowStart, .noAbort, .blockingLights,
            ]),
        // acsccid: the slot status of these is unreliable.
        KnownReader(0x072F, 0x2200, 0x0200...0x0204, "ACS ACR122U 2.00 to 2.04", [.presenceByInterruptOnly]),
        // acsccid: power-off until it succeeds, and a pause of one second.
        KnownReader(0x072F, 0x2200, 0x0206...0x0206, "ACS ACR122U 2.06", [.looksAfterPowerOff]),
        // Touchatag: Escape fails with bError 05 or 07 (libnfc#201)
        KnownReader(
            0x072F, 0x90CC, anyRelease, "ACS ACR122 (Touchatag)",
            [.commandsByXfrBlock, .anyVoltage, .noAbort, .blockingLights]),
        // libccid never uses the interfaces of these at the same time.
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
