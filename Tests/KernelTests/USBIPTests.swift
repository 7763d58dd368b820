import Foundation
import SmartCard
import SmartCardSimulator
import SmartCardSimulatorHosts
import Synchronization
import TestSupport
import Testing

/// The protocol toward a kernel, in the wire's bytes: Linux, Documentation/usb/usbip_protocol.rst.
@Suite struct USBIPTests {
    private let host: USBIPHost
    private let device = MouseDevice()

    init() throws {
        host = try USBIPHost(port: 0)
    }

    /// OP_REQ_IMPORT of 1-1, which is 31 2D 31.
    private let importRequest = "0111 8003 00000000 312D3100" + zeros(28)

    /// A connection that has imported the device.  It is given number 15, as in the documentation's example: the
    /// fourteenth one that is plugged in.
    private func importer() throws -> Client {
        for _ in 2...15 { try host.plug(device) }
        let client = try Client(host.port)
        try client.send(importRequest)
        #expect(try client.receive(8) == wire("0111 0003 00000000"))
        _ = try client.receive(312)
        return client
    }

    private func submitIn(_ number: Int, endpoint: Int = 1, flags: Int = 0, length: Int = 0x40) -> String {
        "00000001 \(word(number)) 0001000f 00000001 \(word(endpoint)) \(word(flags)) \(word(length)) 00000000 ffffffff "
            + "00000004 0000000000000000"
    }

    private func unlink(_ number: Int, _ unlinked: Int) -> String {
        "00000002 \(word(number)) 0001000f 00000000 00000000 \(word(unlinked))" + zeros(24)
    }

    /// The header of RET_SUBMIT.
    private func submitted(_ number: Int, status: String = "00000000", length: Int = 0) -> String {
        wire("00000003 \(word(number))" + zeros(12) + "\(status) \(word(length)) 00000000 ffffffff 00000000" + zeros(8))
    }

    private func unlinked(_ number: Int, status: String) -> String {
        wire("00000004 \(word(number))" + zeros(12) + status + zeros(24))
    }

    // MARK: Requests

    @Test("the list of devices") func theListOfDevices() throws {
        // OP_REQ_DEVLIST, with nothing plugged in.
        let early = try Client(host.port)
        try early.send("0111 8005 00000000")
        #expect(try early.receive(12) == wire("0111 0005 00000000 00000000"))
        #expect(early.isAtEnd)

        try host.plug(device)
        let client = try Client(host.port)
        try client.send("0111 8005 00000000")
        #expect(try client.receive(12) == wire("0111 0005 00000000 00000001"))
        // path: /sys/…, closed with zero.
        let path = try client.receive(256)
        #expect(path.hasPrefix("2F 73 79 73 2F") && path.hasSuffix("00"))
        #expect(try client.receive(32) == wire("312D31" + zeros(29)))
        // busnum, devnum (1 is the root hub), USB_SPEED_FULL
        #expect(try client.receive(12) == wire("00000001 00000002 00000002"))
        // idVendor, idProduct, bcdDevice; class, subclass, protocol; configuration value, configurations, interfaces
        #expect(try client.receive(12) == wire("1234 5678 0102 000000 010101"))
        // HID, boot, mouse, padding
        #expect(try client.receive(4) == wire("03010200"))
        #expect(client.isAtEnd)
    }

    @Test("an import, and who comes second") func anImportAndWhoComesSecond() throws {
        let client = try Client(host.port)
        try host.plug(device)
        try client.send(importRequest)
        #expect(try client.receive(8) == wire("0111 0003 00000000"))
        _ = try client.receive(256)
        // busid; busnum, devnum, speed; the descriptor's numbers.  No interfaces, unlike the list.
        #expect(try client.receive(32) == wire("312D31" + zeros(29)))
        #expect(try client.receive(24) == wire("00000001 00000002 00000002 1234 5678 0102 000000 010101"))
        #expect(host.isImported)

        // ST_DEV_BUSY, and it is not listed any more.
        let second = try Client(host.port)
        try second.send(importRequest)
        #expect(try second.receive(8) == wire("0111 0003 00000002"))
        #expect(second.isAtEnd)
        let list = try Client(host.port)
        try list.send("0111 8005 00000000")
        #expect(try list.receive(12) == wire("0111 0005 00000000 00000000"))

        client.close()
        #expect(eventually { !host.isImported })
        let third = try Client(host.port)
        try third.send(importRequest)
        #expect(try third.receive(8) == wire("0111 0003 00000000"))
    }

    @Test("no such device: ST_NODEV") func noSuchDevice() throws {
        try host.plug(device)
        for busID in ["312D32", "", "312D3131"] {
            let client = try Client(host.port)
            try client.send("0111 8003 00000000 " + wire(busID + zeros(32)).prefix(32 * 3 - 1))
            #expect(try client.receive(8) == wire("0111 0003 00000004"))
            #expect(client.isAtEnd)
        }
    }

    // MARK: Transfers

    /// "EXAMPLE" of the documentation, captured from a wire with a HID payload.
    @Test("the documented example") func theDocumentedExample() throws {
        let client = try importer()
        // CmdIntrIN: its answer waits for the device.
        try client.send(
            """
            00000001 00000d05 0001000f 00000001 00000001 00000200 00000040 ffffffff 00000000 00000004 00000000 00000000
            """)
        // CmdIntrOUT
        let out = "ffffffff860008a784ce5ae212376300" + zeros(48)
        try client.send(
            """
            00000001 00000d06 0001000f 00000000 00000001 00000000 00000040 ffffffff 00000000 00000004 00000000 00000000
            """ + out)
        // RetIntrOut
        #expect(
            try client.receive(48)
                == wire(
                    """
                    00000003 00000d06 00000000 00000000 00000000 00000000 00000040 ffffffff 00000000 00000000 00000000 \
                    00000000
                    """))
        #expect(device.received.map { $0.hex(separator: " ") } == [wire(out)])
        // RetIntrIn
        let answer = "ffffffff860011a784ce5ae2123763612891b10201000004" + zeros(40)
        try device.send(bytes(answer))
        #expect(
            try client.receive(48 + 64)
                == wire(
                    """
                    00000003 00000d05 00000000 00000000 00000000 00000000 00000040 ffffffff 00000000 00000000 00000000 \
                    00000000
                    """ + answer))
    }

    /// USB 2.0, 9.4.3, 9.6.1, 9.6.7.
    @Test("control transfers") func controlTransfers() throws {
        let client = try importer()
        func control(_ number: Int, isIn: Bool, length: Int, setup: String, data: String = "") throws {
            try client.send(
                "00000001 \(word(number)) 0001000f \(word(isIn ? 1 : 0)) 00000000 00000200 \(word(length)) "
                    + "00000000 ffffffff 00000000 \(setup) \(data)")
        }
        // GET_DESCRIPTOR, string 1: "Mouse" in UTF-16LE.
        try control(1, isIn: true, length: 255, setup: "80 06 01 03 09 04 FF 00")
        #expect(try client.receive(48) == submitted(1, length: 12))
        #expect(try client.receive(12) == wire("0C 03 4D00 6F00 7500 7300 6500"))
        // The device descriptor's first eight bytes, as a kernel begins.
        try control(2, isIn: true, length: 8, setup: "80 06 00 01 00 00 08 00")
        #expect(try client.receive(48 + 8) == submitted(2, length: 8) + " 12 01 10 01 00 00 00 08")
        // wLength is more than the client has room for: no more comes than it has.
        try control(3, isIn: true, length: 4, setup: "80 06 00 01 00 00 12 00")
        #expect(try client.receive(48 + 4) == submitted(3, length: 4) + " 12 01 10 01")
        // No such string: STALL, which is -EPIPE.
        try control(4, isIn: true, length: 255, setup: "80 06 09 03 09 04 FF 00")
        #expect(try client.receive(48) == submitted(4, status: "ffffffe0"))
        // SET_CONFIGURATION, without data; then a class request with data.
        try control(5, isIn: false, length: 0, setup: "00 09 01 00 00 00 00 00")
        #expect(try client.receive(48) == submitted(5))
        try control(6, isIn: false, length: 2, setup: "21 09 00 02 00 00 02 00", data: "AA BB")
        #expect(try client.receive(48) == submitted(6, length: 2))
        #expect(device.received == [[0xAA, 0xBB]])
    }

    @Test("a short answer, where that is an error, is -EREMOTEIO")
    func aShortAnswerWhereThatIsAnError() throws {
        let client = try importer()
        device.send([1, 2])
        device.send([3, 4])
        // URB_SHORT_NOT_OK is bit 0 of the flags.
        try client.send(submitIn(1, flags: 0x201))
        #expect(try client.receive(48 + 2) == submitted(1, status: "ffffff87", length: 2) + " 01 02")
        try client.send(submitIn(2, flags: 0x200))
        #expect(try client.receive(48 + 2) == submitted(2, length: 2) + " 03 04")
    }

    @Test("more than the client has room for is -EOVERFLOW") func moreThanTheClientHasRoomFor() throws {
        let client = try importer()
        device.send([1, 2, 3])
        try client.send(submitIn(1, length: 2))
        #expect(try client.receive(48 + 2) == submitted(1, status: "ffffffb5", length: 2) + " 01 02")
    }

    // MARK: Unlinking

    /// -ECONNRESET is -104: ffffff98.
    @Test("an unlinked submission has no reply of its own") func anUnlinkedSubmissionHasNoReplyOfItsOwn() throws {
        let client = try importer()
        try client.send(submitIn(1))
        try client.send(submitIn(2))
        try client.send(unlink(3, 1))
        #expect(try client.receive(48) == unlinked(3, status: "ffffff98"))
        // What the device sends now is for the other one.
        device.send([7])
        #expect(try client.receive(48 + 1) == submitted(2, length: 1) + " 07")
    }

    @Test("who unlinks too late gets the reply, then a zero") func whoUnlinksTooLate() throws {
        let client = try importer()
        device.send([7])
        try client.send(submitIn(1) + unlink(2, 1) + unlink(3, 1) + unlink(4, 0xFFFF_FFFF))
        #expect(try client.receive(48 + 1) == submitted(1, length: 1) + " 07")
        for number in 2...4 { #expect(try client.receive(48) == unlinked(number, status: "00000000")) }
    }

    @Test("unlinking against answers, many times") func unlinkingAgainstAnswers() async throws {
        let client = try importer()
        let answers = Task.detached { [device] in
            for _ in 0..<200 {
                device.send([7])
                try await Task.sleep(for: .microseconds(50))
            }
        }
        for number in stride(from: 1, to: 401, by: 2) {
            try client.send(submitIn(number))
            try client.send(unlink(number + 1, number))
            // Either the unlink succeeds, or the submission's reply goes before the unlink's.
            let first = try client.receive(48)
            if first != unlinked(number + 1, status: "ffffff98") {
                #expect(first + " " + (try client.receive(1)) == submitted(number, length: 1) + " 07")
                #expect(try client.receive(48) == unlinked(number + 1, status: "00000000"))
            }
        }
        try await answers.value
    }

    // MARK: Leaving

    /// -ESHUTDOWN is -108: ffffff94.
    @Test("unplugged: what waits ends, and the connection with it", arguments: [false, true])
    func unplugged(byItself: Bool) throws {
        let client = try importer()
        try client.send(submitIn(1))
        device.send([7])
        _ = try client.receive(48 + 1)
        try client.send(submitIn(2))
        try client.send(submitIn(3))
        try client.send(unlink(4, 3))
        #expect(try client.receive(48) == unlinked(4, status: "ffffff98"))
        if byItself { device.leave() } else { host.unplug() }
        #expect(try client.receive(48) == submitted(2, status: "ffffff94"))
        #expect(client.isAtEnd)
        #expect(eventually { !host.isPlugged })
    }

    @Test("what one client did not take is not for the next") func whatOneClientDidNotTake() throws {
        try host.plug(device)
        for value: UInt8 in [1, 2] {
            let client = try Client(host.port)
            try client.send(importRequest)
            _ = try client.receive(8 + 312)
            device.send([value])
            device.send([0xEE])
            let header = "00000001 00000001 00010002 00000001 00000001 00000000 00000040 00000000 ffffffff 00000004"
            try client.send(header + zeros(8))
            #expect(try client.receive(48 + 1) == submitted(1, length: 1) + " 0\(value)")
            client.close()
            #expect(eventually { !host.isImported })
        }
    }

    @Test("a closed server") func aClosedServer() throws {
        let client = try importer()
        let port = host.port
        host.close()
        #expect(client.isAtEnd)
        #expect(throws: (any Error).self) { try Client(port) }
        #expect(throws: HostError.self) { try host.plug(device) }
        // The port is free again.
        #expect(try USBIPHost(port: port).port == port)
    }

    @Test("a port that somebody has") func aPortThatSomebodyHas() throws {
        let error = #expect(throws: HostError.self) { try USBIPHost(port: host.port) }
        #expect(error?.description.hasPrefix("cannot listen on port \(host.port) of 127.0.0.1") == true)
    }

    // MARK: Hostile clients

    @Test(
        "nonsense instead of a request ends the connection",
        arguments: [
            "0110 8005 00000000",  // another version
            "0111 8004 00000000",  // another code
            "0111 0005 00000000",  // a reply
            "0000 0000 00000000",
            "FFFF FFFF FFFFFFFF",
        ])
    func nonsenseInsteadOfARequest(request: String) throws {
        try host.plug(device)
        let client = try Client(host.port)
        try client.send(request)
        #expect(client.isAtEnd)
    }

    @Test(
        "nonsense instead of a command ends the connection, and the device is free again",
        arguments: [
            // Commands 0, 3 and FFFFFFFF
            "00000000 00000001 0001000f 00000001 00000001 00000000 00000040 00000000 ffffffff 00000004",
            "00000003 00000001 0001000f 00000001 00000001 00000000 00000040 00000000 ffffffff 00000004",
            "ffffffff 00000001 0001000f 00000001 00000001 00000000 00000040 00000000 ffffffff 00000004",
            // Another device
            "00000001 00000001 00010010 00000001 00000001 00000000 00000040 00000000 ffffffff 00000004",
            // Direction 2
            "00000001 00000001 0001000f 00000002 00000001 00000000 00000040 00000000 ffffffff 00000004",
            // Endpoints 16 and FFFFFFFF
            "00000001 00000001 0001000f 00000001 00000010 00000000 00000040 00000000 ffffffff 00000004",
            "00000001 00000001 0001000f 00000000 ffffffff 00000000 00000040 00000000 ffffffff 00000004",
            // 128 KiB and a byte, -1 and 2 GiB - 1, to come in and to go out
            "00000001 00000001 0001000f 00000001 00000001 00000000 00020001 00000000 ffffffff 00000004",
            "00000001 00000001 0001000f 00000001 00000001 00000000 ffffffff 00000000 ffffffff 00000004",
            "00000001 00000001 0001000f 00000000 00000001 00000000 7fffffff 00000000 ffffffff 00000004",
            // Three isochronous packets
            "00000001 00000001 0001000f 00000001 00000001 00000000 00000040 00000000 00000003 00000004",
        ])
    func nonsenseInsteadOfACommand(header: String) throws {
        let client = try importer()
        try client.send(header + zeros(8))
        #expect(client.isAtEnd)
        #expect(eventually { !host.isImported })
        #expect(host.isPlugged)
    }

    @Test("a number that is in use ends the connection") func aNumberThatIsInUse() throws {
        let client = try importer()
        try client.send(submitIn(1))
        try client.send(submitIn(1))
        #expect(client.isAtEnd)
    }

    @Test("so many submissions may wait, and no more") func soManySubmissionsMayWait() throws {
        let client = try importer()
        for number in 1...256 { try client.send(submitIn(number)) }
        try client.send(unlink(1000, 256))
        #expect(try client.receive(48) == unlinked(1000, status: "ffffff98"))
        try client.send(submitIn(257))
        try client.send(submitIn(258))
        #expect(client.isAtEnd)
    }

    @Test("a client that never asks for answers is given up") func aClientThatNeverAsksForAnswers() throws {
        let client = try importer()
        for _ in 0..<256 { device.send([7]) }
        try client.send(
            "00000001 00000001 0001000f 00000000 00000001 00000000 00000001 00000000 ffffffff 00000004" + zeros(8)
                + "00")
        #expect(client.isAtEnd)
    }

    @Test("so many clients at once, and no more") func soManyClientsAtOnce() throws {
        var clients = try (0..<16).map { _ in try Client(host.port) }
        let one = try Client(host.port)
        #expect(one.isAtEnd)
        clients.removeFirst().close()
        #expect(
            eventually {
                guard let next = try? Client(host.port) else { return false }
                return (try? next.send("0111 8005 00000000")) != nil && (try? next.receive(12)) != nil
            })
    }
}

// MARK: What the tests are written in

/// Big-endian.
private func word(_ value: Int) -> String {
    let digits = String(UInt32(truncatingIfNeeded: value), radix: 16)
    return String(repeating: "0", count: 8 - digits.count) + digits
}

private func zeros(_ count: Int) -> String { " " + String(repeating: "00", count: count) + " " }

private func bytes(_ text: String) throws -> [UInt8] { try [UInt8](hex: text.filter(\.isHexDigit)) }

/// As ``Client/receive(_:)`` gives it.
private func wire(_ text: String) -> String { (try? bytes(text).hex(separator: " ")) ?? "no hexadecimal: \(text)" }

/// Whether something becomes true within twenty seconds.
private func eventually(_ isTrue: () -> Bool) -> Bool {
    for _ in 0..<4000 {
        if isTrue() { return true }
        usleep(5000)
    }
    return false
}

/// A client of 127.0.0.1 that waits twenty seconds at most.
private final class Client {
    private var descriptor: Int32

    init(_ port: UInt16) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var patience = timeval(tv_sec: 20, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, socklen_t(MemoryLayout<timeval>.size))
        guard withLocalAddress(port, { connect(descriptor, $0, $1) }) == 0 else {
            Foundation.close(descriptor)
            descriptor = -1
            throw POSIXError(.ECONNREFUSED)
        }
    }

    deinit { close() }

    func close() {
        if descriptor >= 0 { Foundation.close(descriptor) }
        descriptor = -1
    }

    func send(_ text: String) throws {
        let bytes = try bytes(text)
        guard Foundation.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            throw POSIXError(.EPIPE)
        }
    }

    func receive(_ count: Int) throws -> String {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: count)
        while bytes.count < count {
            let received = recv(descriptor, &buffer, count - bytes.count, 0)
            guard received > 0 else { throw Short(description: "only \(bytes.hex(separator: " "))") }
            bytes += buffer[..<received]
        }
        return bytes.hex(separator: " ")
    }

    /// Whether the server has ended the connection, with nothing left to read.
    var isAtEnd: Bool {
        var byte: UInt8 = 0
        let received = recv(descriptor, &byte, 1, 0)
        return received == 0 || received < 0 && errno == ECONNRESET
    }

    struct Short: Error, CustomStringConvertible {
        let description: String
    }
}

/// A device of class HID with endpoint 1 in both directions, which sends what it is told to.
private final class MouseDevice: SoftwareUSBDevice {
    private struct State {
        var observer: (@Sendable (SoftwareUSBEvent) -> Void)?
        var received: [[UInt8]] = []
    }
    private let state = Mutex(State())

    let deviceDescriptor: [UInt8] = [
        0x12, 0x01, 0x10, 0x01, 0, 0, 0, 8, 0x34, 0x12, 0x78, 0x56, 0x02, 0x01, 1, 0, 0, 1,
    ]
    let configurationDescriptor: [UInt8] = [
        9, 2, 32, 0, 1, 1, 0, 0x80, 50, 9, 4, 0, 0, 2, 0x03, 0x01, 0x02, 0,
        7, 5, 0x81, 3, 64, 0, 4, 7, 5, 0x01, 3, 64, 0, 4,
    ]
    let strings = ["Mouse"]

    var received: [[UInt8]] { state.withLock { $0.received } }

    func send(_ bytes: [UInt8]) { tell(.ready(endpoint: 0x81, bytes: bytes, delay: .zero)) }
    func leave() { tell(.unplugged) }
    private func tell(_ event: SoftwareUSBEvent) { state.withLock { $0.observer }?(event) }

    func control(setup: [UInt8], data: [UInt8]) -> [UInt8]? {
        if setup[0] & 0x80 == 0 { state.withLock { $0.received.append(data) } }
        return setup[0] & 0x80 == 0 ? [] : nil
    }
    func transferOut(endpoint: UInt8, _ bytes: [UInt8]) { state.withLock { $0.received.append(bytes) } }
    func willTransferIn(endpoint: UInt8) {}
    func observe(_ observer: @escaping @Sendable (SoftwareUSBEvent) -> Void) {
        state.withLock { $0.observer = observer }
    }
}
