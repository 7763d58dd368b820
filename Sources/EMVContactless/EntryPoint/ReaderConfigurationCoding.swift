import SmartCard

extension ReaderConfiguration: Codable {
    /// Decodes and validates a configuration, for the kernels of the decoder's `userInfo[.kernels]`, or ``Kernels/all``.
    ///
    /// - Throws: `DecodingError` with the path for malformed input; ``ConfigurationError`` for an invalid
    ///   configuration.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self, allowing: Key.configuration)
        try self.init(
            environment: container.decode(CAPublicKey.Environment.self, forKey: "environment"),
            abilities: container.decodeIfPresent(Set<Ability>.self, forKey: "abilities") ?? [],
            terminal: container.decodeDataObjects("terminal"),
            combinations: container.decode([Combination].self, forKey: "combinations"), kernels: decoder.kernels)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(environment, forKey: "environment")
        try container.encode(abilities.map(\.rawValue).sorted(), forKey: "abilities")
        try container.encode(DataObjects(terminal), forKey: "terminal")
        try container.encode(combinations, forKey: "combinations")
    }
}

extension Combination: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self, allowing: Key.combination)
        func invalid(_ key: Key, _ reason: String) -> DecodingError {
            DecodingError.dataCorruptedError(forKey: key, in: container, debugDescription: reason)
        }
        guard let aid = AID(try container.decodeBytes("aid")) else { throw invalid("aid", "an AID has 5 to 16 bytes") }
        let kernelBytes = try container.decodeBytes("kernel")
        guard [1, 3].contains(kernelBytes.count),
            let kernel = KernelIdentifier.requested(by: kernelBytes, aid: aid), kernel != .any
        else { throw invalid("kernel", "not a kernel identifier as tag 9F2A has it") }
        var qualifiers: TerminalTransactionQualifiers?
        if container.contains("terminalTransactionQualifiers") {
            qualifiers = TerminalTransactionQualifiers(try container.decodeBytes("terminalTransactionQualifiers"))
            if qualifiers == nil { throw invalid("terminalTransactionQualifiers", "the TTQ have 4 bytes") }
        }
        var types = Set(Transaction.Kind.allCases)
        if let names = try container.decodeIfPresent([String].self, forKey: "transactionTypes") {
            types = []
            for name in names {
                guard let type = Transaction.Kind(name: name) else {
                    let known = Transaction.Kind.allCases.map { "\($0)" }.joined(separator: ", ")
                    throw invalid("transactionTypes", "“\(name)” is none of \(known)")
                }
                types.insert(type)
            }
        }
        var options: (any KernelOptions)?
        if container.contains("options") {
            guard let type = decoder.kernels[kernel] else {
                throw invalid("options", "this reader does not have \(kernel)")
            }
            options = try container.decodeOptions(of: type)
        }
        try self.init(
            aid: aid, kernel: kernel, transactionTypes: types,
            transactionLimit: container.decodeIfPresent(UInt64.self, forKey: "transactionLimit"),
            floorLimit: container.decodeIfPresent(UInt64.self, forKey: "floorLimit"),
            cvmRequiredLimit: container.decodeIfPresent(UInt64.self, forKey: "cvmRequiredLimit"),
            terminalTransactionQualifiers: qualifiers,
            statusCheck: container.decodeIfPresent(Bool.self, forKey: "statusCheck"),
            zeroAmountAllowed: container.decodeIfPresent(Bool.self, forKey: "zeroAmountAllowed"),
            extendedSelection: container.decodeIfPresent(Bool.self, forKey: "extendedSelection"),
            data: container.decodeDataObjects("data"), options: options)
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(aid.bytes.hex, forKey: "aid")
        try container.encode(kernel.bytes.hex, forKey: "kernel")
        try container.encode(transactionTypes.map { "\($0)" }.sorted(), forKey: "transactionTypes")
        try container.encodeIfPresent(transactionLimit, forKey: "transactionLimit")
        try container.encodeIfPresent(floorLimit, forKey: "floorLimit")
        try container.encodeIfPresent(cvmRequiredLimit, forKey: "cvmRequiredLimit")
        try container.encodeIfPresent(
            terminalTransactionQualifiers?.bytes.hex, forKey: "terminalTransactionQualifiers")
        try container.encodeIfPresent(statusCheck, forKey: "statusCheck")
        try container.encodeIfPresent(zeroAmountAllowed, forKey: "zeroAmountAllowed")
        try container.encodeIfPresent(extendedSelection, forKey: "extendedSelection")
        if !data.isEmpty { try container.encode(DataObjects(data), forKey: "data") }
        if let options { try container.encode(options, forKey: "options") }
    }
}

extension CAPublicKey.Environment: Codable {}

extension Transaction.Kind {
    /// Creates a type from its name.
    ///
    /// - Parameter name: the name in a configuration: `purchaseWithCashback`.
    public init?(name: some StringProtocol) {
        guard let kind = Self.allCases.first(where: { "\($0)" == name }) else { return nil }
        self = kind
    }
}

extension KernelIdentifier {
    /// The bytes of tag 9F2A.
    fileprivate var bytes: [UInt8] {
        rawValue > 0xFF
            ? [16, 8, 0].map { UInt8(truncatingIfNeeded: rawValue >> $0) } : [UInt8(truncatingIfNeeded: rawValue)]
    }
}

/// Any key, so that unknown keys are detected.
struct Key: CodingKey, ExpressibleByStringLiteral {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringLiteral: String) { stringValue = stringLiteral }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }

    static let configuration: Set<String> = ["environment", "abilities", "terminal", "combinations"]
    static let combination: Set<String> = [
        "aid", "kernel", "transactionTypes", "transactionLimit", "floorLimit", "cvmRequiredLimit",
        "terminalTransactionQualifiers", "statusCheck", "zeroAmountAllowed", "extendedSelection", "data", "options",
    ]
}

/// Values by tag, both as hexadecimal digits.
private struct DataObjects: Codable {
    let values: [TLVTag: [UInt8]]

    init(_ values: [TLVTag: [UInt8]]) { self.values = values }

    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        var values: [TLVTag: [UInt8]] = [:]
        for key in container.allKeys {
            // A tag is complete if an object with it and without a value can be parsed.
            guard let bytes = try? [UInt8](hex: key.stringValue), let tag = try? TLVList(bytes + [0]).first?.tag,
                tag.bytes == bytes
            else {
                throw DecodingError.dataCorruptedError(
                    forKey: key, in: container, debugDescription: "“\(key.stringValue)” is no tag")
            }
            guard values.updateValue(try container.decodeBytes(key), forKey: tag) == nil else {
                throw DecodingError.dataCorruptedError(
                    forKey: key, in: container, debugDescription: "\(tag) occurs twice")
            }
        }
        self.values = values
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        for (tag, value) in values { try container.encode(value.hex, forKey: Key(stringValue: "\(tag)")) }
    }
}

extension Decoder {
    func container(
        keyedBy: Key.Type, allowing known: Set<String>
    ) throws -> KeyedDecodingContainer<Key> {
        let container = try container(keyedBy: Key.self)
        try container.allow(known)
        return container
    }

    fileprivate var kernels: Kernels { userInfo[.kernels] as? Kernels ?? .all }
}

extension KeyedDecodingContainer<Key> {
    /// - Throws: `DecodingError` for a key that is not known.
    fileprivate func allow(_ known: Set<String>) throws {
        guard let stranger = allKeys.map(\.stringValue).sorted().first(where: { !known.contains($0) }) else { return }
        let reason = known.isEmpty ? "there is no such key here" : "none of \(known.sorted().joined(separator: ", "))"
        throw DecodingError.dataCorruptedError(
            forKey: Key(stringValue: stranger), in: self, debugDescription: "“\(stranger)”: \(reason)")
    }

    fileprivate func decodeOptions<Owner: Kernel>(of kernel: Owner.Type) throws -> any KernelOptions {
        try nestedContainer(keyedBy: Key.self, forKey: "options").allow(Owner.Options.keys)
        return try decode(Owner.Options.self, forKey: "options")
    }

    func decodeBytes(_ key: Key) throws -> [UInt8] {
        do {
            return try [UInt8](hex: decode(String.self, forKey: key))
        } catch let error as HexError {
            throw DecodingError.dataCorruptedError(forKey: key, in: self, debugDescription: "\(error)")
        }
    }

    fileprivate func decodeDataObjects(_ key: Key) throws -> [TLVTag: [UInt8]] {
        try decodeIfPresent(DataObjects.self, forKey: key)?.values ?? [:]
    }
}
