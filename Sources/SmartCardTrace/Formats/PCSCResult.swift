package import SmartCard

/// The result of a PC/SC function in a log: a number or a name.
package struct PCSCResult: Equatable {
    package let code: UInt32

    package init(_ code: UInt32) { self.code = code }

    /// - Parameter text: `0x80100016`, `80100016` or `SCARD_E_NOT_TRANSACTED`; nil for anything else.
    init?(_ text: TextLine) {
        if let number = text.hexNumber, let code = UInt32(exactly: number) {
            self.code = code
        } else {
            guard let known = Self.known.first(where: { $0.name.utf8.elementsEqual(text.bytes) }) else { return nil }
            code = known.code
        }
    }

    package var isSuccess: Bool { code == 0 }

    /// Why something failed that had this result.
    package func failure(of operation: TraceEvent.Operation = .exchange(.apdu)) -> TraceEvent.Failure {
        let number = "0x" + [UInt8](bigEndian: code).hex
        guard let known = Self.known.first(where: { $0.code == code }) else { return .init(.other, number) }
        let kind = known.kind == .cardRemoved && operation == .connect ? .cardAbsent : known.kind
        return .init(kind, "\(known.name) \(number)")
    }

    /// pcsc-lite, src/PCSC/pcsclite.h.
    private static let known: [(code: UInt32, name: String, kind: CardError.Kind)] = [
        (0x0000_0000, "SCARD_S_SUCCESS", .other),
        (0x8010_0001, "SCARD_F_INTERNAL_ERROR", .other),
        (0x8010_0002, "SCARD_E_CANCELLED", .other),
        (0x8010_0003, "SCARD_E_INVALID_HANDLE", .disconnected),
        (0x8010_0004, "SCARD_E_INVALID_PARAMETER", .other),
        (0x8010_0007, "SCARD_F_WAITED_TOO_LONG", .readerTimeout),
        (0x8010_0008, "SCARD_E_INSUFFICIENT_BUFFER", .malformedAnswer),
        (0x8010_0009, "SCARD_E_UNKNOWN_READER", .readerGone),
        (0x8010_000A, "SCARD_E_TIMEOUT", .readerTimeout),
        (0x8010_000B, "SCARD_E_SHARING_VIOLATION", .sharing),
        (0x8010_000C, "SCARD_E_NO_SMARTCARD", .cardRemoved),
        (0x8010_000F, "SCARD_E_PROTO_MISMATCH", .protocolMismatch),
        (0x8010_0010, "SCARD_E_NOT_READY", .readerTimeout),
        (0x8010_0011, "SCARD_E_INVALID_VALUE", .readerGone),
        (0x8010_0013, "SCARD_F_COMM_ERROR", .noService),
        (0x8010_0016, "SCARD_E_NOT_TRANSACTED", .notTransacted),
        (0x8010_0017, "SCARD_E_READER_UNAVAILABLE", .readerGone),
        (0x8010_001A, "SCARD_E_READER_UNSUPPORTED", .unsupported),
        (0x8010_001C, "SCARD_E_CARD_UNSUPPORTED", .protocolMismatch),
        (0x8010_001D, "SCARD_E_NO_SERVICE", .noService),
        (0x8010_001E, "SCARD_E_SERVICE_STOPPED", .noService),
        (0x8010_001F, "SCARD_E_UNSUPPORTED_FEATURE", .unsupported),
        (0x8010_0022, "SCARD_E_UNSUPPORTED_FEATURE", .unsupported),
        (0x8010_002E, "SCARD_E_NO_READERS_AVAILABLE", .noReader),
        (0x8010_002F, "SCARD_E_COMM_DATA_LOST", .notTransacted),
        (0x8010_0031, "SCARD_E_SERVER_TOO_BUSY", .noService),
        (0x8010_0065, "SCARD_W_UNSUPPORTED_CARD", .protocolMismatch),
        (0x8010_0066, "SCARD_W_UNRESPONSIVE_CARD", .cardMute),
        (0x8010_0067, "SCARD_W_UNPOWERED_CARD", .cardReset),
        (0x8010_0068, "SCARD_W_RESET_CARD", .cardReset),
        (0x8010_0069, "SCARD_W_REMOVED_CARD", .cardRemoved),
        (0x8010_006A, "SCARD_W_SECURITY_VIOLATION", .permissionDenied),
    ]
}

extension [UInt8] {
    fileprivate init(bigEndian number: UInt32) { self = Swift.withUnsafeBytes(of: number.bigEndian) { Array($0) } }
}

extension TransmissionProtocol {
    /// - Parameter text: text that begins with `T=0`, `T=1` or `RAW`.
    init?(_ text: TextLine) {
        if text.starts(with: "T=0") {
            self = .t0
        } else if text.starts(with: "T=1") {
            self = .t1
        } else if text.starts(with: "RAW") {
            self = .raw
        } else {
            return nil
        }
    }

    /// The number by which PC/SC calls it (pcsclite.h: `SCARD_PROTOCOL_T0` and so on).
    package init(pcsc number: UInt64) {
        switch number {
        case 1: self = .t0
        case 2: self = .t1
        default: self = .raw
        }
    }
}

extension CardDisposition {
    /// The number by which PC/SC calls it: 0 leave, 1 reset, 2 unpower, 3 eject.
    package init(pcsc number: UInt64) {
        switch number {
        case 1: self = .reset
        case 2, 3: self = .powerOff
        default: self = .leave
        }
    }
}

extension SlotState {
    /// Interprets the reader state of SCardGetStatusChange by the bits of pcsclite.h: `SCARD_STATE_EMPTY` 10, `PRESENT`
    /// 20, `EXCLUSIVE` 80, `MUTE` 200; nil if it says nothing about a card.
    package init?(pcsc state: UInt64, atr: [UInt8]) {
        if state & 0x200 != 0 {
            self = .muteCard
        } else if state & 0x20 != 0 {
            self = .card(ATR(atr), exclusivelyHeld: state & 0x80 != 0)
        } else if state & 0x10 != 0 {
            self = .empty
        } else {
            return nil
        }
    }
}

/// The requests of SCardControl.
package enum PCSCControl {
    /// Commands to the reader itself: SCARD_CTL_CODE of 1 and 3500 (libccid) and of 2079 (ACS).
    package static let escapeCodes: Set<UInt64> = [0x4200_0001, 0x4200_0DAC, 0x4200_081F]
}

extension ATR {
    /// The protocol that pcscd picks for a program that takes any (pcsc-lite, src/prothandler.c).
    var pickedProtocol: TransmissionProtocol { protocols.contains(1) ? .t1 : .t0 }
}
