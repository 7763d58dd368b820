extension KnownApplication {
    /// Payment applications, and the directories that lead to them: `AID | scheme | product | remark`.
    ///
    /// RIDs as registered under ISO/IEC 7816-5; products as the schemes and card profiles publish them.
    static let table = """
        315041592E5359532E4444463031 | EMVCo            | Payment System Environment (1PAY.SYS.DDF01)            | contact
        325041592E5359532E4444463031 | EMVCo            | Proximity Payment System Environment (2PAY.SYS.DDF01)  | contactless
        A0000000031010     | Visa             | Visa Debit or Credit                     |
        A000000003101001   | Visa             | Visa Credit                              |
        A000000003101002   | Visa             | Visa Debit                               |
        A0000000032010     | Visa             | Visa Electron                            |
        A0000000032020     | Visa             | V PAY                                    | Europe
        A0000000033010     | Visa             | Interlink                                | United States
        A0000000034010     | Visa             | Visa Specific                            |
        A0000000035010     | Visa             | Visa Specific                            |
        A0000000036010     | Visa             | Domestic Visa Cash                       |
        A0000000036020     | Visa             | International Visa Cash                  |
        A0000000038002     | Visa             | Dynamic Passcode Authentication          |
        A0000000038010     | Visa             | Plus                                     |
        A0000000039010     | Visa             | Visa Loyalty                             |
        A000000003999910   | Visa             | Proprietary ATM                          |
        A0000000980840     | Visa             | Visa U.S. Common Debit                   | United States
        A0000000980848     | Visa             | Visa U.S. Debit                          | United States
        A0000000041010     | Mastercard       | Mastercard Credit or Debit               |
        A00000000410101213 | Mastercard       | Mastercard Credit                        |
        A00000000410101215 | Mastercard       | Mastercard Credit                        |
        A0000000042010     | Mastercard       | Mastercard Specific                      |
        A0000000042203     | Mastercard       | U.S. Maestro Common Debit                | United States
        A0000000043010     | Mastercard       | Mastercard Specific                      |
        A0000000043060     | Mastercard       | Maestro                                  |
        A000000004306001   | Mastercard       | Maestro                                  |
        A0000000044010     | Mastercard       | Mastercard Specific                      |
        A0000000045010     | Mastercard       | Mastercard Specific                      |
        A0000000046000     | Mastercard       | Cirrus                                   |
        A0000000048002     | Mastercard       | SecureCode, Chip Authentication Program  |
        A00000000491       | Mastercard       | Private label transit                    |
        A0000000049999     | Mastercard       | PayPass                                  |
        A0000000050001     | Mastercard       | Maestro UK                               | United Kingdom
        A0000000050002     | Mastercard       | Solo                                     | United Kingdom
        A0000000101030     | Europay          | Maestro                                  | Switzerland
        B012345678         | Mastercard       | Maestro test                             | for development
        A00000002401       | Midland Bank     | Self Service                             | United Kingdom
        A0000000250000     | American Express | American Express                         |
        A00000002501       | American Express | American Express                         |
        A000000025010104   | American Express | American Express                         |
        A000000025010402   | American Express | American Express                         |
        A000000025010701   | American Express | Expresspay                               |
        A000000025010801   | American Express | American Express                         |
        A0000000291010     | LINK             | LINK                                     | United Kingdom, ATM
        A0000000421010     | Cartes Bancaires | CB                                       | France
        A0000000422010     | Cartes Bancaires | CB                                       | France
        A0000000423010     | Cartes Bancaires | CB                                       | France
        A0000000424010     | Cartes Bancaires | CB                                       | France
        A0000000425010     | Cartes Bancaires | CB                                       | France
        A0000000426010     | Cartes Bancaires | CB contactless                           | France
        A00000005945430100 | girocard         | girocard electronic cash                 | Germany
        A0000003591010028001 | girocard       | girocard                                 | Germany, EAPS
        A00000035910100380 | PagoBANCOMAT     | PagoBANCOMAT                             | Italy, EAPS
        D27600002545500100 | girocard         | girocard                                 | Germany
        D27600002545410100 | girocard         | girocard                                 | Germany
        D27600002547410100 | girocard         | girocard ATM                             | Germany
        D2760000254D010200 | girocard         | Age verification                         | Germany
        A0000000651010     | JCB              | JCB                                      |
        A00000006900       | Moneo            | Moneo                                    | France
        A0000001110101     | PostFinance      | Postcard                                 | Switzerland
        A0000001211010     | Dankort          | Dankort                                  | Denmark
        A0000001214711     | Dankort          | Dankort                                  | Denmark
        A0000001214712     | Dankort          | Dankort                                  | Denmark
        A0000001410001     | PagoBANCOMAT     | PagoBANCOMAT                             | Italy
        A0000001523010     | Discover         | Discover and Diners Club D-PAS           |
        A0000001524010     | Discover         | U.S. Common Debit                        | United States
        A0000003241010     | Discover         | Zip                                      | United States
        A0000001544442     | Banricompras     | Banricompras Débito                      | Brazil
        A000000172950001   | BAROC            | Financial Application                    | Taiwan
        A0000001850002     | Post Office      | Post Office Card Account                 | United Kingdom
        A0000001884443     | Diners Club      | Diners Club                              | Switzerland
        A0000002040000     | APACS            | UK Payments                              | United Kingdom
        A0000002281010     | mada             | mada, formerly SPAN (M/Chip)             | Saudi Arabia
        A0000002282010     | mada             | mada, formerly SPAN (VIS)                | Saudi Arabia
        A0000002771010     | Interac          | Interac Debit and Flash                  | Canada
        A00000031510100528 | Currence         | PIN                                      | Netherlands
        A0000003156020     | Currence         | Chipknip                                 | Netherlands
        A000000333010101   | UnionPay         | UnionPay Debit                           |
        A000000333010102   | UnionPay         | UnionPay Credit                          |
        A000000333010103   | UnionPay         | UnionPay Quasi Credit                    |
        A000000333010106   | UnionPay         | UnionPay Electronic Cash                 | China
        A000000333010108   | UnionPay         | U.S. Common Debit                        | United States
        A000000337101000   | GIM-UEMOA        | Standard                                 | West Africa
        A000000337101001   | GIM-UEMOA        | Prepaid, online                          | West Africa
        A000000337102000   | GIM-UEMOA        | Classic                                  | West Africa
        A000000337102001   | GIM-UEMOA        | Prepaid, offline                         | West Africa
        A000000337301000   | GIM-UEMOA        | Cash withdrawal                          | West Africa
        A000000337601001   | GIM-UEMOA        | Electronic purse                         | West Africa
        A000000341000101   | CEPAS            | Contactless e-purse                      | Singapore
        A0000003660001     | Poste Italiane   | Postamat                                 | Italy
        A0000003660002     | Poste Italiane   | Postamat Visa                            | Italy
        A0000003710001     | Verve            | Verve                                    | Nigeria
        A00000038410       | eftpos           | eftpos Savings                           | Australia
        A00000038420       | eftpos           | eftpos Cheque                            | Australia
        A0000004271010     | Hipercard        | Hiperchip                                | Brazil
        A0000004320001     | PRO100           | Universal Electronic Card                | Russia
        A0000004360100     | Edenred          | Ticket Restaurant                        | Belgium
        A0000004391010     | Accel            | Exchange                                 | United States
        A0000004540010     | eTranzact        | Genesis                                  | Nigeria
        A0000004540011     | eTranzact        | Genesis                                  | Nigeria
        A0000004766C       | Google           | Google Payment                           |
        A0000005241010     | RuPay            | RuPay                                    | India
        A0000006200620     | DNA              | U.S. Common Debit                        | United States
        A000000632010105   | China T-Union    | T-Union                                  | China
        A0000006581010     | Mir              | Mir Credit                               | Russia
        A0000006581011     | Mir              | Mir Credit                               | Russia
        A0000006582010     | Mir              | Mir Debit                                | Russia
        A0000006723010     | Troy             | Troy Credit                              | Türkiye
        A0000006723020     | Troy             | Troy Debit                               | Türkiye
        A000000732100123   | Meeza            | Meeza                                    | Egypt
        A0000007705850     | Indian Oil       | XTRAPOWER Fleet                          | India
        A0000007790000     | Zimswitch        | Zimswitch                                | Zimbabwe
        D040000001000002   | Quick            | Quick electronic purse                   | Austria
        D0400000190001     | Austria Card     | Maestro ATM                              | Austria
        D0400000190002     | Austria Card     | Maestro POS                              | Austria
        D0400000190003     | Austria Card     | Mastercard ATM                           | Austria
        D0400000190004     | Austria Card     | Mastercard POS                           | Austria
        D5780000021010     | BankAxept        | BankAxept                                | Norway
        D7560000010101     | Reka             | Reka Card                                | Switzerland
        D7560000300101     | Migros           | M-Budget                                 | Switzerland
        F0000000030001     | Bradesco         | Bradesco                                 | Brazil
        """
}
