import EMVContactless
import SmartCard
import SmartCardSimulator
import TestSupport
import Testing

/// Whole transactions with virtual cards, which were written apart from the kernel: Entry Point, Kernel 3, and no command
/// more than it takes to select the application and to read what the card has.
@Suite struct Kernel3VirtualCardTests {
    /// Up to 50.00 `visa-offline` and its variants approve offline; the reader of these tests has no floor limit.
    @Test(
        arguments: [
            // Card, amount, outcome, cardholder verification, instructions
            ("visa", 12_34, .onlineRequest, Outcome.CVM.none, "A4 A4 A8 B2"),
            ("visa-decline", 12_34, .declined, Outcome.CVM.none, "A4 A4 A8 B2"),
            ("visa-offline", 50_00, .approved, Outcome.CVM.none, "A4 A4 A8 B2 B2 B2 B2"),
            ("visa-offline", 50_01, .onlineRequest, Outcome.CVM.none, "A4 A4 A8 B2"),
            ("visa-oda-online", 12_34, .onlineRequest, Outcome.CVM.none, "A4 A4 A8 B2"),
            ("visa-sda-online", 12_34, .onlineRequest, Outcome.CVM.none, "A4 A4 A8 B2"),
            ("visa-online-pin", 12_34, .onlineRequest, .onlinePIN, "A4 A4 A8 B2 B2 B2 B2"),
            ("visa-signature", 12_34, .approved, .signature, "A4 A4 A8 B2 B2 B2 B2"),
            ("visa-cdcvm", 12_34, .approved, .deviceCVM, "A4 A4 A8 B2 B2 B2 B2"),
            ("visa-oda-fails", 12_34, .declined, Outcome.CVM.none, "A4 A4 A8 B2 B2 B2 B2"),
            ("visa-oda-fails-online", 12_34, .onlineRequest, Outcome.CVM.none, "A4 A4 A8 B2 B2 B2 B2"),
            ("visa-oda-fails-switch", 12_34, .tryAnotherInterface, nil, "A4 A4 A8 B2 B2 B2 B2"),
            ("visa-expired", 12_34, .declined, Outcome.CVM.none, "A4 A4 A8 B2 B2 B2 B2"),
            ("visa-expired-online", 12_34, .onlineRequest, Outcome.CVM.none, "A4 A4 A8 B2 B2 B2 B2"),
            ("visa-switch-cash", 12_34, .approved, Outcome.CVM.none, "A4 A4 A8 B2 B2 B2 B2"),
            ("visa-switch-cashback", 12_34, .approved, Outcome.CVM.none, "A4 A4 A8 B2 B2 B2 B2"),
            ("visa-odd-keys", 12_34, .approved, Outcome.CVM.none, "A4 A4 A8 B2 B2 B2 B2"),
            ("visa-odd-records", 12_34, .approved, Outcome.CVM.none, "A4 A4 A8 B2 B2 B2 B2"),
            ("visa-msd", 12_34, .endApplication, nil, "A4 A4 A8 B2"),
            ("visa-without-ttq", 12_34, .endApplication, nil, "A4 A4"),
            ("blocked", 12_34, .endApplication, nil, "A4 A4"),
        ] as [(String, UInt64, Outcome.Kind, Outcome.CVM?, String)])
    func personalities(
        _ name: String, _ amount: UInt64, _ kind: Outcome.Kind, _ cvm: Outcome.CVM?, _ instructions: String
    ) throws {
        let play = try Play(name, amount: amount)
        expectEqual(play.final.outcome.kind, kind, "\(play.final.outcome.reason)")
        expectEqual(play.final.outcome.cvm, cvm)
        expectEqual(play.instructions, [instructions])
    }

    /// How many commands a transaction of 12.34 takes at a reader without floor limit that has Kernel 3 alone, each time the
    /// card is in the field.
    ///
    /// The least: SELECT of the directory (Book B, 3.3.2.2) and of each application that reader and card have in common, until
    /// one can be used (3.3.3.4); GET PROCESSING OPTIONS (Book C-3, 5.2.2.1); READ RECORD for each record of the AFL (5.3), of
    /// which every card here has as many as stand behind it.
    private static let least: [(name: String, commands: [Int])] = [
        ("visa", [2 + 1 + 1]), ("visa-decline", [2 + 1 + 1]),
        ("visa-update", [2 + 1 + 0]),  // all in the answer to GET PROCESSING OPTIONS
        ("visa-offline", [2 + 1 + 4]),  // for the certificates, which an offline approval takes
        ("visa-oda-online", [2 + 1 + 1]), ("visa-sda-online", [2 + 1 + 1]),  // not asked for by the reader
        ("visa-online-pin", [2 + 1 + 4]), ("visa-signature", [2 + 1 + 4]), ("visa-cdcvm", [2 + 1 + 4]),
        ("visa-oda-fails", [2 + 1 + 4]), ("visa-oda-fails-online", [2 + 1 + 4]), ("visa-oda-fails-switch", [2 + 1 + 4]),
        ("visa-expired", [2 + 1 + 4]), ("visa-expired-online", [2 + 1 + 4]),
        ("visa-switch-cash", [2 + 1 + 4]), ("visa-switch-cashback", [2 + 1 + 4]),
        ("visa-odd-keys", [2 + 1 + 4]), ("visa-odd-records", [2 + 1 + 4]),
        ("visa-msd", [2 + 1 + 1]),
        ("visa-without-ttq", [2]),  // none of Kernel 3's (Book B, 3.3.3.6)
        ("blocked", [2]),  // 6283 to SELECT: no other application (3.3.3.5)
        ("phone", [2 + 1, 2 + 1 + 1]),  // 6986, and presented again
        ("phone-apple", [2 + 1 + 1]), ("phone-google", [2 + 1 + 1]),
        ("two-applications", [2 + 1 + 0]),  // the reader does not know the other
        ("multi", [2 + 1 + 0]),  // the one of the highest priority (3.3.3.2)
        // Until the last application in common has been selected, whose kernel the reader does not have (3.4.1.1).
        ("mastercard", [2]), ("emv-cda", [2]), ("emv-sda", [2]), ("emv-dda", [2]),
        ("mastercard-online", [2]), ("mastercard-decline", [2]), ("mastercard-cda-fails", [2]),
        ("mastercard-odd-keys", [2]), ("mastercard-padded-keys", [2]), ("mastercard-advance", [2]),
        ("mastercard-rrp-slow", [2]),
        ("mastercard-rrp-early", [2]), ("mastercard-rrp-mismatch", [2]), ("mastercard-rrp-wrong", [2]),
        ("mastercard-torn", [2]), ("mastercard-torn-lost", [2]), ("mastercard-balance", [2]),
        ("mastercard-stripe", [2]),
        ("mastercard-stripe-wide", [2]), ("mastercard-stripe-phone", [2]), ("mastercard-storage", [2]),
        ("mastercard-storage-rrp", [2]), ("mastercard-phone", [2]), ("mastercard-phone-ready", [2]), ("maestro", [2]),
    ]

    @Test(arguments: least) func leastCommands(_ name: String, _ commands: [Int]) throws {
        var configuration = ReaderConfiguration.test
        for index in configuration.combinations.indices { configuration.combinations[index].floorLimit = nil }
        let play = try Play(name, configuration: configuration)
        expectEqual(play.instructions.map { $0.split(separator: " ").count }, commands, "\(play.instructions)")
    }

    /// Every payment card is among them.
    @Test func leastCommandsOfAll() {
        let cards = Dictionary(uniqueKeysWithValues: VirtualCards.all.map { ($0.name, $0.text) })
        /// Variants are payment cards if what they are made of is one.
        func isPayment(_ text: String) -> Bool {
            guard let base = text.firstMatch(of: /\nvariant (\S+)/)?.1 else { return text.contains("\ncard emv ") }
            return cards[String(base)].map(isPayment) ?? false
        }
        expectEqual(Set(cards.filter { isPayment($0.value) }.keys), Set(Self.least.map(\.name)))
    }

    /// TTQ byte 1 bit 1
    @Test(
        arguments: [
            ("visa-oda-online", "A4 A4 A8 B2 B2 B2 B2"), ("visa-sda-online", "A4 A4 A8 B2 B2 B2"),
            ("visa", "A4 A4 A8 B2"),
        ])
    func authenticatedOnline(_ name: String, _ instructions: String) throws {
        let play = try Play(name, qualifiers: "37 00 40 00")
        expectEqual(play.final.outcome.kind, .onlineRequest, "\(play.final.outcome.reason)")
        expectEqual(play.instructions, [instructions])
    }

    /// Without the key of the certification authority the signature proves nothing.
    @Test(arguments: ["visa-oda-online", "visa-sda-online", "visa-offline"])
    func unknownAuthority(_ name: String) throws {
        let play = try Play(name, qualifiers: "37 00 40 00", keys: CAPublicKeys())
        expectEqual(play.final.outcome.kind, .declined)
        #expect(play.final.outcome.reason.contains("the terminal has no such key"))
    }

    @Test(
        arguments: [
            ("visa-switch-cash", .cash), ("visa-switch-cashback", .purchaseWithCashback),
        ] as [(String, Transaction.Kind)])
    func notForCash(_ name: String, _ kind: Transaction.Kind) throws {
        // The cards are American; the first is for cash at home and abroad.
        try expectEqual(Play("visa-offline", kind: kind).final.outcome.kind, .approved)
        for country in ["02 76", "08 40"] {
            for each in [Transaction.Kind.purchase, .cash, .purchaseWithCashback] {
                let outcome = try Play(name, kind: each, country: country).final.outcome
                expectEqual(outcome.kind, each == kind ? .tryAnotherInterface : .approved, "\(each), \(country)")
            }
        }
    }

    /// 6986 first; then the card leaves, its holder has been verified, and it comes back.
    @Test func phone() throws {
        let play = try Play("phone", amount: 60_00, cvmRequiredLimit: 50_00)
        expectEqual(play.final.outcome.kind, .onlineRequest)
        expectEqual(play.final.outcome.cvm, .deviceCVM)
        expectEqual(play.instructions, ["A4 A4 A8", "A4 A4 A8 B2"])
        expectEqual(play.fieldOff, [1300])
        expectEqual(
            play.messages, [.presentCard, .seePhone, nil, .cardReadRemoveCard, .authorizing])
    }

    /// One transaction, with the card put on the reader each time it is asked for.
    private struct Play {
        private static func abilities(_ qualifiers: String) throws -> Set<ReaderConfiguration.Ability> {
            let bits = try wire(qualifiers)[0]
            let abilities: [(UInt8, ReaderConfiguration.Ability)] = [
                (0x10, .contacts), (0x04, .pinPad), (0x02, .screen),
            ]
            return Set(abilities.filter { bits & $0.0 != 0 }.map(\.1))
        }

        let final: FinalOutcome
        /// Of the commands, one string for each time the field came up.
        private(set) var instructions: [String] = []
        private(set) var messages: [UserInterfaceRequest.Message?] = []
        private(set) var fieldOff: [Int] = []

        init(
            _ name: String, kind: Transaction.Kind = .purchase, amount: UInt64 = 12_34,
            qualifiers: String = "36 00 40 00", cvmRequiredLimit: UInt64? = nil, country: String = "02 76",
            keys: CAPublicKeys? = nil, configuration: ReaderConfiguration? = nil
        ) throws {
            let card = try #require(VirtualCards.named(name))
            var bench = Kernel3Bench()
            (bench.kind, bench.amount, bench.qualifiers) = (kind, amount, qualifiers)
            bench.amountOther = kind == .purchaseWithCashback ? 1_00 : 0
            (bench.cvmRequiredLimit, bench.country) = (cvmRequiredLimit, country)
            let activation = try bench.activation()
            var entryPoint = EntryPoint(
                configuration:
                    try
                    (configuration
                    ?? ReaderConfiguration(
                        environment: .test, abilities: Self.abilities(qualifiers),
                        terminal: activation.terminalData.filter { $0.key == 0x9F1A },
                        combinations: [activation.combination])).validated(for: [3: Kernel3.self]),
                keys: try keys ?? Self.keys())
            var event = EntryPoint.Event.startA(activation.transaction)
            while true {
                let step = entryPoint.next(event)
                messages += step.userInterfaceRequests.map(\.message)
                switch step.action {
                case .activateField:
                    try #require(instructions.count < 4)
                    card.reset()
                    instructions.append("")
                    event = .cardPresent
                case .send(let command):
                    instructions[instructions.count - 1] +=
                        (instructions.last == "" ? "" : " ") + [command.ins].hex
                    let response = try #require(card.exchange(command.bytes))
                    event = .response(try ResponseAPDU(response), after: card.processingTime(of: command.bytes))
                case .exchange: event = .terminalData(DataRecord())
                case .switchFieldOff(let milliseconds):
                    fieldOff.append(milliseconds)
                    event = .fieldIsOff
                case .finish(let final):
                    self.final = final
                    return
                }
            }
        }

        private static func keys() throws -> CAPublicKeys {
            var keys = CAPublicKeys()
            for key in VirtualCards.certificationAuthorityKeys {
                keys.insert(
                    try CAPublicKey(
                        environment: .test, rid: key.rid, index: key.index, modulus: key.modulus,
                        exponent: key.exponent, checksum: key.checksum))
            }
            return keys
        }
    }
}
