/// The memory of an NTAG213 (NXP NTAG213/215/216, 8.5): 45 pages of 4 bytes.
struct NTAG213Memory: Sendable {
    static let pageCount = 0x2D
    /// The first page and the number of bytes of the user memory.
    static let userPage = 0x04
    static let userSize = 144

    static let staticLockPage = 0x02
    static let capabilityPage = 0x03
    static let dynamicLockPage = 0x28
    static let configurationPage = 0x29
    static let accessPage = 0x2A
    static let passwordPage = 0x2B
    static let packPage = 0x2C

    private var bytes: [UInt8]

    /// The state on delivery (8.5.5, 8.5.7): an empty NDEF message, no page locked, no password asked.
    init(uid: [UInt8]) {
        bytes = [UInt8](repeating: 0, count: Self.pageCount * 4)
        let u = uid.prefix(7) + [UInt8](repeating: 0, count: max(0, 7 - uid.count))
        // The UID with its check bytes over the cascade tag and each half (8.5.1).
        self[0x00] = [u[0], u[1], u[2], 0x88 ^ u[0] ^ u[1] ^ u[2]]
        self[0x01] = Array(u[3...6])
        self[0x02] = [u[3] ^ u[4] ^ u[5] ^ u[6], 0x48, 0x00, 0x00]
        self[Self.capabilityPage] = [0xE1, 0x10, 0x12, 0x00]
        self[0x04] = [0x01, 0x03, 0xA0, 0x0C]
        self[0x05] = [0x34, 0x03, 0x00, 0xFE]
        self[Self.dynamicLockPage] = [0x00, 0x00, 0x00, 0xBD]
        self[Self.configurationPage] = [0x04, 0x00, 0x00, 0xFF]
        self[Self.accessPage] = [0x00, 0x05, 0x00, 0x00]
        self[Self.passwordPage] = [0xFF, 0xFF, 0xFF, 0xFF]
    }

    /// The 4 bytes of a page; outside the tag there is nothing.
    subscript(page: Int) -> [UInt8] {
        get {
            guard (0..<Self.pageCount).contains(page) else { return [] }
            return Array(bytes[(page * 4)..<(page * 4 + 4)])
        }
        set {
            guard (0..<Self.pageCount).contains(page), newValue.count == 4 else { return }
            bytes.replaceSubrange((page * 4)..<(page * 4 + 4), with: newValue)
        }
    }

    /// The first page that the password protects; beyond the last page, none is protected.
    var firstProtectedPage: Int { Int(self[Self.configurationPage][3]) }

    private var access: UInt8 { self[Self.accessPage][0] }
    /// PROT: the password is asked for reading too.
    var protectsReading: Bool { access & 0x80 != 0 }
    /// CFGLCK: the two configuration pages cannot be written any more.
    var isConfigurationLocked: Bool { access & 0x40 != 0 }
    /// NFC_CNT_EN: the tag counts its reads.
    var countsReading: Bool { access & 0x10 != 0 }
    /// AUTHLIM: the number of wrong passwords after which every password is refused; 0 for no limit.
    var attemptLimit: Int { Int(access & 0x07) }

    /// Returns true if the lock bytes prevent writes to the page (8.5.2, 8.5.3).
    func isLocked(_ page: Int) -> Bool {
        let fixed = self[Self.staticLockPage]
        let dynamic = self[Self.dynamicLockPage]
        let low = UInt16(fixed[3]) << 8 | UInt16(fixed[2])
        let high = UInt16(dynamic[1]) << 8 | UInt16(dynamic[0])
        switch page {
        // Bit 3 of lock byte 0 is page 3; from there on one bit a page.
        case 0x03...0x0F: return low >> UInt16(truncatingIfNeeded: page) & 1 == 1
        // One bit for two pages.
        case 0x10...0x27: return high >> UInt16(truncatingIfNeeded: (page - 0x10) / 2) & 1 == 1
        case Self.configurationPage, Self.accessPage: return isConfigurationLocked
        default: return false
        }
    }

    /// The lock bytes with those of `bits` set that are not frozen: bits that are set stay set.
    mutating func setStaticLocks(_ bits: ArraySlice<UInt8>) {
        var page = self[Self.staticLockPage]
        let now = UInt16(page[3]) << 8 | UInt16(page[2])
        let wanted = bits.reversed().reduce(UInt16(0)) { $0 << 8 | UInt16($1) }
        // BL-CC freezes L3, BL9-4 freezes L4 to L9, BL15-10 freezes L10 to L15.
        let frozen: UInt16 = (now & 1 != 0 ? 0x0008 : 0) | (now & 2 != 0 ? 0x03F0 : 0) | (now & 4 != 0 ? 0xFC00 : 0)
        let next = now | wanted & ~frozen
        page[2] = UInt8(truncatingIfNeeded: next)
        page[3] = UInt8(truncatingIfNeeded: next >> 8)
        self[Self.staticLockPage] = page
    }

    mutating func setDynamicLocks(_ bits: ArraySlice<UInt8>) {
        var page = self[Self.dynamicLockPage]
        let wanted = Array(bits)
        guard wanted.count >= 3 else { return }
        let now = UInt16(page[1]) << 8 | UInt16(page[0])
        // Each of the six bits of byte 2 freezes two bits of bytes 0 and 1; the others have no meaning.
        var frozen: UInt16 = 0xF000
        for i in 0..<6 where page[2] >> UInt8(i) & 1 == 1 { frozen |= 3 << UInt16(2 * i) }
        let next = now | (UInt16(wanted[1]) << 8 | UInt16(wanted[0])) & ~frozen
        page[0] = UInt8(truncatingIfNeeded: next)
        page[1] = UInt8(truncatingIfNeeded: next >> 8)
        page[2] |= wanted[2] & 0x3F
        self[Self.dynamicLockPage] = page
    }
}
