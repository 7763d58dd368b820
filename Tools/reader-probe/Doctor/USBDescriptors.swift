import SmartCard
import SmartCardUSB

/// The device, its first configuration, and its CCID interface, as the kernel keeps them in sysfs (USB 2.0, 9.6; CCID
/// 1.10, 5.1).
struct USBDescriptors {
    /// bMaxPacketSize0.
    let controlPacketSize: UInt8
    /// bmAttributes of the configuration, bit 6.
    let isSelfPowered: Bool
    /// bMaxPower, in mA.
    let maximumPower: Int
    /// Of the first interface that has one.
    let ccid: CCIDDescriptor?

    /// - Parameter bytes: the device descriptor and what GET_DESCRIPTOR(configuration) returns, back to back.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 27, bytes[0] == 18, bytes[1] == 0x01, bytes[18] >= 9, bytes[19] == 0x02 else { return nil }
        controlPacketSize = bytes[7]
        isSelfPowered = bytes[25] & 0x40 != 0
        maximumPower = Int(bytes[26]) * 2
        ccid = CCIDDescriptor(extra: Array(bytes[18...]))
    }
}

extension CCIDDescriptor {
    /// For a person.
    var levelName: String {
        switch exchangeLevel {
        case .character: "characters"
        case .tpdu: "TPDU"
        case .shortAPDU: "short APDU"
        case .extendedAPDU: "short and extended APDU"
        }
    }

    /// As the standards write them: `T=1`.
    var protocolNames: [String] {
        (speaks(.t0) ? ["T=0"] : []) + (speaks(.t1) ? ["T=1"] : [])
    }
}
