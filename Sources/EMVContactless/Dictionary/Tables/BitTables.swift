import SmartCard

extension BitTable {
    static let tables: [DataElement.Scope: [TLVTag: BitTable]] = [
        .common: [
            0x82: applicationInterchangeProfile,
            0x95: terminalVerificationResults,
            0x9F0D: terminalVerificationResults, 0x9F0E: terminalVerificationResults,
            0x9F0F: terminalVerificationResults,
        ]
    ]

    /// EMV Book 3, Annex C1; for contactless, Book C-2, A.1.16.
    static let applicationInterchangeProfile = BitTable(
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

    /// EMV Book 3, Annex C5; also the layout of the issuer and terminal action codes.
    static let terminalVerificationResults = BitTable(
        length: 5,
        """
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
        3 04 Online PIN entered
        4 80 Transaction exceeds floor limit
        4 40 Lower consecutive offline limit exceeded
        4 20 Upper consecutive offline limit exceeded
        4 10 Transaction selected randomly for online processing
        4 08 Merchant forced transaction online
        5 80 Default TDOL used
        5 40 Issuer authentication failed
        5 20 Script processing failed before final GENERATE AC
        5 10 Script processing failed after final GENERATE AC
        5 08 Relay resistance threshold exceeded
        5 04 Relay resistance time limits exceeded
        5 03=01 Relay resistance protocol not performed
        5 03=02 Relay resistance protocol performed
        """)
}
