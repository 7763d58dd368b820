import SmartCard

extension ForeignFormat {
    /// A capture, pcap or pcapng, of any of the links that carry cards.
    static let capture = ForeignFormat(
        "pcap", "a capture (pcap, pcapng) of ISO 14443, USB (usbmon) or GSMTAP", isText: false,
        recognizes: CaptureReader.recognizes, importer: { CaptureImporter($0) })
}

/// Each interface is a slot, except that usbmon has one for each slot of each device.
private struct CaptureImporter: FormatImporter {
    private var capture: CaptureReader
    private var usb = USBMonDecoder()
    private var gsmtap: [Int: GSMTAPDecoder] = [:]

    init(_ source: @escaping TraceSource) { capture = CaptureReader(source) }

    mutating func read(into events: inout ImportedEvents) throws -> Bool {
        guard let item = try capture.next() else {
            usb.finish(into: &events)
            for interface in gsmtap.keys { gsmtap[interface]?.finish(into: &events) }
            return false
        }
        switch item {
        case .cutOff: events.omit("packets that the end of the file cuts off")
        case .comment(let text, let time): events.addToEverySlot(.note(text), at: time)
        case .packet(let packet) where packet.isPart: events.omit("packets that were captured in part")
        case .packet(let packet):
            switch packet.link {
            case ISO14443Link.number: ISO14443Link.decode(packet, into: &events)
            case USBMonDecoder.link, USBMonDecoder.shortLink: usb.decode(packet, into: &events)
            case _ where GSMTAPDecoder.links.contains(packet.link):
                gsmtap[packet.interface, default: GSMTAPDecoder()].decode(packet, into: &events)
            default: events.omit("packets of links that carry no cards")
            }
        }
        return true
    }
}
