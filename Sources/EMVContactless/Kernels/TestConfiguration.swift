import SmartCard

extension ReaderConfiguration {
    /// An attended online test terminal in Germany, with all the equipment of a till, for the applications of every scheme
    /// that has a contactless kernel.  It accepts only cards of test environments, and so can take no money.
    ///
    /// Limits: 10,000.00 for a transaction, no offline floor limit, cardholder verification from 50.00 on.
    public static let test = Self(
        unchecked: .test,
        abilities: [.pinPad, .paper, .display, .keyboard, .contacts, .magneticStripe, .manualKeyEntry],
        terminal: testTerminal.merging([
            0x9F33: [0xE0, 0xF8, 0xC8],  // terminal capabilities: offline PINs, too
            0x9F40: [0x60, 0x00, 0xF0, 0xA0, 0x01],  // additional terminal capabilities: code table 1
        ]) { $1 }, combinations: testCombinations)

    /// The same terminal, unattended, with an antenna and nothing else.  From 50.00 on the consumer device verifies
    /// the cardholder, or the transaction ends by the kernel's rules.
    public static let unattendedTest = Self(
        unchecked: .test, abilities: [],
        terminal: testTerminal.merging([
            0x9F35: [0x25]  // terminal type: unattended, offline with online capability
        ]) { $1 }, combinations: testCombinations)

    private static let testCombinations = testApplications.flatMap { kernel, aids in
        aids.compactMap { AID($0) }.map { testCombination($0, kernel) }
    }

    private init(
        unchecked environment: CAPublicKey.Environment, abilities: Set<Ability>, terminal: [TLVTag: [UInt8]],
        combinations: [Combination]
    ) {
        self.environment = environment
        self.abilities = abilities
        self.terminal = terminal
        self.combinations = combinations
    }

    private static let testTerminal: [TLVTag: [UInt8]] = [
        0x9F1A: [0x02, 0x76],  // terminal country code: Germany
        0x9F35: [0x22],  // terminal type: attended, offline with online capability
        0x9F15: [0x59, 0x99],  // merchant category code
        0x9F16: Array("TEST MERCHANT  ".utf8),  // merchant identifier
        0x9F1C: Array("TESTTERM".utf8),  // terminal identification
        0x9F4E: Array("TEST SHOP".utf8),  // merchant name and location
    ]

    /// The AIDs that the schemes have published.
    private static let testApplications: [(kernel: KernelIdentifier, aids: [[UInt8]])] = [
        (
            3,
            [
                [0xA0, 0x00, 0x00, 0x00, 0x03, 0x10, 0x10],  // Visa credit or debit
                [0xA0, 0x00, 0x00, 0x00, 0x03, 0x20, 0x10],  // Visa Electron
                [0xA0, 0x00, 0x00, 0x00, 0x03, 0x20, 0x20],  // V PAY
                [0xA0, 0x00, 0x00, 0x00, 0x03, 0x80, 0x10],  // Plus
            ]
        ),
        (
            2,
            [
                [0xA0, 0x00, 0x00, 0x00, 0x04, 0x10, 0x10],  // Mastercard
                [0xA0, 0x00, 0x00, 0x00, 0x04, 0x30, 0x60],  // Maestro
            ]
        ),
        (4, [[0xA0, 0x00, 0x00, 0x00, 0x25, 0x01]]),  // American Express
        (5, [[0xA0, 0x00, 0x00, 0x00, 0x65, 0x10, 0x10]]),  // JCB
        (6, [[0xA0, 0x00, 0x00, 0x01, 0x52, 0x30, 0x10]]),  // Discover
        (7, [[0xA0, 0x00, 0x00, 0x03, 0x33, 0x01, 0x01]]),  // UnionPay debit, credit and quasi-credit
        // EMVCo's kernel, for cards that request it by tag 9F2A.
        (8, [[0xA0, 0x00, 0x00, 0x00, 0x04, 0x10, 0x10], [0xA0, 0x00, 0x00, 0x00, 0x04, 0x30, 0x60]]),
    ]

    private static func testCombination(_ aid: AID, _ kernel: KernelIdentifier) -> Combination {
        Combination(
            aid: aid, kernel: kernel, transactionLimit: 1_000_000, floorLimit: 0, cvmRequiredLimit: 5_000,
            terminalTransactionQualifiers: kernel == 3
                ? [.emvMode, .issuerUpdateProcessing, .consumerDeviceCVM]
                : nil,
            statusCheck: false, zeroAmountAllowed: true, data: kernel == 2 ? kernel2Data(aid) : [:])
    }

    /// Kernel 2's abilities here: CDA, relay resistance, on-device verification, and recovery of two torn
    /// transactions.  The terminal action codes are published ones; Maestro has no mag-stripe mode.
    private static func kernel2Data(_ aid: AID) -> [TLVTag: [UInt8]] {
        let isMaestro = aid.bytes.starts(with: [0xA0, 0x00, 0x00, 0x00, 0x04, 0x30, 0x60])
        return [
            0xDF811B: [isMaestro ? 0xB0 : 0x30],  // kernel configuration: on-device verification, relay resistance
            0xDF811D: [0x02],  // torn transactions
            0xDF811F: [0x08],  // security capability: CDA
            0xDF8120: isMaestro ? [0xF4, 0x50, 0x04, 0x80, 0x0C] : [0xF4, 0x50, 0x84, 0x80, 0x0C],  // TAC, default
            0xDF8121: isMaestro ? [0x00, 0x00, 0x80, 0x00, 0x00] : [0x00, 0x00, 0x00, 0x00, 0x00],  // TAC, denial
            0xDF8122: isMaestro ? [0xF4, 0x50, 0x04, 0x80, 0x0C] : [0xF4, 0x50, 0x84, 0x80, 0x0C],  // TAC, online
        ]
    }
}
