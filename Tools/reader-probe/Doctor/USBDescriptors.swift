import SmartCard
import SmartCardUSB

/// The descriptors of a device, its first configuration and its CCID interface, from sysfs (USB 2.0, 9.6; CCID 1.10,
/// 5.1).
struct USBDescriptors {
    /// bMaxPacketSize0.
    let controlPacketSize: UInt8
    /// Bit 6 of the configuration's bmAttributes.
    let isSelfPowered: Bool
    /// bMaxPower, in mA.
    let maximumPower: Int
    /// The descriptor of the first CCID interface.
    let ccid: CCIDDescriptor?

    /// - Parameter bytes: the device descriptor, followed by the result of GET_DESCRIPTOR(configuration).
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 27, bytes[0] == 18, bytes[1] == 0x01, bytes[18] >= 9, bytes[19] == 0x02 else { return nil }
        controlPacketSize = bytes[7]
        isSelfPowered = bytes[25] & 0x40 != 0
        maximumPower = Int(bytes[26]) * 2
        ccid = CCIDDescriptor(extra: Array(bytes[18...]))
    }
}

extension CCIDDescriptor {
    /// The exchange level for people.
    var levelName: String {
        switch exchangeLevel {
        case .character: "characters"
        case .tpdu: "TPDU"
        case .shortAPDU: "short APDU"
        case .extendedAPDU: "short and extended APDU"
        }
    }

    /// The protocols in the standards' notation: `T=1`.
    var protocolNames: [String] {
        (speaks(.t0) ? ["T=0"] : []) + (speaks(.t1) ? ["T=1"] : [])
    }
}
