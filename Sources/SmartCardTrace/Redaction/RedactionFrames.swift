import SmartCard

/// The redaction of bytes other than messages to a card: frames, texts, ATRs.
extension RedactionWork {
    /// Returns an event whose messages have been redacted.
    ///
    /// - Parameter old: the original event.
    mutating func redacted(
        rest what: TraceEvent.What, was old: TraceEvent.What, event: Int, _ layered: LayeredMessages
    ) -> TraceEvent.What {
        guard layered.looked.contains(event) else { return redacted(rest: what) }
        switch (what, old) {
        case (.sent(let layer, let bytes), .sent(_, let old)):
            return .sent(layer, frame(layer, bytes, was: old, event, layered))
        case (.received(let layer, let bytes), .received(_, let old)):
            return .received(layer, frame(layer, bytes, was: old, event, layered))
        default: return redacted(rest: what)
        }
    }

    mutating func frame(
        _ layer: TraceEvent.Layer, _ bytes: [UInt8], was old: [UInt8], _ event: Int, _ layered: LayeredMessages
    ) -> [UInt8] {
        var bytes = bytes
        if let data = layered.raised[event] {
            // A checksum, a status word or Le.
            let end = min(data.upperBound + 2, bytes.count)
            blank(&bytes, end..<bytes.count, .track)
            replaceLastNumber(in: &bytes)
            return FrameSeal.sealed(bytes, as: old, layer, data: data)
        }
        if !layered.control.contains(event) { bytes = frame(layer == .apdu ? .escape : layer, bytes) }
        coverValues(in: &bytes)
        replaceNumbers(in: &bytes, guessing: layer == .apdu ? .everything : .nothing)
        coverNames(in: &bytes)
        return bytes
    }

    /// - Parameter isControl: true if the bytes are understood, such as the card numbers that a PN532 lists.
    mutating func redacted(escape bytes: [UInt8], isControl: Bool) -> [UInt8] {
        var bytes = isControl ? bytes : frame(.escape, bytes)
        coverValues(in: &bytes)
        replaceNumbers(in: &bytes, guessing: isControl ? .nothing : .everything)
        coverNames(in: &bytes)
        return bytes
    }

    mutating func zeros(for bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        blank(&bytes, bytes.indices, .track)
        return bytes
    }

    /// Everything but commands and frames; of a response its end.
    mutating func redacted(rest what: TraceEvent.What) -> TraceEvent.What {
        switch what {
        case .received(.apdu, var bytes):
            replaceLastNumber(in: &bytes)
            return .received(.apdu, bytes)
        case .note(let text): return .note(redacted(text))
        case .meta(CardDataMark.key, CardDataMark.clear):
            return .meta(key: CardDataMark.key, value: CardDataMark.redacted)
        case .meta(let key, let value): return .meta(key: redacted(key).lowercased(), value: redacted(value))
        case .slot(.card(let atr, let isHeld)): return .slot(.card(redacted(atr), exclusivelyHeld: isHeld))
        case .connected(let atr, let transmissionProtocol): return .connected(redacted(atr), transmissionProtocol)
        case .failed(let operation, var failure):
            failure.detail = failure.detail.map { redacted($0) }
            return .failed(operation, failure)
        case .reader(var identity):
            identity.name = redacted(identity.name)
            identity.vendor = identity.vendor.map { redacted($0) }
            identity.serialNumber = identity.serialNumber.map { redacted($0) }
            return .reader(identity)
        default: return what
        }
    }

    /// Replaces a known number that ends in apparent status bytes, as in a truncated answer.
    private mutating func replaceLastNumber(in bytes: inout [UInt8]) {
        var end = Array(bytes.suffix(64))
        replaceNumbers(in: &end, guessing: .nothing)
        bytes.replaceSubrange(bytes.count - end.count..<bytes.count, with: end)
    }

    /// Redacts a frame that may carry data for the card: only its beginning is kept.
    mutating func frame(_ layer: TraceEvent.Layer, _ bytes: [UInt8]) -> [UInt8] {
        let kept = Self.kept(layer, bytes)
        guard kept < bytes.count, bytes.dropFirst(kept).contains(where: { $0 != 0 }) else { return bytes }
        items.insert(.track)
        return bytes.prefix(kept) + [UInt8](repeating: 0, count: bytes.count - kept)
    }

    private static func kept(_ layer: TraceEvent.Layer, _ bytes: [UInt8]) -> Int {
        switch layer {
        case .apdu: bytes.count
        case .ccid: 10  // the header (CCID 1.10, 6)
        case .pn532: 7  // to the command code (PN532 user manual, 6.2.1)
        case .rf, .rfPayload: 1
        case .escape:
            // To the code of a command to the PN532 or of its answer, and the status of InDataExchange and
            // InCommunicateThru (NXP UM0701-02, 7.3.8 and 7.3.9).
            if LayeredMessages.isDirect(bytes) {
                bytes.count > 6 && ownCommands.contains(bytes[6]) ? bytes.count : 7
            } else if bytes.first == 0xD5, bytes.count > 1 {
                ownCommands.contains(bytes[1] &- 1) ? bytes.count : [0x41, 0x43].contains(bytes[1]) ? 3 : 2
            } else {
                bytes.count
            }
        }
    }

    /// The PN532 commands that concern the chip alone (NXP UM0701-02, 7.2 and 7.3.1): GetFirmwareVersion,
    /// GetGeneralStatus, ReadGPIO, WriteGPIO, SetSerialBaudRate, SetParameters, SAMConfiguration, PowerDown,
    /// RFConfiguration.
    private static let ownCommands: Set<UInt8> = [0x02, 0x04, 0x0C, 0x0E, 0x10, 0x12, 0x14, 0x16, 0x32]

    /// An ATR, with its check byte right if it was.  The identifiers in it have digits of account numbers by chance.
    mutating func redacted(_ atr: ATR) -> ATR {
        var bytes = atr.bytes
        replaceNumbers(in: &bytes, guessing: .text)
        guard bytes != atr.bytes else { return atr }
        // TCK (ISO/IEC 7816-3, 8.2.5).
        if atr.bytes.dropFirst().reduce(0, ^) == 0 { bytes[bytes.count - 1] ^= bytes.dropFirst().reduce(0, ^) }
        return ATR(bytes)
    }

    mutating func redacted(_ text: String) -> String {
        var bytes = Array(text.utf8)
        coverValues(in: &bytes, isText: true)
        replaceNumbers(in: &bytes, guessing: .text, isText: true)
        coverNames(in: &bytes)
        replaceEncodedNumbers(in: &bytes)
        guard bytes != Array(text.utf8) else { return text }
        // What has been changed are characters of ASCII, and whole words of others.
        return String(decoding: bytes, as: UTF8.self)
    }
}
