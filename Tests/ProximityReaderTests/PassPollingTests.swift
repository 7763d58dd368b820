import Foundation
import ProximityReader
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing
import USBTestSupport
import Waiting

@testable import CardReaders
@testable import SmartCardUSB

/// What a terminal sends while it waits for a phone, and how it ends the tap: by the records of the software PN532, and by
/// what the phone notices.
@Suite(.simulatedTime, .timeLimit(.minutes(5))) struct PassPollingTests {
    enum Call: Sendable, CaseIterable { case payment, verification, pass, passOrPayment, passAndPayment }

    /// Returns what was read: the statuses of the passes, and the outcome of the payment.
    private func read(_ call: Call, in session: PaymentCardReaderSession) async throws -> (passes: Int, pays: Bool) {
        switch call {
        case .payment: return (0, try await session.readPaymentCard(purchase).outcome == .success)
        case .verification:
            let request = PaymentCardVerificationRequest(currencyCode: "EUR")
            return (0, try await session.readPaymentCard(request).outcome == .success)
        case .pass: return (Self.count(try await session.readVAS(PassBench.request())), false)
        case .passOrPayment, .passAndPayment:
            let (payment, passes) = try await session.readPaymentCard(
                purchase, vasRequest: PassBench.request(), stopOnVASResult: call == .passOrPayment)
            return (Self.count(passes), payment?.outcome == .success)
        }
    }

    private static func count(_ passes: VASReadResult?) -> Int {
        passes?.entries.count { $0.status == .success } ?? 0
    }

    /// Apple's terminals send these frames for these calls (kormax, apple-enhanced-contactless-polling; that of passes alone
    /// was sniffed by proxmark3).
    @Test(
        "each call has its frame, by which a phone that answers nothing else is read",
        arguments: [
            (Call.payment, "6A01000003", 0, true), (.verification, "6A01000003", 0, true),
            (.pass, "6A01000002", 1, false), (.passOrPayment, "6A01000000", 1, false),
            (.passAndPayment, "6A01000001", 1, true),
        ])
    func frames(_ call: Call, _ expected: String, _ passes: Int, _ pays: Bool) async throws {
        let bench = try await PassBench.bench()
        let session = try await bench.reader.prepare(using: bench.token())
        bench.present(try PassBench.phone())
        #expect(try await read(call, in: session) == (passes, pays))
        var frames: [RadioFrame] = []
        for record in bench.device.radioRecords {
            switch record.event {
            case .frame(let frame, let cards) where !frame.isRequest:
                frames.append(frame)
                #expect(cards.isEmpty)
            case .noFrame(let bytes, let reason): Issue.record("\(bytes.hex): \(reason)")
            default: break
            }
        }
        #expect(Set(frames.map(\.bytes.hex)) == [expected])
        #expect(Set(frames.map(\.modulation)) == [.typeA, .typeB])
    }

    @Test("the driver for USB passes the frames on, too")
    func overUSB() async throws {
        let device = SoftwareACR122U()
        let reader = try #require(
            try await Machine(.usb, usb: USBReaders(on: SoftwareUSBBus(device))).readers().preferred)
        let bench = try await PassBench.bench { $0.reader = .reader(reader) }
        let session = try await bench.reader.prepare(using: bench.token())
        let phone = WitnessedPhone(try PassBench.phone())
        device.insert(phone)
        #expect(try await read(.passAndPayment, in: session) == (1, true))
        #expect(phone.session.prefix(3) == ["wallet", "pass", "payment"] && phone.isDone, "\(phone.session)")
    }

    @Test("a phone whose pass was read is deselected and loses the field: it shows that it is done, where it lies")
    func done() async throws {
        let bench = try await PassBench.bench()
        let session = try await bench.reader.prepare(using: bench.token())
        let phone = WitnessedPhone(try PassBench.phone())
        bench.device.insert(phone)
        #expect(try await session.readVAS(PassBench.request()).entries.map(\.status) == [.success])
        #expect(phone.session.prefix(4) == ["wallet", "pass", "deselect", "off"], "\(phone.session)")
        #expect(phone.isDone)
    }

    @Test("nothing ends the phone's session between pass and payment; what ends it then is DESELECT, and the field")
    func oneSession() async throws {
        let bench = try await PassBench.bench()
        let session = try await bench.reader.prepare(using: bench.token())
        let phone = WitnessedPhone(try PassBench.phone())
        bench.device.insert(phone)
        #expect(try await read(.passAndPayment, in: session) == (1, true))
        #expect(
            phone.session.prefix(8) == [
                "wallet", "pass", "payment", "application", "processing", "record", "deselect", "off",
            ], "\(phone.session)")
    }

    @Test("a locked phone keeps what it was told: the field drops for less than its patience, without DESELECT")
    func locked() async throws {
        let bench = try await PassBench.bench()
        let reader = try await bench.reader.prepare(using: bench.token())
        let phone = WitnessedPhone(try PassBench.phone("locked 1"))
        bench.device.insert(phone)
        #expect(try await reader.readVAS(PassBench.request()).entries.map(\.status) == [.success])
        let session = phone.session.filter { !["frame", "off"].contains($0) }
        #expect(session.prefix(5) == ["wallet", "pass", "wallet", "pass", "deselect"], "\(phone.session)")
        #expect(phone.session.dropFirst(2).first == "off" && phone.isDone)
    }

    @Test("a frame that is none is refused before the reader is used", arguments: [0, 251])
    func length(_ count: Int) async throws {
        let reader = VirtualReader(SoftwareACR122U())
        let error = await #expect(throws: CardError.self) {
            try await reader.withChipField(broadcast: [UInt8](repeating: 0x6A, count: count)) { _ in }
        }
        #expect(error?.kind == .tooLong && reader.device.radioRecords.isEmpty)
    }

    // MARK: Readers without such frames

    @Test("a reader without a PN53x reads a phone that answers any reader, but none that waits for a frame")
    func otherReader() async throws {
        let device = SoftwareACR1252U()
        let reader = try #require(
            try await Machine(.usb, usb: USBReaders(on: SoftwareUSBBus(device))).readers().preferred)
        let bench = try await PassBench.bench { $0.reader = .reader(reader) }
        let session = try await bench.reader.prepare(using: bench.token())
        let log = await EventLog(bench.reader)
        let customer = Task { [events = bench.reader.events] in
            for await event in events {
                guard case .removeCard = event else { continue }
                return device.remove(nil)
            }
        }
        defer { customer.cancel() }
        device.insert(try PassBench.phone("screen both"))
        #expect(try await read(.passAndPayment, in: session) == (1, true))
        await customer.value
        try await log.wait(for: "userInterfaceDismissed")
        await log.clear()

        let waiting = Task { try await read(.pass, in: session) }
        try await log.wait(for: "readyForTap")
        device.insert(try PassBench.phone())
        try await Time.sleep(for: .seconds(10))
        #expect(await !log.names.contains("cardDetected"))
        #expect(try await session.cancelRead())
        await expect("readCancelled") { _ = try await waiting.value }
    }
}

/// A phone that keeps a list of what the reader does with it.
private final class WitnessedPhone: VirtualCard {
    private let phone: any VirtualCard
    private let list = Mutex<[String]>([])

    init(_ phone: any VirtualCard) { self.phone = phone }

    /// What has happened since its first command; the field drops once, however often it is switched off.
    var session: [String] { list.withLock { $0 } }
    var isDone: Bool { (phone as? WalletPhone)?.isDone ?? false }

    private func note(_ event: String, isFirst: Bool = false) {
        list.withLock { list in
            if isFirst || !list.isEmpty, event != "off" || list.last != "off" { list.append(event) }
        }
    }

    var radio: VirtualCardRadio { phone.radio }
    var answersAnyReader: Bool { phone.answersAnyReader }
    func reset() { phone.reset() }
    func processingTime(of command: [UInt8]) -> Duration { phone.processingTime(of: command) }

    func notice(_ event: RadioEvent) -> Bool {
        switch event {
        case .fieldOff: note("off")
        case .deselect: note("deselect")
        case .frame: note("frame")
        case .fieldOn: break
        }
        return phone.notice(event)
    }

    func exchange(_ command: [UInt8]) -> [UInt8]? {
        let name = command.dropFirst(5)
        let event =
            switch command[1] {
            case 0xA4 where name.starts(with: "OSE.VAS.01".utf8): "wallet"
            case 0xA4 where name.starts(with: "2PAY.SYS.DDF01".utf8): "payment"
            case 0xA4: "application"
            case 0xCA: "pass"
            case 0xA8: "processing"
            case 0xB2: "record"
            default: command.hex
            }
        note(event, isFirst: true)
        return phone.exchange(command)
    }
}
