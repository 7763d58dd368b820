public import SmartCard

/// The configuration of Kernel 2: data objects, set in the combination's data or the terminal's, with defaults from
/// Book C-2, table 4.3.
///
/// Unless DF811D is set, two torn transactions are kept, where the book's default is 00, none.  The objects in
/// ``mandatoryData`` have no default.
///
/// Three limits have another source: if DF8123 to DF8126 are not set, those of the ``Combination`` apply.
extension Kernel2 {
    /// Tag, name, value.
    private static let defaultRows = """
        9F09   | Application Version Number (Reader)                             | 0002
        DF8117 | Card Data Input Capability                                      | 00
        DF8118 | CVM Capability - CVM Required                                   | 00
        DF8119 | CVM Capability - No CVM Required                                | 00
        DF811A | Default UDOL                                                    | 9F6A04
        DF8130 | Hold Time Value                                                 | 0D
        DF811B | Kernel Configuration                                            | 00
        DF810C | Kernel ID                                                       | 02
        9F6D   | Mag-stripe Application Version Number (Reader)                  | 0001
        DF811E | Mag-stripe CVM Capability - CVM Required                        | F0
        DF812C | Mag-stripe CVM Capability - No CVM Required                     | F0
        DF811C | Max Lifetime of Torn Transaction Log Record                     | 012C
        DF811D | Max Number of Torn Transaction Log Records                      | 02
        DF812D | Message Hold Time                                               | 000013
        DF8133 | Maximum Relay Resistance Grace Period                           | 0032
        DF8132 | Minimum Relay Resistance Grace Period                           | 0014
        9F7E   | Mobile Support Indicator                                        | 01
        DF8131 | Phone Message Table (PCII mask, PCII value, message, status)    | 000001 000001 20 00 \
        000800 000800 20 00  000400 000400 20 00  000100 000100 20 00  000200 000200 20 00  000000 000000 07 00
        DF8136 | Relay Resistance Accuracy Threshold                             | 012C
        DF8137 | Relay Resistance Transmission Time Mismatch Threshold           | 32
        DF811F | Security Capability                                             | 00
        DF8120 | Terminal Action Code - Default                                  | 840000000C
        DF8121 | Terminal Action Code - Denial                                   | 840000000C
        DF8122 | Terminal Action Code - Online                                   | 840000000C
        DF8134 | Terminal Expected Transmission Time For Relay Resistance C-APDU | 0012
        DF8135 | Terminal Expected Transmission Time For Relay Resistance R-APDU | 0018
        DF8127 | Time Out Value                                                  | 01F4
        """

    /// The default values, by tag.
    static let defaults: [TLVTag: [UInt8]] = LoadedOnce.reading {
        var values: [TLVTag: [UInt8]] = [:]
        for row in defaultRows.split(separator: "\n") {
            let columns = row.split(separator: "|").map { $0.filter { $0 != " " } }
            guard columns.count == 3, let tag = UInt32(columns[0], radix: 16), let value = try? [UInt8](hex: columns[2])
            else { preconditionFailure("three columns") }
            values[TLVTag(rawValue: tag)] = value
        }
        return values
    }

    /// The terminal's mandatory data: without it no transaction begins.
    public static let mandatoryData: [TLVTag] = [0x9F1A, 0x9F33, 0x9F35, 0x9F40]

    /// The objects that may be set without a value.  The kernel then reads or requests the value (Book C-2, 4.1.3: a
    /// data object that is present and empty).
    public static let requestableData: Set<TLVTag> = [0xDF8104, 0xDF8105, 0xDF8110, 0xDF8112, 0xFF8102, 0xFF8103]

    /// The CVM capabilities, and those for input (Book C-2, A.1): a signature precedes a PIN, and F0 is “not applicable”.
    /// Bytes 1 and 3 of 9F33 are DF8117 and DF811F (Book C-2, 7.5).
    public static let advertisedData: AdvertisedData = """
        9F33   1 DF8117
        9F33   3 DF811F
        DF8117 1 80    manualKeyEntry                  +
        DF8117 1 40    magneticStripe                  +
        DF8117 1 20    contacts                        +
        DF8118 1 80    pinPad,contacts                 -
        DF8118 1 40    pinPad,online                   +
        DF8118 1 20    paper/screen,attended           +
        DF8118 1 10    pinPad,contacts                 -
        DF8119 1 80    pinPad,contacts                 -
        DF8119 1 40    pinPad,online                   -
        DF8119 1 20    paper/screen,attended           -
        DF8119 1 10    pinPad,contacts                 -
        DF8119 1 08    -                               +
        DF811E 1 F0=10 paper/screen,attended           +
        DF811E 1 F0=20 pinPad,online                   +
        DF811E 1 F0=F0 -                               +
        DF812C 1 F0=10 paper/screen,attended           -
        DF812C 1 F0=20 pinPad,online                   -
        """
}

extension TLVDatabase {
    /// Creates the data objects of an activation of Kernel 2.
    init(_ activation: KernelActivation) {
        var values = Kernel2.defaults.merging(activation.terminalData) { $1 }
        // Kernel 2 has no TTQ: here the tag is PUNATC (Track2).
        values[.punatcTrack2] = nil
        let combination = activation.combination
        // A combination's limit is the first amount that is refused or requires verification; Kernel 2's is the last
        // one below.  Without a limit it is the highest amount.
        func limit(_ amount: UInt64?, isBelow: Bool) -> [UInt8] {
            packed(amount.map { isBelow ? $0 - min($0, 1) : $0 } ?? Transaction.maximumAmount, bytes: 6)
        }
        let limits: [(TLVTag, [UInt8])] = [
            (
                .readerContactlessFloorLimit,
                limit(combination.floorLimit ?? combination.terminalFloorLimit, isBelow: false)
            ),
            (.transactionLimitWithoutOnDeviceCVM, limit(combination.transactionLimit, isBelow: true)),
            (.transactionLimitWithOnDeviceCVM, limit(combination.transactionLimit, isBelow: true)),
            (.readerCVMRequiredLimit, limit(combination.cvmRequiredLimit, isBelow: true)),
        ]
        for (tag, value) in limits where values[tag] == nil { values[tag] = value }
        self.init(rules: .kernel2, values: values)
    }
}

extension TLVDatabase.Rules {
    /// The rules of Book C-2, 4.5.4 (ParseAndStoreCardResponse).
    static let kernel2 = Self(
        scope: .mastercard, nestedTemplates: .opened, storesUnknownObjects: false, emptyObjectsMayFollow: true,
        // The objects of the book's data dictionary that no card supplies, except for the private class.
        refusedObjects: [
            0x5F2A, 0x5F36, 0x95, 0x9A, 0x9C, 0x9F01, 0x9F02, 0x9F03, 0x9F09, 0x9F15, 0x9F16, 0x9F1A, 0x9F1C, 0x9F1D,
            0x9F1E, 0x9F21, 0x9F33, 0x9F34, 0x9F35, 0x9F37, 0x9F40, 0x9F4E, 0x9F53, 0x9F5C, 0x9F6A, 0x9F6D, 0x9F7C,
            .mobileSupportIndicator,
        ],
        // The card's objects whose contents the kernel uses.
        measuredObjects: [
            0x57, 0x5A, 0x5F24, 0x5F25, 0x5F28, 0x5F34, 0x82, 0x8F, 0x9F07, 0x9F08, 0x9F0D, 0x9F0E, 0x9F0F, 0x9F10,
            0x9F26,
            0x9F27, 0x9F36, 0x9F42, 0x9F5D, 0x9F5F, 0x9F60, 0x9F61, 0x9F62, 0x9F63, 0x9F64, 0x9F65, 0x9F66, 0x9F67,
            0x9F6B,
            0x9F6F, 0x9F7D, 0x9F7F, 0xDF4B,
        ])
}

/// The data objects whose contents the kernel uses, with their types.
extension Kernel2 {
    var verificationResults: TerminalVerificationResults {
        get { data[.terminalVerificationResults].flatMap { TerminalVerificationResults($0) } ?? [] }
        set { data[.terminalVerificationResults] = newValue.bytes }
    }

    var configuration: Configuration { Configuration(rawValue: data.byte(.kernelConfiguration)) }
    var amount: UInt64 { activation.transaction.amount }

    /// True if AIP byte 1 bit 2 is set and the kernel is configured for it.
    var verifiesOnDevice: Bool {
        interchangeProfile.contains(.onDeviceVerification) && configuration.contains(.onDeviceVerification)
    }

    var exceedsCVMLimit: Bool { amount > data.amount(.readerCVMRequiredLimit) ?? 0 }

    /// Message Hold Time, DF812D, three bytes of digits, in milliseconds.
    var messageHoldTime: Int { Int(min(data.amount(.messageHoldTime) ?? 0, 999_999)) * 100 }

    /// Hold Time Value, DF8130, in milliseconds: the time for which the field is off.
    var holdTime: Int { data.number(.holdTimeValue) * 100 }

    /// True if IDS reads.
    var readsDataStorage: Bool {
        get { idsStatus.contains(.read) }
        set { if newValue { idsStatus.insert(.read) } else { idsStatus.remove(.read) } }
    }
    var writesDataStorage: Bool {
        get { idsStatus.contains(.write) }
        set { if newValue { idsStatus.insert(.write) } else { idsStatus.remove(.write) } }
    }

    /// The data storage version of 9F5D, the application capabilities information: 0, 1 or 2.
    var dataStorageVersion: UInt8 { data.byte(.applicationCapabilitiesInformation) & DataStorageVersion.mask }

    /// True if the cardholder has to act and present the device again (S910.71, S13.41, S14.19.1).
    var asksForSecondTap: Bool { !cardholderInteraction.isDisjoint(with: .secondTap) }

    var relayResistanceWasPerformed: Bool {
        verificationResults.contains(.relayResistanceProtocolPerformed)
    }
}
