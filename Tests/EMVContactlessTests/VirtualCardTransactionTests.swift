import EMVContactless
import SmartCard
import SmartCardSimulator
import Testing

/// Whole transactions with the virtual cards, which are written from the specifications apart from the kernel.
///
/// What each is to give follows from what it is and from Book C-3; how many commands, from what it cannot do without:
/// SELECT PPSE, SELECT, GET PROCESSING OPTIONS, and a READ RECORD for each record that it names.
@Suite struct VirtualCardTransactionTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let card: String
        /// Whether the reader has a floor limit above the amount.
        let offline: Bool
        let outcome: Outcome.Kind
        let cvm: Outcome.CVM?
        let commands: Int
        var kind = Transaction.Kind.purchase
        var amount: UInt64 = 1234

        var testDescription: String { "\(card), \(offline ? "offline" : "online"), \(kind) of \(amount)" }

        init(
            _ card: String, offline: Bool, _ outcome: Outcome.Kind, _ cvm: Outcome.CVM?, commands: Int,
            kind: Transaction.Kind = .purchase, amount: UInt64 = 1234
        ) {
            (self.card, self.offline, self.outcome, self.cvm) = (card, offline, outcome, cvm)
            (self.commands, self.kind, self.amount) = (commands, kind, amount)
        }
    }

    /// Records: `visa` has one; the cards with fDDA four for an offline approval, one for an online request.
    static let rows: [Row] = [
        Row("visa", offline: false, .onlineRequest, .noCVM, commands: 4),
        Row("visa", offline: true, .onlineRequest, .noCVM, commands: 4),
        Row("visa", offline: false, .onlineRequest, .noCVM, commands: 4, kind: .refund),
        Row("two-applications", offline: false, .onlineRequest, .noCVM, commands: 3),
        Row("multi", offline: false, .onlineRequest, .noCVM, commands: 3),
        Row("blocked", offline: false, .endApplication, nil, commands: 2),
        // First 6986 to GPO, then all of it once more.
        Row("phone", offline: false, .onlineRequest, .confirmationCodeVerified, commands: 7),
        Row("visa-decline", offline: true, .declined, .noCVM, commands: 4),
        Row("visa-offline", offline: false, .onlineRequest, .noCVM, commands: 4),
        Row("visa-offline", offline: true, .approved, .noCVM, commands: 7),
        Row("visa-odd-keys", offline: true, .approved, .noCVM, commands: 7),
        Row("visa-odd-records", offline: true, .approved, .noCVM, commands: 7),
        Row("visa-online-pin", offline: true, .onlineRequest, .onlinePIN, commands: 7),
        Row("visa-signature", offline: true, .approved, .obtainSignature, commands: 7),
        Row("visa-cdcvm", offline: true, .approved, .confirmationCodeVerified, commands: 7),
        Row("visa-oda-fails", offline: true, .declined, .noCVM, commands: 7),
        Row("visa-oda-fails-online", offline: true, .onlineRequest, .noCVM, commands: 7),
        Row("visa-oda-fails-switch", offline: true, .tryAnotherInterface, nil, commands: 7),
        Row("visa-expired", offline: true, .declined, .noCVM, commands: 7),
        Row("visa-expired-online", offline: true, .onlineRequest, .noCVM, commands: 7),
        Row("visa-switch-cash", offline: true, .approved, .noCVM, commands: 7),
        Row("visa-switch-cash", offline: true, .tryAnotherInterface, nil, commands: 7, kind: .cash),
        Row("visa-switch-cashback", offline: true, .approved, .noCVM, commands: 7),
        Row("visa-switch-cashback", offline: true, .tryAnotherInterface, nil, commands: 7, kind: .purchaseWithCashback),
        Row("visa-msd", offline: false, .endApplication, nil, commands: 4),
        Row("visa-without-ttq", offline: false, .endApplication, nil, commands: 2),
        // Kernel 2 does not exist yet.
        Row("mastercard", offline: false, .endApplication, nil, commands: 2),
    ]

    @Test(arguments: rows) func outcomeAndCommands(_ row: Row) throws {
        let (final, commands) = try play(row)
        #expect(final.outcome.kind == row.outcome, "\(final.outcome.reason)")
        #expect(final.outcome.cvm == row.cvm, "\(final.outcome.reason)")
        #expect(commands.count == row.commands, "\(commands)")
        #expect(Set(commands).count == commands.count || row.card == "phone", "a command is sent twice: \(commands)")
    }

    /// ODA for online authorisations, for a reader that supports it (TTQ byte 1 bit 1).
    @Test(arguments: ["visa-oda-online", "visa-sda-online"]) func authenticatedAndOnline(_ card: String) throws {
        let row = Row(card, offline: false, .onlineRequest, .noCVM, commands: 0)
        let (final, commands) = try play(row, qualifiers: [.emvMode, .offlineDataAuthenticationForOnline])
        #expect(final.outcome.kind == .onlineRequest, "\(final.outcome.reason)")
        // The records with the certificates are read, and once each.
        #expect(commands.filter { $0.hasPrefix("00B2") }.count > 1)
        #expect(Set(commands).count == commands.count)
        #expect(!final.outcome.reason.contains("failed"), "\(final.outcome.reason)")
    }

    /// From the limit on the cardholder has to be verified, and this card leaves it to the reader.
    @Test func theCVMLimit() throws {
        let row = Row("visa", offline: false, .onlineRequest, nil, commands: 4, amount: 5_000)
        #expect(try play(row).final.outcome.cvm != .noCVM)
    }

    /// What goes to the issuer is what the card and the terminal said.
    @Test func theDataRecord() throws {
        let (final, _) = try play(Row("visa", offline: false, .onlineRequest, .noCVM, commands: 4))
        let record = try #require(final.outcome.dataRecord)
        // The account number of the card file, Visa's published test number.
        #expect(record[0x57]?.hex.hasPrefix("4761739001010010D3112201") == true)
        #expect(record[0x9F02]?.hex == "000000001234")
        #expect(record[0x9F37]?.hex == "01020304")
        #expect(record[0x9F36]?.hex == "0042")
        #expect(record[0x9F26]?.count == 8)
        #expect(!"\(record)".contains("4761739001010010"))
    }

    // MARK: The bench

    private func play(
        _ row: Row, qualifiers: TerminalTransactionQualifiers? = nil
    ) throws -> (final: FinalOutcome, commands: [String]) {
        let card = try #require(VirtualCards.named(row.card))
        var configuration = ReaderConfiguration.test
        for index in configuration.combinations.indices {
            if row.offline { configuration.combinations[index].floorLimit = 1_000_000 }
            if let qualifiers, configuration.combinations[index].kernel == 3 {
                configuration.combinations[index].terminalTransactionQualifiers = qualifiers
            }
        }
        var keys = CAPublicKeys.published
        for key in VirtualCards.certificationAuthorityKeys {
            keys.insert(
                try CAPublicKey(
                    environment: .test, rid: key.rid, index: key.index, modulus: key.modulus, exponent: key.exponent,
                    checksum: key.checksum, expiration: CalendarDate(packed: key.expires)))
        }
        let date = try #require(CalendarDate(year: 2026, month: 11, day: 21))
        let time = try #require(TerminalTime(date))
        let currency = try #require(Currency["EUR"])
        let transaction = try #require(
            Transaction(
                row.kind, amount: row.amount, amountOther: row.kind == .purchaseWithCashback ? 200 : 0,
                currency: currency, time: time, unpredictableNumber: [1, 2, 3, 4]))

        var entryPoint = EntryPoint(configuration: configuration, kernels: Kernels.all, keys: keys)
        var event = EntryPoint.Event.startA(transaction)
        var commands: [String] = []
        while commands.count < 100 {
            switch entryPoint.next(event).action {
            case .activateField:
                card.reset()
                event = .cardPresent
            case .switchFieldOff: event = .fieldIsOff
            case .send(let command):
                commands.append(command.bytes.hex)
                let answer = try #require(card.exchange(command.bytes))
                event = .response(try ResponseAPDU(answer), after: .milliseconds(20))
            case .finish(let final): return (final, commands)
            }
        }
        throw CardError(.other, "no end: \(commands)")
    }
}
