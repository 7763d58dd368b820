import SmartCard

/// SIM cards' exchanges as SIMtrace sends them: GSMTAP (libosmocore, gsmtap.h) in UDP to port 4729.
struct GSMTAPDecoder {
    /// Ethernet, raw IP, Linux cooked captures of both kinds, IPv4, IPv6.
    static let links: Set<Int> = [1, 101, 113, 276, 228, 229]

    /// The parts of an exchange that have come, where they come one by one.
    private var header: [UInt8]?
    private var commandData: [UInt8] = []
    private var responseData: [UInt8] = []
    private var start = Duration.zero

    mutating func decode(_ packet: CaptureReader.Packet, into events: inout ImportedEvents) {
        guard let message = Self.network(packet).flatMap(Self.message) else {
            return events.omit("packets other than of GSMTAP")
        }
        let order = ByteOrder.bigEndian
        guard message.count >= 16, order.integer(message, at: 0) as UInt8 == 2,
            order.integer(message, at: 2) as UInt8 == 4
        else { return events.omit("GSMTAP messages other than of SIM cards") }
        let headerCount = Int(order.integer(message, at: 1) as UInt8) * 4
        guard headerCount >= 16, message.count >= headerCount else {
            return events.omit("GSMTAP messages other than of SIM cards")
        }
        let slot = "interface \(packet.interface)"
        let data = Array(message.dropFirst(headerCount))
        switch order.integer(message, at: 12) as UInt8 {
        case 0x00: exchange(data, at: packet.time, slot: slot, into: &events)
        case 0x01:
            let atr = ATR(data)
            events.add(.connected(atr, atr.usualProtocol), at: packet.time, slot: slot)
        case 0x02, 0x03: events.omit("selections of protocol and parameters")
        case 0x04:
            finish(into: &events)
            (header, commandData, responseData, start) = (data, [], [], packet.time)
        case 0x05: append(data, to: &commandData, &events)
        case 0x06: append(data, to: &responseData, &events)
        case 0x07:
            guard let header else { return events.omit("status words of no command") }
            events.add(.sent(.apdu, header + commandData), at: start, slot: slot)
            events.add(.received(.apdu, responseData + data), at: packet.time, slot: slot)
            self.header = nil
        default: events.omit("GSMTAP messages of an unknown kind")
        }
    }

    /// Counts incomplete messages.
    mutating func finish(into events: inout ImportedEvents) {
        if header != nil { events.omit("exchanges without a status word") }
        header = nil
    }

    private func append(_ data: [UInt8], to part: inout [UInt8], _ events: inout ImportedEvents) {
        guard header != nil, part.count + data.count <= PartedMessage.maximumCount else {
            return events.omit("data of no command")
        }
        part += data
    }

    /// A command, its data or that of the response, and the status word, in one piece.  T=0 does not tell whose data it
    /// is; the instruction does, where it is known.
    private func exchange(_ bytes: [UInt8], at time: Duration, slot: String, into events: inout ImportedEvents) {
        guard bytes.count >= 7, bytes.count == 7 || bytes.count == 7 + Self.count(p3: bytes[4]) || bytes[4] == 0 else {
            return events.omit("exchanges whose length does not fit")
        }
        let data = bytes.dropFirst(5).dropLast(2)
        let isCommands = Self.carryCommandData.contains(bytes[1])
        guard data.isEmpty || isCommands || Self.carryResponseData.contains(bytes[1]) else {
            return events.omit("exchanges whose data may be the command's or the response's")
        }
        events.add(.sent(.apdu, Array(isCommands ? bytes.dropLast(2) : bytes.prefix(5))), at: time, slot: slot)
        events.add(.received(.apdu, Array(bytes.suffix(isCommands ? 2 : bytes.count - 5))), at: time, slot: slot)
    }

    private static func count(p3: UInt8) -> Int { p3 == 0 ? 256 : Int(p3) }

    /// Instructions of SIM and UICC (3GPP TS 51.011, 9.2; ETSI TS 102 221, 10.1.2) by whose data they carry over T=0.
    private static let carryCommandData: Set<UInt8> = [
        0x04, 0x10, 0x14, 0x20, 0x24, 0x26, 0x28, 0x2C, 0x32, 0x44, 0x70, 0x73, 0x75, 0x76, 0x78, 0x82, 0x88, 0x89,
        0xA2, 0xA4, 0xC2, 0xD6, 0xDB, 0xDC, 0xE0, 0xE2, 0xE4,
    ]
    private static let carryResponseData: Set<UInt8> = [0x12, 0x84, 0xB0, 0xB2, 0xC0, 0xCA, 0xCB, 0xF2]

    // MARK: The network

    /// The IP packet in a packet of the link.
    private static func network(_ packet: CaptureReader.Packet) -> ArraySlice<UInt8>? {
        let data = packet.data
        let (typeIndex, headerCount): (Int, Int)
        switch packet.link {
        case 1: (typeIndex, headerCount) = (12, 14)
        case 113: (typeIndex, headerCount) = (14, 16)
        case 276: (typeIndex, headerCount) = (0, 20)
        default: return data
        }
        guard data.count >= headerCount else { return nil }
        let type: UInt16 = ByteOrder.bigEndian.integer(data, at: typeIndex)
        let network = data.dropFirst(headerCount)
        switch type {
        case 0x0800, 0x86DD: return network
        // An IEEE 802.1Q tag, and the type after it.
        case 0x8100 where network.count >= 4: return network.dropFirst(4)
        default: return nil
        }
    }

    /// Returns the UDP payload to or from port 4729, in an unfragmented IPv4 packet or an IPv6 packet.
    private static func message(_ network: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let order = ByteOrder.bigEndian
        guard let first = network.first else { return nil }
        let transport: ArraySlice<UInt8>
        switch first >> 4 {
        case 4:
            let headerCount = Int(first & 0x0F) * 4
            guard headerCount >= 20, network.count >= headerCount,
                order.integer(network, at: 9) as UInt8 == 17, (order.integer(network, at: 6) as UInt16) & 0x3FFF == 0
            else { return nil }
            transport = network.dropFirst(headerCount)
        case 6:
            guard network.count >= 40, order.integer(network, at: 6) as UInt8 == 17 else { return nil }
            transport = network.dropFirst(40)
        default: return nil
        }
        guard transport.count >= 8 else { return nil }
        let count: UInt16 = order.integer(transport, at: 4)
        guard count >= 8, transport.count >= Int(count),
            order.integer(transport, at: 0) as UInt16 == 4729 || order.integer(transport, at: 2) as UInt16 == 4729
        else { return nil }
        return transport.prefix(Int(count)).dropFirst(8)
    }
}
