extension DataElement {
    /// The tables, one for each document and scope.
    static let tables: [DataElementTable] = [
        emvBooks, entryPoint, kernel2, kernel8,
        mchip, visa, americanExpress, jcb, discover, unionPay, interac,
        interindustry, fileControlParameters(in: 0x62), fileControlParameters(in: 0x6F),
        secureMessaging, securityEnvironment, dynamicAuthentication, publicKey, certificateBody, login,
        biometricInformation, biometricHeader, biometricTryCounters, preferredAttempts, biometricVerification,
        globalPlatform, cardData, cardRecognition, personalizationCommands, transparentSession,
    ]
}

extension DataElement {
    /// EMV Books 1 to 4 version 4.4, from Annex A of Book 3.
    static let emvBooks = DataElementTable(
        scope: .common, document: "EMV Book 3, Annex A",
        rows: """
            42   | Issuer Identification Number (IIN)                                   | n           | 3      | card
            4F   | Application Dedicated File (ADF) Name                                | b           | 5-16   | card
            50   | Application Label                                                    | ans         | 1-16   | card
            57   | Track 2 Equivalent Data                                              | b           | 0-19   | card
            5A   | Application Primary Account Number (PAN)                             | cn          | 0-10   | card
            5F20 | Cardholder Name                                                      | ans         | 2-26   | card
            5F24 | Application Expiration Date                                          | n           | 3      | card
            5F25 | Application Effective Date                                           | n           | 3      | card
            5F28 | Issuer Country Code                                                  | n           | 2      | card
            5F2A | Transaction Currency Code                                            | n           | 2      | terminal
            5F2D | Language Preference                                                  | an          | 2-8    | card
            5F30 | Service Code                                                         | n           | 2      | card
            5F34 | Application Primary Account Number (PAN) Sequence Number             | n           | 1      | card
            5F36 | Transaction Currency Exponent                                        | n           | 1      | terminal
            5F50 | Issuer URL                                                           | ans         | var    | card
            5F53 | International Bank Account Number (IBAN)                             | var         | 0-34   | card
            5F54 | Bank Identifier Code (BIC)                                           | var         | 8-11   | card
            5F55 | Issuer Country Code (alpha2 format)                                  | a           | 2      | card
            5F56 | Issuer Country Code (alpha3 format)                                  | a           | 3      | card
            5F57 | Account Type                                                         | n           | 1      | terminal
            61   | Application Template                                                 | constructed | 0-252  | card
            6F   | File Control Information (FCI) Template                              | constructed | 0-252  | card
            70   | READ RECORD Response Message Template                                | constructed | 0-252  | card
            71   | Issuer Script Template 1                                             | constructed | var    | issuer
            72   | Issuer Script Template 2                                             | constructed | var    | issuer
            73   | Directory Discretionary Template                                     | constructed | 0-252  | card
            77   | Response Message Template Format 2                                   | constructed | var    | card
            7F60 | Biometric Information Template (BIT)                                 | constructed | var    | card
            80   | Response Message Template Format 1                                   | var         | var    | card
            81   | Amount, Authorised (Binary)                                          | b           | 4      | terminal
            82   | Application Interchange Profile                                      | b           | 2      | card
            83   | Command Template                                                     | b           | var    | terminal
            84   | Dedicated File (DF) Name                                             | b           | 5-16   | card
            86   | Issuer Script Command                                                | b           | 0-261  | issuer
            87   | Application Priority Indicator                                       | b           | 1      | card
            88   | Short File Identifier (SFI)                                          | b           | 1      | card
            89   | Authorisation Code                                                   | an          | 6      | issuer
            8A   | Authorisation Response Code                                          | an          | 2      | issuer
            8C   | Card Risk Management Data Object List 1 (CDOL1)                      | b           | 0-252  | card
            8D   | Card Risk Management Data Object List 2 (CDOL2)                      | b           | 0-252  | card
            8E   | Cardholder Verification Method (CVM) List                            | b           | 10-252 | card
            8F   | Certification Authority Public Key Index                             | b           | 1      | card
            90   | Issuer Public Key Certificate                                        | b           | 0-248  | card
            91   | Issuer Authentication Data                                           | b           | 8-16   | issuer
            92   | Issuer Public Key Remainder                                          | b           | var    | card
            93   | Signed Static Application Data                                       | b           | 0-248  | card
            94   | Application File Locator (AFL)                                       | var         | 0-252  | card
            95   | Terminal Verification Results                                        | b           | 5      | terminal
            97   | Transaction Certificate Data Object List (TDOL)                      | b           | 0-252  | card
            98   | Transaction Certificate (TC) Hash Value                              | b           | 20     | terminal
            99   | Transaction Personal Identification Number (PIN) Data                | b           | var    | terminal
            9A   | Transaction Date                                                     | n           | 3      | terminal
            9B   | Transaction Status Information                                       | b           | 2      | terminal
            9C   | Transaction Type                                                     | n           | 1      | terminal
            9D   | Directory Definition File (DDF) Name                                 | b           | 5-16   | card
            9F01 | Acquirer Identifier                                                  | n           | 6      | terminal
            9F02 | Amount, Authorised (Numeric)                                         | n           | 6      | terminal
            9F03 | Amount, Other (Numeric)                                              | n           | 6      | terminal
            9F04 | Amount, Other (Binary)                                               | b           | 4      | terminal
            9F05 | Application Discretionary Data                                       | b           | 1-32   | card
            9F06 | Application Identifier (AID) - terminal                              | b           | 5-16   | terminal
            9F07 | Application Usage Control                                            | b           | 2      | card
            9F08 | Application Version Number                                           | b           | 2      | card
            9F09 | Application Version Number - terminal                                | b           | 2      | terminal
            9F0A | Application Selection Registered Proprietary Data                    | b           | var    | card
            9F0B | Cardholder Name Extended                                             | ans         | 27-45  | card
            9F0C | Issuer Identification Number Extended (IINE)                         | n           | 3-4    | card
            9F0D | Issuer Action Code - Default                                         | b           | 5      | card
            9F0E | Issuer Action Code - Denial                                          | b           | 5      | card
            9F0F | Issuer Action Code - Online                                          | b           | 5      | card
            9F10 | Issuer Application Data                                              | b           | 0-32   | card
            9F11 | Issuer Code Table Index                                              | n           | 1      | card
            9F12 | Application Preferred Name                                           | ans         | 1-16   | card
            9F13 | Last Online Application Transaction Counter (ATC) Register           | b           | 2      | card
            9F14 | Lower Consecutive Offline Limit                                      | b           | 1      | card
            9F15 | Merchant Category Code                                               | n           | 2      | terminal
            9F16 | Merchant Identifier                                                  | ans         | 15     | terminal
            9F17 | Personal Identification Number (PIN) Try Counter                     | b           | 1      | card
            9F18 | Issuer Script Identifier                                             | b           | 4      | issuer
            9F19 | Token Requestor ID                                                   | n           | 6      | card
            9F1A | Terminal Country Code                                                | n           | 2      | terminal
            9F1B | Terminal Floor Limit                                                 | b           | 4      | terminal
            9F1C | Terminal Identification                                              | an          | 8      | terminal
            9F1D | Terminal Risk Management Data                                        | b           | 1-8    | terminal
            9F1E | Interface Device (IFD) Serial Number                                 | an          | 8      | terminal
            9F1F | Track 1 Discretionary Data                                           | ans         | var    | card
            9F20 | Track 2 Discretionary Data                                           | cn          | var    | card
            9F21 | Transaction Time                                                     | n           | 3      | terminal
            9F22 | Certification Authority Public Key Index - terminal                  | b           | 1      | terminal
            9F23 | Upper Consecutive Offline Limit                                      | b           | 1      | card
            9F24 | Payment Account Reference (PAR)                                      | an          | 29     | card
            9F25 | Last 4 Digits of PAN                                                 | n           | 2      | card
            9F26 | Application Cryptogram                                               | b           | 8      | card
            9F27 | Cryptogram Information Data                                          | b           | 1      | card
            9F2D | Integrated Circuit Card (ICC) PIN Encipherment Public Key Certificate | b          | 0-248  | card
            9F2E | Integrated Circuit Card (ICC) PIN Encipherment Public Key Exponent   | b           | 1-3    | card
            9F2F | Integrated Circuit Card (ICC) PIN Encipherment Public Key Remainder  | b           | var    | card
            9F30 | Biometric Terminal Capabilities                                      | b           | 3      | terminal
            9F31 | Card BIT Group Template                                              | b           | var    | card
            9F32 | Issuer Public Key Exponent                                           | b           | 1-3    | card
            9F33 | Terminal Capabilities                                                | b           | 3      | terminal
            9F34 | Cardholder Verification Method (CVM) Results                         | b           | 3      | terminal
            9F35 | Terminal Type                                                        | n           | 1      | terminal
            9F36 | Application Transaction Counter (ATC)                                | b           | 2      | card
            9F37 | Unpredictable Number                                                 | b           | 4      | terminal
            9F38 | Processing Options Data Object List (PDOL)                           | b           | var    | card
            9F39 | Point-of-Service (POS) Entry Mode                                    | n           | 1      | terminal
            9F3A | Amount, Reference Currency                                           | b           | 4      | terminal
            9F3B | Application Reference Currency                                       | n           | 2-8    | card
            9F3C | Transaction Reference Currency Code                                  | n           | 2      | terminal
            9F3D | Transaction Reference Currency Exponent                              | n           | 1      | terminal
            9F40 | Additional Terminal Capabilities                                     | b           | 5      | terminal
            9F41 | Transaction Sequence Counter                                         | n           | 2-4    | terminal
            9F42 | Application Currency Code                                            | n           | 2      | card
            9F43 | Application Reference Currency Exponent                              | n           | 1-4    | card
            9F44 | Application Currency Exponent                                        | n           | 1      | card
            9F45 | Data Authentication Code                                             | b           | 2      | card
            9F46 | Integrated Circuit Card (ICC) Public Key Certificate                 | b           | 0-248  | card
            9F47 | Integrated Circuit Card (ICC) Public Key Exponent                    | b           | 1-3    | card
            9F48 | Integrated Circuit Card (ICC) Public Key Remainder                   | b           | var    | card
            9F49 | Dynamic Data Authentication Data Object List (DDOL)                  | b           | 0-252  | card
            9F4A | Static Data Authentication Tag List                                  | var         | var    | card
            9F4B | Signed Dynamic Application Data                                      | b           | 0-248  | card
            9F4C | ICC Dynamic Number                                                   | b           | 2-8    | card
            9F4D | Log Entry                                                            | b           | 2      | card
            9F4E | Merchant Name and Location                                           | ans         | var    | terminal
            9F4F | Log Format                                                           | b           | var    | card
            A5   | File Control Information (FCI) Proprietary Template                  | constructed | var    | card
            BF0C | File Control Information (FCI) Issuer Discretionary Data             | constructed | 0-222  | card
            BF4A | Offline BIT Group Template                                           | constructed | var    | card
            BF4B | Online BIT Group Template                                            | constructed | var    | card
            BF4C | Biometric Try Counters Template                                      | constructed | var    | card
            BF4D | Preferred Attempts Template                                          | constructed | var    | card
            BF4E | Biometric Verification Data Template                                 | constructed | var    | terminal
            """)
}
