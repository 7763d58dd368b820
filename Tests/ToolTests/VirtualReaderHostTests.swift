import Glibc
import SmartCard
import SmartCardSimulator
import Synchronization
import TestSupport
import Testing

@testable import SmartCardSimulatorHosts

/// The device file as usbfs behaves: Linux, Documentation/driver-api/usb/usb.rst and drivers/usb/core/devio.c.
@Suite struct USBDeviceFileTests {
    private let device = EchoDevice()
    private let reapable = Flag()
    private let file: USBDeviceFile

    init() {
        let (device, reapable) = (device, reapable)
        let file = USBDeviceFile(device) { reapable.value = $0 }
        device.observe { [weak file] in file?.deviceDid($0) }
        self.file = file
    }

    private func bulkIn(_ address: UInt, room: Int = 64, endpoint: UInt8 = 0x82) -> USBDeviceFile.Transfer {
        .init(address: address, kind: .bulk, endpoint: endpoint, buffer: Array(repeating: 0, count: room))
    }

    private func bulkOut(_ address: UInt, _ bytes: [UInt8]) -> USBDeviceFile.Transfer {
        .init(address: address, kind: .bulk, endpoint: 0x02, buffer: bytes)
    }

    @Test("what goes out comes back in") func whatGoesOutComesBackIn() {
        let open = file.open()
        #expect(!reapable.value)
        #expect(file.submit(bulkOut(1, [0xAA, 0xBB]), by: open) == 0)
        #expect(reapable.value)
        #expect(file.reap(open) == .init(address: 1, status: 0, length: 2, data: []))
        #expect(file.submit(bulkIn(2), by: open) == 0)
        #expect(file.reap(open) == .init(address: 2, status: 0, length: 2, data: [0xAA, 0xBB]))
        #expect(!reapable.value)
        #expect(file.reap(open) == nil)
    }

    @Test("a transfer waits for data, and each endpoint has its own")
    func aTransferWaitsForDataAndEachEndpointHasItsOwn() {
        let open = file.open()
        #expect(file.submit(bulkIn(1, endpoint: 0x81), by: open) == 0)
        #expect(file.submit(bulkIn(2), by: open) == 0)
        #expect(file.reap(open) == nil)
        device.send(.ready(endpoint: 0x82, bytes: [0x01], delay: .zero))
        #expect(file.reap(open)?.address == 2)
        device.send(.ready(endpoint: 0x81, bytes: [0x50, 0x03], delay: .zero))
        #expect(file.reap(open) == .init(address: 1, status: 0, length: 2, data: [0x50, 0x03]))
    }

    @Test("data comes no sooner than its delay, and what follows it comes after it")
    func dataComesNoSoonerThanItsDelayAndWhatFollowsItComesAfterIt() async throws {
        let open = file.open()
        let start = ContinuousClock.now
        device.send(.ready(endpoint: 0x82, bytes: [0x01], delay: .milliseconds(60)))
        device.send(.ready(endpoint: 0x82, bytes: [0x02], delay: .zero))
        #expect(file.submit(bulkIn(1), by: open) == 0)
        #expect(file.submit(bulkIn(2), by: open) == 0)
        while !reapable.value {
            try #require(.now < start + .seconds(60))
            try await Task.sleep(for: .milliseconds(2))
        }
        #expect(.now >= start + .milliseconds(60))
        #expect(file.reap(open)?.data == [0x01])
        #expect(file.reap(open)?.data == [0x02])
    }

    @Test("a discarded transfer ends with ENOENT, once, and its data goes to the next")
    func aDiscardedTransferEndsWithENOENTOnceAndItsDataGoesToTheNext() {
        let open = file.open()
        #expect(file.submit(bulkIn(1), by: open) == 0)
        #expect(file.discard(1, by: file.open()) == EINVAL)
        #expect(file.discard(1, by: open) == 0)
        #expect(reapable.value)
        #expect(file.discard(1, by: open) == EINVAL)
        #expect(file.reap(open) == .init(address: 1, status: -ENOENT, length: 0, data: []))
        #expect(!reapable.value)
        device.send(.ready(endpoint: 0x82, bytes: [0x07], delay: .zero))
        #expect(file.submit(bulkIn(2), by: open) == 0)
        #expect(file.reap(open)?.data == [0x07])
    }

    @Test("an interface belongs to one open") func anInterfaceBelongsToOneOpen() {
        let (first, second) = (file.open(), file.open())
        #expect(file.claim(interface: 0, by: first) == 0)
        #expect(file.claim(interface: 0, by: first) == 0)
        #expect(file.claim(interface: 0, by: second) == EBUSY)
        #expect(file.claim(interface: 1, by: second) == ENOENT)
        #expect(file.submit(bulkOut(1, [0x00]), by: second) == EBUSY)
        #expect(file.release(interface: 0, by: second) == EINVAL)
        file.close(first)
        #expect(file.claim(interface: 0, by: second) == 0)
        #expect(file.release(interface: 0, by: second) == 0)
        #expect(file.claim(interface: 0, by: file.open()) == 0)
    }

    @Test("after unplugging, pending transfers end with ESHUTDOWN, and new ones fail with ENODEV")
    func unpluggedWhatWaitsEndsWithESHUTDOWNWhatComesFailsWithENODEV() {
        let open = file.open()
        #expect(file.submit(bulkIn(1), by: open) == 0)
        device.send(.unplugged)
        #expect(reapable.value)
        #expect(file.reap(open)?.status == -ESHUTDOWN)
        // There is nothing left, but whoever waits shall find out.
        #expect(reapable.value)
        #expect(file.submit(bulkIn(2), by: open) == ENODEV)
        #expect(file.claim(interface: 0, by: file.open()) == ENODEV)
    }

    @Test("data longer than the buffer is cut, with EOVERFLOW") func dataLongerThanTheBufferIsCutWithEOVERFLOW() {
        let open = file.open()
        device.send(.ready(endpoint: 0x82, bytes: [1, 2, 3], delay: .zero))
        #expect(file.submit(bulkIn(1, room: 2), by: open) == 0)
        #expect(file.reap(open) == .init(address: 1, status: -EOVERFLOW, length: 2, data: [1, 2]))
    }

    /// USB 2.0, 9.4.3 and 9.6.7.
    @Test("control transfers") func controlTransfers() throws {
        let open = file.open()
        func transfer(_ setup: String, _ data: [UInt8] = []) throws -> USBDeviceFile.Completion? {
            let buffer = try [UInt8](hex: setup) + data
            #expect(file.submit(.init(address: 9, kind: .control, endpoint: 0, buffer: buffer), by: open) == 0)
            return file.reap(open)
        }
        // GET_DESCRIPTOR, string 0: English (United States); string 1: "Echo", UTF-16LE.
        #expect(try transfer("80 06 00 03 00 00 FF 00")?.data == [0x04, 0x03, 0x09, 0x04])
        #expect(try transfer("80 06 01 03 09 04 FF 00")?.data == [UInt8](hex: "0A 03 45 00 63 00 68 00 6F 00"))
        #expect(try transfer("80 06 01 03 09 04 02 00")?.data == [0x0A, 0x03])
        #expect(try transfer("80 06 00 01 00 00 12 00")?.data == device.deviceDescriptor)
        // No such string: STALL, which is EPIPE.
        #expect(try transfer("80 06 09 03 09 04 FF 00")?.status == -EPIPE)
        // A class request is the device's business.
        #expect(try transfer("A1 02 00 00 00 00 04 00")?.data == [0xA1, 0x02])
        #expect(try transfer("21 01 00 00 00 00 01 00", [0x55])?.length == 1)
        // Seven bytes are no setup packet.
        #expect(
            file.submit(.init(address: 1, kind: .control, endpoint: 0, buffer: Array(repeating: 0, count: 7)), by: open)
                == EINVAL)
    }
}

/// The protocol of vsmartcard's vpcd, frame by frame, and the ATRs of PC/SC part 3, 3.1.3.2.3.
@Suite struct VPCDProtocolTests {
    @Test(
        "ATR",
        arguments: [
            // MIFARE Classic 1K, 4K, Ultralight: the workgroup's table of names.
            (
                VirtualCardRadio.typeA(uid: [4, 0x82, 0xAC, 0xB9], atqa: [0, 4], sak: 0x08, ats: nil),
                "3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 00 01 00 00 00 00 6A"
            ),
            (
                .typeA(uid: [4, 0x82, 0xAC, 0xB9], atqa: [0, 2], sak: 0x18, ats: nil),
                "3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 00 02 00 00 00 00 69"
            ),
            (
                .typeA(uid: [4, 1, 2, 3, 4, 5, 6], atqa: [0, 0x44], sak: 0x00, ats: nil),
                "3B 8F 80 01 80 4F 0C A0 00 00 03 06 03 00 03 00 00 00 00 68"
            ),
            // MIFARE DESFire as pcsc-tools' list has it: the historical byte 80 of its ATS.
            (
                .typeA(
                    uid: [4, 1, 2, 3, 4, 5, 6], atqa: [3, 0x44], sak: 0x20, ats: [0x06, 0x75, 0x77, 0x81, 0x02, 0x80]),
                "3B 81 80 01 80 80"
            ),
            // An ATS of its length byte alone has no historical bytes.
            (.typeA(uid: [8, 1, 2, 3], atqa: [0, 4], sak: 0x20, ats: [0x01]), "3B 80 80 01 01"),
            // The ATQB of the example in the ACS API v2.04.
            (
                .typeB(atqb: [0x50, 0x12, 0x23, 0x45, 0x56, 0x12, 0x53, 0x54, 0x4E, 0x33, 0x81, 0xC3]),
                "3B 88 80 01 12 53 54 4E 33 81 C3 00 23"
            ),
            // FeliCa as the reference manual of ACS's ACM1252U-Y3, 5.2.6, has it.
            (
                .felica(idm: [1, 1, 6, 1, 0xCB, 9, 0x57, 3], pmm: [3, 0, 0, 0, 0, 0, 0, 0], systemCodes: [0x8008]),
                "3B 8F 80 01 80 4F 0C A0 00 00 03 06 11 00 3B 00 00 00 00 42"
            ),
        ])
    func atr(radio: VirtualCardRadio, expected: String) throws {
        var vpcd = VPCDProtocol(SilentCard(radio))
        #expect(vpcd.answer([0x04])?.hex(separator: " ") == expected)
    }

    @Test("controls, pseudo-APDUs, silence and nonsense") func controlsPseudoAPDUsSilenceAndNonsense() {
        let card = SilentCard(.typeA(uid: [0xDE, 0xAD, 0xBE, 0xEF], atqa: [0, 4], sak: 0x08, ats: nil))
        var vpcd = VPCDProtocol(card)
        for control: UInt8 in [0x00, 0x01, 0x02] { #expect(vpcd.answer([control]) == nil) }
        #expect(card.resets.value == 3)
        #expect(vpcd.answer([]) == nil)
        #expect(vpcd.answer([0x77]) == nil)
        #expect(vpcd.answer([0xFF, 0xCA, 0x00, 0x00, 0x00]) == [0xDE, 0xAD, 0xBE, 0xEF, 0x90, 0x00])
        #expect(vpcd.answer([0xFF, 0xCA, 0x01, 0x00, 0x00]) == [0x6A, 0x81])
        #expect(vpcd.answer([0xFF, 0xCA]) == [0x6E, 0x00])
        #expect(vpcd.answer([0x00, 0xA4, 0x04, 0x00]) == [])
    }

    @Test("a card that takes its time") func aCardThatTakesItsTime() throws {
        let radio = "type-a {\n uid 01020304\n atqa 0004\n sak 20\n ats 01\n }"
        var vpcd = VPCDProtocol(try CardFile(parsing: "card emv {\n\(radio)\n delay select 120\n}").makeCard())
        let clock = ContinuousClock()
        #expect(clock.measure { _ = vpcd.answer([0x00, 0xA4, 0x04, 0x00]) } >= .milliseconds(120))
    }
}

/// Echoes the data of endpoint 0x02 on 0x82.
private final class EchoDevice: SoftwareUSBDevice {
    private let observer = Mutex<Observer?>(nil)

    private struct Observer {
        let tell: @Sendable (SoftwareUSBEvent) -> Void
    }

    let deviceDescriptor: [UInt8] = [18, 1, 0x10, 1, 0, 0, 0, 8, 0x2F, 7, 0, 0x22, 7, 2, 1, 0, 0, 1]
    let configurationDescriptor: [UInt8] = [9, 2, 18, 0, 1, 1, 0, 0x80, 0x64, 9, 4, 0, 0, 0, 0xFF, 0, 0, 0]
    let strings = ["Echo"]

    func control(setup: [UInt8], data: [UInt8]) -> [UInt8]? { setup[0] & 0x80 != 0 ? Array(setup.prefix(2)) : [] }
    func transferOut(endpoint: UInt8, _ bytes: [UInt8]) { send(.ready(endpoint: 0x82, bytes: bytes, delay: .zero)) }
    func willTransferIn(endpoint: UInt8) {}
    func observe(_ observer: @escaping @Sendable (SoftwareUSBEvent) -> Void) {
        self.observer.withLock { $0 = Observer(tell: observer) }
    }
    func send(_ event: SoftwareUSBEvent) { observer.withLock { $0 }?.tell(event) }
}

private final class SilentCard: VirtualCard {
    let radio: VirtualCardRadio
    let resets = Counter()
    init(_ radio: VirtualCardRadio) { self.radio = radio }
    func reset() { resets.value += 1 }
}

private final class Flag: Sendable {
    private let flag = Mutex(false)
    var value: Bool {
        get { flag.withLock { $0 } }
        set { flag.withLock { $0 = newValue } }
    }
}

private final class Counter: Sendable {
    private let count = Mutex(0)
    var value: Int {
        get { count.withLock { $0 } }
        set { count.withLock { $0 = newValue } }
    }
}

@Suite struct ChildProcessTests {
    /// Who polls in a loop until a program has ended must find it so as often as it asks.
    @Test func aProgramThatHasEndedStaysEnded() async throws {
        let child = try ChildProcess(["/bin/sh", "-c", "exit 3"], environment: [:])
        var status: Int32?
        for _ in 0..<1000 where status == nil {
            status = child.poll()
            try await Task.sleep(for: .milliseconds(5))
        }
        #expect(status == 3)
        #expect(child.poll() == 0 && child.wait() == 0)
    }
}
