import SmartCard

extension DataElement {
    /// GlobalPlatform Card Specification: an issuer security domain's answers to SELECT, GET DATA and GET STATUS.
    static let globalPlatform = DataElementTable(
        scope: .globalPlatform, document: "GlobalPlatform Card Specification 2.3",
        rows: """
            42   | Issuer Identification Number (IIN)                    | b   | var | card
            45   | Card Image Number (CIN)                               | b   | var | card
            4F   | Application identifier                                | b   | 5-16 | card
            66   | Card Data                                             | constructed | var | card
            67   | Card Capability Information                           | constructed | var | card
            84   | Executable Module AID                                 | b   | 5-16 | card
            9F65 | Maximum length of data field in command message       | b   | 1-2 | card
            9F6E | Application production life cycle data                | b   | var | card
            9F70 | Life cycle state                                      | b   | 1-2 | card
            9F7F | Card production life cycle (CPLC) data                | b   | 42-45 | card
            C0   | Key information data                                  | b   | 4-255 | card
            C1   | Sequence counter of the default key version number    | b   | 2-3 | card
            C2   | Confirmation counter                                  | b   | 2   | card
            C4   | Application's Executable Load File AID                | b   | 5-16 | card
            C5   | Privileges                                            | b   | 1-3 | card
            CC   | Associated Security Domain's AID                      | b   | 5-16 | card
            CE   | Executable Load File Version Number                   | b   | var | card
            CF   | Key diversification data                              | b   | 10  | card
            E0   | Key information template                              | constructed | var | card
            E3   | GlobalPlatform Registry related data                  | constructed | var | card
            FF21 | Extended card resources information                   | constructed | var | card
            """)

    /// GlobalPlatform Card Specification, Annex H: card recognition data.
    static let cardData = DataElementTable(
        scope: .template(0x66), document: "GlobalPlatform Card Specification 2.3, Annex H",
        rows: """
            73 | Card recognition data | constructed | var | card
            """)

    static let cardRecognition = DataElementTable(
        scope: .template(0x73), document: "GlobalPlatform Card Specification 2.3, Annex H",
        rows: """
            60 | Card management type and version                      | constructed | var | card
            63 | Card identification scheme                            | constructed | var | card
            64 | Secure channel protocol and its implementation options | constructed | var | card
            65 | Card configuration details                            | constructed | var | card
            66 | Card and chip details                                 | constructed | var | card
            """)

    /// EMV Card Personalization Specification: INITIALIZE UPDATE and GET DATA of the personalization process.
    static let personalizationCommands = DataElementTable(
        scope: .personalization, document: "EMV Card Personalization Specification",
        rows: """
            CF | Derivation data for initial personalization keys (KEYDATA) | b | 10 | card
            """)

    /// PC/SC Part 3, supplemental document: transparent sessions with a contactless reader.
    static let transparentSession = DataElementTable(
        scope: .reader, document: "PC/SC Part 3, Supplemental Document",
        rows: """
            5F46 | Timer                                          | b | 4   | terminal
            5F51 | Answer to reset                                | b | 0-33 | terminal
            80   | Version data object                            | b | 3   | terminal
            81   | Start transparent session                      | b | 0   | terminal
            82   | End transparent session                        | b | 0   | terminal
            83   | Turn off RF field                              | b | 0   | terminal
            84   | Turn on RF field                               | b | 0   | terminal
            8F   | Switch protocol                                | b | 2   | terminal
            90   | Transmission and reception flag                | b | 2   | terminal
            91   | Transmission bit framing                       | b | 1   | terminal
            92   | Reception bit framing                          | b | 1   | terminal
            94   | Transmit                                       | b | var | terminal
            95   | Transceive                                     | b | var | terminal
            96   | Response status                                | b | 2   | terminal
            97   | Response                                       | b | var | terminal
            C0   | Generic error status                           | b | 3   | terminal
            FF6D | Get parameters                                 | constructed | var | terminal
            FF6E | Set parameters                                 | constructed | var | terminal
            """)
}
