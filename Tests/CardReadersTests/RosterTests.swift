import CardReaders
import SmartCardPCSC
import SmartCardUSB
import Testing
import USBDevices
import Waiting

/// The readers derived from the facts of pcscd and USB.
@Suite struct RosterTests {
    private func device(
        _ serialNumber: String?, address: UInt8 = 4, ports: [UInt8] = [2], productID: UInt16 = 0x2200
    ) -> USBDevice {
        USBDevice(
            bus: 1, address: address, ports: ports, vendorID: 0x072F, productID: productID, release: 0x0214,
            manufacturer: "ACS", product: "ACR122U", serialNumber: serialNumber)
    }

    private func ids(_ roster: inout Roster, _ usb: [USBDevice], slots: Int = 1) -> [String] {
        roster.entries(
            pcsc: [], usb: usb.flatMap { device in (0..<slots).map { .init(device: device, slot: $0) } }
        ).map(\.id)
    }

    @Test("a reader is identified by its serial number, else by model and port; slots are numbered")
    func identifiers() {
        var roster = Roster()
        #expect(ids(&roster, [device("A0123")]) == ["A0123"])
        #expect(ids(&roster, [device(nil)]) == ["072F:2200@1-2#0"])
        #expect(ids(&roster, [device("000000")]) == ["072F:2200@1-2#0"], "a filling is no number")
        #expect(ids(&roster, [device("A0123")], slots: 2) == ["A0123#0", "A0123#1"])
        #expect(
            ids(&roster, [device(nil, ports: [2, 4])], slots: 2) == ["072F:2200@1-2.4#0", "072F:2200@1-2.4#1"])
        // Plugged in anew: the address is another one, the port the same.
        #expect(ids(&roster, [device(nil, address: 9)]) == ["072F:2200@1-2#0"])
        // On another port: with a number it is the same reader, without it is another.
        #expect(ids(&roster, [device("A0123", address: 10, ports: [3])]) == ["A0123"])
        #expect(ids(&roster, [device(nil, address: 11, ports: [3])]) == ["072F:2200@1-3#0"])
    }

    @Test("a serial number that two readers shared identifies neither, even after one has left")
    func twins() {
        var roster = Roster()
        let twins = [device("A0123", address: 4, ports: [1]), device("A0123", address: 5, ports: [2])]
        #expect(ids(&roster, twins) == ["072F:2200@1-1#0", "072F:2200@1-2#0"])
        #expect(ids(&roster, [twins[1]]) == ["072F:2200@1-2#0"])
        #expect(ids(&roster, [device("A0123", productID: 0x2224)]) == ["A0123"], "another model's is its own")
    }

    @Test("a reader that pcscd and USB list is one reader, driven by pcscd, with a stable name")
    func both() {
        func pcsc(_ name: String, address: UInt32?, isComplete: Bool = true) -> Roster.PCSCFacts {
            .init(
                name: name, channel: address.map { PCSCChannelID(rawValue: 0x0020_0000 | 1 << 8 | $0) },
                isComplete: isComplete)
        }
        func entries(_ pcsc: [Roster.PCSCFacts], _ usb: [USBDevice]) -> [String] {
            var roster = Roster()
            return roster.entries(pcsc: pcsc, usb: usb.map { .init(device: $0) }).map {
                "\($0.id) \($0.source)"
            }
        }
        let (first, second) = (device("A0123"), device(nil, address: 5, ports: [3]))
        #expect(entries([pcsc("ACS ACR122U 00 00", address: 4)], [first]) == ["A0123 pcsc(0)"])
        #expect(entries([pcsc("ACS ACR122U 01 00", address: 4)], [first]) == ["A0123 pcsc(0)"])
        #expect(
            entries([pcsc("ACS ACR122U 00 00", address: 5)], [first, second])
                == ["072F:2200@1-3#0 pcsc(0)", "A0123 usb(0)"])
        // Held by another program, so that the driver does not tell: the one that is left.
        #expect(
            entries(
                [pcsc("ACS ACR122U 00 00", address: 4), pcsc("ACS ACR122U 01 00", address: nil, isComplete: false)],
                [first, second]) == ["A0123 pcsc(0)", "072F:2200@1-3#0 pcsc(1)"])
        #expect(
            entries([pcsc("ACS ACR122U (A0123) 00 00", address: nil, isComplete: false)], [first, second])
                == ["A0123 pcsc(0)", "072F:2200@1-3#0 usb(1)"])
        // On no USB: the name without its numbers, which depend on what was plugged in before.
        #expect(entries([pcsc("Virtual PCD 03 00", address: nil)], []) == ["Virtual PCD pcsc(0)"])
        #expect(
            entries([pcsc("Virtual PCD 00 00", address: nil), pcsc("Virtual PCD 00 01", address: nil)], [])
                == ["Virtual PCD 00 00 pcsc(0)", "Virtual PCD 00 01 pcsc(1)"])
    }

    @Test("a reader that pcscd drove is reserved for it for a while, when pcscd restarts or has not seen it yet")
    func pcscdReturns() {
        var roster = Roster()
        let device = device("A0123")
        let pcscd = Roster.PCSCFacts(
            name: "ACS ACR122U 00 00", channel: PCSCChannelID(rawValue: 0x0020_0000 | 1 << 8 | 4))
        let start = Time.now
        func sources(after seconds: Int, pcscd facts: Roster.PCSCFacts?) -> [Roster.Source] {
            roster.entries(
                pcsc: facts.map { [$0] } ?? [], usb: [.init(device: device)], at: start + .seconds(seconds)
            ).map(\.source)
        }
        #expect(sources(after: 0, pcscd: nil) == [.usb(0)], "it was never pcscd's")
        #expect(sources(after: 1, pcscd: pcscd) == [.pcsc(0)])
        // However long nobody has looked.
        #expect(sources(after: 1000, pcscd: nil) == [])
        #expect(roster.changesAt == start + .seconds(1030))
        #expect(sources(after: 1029, pcscd: nil) == [])
        #expect(sources(after: 1029, pcscd: pcscd) == [.pcsc(0)])
        #expect(roster.changesAt == nil)
        #expect(sources(after: 1040, pcscd: nil) == [], "it was pcscd's again")
        #expect(sources(after: 1070, pcscd: nil) == [.usb(0)], "pcscd does not come back")
        #expect(roster.changesAt == nil)
    }

    @Test("a new reader is reserved for a pcscd that answers, for a moment")
    func pluggedIn() {
        var roster = Roster()
        let (old, new) = (device("A0123"), device("B0123", address: 5, ports: [3]))
        let start = Time.now
        func ids(after seconds: Int, _ devices: [USBDevice], answers: Bool = true, pcscd: UInt32? = nil) -> [String] {
            roster.entries(
                pcsc: pcscd.map {
                    [.init(name: "ACS 00 00", channel: PCSCChannelID(rawValue: 0x0020_0000 | 1 << 8 | $0))]
                } ?? [], usb: devices.map { .init(device: $0) }, pcscdAnswers: answers, at: start + .seconds(seconds)
            ).map { "\($0.id) \($0.source)" }
        }
        #expect(ids(after: 0, [old]) == ["A0123 usb(0)"])
        #expect(ids(after: 10, [old, new]) == ["A0123 usb(0)"])
        #expect(roster.changesAt == start + .seconds(15))
        #expect(ids(after: 11, [old, new], pcscd: 5) == ["B0123 pcsc(0)", "A0123 usb(0)"])
        #expect(roster.changesAt == nil)
        // Plugged in anew, and pcscd does not take it.
        roster = Roster()
        #expect(ids(after: 0, []) == [])
        #expect(ids(after: 10, [new]) == [])
        #expect(ids(after: 14, [new]) == [])
        #expect(ids(after: 15, [new]) == ["B0123 usb(0)"])
        #expect(roster.changesAt == nil)
        #expect(ids(after: 16, [new]) == ["B0123 usb(0)"])
        // Nobody is there to take it, or is any more.
        #expect(ids(after: 20, []) == [])
        #expect(ids(after: 21, [old], answers: false) == ["A0123 usb(0)"])
        #expect(ids(after: 22, [old]) == ["A0123 usb(0)"], "it is ours by now")
        #expect(ids(after: 23, [old, new]) == ["A0123 usb(0)"])
        #expect(ids(after: 24, [old, new], answers: false) == ["A0123 usb(0)", "B0123 usb(1)"])
    }
}
