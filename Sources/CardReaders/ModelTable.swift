extension Model {
    /// Every model with facts beyond its descriptors.  Quirks that a driver must handle are in SmartCardUSB's
    /// `KnownReader`.
    public static let all: [Model] = [
        // One slot, short APDUs: libccid, readers/ACR122U_PICC.txt (dwFeatures 00020040).  Firmware 1.x belongs to the
        // first readers, which are not CCID (ACS API v2.04, 6.3: `ACR122U214`).
        Model(
            "ACS ACR122U", ids: [0x072F_2200], names: ["ACR122"], commands: .pseudoAPDUs, functions: acr122u,
            chip: .pn532, lights: [.red: 0x01, .green: 0x02], unusableFirmware: ["ACR122U1"]),
        // The Touchatag takes the same commands, by XfrBlock only (libnfc#201).  An ACR38U, for contact cards, shares
        // its ids.
        Model(
            "ACS ACR122 (Touchatag)", ids: [0x072F_90CC], names: ["ACR122"], sharesItsIDs: true,
            commands: .pseudoAPDUs, functions: acr122u, chip: .pn532, lights: [.red: 0x01, .green: 0x02],
            unusableFirmware: ["ACR122U1"]),
        // Two interfaces: libccid, readers/ACS_ACR1252_Dual_Reader.txt.  Extended APDUs of more than one CCID message
        // failed with bError C3 on V107 (acsccid#15, PCSC#54).  The host cannot reach its chip, a PN512.
        Model(
            "ACS ACR1252U", ids: [0x072F_223B], names: ["ACR1252 Dual"], commands: .escape, functions: acr1252u,
            lights: [.red: 0x01, .green: 0x02], slots: [.contactless, .sam], extendedAPDUs: .failBeyond(512)),
        // The model without a SAM slot: readers/ACS_ACR1252_Reader.txt, ACS_ACR1252IMP_Reader.txt.
        Model(
            "ACS ACR1252", ids: [0x072F_223E, 0x072F_2259], names: ["ACR1252"], commands: .escape,
            functions: acr1252u, lights: [.red: 0x01, .green: 0x02], extendedAPDUs: .failBeyond(512)),
        // Two lights of two colors each, over USB only.
        Model(
            "ACS ACR1255U-J1", ids: [0x072F_223F], names: ["ACR1255"], commands: .escape, functions: acr1255u,
            lights: [.green: 0x01, .red: 0x02, .blue: 0x04], extendedAPDUs: .yes),
        // Slots: acsccid#4.  Extended APDUs to cards are not sent: acsccid#42, about its sister model.
        Model(
            "ACS ACR1281U", ids: [0x072F_2224], names: ["ACR1281U"], commands: .escape, functions: acr1281u,
            lights: [.red: 0x01, .green: 0x02], slots: [.contact, .contactless, .sam], extendedAPDUs: .no),
        // Slots: readers/ACS_ACR1251_Dual_Reader.txt.
        Model(
            "ACS ACR1251U", ids: [0x072F_221A], names: ["ACR1251"], commands: .escape, functions: acr1251u,
            slots: [.contactless, .sam], extendedAPDUs: .yes),
        Model(
            "ACS ACR1552U", ids: [0x072F_2303, 0x072F_2308], names: ["ACR1552"], commands: .escape,
            functions: acr1552u, lights: [.blue: 0x01, .green: 0x02], extendedAPDUs: .yes),
        // Boards on a serial port: NXP UM0701-02, 7.  The chip implements ISO-DEP, so extended APDUs pass.
        Model(
            "NXP PN532 board", names: ["PN532"], commands: .chip, chip: .pn532, extendedAPDUs: .yes),
    ]

    // MARK: Commands

    /// ACS ACR122U API v2.04.  Automatic polling is bit 7 of the operating parameter; the antenna is the chip's.
    private static let acr122u: [Function: Command] = [
        .firmware: Command(get: [0xFF, 0x00, 0x48], "ACR122U API v2.04, 6.3"),
        .lights: Command(set: [0xFF, 0x00, 0x40], "ACR122U API v2.04, 6.2"),
        .buzzer: Command(set: [0xFF, 0x00, 0x40], "ACR122U API v2.04, 6.2"),
        .operatingParameter: Command(
            get: [0xFF, 0x00, 0x50], set: [0xFF, 0x00, 0x51], "ACR122U API v2.04, 6.4 and 6.5"),
        .antenna: Command(set: [0xFF, 0x00, 0x00, 0x00, 0x04, 0xD4, 0x32, 0x01], "ACR122U API v2.04, 6.1 and 7"),
        .transparentExchange: Command(set: [0xFF, 0x00, 0x00, 0x00], "ACR122U API v2.04, 6.1"),
    ]

    /// From the manual of the module version of this reader.  A real reader keeps 20 and 23 when unplugged.
    private static let acr1252u: [Function: Command] = [
        .firmware: Command(get: e0(0x18), "ACM1252U-Y3 reference manual v1.03, 5.3.1"),
        .lights: Command(get: e0(0x29), set: e0(0x29), "ACM1252U-Y3 reference manual v1.03, 5.3.2 and 5.3.3"),
        .buzzer: Command(set: e0(0x28), "ACM1252U-Y3 reference manual v1.03, 5.3.4"),
        .automaticPolling: Command(
            get: e0(0x23), set: e0(0x23), initial: [0x8B], "ACM1252U-Y3 reference manual v1.03, 5.3.8 and 5.3.9"),
        .operatingParameter: Command(
            get: e0(0x20), set: e0(0x20), initial: [0x1F], "ACM1252U-Y3 reference manual v1.03, 5.3.10 and 5.3.11"),
        // Absent from the module's manual.
        .antenna: Command(
            get: e0(0x25), set: e0(0x25), initial: [0x01], "as of the ACR1251U and ACR1255U-J1", isUnconfirmed: true),
        .transparentExchange: Command(set: [0xFF, 0xC2, 0x00, 0x01], "ACM1252U-Y3 reference manual v1.03, 5.2.3"),
    ]

    private static let acr1255u: [Function: Command] = [
        .firmware: Command(get: e0(0x18), "ACR1255U-J1 reference manual v1.01, 6.6.1"),
        .lights: Command(get: e0(0x29), set: e0(0x29), "ACR1255U-J1 reference manual v1.01, 6.6.3 and 6.6.4"),
        .buzzer: Command(set: e0(0x28), "ACR1255U-J1 reference manual v1.01, 6.6.5"),
        .automaticPolling: Command(
            get: e0(0x23), set: e0(0x23), initial: [0x8F], "ACR1255U-J1 reference manual v1.01, 6.6.8 and 6.6.9"),
        // From the section headings; the bytes are those of the ACR1252U and ACR1281U.
        .operatingParameter: Command(
            get: e0(0x20), set: e0(0x20), "ACR1255U-J1 reference manual v1.01, headings of 6.6.10 and 6.6.11",
            isUnconfirmed: true),
        .antenna: Command(
            set: e0(0x25), initial: [0x01], "ACR1255U-J1 reference manual v1.01, heading of 6.6.14", isUnconfirmed: true
        ),
    ]

    private static let acr1281u: [Function: Command] = [
        .firmware: Command(get: e0(0x18), "ACR1281U-C1 API v1.08, 5.3.1"),
        .lights: Command(get: e0(0x29), set: e0(0x29), "ACR1281U-C1 API v1.08, 5.3.2; ACR1281U user's manual"),
        .buzzer: Command(set: e0(0x28), "ACR1281U-C1 API v1.08, 5.3.4"),
        .automaticPolling: Command(
            get: e0(0x23), set: e0(0x23), initial: [0x8F], "ACR1281U-C1 API v1.08, 5.3.10 and 5.3.11"),
        .operatingParameter: Command(
            get: e0(0x20), set: e0(0x20), "ACR1281U-C1 API v1.08, 5.3.13 and 5.3.14"),
    ]

    /// No document was available.  Lights and buzzer are unknown.
    private static let acr1251u: [Function: Command] = [
        .firmware: Command(get: e0(0x18), "a script that asks an ACR1251U", isUnconfirmed: true),
        .operatingParameter: Command(
            get: e0(0x20), set: e0(0x20), "a script that asks an ACR1251U", isUnconfirmed: true),
        .automaticPolling: Command(
            get: e0(0x23), set: e0(0x23), "a script that asks an ACR1251U", isUnconfirmed: true),
        .antenna: Command(
            get: e0(0x25), set: e0(0x25), initial: [0x01], "a script that asks an ACR1251U", isUnconfirmed: true),
    ]

    /// REF-ACR1552U-Series 1.08, 6, as quoted by the Python package acr1552u 0.1.0.  The card types are two bytes, set
    /// by `E0 00 01 20`.  The query `E0 00 00 25` reports the card, not the antenna; `24` is automatic PPS.
    private static let acr1552u: [Function: Command] = [
        .firmware: Command(get: e0(0x18), "acr1552u 0.1.0: 6.2.1", isUnconfirmed: true),
        // A program for an ACR1552 uses the same bytes and colors.
        .lights: Command(get: e0(0x29), set: e0(0x29), "acr1552u 0.1.0: 6.2.6 and 6.2.7"),
        .buzzer: Command(set: e0(0x28), "acr1552u 0.1.0: 6.2.4"),
        .automaticPolling: Command(
            get: e0(0x23), set: e0(0x23), "acr1552u 0.1.0: 6.1.3 and 6.1.4", isUnconfirmed: true),
        .operatingParameter: Command(
            get: [0xE0, 0x00, 0x01, 0x20], set: [0xE0, 0x00, 0x01, 0x20], initial: [0x07, 0x05],
            "acr1552u 0.1.0: 6.1.5 and 6.1.6",
            isUnconfirmed: true),
        .antenna: Command(set: e0(0x25), initial: [0x01], "acr1552u 0.1.0: 6.1.1", isUnconfirmed: true),
    ]

    private static func e0(_ number: UInt8) -> [UInt8] { [0xE0, 0x00, 0x00, number] }
}
