import SmartCard

extension ReaderConfiguration {
    /// A means by which a reader can verify cardholders.  On-device verification needs none.
    public enum Ability: String, Hashable, Sendable, CaseIterable, Codable {
        /// A PIN can be entered, for the issuer to verify.
        case pinPad
        /// A slip is printed for the cardholder to sign.
        case paper
        /// The cardholder can sign on a screen.
        case screen
    }
}

extension Set<ReaderConfiguration.Ability> {
    private var takesSignatures: Bool { contains(.paper) || contains(.screen) }

    /// Bits of tag 9F33, byte 2, and of DF8118.
    fileprivate var methods: CVMCapability {
        var methods: CVMCapability = []
        if contains(.pinPad) { methods.insert(.onlinePIN) }
        if takesSignatures { methods.insert(.signature) }
        return methods
    }

    fileprivate var qualifiers: TerminalTransactionQualifiers {
        var qualifiers: TerminalTransactionQualifiers = []
        if contains(.pinPad) { qualifiers.insert(.onlinePIN) }
        if takesSignatures { qualifiers.insert(.signature) }
        return qualifiers
    }

    /// The value of DF811E; F0: not applicable.
    fileprivate var magStripeMethod: UInt8 { takesSignatures ? 0x10 : contains(.pinPad) ? 0x20 : 0xF0 }

    /// Returns the ability that an advertised value lacks; nil if none is missing.
    fileprivate func missing(for methods: CVMCapability) -> String? {
        let pins: CVMCapability = [.plaintextOfflinePIN, .onlinePIN, .encipheredOfflinePIN]
        if !contains(.pinPad), !methods.isDisjoint(with: pins) {
            return "a PIN needs a PIN pad: add “pinPad” to the abilities, or leave the PIN out"
        }
        if !takesSignatures, methods.contains(.signature) {
            return "a signature needs paper or a screen: add “paper” or “screen” to the abilities, or leave it out"
        }
        return nil
    }
}

extension ReaderConfiguration {
    /// The configuration, completed with the values that its abilities imply: the TTQ (Book A, table 5-4), and 9F33,
    /// DF8118, DF8119, DF811E and DF812C (EMV Book 4, Annex A2; Book C-2, A.1).
    var advertised: ReaderConfiguration {
        var configuration = self
        for index in combinations.indices {
            func set(_ tag: TLVTag) -> [UInt8]? { combinations[index].data[tag] ?? terminal[tag] }
            func derive(_ tag: TLVTag, _ value: @autoclosure () -> [UInt8]) {
                if set(tag) == nil { configuration.combinations[index].data[tag] = value() }
            }
            derive(
                0x9F33,
                [set(0xDF8117)?.first ?? 0, abilities.methods.union(.noCVM).rawValue, set(0xDF811F)?.first ?? 0])
            if combinations[index].kernel == 2 {
                derive(0xDF8118, [abilities.methods.rawValue])
                derive(0xDF8119, [CVMCapability.noCVM.rawValue])
                derive(0xDF811E, [abilities.magStripeMethod])
                derive(0xDF812C, [0x00])
            }
            configuration.combinations[index].terminalTransactionQualifiers?.formUnion(abilities.qualifiers)
        }
        return configuration
    }

    /// Checks the values against the abilities.
    ///
    /// - Throws: ``ConfigurationError`` for a value that advertises more than the abilities.
    func validateAbilities() throws(ConfigurationError) {
        func check(_ methods: CVMCapability, _ path: String) throws(ConfigurationError) {
            if let reason = abilities.missing(for: methods) { throw ConfigurationError(path: path, reason: reason) }
        }
        func check(_ data: [TLVTag: [UInt8]], _ path: String) throws(ConfigurationError) {
            for tag in [0x9F33, 0xDF8118, 0xDF8119, 0xDF811E, 0xDF812C] as [TLVTag] {
                guard let value = data[tag], let first = value.first else { continue }
                let methods: CVMCapability =
                    switch tag {
                    case 0x9F33: CVMCapability(terminalCapabilities: value) ?? []
                    case 0xDF8118, 0xDF8119: CVMCapability(rawValue: first)
                    // Mag-stripe mode: the upper half is the outcome's method.
                    default: first & 0xF0 == 0x10 ? .signature : first & 0xF0 == 0x20 ? .onlinePIN : []
                    }
                try check(methods, "\(path).\(tag)")
            }
        }
        try check(terminal, "terminal")
        for (index, combination) in combinations.enumerated() {
            let path = "combinations[\(index)]"
            try check(combination.data, "\(path).data")
            let qualifiers = combination.terminalTransactionQualifiers ?? []
            var methods: CVMCapability = []
            if qualifiers.contains(.onlinePIN) { methods.insert(.onlinePIN) }
            if qualifiers.contains(.contactChipOfflinePIN) { methods.insert(.encipheredOfflinePIN) }
            if qualifiers.contains(.signature) { methods.insert(.signature) }
            try check(methods, "\(path).terminalTransactionQualifiers")
        }
    }
}
