import SmartCard

extension BitTable {
    static let tables: [DataElement.Scope: [TLVTag: BitTable]] = [
        .common: [
            0x82: applicationInterchangeProfile,
            0x87: applicationPriorityIndicator,
            0x95: terminalVerificationResults,
            0x9B: transactionStatusInformation,
            0x9C: transactionType,
            0x5F30: serviceCode,
            0x5F57: accountType,
            0x9F07: applicationUsageControl,
            0x9F0D: terminalVerificationResults, 0x9F0E: terminalVerificationResults,
            0x9F0F: terminalVerificationResults,
            0x9F11: codeTableIndex,
            0x9F1D: terminalRiskManagementData,
            0x9F27: cryptogramInformationData,
            0x9F33: terminalCapabilities,
            0x9F34: cvmResults,
            0x9F35: terminalType,
            0x9F39: posEntryMode,
            0x9F40: additionalTerminalCapabilities,
            0x9F4D: logEntry,
            0x9F66: terminalTransactionQualifiers,
            0x9F6C: cardTransactionQualifiers,
        ],
        .visa: [
            0x82: applicationInterchangeProfileVisa,
            0x9F68: cardAdditionalProcesses,
            0x9F6E: formFactorIndicator,
            0xDF60: logEntry,
        ],
        .unionPay: [0x9F68: cardAdditionalProcesses],
        .mastercard: [
            0x82: applicationInterchangeProfileKernel2,
            0x95: terminalVerificationResultsKernel2,
            0x9F0D: terminalVerificationResultsKernel2, 0x9F0E: terminalVerificationResultsKernel2,
            0x9F0F: terminalVerificationResultsKernel2,
            0xDF8120: terminalVerificationResultsKernel2, 0xDF8121: terminalVerificationResultsKernel2,
            0xDF8122: terminalVerificationResultsKernel2,
            0x9F5D: applicationCapabilitiesInformation,
            0x9F5F: slotControl,
            0x9F6F: slotControl,
            0x9F7E: mobileSupportIndicator,
            0xDF4B: posCardholderInteractionInformation,
            0xDF8108: referenceControlParameter,
            0xDF810B: dsSummaryStatus,
            0xDF8114: referenceControlParameter,
            0xDF8115: errorIndication,
            0xDF8116: userInterfaceRequest,
            0xDF8117: cardDataInputCapability,
            0xDF8118: cvmCapability, 0xDF8119: cvmCapability,
            0xDF811B: kernelConfiguration,
            0xDF811E: magStripeCVMCapability, 0xDF812C: magStripeCVMCapability,
            0xDF811F: securityCapability,
            0xDF8128: idsStatus,
            0xDF8129: outcomeParameterSet,
        ],
        .kernel8: [0x9F8210: outcomeParameterSet],
        .americanExpress: [
            0x9F6D: contactlessReaderCapabilities,
            0x9F6E: enhancedContactlessReaderCapabilities,
        ],
        .jcb: [
            0x9F52: terminalCompatibilityIndicator,
            0x9F53: terminalInterchangeProfile,
        ],
    ]

    // MARK: EMV books

    /// EMV Book 3, Annex C1.  Byte 2 belongs to the contactless books.
    static let applicationInterchangeProfile = BitTable(
        length: 2,
        """
        1 80 XDA supported
        1 40 SDA supported
        1 20 DDA supported
        1 10 Cardholder verification is supported
        1 08 Terminal risk management is to be performed
        1 04 Issuer authentication is supported
        1 02 On-device cardholder verification is supported
        1 01 CDA supported
        2 80 Contactless EMV mode is supported
        2 40 Mobile phone
        2 20 Contactless transaction
        2 01 Relay resistance protocol is supported
        """)

    /// EMV Contactless Book C-2, A.1.16.
    static let applicationInterchangeProfileKernel2 = BitTable(
        length: 2,
        """
        1 40 SDA supported
        1 20 DDA supported
        1 10 Cardholder verification is supported
        1 08 Terminal risk management is to be performed
        1 04 Issuer authentication is supported
        1 02 On-device cardholder verification is supported
        1 01 CDA supported
        2 80 EMV mode is supported
        2 01 Relay resistance protocol is supported
        """)

    /// VCPS, Annex D; EMV Contactless Book C-3, Annex A.
    static let applicationInterchangeProfileVisa = BitTable(
        length: 2,
        """
        1 40 SDA supported
        1 20 DDA supported
        1 10 Cardholder verification is supported
        1 08 Terminal risk management is to be performed
        1 04 Issuer authentication is supported
        1 01 CDA supported
        2 80 MSD is supported
        2 40 Mobile phone
        """)

    /// EMV Book 1, 12.2.3, table 48.
    static let applicationPriorityIndicator = BitTable(
        length: 1,
        """
        1 80 Application cannot be selected without confirmation of cardholder
        1 0F=00 No priority assigned
        1 0F=# Order in which the application is to be listed or selected
        """)

    /// EMV Book 3, Annex C2.
    static let applicationUsageControl = BitTable(
        length: 2,
        """
        1 80 Valid for domestic cash transactions
        1 40 Valid for international cash transactions
        1 20 Valid for domestic goods
        1 10 Valid for international goods
        1 08 Valid for domestic services
        1 04 Valid for international services
        1 02 Valid at ATMs
        1 01 Valid at terminals other than ATMs
        2 80 Domestic cashback allowed
        2 40 International cashback allowed
        """)

    /// EMV Book 3, Annex C3, tables 43 and 44; Book 4, Annex A4, table 33.
    static let cvmResults = BitTable(
        length: 3,
        """
        1 40 Apply succeeding CV Rule if this CVM is unsuccessful
        1 BF=00 Fail CVM processing
        1 BF=01 Plaintext PIN verification performed by ICC
        1 BF=02 Enciphered PIN verified online
        1 BF=03 Plaintext PIN verification performed by ICC and signature (paper)
        1 BF=04 Enciphered PIN verification performed by ICC
        1 BF=05 Enciphered PIN verification performed by ICC and signature (paper)
        1 BF=06 Facial biometric verified offline (by ICC)
        1 BF=07 Facial biometric verified online
        1 BF=08 Finger biometric verified offline (by ICC)
        1 BF=09 Finger biometric verified online
        1 BF=0A Palm biometric verified offline (by ICC)
        1 BF=0B Palm biometric verified online
        1 BF=0C Iris biometric verified offline (by ICC)
        1 BF=0D Iris biometric verified online
        1 BF=0E Voice biometric verified offline (by ICC)
        1 BF=0F Voice biometric verified online
        1 BF=1E Signature (paper)
        1 BF=1F No CVM required
        1 BF=3F No CVM performed
        2 FF=00 Always
        2 FF=01 If unattended cash
        2 FF=02 If not unattended cash and not manual cash and not purchase with cashback
        2 FF=03 If terminal supports the CVM
        2 FF=04 If manual cash
        2 FF=05 If purchase with cashback
        2 FF=06 If transaction is in the application currency and is under X value
        2 FF=07 If transaction is in the application currency and is over X value
        2 FF=08 If transaction is in the application currency and is under Y value
        2 FF=09 If transaction is in the application currency and is over Y value
        3 FF=00 Unknown
        3 FF=01 Failed
        3 FF=02 Successful
        """)

    /// EMV Book 3, Annex C5; also the layout of the issuer action codes.
    static let terminalVerificationResults = BitTable(
        length: 5,
        tvrBytes1To4
            + """

            2 02 Biometric performed and successful
            2 01 Biometric template format not supported
            3 02 Biometric required but biometric capture device not working
            3 01 Biometric required, biometric capture device present, but biometric subtype entry was bypassed
            4 04 Biometric Try Limit exceeded
            4 02 A selected biometric type not supported
            4 01 XDA signature verification failed
            1 01 XDA selected
            5 80 Default TDOL used
            5 40 Issuer authentication failed
            5 20 Script processing failed before final GENERATE AC
            5 10 Script processing failed after final GENERATE AC
            5 08 Reserved for use by the EMV Contactless Specifications
            5 04 CA ECC key missing
            5 02 ECC key recovery failed
            5 01 Reserved for use by the EMV Contactless Specifications
            """)

    /// EMV Contactless Book C-2, Annex A; also the layout of the terminal action codes.
    static let terminalVerificationResultsKernel2 = BitTable(
        length: 5,
        tvrBytes1To4
            + """

            5 80 Default TDOL used
            5 40 Issuer authentication failed
            5 20 Script processing failed before final GENERATE AC
            5 10 Script processing failed after final GENERATE AC
            5 08 Relay resistance threshold exceeded
            5 04 Relay resistance time limits exceeded
            5 03=01 Relay resistance protocol not performed
            5 03=02 Relay resistance protocol performed
            """)

    private static let tvrBytes1To4 = """
        1 80 Offline data authentication was not performed
        1 40 SDA failed
        1 20 ICC data missing
        1 10 Card appears on terminal exception file
        1 08 DDA failed
        1 04 CDA failed
        1 02 SDA selected
        2 80 ICC and terminal have different application versions
        2 40 Expired application
        2 20 Application not yet effective
        2 10 Requested service not allowed for card product
        2 08 New card
        3 80 Cardholder verification was not successful
        3 40 Unrecognised CVM
        3 20 PIN Try Limit exceeded
        3 10 PIN entry required and PIN pad not present or not working
        3 08 PIN entry required, PIN pad present, but PIN was not entered
        3 04 Online CVM captured
        4 80 Transaction exceeds floor limit
        4 40 Lower consecutive offline limit exceeded
        4 20 Upper consecutive offline limit exceeded
        4 10 Transaction selected randomly for online processing
        4 08 Merchant forced transaction online
        """

    /// EMV Book 3, Annex C6.
    static let transactionStatusInformation = BitTable(
        length: 2,
        """
        1 80 Offline data authentication was performed
        1 40 Cardholder verification was performed
        1 20 Card risk management was performed
        1 10 Issuer authentication was performed
        1 08 Terminal risk management was performed
        1 04 Script processing was performed
        """)

    /// EMV Book 3, 6.5.5.4, table 15.
    static let cryptogramInformationData = BitTable(
        length: 1,
        """
        1 C0=00 AAC
        1 C0=40 TC
        1 C0=80 ARQC
        1 30=10 Payment System-specific cryptogram
        1 30=20 Payment System-specific cryptogram
        1 30=30 Payment System-specific cryptogram
        1 08 Advice required
        1 07=01 Service not allowed
        1 07=02 PIN Try Limit exceeded
        1 07=03 Issuer authentication failed
        """)

    /// EMV Book 4, Annex A2.
    static let terminalCapabilities = BitTable(
        length: 3,
        """
        1 80 Manual key entry
        1 40 Magnetic stripe
        1 20 IC with contacts
        2 80 Plaintext PIN for ICC verification
        2 40 Enciphered PIN for online verification
        2 20 Signature
        2 10 Enciphered PIN for offline verification
        2 08 No CVM required
        2 04 Online biometric
        2 02 Offline biometric
        3 80 SDA
        3 40 DDA
        3 20 Card capture
        3 08 CDA
        3 04 XDA
        """)

    /// EMV Book 4, Annex A3.
    static let additionalTerminalCapabilities = BitTable(
        length: 5,
        """
        1 80 Cash
        1 40 Goods
        1 20 Services
        1 10 Cashback
        1 08 Inquiry
        1 04 Transfer
        1 02 Payment
        1 01 Administrative
        2 80 Cash Deposit
        3 80 Numeric keys
        3 40 Alphabetic and special characters keys
        3 20 Command keys
        3 10 Function keys
        4 80 Print or electronic, attendant
        4 40 Print or electronic, cardholder
        4 20 Display, attendant
        4 10 Display, cardholder
        4 02 Code table 10
        4 01 Code table 9
        5 80 Code table 8
        5 40 Code table 7
        5 20 Code table 6
        5 10 Code table 5
        5 08 Code table 4
        5 04 Code table 3
        5 02 Code table 2
        5 01 Code table 1
        """)

    /// EMV Book 4, Annex A1.
    static let terminalType = BitTable(
        length: 1,
        """
        1 FF=11 Financial institution, attended, online only
        1 FF=12 Financial institution, attended, offline with online capability
        1 FF=13 Financial institution, attended, offline only
        1 FF=14 Financial institution, unattended, online only
        1 FF=15 Financial institution, unattended, offline with online capability
        1 FF=16 Financial institution, unattended, offline only
        1 FF=21 Merchant, attended, online only
        1 FF=22 Merchant, attended, offline with online capability
        1 FF=23 Merchant, attended, offline only
        1 FF=24 Merchant, unattended, online only
        1 FF=25 Merchant, unattended, offline with online capability
        1 FF=26 Merchant, unattended, offline only
        1 FF=34 Cardholder, unattended, online only
        1 FF=35 Cardholder, unattended, offline with online capability
        1 FF=36 Cardholder, unattended, offline only
        """)

    /// ISO 8583:1987, field 22, first two digits, and the values that the schemes add.
    static let posEntryMode = BitTable(
        length: 1,
        """
        1 FF=00 Unspecified
        1 FF=01 Manual
        1 FF=02 Magnetic stripe
        1 FF=03 Bar code
        1 FF=04 OCR
        1 FF=05 Integrated circuit card
        1 FF=07 Contactless chip
        1 FF=80 Magnetic stripe, fallback from chip
        1 FF=81 Electronic commerce
        1 FF=90 Magnetic stripe, whole track read
        1 FF=91 Contactless magnetic stripe data
        1 FF=95 Integrated circuit card, CVV may be unreliable
        """)

    /// ISO 8583:1987, field 3, first two digits.
    static let transactionType = BitTable(
        length: 1,
        """
        1 FF=00 Purchase of goods and services
        1 FF=01 Cash withdrawal
        1 FF=02 Debit adjustment
        1 FF=09 Purchase with cashback
        1 FF=17 Cash advance
        1 FF=20 Refund
        1 FF=21 Deposit
        1 FF=22 Credit adjustment
        1 FF=30 Available funds inquiry
        1 FF=31 Balance inquiry
        1 FF=40 Transfer between cardholder's accounts
        """)

    /// ISO/IEC 7813, table 4: three digits, packed behind a zero.
    static let serviceCode = BitTable(
        length: 2,
        """
        1 0F=01 International interchange
        1 0F=02 International interchange, use the chip where feasible
        1 0F=05 National interchange only, except under bilateral agreement
        1 0F=06 National interchange only, except under bilateral agreement; use the chip where feasible
        1 0F=07 No interchange, except under bilateral agreement
        1 0F=09 Test
        2 F0=00 Normal authorization
        2 F0=20 Authorization by the issuer online
        2 F0=40 Authorization by the issuer online, except under bilateral agreement
        2 0F=00 No restrictions, PIN required
        2 0F=01 No restrictions
        2 0F=02 Goods and services only
        2 0F=03 ATM only, PIN required
        2 0F=04 Cash only
        2 0F=05 Goods and services only, PIN required
        2 0F=06 No restrictions, use the PIN where feasible
        2 0F=07 Goods and services only, use the PIN where feasible
        """)

    /// EMV Book 3, Annex G.
    static let accountType = BitTable(
        length: 1,
        """
        1 FF=00 Default
        1 FF=10 Savings
        1 FF=20 Cheque or debit
        1 FF=30 Credit
        """)

    /// EMV Book 4, Annex B2, table 35.
    static let codeTableIndex = BitTable(
        length: 1,
        """
        1 FF=01 ISO/IEC 8859-1
        1 FF=02 ISO/IEC 8859-2
        1 FF=03 ISO/IEC 8859-3
        1 FF=04 ISO/IEC 8859-4
        1 FF=05 ISO/IEC 8859-5
        1 FF=06 ISO/IEC 8859-6
        1 FF=07 ISO/IEC 8859-7
        1 FF=08 ISO/IEC 8859-8
        1 FF=09 ISO/IEC 8859-9
        1 FF=10 ISO/IEC 8859-10
        """)

    /// EMV Book 3, Annex D2.
    static let logEntry = BitTable(
        length: 2,
        """
        1 1F=# SFI of the transaction log
        2 FF=# Maximum number of records
        """)

    /// EMV Contactless Book C-2, A.1.161; M/Chip Requirements.
    static let terminalRiskManagementData = BitTable(
        length: 1...8,
        """
        1 80 Restart supported
        1 40 Enciphered PIN verified online (contactless)
        1 20 Signature (contactless)
        1 10 Enciphered PIN verification performed by ICC (contactless)
        1 08 No CVM required (contactless)
        1 04 CDCVM (contactless)
        1 02 Plaintext PIN verification performed by ICC (contactless)
        1 01 Present and Hold supported
        2 80 CVM Limit exceeded
        2 40 Enciphered PIN verified online (contact)
        2 20 Signature (contact)
        2 10 Enciphered PIN verification performed by ICC (contact)
        2 08 No CVM required (contact)
        2 04 CDCVM (contact)
        2 02 Plaintext PIN verification performed by ICC (contact)
        3 80 Mag-stripe mode contactless transactions not supported
        3 40 EMV mode contactless transactions not supported
        3 20 CDCVM without CDA supported
        4 80 CDCVM bypass requested
        4 40 SCA exempt
        """)

    // MARK: Kernels 3 and 7, entry point

    /// EMV Contactless Book A, 5.7, table 5-4; Book C-6, Annex D.11; Book C-7, 3.2.2.
    static let terminalTransactionQualifiers = BitTable(
        length: 4,
        """
        1 80 Mag-stripe mode supported
        1 20 EMV mode supported
        1 10 EMV contact chip supported
        1 08 Offline-only reader
        1 04 Online PIN supported
        1 02 Signature supported
        1 01 Offline Data Authentication for Online Authorizations supported
        2 80 Online cryptogram required
        2 40 CVM required
        2 20 (Contact Chip) Offline PIN supported
        3 80 Issuer Update Processing supported
        3 40 Consumer Device CVM supported
        3 08 Consumer Device CVM required
        4 80 fDDA v1.0 supported
        """)

    /// EMV Contactless Book C-3, A.2; Book C-7, Annex A; VCPS, Annex D.
    static let cardTransactionQualifiers = BitTable(
        length: 2,
        """
        1 80 Online PIN Required
        1 40 Signature Required
        1 20 Go Online if Offline Data Authentication Fails and Reader is online capable
        1 10 Switch Interface if Offline Data Authentication fails and Reader supports contact chip
        1 08 Go Online if Application Expired
        1 04 Switch Interface for Cash Transactions
        1 02 Switch Interface for Cashback Transactions
        1 01 Not valid for contactless ATM transactions
        2 80 Consumer Device CVM Performed
        2 40 Card supports Issuer Update Processing at the POS
        """)

    /// VCPS, Annex D; JR/T 0025.12.
    static let cardAdditionalProcesses = BitTable(
        length: 4,
        """
        1 80 Low Value Check supported
        1 40 Low Value AND CTTA Check supported
        1 20 Count qVSDC online transactions
        1 10 Streamlined qVSDC supported
        1 08 PIN Tries Exceeded Check supported
        1 04 Offline international transactions allowed
        1 02 Card prefers contact chip
        1 01 Return Available Offline Spending Amount
        2 80 Include country code in counting
        2 40 International transactions not allowed
        2 20 Disable Offline Data Authentication for Online Authorizations
        2 10 Issuer Update Processing supported
        3 80 Online PIN supported for domestic transactions
        3 40 Online PIN supported for international transactions
        3 20 (Contact Chip) Offline PIN supported
        3 10 Signature supported
        """)

    /// EMV Contactless Book C-3, A.2; VCPS, Annex D.
    static let formFactorIndicator = BitTable(
        length: 4,
        """
        1 E0=20 Version 1
        1 1F=00 Card
        1 1F=01 Mini-card
        1 1F=02 Non-card form factor
        1 1F=03 Consumer mobile phone
        1 1F=04 Wrist-worn device
        2 80 Passcode capable
        2 40 Signature panel
        2 20 Hologram
        2 10 CVV2
        2 08 Two-way messaging
        2 04 Cloud based payment credentials
        2 02 Biometric cardholder verification capable
        4 0F=00 Proximity contactless interface using ISO 14443 (including NFC)
        4 0F=01 Not used in VCPS
        """)

    // MARK: Kernel 2

    /// EMV Contactless Book C-2, A.1.171; M/Chip Requirements, table 12.
    static let thirdPartyData = BitTable(
        length: 5...32,
        """
        1-2 .. Country code
        3-4 .. Unique identifier
        5-32 .. Proprietary data
        """)

    static let thirdPartyDataWithDeviceType = BitTable(
        length: 5...32,
        """
        1-2 .. Country code
        3-4 .. Unique identifier
        5-6 .. Device type
        7-32 .. Proprietary data
        """)

    /// M/Chip Requirements, Third Party Data.
    static let deviceTypes: [String: String] = [
        "00": "Card",
        "01": "Phone, removable secure element of the network operator",
        "02": "Key fob",
        "03": "Watch",
        "04": "Mobile tag",
        "05": "Wristband",
        "06": "Phone case or sleeve",
        "07": "Phone, fixed secure element of the network operator",
        "08": "Phone, removable secure element not of the network operator",
        "09": "Phone, fixed secure element not of the network operator",
    ]

    /// EMV Contactless Book C-2, Annex A.
    static let applicationCapabilitiesInformation = BitTable(
        length: 3,
        """
        1 F0=# Version of this element
        1 0F=00 Data storage not supported
        1 0F=01 Data storage version 1
        1 0F=02 Data storage version 2
        2 04 Support for field off detection
        2 02 Support for balance reading
        2 01 CDA supported over TC, ARQC and AAC
        3 FF=00 Undefined SDS configuration
        3 FF=01 All 10 SDS tags 32 bytes
        3 FF=02 All 10 SDS tags 48 bytes
        3 FF=03 All 10 SDS tags 64 bytes
        3 FF=04 All 10 SDS tags 96 bytes
        3 FF=05 All 10 SDS tags 128 bytes
        3 FF=06 All 10 SDS tags 160 bytes
        3 FF=07 All 10 SDS tags 192 bytes
        3 FF=08 All SDS tags 32 bytes except 9F78, which is 64 bytes
        """)

    static let slotControl = BitTable(
        length: 1,
        """
        1 80 Permanent slot type
        1 40 Volatile slot type
        1 20 Low volatility
        1 10 Locked slot
        1 01 Deactivated slot
        """)

    static let mobileSupportIndicator = BitTable(
        length: 1,
        """
        1 02 OD-CVM required
        1 01 Mobile supported
        """)

    static let posCardholderInteractionInformation = BitTable(
        length: 3,
        """
        1 .. Version number
        2 10 OD-CVM verification successful
        2 08 Context is conflicting
        2 04 Offline change PIN required
        2 02 ACK required
        2 01 PIN required
        """)

    static let dsSummaryStatus = BitTable(
        length: 1,
        """
        1 80 Successful read
        1 40 Successful write
        """)

    static let idsStatus = BitTable(
        length: 1,
        """
        1 80 Read
        1 40 Write
        """)

    static let referenceControlParameter = BitTable(
        length: 1,
        """
        1 C0=00 AAC
        1 C0=40 TC
        1 C0=80 ARQC
        1 10 CDA signature requested
        """)

    static let errorIndication = BitTable(
        length: 6,
        """
        1 FF=00 L1: OK
        1 FF=01 L1: time out error
        1 FF=02 L1: transmission error
        1 FF=03 L1: protocol error
        2 FF=00 L2: OK
        2 FF=01 L2: card data missing
        2 FF=02 L2: CAM failed
        2 FF=03 L2: status bytes
        2 FF=04 L2: parsing error
        2 FF=05 L2: max limit exceeded
        2 FF=06 L2: card data error
        2 FF=07 L2: mag-stripe not supported
        2 FF=08 L2: no PPSE
        2 FF=09 L2: PPSE fault
        2 FF=0A L2: empty candidate list
        2 FF=0B L2: IDS read error
        2 FF=0C L2: IDS write error
        2 FF=0D L2: IDS data error
        2 FF=0E L2: IDS no matching AC
        2 FF=0F L2: terminal data error
        3 FF=00 L3: OK
        3 FF=01 L3: time out
        3 FF=02 L3: stop
        3 FF=03 L3: amount not present
        4-5 .. SW12
        6 .. Message on error
        """)

    static let userInterfaceRequest = BitTable(
        length: 22,
        """
        1 FF=03 Message: approved
        1 FF=07 Message: declined
        1 FF=09 Message: enter PIN
        1 FF=0F Message: processing error
        1 FF=10 Message: remove card
        1 FF=14 Message: welcome
        1 FF=15 Message: present card
        1 FF=16 Message: processing
        1 FF=17 Message: card read OK, remove card
        1 FF=18 Message: insert or swipe card
        1 FF=19 Message: present one card only
        1 FF=1A Message: approved, please sign
        1 FF=1B Message: authorising, please wait
        1 FF=1C Message: insert, swipe or try another card
        1 FF=1D Message: insert card
        1 FF=1E Message: clear display
        1 FF=20 Message: see phone
        1 FF=21 Message: try again
        1 FF=FF Message: none
        2 FF=00 Status: not ready
        2 FF=01 Status: idle
        2 FF=02 Status: ready to read
        2 FF=03 Status: processing
        2 FF=04 Status: card read successfully
        2 FF=05 Status: processing error
        2 FF=FF Status: none
        3-5 .. Hold time in units of 100 ms
        6-13 .. Language preference
        14 F0=00 Value qualifier: none
        14 F0=10 Value qualifier: amount
        14 F0=20 Value qualifier: balance
        15-20 .. Value
        21-22 .. Currency code
        """)

    static let outcomeParameterSet = BitTable(
        length: 8,
        """
        1 F0=10 Status: approved
        1 F0=20 Status: declined
        1 F0=30 Status: online request
        1 F0=40 Status: end application
        1 F0=50 Status: select next
        1 F0=60 Status: try another interface
        1 F0=70 Status: try again
        1 F0=F0 Status: none
        2 F0=00 Start: A
        2 F0=10 Start: B
        2 F0=20 Start: C
        2 F0=30 Start: D
        2 F0=F0 Start: none
        3 F0=F0 Online response data: none
        4 F0=00 CVM: no CVM
        4 F0=10 CVM: obtain signature
        4 F0=20 CVM: online PIN
        4 F0=30 CVM: confirmation code verified
        4 F0=F0 CVM: none
        5 80 UI request on outcome present
        5 40 UI request on restart present
        5 20 Data record present
        5 10 Discretionary data present
        5 08 Receipt
        6 F0=F0 Alternate interface preference: none
        7 FF=FF Field off request: none
        7 .. Field off request in units of 100 ms
        8 .. Removal timeout in units of 100 ms
        """)

    static let cardDataInputCapability = BitTable(
        length: 1,
        """
        1 80 Manual key entry
        1 40 Magnetic stripe
        1 20 IC with contacts
        """)

    static let cvmCapability = BitTable(
        length: 1,
        """
        1 80 Plaintext PIN for ICC verification
        1 40 Enciphered PIN for online verification
        1 20 Signature
        1 10 Enciphered PIN for offline verification
        1 08 No CVM required
        """)

    static let magStripeCVMCapability = BitTable(
        length: 1,
        """
        1 F0=00 No CVM
        1 F0=10 Obtain signature
        1 F0=20 Online PIN
        1 F0=F0 None
        """)

    static let securityCapability = BitTable(
        length: 1,
        """
        1 80 SDA
        1 40 DDA
        1 20 Card capture
        1 08 CDA
        """)

    static let kernelConfiguration = BitTable(
        length: 1,
        """
        1 80 Mag-stripe mode contactless transactions not supported
        1 40 EMV mode contactless transactions not supported
        1 20 On-device cardholder verification supported
        1 10 Relay resistance protocol supported
        1 08 Reserved for payment system
        1 04 Read all records even when no CDA
        """)

    // MARK: Kernels 4 and 5

    /// EMV Contactless Book C-4, 4.3.3, table 4-2.
    static let contactlessReaderCapabilities = BitTable(
        length: 1,
        """
        1 C8=00 Deprecated
        1 C8=40 Mag-stripe, CVM not required
        1 C8=48 Mag-stripe, CVM required
        1 C8=80 EMV and mag-stripe, deprecated
        1 C8=C0 EMV and mag-stripe, CVM not required
        1 C8=C8 EMV and mag-stripe, CVM required
        1 37=# Bits of the terminal type
        """)

    /// EMV Contactless Book C-4, 4.3.4, table 4-4.
    static let enhancedContactlessReaderCapabilities = BitTable(
        length: 4,
        """
        1 80 Contact mode supported
        1 40 Contactless mag-stripe mode supported
        1 20 Contactless EMV full online mode supported
        1 10 Contactless EMV partial online mode supported
        1 08 Contactless mobile supported
        1 04 Try another interface after a decline
        2 80 Mobile CVM supported
        2 40 Online PIN supported
        2 20 Signature supported
        2 10 Plaintext offline PIN supported
        3 80 Reader is offline only
        3 40 CVM required
        4 80 Terminal exempt from No CVM checks
        4 40 Delayed authorisation terminal
        4 20 Transit terminal
        4 07=01 Kernel version 2.2 to 2.3
        4 07=02 Kernel version 2.4 to 2.6
        4 07=03 Kernel version 2.7
        """)

    /// EMV Contactless Book C-5, Annex A.
    static let terminalCompatibilityIndicator = BitTable(
        length: 1,
        """
        1 02 EMV mode supported
        1 01 Mag-stripe mode supported
        """)

    static let terminalInterchangeProfile = BitTable(
        length: 3,
        """
        1 80 CVM required by reader
        1 40 Signature supported
        1 20 Online PIN supported
        1 10 On-device CVM supported
        1 04 Reader is a transit reader
        1 02 EMV contact chip supported
        1 01 (Contact Chip) Offline PIN supported
        2 80 Issuer update supported
        """)

    // MARK: Issuer Application Data

    /// EMV Book 3, Annex C9, tables CCD 8 to CCD 10.
    static let iadCommonCore = BitTable(
        length: 32,
        """
        1 .. Length of the payment system's part
        2 F0=A0 Format code: CCD version 4.1
        2 0F=05 Cryptogram version: TDES
        2 0F=06 Cryptogram version: AES
        3 .. Derivation Key Index
        4 C0=00 Second GENERATE AC returned AAC
        4 C0=40 Second GENERATE AC returned TC
        4 C0=80 Second GENERATE AC not requested
        4 30=00 First GENERATE AC returned AAC
        4 30=10 First GENERATE AC returned TC
        4 30=20 First GENERATE AC returned ARQC
        4 08 CDA performed
        4 04 Offline DDA performed
        4 02 Issuer authentication not performed
        4 01 Issuer authentication failed
        5 F0=# PIN Try Counter
        5 08 Offline PIN verification performed
        5 04 Offline PIN verification performed and PIN not successfully verified
        5 02 PIN Try Limit exceeded
        5 01 Last online transaction not completed
        6 80 Lower offline transaction count limit exceeded
        6 40 Upper offline transaction count limit exceeded
        6 20 Lower cumulative offline amount limit exceeded
        6 10 Upper cumulative offline amount limit exceeded
        6 08 Issuer-discretionary bit 1
        6 04 Issuer-discretionary bit 2
        6 02 Issuer-discretionary bit 3
        6 01 Issuer-discretionary bit 4
        7 F0=# Issuer script commands processed successfully
        7 08 Issuer script processing failed
        7 04 Offline data authentication failed on previous transaction
        7 02 Go online on next transaction was set
        7 01 Unable to go online
        9-16 .. Counters
        17 .. Length of the issuer's part
        18-32 .. Issuer discretionary data
        """)

    /// VIS; VCPS Supplemental Requirements, Appendix M.
    private static let visaCVRBytes3And4 = """
        3 80 Last online transaction not completed
        3 40 PIN Try Limit exceeded
        3 20 Exceeded velocity checking counters
        3 10 New card
        3 08 Issuer authentication failure on last online transaction
        3 04 Issuer authentication not performed after online authorization
        3 02 Application blocked by card because PIN Try Limit exceeded
        3 01 Offline static data authentication failed on last transaction
        4 F0=# Issuer script commands
        4 08 Issuer script processing failed
        4 04 Offline dynamic data authentication failed on last transaction
        4 02 Offline dynamic data authentication performed
        4 01 PIN verification command not received for a PIN-expecting card
        """

    private static let visaCVRCryptograms = """
        2 C0=00 Second GENERATE AC returned AAC
        2 C0=40 Second GENERATE AC returned TC
        2 C0=80 Second GENERATE AC not requested
        2 30=00 GPO or first GENERATE AC returned AAC
        2 30=10 GPO or first GENERATE AC returned TC
        2 30=20 GPO or first GENERATE AC returned ARQC
        2 08 Issuer authentication performed and failed
        2 01 Unable to go online
        """

    /// Formats 0, 1 and 3: the CVR are bytes 4 to 7, of which the first is their length.
    static let iadVisaShort = BitTable(
        length: 7...32,
        rows: header(
            """
            1 .. Length of the payment system's part
            2 .. Derivation Key Index
            3 .. Cryptogram Version Number
            4 .. Length of the card verification results
            8 .. Length of the issuer's part
            9-32 .. Issuer discretionary data
            """)
            + cvr(
                visaCVRCryptograms + """

                    2 04 Offline PIN verification performed
                    2 02 Offline PIN verification failed

                    """ + visaCVRBytes3And4, from: 4))

    /// Formats 2 and 4: the CVR are bytes 4 to 8.
    static let iadVisaLong = BitTable(
        length: 32,
        rows: header(
            """
            1 .. Length
            2 .. Cryptogram Version Number
            3 .. Derivation Key Index
            9-32 .. Issuer discretionary data
            """)
            + cvr(
                """
                1 F0=00 CDCVM verified by: nobody
                1 F0=10 CDCVM verified by: Visa Mobile Payment Application
                1 F0=30 CDCVM verified by: co-residing application in the secure element
                1 F0=40 CDCVM verified by: application in the trusted execution environment
                1 F0=50 CDCVM verified by: mobile application
                1 F0=60 CDCVM verified by: terminal
                1 F0=70 CDCVM verified by: cloud
                1 F0=80 CDCVM verified by: mobile device's operating system
                1 0F=00 CDCVM: none
                1 0F=01 CDCVM: passcode
                1 0F=02 CDCVM: finger biometric
                1 0F=03 CDCVM: mobile device pattern
                1 0F=04 CDCVM: facial biometric
                1 0F=05 CDCVM: iris biometric
                1 0F=06 CDCVM: voice biometric
                1 0F=07 CDCVM: palm biometric
                1 0F=0D CDCVM: signature
                1 0F=0E CDCVM: online PIN
                2 04 CDCVM successfully performed
                5 80 Consumer device is not in debug mode
                5 40 Consumer device is not a rooted device
                5 20 Mobile application is not hooked
                5 10 Mobile application integrity is intact
                5 08 Consumer device has data connectivity
                5 04 Consumer device is genuine
                5 02 CDCVM successfully performed
                5 01 Secure messaging uses EMV session key-based derivation

                """ + visaCVRCryptograms + "\n" + visaCVRBytes3And4, from: 4))

    /// M/Chip Requirements, Appendix B: the CVR are bytes 3 to 8.
    static let iadMChip = BitTable(
        length: 18...28,
        rows: header(
            """
            1 .. Derivation Key Index
            2 F0=10 Cryptogram Version Number of M/Chip
            2 06=00 Session key: Mastercard proprietary SKD
            2 06=04 Session key: EMV CSK
            2 01 Counters included in AC data
            9-10 .. DAC or ICC Dynamic Number
            11-28 .. Counters
            """)
            + cvr(
                """
                1 C0=00 Second GENERATE AC returned AAC
                1 C0=40 Second GENERATE AC returned TC
                1 C0=80 Second GENERATE AC not requested
                1 30=00 First GENERATE AC returned AAC
                1 30=10 First GENERATE AC returned TC
                1 30=20 First GENERATE AC returned ARQC
                1 08 Date check failed
                1 04 Offline PIN verification performed
                1 02 Offline encrypted PIN verification performed
                1 01 Offline PIN verification successful
                2 80 DDA returned
                2 40 CDA returned in first GENERATE AC
                2 20 CDA returned in second GENERATE AC
                2 10 Issuer authentication performed
                2 08 CIAC-Default skipped on CAT3
                2 04 Offline change PIN result successful
                2 03=# Issuer discretionary
                3 F0=# Script counter
                3 0F=# PIN Try Counter
                4 80 Last online transaction not completed
                4 40 Unable to go online
                4 20 Offline PIN verification not performed
                4 10 Offline PIN verification failed
                4 08 PIN Try Limit exceeded
                4 04 International transaction
                4 02 Domestic transaction
                4 01 Terminal erroneously considers offline PIN OK
                5 80 Lower consecutive offline limit, or counter 1 limit, exceeded
                5 40 Upper consecutive offline limit, or counter 1 limit, exceeded
                5 20 Lower cumulative offline limit, or accumulator 1 limit, exceeded
                5 10 Upper cumulative offline limit, or accumulator 1 limit, exceeded
                5 08 Go online on next transaction was set
                5 04 Issuer authentication failed
                5 02 Script received
                5 01 Script failed
                6 80 Lower consecutive counter 2 limit exceeded
                6 40 Upper consecutive counter 2 limit exceeded
                6 20 Lower cumulative accumulator 2 limit exceeded
                6 10 Upper cumulative accumulator 2 limit exceeded
                6 08 MTA limit exceeded
                6 04 Number of days offline limit exceeded
                6 02 Match found in additional check table
                6 01 No match found in additional check table
                """, from: 3))

    private static func header(_ text: String) -> [Row] { text.split(separator: "\n").compactMap { row($0) } }

    /// Rows of card verification results, whose byte 1 is byte `first` of the whole.
    private static func cvr(_ text: String, from first: Int) -> [Row] {
        header(text).map {
            Row(
                bytes: $0.bytes.lowerBound + first - 1...$0.bytes.upperBound + first - 1, content: $0.content,
                meaning: $0.meaning)
        }
    }
}
