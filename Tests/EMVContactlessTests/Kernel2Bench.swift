import EMVContactless
import SmartCard
import Testing

/// Plays Entry Point, terminal and card against Kernel 2.
struct Kernel2Bench {
    /// What the FCI has besides its name: the PDOL asks for the terminal type.
    var fci = "9F 38 03  9F 35 01   5F 2D 04 64 65 45 4E"
    /// What it has in BF0C.
    var discretionary = ""
    var kind = Transaction.Kind.purchase
    var amount: UInt64 = 12_34
    var amountOther: UInt64 = 0
    var unpredictableNumber = "11 22 33 44"
    var furtherUnpredictableNumbers = ["55 66 77 88", "99 AA BB CC", "DD EE FF 00"]
    var transactionLimit: UInt64? = 10_000_00
    var floorLimit: UInt64?
    var cvmRequiredLimit: UInt64? = 50_00
    var date = "26 11 21"
    var hour = 12
    /// DF8117 to DF8122 and others, by tag, instead of ``terminal``; nil takes one away.
    var data: [String: String?] = [:]
    var keys = CAPublicKeys()
    var tornTransactions = TornTransactionLog()
    /// What the terminal answers to one exchange after the other; then nothing.
    var answers: [DataRecord] = []
    /// How long EXCHANGE RELAY RESISTANCE DATA takes, one time after the other, in microseconds.
    var relayTimes: [Int] = []

    /// That of an attended terminal in Germany that can do all of it, with the terminal action codes that Mastercard's are
    /// published with.
    static let terminal = [
        "9F1A": "0276", "9F33": "E06808", "9F35": "22", "9F40": "0000000000", "DF8117": "E0", "DF8118": "60",
        "DF8119": "08", "DF811B": "30", "DF811D": "02",
        "DF811E": "10", "DF811F": "08", "DF812C": "00", "DF8120": "F45084800C", "DF8121": "0000000000",
        "DF8122": "F45084800C",
    ]

    /// With the key that ``MChipCard`` was certified by.
    static var signing: Kernel2Bench {
        get throws {
            var bench = Kernel2Bench()
            bench.keys = CAPublicKeys([
                try CAPublicKey(
                    environment: .test, rid: wire("A0 00 00 00 04"), index: 0xF7,
                    modulus: wire(Kernel2Vectors.caModulus), exponent: [3],
                    checksum: wire(Kernel2Vectors.caChecksum))
            ])
            return bench
        }
    }

    /// With the numbers that the card has signed after relay resistance; 9F37 was another one before.
    var relaying: Kernel2Bench {
        var bench = self
        bench.unpredictableNumber = "FE DC BA 98"
        bench.furtherUnpredictableNumbers = ["11 22 33 44", "55 66 77 88", "99 AA BB CC"]
        return bench
    }

    func activation() throws -> KernelActivation {
        let name = try wire("A0 00 00 00 04 10 10")
        let aid = try #require(AID(name))
        let day = try #require(CalendarDate(packed: wire(date)))
        let time = try #require(TerminalTime(day, hour: hour))
        let currency = try #require(Currency["EUR"])
        let unpredictableNumber = try wire(unpredictableNumber)
        let transaction = try #require(
            Transaction(
                kind, amount: amount, amountOther: amountOther, currency: currency, time: time,
                unpredictableNumber: unpredictableNumber))
        let combination = Combination(
            aid: aid, kernel: 2, transactionLimit: transactionLimit, floorLimit: floorLimit,
            cvmRequiredLimit: cvmRequiredLimit)
        var terminalData = transaction.dataObjects
        for (tag, value) in Self.terminal.merging(data.compactMapValues { $0 }, uniquingKeysWith: { $1 }) {
            terminalData[TLVTag(hex: tag)] = try wire(value)
        }
        for (tag, value) in data where value == nil { terminalData[TLVTag(hex: tag)] = nil }
        let issuer = discretionary.isEmpty ? [] : TLVTag(0xBF0C).encode(try wire(discretionary))
        let template = TLVTag(0x6F).encode(
            TLVTag(0x84).encode(name) + TLVTag(0xA5).encode(try wire(fci) + issuer))
        return KernelActivation(
            combination: combination, indicators: PreProcessingIndicators(combination, transaction), name: name,
            selectResponse: ResponseAPDU(data: template, status: .success), transaction: transaction,
            unpredictableNumbers: UnpredictableNumbers(try furtherUnpredictableNumbers.map { try wire($0) }),
            terminalData: terminalData,
            offlineDataAuthentication: OfflineDataAuthentication(keys: keys, environment: .test, aid: aid, date: day),
            memory: tornTransactions)
    }

    /// Runs the kernel to its outcome.  The card has one response for each command; `-` stands for none.
    func run(_ responses: String...) throws -> Run { try run(responses) }

    func run(_ responses: [String]) throws -> Run {
        var kernel = Kernel2(try activation())
        var run = Run()
        var event = KernelEvent.start
        var rest = responses[...]
        var answers = answers[...]
        var times = relayTimes[...]
        var isPending = false
        while true {
            let before = kernel.state
            let step = kernel.next(event)
            if let signal = Self.signal(event, isPending: isPending) {
                run.transitions.insert(Transition(before.rawValue, signal, kernel.state.rawValue))
            }
            isPending = false
            run.requests += step.userInterfaceRequests
            switch step.action {
            case .outcome(let outcome):
                #expect(rest.isEmpty, "the kernel did not ask for \(rest.count) responses: \(outcome.reason)")
                run.outcome = outcome
                return run
            case .exchange(let exchange):
                run.exchanges.append(exchange)
                try #require(run.exchanges.count < 100, "the kernel asks the terminal without end")
                event = .terminalData(answers.popFirst() ?? DataRecord())
                isPending = ![.waitingForPDOLData, .waitingForFirstWriteFlag, .waitingForMagStripeFirstWriteFlag]
                    .contains(kernel.state)
            case .send(let command):
                run.commands.append(command.bytes.hex)
                let response = try #require(rest.first, "one command too many: \(command.bytes.hex)")
                rest = rest.dropFirst()
                let time = command.ins == 0xEA ? times.popFirst() ?? 10_000 : 10_000
                event =
                    response == "-"
                    ? .communicationError(.timeout)
                    : .response(try ResponseAPDU(wire(response)), after: .microseconds(time))
            }
        }
    }

    /// The signal of Book C-2 that an event stands for; nil for a terminal that has nothing to say and is not waited for.
    private static func signal(_ event: KernelEvent, isPending: Bool) -> String? {
        switch event {
        case .start: "ACT"
        case .response: "RA"
        case .communicationError: "L1RSP"
        case .terminalData(let objects): objects.elements.isEmpty ? isPending ? nil : "TIMEOUT" : "DET"
        }
    }

    struct Run {
        /// In hexadecimal.
        var commands: [String] = []
        var exchanges: [DataExchange] = []
        /// Those shown before the outcome.
        var requests: [UserInterfaceRequest] = []
        var outcome = Outcome(.endApplication, reason: "")
        var transitions: Set<Transition> = []

        /// Of the commands.
        var instructions: String { commands.map { String($0.dropFirst(2).prefix(2)) }.joined(separator: " ") }
        /// DF8115: L1, L2, L3, status word, message.
        var error: String? { outcome.discretionaryData?[0xDF8115]?.hex }

        subscript(record tag: TLVTag) -> String? { outcome.dataRecord?[tag]?.hex }
        subscript(discretionary tag: TLVTag) -> String? { outcome.discretionaryData?[tag]?.hex }
    }

    /// From one state of the kernel, by a signal, to the next one that waits for something.
    struct Transition: Hashable, CustomStringConvertible {
        /// State, signal, state.
        let parts: [String]

        var description: String { parts.joined(separator: " ") }

        init(_ from: String, _ signal: String, _ to: String) { parts = [from, signal, to] }
    }
}

/// An M/Chip card that signs its cryptograms (Vectors/kernel2.py), or one that does not.
struct MChipCard {
    var aip = "19 80"
    /// What the answer to GET PROCESSING OPTIONS has besides.
    var options = ""
    var record = Kernel2Vectors.record
    var iccCertificate = Kernel2Vectors.iccCertificate
    /// What the last record has besides.
    var more = ""

    /// Without CDA, for the same bench.
    static var unsigned: MChipCard {
        var card = MChipCard()
        card.aip = "18 80"
        return card
    }

    var processingOptions: String {
        get throws { try template(0x77, "82 02", aip, "94 08  10 01 01 01  18 01 02 00", options) }
    }

    /// To three READ RECORDs.
    var records: [String] {
        get throws {
            func object(_ tag: TLVTag, _ value: String) throws -> String { tag.encode(try wire(value)).hex }
            return [
                try template(0x70, record),
                try template(
                    0x70, "8F 01 F7  9F 32 01 03", object(0x90, Kernel2Vectors.issuerCertificate),
                    object(0x92, Kernel2Vectors.issuerRemainder)),
                try template(
                    0x70, "9F 47 01 03", object(0x9F46, iccCertificate), object(0x9F48, Kernel2Vectors.iccRemainder),
                    more),
            ]
        }
    }

    /// All up to the last record.
    var read: [String] { get throws { try [processingOptions] + records } }

    /// The answer to GENERATE AC of a card that does not sign.
    static func cryptogram(_ information: String, _ more: String = "") throws -> String {
        try template(
            0x77, "9F 27 01", information, "9F 36 02 00 42  9F 26 08 4A 8C F7 AC 9A 93 78 A0",
            "9F 10 12 01 10 A0 40 03 22 00 00 00 00 00 00 00 00 00 00 00 FF", more)
    }
}

extension String {
    /// The answer to a command, with status word 9000.
    var answered: String { self + "9000" }
}

/// Hexadecimal digits, one behind the other.
func joined(_ parts: String...) -> String { parts.joined() }

extension Outcome {
    /// The memory of Kernel 2.
    var tornTransactions: TornTransactionLog? { memory as? TornTransactionLog }
}

extension KernelMemories {
    /// The memory of Kernel 2; empty if it has kept none.
    var tornTransactions: TornTransactionLog { self[2] as? TornTransactionLog ?? TornTransactionLog() }
}
