/// Commands by which a program has a PN532 tell phones what a terminal is for.  They carry nothing of a card or its holder.
enum PN532Settings {
    /// The registers of the contactless interface unit that say how frames are sent: CIU_TxMode, CIU_RxMode, CIU_TxAuto,
    /// CIU_ManualRCV, CIU_BitFraming (PN532/C1 data sheet, 8.6.23).  Others, such as its buffer, hold what cards send.
    private static let modes: Set<UInt16> = [0x6302, 0x6303, 0x6305, 0x630D, 0x633D]

    /// Returns true if `data` of ReadRegister or WriteRegister (UM0701-02, 7.2.4 and 7.2.5) concern such registers alone.
    ///
    /// - Parameter step: the bytes for each register, which its address begins.
    static func areModes(_ data: ArraySlice<UInt8>, step: Int) -> Bool {
        guard !data.isEmpty, data.count % step == 0 else { return false }
        return stride(from: data.startIndex, to: data.endIndex, by: step).allSatisfy {
            modes.contains(UInt16(data[$0]) << 8 | UInt16(data[$0 + 1]))
        }
    }

    /// Returns true for a frame of enhanced contactless polling with its checksum (kormax,
    /// apple-enhanced-contactless-polling): `6A`; version 01 and three bytes, or version 02, the count of the data in the
    /// low half of a byte, type, subtype, the data.
    static func isPollingFrame(_ data: ArraySlice<UInt8>) -> Bool {
        let frame = Array(data)
        guard frame.count >= 7, frame[0] == 0x6A, FrameChecksum.found(in: frame) != nil else { return false }
        switch frame[1] {
        case 0x01: return frame.count == 7
        case 0x02: return frame.count == 7 + Int(frame[2] & 0x0F)
        default: return false
        }
    }
}
