import SmartCard

extension Kernel3.Options: KernelOptions {
    public init() { self.init(dynamicReaderLimits: []) }

    public static let keys = Set(flags.map(\.key.stringValue) + ["dynamicReaderLimits"])

    private static let flags: [(key: Key, path: any WritableKeyPath<Self, Bool> & Sendable)] = [
        ("displaysAvailableOfflineSpendingAmount", \.displaysAvailableOfflineSpendingAmount),
        ("checksExceptionFile", \.checksExceptionFile), ("checksUsageForCash", \.checksUsageForCash),
        ("checksUsageForCashback", \.checksUsageForCashback), ("checksUsageAtATM", \.checksUsageAtATM),
    ]

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Key.self)
        self.init()
        dynamicReaderLimits =
            try container.decodeIfPresent([Kernel3.DynamicReaderLimits].self, forKey: "dynamicReaderLimits") ?? []
        for (key, path) in Self.flags {
            if let flag = try container.decodeIfPresent(Bool.self, forKey: key) { self[keyPath: path] = flag }
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(dynamicReaderLimits, forKey: "dynamicReaderLimits")
        for (key, path) in Self.flags { try container.encode(self[keyPath: path], forKey: key) }
    }
}

extension Kernel3.DynamicReaderLimits: Codable {
    private static let limits: [(key: Key, path: any WritableKeyPath<Self, UInt64?> & Sendable)] = [
        ("transactionLimit", \.transactionLimit), ("floorLimit", \.floorLimit),
        ("cvmRequiredLimit", \.cvmRequiredLimit),
    ]
    private static let flags: [(key: Key, path: any WritableKeyPath<Self, Bool?> & Sendable)] = [
        ("statusCheck", \.statusCheck), ("zeroAmountAllowed", \.zeroAmountAllowed),
    ]

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(
            keyedBy: Key.self,
            allowing: Set(
                Self.limits.map(\.key.stringValue) + Self.flags.map(\.key.stringValue)
                    + ["applicationProgramIdentifier"]))
        let identifier = try container.decodeBytes("applicationProgramIdentifier")
        guard let limits = Self(applicationProgramIdentifier: identifier) else {
            throw DecodingError.dataCorruptedError(
                forKey: "applicationProgramIdentifier", in: container, debugDescription: "it has 1 to 16 bytes")
        }
        self = limits
        for (key, path) in Self.limits {
            self[keyPath: path] = try container.decodeIfPresent(UInt64.self, forKey: key)
        }
        for (key, path) in Self.flags { self[keyPath: path] = try container.decodeIfPresent(Bool.self, forKey: key) }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        try container.encode(applicationProgramIdentifier.hex, forKey: "applicationProgramIdentifier")
        for (key, path) in Self.limits { try container.encodeIfPresent(self[keyPath: path], forKey: key) }
        for (key, path) in Self.flags { try container.encodeIfPresent(self[keyPath: path], forKey: key) }
    }
}
