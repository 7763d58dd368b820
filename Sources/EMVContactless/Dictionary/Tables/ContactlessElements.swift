extension DataElement {
    /// The elements that Entry Point reads (EMV Contactless Book B), and the qualifiers that several kernels share
    /// (Book A).
    static let entryPoint = DataElementTable(
        scope: .common, document: "EMV Contactless Books A and B",
        rows: """
            9F28 | Contactless Application Capabilities Type | b | 2    | card
            9F29 | Extended Selection                        | b | 0-11 | card
            9F2A | Kernel Identifier                         | b | 0-8  | card
            9F66 | Terminal Transaction Qualifiers (TTQ)     | b | 4    | terminal
            9F6C | Card Transaction Qualifiers (CTQ)         | b | 2    | card
            """)

    /// EMV Contactless Book C-2, Annex A: the elements that Kernel 2 adds to the EMV books.
    static let kernel2 = DataElementTable(
        scope: .mastercard, document: "EMV Contactless Book C-2, Annex A",
        rows: """
            56     | Track 1 Data                                                                  | ans | 0-76  | card
            9F50   | Offline Accumulator Balance                                                   | n   | 6     | card
            9F51   | DRDOL                                                                         | b   | 0-250 | card
            9F53   | Transaction Category Code                                                     | an  | 1     | terminal
            9F54   | DS ODS Card                                                                   | b   | 0-160 | card
            9F5B   | DSDOL                                                                         | b   | 0-250 | card
            9F5C   | DS Requested Operator ID                                                      | b   | 8     | terminal
            9F5D   | Application Capabilities Information                                          | b   | 3     | card
            9F5E   | DS ID                                                                         | n   | 8-11  | card
            9F5F   | DS Slot Availability                                                          | b   | 1     | card
            9F60   | CVC3 (Track1)                                                                 | b   | 2     | card
            9F61   | CVC3 (Track2)                                                                 | b   | 2     | card
            9F62   | PCVC3 (Track1)                                                                | b   | 6     | card
            9F63   | PUNATC (Track1)                                                               | b   | 6     | card
            9F64   | NATC (Track1)                                                                 | b   | 1     | card
            9F65   | PCVC3 (Track2)                                                                | b   | 2     | card
            9F66   | PUNATC (Track2)                                                               | b   | 2     | card
            9F67   | NATC (Track2)                                                                 | b   | 1     | card
            9F69   | UDOL                                                                          | b   | 0-250 | card
            9F6A   | Unpredictable Number (Numeric)                                                | n   | 4     | kernel
            9F6B   | Track 2 Data                                                                  | b   | 0-19  | card
            9F6D   | Mag-stripe Application Version Number (Reader)                                | b   | 2     | kernel
            9F6E   | Third Party Data                                                              | b   | 5-32  | card
            9F6F   | DS Slot Management Control                                                    | b   | 1     | card
            9F70   | Protected Data Envelope 1                                                     | b   | 0-192 | card
            9F71   | Protected Data Envelope 2                                                     | b   | 0-192 | card
            9F72   | Protected Data Envelope 3                                                     | b   | 0-192 | card
            9F73   | Protected Data Envelope 4                                                     | b   | 0-192 | card
            9F74   | Protected Data Envelope 5                                                     | b   | 0-192 | card
            9F75   | Unprotected Data Envelope 1                                                   | b   | 0-192 | card
            9F76   | Unprotected Data Envelope 2                                                   | b   | 0-192 | card
            9F77   | Unprotected Data Envelope 3                                                   | b   | 0-192 | card
            9F78   | Unprotected Data Envelope 4                                                   | b   | 0-192 | card
            9F79   | Unprotected Data Envelope 5                                                   | b   | 0-192 | card
            9F7C   | Merchant Custom Data                                                          | b   | 20    | terminal
            9F7D   | DS Summary 1                                                                  | b   | 8-16  | card
            9F7E   | Mobile Support Indicator                                                      | b   | 1     | kernel
            9F7F   | DS Unpredictable Number                                                       | b   | 4     | card
            DF4B   | POS Cardholder Interaction Information                                        | b   | 3     | card
            DF60   | DS Input (Card)                                                               | b   | 8     | terminal
            DF61   | DS Digest H                                                                   | b   | 8     | kernel
            DF62   | DS ODS Info                                                                   | b   | 1     | terminal
            DF63   | DS ODS Term                                                                   | b   | 0-160 | terminal
            DF8101 | DS Summary 2                                                                  | b   | 8-16  | kernel
            DF8102 | DS Summary 3                                                                  | b   | 8-16  | kernel
            DF8104 | Balance Read Before Gen AC                                                    | n   | 6     | kernel
            DF8105 | Balance Read After Gen AC                                                     | n   | 6     | kernel
            DF8106 | Data Needed                                                                   | b   | var   | kernel
            DF8107 | CDOL1 Related Data                                                            | b   | var   | kernel
            DF8108 | DS AC Type                                                                    | b   | 1     | terminal
            DF8109 | DS Input (Term)                                                               | b   | 8     | terminal
            DF810A | DS ODS Info For Reader                                                        | b   | 1     | terminal
            DF810B | DS Summary Status                                                             | b   | 1     | kernel
            DF810C | Kernel ID                                                                     | b   | 1     | kernel
            DF810D | DSVN Term                                                                     | b   | 1     | kernel
            DF810E | Post-Gen AC Put Data Status                                                   | b   | 1     | kernel
            DF810F | Pre-Gen AC Put Data Status                                                    | b   | 1     | kernel
            DF8110 | Proceed To First Write Flag                                                   | b   | 1     | terminal
            DF8111 | PDOL Related Data                                                             | b   | var   | kernel
            DF8112 | Tags To Read                                                                  | b   | var   | terminal
            DF8113 | DRDOL Related Data                                                            | b   | var   | kernel
            DF8114 | Reference Control Parameter                                                   | b   | 1     | kernel
            DF8115 | Error Indication                                                              | b   | 6     | kernel
            DF8116 | User Interface Request Data                                                   | b   | 22    | kernel
            DF8117 | Card Data Input Capability                                                    | b   | 1     | kernel
            DF8118 | CVM Capability - CVM Required                                                 | b   | 1     | kernel
            DF8119 | CVM Capability - No CVM Required                                              | b   | 1     | kernel
            DF811A | Default UDOL                                                                  | b   | 3     | kernel
            DF811B | Kernel Configuration                                                          | b   | 1     | kernel
            DF811C | Max Lifetime of Torn Transaction Log Record                                   | b   | 2     | kernel
            DF811D | Max Number of Torn Transaction Log Records                                    | b   | 1     | kernel
            DF811E | Mag-stripe CVM Capability - CVM Required                                      | b   | 1     | kernel
            DF811F | Security Capability                                                           | b   | 1     | kernel
            DF8120 | Terminal Action Code - Default                                                | b   | 5     | kernel
            DF8121 | Terminal Action Code - Denial                                                 | b   | 5     | kernel
            DF8122 | Terminal Action Code - Online                                                 | b   | 5     | kernel
            DF8123 | Reader Contactless Floor Limit                                                | n   | 6     | kernel
            DF8124 | Reader Contactless Transaction Limit (No On-device CVM)                       | n   | 6     | kernel
            DF8125 | Reader Contactless Transaction Limit (On-device CVM)                          | n   | 6     | kernel
            DF8126 | Reader CVM Required Limit                                                     | n   | 6     | kernel
            DF8127 | Time Out Value                                                                | b   | 2     | kernel
            DF8128 | IDS Status                                                                    | b   | 1     | kernel
            DF8129 | Outcome Parameter Set                                                         | b   | 8     | kernel
            DF812A | DD Card (Track1)                                                              | ans | 0-56  | kernel
            DF812B | DD Card (Track2)                                                              | cn  | 0-11  | kernel
            DF812C | Mag-stripe CVM Capability - No CVM Required                                   | b   | 1     | kernel
            DF812D | Message Hold Time                                                             | n   | 3     | kernel
            DF8130 | Hold Time Value                                                               | b   | 1     | kernel
            DF8131 | Phone Message Table                                                           | b   | var   | kernel
            DF8132 | Minimum Relay Resistance Grace Period                                         | b   | 2     | kernel
            DF8133 | Maximum Relay Resistance Grace Period                                         | b   | 2     | kernel
            DF8134 | Terminal Expected Transmission Time For Relay Resistance C-APDU               | b   | 2     | kernel
            DF8135 | Terminal Expected Transmission Time For Relay Resistance R-APDU               | b   | 2     | kernel
            DF8136 | Relay Resistance Accuracy Threshold                                           | b   | 2     | kernel
            DF8137 | Relay Resistance Transmission Time Mismatch Threshold                         | b   | 1     | kernel
            DF8301 | Terminal Relay Resistance Entropy                                             | b   | 4     | kernel
            DF8302 | Device Relay Resistance Entropy                                               | b   | 4     | card
            DF8303 | Min Time For Processing Relay Resistance APDU                                 | b   | 2     | card
            DF8304 | Max Time For Processing Relay Resistance APDU                                 | b   | 2     | card
            DF8305 | Device Estimated Transmission Time For Relay Resistance R-APDU                | b   | 2     | card
            DF8306 | Measured Relay Resistance Processing Time                                     | b   | 2     | kernel
            DF8307 | RRP Counter                                                                   | b   | 1     | kernel
            FF8101 | Torn Record                                                                   | constructed | var | kernel
            FF8102 | Tags To Write Before Gen AC                                                   | constructed | var | terminal
            FF8103 | Tags To Write After Gen AC                                                    | constructed | var | terminal
            FF8104 | Data To Send                                                                  | constructed | var | kernel
            FF8105 | Data Record                                                                   | constructed | var | kernel
            FF8106 | Discretionary Data                                                            | constructed | var | kernel
            """)

    /// EMV Contactless Book C-8, Annex A: the elements that Kernel 8 adds to the EMV books.
    static let kernel8 = DataElementTable(
        scope: .kernel8, document: "EMV Contactless Book C-8, Annex A",
        rows: """
            9E     | Kernel Key Data                                                  | b | 0-132  | kernel
            9F2B   | Kernel Qualifier                                                 | b | 8      | kernel
            9F2C   | Card Qualifier                                                   | b | 7      | card
            9F8102 | Cardholder Verification Decision                                 | b | 1      | card
            9F8103 | Card Key Data                                                    | b | 64-132 | card
            9F8104 | Card TVR                                                         | b | 5      | card
            9F8105 | Enhanced Data Authentication MAC                                 | b | 8      | card
            9F8106 | Authenticated Application Data                                   | b | 0-128  | card
            9F8107 | IAD MAC Offset                                                   | b | 1      | card
            9F8108 | Restart Indicator                                                | b | 2-5    | card
            9F8109 | Issuer Application Data MAC                                      | b | 8      | kernel
            9F810A | Extended SDA Tag List                                            | b | var    | card
            9F810B | ICC ECC Public Key (for RSA Certificates)                        | b | 32-66  | card
            9F810C | Relay Resistance Time Excess                                     | b | 2      | kernel
            9F810D | Card Capabilities Information                                    | b | 2      | card
            9F8111 | Data Envelope 1                                                  | b | 0-243  | card
            9F8112 | Data Envelope 2                                                  | b | 0-243  | card
            9F8113 | Data Envelope 3                                                  | b | 0-243  | card
            9F8114 | Data Envelope 4                                                  | b | 0-243  | card
            9F8115 | Data Envelope 5                                                  | b | 0-243  | card
            9F8116 | Data Envelope 6                                                  | b | 0-243  | card
            9F8117 | Data Envelope 7                                                  | b | 0-243  | card
            9F8118 | Data Envelope 8                                                  | b | 0-243  | card
            9F8119 | Data Envelope 9                                                  | b | 0-243  | card
            9F811A | Data Envelope 10                                                 | b | 0-243  | card
            9F8201 | Data Needed                                                      | b | var    | kernel
            9F8202 | Proceed To First Write Flag                                      | b | 1      | terminal
            9F8203 | Tags To Read                                                     | b | var    | terminal
            9F8204 | Error Indication                                                 | b | 6      | kernel
            9F8205 | User Interface Request Data 1                                    | b | 13     | kernel
            9F8206 | Card Data Input Capability                                       | b | 1      | kernel
            9F8207 | CVM Capability - CVM Required                                    | b | 1      | kernel
            9F8208 | CVM Capability - No CVM Required                                 | b | 1      | kernel
            9F8209 | Kernel Configuration                                             | b | 2      | kernel
            9F820A | Security Capability                                              | b | 1      | kernel
            9F820B | Terminal Action Code - Denial                                    | b | 5      | kernel
            9F820C | Terminal Action Code - Online                                    | b | 5      | kernel
            9F820D | Reader Contactless Floor Limit                                   | n | 6      | kernel
            9F820E | Reader CVM Required Limit                                        | n | 6      | kernel
            9F820F | Timeout Value                                                    | b | 2      | kernel
            9F8210 | Outcome Parameter Set                                            | b | 8      | kernel
            9F8211 | Message Hold Time                                                | n | 3      | kernel
            9F8212 | Hold Time Value                                                  | b | 1      | kernel
            9F8213 | Minimum Relay Resistance Grace Period                            | b | 2      | kernel
            9F8214 | Maximum Relay Resistance Grace Period                            | b | 2      | kernel
            9F8215 | Terminal Expected Transmission Time For Relay Resistance C-APDU  | b | 2      | kernel
            9F8216 | Terminal Expected Transmission Time For Relay Resistance R-APDU  | b | 2      | kernel
            9F8217 | Relay Resistance Accuracy Threshold                              | b | 2      | kernel
            9F8218 | Relay Resistance Transmission Time Mismatch Threshold            | b | 1      | kernel
            9F8219 | User Interface Request Data 2                                    | b | 13     | kernel
            9F821A | Kernel Reserved TVR Mask                                         | b | 5      | kernel
            9F821B | Write Data Status                                                | b | 1      | kernel
            9F821C | Read Data Status                                                 | b | 1      | kernel
            9F821D | Message Identifiers On Restart                                   | b | 0-32   | kernel
            9F821E | Default IAD MAC Offset                                           | b | 1      | kernel
            9F821F | Discretionary Data Tag List                                      | b | var    | kernel
            9F8220 | Default CDOL1                                                    | b | 0-250  | kernel
            9F8221 | Tag Mapping List                                                 | b | var    | kernel
            BF8101 | Data To Send                                                     | constructed | var | kernel
            BF8102 | Data Record                                                      | constructed | var | kernel
            BF8103 | Discretionary Data                                               | constructed | var | kernel
            BF8104 | Data Envelopes To Write                                          | constructed | var | terminal
            """)
}
