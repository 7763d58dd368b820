import SmartCard

extension ForeignFormat {
    /// CCID messages in Linux's capture of a USB device (LINKTYPE_USB_LINUX_MMAPPED).
    static let usbmon = ForeignFormat(
        "usbmon", "a pcapng capture of USB (usbmon) with CCID messages, for Wireshark", isText: false,
        exporter: { USBMonExporter($0) })
}

/// The header of a packet of usbmon (Linux, Documentation/usb/usbmon.rst), 64 bytes.
private enum Header {
    static let count = 64
    static let shortCount = 48

    static let submission = UInt8(ascii: "S")
    static let completion = UInt8(ascii: "C")
    static let error = UInt8(ascii: "E")

    static let interrupt: UInt8 = 1
    static let control: UInt8 = 2
    static let bulk: UInt8 = 3
    static let isIn: UInt8 = 0x80
}

/// Finds the CCID messages among transfers.
struct USBMonDecoder {
    static let link = 220
    /// The link type with 48 bytes of header.
    static let shortLink = 189

    /// Header, and more than an extended APDU.
    private static let maximumMessageCount = 10 + PartedMessage.maximumCount
    private static let maximumDeviceCount = 4096

    private struct Device {
        /// True for a reader, by its descriptors or its messages; nil while that is unknown.
        var isReader: Bool?
        /// The endpoints of its CCID interfaces; empty where its descriptors are not in the capture.
        var endpoints: Set<UInt8> = []
        /// The bytes received so far of a message in several transfers.
        var outgoing: [UInt8] = []
        var incoming: [UInt8] = []
        /// The names of its slots, by bSlot.
        var slots: [UInt8: String] = [:]
    }

    private var devices: [UInt32: Device] = [:]

    mutating func decode(_ packet: CaptureReader.Packet, into events: inout ImportedEvents) {
        let headerCount = packet.link == Self.link ? Header.count : Header.shortCount
        guard packet.data.count >= headerCount else { return events.omit("packets that are not of usbmon") }
        let header = packet.data.prefix(headerCount)
        let order = packet.order
        let type: UInt8 = order.integer(header, at: 8)
        let transfer: UInt8 = order.integer(header, at: 9)
        let endpoint: UInt8 = order.integer(header, at: 10)
        let number: UInt8 = order.integer(header, at: 11)
        let bus: UInt16 = order.integer(header, at: 12)
        let dataFlag: UInt8 = order.integer(header, at: 15)
        let status: Int32 = order.integer(header, at: 28)
        let length: UInt32 = order.integer(header, at: 32)
        let capturedLength: UInt32 = order.integer(header, at: 36)
        let data = packet.data.dropFirst(headerCount).prefix(Int(capturedLength))

        let address = UInt32(bus) << 8 | UInt32(number)
        guard devices[address] != nil || devices.count < Self.maximumDeviceCount else {
            return events.omit("devices beyond 4096")
        }
        let isIn = endpoint & Header.isIn != 0
        // Data to the device are in the submission, data from it in the completion, which also contains the status.
        guard type == Header.error || type == Header.completion && status != 0 || (type == Header.completion) == isIn
        else { return }
        guard type != Header.error, type != Header.completion || status == 0 else {
            return failed(status, address, transfer, endpoint, at: packet.time, into: &events)
        }
        guard dataFlag == 0, !data.isEmpty else { return }
        guard capturedLength >= length || type == Header.submission, data.count == capturedLength else {
            return events.omit("packets that were captured in part")
        }
        switch transfer {
        case Header.control where isIn: learn(data, address)
        case Header.bulk: message(data, address, endpoint, at: packet.time, into: &events)
        case Header.interrupt where isIn: notification(data, address, endpoint, at: packet.time, into: &events)
        default: events.omit("transfers that are not of CCID")
        }
    }

    /// Counts the messages of which not all has come.
    mutating func finish(into events: inout ImportedEvents) {
        for device in devices.values {
            for part in [device.incoming, device.outgoing] where !part.isEmpty {
                events.omit("messages without their end")
            }
        }
        devices = [:]
    }

    private mutating func message(
        _ data: ArraySlice<UInt8>, _ address: UInt32, _ endpoint: UInt8, at time: Duration,
        into events: inout ImportedEvents
    ) {
        var device = devices[address] ?? Device()
        // So that the array is not copied.
        devices[address] = nil
        defer { devices[address] = device }
        guard device.isReader != false, device.endpoints.isEmpty || device.endpoints.contains(endpoint) else {
            return events.omit("transfers that are not of CCID")
        }
        let isIn = endpoint & Header.isIn != 0
        let before = isIn ? device.incoming : device.outgoing
        let bytes = before.isEmpty ? Array(data) : before + data
        if isIn { device.incoming = [] } else { device.outgoing = [] }
        guard let count = Self.messageCount(bytes, isIn: isIn) else {
            return events.omit("transfers that are not of CCID")
        }
        guard bytes.count >= count else {
            // The rest comes with the next transfer; only a reader's.
            guard device.isReader == true else { return events.omit("transfers that are not of CCID") }
            if isIn { device.incoming = bytes } else { device.outgoing = bytes }
            return
        }
        guard bytes.count == count else { return events.omit("transfers that are not of CCID") }
        device.isReader = true
        let slot = bytes[5]
        let name = device.slots[slot] ?? "device \(address) slot \(slot)"
        device.slots[slot] = name
        events.add(isIn ? .received(.ccid, bytes) : .sent(.ccid, bytes), at: time, slot: name)
    }

    /// Returns the size in bytes of the message that begins with `bytes`; nil if none does.
    private static func messageCount(_ bytes: [UInt8], isIn: Bool) -> Int? {
        guard bytes.count >= 10, (isIn ? 0x80...0x84 : 0x61...0x73).contains(bytes[0]) else { return nil }
        let count = 10 + Int(ByteOrder.littleEndian.integer(bytes[...], at: 1) as UInt32)
        return count <= maximumMessageCount ? count : nil
    }

    /// Interprets a reader's notification, of one of its slots or of all of them.
    private mutating func notification(
        _ data: ArraySlice<UInt8>, _ address: UInt32, _ endpoint: UInt8, at time: Duration,
        into events: inout ImportedEvents
    ) {
        guard var device = devices[address], device.isReader == true,
            device.endpoints.isEmpty || device.endpoints.contains(endpoint), let type = data.first,
            type == 0x50 || type == 0x51
        else { return events.omit("transfers that are not of CCID") }
        let message = Array(data)
        let slots: [UInt8]
        if type == 0x51 {
            slots = [message.count > 1 ? message[1] : 0]
        } else {
            slots = (UInt8(0)..<16).filter { slot in
                let index = 1 + Int(slot) / 4
                return index < message.count && message[index] >> (slot % 4 * 2) & 0x02 != 0
            }
        }
        for slot in slots.isEmpty ? [0] : slots {
            let name = device.slots[slot] ?? "device \(address) slot \(slot)"
            device.slots[slot] = name
            events.add(.received(.ccid, message), at: time, slot: name)
        }
        devices[address] = device
    }

    /// A transfer that came to nothing.
    private mutating func failed(
        _ status: Int32, _ address: UInt32, _ transfer: UInt8, _ endpoint: UInt8, at time: Duration,
        into events: inout ImportedEvents
    ) {
        guard transfer == Header.bulk, var device = devices[address], device.isReader == true,
            let name = device.slots.min(by: { $0.key < $1.key })?.value
        else { return events.omit("transfers that failed") }
        (device.incoming, device.outgoing) = ([], [])
        devices[address] = device
        // ENOENT and ECONNRESET: the program gave up; ENODEV and ESHUTDOWN: the device left (Linux, errno.h and
        // Documentation/driver-api/usb/error-codes.rst).
        let kind: CardError.Kind =
            switch status {
            case -2, -104: .readerTimeout
            case -19, -108: .readerGone
            default: .notTransacted
            }
        events.add(.failed(.exchange(.ccid), .init(kind, "URB status \(status)")), at: time, slot: name)
    }

    /// Takes from a configuration descriptor which endpoints are of CCID (USB 2.0, 9.6).
    private mutating func learn(_ data: ArraySlice<UInt8>, _ address: UInt32) {
        var device = devices[address] ?? Device()
        var rest = data
        guard rest.count > 9, rest.starts(with: [0x09, 0x02]) else { return }
        var (hasInterface, isCCID) = (false, false)
        var endpoints: Set<UInt8> = []
        while let length = rest.first.map(Int.init), length >= 2, length <= rest.count {
            let descriptor = Array(rest.prefix(length))
            rest = rest.dropFirst(length)
            switch (descriptor[1], length) {
            case (0x04, 9):
                hasInterface = true
                // Vendors' own class may be CCID, too.
                isCCID = descriptor[5] == 0x0B || descriptor[5] == 0xFF
            case (0x05, 7...) where isCCID: endpoints.insert(descriptor[2])
            default: break
            }
        }
        guard hasInterface else { return }
        device.endpoints = endpoints
        device.isReader = endpoints.isEmpty ? false : device.isReader ?? true
        devices[address] = device
    }
}

/// An exporter of CCID messages.
///
/// Messages are written unchanged.  For APDUs and commands to the reader, it constructs the messages of a reader of
/// extended APDU level.  The descriptors of such a reader are at the beginning; Wireshark uses them to recognize the
/// messages.
private struct USBMonExporter: FormatExporter {
    private static let bus: UInt16 = 1
    private static let device: UInt8 = 2
    private static let bulkOut: UInt8 = 0x02
    private static let bulkIn: UInt8 = 0x82
    private static let interruptIn: UInt8 = 0x81

    private var capture: CaptureWriter
    private(set) var omissions = Omissions()
    private var comments = CaptureComments()
    private var isBegun = false
    private var hasMessages = false
    private var last = Duration.zero
    private var identifier: UInt64 = 0
    /// bSeq of the last command.
    private var sequence: UInt8 = 0xFF
    private var atr: [UInt8] = []

    init(_ sink: @escaping TraceSink) { capture = CaptureWriter(link: UInt16(USBMonDecoder.link), sink) }

    mutating func write(_ event: TraceEvent) throws {
        last = max(last, event.time)
        try begin()
        switch event.what {
        case .sent(.ccid, let message):
            hasMessages = true
            try transfer(message, Self.bulkOut)
        case .received(.ccid, let message):
            hasMessages = true
            let isNotification = message.first.map { $0 == 0x50 || $0 == 0x51 } == true
            try transfer(message, isNotification ? Self.interruptIn : Self.bulkIn)
        case .note(let text): if !comments.add(text) { omissions.add("notes that do not fit") }
        case .sent(.apdu, _), .received(.apdu, _), .sent(.escape, _), .received(.escape, _), .connected, .reset,
            .disconnected, .slot, .failed:
            guard !hasMessages else { return omissions.add("what stands beside the messages that carry it") }
            try writeRaised(event.what)
        default: omissions.add("events that are neither messages nor APDUs")
        }
    }

    mutating func finish() throws {
        try begin()
        if !comments.texts.isEmpty { omissions.add("notes behind the last message", count: comments.texts.count) }
    }

    private mutating func writeRaised(_ what: TraceEvent.What) throws {
        switch what {
        case .sent(.apdu, let bytes): try command(0x6F, bytes)
        case .received(.apdu, let bytes): try answer(0x80, bytes)
        case .failed(.exchange(.apdu), let failure): try answer(0x80, status: 0x40, error: Self.error(failure))
        case .sent(.escape, let bytes): try command(0x6B, bytes)
        case .received(.escape, let bytes): try answer(0x83, bytes)
        case .failed(.exchange(.escape), let failure): try answer(0x83, status: 0x40, error: Self.error(failure))
        case .connected(let atr, _):
            self.atr = atr.bytes
            try command(0x62)
            try answer(0x80, atr.bytes)
        case .reset:
            try command(0x62)
            try answer(0x80, atr)
        case .failed(.connect, let failure):
            try command(0x62)
            try answer(0x80, status: failure.kind == .cardAbsent ? 0x42 : 0x41, error: 0xFE)
        case .disconnected(.powerOff):
            try command(0x63)
            // Inactive, and the clock stopped.
            try answer(0x81, status: 0x01, last: 0x01)
        case .slot(.card), .slot(.muteCard): try transfer([0x50, 0x03], Self.interruptIn)
        case .slot(.empty): try transfer([0x50, 0x02], Self.interruptIn)
        default: omissions.add("events that CCID has no message for")
        }
    }

    /// bError (USB CCID 1.10, 6.2.6).
    private static func error(_ failure: TraceEvent.Failure) -> UInt8 {
        switch failure.kind {
        case .noAnswer, .cardMute, .readerTimeout: 0xFE
        case .readerBusy, .sharing: 0xE0
        case .protocolMismatch: 0xF6
        case .unsupported: 0x00
        case nil: 0xFF
        default: 0xFB
        }
    }

    private mutating func command(_ type: UInt8, _ data: [UInt8] = []) throws {
        sequence &+= 1
        try message(type, (0, 0, 0), data, Self.bulkOut)
    }

    private mutating func answer(
        _ type: UInt8, _ data: [UInt8] = [], status: UInt8 = 0, error: UInt8 = 0, last: UInt8 = 0
    ) throws {
        try message(type, (status, error, last), data, Self.bulkIn)
    }

    private mutating func message(
        _ type: UInt8, _ parameters: (UInt8, UInt8, UInt8), _ data: [UInt8], _ endpoint: UInt8
    ) throws {
        let count = ByteOrder.littleEndian.bytes(UInt32(clamping: data.count))
        let header = [type] + count + [0, sequence, parameters.0, parameters.1, parameters.2]
        try transfer(header + data, endpoint)
    }

    // MARK: Transfers

    private static let deviceDescriptor: [UInt8] = [
        // USB 2.0, class of the interface, packets of 64 bytes, no vendor, release 1.0, no strings, one configuration.
        0x12, 0x01, 0x00, 0x02, 0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01,
    ]

    private static let configurationDescriptor: [UInt8] = [
        // 93 bytes, one interface, bus powered, 200 mA.
        0x09, 0x02, 0x5D, 0x00, 0x01, 0x01, 0x00, 0x80, 0x64,
        // Interface 0 with three endpoints, class 0B.
        0x09, 0x04, 0x00, 0x00, 0x03, 0x0B, 0x00, 0x00, 0x00,
        // CCID 1.10, one slot, 5 V, T=0 and T=1, 4 MHz, 10752 bit/s, IFSD 254, no PIN; all automatic, extended APDU
        // level, messages of 65,556 bytes: header, and the longest APDU.
        0x36, 0x21, 0x10, 0x01, 0x00, 0x01, 0x03, 0x00, 0x00, 0x00, 0xA0, 0x0F, 0x00, 0x00, 0xA0, 0x0F, 0x00, 0x00,
        0x00, 0x00, 0x2A, 0x00, 0x00, 0x00, 0x2A, 0x00, 0x00, 0x00, 0xFE, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
        0x00, 0x00, 0x00, 0x00, 0xBA, 0x04, 0x04, 0x00, 0x14, 0x00, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x01,
        // Interrupt in, bulk out, bulk in.
        0x07, 0x05, 0x81, 0x03, 0x08, 0x00, 0x10, 0x07, 0x05, 0x02, 0x02, 0x40, 0x00, 0x00,
        0x07, 0x05, 0x82, 0x02, 0x40, 0x00, 0x00,
    ]

    private mutating func begin() throws {
        guard !isBegun else { return }
        isBegun = true
        try capture.begin()
        for (type, descriptor) in [(UInt8(1), Self.deviceDescriptor), (2, Self.configurationDescriptor)] {
            let length = UInt8(clamping: descriptor.count)
            // GET_DESCRIPTOR (USB 2.0, 9.4.3).
            let setup: [UInt8] = [0x80, 0x06, 0x00, type, 0x00, 0x00, length, 0x00]
            try packet(Header.submission, Header.control, Header.isIn, setup: setup, length: descriptor.count)
            try packet(Header.completion, Header.control, Header.isIn, data: descriptor)
            identifier += 1
        }
    }

    /// A submission and its completion.
    private mutating func transfer(_ data: [UInt8], _ endpoint: UInt8) throws {
        guard data.count + Header.count <= CaptureReader.maximumPacketCount else {
            return omissions.add("messages that no packet holds")
        }
        let transfer = endpoint == Self.interruptIn ? Header.interrupt : Header.bulk
        if endpoint & Header.isIn != 0 {
            try packet(Header.submission, transfer, endpoint, length: data.count)
            try packet(Header.completion, transfer, endpoint, data: data)
        } else {
            try packet(Header.submission, transfer, endpoint, data: data)
            try packet(Header.completion, transfer, endpoint, length: data.count)
        }
        identifier += 1
    }

    private mutating func packet(
        _ type: UInt8, _ transfer: UInt8, _ endpoint: UInt8, setup: [UInt8]? = nil, data: [UInt8]? = nil,
        length: Int = 0
    ) throws {
        let order = ByteOrder.littleEndian
        let isIn = endpoint & Header.isIn != 0
        let (seconds, attoseconds) = last.components
        var bytes = order.bytes(identifier) + [type, transfer, endpoint, Self.device] + order.bytes(Self.bus)
        bytes.append(setup == nil ? UInt8(ascii: "-") : 0)
        bytes.append(data != nil ? 0 : UInt8(ascii: isIn ? "<" : ">"))
        bytes += order.bytes(seconds) + order.bytes(Int32(attoseconds / 1_000_000_000_000))
        // EINPROGRESS while it is under way.
        bytes += order.bytes(Int32(type == Header.submission ? -115 : 0))
        bytes += order.bytes(UInt32(clamping: data?.count ?? length)) + order.bytes(UInt32(clamping: data?.count ?? 0))
        bytes += setup ?? [UInt8](repeating: 0, count: 8)
        bytes += [UInt8](repeating: 0, count: 16)
        try capture.packet(bytes + (data ?? []), at: last, comments: comments.take())
    }
}
