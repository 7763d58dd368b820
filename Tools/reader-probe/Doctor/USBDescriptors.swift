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
    let ccid: CCIDDescription?

    /// - Parameter bytes: the device descriptor and what GET_DESCRIPTOR(configuration) returns, back to back.
    init?(_ bytes: [UInt8]) {
        guard bytes.count >= 27, bytes[0] == 18, bytes[1] == 0x01, bytes[18] >= 9, bytes[19] == 0x02 else { return nil }
        controlPacketSize = bytes[7]
        isSelfPowered = bytes[25] & 0x40 != 0
        maximumPower = Int(bytes[26]) * 2
        var ccid: CCIDDescription?
        var rest = bytes[18...]
        while let length = rest.first.map(Int.init), length >= 2, length <= rest.count {
            // Functional descriptors have type 0x21; one of 54 bytes is CCID's in readers of class FF too.
            if ccid == nil, length == 54, rest[rest.startIndex + 1] == 0x21 {
                ccid = CCIDDescription(Array(rest.prefix(length)))
            }
            rest = rest.dropFirst(length)
        }
        self.ccid = ccid
    }
}

/// What a reader can do (CCID 1.10, table 5.1-1).
struct CCIDDescription {
    enum ExchangeLevel: String {
        case character, tpdu = "TPDU", shortAPDU = "short APDU", extendedAPDU = "short and extended APDU"
    }

    let slots: Int
    /// dwProtocols: bit 0 T=0, bit 1 T=1.
    let protocols: UInt32
    let features: UInt32
    /// dwMaxIFSD, in bytes.
    let maximumIFSD: Int
    /// dwMaxCCIDMessageLength, in bytes, the header of 10 included.
    let maximumMessage: Int

    fileprivate init(_ b: [UInt8]) {
        func number(_ offset: Int) -> UInt32 { b[offset..<offset + 4].reversed().reduce(0) { $0 << 8 | UInt32($1) } }
        slots = Int(b[4]) + 1
        protocols = number(6)
        maximumIFSD = Int(number(28))
        features = number(40)
        maximumMessage = Int(number(44))
    }

    var level: ExchangeLevel {
        switch features >> 16 & 0x7 {
        case 1: .tpdu
        case 2: .shortAPDU
        case 4: .extendedAPDU
        default: .character
        }
    }

    var protocolNames: String {
        [(1, "T=0"), (2, "T=1")].filter { protocols & $0.0 != 0 }.map(\.1).joined(separator: ", ")
    }
}
