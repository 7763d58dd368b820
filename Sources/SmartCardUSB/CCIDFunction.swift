import USBDevices

/// The CCID interface of a device.
struct CCIDFunction: Hashable, Sendable {
    let interface: UInt8
    let name: String?
    let descriptor: CCIDDescriptor
    let bulkOut: UInt8
    let bulkIn: UInt8
    let packetSize: Int
    /// The interrupt endpoint; nil for readers that report nothing by themselves.
    let interruptIn: UInt8?
    let interruptPacketSize: Int

    /// - Returns: nil unless the interface is CCID: of class 0B, or of the vendor class FF, with a CCID descriptor and
    ///   a bulk endpoint in each direction.
    init?(_ interface: USBInterface) {
        guard interface.interfaceClass == 0x0B || interface.interfaceClass == 0xFF else { return nil }
        let extras = [interface.extra] + interface.endpoints.map(\.extra)
        func endpoint(_ type: UInt8, isIn: Bool) -> USBInterface.Endpoint? {
            interface.endpoints.first { $0.attributes & 0x03 == type && ($0.address & 0x80 != 0) == isIn }
        }
        guard let descriptor = extras.lazy.compactMap(CCIDDescriptor.init(extra:)).first,
            let bulkOut = endpoint(2, isIn: false), let bulkIn = endpoint(2, isIn: true)
        else { return nil }
        let interruptIn = endpoint(3, isIn: true)
        self.interface = interface.number
        name = interface.name
        self.descriptor = descriptor
        self.bulkOut = bulkOut.address
        self.bulkIn = bulkIn.address
        self.interruptIn = interruptIn?.address
        // wMaxPacketSize: bits 0 to 10
        packetSize = max(Int(bulkIn.packetSize & 0x07FF), 8)
        interruptPacketSize = max(Int((interruptIn?.packetSize ?? 0) & 0x07FF), 8)
    }
}
