// Takes payments, stores others and forwards them, and gives money back, at random, until it is killed.
//
//     payment-worker FOLDER SEED matrix kiosk|adapter ADDRESS [drain]
//
// A virtual card lies on a software ACR122U whenever the terminal waits for one.  The payment service is psp-sandbox, which
// listens at ADDRESS and outlives this process.  What the application knows is in `view` in FOLDER, a line of which is on the
// disk before anybody goes on:
//
//     +KEY CENTS, -KEY CENTS   a payment, a refund; of CardReaderService -KEY CHARGE CENTS
//     void KEY, voided KEY     to be taken back, taken back
//     want CHARGE CENTS, done CHARGE   a refund that is promised, and one of which it is known what became of it
//
// Where it is, is in `trail` in FOLDER (Trail).  In one run of two it kills itself, at a point that SEED says.  With `drain`
// nothing new is begun, and it ends when nothing is open.
import CardReaderAdapter
import CardReceipts
import EMVContactless
import Foundation
import Glibc
import KioskKit
import ProximityReader
import SandboxClient
import SmartCardSimulator
import Synchronization
import TestSupport

final class Chance: Sendable {
    private let generator: Mutex<SplitMix>
    init(_ seed: UInt64) { generator = Mutex(SplitMix(state: seed)) }
    func number(_ range: ClosedRange<Int>) -> Int { generator.withLock { Int.random(in: range, using: &$0) } }
    func oneIn(_ count: Int) -> Bool { number(1...count) == 1 }
}

/// A file to which lines are added, each on the disk before anybody goes on.
final class Lines: Sendable {
    private let descriptor: Int32
    let before: [String]

    init(_ url: URL) {
        before = ((try? String(contentsOf: url, encoding: .utf8)) ?? "").split(separator: "\n").map(String.init)
        descriptor = open(url.path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
    }

    func add(_ line: String) {
        let bytes = Array("\(line)\n".utf8)
        guard write(descriptor, bytes, bytes.count) == bytes.count, fsync(descriptor) == 0 else { abort() }
    }
}

/// Where the process is, and where it ends, if anywhere: at the COUNTth time that it comes to one side of a phase.
final class Course: Sendable {
    private let trail: Trail
    private let chance: Chance
    private let phase: Trail.Phase?
    private let isAfter: Bool
    private let left: Mutex<Int>

    init(_ folder: URL, _ chance: Chance, isDraining: Bool) {
        guard let trail = Trail(folder.appending(path: "trail")) else { abort() }
        (self.trail, self.chance) = (trail, chance)
        let phases = Trail.Phase.allCases.filter { $0 != .between }
        phase = chance.oneIn(2) && !isDraining ? phases[chance.number(0...phases.count - 1)] : nil
        isAfter = chance.oneIn(2)
        left = Mutex(chance.number(1...8))
        trail.enter(.between)
    }

    private func pass(_ phase: Trail.Phase, isAfter: Bool) {
        // What is done in no time is done in a moment, so that it is met.
        if chance.oneIn(4) { usleep(UInt32(chance.number(0...3_000))) }
        guard phase == self.phase, isAfter == self.isAfter else { return }
        let isHere = left.withLock { left in
            left -= 1
            return left == 0
        }
        if isHere { kill(getpid(), SIGKILL) }
    }

    func during<Value>(_ phase: Trail.Phase, _ body: () throws -> Value) rethrows -> Value {
        trail.enter(phase)
        pass(phase, isAfter: false)
        defer {
            trail.leave(phase)
            pass(phase, isAfter: true)
        }
        return try body()
    }

    func during<Value>(
        _ phase: Trail.Phase, isolation: isolated (any Actor)? = #isolation, _ body: () async throws -> Value
    ) async rethrows -> Value {
        trail.enter(phase)
        pass(phase, isAfter: false)
        defer {
            trail.leave(phase)
            pass(phase, isAfter: true)
        }
        return try await body()
    }

    /// The journal's.
    var disk: PaymentJournal.Disk {
        var disk = PaymentJournal.Disk()
        let (write, remove) = (disk.write, disk.remove)
        disk.write = { [self] descriptor, bytes, offset in
            during(.writing) { write(descriptor, bytes, offset) }
        }
        disk.remove = { [self] path in during(.removing) { remove(path) } }
        return disk
    }
}

/// What the application knows, for good.
final class View: Sendable {
    private let course: Course
    private let descriptor: Int32
    private let known: Mutex<[String]>
    /// Its lines, as words.
    var words: [[String]] { known.withLock { $0 }.map { $0.split(separator: " ").map(String.init) } }

    init(_ folder: URL, _ course: Course) {
        let url = folder.appending(path: "view")
        self.course = course
        let text = (try? String(contentsOf: url, encoding: .utf8)) ?? ""
        known = Mutex(text.split(separator: "\n").map(String.init))
        descriptor = open(url.path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
    }

    func add(_ line: String) {
        course.during(.telling) {
            let bytes = Array("\(line)\n".utf8)
            guard write(descriptor, bytes, bytes.count) == bytes.count, fsync(descriptor) == 0 else { abort() }
        }
        known.withLock { $0.append(line) }
    }
}

extension Decimal {
    var cents: Int { NSDecimalNumber(decimal: self * 100).intValue }
}

/// psp-sandbox, as both applications ask it.
struct Sandbox: PaymentServiceProvider {
    let address: URL
    let course: Course
    let chance: Chance
    let isDraining: Bool
    private var service: SandboxService { SandboxService(address: address) }

    private func ask<Value>(_ body: () async throws -> Value) async throws -> Value {
        try await course.during(.asking, body)
    }

    func fetchReaderToken() async throws -> String { try await ask { try await service.fetchReaderToken() } }

    func processPayment(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> PaymentResult {
        try await ask {
            try await service.processPayment(
                cardData: cardData, amount: amount, currency: currency, idempotencyKey: idempotencyKey)
        }
    }

    func processRefund(
        cardData: String, amount: Decimal, currency: String, idempotencyKey: String
    ) async throws -> RefundResult {
        try await ask {
            try await service.processRefund(
                cardData: cardData, amount: amount, currency: currency, idempotencyKey: idempotencyKey)
        }
    }

    func result(for idempotencyKey: String) async throws -> PaymentResult? {
        try await ask { try await service.result(for: idempotencyKey) }
    }

    func reverse(idempotencyKey: String, amount: Decimal?, currency: String?) async throws {
        try await ask {
            try await service.reverse(idempotencyKey: idempotencyKey, amount: amount, currency: currency)
        }
    }

    /// Now and then it gives no deletion token: then what it says of each payment is all that counts.
    func submitBatch(_ batch: Data, from reader: String, idempotencyKey: String) async throws -> BatchResult {
        let result = try await ask {
            try await service.submitBatch(batch, from: reader, idempotencyKey: idempotencyKey)
        }
        let isWithout = chance.oneIn(3) && !isDraining
        return BatchResult(payments: result.payments, deletionToken: isWithout ? nil : result.deletionToken)
    }
}

/// What both applications have.
struct Shop: Sendable {
    let folder: URL
    let view: View
    let chance: Chance
    let course: Course
    let sandbox: Sandbox
    let device = SoftwareACR122U()

    func configuration(_ reader: (inout ProximityReaderSystem.Configuration) -> Void = { _ in }) throws
        -> ProximityReaderSystem.ValidatedConfiguration
    {
        var configuration = ProximityReaderSystem.Configuration()
        configuration.folder = folder.appending(path: "state")
        configuration.tokenKeys = TestPaymentService.keySet
        configuration.storeAndForward = .init(
            limits: ["EUR": .init(perPayment: 100, total: 1_000_000)], maximumCount: 100_000)
        for key in VirtualCards.certificationAuthorityKeys {
            configuration.certificationAuthorityKeys.insert(
                try CAPublicKey(
                    environment: .test, rid: key.rid, index: key.index, modulus: key.modulus, exponent: key.exponent,
                    checksum: key.checksum, expiration: CalendarDate(packed: key.expires)))
        }
        reader(&configuration)
        return try configuration.validated()
    }

    static var pace: PaymentForwarder.Pace {
        var pace = PaymentForwarder.Pace()
        (pace.batchSize, pace.interval, pace.attempts) = (4, .zero, 2)
        (pace.pause, pace.longestPause) = (.milliseconds(1), .milliseconds(2))
        return pace
    }

    /// That neither ends the sandbox (…97) nor is refused by it (…13), and that no cardholder has to be verified for.
    func amount() -> Decimal {
        var cents = chance.number(1...4_900)
        if [13, 97].contains(cents % 100) { cents += 1 }
        return Decimal(cents) / 100
    }

    func present() {
        guard let card = VirtualCards.named("visa") else { abort() }
        device.insert(card)
    }

    func pause() async { try? await Task.sleep(for: .milliseconds(2)) }

    func forward(_ forwarder: PaymentForwarder) async {
        await course.during(.forwarding) { _ = try? await forwarder.forward() }
    }

    /// Until nothing is stored, and every decision is told.
    func drain(_ forwarder: PaymentForwarder, _ store: RecordStore) async throws {
        while true {
            for payment in try await store.payments() where payment.state == .setAside {
                try await store.putBack(payment.id)
            }
            _ = try? await forwarder.forward()
            guard try await store.count() > 0 else { return }
            await pause()
        }
    }
}

func runMatrix(_ folder: URL, seed: UInt64, surface: String, address: URL, isDraining: Bool) async throws {
    let chance = Chance(seed)
    let course = Course(folder, chance, isDraining: isDraining)
    let shop = Shop(
        folder: folder, view: View(folder, course), chance: chance, course: course,
        sandbox: Sandbox(address: address, course: course, chance: chance, isDraining: isDraining))
    print("started")
    fflush(nil)
    let application: any Application =
        surface == "kiosk" ? try KioskApplication(shop) : try AdapterApplication(shop)
    if isDraining { try await application.drain() } else { try await application.run() }
}

protocol Application {
    /// Until the process is killed.
    func run() async throws
    func drain() async throws
}
