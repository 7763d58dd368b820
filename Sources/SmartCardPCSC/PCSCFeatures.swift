import CSmartCardPCSC
public import SmartCard

/// An attribute of a reader or card, with the decoding of its bytes (PC/SC part 3, 3.1.2).
public struct PCSCAttribute<Value: Sendable>: Sendable {
    /// The identifier: class in the high, tag in the low 16 bits.
    public let id: UInt32
    /// Decodes the value; returns nil for invalid bytes.
    let decode: @Sendable ([UInt8]) -> Value?

    public init(id: UInt32, decode: @escaping @Sendable ([UInt8]) -> Value?) {
        self.id = id
        self.decode = decode
    }

    fileprivate init(_ id: DWORD, _ decode: @escaping @Sendable ([UInt8]) -> Value?) {
        self.init(id: UInt32(truncatingIfNeeded: id), decode: decode)
    }
}

extension PCSCAttribute<String> {
    /// The manufacturer: `ACS`.
    public static let vendorName = Self(cscard_attr_vendor_name(), text)
    /// The model.
    public static let model = Self(cscard_attr_vendor_ifd_type(), text)
    /// The serial number, which many readers lack.
    public static let serialNumber = Self(cscard_attr_vendor_ifd_serial_no(), text)
    /// The reader's name in pcscd.
    public static let friendlyName = Self(cscard_attr_device_friendly_name(), text)
    public static let systemName = Self(cscard_attr_device_system_name(), text)
}

extension PCSCAttribute<ATR> {
    public static let atr = Self(cscard_attr_atr_string()) { $0.isEmpty ? nil : ATR($0) }
}

extension PCSCAttribute<Int> {
    /// The longest command APDU, in bytes.
    public static let longestCommand = Self(cscard_attr_maxinput()) { number($0).map { Int($0) } }
}

extension PCSCAttribute<Bool> {
    /// True if a card is in the slot.
    public static let isCardPresent = Self(cscard_attr_icc_presence()) { number($0).map { $0 != 0 } }
    /// True if the card is active.
    public static let isCardActive = Self(cscard_attr_icc_interface_status()) { number($0).map { $0 != 0 } }
}

extension PCSCAttribute<PCSCDriverVersion> {
    /// The reader's version according to its driver.
    public static let readerVersion = Self(cscard_attr_vendor_ifd_version()) { number($0).map(PCSCDriverVersion.init) }
}

extension PCSCAttribute<PCSCChannelID> {
    /// The channel to the reader.
    public static let channelID = Self(cscard_attr_channel_id()) { number($0).map(PCSCChannelID.init) }
}

/// A version, as the number `MMmmbbbb`.
public struct PCSCDriverVersion: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public var rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    public var major: UInt8 { UInt8(truncatingIfNeeded: rawValue >> 24) }
    public var minor: UInt8 { UInt8(truncatingIfNeeded: rawValue >> 16) }
    public var build: UInt16 { UInt16(truncatingIfNeeded: rawValue) }
    public var description: String { "\(major).\(minor).\(build)" }
}

/// A channel, as the number `DDDDCCCC`: type and number.
public struct PCSCChannelID: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt32
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// 0x0020 for USB.
    public var type: UInt16 { UInt16(truncatingIfNeeded: rawValue >> 16) }
    /// For USB, the bus in the high and the device address in the low byte.
    public var number: UInt16 { UInt16(truncatingIfNeeded: rawValue) }
}

/// Decodes text up to its first null byte.
@Sendable private func text(_ bytes: [UInt8]) -> String? {
    let text = String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    return text.isEmpty ? nil : text
}

/// Decodes a number of one to four bytes in native byte order.
@Sendable private func number(_ bytes: [UInt8]) -> UInt32? {
    guard (1...4).contains(bytes.count) else { return nil }
    #if _endian(big)
    return bytes.reduce(0) { $0 << 8 | UInt32($1) }
    #else
    return bytes.reversed().reduce(0) { $0 << 8 | UInt32($1) }
    #endif
}

extension PCSCCard {
    /// Returns an attribute; nil if the driver does not provide it or provides invalid bytes.
    ///
    ///     try await card.attribute(.vendorName)
    public func attribute<Value>(_ attribute: PCSCAttribute<Value>) async throws -> Value? {
        try await self.attribute(attribute.id).flatMap(attribute.decode)
    }
}

/// A capability of a reader beyond commands to a card (PC/SC part 10, 2.3).  Open: unknown tags are kept.
public struct PCSCFeature: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }
    fileprivate init(_ tag: Int32) { rawValue = UInt8(truncatingIfNeeded: tag) }

    public static let verifyPINStart = PCSCFeature(FEATURE_VERIFY_PIN_START)
    public static let verifyPINFinish = PCSCFeature(FEATURE_VERIFY_PIN_FINISH)
    public static let modifyPINStart = PCSCFeature(FEATURE_MODIFY_PIN_START)
    public static let modifyPINFinish = PCSCFeature(FEATURE_MODIFY_PIN_FINISH)
    public static let getKeyPressed = PCSCFeature(FEATURE_GET_KEY_PRESSED)
    public static let verifyPINDirect = PCSCFeature(FEATURE_VERIFY_PIN_DIRECT)
    public static let modifyPINDirect = PCSCFeature(FEATURE_MODIFY_PIN_DIRECT)
    public static let mctReaderDirect = PCSCFeature(FEATURE_MCT_READER_DIRECT)
    public static let mctUniversal = PCSCFeature(FEATURE_MCT_UNIVERSAL)
    public static let pinProperties = PCSCFeature(FEATURE_IFD_PIN_PROPERTIES)
    public static let abort = PCSCFeature(FEATURE_ABORT)
    public static let setSPEMessage = PCSCFeature(FEATURE_SET_SPE_MESSAGE)
    public static let verifyPINDirectAppID = PCSCFeature(FEATURE_VERIFY_PIN_DIRECT_APP_ID)
    public static let modifyPINDirectAppID = PCSCFeature(FEATURE_MODIFY_PIN_DIRECT_APP_ID)
    public static let writeDisplay = PCSCFeature(FEATURE_WRITE_DISPLAY)
    public static let getKey = PCSCFeature(FEATURE_GET_KEY)
    public static let displayProperties = PCSCFeature(FEATURE_IFD_DISPLAY_PROPERTIES)
    public static let tlvProperties = PCSCFeature(FEATURE_GET_TLV_PROPERTIES)
    /// Escape commands to the reader; libccid lists it if ifdDriverOptions permits them.
    public static let escape = PCSCFeature(FEATURE_CCID_ESC_COMMAND)
    public static let executePACE = PCSCFeature(FEATURE_EXECUTE_PACE)
}

extension PCSCCard {
    /// Returns the features of the reader with their control codes, for ``control(_:_:)`` (PC/SC part 10, 2.2).
    ///
    /// The result is empty if the driver has no features.
    ///
    /// - Throws: `CardError`, of kind `malformedAnswer` for an invalid list.
    public func features() async throws -> [PCSCFeature: UInt32] {
        let list: [UInt8]
        do {
            list = try await control(UInt32(cscard_get_feature_request()))
        } catch let error as CardError where error.kind == .unsupported {
            return [:]
        }
        guard let features = Self.features(list) else {
            throw CardError(.malformedAnswer, "a feature list of \(list.count) bytes")
        }
        return features
    }

    /// Parses a sequence of tag, length 4 and control code, most significant byte first; nil for anything else.
    static func features(_ list: [UInt8]) -> [PCSCFeature: UInt32]? {
        guard list.count.isMultiple(of: 6) else { return nil }
        var features: [PCSCFeature: UInt32] = [:]
        for start in stride(from: 0, to: list.count, by: 6) {
            guard list[start + 1] == 4 else { return nil }
            let code = list[start + 2..<start + 6].reduce(0) { $0 << 8 | UInt32($1) }
            features[PCSCFeature(rawValue: list[start])] = code
        }
        return features
    }

    /// Returns the reader's properties by tag: 1 wLcdLayout, 10 dwMaxAPDUDataSize, 11 wIdVendor, … (PC/SC part 10,
    /// 2.6.14).  Numbers are least significant byte first.
    ///
    /// The result is empty if the driver has none.
    public func properties() async throws -> [UInt8: [UInt8]] {
        guard let code = try await features()[.tlvProperties] else { return [:] }
        let list = try await control(code)
        guard let properties = Self.properties(list) else {
            throw CardError(.malformedAnswer, "a property list of \(list.count) bytes")
        }
        return properties
    }

    /// Parses a sequence of tag, length and value; nil for anything else.
    static func properties(_ list: [UInt8]) -> [UInt8: [UInt8]]? {
        var properties: [UInt8: [UInt8]] = [:]
        var rest = list[...]
        while let tag = rest.popFirst() {
            guard let length = rest.popFirst(), rest.count >= Int(length) else { return nil }
            properties[tag] = Array(rest.prefix(Int(length)))
            rest = rest.dropFirst(Int(length))
        }
        return properties
    }
}
