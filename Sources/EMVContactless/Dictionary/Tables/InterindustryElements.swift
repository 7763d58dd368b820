import SmartCard

extension DataElement {
    /// ISO/IEC 7816-4 and 7816-6: interindustry data objects that the EMV books do not use.
    static let interindustry = DataElementTable(
        scope: .common, document: "ISO/IEC 7816-4 and 7816-6",
        rows: """
            06   | Object identifier                                     | b           | var  | card
            41   | Country code and national data                        | var         | var  | card
            43   | Card service data                                     | b           | 1    | card
            44   | Initial access data                                   | b           | 1-5  | card
            45   | Card issuer's data                                    | var         | var  | card
            46   | Pre-issuing data                                      | var         | var  | card
            47   | Card capabilities                                     | b           | 1-3  | card
            48   | Status information                                    | b           | 1-3  | card
            4D   | Extended header list                                  | b           | var  | card
            51   | File reference                                        | b           | var  | card
            52   | Command to perform                                    | b           | var  | card
            53   | Discretionary data                                    | var         | var  | card
            58   | Track 3 equivalent data                               | b           | var  | card
            59   | Card expiration date                                  | n           | 2    | card
            5B   | Name of an individual                                 | ans         | 2-39 | card
            5C   | Tag list                                              | b           | var  | card
            5E   | Proprietary login data                                | var         | var  | card
            5F21 | Track 1                                               | ans         | 0-76 | card
            5F22 | Track 2                                               | n           | 0-37 | card
            5F23 | Track 3                                               | n           | var  | card
            5F26 | Card effective date                                   | n           | 3    | card
            5F27 | Interchange control                                   | n           | 1    | card
            5F29 | Interchange profile                                   | b           | var  | card
            5F2B | Date of birth                                         | n           | 4    | card
            5F2C | Cardholder nationality                                | n           | 2    | card
            5F2E | Cardholder biometric data                             | b           | var  | card
            5F2F | PIN usage policy                                      | b           | 2    | card
            5F32 | Transaction counter                                   | b           | var  | card
            5F33 | Transaction date                                      | n           | var  | card
            5F35 | Sex                                                   | n           | 1    | card
            5F37 | Static internal authentication                        | b           | var  | card
            5F38 | Static internal authentication, first associated data | b           | var  | card
            5F39 | Static internal authentication, second associated data | b          | var  | card
            5F3A | Dynamic internal authentication                       | b           | var  | card
            5F3B | Dynamic external authentication                       | b           | var  | card
            5F3C | Dynamic mutual authentication                         | b           | var  | card
            5F40 | Cardholder portrait image                             | b           | var  | card
            5F41 | Element list                                          | b           | var  | card
            5F42 | Address                                               | ans         | var  | card
            5F43 | Cardholder handwritten signature image                | b           | var  | card
            5F44 | Application image                                     | b           | var  | card
            5F45 | Display message                                       | ans         | var  | card
            5F46 | Timer                                                 | b           | var  | card
            5F47 | Message reference                                     | b           | var  | card
            5F48 | Cardholder private key                                | b           | var  | card
            5F49 | Cardholder public key                                 | b           | var  | card
            5F4A | Public key of certification authority                 | b           | var  | card
            5F4C | Certificate holder authorization                      | b           | var  | card
            5F4D | Integrated circuit manufacturer identifier            | b           | 1    | card
            5F4E | Certificate content                                   | b           | var  | card
            62   | File control parameters (FCP) template                | constructed | var  | card
            63   | Wrapper                                               | constructed | var  | card
            64   | File management data (FMD) template                   | constructed | var  | card
            65   | Cardholder related data                               | constructed | var  | card
            66   | Card data                                             | constructed | var  | card
            67   | Authentication data                                   | constructed | var  | card
            68   | Special user requirements                             | constructed | var  | card
            6A   | Login template                                        | constructed | var  | card
            6B   | Qualified name                                        | constructed | var  | card
            6C   | Cardholder image template                             | constructed | var  | card
            6D   | Application image template                            | constructed | var  | card
            6E   | Application related data                              | constructed | var  | card
            78   | Compatible tag allocation authority                   | constructed | var  | card
            79   | Coexistent tag allocation authority                   | constructed | var  | card
            7A   | Security support template                             | constructed | var  | card
            7B   | Security environment template                         | constructed | var  | card
            7C   | Dynamic authentication data                           | constructed | var  | card
            7D   | Secure messaging template                             | constructed | var  | card
            7E   | Interindustry data objects template                   | constructed | var  | card
            7F20 | Display control template                              | constructed | var  | card
            7F21 | Cardholder certificate                                | constructed | var  | card
            7F2E | Biometric data template                               | constructed | var  | card
            7F49 | Cardholder public key template                        | constructed | var  | card
            7F4C | Certificate holder authorization template             | constructed | var  | card
            7F4E | Certificate content template                          | constructed | var  | card
            """)

    /// ISO/IEC 7816-4, 7.4.3: file control parameters in an FCP or FCI template.
    static func fileControlParameters(in template: UInt32) -> DataElementTable {
        DataElementTable(
            scope: .template(.init(rawValue: template)), document: "ISO/IEC 7816-4, 7.4.3",
            rows: """
                80 | Number of data bytes in the file, excluding structural information  | b | 1-8  | card
                81 | Number of data bytes in the file, including structural information  | b | 2-8  | card
                82 | File descriptor                                                     | b | 1-6  | card
                83 | File identifier                                                     | b | 2    | card
                85 | Proprietary information, not BER-TLV                                | b | var  | card
                86 | Security attribute in proprietary format                            | b | var  | card
                87 | Identifier of an EF with an extension of the file control information | b | 2  | card
                88 | Short EF identifier                                                 | b | 0-1  | card
                8A | Life cycle status                                                   | b | 1    | card
                8B | Security attribute referencing the expanded format                  | b | var  | card
                8C | Security attribute in compact format                                | b | var  | card
                8D | Identifier of an EF with security environment templates             | b | 2    | card
                A0 | Security attribute template for data objects                        | constructed | var | card
                A1 | Security attribute template for physical interfaces                 | constructed | var | card
                A2 | Pairs of short EF identifier and file reference                     | constructed | var | card
                AB | Security attribute in expanded format                               | constructed | var | card
                AC | Cryptographic mechanism identifier template                         | constructed | var | card
                """)
    }

    /// ISO/IEC 7816-4, 10: secure messaging data objects.
    static let secureMessaging = DataElementTable(
        scope: .template(0x7D), document: "ISO/IEC 7816-4, 10.2",
        rows: """
            80 | Plain value not coded in BER-TLV                             | b | var | card
            81 | Plain value not coded in BER-TLV, authenticated              | b | var | card
            82 | Cryptogram, plain value in BER-TLV with SM objects           | b | var | card
            83 | Cryptogram, plain value in BER-TLV with SM objects, authenticated | b | var | card
            84 | Cryptogram, plain value in BER-TLV without SM objects        | b | var | card
            85 | Cryptogram, plain value in BER-TLV without SM objects, authenticated | b | var | card
            86 | Padding-content indicator and cryptogram                     | b | var | card
            87 | Padding-content indicator and cryptogram, authenticated      | b | var | card
            8E | Cryptographic checksum                                       | b | 4-255 | card
            90 | Hash-code                                                    | b | var | card
            91 | Hash-code, authenticated                                     | b | var | card
            92 | Certificate                                                  | b | var | card
            93 | Certificate, authenticated                                   | b | var | card
            94 | Security environment identifier                              | b | var | card
            95 | Security environment identifier, authenticated               | b | var | card
            96 | Ne in the unsecured command                                  | b | 1-2 | terminal
            97 | Ne in the unsecured command, authenticated                   | b | 1-2 | terminal
            99 | Processing status                                            | b | 2   | card
            9A | Input for the computation of a digital signature             | b | var | card
            9C | Public key                                                   | b | var | card
            9E | Digital signature                                            | b | var | card
            A0 | Input template for the computation of a hash-code            | constructed | var | card
            A2 | Input template for the verification of a cryptographic checksum | constructed | var | card
            A4 | Control reference template for authentication (AT)           | constructed | var | card
            A8 | Input template for the verification of a digital signature   | constructed | var | card
            AA | Control reference template for hash-code (HT)                | constructed | var | card
            AC | Input template for the computation of a digital signature    | constructed | var | card
            AE | Input template for the computation of a certificate          | constructed | var | card
            B0 | Plain value in BER-TLV with SM objects                       | constructed | var | card
            B2 | Plain value in BER-TLV without SM objects                    | constructed | var | card
            B4 | Control reference template for cryptographic checksum (CCT)  | constructed | var | card
            B6 | Control reference template for digital signature (DST)       | constructed | var | card
            B8 | Control reference template for confidentiality (CT)          | constructed | var | card
            BA | Response descriptor template                                 | constructed | var | card
            BE | Input template for the verification of a certificate         | constructed | var | card
            """)

    /// ISO/IEC 7816-4, 10.3.4: security environments.
    static let securityEnvironment = DataElementTable(
        scope: .template(0x7B), document: "ISO/IEC 7816-4, 10.3.4",
        rows: """
            80 | Security environment identifier                              | b | 1   | card
            8A | Life cycle status                                            | b | 1   | card
            A4 | Control reference template for authentication (AT)           | constructed | var | card
            AA | Control reference template for hash-code (HT)                | constructed | var | card
            AC | Cryptographic mechanism identifier template                  | constructed | var | card
            B4 | Control reference template for cryptographic checksum (CCT)  | constructed | var | card
            B6 | Control reference template for digital signature (DST)       | constructed | var | card
            B8 | Control reference template for confidentiality (CT)          | constructed | var | card
            """)

    /// ISO/IEC 7816-4, 11.5.5: GENERAL AUTHENTICATE.
    static let dynamicAuthentication = DataElementTable(
        scope: .template(0x7C), document: "ISO/IEC 7816-4, 11.5.5",
        rows: """
            80 | Witness                         | b | var | card
            81 | Challenge                       | b | var | terminal
            82 | Response                        | b | var | card
            83 | Committed challenge             | b | var | card
            84 | Authentication code             | b | var | card
            85 | Exponential                     | b | var | card
            A0 | Identification data template    | constructed | var | card
            """)

    /// ISO/IEC 7816-8, 5.2: the parts of a public key.
    static let publicKey = DataElementTable(
        scope: .template(0x7F49), document: "ISO/IEC 7816-8, table 3",
        rows: """
            80 | Algorithm reference                                        | b | var | card
            81 | RSA modulus, DSA first prime, or prime of the curve        | b | var | card
            82 | RSA public exponent, DSA second prime, or first coefficient | b | var | card
            83 | DSA basis, or second coefficient of the curve              | b | var | card
            84 | DSA public key, or generator of the curve                  | b | var | card
            85 | Order of the generator                                     | b | var | card
            86 | Point of an elliptic curve public key                      | b | var | card
            87 | Cofactor                                                   | b | var | card
            """)

    /// ISO/IEC 7816-8, Annex A: card-verifiable certificates.
    static let certificateBody = DataElementTable(
        scope: .template(0x7F4E), document: "ISO/IEC 7816-8, Annex A",
        rows: """
            42   | Certification authority reference    | ans | 0-16 | card
            5F20 | Certificate holder reference         | ans | 0-16 | card
            5F24 | Certificate expiration date          | n   | 6    | card
            5F25 | Certificate effective date           | n   | 6    | card
            5F29 | Certificate profile identifier       | b   | 1    | card
            65   | Certificate extensions               | constructed | var | card
            """)

    /// ISO/IEC 7816-6: logging in to a network.
    static let login = DataElementTable(
        scope: .template(0x6A), document: "ISO/IEC 7816-6",
        rows: """
            80 | Qualifier                                                | b   | var | card
            81 | Telephone number                                         | var | var | card
            82 | Text                                                     | ans | var | card
            83 | Delay indicators for detecting an end of message         | b   | var | card
            84 | Delay indicators for detecting an absence of response    | b   | var | card
            """)
}

extension DataElement {
    /// EMV Book 3, Annex A: inside a Biometric Header Template.
    static let biometricHeader = DataElementTable(
        scope: .template(0xA1), document: "EMV Book 3, Annex A",
        rows: """
            81 | Biometric Type         | b | var | card
            82 | Biometric Subtype      | b | 1   | card
            90 | Biometric Solution ID  | b | var | card
            """)

    static let biometricInformation = DataElementTable(
        scope: .template(0x7F60), document: "EMV Book 3, Annex A",
        rows: """
            A1 | Biometric Header Template (BHT) | constructed | var | card
            """)

    static let biometricTryCounters = DataElementTable(
        scope: .template(0xBF4C), document: "EMV Book 3, Annex A",
        rows: """
            DF50 | Facial Try Counter  | b | 1 | card
            DF51 | Finger Try Counter  | b | 1 | card
            DF52 | Iris Try Counter    | b | 1 | card
            DF53 | Palm Try Counter    | b | 1 | card
            DF54 | Voice Try Counter   | b | 1 | card
            """)

    static let preferredAttempts = DataElementTable(
        scope: .template(0xBF4D), document: "EMV Book 3, Annex A",
        rows: """
            DF50 | Preferred Facial Attempts  | b | 1 | card
            DF51 | Preferred Finger Attempts  | b | 1 | card
            DF52 | Preferred Iris Attempts    | b | 1 | card
            DF53 | Preferred Palm Attempts    | b | 1 | card
            DF54 | Preferred Voice Attempts   | b | 1 | card
            """)

    static let biometricVerification = DataElementTable(
        scope: .template(0xBF4E), document: "EMV Book 3, Annex A",
        rows: """
            81   | Biometric Type                    | b | var   | terminal
            90   | Biometric Solution ID             | b | var   | terminal
            DF50 | Enciphered Biometric Key Seed     | b | 0-248 | terminal
            DF51 | Enciphered Biometric Data         | b | var   | terminal
            DF52 | MAC of Enciphered Biometric Data  | b | 8     | terminal
            """)
}
