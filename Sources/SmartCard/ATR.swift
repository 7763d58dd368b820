/// An answer to reset (ISO/IEC 7816-3, 8.2), decoded.
///
/// For a contactless card, the reader makes up the ATR (PC/SC part 3, 3.1.3.2.3).  ``contactless`` decodes what the
/// reader says about the card, including the ACR122U's departures from the standard.
///
/// Cards and readers send any bytes as an ATR.  Every sequence of bytes is therefore accepted, and ``defects`` lists
/// what is wrong with it.
public struct ATR: Hashable, Sendable {
    /// The bytes as received.
    public let bytes: [UInt8]
    /// The bit convention; nil if TS is neither 3B nor 3F.
    public let convention: Convention?
    /// The groups of interface bytes, beginning with the group of T0.
    public let interfaceGroups: [InterfaceGroup]
    public let historicalBytes: [UInt8]
    /// The check byte TCK; absent where only T=0 is offered.
    public let tck: UInt8?
    /// Departures from ISO/IEC 7816-3.
    public let defects: [Defect]

    public enum Convention: Hashable, Sendable { case direct, inverse }

    /// TAi, TBi, TCi, and the protocol that they describe.
    public struct InterfaceGroup: Hashable, Sendable {
        /// T as in T=0, T=1; 15 for global interface bytes; nil for the first group, which is global.
        public let t: UInt8?
        public let ta: UInt8?
        public let tb: UInt8?
        public let tc: UInt8?

        package init(t: UInt8?, ta: UInt8?, tb: UInt8?, tc: UInt8?) {
            (self.t, self.ta, self.tb, self.tc) = (t, ta, tb, tc)
        }
    }

    public enum Defect: Hashable, Sendable {
        /// No bytes.
        case empty
        /// TS is neither 3B nor 3F.
        case unknownConvention(UInt8)
        /// More than the 33 bytes that ISO/IEC 7816-3 allows.
        case tooLong(Int)
        /// The bytes end at `offset` while interface bytes or historical bytes are still due.
        case truncated(offset: Int)
        /// TCK is due and absent.
        case missingTCK
        /// The exclusive-or from T0 to TCK is not zero.
        case wrongTCK(expected: UInt8, found: UInt8)
        /// Bytes after the end, from `offset` on.
        case trailingBytes(offset: Int)
    }

    public init(_ bytes: some Collection<UInt8>) {
        let b = Array(bytes)
        self.bytes = b
        var defects: [Defect] = []
        var groups: [InterfaceGroup] = []
        var i = 0
        var truncated = false
        func take() -> UInt8? {
            guard i < b.count else {
                if !truncated { defects.append(.truncated(offset: b.count)) }
                truncated = true
                return nil
            }
            defer { i += 1 }
            return b[i]
        }

        guard let ts = b.first else {
            (convention, interfaceGroups, historicalBytes, tck, self.defects) = (nil, [], [], nil, [.empty])
            return
        }
        i = 1
        convention = ts == 0x3B ? .direct : ts == 0x3F ? .inverse : nil
        if convention == nil { defects.append(.unknownConvention(ts)) }
        if b.count > 33 { defects.append(.tooLong(b.count)) }

        var historicalCount = 0
        if let t0 = take() {
            historicalCount = Int(t0 & 0x0F)
            var indicator = t0 >> 4
            var protocolNumber: UInt8?
            // Each TD consumes a byte, so the loop ends with the bytes.
            while true {
                let ta = indicator & 1 != 0 ? take() : nil
                let tb = indicator & 2 != 0 ? take() : nil
                let tc = indicator & 4 != 0 ? take() : nil
                groups.append(InterfaceGroup(t: protocolNumber, ta: ta, tb: tb, tc: tc))
                guard indicator & 8 != 0, let td = take() else { break }
                indicator = td >> 4
                protocolNumber = td & 0x0F
            }
        }
        let available = min(historicalCount, b.count - i)
        if available < historicalCount && !truncated {
            defects.append(.truncated(offset: b.count))
            truncated = true
        }
        historicalBytes = Array(b[i..<i + available])
        i += available
        interfaceGroups = groups

        // TCK is present unless T=0 is the only protocol indicated (ISO/IEC 7816-3, 8.2.5).
        let tckDue = groups.contains { $0.t ?? 0 != 0 }
        if tckDue && !truncated {
            tck = i < b.count ? b[i] : nil
            if let tck {
                let expected = b[1..<i].reduce(0, ^)
                if tck != expected { defects.append(.wrongTCK(expected: expected, found: tck)) }
                i += 1
            } else {
                defects.append(.missingTCK)
            }
        } else {
            tck = nil
        }
        if i < b.count { defects.append(.trailingBytes(offset: i)) }
        self.defects = defects
    }

    /// The protocols offered, in the order of the TD bytes, without T=15; T=0 if none is named (ISO/IEC 7816-3, 8.2.3).
    public var protocols: [UInt8] {
        var found: [UInt8] = []
        for case let t? in interfaceGroups.map(\.t) where t != 15 && !found.contains(t) { found.append(t) }
        return found.isEmpty ? [0] : found
    }
}

extension ATR: CustomStringConvertible {
    /// Upper-case hexadecimal with spaces.
    public var description: String { bytes.hex(separator: " ") }
}

extension ATR.Defect: CustomStringConvertible {
    public var description: String {
        switch self {
        case .empty: "no bytes"
        case .unknownConvention(let ts): "TS is \([ts].hex), neither 3B nor 3F"
        case .tooLong(let count): "\(count) bytes, where 33 are the most"
        case .truncated(let offset): "cut off at offset \(offset)"
        case .missingTCK: "the check byte TCK is missing"
        case .wrongTCK(let expected, let found): "TCK is \([found].hex), it should be \([expected].hex)"
        case .trailingBytes(let offset): "bytes after the end, from offset \(offset)"
        }
    }
}
