import EMVContactless
import Foundation
import Logging
import SmartCard
import SmartCardSimulator
import SmartCardSimulatorHosts
import Synchronization
import TestSupport
import Testing
import USBDevices
import USBTestSupport
import Waiting

@testable import SmartCardUSB

/// Debian's libusb with a software reader on a mock USB bus.
@Suite(
    .preloaded, .serialized, .timeLimit(.minutes(5)),
    .enabled(if: Preloaded.obstacle == nil, "\(Preloaded.obstacle ?? "")"))
struct LibUSBTests {
    private let bus: MockBus
    private let device = SoftwareACR122U()
    private let reader: USBReader

    init() async throws {
        bus = try MockBus.shared()
        reader = try await bus.replug(device)
    }

    private func visa() throws -> any VirtualCard { try #require(VirtualCards.named("visa")) }

    @Test func aCardIsReadAndNothingIsLeftOver() async throws {
        #expect(reader.id.description == "072F:2200@1-2#0")
        #expect(reader.identity.name == "ACS ACR122U PICC Interface 072F:2200@1-2#0")
        #expect(reader.identity.vendor == "ACS" && reader.identity.serialNumber == nil)
        #expect(reader.release == 0x0216 && reader.descriptor.exchangeLevel == .shortAPDU)
        device.insert(try visa())
        let card = try await reader.connect()
        #expect(card.transmissionProtocol == .t1)
        #expect(try await card.transmit(selectPPSE).status == .success)
        await card.disconnect(.powerOff)
        await reader.close()
        #expect(USBUse.now == (0, 0))
    }

    @Test func aReaderThatHangsIsResetOnce() async throws {
        device.insert(try visa())
        device.faults = [SoftwareReaderFault(.hung)]
        #expect(try await reader.connect().transmit(selectPPSE).status == .success)
        await reader.close()
        #expect(USBUse.now == (0, 0))
    }

    @Test func aReaderThatHangsInMidSessionIsResetOnce() async throws {
        device.insert(try visa())
        let reader = try #require(try await USBReaders(on: LibUSBBus(), timeLimits: .short).readers().first)
        let card = try await reader.connect()
        #expect(try await card.transmit(selectPPSE).status == .success)
        device.faults = [SoftwareReaderFault(.hung)]
        let error = await #expect(throws: CardError.self) { try await card.transmit(selectPPSE) }
        #expect(error?.description.contains("was reset over USB") == true)
        #expect(try await reader.connect().transmit(selectPPSE).status == .success)
        await reader.close()
        #expect(USBUse.now == (0, 0))
    }

    @Test func anInterfaceHasItsName() async throws {
        let device = ScriptedReader(functional: DescriptorTests.acr122u, interfaceName: "Contactless") { _ in [] }
        #expect(
            try await bus.replug(device).identity.name == "Maker Reader [Contactless] 076B:5022@1-2#0")
    }

    @Test func readersComeAndGo() async throws {
        var events = USBReaders().events().makeAsyncIterator()
        guard case .attached(let first)? = try await events.next() else {
            Issue.record("not attached")
            return
        }
        #expect(first.id == reader.id)
        bus.pull()
        guard case .detached(let gone)? = try await events.next() else {
            Issue.record("not detached")
            return
        }
        #expect(gone === first)
        try bus.host.plug(SoftwareACR122U())
        guard case .attached(let again)? = try await events.next() else {
            Issue.record("not attached again")
            return
        }
        #expect(again.id == reader.id)
        #expect(try await again.transmitToReader(bytes("FF 00 48 00 00")) == Array("ACR122U216".utf8))
        // The name still fits.
        #expect(try await reader.transmitToReader(bytes("FF 00 48 00 00")) == Array("ACR122U216".utf8))
    }

    /// In a container nobody tells libusb of anything; and where it cannot listen, udev is of no use.
    @Test(arguments: [false, true]) func readersComeAndGoWhereNobodyTells(_ hasUdev: Bool) async throws {
        let lines = Lines()
        let silent = LibUSBBus(
            isTold: hasUdev, refusal: .notSupported, pause: .milliseconds(20),
            logger: Logger(label: "test") { _ in lines })
        var events = USBReaders(on: silent).events().makeAsyncIterator()
        guard case .attached(let first)? = try await events.next() else {
            Issue.record("not attached")
            return
        }
        #expect(first.id == reader.id)
        bus.pull()
        guard case .detached? = try await events.next() else {
            Issue.record("not detached")
            return
        }
        try bus.host.plug(SoftwareACR122U())
        guard case .attached(let again)? = try await events.next() else {
            Issue.record("not attached again")
            return
        }
        #expect(try await again.transmitToReader(bytes("FF 00 48 00 00")) == Array("ACR122U216".utf8))
        await again.close()
        #expect(USBUse.now == (0, 0))
        let told = lines.all.withLock { $0 }
        #expect(told.count == 1 && told.first?.contains("the bus is looked at on a timer") == true)
        #expect(told.first?.contains("LIBUSB_ERROR_NOT_SUPPORTED -12") == true)
    }

    /// Libusb's list lacks a device that the kernel shows; then it has one that the kernel no longer shows.
    @Test func aDeviceThatCameAndLeftUnseen() async throws {
        let usb = LibUSBBus(isTold: true, pause: .milliseconds(20))
        let place = "\(bus.host.root)/sys/bus/usb/devices/1-2"
        // Libusb leaves out a device whose descriptors it cannot read.
        try FileManager.default.moveItem(atPath: "\(place)/descriptors", toPath: "\(place)/none")
        #expect(try await usb.devices().isEmpty)
        try FileManager.default.moveItem(atPath: "\(place)/none", toPath: "\(place)/descriptors")
        var changes = try usb.changes().makeAsyncIterator()
        bus.host.announce()
        #expect(await changes.next() != nil)
        try FileManager.default.moveItem(atPath: place, toPath: "\(bus.host.root)/1-2")
        #expect(try await usb.devices().isEmpty)
        try FileManager.default.moveItem(atPath: "\(bus.host.root)/1-2", toPath: place)
    }

    @Test func unpluggedAtEveryTransfer() async throws {
        var transfer = 1
        while true {
            let device = SoftwareACR122U(faults: [SoftwareReaderFault(.unplug, transfer)])
            device.insert(try visa())
            let error = try await FaultTests.read(try await bus.replug(device))
            if device.isPluggedIn {
                #expect(error == nil)
                break
            }
            #expect(error == nil || error?.kind == .readerGone, "transfer \(transfer): \(String(describing: error))")
            #expect(await eventually { USBUse.now == (0, 0) }, "transfer \(transfer): \(USBUse.now)")
            transfer += 1
        }
        #expect(transfer > 20, "\(transfer)")
        let next = SoftwareACR122U()
        next.insert(try visa())
        #expect(try await FaultTests.read(try await bus.replug(next)) == nil)
    }

    @Test(.enabled(if: TestSupport.PrivatePCSCD.obstacle == nil, "\(TestSupport.PrivatePCSCD.obstacle ?? "")"))
    func aReaderThatPcscdHas() async throws {
        let service = try SmartCardSimulatorHosts.PrivatePCSCD(.usb(bus.host))
        _ = try service.waitForReader()
        do {
            _ = try await reader.connect()
            Issue.record("claimed twice")
        } catch let error as CardError {
            #expect(error.kind == .readerBusy)
            #expect(error.description.contains("LIBUSB_ERROR_BUSY"))
            #expect(error.hint.contains("pcscd"))
        }
        service.stop(keepsBus: true)
        // umockdev does not tell of files that are closed without the interface released, so the reader is plugged anew.
        let next = SoftwareACR122U()
        next.insert(try visa())
        #expect(try await bus.replug(next).connect().transmit(selectPPSE).status == .success)
    }

    @Test func aDeviceFileThatIsNotOurs() async throws {
        let node = try node()
        chmod(node, 0o000)
        defer { chmod(node, 0o666) }
        // Root may open anything, except without the privilege to.
        let outcome = try await Program.run(
            (getuid() == 0 ? ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"] : [])
                + [Program.this, "--testing-library", "swift-testing", "--filter", "DeniedProcess"],
            environment: bus.host.environment.merging(["PRELOADED_SUITE": "DeniedProcess"]) { $1 })
        #expect(
            outcome.status == 0 && (outcome.output + outcome.error).contains("accessIsDenied() passed"), "\(outcome)")
    }

    /// The device file, by the path that is not redirected.
    private func node() throws -> String {
        let folder = "\(bus.host.root)/dev/bus/usb/001"
        let name = try #require(FileManager.default.contentsOfDirectory(atPath: folder).first)
        return "\(folder)/\(name)"
    }

    @Test func anInsertionIsToldAtOnceAndIdlenessIsIdle() async throws {
        var profile = ACR122UProfile.firmware216
        profile.detectionDelay = .zero
        let device = SoftwareACR122U(profile: profile)
        let reader = try await bus.replug(device)
        var states = reader.slotStates().makeAsyncIterator()
        #expect(try await states.next() == .empty)

        let wakeUps = USBUse.wakeUps.load(ordering: .relaxed)
        try await Task.sleep(for: .milliseconds(1500))
        let idle = USBUse.wakeUps.load(ordering: .relaxed) - wakeUps
        #expect(idle <= 1)

        for _ in 0..<5 {
            device.insert(try visa())
            #expect(try await states.next()?.hasCard == true)
            device.remove()
            #expect(try await states.next() == .empty)
        }
    }
}

/// Udev runs, and what it says does not arrive: in a container that sees its files only, or after a mock bus has gone.
/// Libusb listens once in a process, so it is another process than that of those who are told.
@Suite(
    .preloaded, .serialized, .timeLimit(.minutes(2)),
    .enabled(if: Preloaded.obstacle == nil, "\(Preloaded.obstacle ?? "")"))
struct UnheardUdevTests {
    private let host: UMockdevHost

    init() throws {
        host = try MockBus.shared().host
        try host.plug(SoftwareACR122U())
    }

    /// Takes what udev says from whoever listens.
    private func deafen() throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: host.root) where name.hasPrefix("event") {
            try FileManager.default.removeItem(atPath: "\(host.root)/\(name)")
        }
    }

    @Test func aReaderIsFound() async throws {
        let readers = USBReaders(on: LibUSBBus(isTold: true, pause: .milliseconds(20)))
        #expect(try await readers.readers().count == 1)
        try deafen()
        host.unplug()
        // One call comes while the other still waits for udev.
        async let other = {
            try await Time.sleep(for: .milliseconds(5))
            return try await readers.readers()
        }()
        #expect(try await readers.readers().isEmpty)
        #expect(try await other.isEmpty)
        try host.plug(SoftwareACR122U())
        let again = try #require(try await readers.readers().first)
        #expect(try await again.transmitToReader(bytes("FF 00 48 00 00")) == Array("ACR122U216".utf8))
        await again.close()
        #expect(USBUse.now == (0, 0))
        host.unplug()
    }

    /// Whoever found a reader before udev had given its node away looks at it again, with nobody to tell.
    @Test func aReaderIsLookedAtAgain() async throws {
        host.unplug()
        let usb = LibUSBBus(isTold: true, pause: .milliseconds(20))
        #expect(try await usb.devices().isEmpty)
        try deafen()
        // Before the looks begin: they are few.
        var changes = try usb.changes().makeAsyncIterator()
        try host.plug(SoftwareACR122U())
        #expect(try await usb.devices().count == 1)
        #expect(await changes.next() != nil)
        host.unplug()
    }
}

/// Writes down what is logged.
private final class Lines: LogHandler {
    let all = Mutex<[String]>([])
    var metadata: Logger.Metadata {
        get { [:] }
        set {}
    }
    var logLevel: Logger.Level {
        get { .trace }
        set {}
    }
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { nil }
        set {}
    }
    func log(event: LogEvent) { all.withLock { $0.append("\(event.message) \(event.metadata ?? [:])") } }
}

/// Called by ``LibUSBTests/aDeviceFileThatIsNotOurs()`` in a process without privileges.
@Suite(.enabled(if: ProcessInfo.processInfo.environment["PRELOADED_SUITE"] == "DeniedProcess", "a part of LibUSBTests"))
struct DeniedProcess {
    @Test func accessIsDenied() async throws {
        let reader = try #require(try await USBReaders().readers().first)
        do {
            _ = try await reader.connect()
            Issue.record("opened")
        } catch let error as CardError {
            #expect(error.kind == .permissionDenied, "\(error)")
            #expect(error.description.contains("/dev/bus/usb/001/"))
            #expect(error.hint.contains("70-contactless-readers.rules"))
        }
    }
}
