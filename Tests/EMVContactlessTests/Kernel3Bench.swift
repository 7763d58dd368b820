import EMVContactless
import SmartCard
import Testing

/// Plays Entry Point and card against Kernel 3.
struct Kernel3Bench {
    /// A card that asks for TTQ, amount, currency and unpredictable number.
    var fci = """
        6F 27 84 07 A0 00 00 00 03 10 10
           A5 1C 50 04 56 49 53 41  5F 2D 04 64 65 45 4E    # VISA; de, EN
                 9F 38 0C  9F 66 04  9F 02 06  5F 2A 02  9F 37 04
        """
    /// EMV mode, contact chip, online PIN, signature; issuer updates, CDCVM.
    var qualifiers = "36 00 C0 00"
    var kind = Transaction.Kind.purchase
    var amount: UInt64 = 12_34
    var amountOther: UInt64 = 0
    var currency = "EUR"
    var unpredictableNumber = "11 22 33 44"
    var transactionLimit: UInt64?
    var floorLimit: UInt64?
    var cvmRequiredLimit: UInt64?
    var options = Kernel3.Options()
    /// 9F1A: Germany.
    var country: String? = "02 76"
    /// 9F35
    var terminalType: String? = "22"
    /// 9F39, if it is configured.
    var posEntryMode: String?
    var date = "26 11 21"
    var keys = CAPublicKeys()
    var exceptionFile: any ExceptionFile = NoExceptionFile()
    var onlineResponse: OnlineResponse?

    /// What the card has been told after ``fci``, for the default bench.
    static let gpo = "80 A8 00 00 12 83 10  36 00 C0 00  00 00 00 00 12 34  09 78  11 22 33 44  00"

    func activation() throws -> KernelActivation {
        let aid = try #require(AID(wire("A0 00 00 00 03 10 10")))
        let day = try #require(CalendarDate(packed: wire(date)))
        let currency = try #require(Currency[currency])
        let time = try #require(TerminalTime(day, hour: 12))
        let unpredictableNumber = try wire(unpredictableNumber)
        let transaction = try #require(
            Transaction(
                kind, amount: amount, amountOther: amountOther, currency: currency, time: time,
                unpredictableNumber: unpredictableNumber))
        let combination = Combination(
            aid: aid, kernel: 3, transactionLimit: transactionLimit, floorLimit: floorLimit,
            cvmRequiredLimit: cvmRequiredLimit,
            terminalTransactionQualifiers: TerminalTransactionQualifiers(try wire(qualifiers)), options: options)
        var data = transaction.dataObjects
        data[0x9F1A] = try country.map(wire)
        data[0x9F33] = try wire("E0 28 C8")
        data[0x9F35] = try terminalType.map(wire)
        data[0x9F39] = try posEntryMode.map(wire)
        return KernelActivation(
            combination: combination, indicators: PreProcessingIndicators(combination, transaction), name: aid.bytes,
            selectResponse: ResponseAPDU(data: try wire(fci), status: .success), transaction: transaction,
            terminalData: data,
            offlineDataAuthentication: OfflineDataAuthentication(
                keys: keys, environment: .test, aid: aid, date: day),
            exceptionFile: exceptionFile, onlineResponse: onlineResponse)
    }

    /// Runs the kernel to its outcome.  The card has one response for each command; `-` stands for none.
    func run(_ responses: String...) throws -> Run { try run(responses) }

    func run(_ responses: [String]) throws -> Run {
        var kernel = Kernel3(try activation())
        var run = Run()
        var event = KernelEvent.start
        var rest = responses[...]
        while true {
            let step = kernel.next(event)
            run.requests += step.userInterfaceRequests
            switch step.action {
            case .outcome(let outcome):
                #expect(rest.isEmpty, "the kernel did not ask for \(rest.count) responses")
                run.outcome = outcome
                return run
            case .exchange:
                Issue.record("Kernel 3 asks the terminal for nothing")
                return run
            case .send(let command):
                run.commands.append(command.bytes.hex)
                let response = try #require(rest.first, "one command too many: \(command)")
                rest = rest.dropFirst()
                event =
                    response == "-"
                    ? .communicationError(.timeout)
                    : .response(try ResponseAPDU(wire(response)), after: .milliseconds(10))
            }
        }
    }

    struct Run {
        /// In hexadecimal.
        var commands: [String] = []
        /// Those shown before the outcome.
        var requests: [UserInterfaceRequest] = []
        var outcome = Outcome(.endApplication, reason: "")
    }
}

/// The answer to GET PROCESSING OPTIONS of a card that has all it needs in there.  The account number is that of
/// published Visa test cards.
///
/// - Parameters:
///   - cryptogram: the cryptogram information data; nil leaves them away.
///   - qualifiers: the CTQ; nil leaves them away.
///   - without: tags that are left away.
func processingOptions(
    aip: String = "00 00", cryptogram: String? = "80", qualifiers: String? = "00 00",
    issuerData: String = "06 01 12 03 A0 00 00", without: Set<String> = [], _ more: String...
) throws -> String {
    let objects: [(String, String?)] = [
        ("82", aip),
        ("57", "47 61 73 90 01 01 00 10 D3 11 22 01 11 43 80 44 89"),
        ("5F34", "01"),
        ("9F10", issuerData),
        ("9F26", "4A 8C F7 AC 9A 93 78 A0"),
        ("9F27", cryptogram),
        ("9F36", "00 42"),
        ("9F6C", qualifiers),
    ]
    let encoded = try objects.filter { !without.contains($0.0) }.flatMap { tag, value in
        try value.map { TLVTag(rawValue: UInt32(tag, radix: 16) ?? 0).encode(try wire($0)) } ?? []
    }
    return try template(0x77, encoded.hex, more.joined(separator: " "))
}

/// Hexadecimal with comments, which reach from `#` to the end of the line.
func wire(_ text: String) throws -> [UInt8] {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false).map { $0.prefix { $0 != "#" } }
    return try [UInt8](hex: lines.joined(separator: " "))
}

/// A template with its length, around objects in hexadecimal.
func template(_ tag: TLVTag, _ objects: String..., status: String = "90 00") throws -> String {
    tag.encode(try objects.flatMap { try wire($0) }).hex + status
}

extension Kernel3Bench {
    /// With the key that ``SigningCard`` was certified by.
    static var signing: Kernel3Bench {
        get throws {
            var bench = Kernel3Bench()
            bench.keys = CAPublicKeys([
                try CAPublicKey(
                    environment: .test, rid: wire("A0 00 00 00 03"), index: 0xF1,
                    modulus: wire(Kernel3Vectors.caModulus), exponent: [3],
                    checksum: wire(Kernel3Vectors.caChecksum))
            ])
            return bench
        }
    }
}

/// A card that approves offline and signs it (Vectors/kernel3.py).
struct SigningCard {
    var aip = "20 00"
    var cryptogram = "40"
    var qualifiers: String? = "00 00"
    var record = Kernel3Vectors.record
    var signature: String? = Kernel3Vectors.offlineSignature
    var related: String? = Kernel3Vectors.related
    var issuerRemainder: String? = Kernel3Vectors.issuerRemainder
    /// Tag 93.
    var staticSignature: String?
    /// Beside 8F, 90, 92 and 9F32.
    var more = ""

    /// To GET PROCESSING OPTIONS and four READ RECORDs.
    var responses: [String] {
        get throws {
            func object(_ tag: TLVTag, _ value: String?) throws -> String {
                try value.map { tag.encode(try wire($0)).hex } ?? ""
            }
            return [
                try processingOptions(
                    aip: aip, cryptogram: cryptogram, qualifiers: qualifiers,
                    "94 0C  08 01 01 01  10 01 02 00  18 05 05 00", object(0x9F4B, signature)),
                try template(0x70, record),
                try template(
                    0x70, "8F 01 F1", object(0x90, Kernel3Vectors.issuerCertificate), object(0x92, issuerRemainder),
                    "9F 32 01 03", object(0x93, staticSignature), more),
                try template(
                    0x70, object(0x9F46, Kernel3Vectors.iccCertificate), object(0x9F48, Kernel3Vectors.iccRemainder),
                    "9F 47 01 03"),
                try template(0x70, object(0x9F69, related)),
            ]
        }
    }
}
