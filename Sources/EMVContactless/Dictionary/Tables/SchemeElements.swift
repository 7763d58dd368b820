extension DataElement {
    /// M/Chip Advance and M/Chip 4: the card application's internal data, read by GET DATA or set by the issuer.
    static let mchip = DataElementTable(
        scope: .mastercard, document: "M/Chip Advance Card Application Specification",
        rows: """
            9F58 | Offline Accumulator 2 Balance                     | n | 6     | card
            9F59 | Offline Counter 2 Balance                         | b | 1     | card
            9F68 | Mag-stripe CVM List                               | b | 0-32  | card
            9F6C | Mag-stripe Application Version Number (Card)      | b | 2     | card
            9F7A | Offline Counter 1 Balance                         | b | 1     | card
            C3   | Card Issuer Action Code - Decline                 | b | 3     | card
            C4   | Card Issuer Action Code - Default                 | b | 3     | card
            C5   | Card Issuer Action Code - Online                  | b | 3     | card
            C6   | PIN Try Limit                                     | b | 1     | card
            C7   | CDOL1 Related Data Length                         | b | 1     | card
            C8   | CRM Country Code                                  | n | 2     | card
            C9   | Accumulator 1 Currency Code                       | n | 2     | card
            CA   | Accumulator 1 Lower Limit                         | n | 6     | card
            CB   | Accumulator 1 Upper Limit                         | n | 6     | card
            CD   | Card Issuer Action Code (Contactless) - Default   | b | 3     | card
            CE   | Card Issuer Action Code (Contactless) - Online    | b | 3     | card
            CF   | Card Issuer Action Code (Contactless) - Decline   | b | 3     | card
            D1   | Accumulator 1 Currency Conversion Table           | b | 25    | card
            D3   | Additional Check Table                            | b | 18    | card
            D5   | Application Control                               | b | 2-6   | card
            D6   | Default ARPC Response Code                        | b | 2     | card
            D7   | Application Control (Contactless)                 | b | 2-6   | card
            D8   | Application Interchange Profile (Contactless)     | b | 2     | card
            D9   | Application File Locator (Contactless)            | b | 0-252 | card
            DA   | Static CVC3 (Track1)                              | b | 2     | card
            DB   | Static CVC3 (Track2)                              | b | 2     | card
            DC   | IVCVC3 (Track1)                                   | b | 2     | card
            DD   | IVCVC3 (Track2)                                   | b | 2     | card
            DE   | Log Data Table                                    | b | var   | card
            DF11 | Accumulator 1 Control                             | b | var   | card
            DF12 | Accumulator 1 Control (Contactless)               | b | var   | card
            DF13 | Accumulator 2 Amount                              | n | 6     | card
            DF14 | Accumulator 2 Control                             | b | var   | card
            DF15 | Accumulator 2 Control (Contactless)               | b | var   | card
            DF16 | Accumulator 2 Currency Code                       | n | 2     | card
            DF17 | Accumulator 2 Currency Conversion Table           | b | 25    | card
            DF18 | Accumulator 2 Lower Limit                         | n | 6     | card
            DF19 | Accumulator 2 Upper Limit                         | n | 6     | card
            DF1A | Counter 1 Control                                 | b | var   | card
            DF1B | Counter 1 Control (Contactless)                   | b | var   | card
            DF1C | Counter 1 Number                                  | b | 1     | card
            DF1D | Counter 2 Control                                 | b | var   | card
            DF1E | Counter 2 Control (Contactless)                   | b | var   | card
            DF1F | Counter 2 Lower Limit                             | b | 1     | card
            DF20 | Counter 2 Number                                  | b | 1     | card
            DF21 | Counter 2 Upper Limit                             | b | 1     | card
            DF22 | MTA CVM                                           | n | 6     | card
            DF23 | MTA CVM (Contactless)                             | n | 6     | card
            DF24 | MTA Currency Code                                 | n | 2     | card
            DF25 | MTA No CVM                                        | n | 6     | card
            DF26 | MTA No CVM (Contactless)                          | n | 6     | card
            DF27 | Number of Days Offline Limit                      | b | 2     | card
            DF28 | Accumulator 1 CVR Dependency Data                 | b | 3     | card
            DF29 | Accumulator 1 CVR Dependency Data (Contactless)   | b | 3     | card
            DF2A | Accumulator 2 CVR Dependency Data                 | b | 3     | card
            DF2B | Accumulator 2 CVR Dependency Data (Contactless)   | b | 3     | card
            DF2C | Counter 1 CVR Dependency Data                     | b | 3     | card
            DF2D | Counter 1 CVR Dependency Data (Contactless)       | b | 3     | card
            DF2E | Counter 2 CVR Dependency Data                     | b | 3     | card
            DF2F | Counter 2 CVR Dependency Data (Contactless)       | b | 3     | card
            DF30 | Interface Enabling Switch                         | b | 1     | card
            DF3B | Accumulator 1 Amount                              | n | 6     | card
            DF3C | CVR Issuer Discretionary Data                     | b | 1     | card
            DF3D | CVR Issuer Discretionary Data (Contactless)       | b | 1     | card
            DF3E | Interface Identifier                              | b | 1     | card
            DF3F | Read Record Filter                                | b | var   | card
            DF40 | Read Record Filter (Contactless)                  | b | var   | card
            """)

    /// Visa: VIS, and VCPS with EMV Contactless Book C-3.
    static let visa = DataElementTable(
        scope: .visa, document: "VIS and VCPS; EMV Contactless Book C-3, Annex A",
        rows: """
            56   | Track 1 Data                                                      | ans | 0-76 | card
            9F51 | Application Currency Code                                         | n  | 2    | card
            9F52 | Application Default Action (ADA)                                  | b  | 4-6  | card
            9F53 | Consecutive Transaction Counter International Limit (CTCIL)       | b  | 1    | card
            9F54 | Cumulative Total Transaction Amount Limit (CTTAL)                 | n  | 6    | card
            9F55 | Geographic Indicator                                              | b  | 1    | card
            9F56 | Issuer Authentication Indicator                                   | b  | 1    | card
            9F57 | Issuer Country Code                                               | n  | 2    | card
            9F58 | Consecutive Transaction Counter Limit (CTCL)                      | b  | 1    | card
            9F59 | Consecutive Transaction Counter Upper Limit (CTCUL)               | b  | 1    | card
            9F5A | Application Program Identifier                                    | b  | 1-16 | card
            9F5B | Issuer Script Results                                             | b  | var  | terminal
            9F5C | Cumulative Total Transaction Amount Upper Limit (CTTAUL)          | n  | 6    | card
            9F5D | Available Offline Spending Amount (AOSA)                          | n  | 6    | card
            9F5E | Consecutive Transaction International Upper Limit (CTIUL)         | b  | 1    | card
            9F63 | Offline Counter Initial Value                                     | b  | 1    | card
            9F67 | MSD Offset                                                        | b  | 1    | card
            9F68 | Card Additional Processes                                         | b  | 4    | card
            9F69 | Card Authentication Related Data                                  | b  | 5-16 | card
            9F6B | Card CVM Limit                                                    | n  | 6    | card
            9F6D | VLP Reset Threshold                                               | n  | 6    | card
            9F6E | Form Factor Indicator (FFI)                                       | b  | 4    | card
            9F72 | Consecutive Transaction Limit (International - Country)           | b  | 1    | card
            9F73 | Currency Conversion Factor                                        | n  | 4    | card
            9F74 | VLP Issuer Authorisation Code                                     | an | 6    | card
            9F75 | Cumulative Total Transaction Amount Limit - Dual Currency         | n  | 6    | card
            9F76 | Secondary Application Currency Code                               | n  | 2    | card
            9F77 | VLP Funds Limit                                                   | n  | 6    | card
            9F78 | VLP Single Transaction Limit                                      | n  | 6    | card
            9F79 | VLP Available Funds                                               | n  | 6    | card
            9F7A | VLP Terminal Support Indicator                                    | b  | 1    | terminal
            9F7B | VLP Terminal Transaction Limit                                    | n  | 6    | terminal
            9F7C | Customer Exclusive Data (CED)                                     | b  | 0-32 | card
            BF50 | Visa Fleet - CDO                                                  | constructed | var | card
            BF60 | Integrated Data Storage Record Update Template                    | constructed | var | card
            D2   | Integrated Data Storage Directory (IDSD)                          | b  | var  | card
            DF60 | Visa Log Entry                                                    | b  | 2    | card
            """)

    /// American Express: EMV Contactless Book C-4.
    static let americanExpress = DataElementTable(
        scope: .americanExpress, document: "EMV Contactless Book C-4; Expresspay Card Specification",
        rows: """
            9F5A | Membership Product Identifier             | an  | 0-8  | card
            9F5B | Product Membership Number                 | ans | 0-32 | card
            9F6D | Contactless Reader Capabilities           | b   | 1    | terminal
            9F6E | Enhanced Contactless Reader Capabilities  | b   | 4    | terminal
            9F70 | Card Interface and Payment Capabilities   | b   | 2    | card
            9F71 | Mobile CVM Results                        | b   | 3    | card
            """)

    /// JCB: EMV Contactless Book C-5.
    static let jcb = DataElementTable(
        scope: .jcb, document: "EMV Contactless Book C-5, Annex A",
        rows: """
            9F50 | Cardholder Verification Status    | b | 1    | card
            9F52 | Terminal Compatibility Indicator  | b | 1    | terminal
            9F53 | Terminal Interchange Profile      | b | 3    | terminal
            9F6E | Device Information                | b | 4    | card
            9F7C | Partner Discretionary Data        | b | 0-32 | card
            """)

    /// Discover and Diners Club: EMV Contactless Book C-6 and the D-PAS card profile.
    static let discover = DataElementTable(
        scope: .discover, document: "EMV Contactless Book C-6; D-PAS Card Specification",
        rows: """
            56   | Track 1 Data                                              | ans | 0-76  | card
            9F69 | Card Authentication Related Data (CARD)                   | b   | 5-16  | card
            9F6E | Form Factor Indicator                                     | b   | 4-8   | card
            9F71 | Card Processing Requirement (CPR)                         | b   | 2     | card
            9F78 | Application State                                         | b   | 1     | card
            9F7E | Dynamic Card Verification Value (DCVV)                    | b   | 3     | card
            BF50 | Contactless D-PAS Default Profile                         | constructed | var | card
            C0   | Application Configuration Options (Contactless)           | b   | 3     | card
            C1   | Application Configuration Options                         | b   | 3     | card
            C2   | Issuer Life Cycle Data                                    | b   | 48    | card
            C3   | Currency Conversion Code 1                                | b   | 5     | card
            C4   | Currency Conversion Code 2                                | b   | 5     | card
            C5   | Card Action Code - Denial                                 | b   | 3     | card
            C6   | Card Action Code - Default                                | b   | 3     | card
            C7   | Card Action Code - Online                                 | b   | 3     | card
            C8   | Lower Cumulative Offline Amount (LCOA)                    | n   | 6     | card
            C9   | Upper Cumulative Offline Amount (UCOA)                    | n   | 6     | card
            CA   | Single Transaction Amount (STA) Limit                     | n   | 6     | card
            CB   | Lower Consecutive Offline Limit (LCOL)                    | b   | 1     | card
            CC   | Upper Consecutive Offline Limit (UCOL)                    | b   | 1     | card
            CD   | Number of Consecutive Offline Transactions (NCOT)         | b   | 1     | card
            CE   | Cumulative Offline Amount (COA)                           | n   | 6     | card
            D0   | Issuer Application Data Object List                       | b   | var   | card
            D2   | CRM Country Code                                          | n   | 2     | card
            D3   | CRM Currency Code                                         | n   | 2     | card
            D4   | CVM Accumulator                                           | n   | 6     | card
            D5   | CVM Cumulative Transaction Limit 1                        | n   | 6     | card
            D6   | CVM Cumulative Transaction Limit 2                        | n   | 6     | card
            D7   | CVM Single Transaction Amount Limit 1                     | n   | 6     | card
            D8   | CVM Single Transaction Amount Limit 2                     | n   | 6     | card
            D9   | CVM Counter                                               | b   | 1     | card
            DA   | CVM Consecutive Transaction Limit 1                       | b   | 1     | card
            DB   | CVM Consecutive Transaction Limit 2                       | b   | 1     | card
            DE   | Counters and Accumulators Control Options (CACO)          | b   | 6     | card
            DF20 | Transaction Profile Object                                | b   | var   | card
            DF30 | CRM - Card Action Code - Switch Interface                 | b   | 3     | card
            DF31 | CRM - Card Action Code - Denial                           | b   | 3     | card
            DF32 | CRM - Card Action Code - Online                           | b   | 3     | card
            DF33 | CRM - Card Action Code - Default                          | b   | 3     | card
            DF34 | CVM - Card Action Code - Online PIN                       | b   | 2     | card
            DF35 | CVM - Card Action Code - Signature                        | b   | 2     | card
            DF3A | Card Feature Version Number                               | b   | 1     | card
            DF3B | Card Feature Descriptor                                   | b   | var   | card
            DF3C | Extended Logging Data                                     | b   | 1-32  | card
            DF3E | Card ID                                                   | b   | 11-64 | card
            DF40 | Contactless Accumulator                                   | n   | 6     | card
            DF41 | Contactless Cumulative Transaction Limit                  | n   | 6     | card
            DF42 | Contactless Single Transaction Amount Limit               | n   | 6     | card
            DF43 | Contactless Counter                                       | b   | 1     | card
            DF44 | Contactless Consecutive Transaction Limit                 | b   | 1     | card
            DF62 | Application Selection Flag                                | b   | 2     | card
            """)

    /// UnionPay: EMV Contactless Book C-7, and JR/T 0025 (PBOC 3.0) whose names are translated.
    static let unionPay = DataElementTable(
        scope: .unionPay, document: "EMV Contactless Book C-7; JR/T 0025",
        rows: """
            9F51 | Application Currency Code                                     | n  | 2    | card
            9F52 | Application Default Action (ADA)                              | b  | 2-6  | card
            9F53 | Consecutive Transaction Limit (International)                 | b  | 1    | card
            9F54 | Cumulative Total Transaction Amount Limit                     | n  | 6    | card
            9F56 | Issuer Authentication Indicator                               | b  | 1    | card
            9F57 | Issuer Country Code                                           | n  | 2    | card
            9F58 | Lower Consecutive Offline Limit                               | b  | 1    | card
            9F59 | Upper Consecutive Offline Limit                               | b  | 1    | card
            9F5C | Cumulative Total Transaction Amount Upper Limit               | n  | 6    | card
            9F5D | Available Offline Spending Amount                             | n  | 6    | card
            9F61 | Cardholder Identity Document Number                           | an | 0-40 | card
            9F62 | Cardholder Identity Document Type                             | cn | 1    | card
            9F63 | Product Identification Information                            | b  | 16   | card
            9F68 | Card Additional Processes                                     | b  | 4    | card
            9F69 | Card Authentication Related Data                              | b  | 5-16 | card
            9F6B | Card CVM Limit                                                | n  | 6    | card
            9F6D | EC Reset Threshold                                            | n  | 6    | card
            9F72 | Consecutive Transaction Limit (International - Country)       | b  | 1    | card
            9F73 | Currency Conversion Factor                                    | n  | 4    | card
            9F74 | EC Issuer Authorization Code                                  | an | 6    | card
            9F75 | Cumulative Total Transaction Amount Limit - Dual Currency     | n  | 6    | card
            9F76 | Secondary Application Currency Code                           | n  | 2    | card
            9F77 | EC Balance Limit                                              | n  | 6    | card
            9F78 | EC Single Transaction Limit                                   | n  | 6    | card
            9F79 | EC Balance                                                    | n  | 6    | card
            9F7A | EC Terminal Support Indicator                                 | n  | 1    | terminal
            9F7B | EC Terminal Transaction Limit                                 | n  | 6    | terminal
            9F7C | Partner Proprietary Data                                      | b  | 0-32 | card
            DF60 | CAPP Transaction Indicator                                    | b  | 1    | terminal
            DF69 | SM Algorithm Support Indicator                                | b  | 1    | terminal
            """)

    /// Interac Flash: the reader's data for the card.
    static let interac = DataElementTable(
        scope: .interac, document: "Interac Flash",
        rows: """
            9F58 | Merchant Type Indicator               | b | 1 | terminal
            9F59 | Terminal Transaction Information      | b | 3 | terminal
            9F5A | Terminal Transaction Type             | b | 1 | terminal
            9F5E | Terminal Option Status                | b | 2 | terminal
            9F5F | Reader Contactless Floor Limit        | n | 6 | terminal
            """)
}
