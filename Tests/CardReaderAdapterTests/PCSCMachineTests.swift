import CardReaderAdapter
import CardReceipts
import Foundation
import ProximityReader
import Synchronization
import TestSupport
import Testing

/// The service over Debian's pcscd and libccid, with a software ACR122U under umockdev.
@Suite(
    .timeLimit(.minutes(10)), .pcscExclusive, .serialized,
    .enabled(if: PrivatePCSCD.obstacle == nil, "\(PrivatePCSCD.obstacle ?? "")"))
struct PCSCMachineTests {
    /// A machine whose pcscd can be stopped and started, and a customer who does what the reader says.
    private final class Bench: Sendable {
        let process: Mutex<VirtualReaderProcess>
        let processor = ScriptedProcessor([])
        let shop: SigningShop
        let service: ContactlessReaderService
        let events: Seen<CardReaderEvent>
        let states: Seen<CardReaderReconnection>
        let folder = FileManager.default.temporaryDirectory.appending(path: "pcsc-\(UUID().uuidString)")

        init() async throws {
            let process = try await VirtualReaderProcess(host: "umockdev")
            PCSCSocket.point(to: process.socket)
            self.process = Mutex(process)
            shop = try SigningShop()
            var limits = ContactlessReaderService.TimeLimits()
            limits.reconnectionPauses = Array(repeating: .milliseconds(500), count: 20)
            service = ContactlessReaderService(
                processor: processor,
                backend: MachineReaders(try .forVirtualCards(in: folder, tokenKeys: shop.keySet)),
                journal: .memory, limits: limits)
            (events, states) = (Seen(service.readerEvents), Seen(service.reconnectionEvents))
        }

        func perform(_ command: String) throws { try process.withLock { try $0.perform(command) } }

        func stopPCSCD() { process.withLock { $0.stop() } }

        func startPCSCD() async throws {
            let next = try await VirtualReaderProcess(host: "umockdev")
            PCSCSocket.point(to: next.socket)
            process.withLock { $0 = next }
        }

        /// Gives the reader back, since other tests count who talks to the service that is at this path by then.
        func end() async {
            try? await service.cancelDiscovery()
            try? await service.disconnect()
            stopPCSCD()
            try? FileManager.default.removeItem(at: folder)
        }

        func reconnected(_ count: Int) async throws {
            try await wait(for: "reconnection \(count)") {
                states.all.count { if case .succeeded = $0 { true } else { false } } == count
            }
        }

        func waiting(_ count: Int) async throws {
            try await wait(for: "wait for a card \(count)") { events.all.count { $0.text == "waiting 4" } == count }
        }

        /// A whole payment, the `count`th that waits for a card.
        func pay(_ count: Int) async throws {
            let payment = Task { try await service.capturePayment(AdapterBench.payment) }
            try await waiting(count)
            try perform("insert visa")
            #expect(try await payment.value.status == .requiresCapture)
            try perform("remove")
            await service.waitForInsertedCardToBeRemoved()
        }
    }

    private static let gone = "paymentMethodCollection(underlyingError: bluetoothDisconnected)"

    @Test(
        "A1, A9, A10: over pcscd a reader is found and paid with; unplugged, it is gone, and back when it is plugged in"
    )
    func unplugged() async throws {
        let bench = try await Bench()
        let lists = Seen(bench.service.discoveredReaders)
        try bench.service.start(bench.shop, discoveryMethod: .usb)
        try await wait(for: "reader") { lists.all.last?.count == 1 }
        let reader = try #require(lists.all.last?.first)
        #expect(reader.name == "ACS ACR122U PICC Interface" && reader.batteryLevel == nil)
        #expect(try await bench.service.connect(reader, options: nil).status.connected)
        try await bench.pay(1)
        let payment = Task { await failure { _ = try await bench.service.capturePayment(AdapterBench.payment) } }
        try await bench.waiting(2)
        try bench.perform("unplug")
        #expect(await payment.value == Self.gone)
        try await wait(for: "event") { bench.events.all.last?.text == "disconnected usbDisconnected" }
        try bench.perform("plug")
        try await bench.reconnected(1)
        try await bench.pay(3)
        await bench.end()
    }

    @Test("A9, A10: pcscd restarted while readers are looked for, connected, awaiting a card, and paying")
    func restarted() async throws {
        let bench = try await Bench()
        let lists = Seen(bench.service.discoveredReaders)
        try bench.service.start(bench.shop, discoveryMethod: .usb)
        try await wait(for: "reader") { lists.all.last?.count == 1 }
        bench.stopPCSCD()
        try await wait(for: "empty list") { lists.all.last?.isEmpty == true }
        try await bench.startPCSCD()
        try await wait(for: "reader") { lists.all.last?.count == 1 }
        try await bench.service.connect(try #require(lists.all.last?.first), options: nil)

        bench.stopPCSCD()
        try await wait(for: "event") { bench.events.all.last?.text == "disconnected serviceStopped" }
        try await bench.startPCSCD()
        try await bench.reconnected(1)

        let payment = Task { await failure { _ = try await bench.service.capturePayment(AdapterBench.payment) } }
        try await bench.waiting(1)
        bench.stopPCSCD()
        #expect(await payment.value == Self.gone)
        try await wait(for: "event") { bench.events.all.last?.text == "disconnected serviceStopped" }
        try await bench.startPCSCD()
        try await bench.reconnected(2)

        await bench.processor.follow([.approved, .held])
        let paying = Task { try await bench.service.capturePayment(AdapterBench.payment) }
        try await bench.waiting(2)
        try bench.perform("insert visa")
        try await wait(for: "process") { await bench.processor.isHolding }
        bench.stopPCSCD()
        try await wait(for: "event") { bench.events.all.last?.text == "disconnected serviceStopped" }
        await bench.processor.release()
        #expect(try await paying.value.status == .requiresCapture, "the payment service's answer counts")
        try await bench.startPCSCD()
        try await bench.reconnected(3)
        try await bench.pay(3)
        await bench.end()
    }
}
