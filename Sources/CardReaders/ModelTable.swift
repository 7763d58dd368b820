extension Model {
    /// Every model that more is known of than its descriptors tell.  Where a driver has to heed something, SmartCardUSB's
    /// `KnownReader` has it.
    public static let all: [Model] = [
        // Commands, lights and buzzer: ACS ACR122U API v2.04, 6.  One slot, short APDUs: libccid, readers/ACR122U_PICC.txt
        // (dwFeatures 00020040).  Firmware 1.x is that of the first readers, which are no CCID (6.3: `ACR122U214`).
        Model(
            "ACS ACR122U", ids: [0x072F_2200], names: ["ACR122"], commands: .pseudoAPDUs, chip: .pn532,
            lights: [.red, .green], hasBuzzer: true, unusableFirmware: ["ACR122U1"]),
        // The Touchatag's: the same commands, by XfrBlock alone (libnfc#201).  An ACR38U, for cards with contacts, has its ids.
        Model(
            "ACS ACR122 (Touchatag)", ids: [0x072F_90CC], names: ["ACR122"], sharesItsIDs: true,
            commands: .pseudoAPDUs, chip: .pn532, lights: [.red, .green], unusableFirmware: ["ACR122U1"]),
        // Boards on a serial port: NXP UM0701-02, 7.  The chip does ISO-DEP, so that extended APDUs pass.
        Model(
            "NXP PN532 board", names: ["PN532"], commands: .chip, chip: .pn532, extendedAPDUs: .yes),
    ]
}
