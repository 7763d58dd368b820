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
        // ACR1252U, two interfaces: libccid, readers/ACS_ACR1252_Dual_Reader.txt.  Escape commands: ACM1252U-Y3 reference manual
        // v1.03, 5.3, of its sister; 18, 20 and 23 as people with ACR1252U_V101.0 and V117.0 use them.  Extended APDUs: those of
        // more than one CCID message were seen to fail with bError C3 on V107 (acsccid#15, PCSC#54).  Its chip, a PN512, is
        // out of the host's reach.
        Model(
            "ACS ACR1252U", ids: [0x072F_223B], names: ["ACR1252 Dual"], commands: .escape(.acr1252),
            lights: [.red, .green], hasBuzzer: true, slots: [.contactless, .sam], extendedAPDUs: .failBeyond(512)),
        // The same without a SAM: readers/ACS_ACR1252_Reader.txt, ACS_ACR1252IMP_Reader.txt.
        Model(
            "ACS ACR1252", ids: [0x072F_223E, 0x072F_2259], names: ["ACR1252"], commands: .escape(.acr1252),
            lights: [.red, .green], hasBuzzer: true, extendedAPDUs: .failBeyond(512)),
        // ACR1255U-J1 reference manual v1.01, 6.6: lights by USB only, two of them, of two colors each.
        Model(
            "ACS ACR1255U-J1", ids: [0x072F_223F], names: ["ACR1255"],
            commands: .escape(Escape(lights: 0x29, buzzer: 0x28, automaticPolling: 0x23)),
            lights: [.red, .green, .blue], hasBuzzer: true, extendedAPDUs: .yes),
        // ACR1281U-C1 API v1.08, 5.3.  Slots: acsccid#4.  Extended APDUs to cards: acsccid#42, of its sister, are not sent.
        Model(
            "ACS ACR1281U", ids: [0x072F_2224], names: ["ACR1281U"],
            commands: .escape(Escape(buzzer: 0x28, operatingParameter: 0x20, automaticPolling: 0x23)),
            hasBuzzer: true, slots: [.contact, .contactless, .sam], extendedAPDUs: .no),
        // Slots: readers/ACS_ACR1251_Dual_Reader.txt.  Its escape commands are not known from a document here.
        Model(
            "ACS ACR1251U", ids: [0x072F_221A], names: ["ACR1251"], commands: .none, slots: [.contactless, .sam],
            extendedAPDUs: .yes),
        // REF-ACR1552U-Series 1.08, 6, as the Python package acr1552u has it.  Which cards it looks for is set by
        // `E0 00 01 20`, which is another command than that of the others.
        Model(
            "ACS ACR1552U", ids: [0x072F_2303, 0x072F_2308], names: ["ACR1552"],
            commands: .escape(
                Escape(firmware: 0x18, lights: 0x29, buzzer: 0x28, automaticPolling: 0x23, antenna: 0x25)),
            lights: [.green, .blue], hasBuzzer: true, extendedAPDUs: .yes),
        // Boards on a serial port: NXP UM0701-02, 7.  The chip does ISO-DEP, so that extended APDUs pass.
        Model(
            "NXP PN532 board", names: ["PN532"], commands: .chip, chip: .pn532, extendedAPDUs: .yes),
    ]
}

extension Model.Escape {
    fileprivate static let acr1252 = Model.Escape(
        firmware: 0x18, lights: 0x29, buzzer: 0x28, operatingParameter: 0x20, automaticPolling: 0x23, antenna: 0x25)
}
