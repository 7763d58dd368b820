import CardReaders
import Foundation
import SmartCard
import SmartCardSimulator
import SmartCardSimulatorHosts
import SmartCardUSB
import Synchronization
import TestSupport
import Testing
import USBDevices
import USBTestSupport
import Waiting

/// Readers over all backends: a scripted pcscd, and a USB bus in this process.
@Suite(.pcscExclusive, .simulatedTime, .serialized, .timeLimit(.minutes(10))) struct MachineTests {
    /// SCARD_ATTR_CHANNEL_ID of a reader on USB, 0020 and bus and address (PC/SC part 3, 3.1.2); of none that is `nil`.
    private func pcscd(_ readers: [String], address: UInt8?, in folder: URL) throws -> FakePCSCD {
        var behavior = FakePCSCD.Behavior()
        behavior.attribute = { id in
            guard id == 0x0002_0110, let address else { return .status(0x8010_001F) }
            return .data([address, 0x01, 0x20, 0x00])
        }
        return try FakePCSCD(
            path: folder.appending(path: "pcscd.comm").path, readers: readers.map { .init($0) }, behavior: behavior)
    }

    private func folder() throws -> URL {
        let folder = FileManager.default.temporaryDirectory.appending(
            path: "machine-\(UUID().uuidString.prefix(8))")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        PCSCSocket.point(to: folder.appending(path: "pcscd.comm").path)
        return folder
    }

    private func seen(_ readers: [MachineReader]) -> [String] {
        readers.map { "\($0.identity.backend) \($0.name): \($0.reason)" }
    }

    @Test("a contact reader in pcscd does not hide an ACR122U that pcscd could not open")
    func besideAnother() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let pcscd = try pcscd(["Built-in Contact Reader 00 00"], address: 9, in: folder)
        defer { pcscd.stop() }
        let bus = SoftwareUSBBus(SoftwareACR122U())
        let readers = try await Machine(usb: USBReaders(on: bus)).readers()
        #expect(
            seen(readers) == [
                "pcsc Built-in Contact Reader: it is on no USB that can be seen",
                "usb ACS ACR122U PICC Interface: pcscd answers and does not have it",
            ])
        #expect(readers.preferred?.id == "072F:2200@1-2#0")
    }

    @Test("pcscd keeps the readers that it has; the device's address identifies them, whatever their name")
    func leftToService() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let pcscd = try pcscd(["Some Reader 00 00"], address: 2, in: folder)
        defer { pcscd.stop() }
        let readers = try await Machine(usb: USBReaders(on: SoftwareUSBBus(SoftwareACR122U()))).readers()
        #expect(seen(readers) == ["pcsc Some Reader: pcscd has it"])
        #expect(readers.first?.usbID == "072F:2200" && readers.first?.model?.name == "ACS ACR122U")
    }

    @Test("without pcscd, readers are driven over USB; with neither, the error concerns pcscd")
    func withoutService() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let bus = SoftwareUSBBus(SoftwareACR122U())
        let machine = Machine(usb: USBReaders(on: bus))
        // One that has ended in a crash: its file is there, and it is not waited for.
        let ended = Process()
        ended.executableURL = URL(fileURLWithPath: "/bin/true")
        try ended.run()
        ended.waitUntilExit()
        try "\(ended.processIdentifier)\n".write(
            to: folder.appending(path: "pcscd.pid"), atomically: true, encoding: .utf8)
        let start = Time.now
        #expect(try await seen(machine.readers()) == ["usb ACS ACR122U PICC Interface: pcscd does not answer"])
        #expect(Time.now == start)
        #expect(await machine.look().failures[.pcsc]?.kind == .noService)
        bus.unplug()
        await #expect { try await machine.readers() } throws: { ($0 as? CardError)?.kind == .noService }
        await #expect { try await Machine(.usb, usb: USBReaders(on: bus)).readers() } throws: {
            ($0 as? CardError)?.kind == .noReader
        }
    }

    @Test("the machine waits for a pcscd that runs but does not listen yet")
    func starting() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        // As pcscd does it: the process id first, the socket when the drivers have been read.
        try "\(getpid())\n".write(to: folder.appending(path: "pcscd.pid"), atomically: true, encoding: .utf8)
        let search = Task { try await Machine(.pcsc).readers() }
        try await Time.sleep(for: .milliseconds(300))
        let pcscd = try pcscd(["Reader 00 00"], address: nil, in: folder)
        defer { pcscd.stop() }
        #expect(try await seen(search.value) == ["pcsc Reader: it was asked for"])
    }

    @Test("a pcscd that has just started keeps a reader that it is opening")
    func young() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        try "\(getpid())\n".write(to: folder.appending(path: "pcscd.pid"), atomically: true, encoding: .utf8)
        let pcscd = try pcscd([], address: 2, in: folder)
        defer { pcscd.stop() }
        let search = Task {
            try await Machine(usb: USBReaders(on: SoftwareUSBBus(SoftwareACR122U()))).readers()
        }
        try await Time.sleep(for: .milliseconds(300))
        pcscd.readers = [.init("ACS ACR122U PICC Interface 00 00")]
        #expect(try await seen(search.value) == ["pcsc ACS ACR122U PICC Interface: pcscd has it"])
    }

    @Test("a reader that another program holds does not block the others")
    func held() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        var behavior = FakePCSCD.Behavior()
        // SCARD_E_SHARING_VIOLATION
        behavior.connect = { _, _, _ in .status(0x8010_000B) }
        let pcscd = try FakePCSCD(
            path: folder.appending(path: "pcscd.comm").path,
            readers: ["First Reader 00 00", "Second Reader 01 00"].map { .init($0) }, behavior: behavior)
        defer { pcscd.stop() }
        let readers = try await Machine(usb: USBReaders(on: SoftwareUSBBus(SoftwareACR122U()))).readers()
        #expect(readers.map(\.name) == ["First Reader", "Second Reader", "ACS ACR122U PICC Interface"])
    }

    /// So often that a stream which hears of nothing, and looks again after 1, 2, 4, … s, comes to no end in time.
    @Test("the stream reports the present readers, and each change on USB")
    func listings() async throws {
        let bus = SoftwareUSBBus()
        var listings = Machine(.usb, usb: USBReaders(on: bus)).listings().makeAsyncIterator()
        #expect(await listings.next()?.readers.isEmpty == true)
        for _ in 0..<4 {
            bus.plug(SoftwareACR122U())
            #expect(await listings.next()?.readers.map(\.id) == ["072F:2200@1-2#0"])
            bus.unplug()
            #expect(await listings.next()?.readers.isEmpty == true)
        }
    }

    @Test("the stream reports each change of pcscd's readers")
    func listingsOfService() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let pcscd = try pcscd([], address: nil, in: folder)
        defer { pcscd.stop() }
        var listings = Machine(.pcsc).listings().makeAsyncIterator()
        #expect(await listings.next()?.readers.isEmpty == true)
        for _ in 0..<4 {
            pcscd.readers = [.init("Reader 00 00")]
            while await listings.next()?.readers.map(\.name) != ["Reader"] {}
            pcscd.readers = []
            while await listings.next()?.readers.isEmpty != true {}
        }
    }

    /// As pcscd does it: it hears of a device no sooner than we do, and tells when it has opened it.
    @Test(
        "a reader that is plugged in while pcscd answers is pcscd's, whoever sees it first", arguments: [true, false])
    func pluggedIn(_ isSeenFirst: Bool) async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let pcscd = try pcscd(["Built-in Contact Reader 00 00"], address: 2, in: folder)
        // The first one that is asked is the built-in one.
        let addresses = Mutex<[UInt8]>([2, 9])
        pcscd.behavior.attribute = { id in
            guard id == 0x0002_0110 else { return .status(0x8010_001F) }
            return .data([addresses.withLock { $0.count > 1 ? $0.removeLast() : $0[0] }, 0x01, 0x20, 0x00])
        }
        defer { pcscd.stop() }
        let bus = SoftwareUSBBus()
        var listings = Machine(usb: USBReaders(on: bus)).listings().makeAsyncIterator()
        let contact = "pcsc Built-in Contact Reader: it is on no USB that can be seen"
        #expect(await listings.next().map { seen($0.readers) } == [contact])
        func claim() { pcscd.readers.append(.init("ACS ACR122U PICC Interface 01 00")) }
        if !isSeenFirst {
            claim()
            while await listings.next()?.readers.count != 2 {}
        }
        bus.plug(SoftwareACR122U())
        if isSeenFirst {
            #expect(await listings.next().map { seen($0.readers) } == [contact])
            claim()
        }
        let both = [contact, "pcsc ACS ACR122U PICC Interface: pcscd has it"]
        while let listing = await listings.next() {
            #expect(!listing.readers.contains { $0.identity.backend == .usb })
            if seen(listing.readers) == both { break }
        }
    }

    @Test("a new reader that pcscd does not take is driven over USB after a moment")
    func notTaken() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        let pcscd = try pcscd(["Built-in Contact Reader 00 00"], address: 9, in: folder)
        defer { pcscd.stop() }
        let bus = SoftwareUSBBus()
        var listings = Machine(usb: USBReaders(on: bus)).listings().makeAsyncIterator()
        #expect(await listings.next()?.readers.count == 1)
        let start = Time.now
        bus.plug(SoftwareACR122U())
        while let listing = await listings.next(), listing.readers.count < 2 {}
        #expect(Time.now - start == Roster.pcscdOpens)
        #expect(
            try await seen(Machine(usb: USBReaders(on: bus)).readers()).last
                == "usb ACS ACR122U PICC Interface: pcscd answers and does not have it")
    }

    @Test("the machine waits for a pcscd that accepts questions without answering, and then reports that it hangs")
    func silent() async throws {
        let folder = try folder()
        defer { try? FileManager.default.removeItem(at: folder) }
        var behavior = FakePCSCD.Behavior()
        behavior.welcome = .silence
        let pcscd = try FakePCSCD(path: folder.appending(path: "pcscd.comm").path, behavior: behavior)
        defer { pcscd.stop() }
        let start = Time.now
        let listing = await Machine(usb: USBReaders(on: SoftwareUSBBus(SoftwareACR122U()))).look()
        #expect(Time.now - start == .seconds(5))
        #expect(seen(listing.readers) == ["usb ACS ACR122U PICC Interface: pcscd does not answer"])
        #expect(listing.failures[.pcsc]?.description.contains("pcscd hangs") == true)
    }
}
