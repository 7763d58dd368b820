import CardEncryption
import EMVContactless
import Foundation
import ProximityReader
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing
import WalletPasses

/// A bench whose reader opens the passes of the virtual phones.
enum PassBench {
    static let passType = "pass.com.passkit.pksamples.nfcdemo"
    static let other = "pass.example.other"

    /// TEST: the published key that the pass of `phone-apple` is encrypted to (proxmark3).
    static func key(
        _ hex: String = "3d1547f23cd78ad052a58860f1219e8fb791ec4dfe33769f5b9bfa627a656ca1"
    ) throws -> MerchantKey {
        let digits = Array(hex)
        let number = stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(digits[$0...($0 + 1)]), radix: 16)
        }
        return try #require(MerchantKey(number))
    }

    static func passes(_ types: [String] = [passType, other]) throws -> PassConfiguration {
        try PassConfiguration(
            merchants: types.map {
                PassMerchant(id: $0, apple: .init(passTypeIdentifier: $0, keys: [try key()]))
            })
    }

    /// A phone that answers nothing before it has heard what the terminal is for.
    static func phone(_ settings: String = "") throws -> any VirtualCard {
        let screen = settings.contains("screen") ? "" : "screen closed\n"
        return try CardFile(parsing: "variant phone-apple {\n\(screen)\(settings)\n}").makeCard()
    }

    static func request(_ types: String...) -> VASRequest {
        VASRequest(vasMerchants: (types.isEmpty ? [passType] : types).map { VASRequest.Merchant(id: $0) })
    }

    static func bench(
        options: PaymentCardReader.Options = .init(),
        configure: (inout ProximityReaderSystem.Configuration) -> Void = { _ in }
    ) async throws -> Bench {
        let passes = try passes()
        return try await Bench(options: options) {
            $0.passes = passes
            $0.now = { Date() }
            configure(&$0)
        }
    }
}

@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct PassTests {
    private func read(
        _ phone: any VirtualCard, stops: Bool, _ request: VASRequest = PassBench.request(), on bench: Bench? = nil
    ) async throws -> (PaymentCardReadResult?, VASReadResult?) {
        let bench = if let bench { bench } else { try await PassBench.bench() }
        let session = try await bench.reader.prepare(using: bench.token())
        bench.present(phone)
        return try await session.readPaymentCard(purchase, vasRequest: request, stopOnVASResult: stops)
    }

    // MARK: stopOnVASResult

    @Test("false: a phone with both gives both in one tap, and its events are those of one card")
    func both() async throws {
        let bench = try await PassBench.bench()
        let log = await EventLog(bench.reader)
        let (payment, passes) = try await read(try PassBench.phone(), stops: false, on: bench)
        let entry = try #require(passes?.entries.first)
        #expect(passes?.entries.count == 1 && entry.id == PassBench.passType && entry.status == .success)
        #expect(entry.customerVASData == Data("MEMBER-0001".utf8))
        #expect(payment?.outcome == .success && payment?.id == passes?.id)
        let card = try bench.open(#require(payment))
        #expect(card[0x9F02]?.hex == "000000001234" && card[0x57]?.hex.hasPrefix("4761739001010010D") == true)
        #expect(!"\(String(describing: passes)) \(String(describing: payment))".contains("MEMBER"))
        try await log.wait(for: "userInterfaceDismissed")
        #expect(
            await log.names.filter { $0 != "updateProgress" } == [
                "readyForTap", "cardDetected", "removeCard", "readCompleted", "userInterfaceDismissed",
            ])
    }

    @Test("false: a phone whose holder has opened the pass alone gives it, and no payment")
    func passAlone() async throws {
        let (payment, passes) = try await read(try PassBench.phone("screen pass\nwakes at-once"), stops: false)
        #expect(payment == nil && passes?.entries.map(\.status) == [.success])
    }

    @Test("a card without passes pays, whichever is asked", arguments: [false, true])
    func plainCard(_ stops: Bool) async throws {
        let card = try #require(VirtualCards.named("visa"))
        let (payment, passes) = try await read(card, stops: stops)
        #expect(payment?.outcome == .success && passes == nil)
    }

    @Test("a phone without the pass pays, and the entry says so (6A83)", arguments: [false, true])
    func noPass(_ stops: Bool) async throws {
        let (payment, passes) = try await read(
            try PassBench.phone(), stops: stops, PassBench.request(PassBench.other))
        #expect(payment?.outcome == .success && passes?.entries.map(\.status) == [.vasDataNotFound])
    }

    @Test("true: a pass ends the read")
    func stops() async throws {
        let (payment, passes) = try await read(try PassBench.phone(), stops: true)
        #expect(payment == nil && passes?.entries.map(\.status) == [.success])
    }

    @Test("a request without merchants asks for those of the configuration, in order")
    func allMerchants() async throws {
        let (payment, passes) = try await read(try PassBench.phone(), stops: false, VASRequest())
        #expect(payment?.outcome == .success)
        #expect(passes?.entries.map(\.id) == [PassBench.passType, PassBench.other])
        #expect(passes?.entries.map(\.status) == [.success, .vasDataNotFound])
    }

    @Test("a card that declines is the error that it is without passes, or on request both are returned")
    func declined() async throws {
        let phone = try PassBench.phone()
        let declining = PassBenchCard(passes: phone, payment: try #require(VirtualCards.named("visa-decline")))
        await expect("paymentCardDeclined") { _ = try await read(declining, stops: false) }
        var options = PaymentCardReader.Options()
        options.includeErrorInReadResult = true
        let (payment, passes) = try await read(declining, stops: false, on: try await PassBench.bench(options: options))
        #expect(payment?.outcome == .cardDeclined && passes?.entries.map(\.status) == [.success])
    }

    @Test("a phone of Google's wallet gives its pass, and pays in the same tap", arguments: [false, true])
    func google(_ stops: Bool) async throws {
        // TEST: the published key of Google's sample application for Smart Tap.
        let key = try PassBench.key("826d17e50767b165b0e4d9e332f8d1d1e20224284fb4daf1e50a03246e70797d")
        let passes = try PassConfiguration(merchants: [
            PassMerchant(id: "loyalty", google: .init(collectorID: 20_180_608, keys: [1: key]))
        ])
        let bench = try await PassBench.bench { $0.passes = passes }
        let phone = try #require(VirtualCards.named("phone-google"))
        let (payment, result) = try await read(phone, stops: stops, PassBench.request("loyalty"), on: bench)
        #expect(result?.entries.map(\.customerVASData) == [Data("MEMBER-0001".utf8)])
        #expect(result?.entries.map(\.id) == ["loyalty"] && (payment == nil) == stops)
    }

    // MARK: Phones' reality

    @Test("a phone that leaves after its pass pays nothing: the pass stands")
    func leaves() async throws {
        let (payment, passes) = try await read(try PassBench.phone("leaves 60000"), stops: false)
        #expect(payment == nil && passes?.entries.map(\.status) == [.success])
    }

    @Test(
        "a locked phone's owner is asked to look at it, and it is read once it is open, in the same place",
        arguments: ["6287", "6984"])
    func locked(_ status: String) async throws {
        let bench = try await PassBench.bench()
        let log = await EventLog(bench.reader)
        let messages = ProximityReaderSystem.messages(of: bench.reader)
        let session = try await bench.reader.prepare(using: bench.token())
        bench.device.insert(try PassBench.phone("locked 3\nstatus \(status)"))
        let read = Task {
            try await session.readPaymentCard(purchase, vasRequest: PassBench.request(), stopOnVASResult: false)
        }
        try await log.wait(for: "readCompleted")
        bench.device.remove()
        let (payment, passes) = try await read.value
        #expect(payment?.outcome == .success && passes?.entries.map(\.status) == [.success])
        try await log.wait(for: "userInterfaceDismissed")
        #expect(
            await log.names.filter { $0 != "updateProgress" } == [
                "readyForTap", "cardDetected", "removeCard", "readRetry", "readyForTap", "cardDetected", "removeCard",
                "readCompleted", "userInterfaceDismissed",
            ])
        var first: UserInterfaceRequest?
        for await message in messages {
            first = message
            break
        }
        #expect(first?.message == .seePhone)
    }

    @Test("a phone that stays locked ends the read when its owner's time is over, and the entry says so")
    func staysLocked() async throws {
        let bench = try await PassBench.bench { $0.ownerTime = .milliseconds(300) }
        let (payment, passes) = try await read(try PassBench.phone("locked 100"), stops: false, on: bench)
        #expect(payment == nil && passes?.entries.map(\.status) == [.vasDataNotActivated])
    }

    @Test("the wait for a locked phone's owner can be cancelled")
    func cancelledWhileLocked() async throws {
        let bench = try await PassBench.bench()
        let log = await EventLog(bench.reader)
        let session = try await bench.reader.prepare(using: bench.token())
        bench.device.insert(try PassBench.phone("locked 100"))
        let read = Task { try await session.readVAS(PassBench.request()) }
        try await log.wait(for: "readyForTap", 2)
        #expect(try await session.cancelRead())
        bench.device.remove()
        await expect("readCancelled") { _ = try await read.value }
    }

    @Test("passes alone: a plain card is not read, and the wait goes on; it can be cancelled")
    func readVAS() async throws {
        let bench = try await PassBench.bench()
        let log = await EventLog(bench.reader)
        let session = try await bench.reader.prepare(using: bench.token())
        try bench.insert("visa")
        let read = Task { try await session.readVAS(PassBench.request()) }
        try await log.wait(for: "removeCard")
        bench.device.remove()
        try await log.wait(for: "readyForTap", 2)
        bench.device.insert(try PassBench.phone())
        try await log.wait(for: "readCompleted")
        bench.device.remove()
        let result = try await read.value
        #expect(result.entries.map(\.customerVASData) == [Data("MEMBER-0001".utf8)])
        try await log.wait(for: "userInterfaceDismissed")
        await log.clear()
        try bench.insert("visa")
        let second = Task { try await session.readVAS(PassBench.request()) }
        try await log.wait(for: "removeCard")
        #expect(try await session.cancelRead())
        bench.device.remove()
        await expect("readCancelled") { _ = try await second.value }
    }

    // MARK: Passes

    @Test("a recorded answer counts once, even for the next run where a store is configured")
    func replayed() async throws {
        var bench = try await PassBench.bench {
            $0.storeAndForward = .init(limits: ["EUR": .init(perPayment: 50, total: 100)])
        }
        let recorded = RecordingPhone(try PassBench.phone())
        for (expected, restarts) in [
            (VASReadResult.ReadEntry.Status.success, false), (.incorrectData, false), (.incorrectData, true),
        ] {
            if restarts { try await bench.restart() }
            let (payment, passes) = try await read(recorded, stops: false, on: bench)
            #expect(passes?.entries.map(\.status) == [expected] && payment?.outcome == .success)
            #expect(passes?.entries.first?.customerVASData == (expected == .success ? Data("MEMBER-0001".utf8) : nil))
        }
    }

    @Test("the pass of a merchant whose key this machine does not have is sealed for the payment service")
    func sealed() async throws {
        let bench = try await Bench { $0.passes = nil }
        let (payment, passes) = try await read(try PassBench.phone(), stops: false, on: bench)
        #expect(payment?.outcome == .success)
        let data = try #require(passes?.entries.first?.customerVASData)
        #expect(passes?.entries.map(\.status) == [.success])
        guard case .jwe(let jwe) = try SealedCardData(parsing: String(decoding: data, as: UTF8.self)) else {
            Issue.record("no JWE")
            return
        }
        let bytes = try bench.cardDataKey.open(jwe) { Array($0) }
        let cryptogram = try #require(VASCryptogram(bytes))
        let agreement = try PassBench.key().agreement
        let message = try cryptogram.open(
            with: [agreement], for: try VASMerchant(passTypeIdentifier: PassBench.passType))
        #expect(message.data.text == "MEMBER-0001")
    }

    @Test("requests that no phone could be asked are refused before one is")
    func requests() async throws {
        let bench = try await PassBench.bench()
        let session = try await bench.reader.prepare(using: bench.token())
        let long = try #require(URL(string: "https://example.com/" + String(repeating: "a", count: 180)))
        let plain = try #require(URL(string: "http://example.com/"))
        for (request, error) in [
            (PassBench.request("card.example"), "invalidVASMerchants"), (PassBench.request(""), "invalidVASMerchants"),
            (PassBench.request("pass.a", "pass.a"), "invalidVASMerchants"),
            (PassBench.request(PassBench.passType, "pass.example.unknown"), "invalidVASMerchants"),
            (VASRequest(vasMerchants: (0...16).map { .init(id: "pass.m\($0)") }), "invalidVASMerchants"),
            (VASRequest(vasMerchants: [.init(id: PassBench.passType, url: long)]), "invalidVASRequestParameters"),
            (VASRequest(vasMerchants: [.init(id: "pass.example", url: plain)]), "invalidVASRequestParameters"),
        ] {
            await expect(error) { _ = try await session.readVAS(request) }
            await expect(error) {
                _ = try await session.readPaymentCard(purchase, vasRequest: request, stopOnVASResult: true)
            }
        }
        let none = try await Bench()
        let other = try await none.reader.prepare(using: none.token())
        await expect("invalidVASMerchants") { _ = try await other.readVAS(VASRequest()) }
    }

    // MARK: Storing

    @Test("a storing session reads passes, and stores the payment of the same tap")
    func storing() async throws {
        let bench = try await PassBench.bench {
            $0.storeAndForward = .init(limits: ["EUR": .init(perPayment: 50, total: 100)])
        }
        _ = try await bench.reader.prepare(using: bench.token())
        let session = try await bench.reader.prepareStoreAndForward()
        bench.present(try PassBench.phone())
        let (payment, passes) = try await session.readPaymentCard(
            purchase, vasRequest: PassBench.request(), stopOnVASResult: false)
        #expect(payment?.outcome == .success && passes?.entries.map(\.status) == [.success])
        #expect(try await bench.reader.fetchPaymentCardReaderStore().fetchStoredPaymentCardReadResultCount() == 1)
        #expect(try await session.readVAS(PassBench.request()).entries.map(\.status) == [.success])
        #expect(try await bench.reader.fetchPaymentCardReaderStore().fetchStoredPaymentCardReadResultCount() == 1)
    }

    // MARK: Hostile phones

    @Test("a phone that breaks the protocol pays, or is no pass", arguments: HostilePhone.answers)
    func hostile(_ answer: HostilePhone.Answer) async throws {
        let visa = try #require(VirtualCards.named("visa"))
        let phone = HostilePhone(answer, over: visa)
        let (payment, passes) = try await read(phone, stops: false)
        #expect(payment?.outcome == .success && passes?.entries.contains { $0.status == .success } != true)
    }
}

/// The passes of one virtual card in front of the payment application of another.
final class PassBenchCard: VirtualCard {
    private let passes: any VirtualCard
    private let payment: any VirtualCard

    init(passes: any VirtualCard, payment: any VirtualCard) { (self.passes, self.payment) = (passes, payment) }

    var radio: VirtualCardRadio { payment.radio }
    var answersAnyReader: Bool { passes.answersAnyReader }
    func notice(_ event: RadioEvent) -> Bool { passes.notice(event) }
    func reset() {
        passes.reset()
        payment.reset()
    }
    func exchange(_ command: [UInt8]) -> [UInt8]? {
        let isPass = command.starts(with: [0x80, 0xCA, 0x01]) || command.dropFirst(5).starts(with: "OSE.VAS.01".utf8)
        return isPass ? passes.exchange(command) : payment.exchange(command)
    }
}

/// A phone that gives the same pass each time, as whoever recorded it would.
final class RecordingPhone: VirtualCard {
    private let phone: any VirtualCard
    private let recorded = Mutex<[UInt8]?>(nil)

    init(_ phone: any VirtualCard) { self.phone = phone }

    var radio: VirtualCardRadio { phone.radio }
    var answersAnyReader: Bool { phone.answersAnyReader }
    func notice(_ event: RadioEvent) -> Bool { phone.notice(event) }
    func reset() { phone.reset() }
    func exchange(_ command: [UInt8]) -> [UInt8]? {
        let response = phone.exchange(command)
        guard command.starts(with: [0x80, 0xCA]) else { return response }
        return recorded.withLock { recorded in
            recorded = recorded ?? response
            return recorded
        }
    }
}

/// A phone that says it has a wallet, and answers for a pass whatever it likes.
final class HostilePhone: VirtualCard {
    struct Answer: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var select: [UInt8]?
        var data: [UInt8] = []
    }

    /// As sniffed from a phone.
    private static let wallet: [UInt8] =
        [0x6F, 0x1D, 0x50, 0x08] + Array("ApplePay".utf8)
        + [0x9F, 0x21, 0x02, 0x01, 0x00, 0x9F, 0x24, 0x04, 1, 2, 3, 4, 0x9F, 0x23, 0x04, 0, 0, 0, 0x3E, 0x90, 0x00]

    static let answers: [Answer] = [
        Answer(testDescription: "an empty success", data: [0x90, 0x00]),
        Answer(testDescription: "a template cut short", data: [0x70, 0x7F, 0x9F, 0x27, 0x90, 0x00]),
        Answer(testDescription: "a cryptogram of nothing", data: [0x70, 0x03, 0x9F, 0x27, 0x00, 0x90, 0x00]),
        Answer(
            testDescription: "a cryptogram of zeros",
            data: [0x70, 0x7B, 0x9F, 0x27, 0x78] + [UInt8](repeating: 0, count: 120) + [0x90, 0x00]),
        Answer(
            testDescription: "a cryptogram that is too long",
            data: [0x70, 0x81, 0xF4, 0x9F, 0x27, 0x81, 0xF0] + [UInt8](repeating: 0xFF, count: 240) + [0x90, 0x00]),
        Answer(testDescription: "a status word of nothing", data: [0x6F, 0x42]),
        Answer(testDescription: "a wallet cut short", select: [0x6F, 0x1D, 0x50, 0x90, 0x00]),
        Answer(testDescription: "a wallet without a name", select: [0x6F, 0x00, 0x90, 0x00]),
        Answer(testDescription: "an endless tag", select: [UInt8](repeating: 0x1F, count: 200) + [0x90, 0x00]),
    ]

    private let answer: Answer
    private let card: any VirtualCard

    init(_ answer: Answer, over card: any VirtualCard) { (self.answer, self.card) = (answer, card) }

    var radio: VirtualCardRadio { card.radio }
    func reset() { card.reset() }
    func exchange(_ command: [UInt8]) -> [UInt8]? {
        if command.dropFirst(5).starts(with: "OSE.VAS.01".utf8) { return answer.select ?? Self.wallet }
        if command.starts(with: [0x80, 0xCA]) { return answer.data }
        return card.exchange(command)
    }
}
