import EMVContactless
import SmartCard
import SmartCardSimulator
import Synchronization

/// What is fuzzed: each target takes any input, and throws what it finds.  Fuzz/ has libFuzzer write the inputs; the tests
/// take those of Fuzz/corpora, and change them a little.
public enum FuzzTargets {
    /// What must not be.
    public struct Finding: Error, CustomStringConvertible {
        public let description: String
    }

    /// BER-TLV, a DOL, an AFL, a track, an APDU, an ATR: it is read to its end, or refused with an offset.
    public static func tlv(_ bytes: [UInt8]) throws(Finding) {
        do throws(TLVError) {
            for object in try TLVList(bytes) { _ = "\(Annotation(object))" }
        } catch {
            guard (0...bytes.count).contains(error.offset) else {
                throw Finding(description: "offset \(error.offset) of \(bytes.count)")
            }
        }
        _ = try? DataObjectList(bytes).value { _ in bytes }
        _ = try? ApplicationFileLocator(bytes)
        _ = try? Track2(bytes)
        _ = try? CommandAPDU(bytes)
        _ = ATR(bytes).contactless
    }

    /// A card file.
    public static func cardFile(_ bytes: [UInt8]) {
        guard let card = try? CardFile(parsing: bytes).makeCard() else { return }
        _ = card.exchange([0x00, 0xA4, 0x04, 0x00, 0x00])
    }

    /// What a card answers to one who reads all of it: lengths, and so many bytes each.
    public static func cardInspector(_ bytes: [UInt8]) async {
        let inspector = CardInspector(unpredictableNumber: [1, 2, 3, 4], date: [0x26, 0x11, 0x21])
        _ = try? await inspector.inspect(Recital(bytes))
    }

    /// How many commands a transaction may take, with one answer of the issuer's: for each presentation of the card the
    /// PPSE, SELECT and GET PROCESSING OPTIONS for every candidate, and what one kernel reads.
    static let maximumCommands = 2 * EntryPoint.maximumActivations * (2 * EntryPoint.maximumCandidates + 160)

    /// What the first four bytes choose: kind, amount and start of the transaction, an ATM, what Kernel 2 exchanges with the
    /// terminal, the card behind the hostile one, the floor limit, and what is other than in the test configuration in byte 1 of
    /// the TTQ.  Four bytes of 00 are the test configuration's purchase of 12.34, with no other card.
    struct Bench {
        var kind = Transaction.Kind.purchase
        var amount: UInt64
        var card: (any VirtualCard)?
        /// Begins at Start B, without pre-processing.
        var startsAtB: Bool
        var configuration = ReaderConfiguration.test

        /// What Kernel 2 exchanges with card and terminal besides: bits 5 to 8 of the first byte.
        private static func kernel2Data(_ choice: UInt8) -> [TLVTag: [UInt8]] {
            var data: [TLVTag: [UInt8]] = [:]
            if choice & 0x10 != 0 { data[0xDF8110] = [] }
            if choice & 0x20 != 0 { data[0xDF8112] = [0x9F, 0x50, 0x9F, 0x70, 0x9F, 0x75, 0x5F, 0x24] }
            if choice & 0x40 != 0 {
                data[0xDF810D] = [0x02]
                // The operator that has a slot in mastercard-storage.
                data[0x9F5C] = [0x81, 0x99, 0x82, 0x99, 0x83, 0x99, 0x84, 0x99]
            }
            if choice & 0x80 != 0 {
                (data[0xDF8104], data[0xDF8105]) = ([], [])
                data[0xFF8102] = [0x9F, 0x75, 0x01, 0xAA, 0x9F, 0x76, 0x01, 0xBB]
                data[0xFF8103] = [0x9F, 0x77, 0x01, 0xCC, 0x9F, 0x78, 0x01, 0xDD]
                data[0x9F53] = []
            }
            return data
        }

        private static let amounts: [UInt64] = [
            12_34, 0, 1_00, 49_99, 50_00, 9_999_99, 10_000_00, Transaction.maximumAmount,
        ]
        private static let floorLimits: [UInt64?] = [0, nil, 12_34, 10_000_00]
        /// Bits 4 to 8 of the second byte; no other card first.
        private static let cards: [String?] = [
            nil, "mastercard-storage", "mastercard-storage-rrp", "mastercard-torn", "mastercard-torn-lost",
            "mastercard-advance", "mastercard-online", "mastercard-decline", "mastercard-phone",
            "mastercard-phone-ready", "mastercard-balance", "mastercard-stripe", "mastercard-stripe-phone",
            "mastercard-odd-keys", "maestro", "emv-cda", "visa-offline", "visa-oda-online", "visa-odd-keys",
            "visa-update", "visa-signature",
        ]

        init(_ bytes: some Collection<UInt8>) {
            let choice = (Array(bytes.prefix(4)) + [0, 0, 0, 0]).prefix(4)
            kind = Transaction.Kind.allCases[Int(choice[0] & 0x03)]
            startsAtB = choice[0] & 0x04 != 0
            let isATM = choice[0] & 0x08 != 0
            amount = Self.amounts[Int(choice[1] & 0x07)]
            card = Self.cards[Int(choice[1] >> 3) % Self.cards.count].flatMap { VirtualCards.named($0) }
            if isATM {
                configuration.terminal[0x9F35] = [0x14]
                configuration.terminal[0x9F40] = [0xE0, 0x00, 0xF0, 0x50, 0x01]
            }
            let changed = TerminalTransactionQualifiers(rawValue: UInt32(choice[3] & 0x5F) << 24)
            if changed.contains(.onlinePIN) { configuration.abilities.remove(.pinPad) }
            if changed.contains(.signature) { configuration.abilities.remove(.paper) }
            if changed.contains(.emvContactChip) { configuration.abilities.remove(.contacts) }
            if changed.contains(.offlineOnlyReader) { configuration.terminal[0x9F35] = [isATM ? 0x16 : 0x23] }
            // They follow from what is left.
            if !changed.isEmpty || isATM { configuration.terminal[0x9F33] = nil }
            if changed.contains(.signature) { configuration.terminal[0x9F40]?[3] &= 0x30 }
            for index in configuration.combinations.indices {
                configuration.combinations[index].floorLimit = Self.floorLimits[Int(choice[2] & 0x03)]
                if isATM, configuration.combinations[index].kernel == 3 {
                    configuration.combinations[index].options = Kernel3.Options(checksUsageAtATM: true)
                }
                if configuration.combinations[index].kernel == 2 {
                    configuration.combinations[index].data.merge(Self.kernel2Data(choice[0])) { $1 }
                }
                // Kernel 3 has EMV mode, and no mag-stripe mode.
                if changed.isEmpty { continue }
                var qualifiers: TerminalTransactionQualifiers = [.emvContactChip, .onlinePIN, .signature]
                // Nobody looks at a signature at an ATM; who never goes online sends no PIN there.
                if isATM { qualifiers.remove(.signature) }
                configuration.combinations[index].terminalTransactionQualifiers?.formUnion(qualifiers)
                configuration.combinations[index].terminalTransactionQualifiers?.formSymmetricDifference(changed)
                if isATM { configuration.combinations[index].terminalTransactionQualifiers?.remove(.signature) }
                if changed.contains(.offlineOnlyReader) {
                    configuration.combinations[index].terminalTransactionQualifiers?.remove(.onlinePIN)
                }
            }
        }
    }

    /// Those that were published, and those that the virtual cards are certified by.
    static let keys: CAPublicKeys = {
        var keys = CAPublicKeys.published
        for key in VirtualCards.certificationAuthorityKeys {
            guard
                let key = try? CAPublicKey(
                    environment: .test, rid: key.rid, index: key.index, modulus: key.modulus, exponent: key.exponent,
                    checksum: key.checksum)
            else { preconditionFailure("a key of the virtual cards") }
            keys.insert(key)
        }
        return keys
    }()

    /// A transaction, as ``Bench`` has it of the first bytes, and a card: what it answers to Entry Point and the kernels.  It
    /// comes to an end, after a bounded number of commands.
    public static func transaction(_ bytes: [UInt8]) throws(Finding) { try transaction(bytes, kernels: .all) }

    /// With other kernels than those that there are.
    static func transaction(_ bytes: [UInt8], kernels: Kernels) throws(Finding) {
        let bench = Bench(bytes)
        let configuration: ReaderConfiguration.Validated
        do { configuration = try bench.configuration.validated(for: kernels) } catch {
            throw Finding(description: "\(error)")
        }
        let entryPoint = EntryPoint(configuration: configuration, keys: keys)
        guard let date = CalendarDate(year: 2026, month: 11, day: 21), let time = TerminalTime(date),
            let currency = Currency["EUR"],
            let transaction = Transaction(
                bench.kind, amount: bench.amount,
                amountOther: bench.kind == .purchaseWithCashback ? bench.amount / 2 : 0, currency: currency, time: time,
                unpredictableNumber: [1, 2, 3, 4])
        else { throw Finding(description: "no transaction") }
        var card = HostileCard(bytes.dropFirst(4), before: bench.card)
        let result = card.play(entryPoint, transaction, startsAtB: bench.startsAtB)
        guard result.final != nil else { throw Finding(description: "no end") }
        guard result.commands <= maximumCommands else { throw Finding(description: "\(result.commands) commands") }
    }
}

/// Says its lines, whatever it is asked.
private final class Recital: CardChannel {
    private let lines: Mutex<ArraySlice<UInt8>>

    init(_ bytes: [UInt8]) { lines = Mutex(bytes[...]) }

    func transmit(_ command: CommandAPDU) async throws -> ResponseAPDU {
        try lines.withLock { bytes in
            guard let length = bytes.popFirst() else { throw CardError(.cardRemoved) }
            defer { bytes = bytes.dropFirst(Int(length)) }
            return ResponseAPDU(data: Array(bytes.prefix(Int(length))), status: 0x9000)
        }
    }
}
