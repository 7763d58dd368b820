import SmartCard
import SmartCardSimulator
import Testing
import USBDevices
import USBTestSupport

@testable import SmartCardUSB

@Suite struct DescriptorTests {
    /// The ACR122U's, as lsusb shows it in libccid's readers/ACR122U_PICC.txt
    static let acr122u = bytes(
        """
        36 21 00 01 00 07                     | bcdCCID 1.00, one slot, 5 V 3 V 1.8 V
        02 00 00 00                           | T=1
        A0 0F 00 00 A0 0F 00 00 00            | 4000 kHz
        00 2A 00 00 90 D0 03 00 00            | 10752 to 250000 bit/s
        00 01 00 00                           | dwMaxIFSD 256
        00 00 00 00 00 00 00 00
        40 00 02 00                           | dwFeatures 00020040
        0F 01 00 00                           | dwMaxCCIDMessageLength 271
        00 00 00 00 00 01
        """)

    @Test func fieldsOfTheACR122U() throws {
        let descriptor = try #require(CCIDDescriptor(extra: Self.acr122u))
        #expect(descriptor.release == 0x0100)
        #expect(descriptor.slotCount == 1)
        #expect(descriptor.protocols == 2)
        #expect(descriptor.speaks(.t1) && !descriptor.speaks(.t0))
        #expect(descriptor.defaultClock == 4000 && descriptor.maximumClock == 4000)
        #expect(descriptor.dataRate == 10752 && descriptor.maximumDataRate == 250_000)
        #expect(descriptor.maximumIFSD == 256)
        #expect(descriptor.features == [.automaticParameterNegotiation, .init(rawValue: 0x20000)])
        #expect(descriptor.exchangeLevel == .shortAPDU)
        #expect(descriptor.maximumMessageLength == 271)
        #expect(descriptor.maximumBusySlots == 1)
    }

    @Test(arguments: [
        // dwFeatures of readers in libccid's list
        (0x0001_0030 as UInt32, CCIDDescriptor.ExchangeLevel.tpdu),  // Touchatag
        (0x0002_04BA, .shortAPDU),  // Identiv 3720
        (0x0004_04BA, .extendedAPDU),  // OMNIKEY 5022
        (0x0004_007E, .extendedAPDU),  // RC-S300
        (0x0000_0032, .character),
    ])
    func exchangeLevel(_ features: UInt32, _ level: CCIDDescriptor.ExchangeLevel) throws {
        var d = Self.acr122u
        for i in 0..<4 { d[40 + i] = UInt8(truncatingIfNeeded: features >> (8 * UInt32(i))) }
        #expect(try #require(CCIDDescriptor(extra: d)).exchangeLevel == level)
    }

    @Test func itIsFoundBesideOtherDescriptors() {
        #expect(CCIDDescriptor(extra: bytes("05 FF 01 02 03") + Self.acr122u) != nil)
        #expect(CCIDDescriptor(extra: Self.acr122u + bytes("03 99")) != nil)
    }

    @Test(arguments: ["", "36", "36 21 00", "00 21", "01 21 36", "09 21 10 01 00 00 00 00 00"])
    func hostileOnesAreNone(_ text: String) {
        #expect(CCIDDescriptor(extra: bytes(text)) == nil)
    }

    @Test func noPrefixAndNoByteMakesItTrap() {
        for count in 0...Self.acr122u.count { _ = CCIDDescriptor(extra: Array(Self.acr122u.prefix(count))) }
        for index in Self.acr122u.indices {
            for value in [0x00, 0x01, 0x7F, 0x80, 0xFF] as [UInt8] {
                var d = Self.acr122u
                d[index] = value
                guard let descriptor = CCIDDescriptor(extra: d) else { continue }
                #expect((54...65_544).contains(descriptor.maximumData))
                #expect((1...256).contains(descriptor.slotCount))
            }
        }
    }

    // MARK: Interfaces

    private func endpoints(extra: [UInt8] = []) -> [USBInterface.Endpoint] {
        [
            .init(address: 0x81, attributes: 3, packetSize: 8), .init(address: 0x02, attributes: 2, packetSize: 64),
            .init(address: 0x82, attributes: 2, packetSize: 64, extra: extra),
        ]
    }

    @Test func interfacesThatAreReaders() throws {
        let function = try #require(
            CCIDFunction(.init(number: 0, interfaceClass: 0x0B, endpoints: endpoints(), extra: Self.acr122u)))
        #expect(function.bulkOut == 0x02 && function.bulkIn == 0x82 && function.interruptIn == 0x81)
        #expect(function.packetSize == 64)
        // SCL010 1.02, OMNIKEY 5321 CLi: the vendor's own class
        #expect(
            CCIDFunction(.init(number: 0, interfaceClass: 0xFF, endpoints: endpoints(), extra: Self.acr122u)) != nil)
        // Some have the descriptor behind an endpoint.
        #expect(
            CCIDFunction(
                .init(number: 0, interfaceClass: 0x0B, endpoints: endpoints(extra: Self.acr122u), extra: [])) != nil)
        // No interrupt endpoint
        let silent = CCIDFunction(
            .init(number: 0, interfaceClass: 0x0B, endpoints: Array(endpoints().dropFirst()), extra: Self.acr122u))
        #expect(silent != nil && silent?.interruptIn == nil)
    }

    @Test func interfacesThatAreNone() {
        #expect(
            CCIDFunction(.init(number: 0, interfaceClass: 0x03, endpoints: endpoints(), extra: Self.acr122u)) == nil)
        #expect(CCIDFunction(.init(number: 0, interfaceClass: 0x0B, endpoints: endpoints(), extra: [])) == nil)
        #expect(
            CCIDFunction(
                .init(number: 0, interfaceClass: 0x0B, endpoints: Array(endpoints().prefix(2)), extra: Self.acr122u))
                == nil)
    }

    // MARK: Identity

    @Test(arguments: [
        "072F:2200@1-2#0", "072F:2200@3-1.4.2#1", "04E6:5724/53311542211#0", "04E6:5724@1-2:1#0",
        "04E6:5724/A-B@1.2:1#255",
    ])
    func identitiesAreText(_ text: String) throws {
        #expect(try #require(USBReaderID(text)).description == text)
    }

    @Test(arguments: [
        "", "#0", "072F:2200", "072F:2200#0", "072F:2200@#0", "072F:2200@1#0", "072F:2200@1-#0", "072F:2200@1-2",
        "072F:2200@1-2#256", "72F:2200@1-2#0", "072F:2200/#0", "072F:2200@1-2-3#0", "072F:220Ω@1-2#0",
        "072F:2200@1-999#0",
    ])
    func textsThatAreNoIdentity(_ text: String) {
        #expect(USBReaderID(text) == nil)
    }

    @Test func readersOfCompositeAndMultiSlotDevices() {
        var twoSlots = Self.acr122u
        twoSlots[4] = 1
        // uTrust 4701F: contact on interface 0, contactless on 1
        let dual = USBDevice(
            bus: 1, address: 5, ports: [3], vendorID: 0x04E6, productID: 0x5724, release: 0x0100,
            serialNumber: "53311542211",
            interfaces: [
                .init(number: 0, interfaceClass: 0x0B, endpoints: endpoints(), extra: Self.acr122u),
                .init(number: 1, interfaceClass: 0x0B, endpoints: endpoints(), extra: twoSlots),
                .init(number: 2, interfaceClass: 0x03, endpoints: endpoints(), extra: []),
            ])
        #expect(
            FoundReader.all(in: [dual]).map(\.id.description) == [
                "04E6:5724/53311542211#0", "04E6:5724/53311542211:1#0", "04E6:5724/53311542211:1#1",
            ])
        // A serial number that two share names neither.
        var other = dual
        (other.address, other.ports) = (6, [4])
        #expect(
            FoundReader.all(in: [dual, other]).map(\.id.description).prefix(2) == [
                "04E6:5724@1-3#0", "04E6:5724@1-3:1#0",
            ])
        var filled = dual
        filled.serialNumber = "00000000"
        #expect(FoundReader.all(in: [filled]).first?.id.description == "04E6:5724@1-3#0")
    }
}
