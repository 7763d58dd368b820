/// How a reader departs from USB CCID, or from what one would expect of a reader.  Each case changes what the driver does.
///
/// What the driver heeds with every reader has no case: bError is read only when a command failed, an answer without
/// data means a silent card, and a reader's own answers are handed on however short they are.  Nor has what it never
/// does: it sends no SET_INTERFACE, with which clones hang (libnfc#535, libnfc#576), and does not ask for clock
/// frequencies and data rates, for which firmware 2.14 has garbage (pyscard#18).
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
    /// Light and buzzer commands are answered when the blinking is over.
    case blockingLights = "blocking-lights"
    /// Looks for cards only after an IccPowerOff.
    case looksAfterPowerOff = "looks-after-power-off"
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
        // ACS ACR122U, every firmware: no abort, as the kernel's pn533_usb says; bSeq as in acsccid; the rest from captures
        // (libnfc#263, nfcpy#105, nfcpy#154) and the ACS API v2.04.
        KnownReader(
            0x072F, 0x2200, anyRelease, "ACS ACR122U",
            [
                .commandsByXfrBlock, .anyVoltage, .falseStatusInExchanges, .sequenceBehindAfterLongMessage,
                .emptyATRWithoutCard, .slowStart, .noAbort, .blockingLights,
            ]),
        // acsccid: the slot status of these is not to be trusted.
        KnownReader(0x072F, 0x2200, 0x0200...0x0204, "ACS ACR122U 2.00 to 2.04", [.presenceByInterruptOnly]),
        // acsccid: power-off until it succeeds, and a second's pause.
        KnownReader(0x072F, 0x2200, 0x0206...0x0206, "ACS ACR122U 2.06", [.looksAfterPowerOff]),
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
