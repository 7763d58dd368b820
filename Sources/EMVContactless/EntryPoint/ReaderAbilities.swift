import SmartCard

extension ReaderConfiguration {
    /// A piece of equipment of a reader.  A reader without any has only its antenna; consumer devices verify
    /// cardholders.
    public enum Ability: String, Hashable, Sendable, CaseIterable, Codable {
        /// A PIN can be entered, for the issuer to verify.
        case pinPad
        /// A slip is printed for the cardholder to sign.
        case paper
        /// The cardholder can sign on a screen.
        case screen
        /// A display for the attendant or the cardholder.
        case display
        /// Letters, digits and functions can be entered.
        case keyboard
        /// Chip cards can be inserted.
        case contacts
        /// Magnetic stripes are read.
        case magneticStripe
        /// Account numbers can be keyed in.
        case manualKeyEntry
    }
}

/// The bits of data objects that a reader may advertise only with some of its equipment, or of its terminal type.
///
/// A string literal creates it, with a line of five columns for each bit, or value of several bits:
///
///     DF8118 1 40    pinPad,online         +
///     DF811E 1 F0=10 paper/screen,attended +
///
/// The columns are the tag, the number of the byte, from 1, the mask of the bits (with their value, if it is not the mask), what
/// they need, and the default.  Needs are raw values of ``ReaderConfiguration/Ability``, or `attended`, `online` and `offline` of
/// the Terminal Type, 9F35.  All that commas separate are needed, and one of those that slashes separate; `-` is no need.  Where
/// the configuration does not set the object, the bits are set if the needs are met: always with `+`, at an unattended terminal
/// with `u`, never with `-`.
///
/// A line of three columns, such as `9F33 1 DF8117`, has the first byte of an object supply a byte of another.
///
/// Other text is an error of the program, and traps.
public struct AdvertisedData: ExpressibleByStringLiteral, Sendable {
    fileprivate var rows: [Advertisement] = []
    fileprivate var supplies: [(tag: TLVTag, byte: Int, source: TLVTag)] = []

    /// Creates the data from lines of text.
    public init(stringLiteral text: String) {
        for line in text.split(separator: "\n") {
            let columns = line.split(separator: " ")
            guard columns.count == 3 else {
                rows.append(Advertisement(columns))
                continue
            }
            guard let tag = UInt32(columns[0], radix: 16), let byte = Int(columns[1]),
                let source = UInt32(columns[2], radix: 16)
            else { preconditionFailure("tag, byte, tag") }
            supplies.append((TLVTag(rawValue: tag), byte - 1, TLVTag(rawValue: source)))
        }
    }

    /// The data objects of all kernels.
    ///
    /// 9F33: EMV Book 4, Annex A2; a signature needs an attendant.  9F40: Annex A3; prints and displays are for the
    /// attendant, if there is one.  9F66: EMV Contactless Book A, table 5-4.
    fileprivate static let common: AdvertisedData = """
        9F33   1 80    manualKeyEntry                  +
        9F33   1 40    magneticStripe                  +
        9F33   1 20    contacts                        +
        9F33   2 80    pinPad,contacts                 -
        9F33   2 40    pinPad,online                   +
        9F33   2 20    paper/screen,attended           +
        9F33   2 10    pinPad,contacts                 -
        9F33   2 08    -                               +
        9F40   3 80    pinPad/keyboard/manualKeyEntry  +
        9F40   3 40    keyboard                        +
        9F40   3 20    pinPad/keyboard                 +
        9F40   3 10    keyboard                        +
        9F40   4 80    paper/screen,attended           +
        9F40   4 40    paper/screen                    u
        9F40   4 20    display/screen,attended         +
        9F40   4 10    display/screen                  u
        9F66   1 10    contacts                        +
        9F66   1 08    offline                         +
        9F66   1 04    pinPad,online                   +
        9F66   1 02    paper/screen,attended           +
        9F66   2 20    pinPad,contacts                 -
        """
}

/// Some bits of a data object of the terminal, with the equipment that a reader needs to advertise them.
private struct Advertisement: Sendable {
    enum Need: Hashable, Sendable {
        case ability(ReaderConfiguration.Ability)
        /// By the Terminal Type, 9F35 (EMV Book 4, Annex A1).
        case attended, online, offline

        init(_ name: Substring) {
            switch name {
            case "attended": self = .attended
            case "online": self = .online
            case "offline": self = .offline
            default:
                guard let ability = ReaderConfiguration.Ability(rawValue: String(name)) else {
                    preconditionFailure("no ability")
                }
                self = .ability(ability)
            }
        }

        func isMet(by abilities: Set<ReaderConfiguration.Ability>, type: UInt8) -> Bool {
            switch self {
            case .ability(let ability): abilities.contains(ability)
            case .attended: TerminalType(type).isUnattended == false
            case .online: TerminalActionAnalysis.OnlineCapability(terminalType: type) != .offlineOnly
            case .offline: TerminalActionAnalysis.OnlineCapability(terminalType: type) == .offlineOnly
            }
        }

        /// The equipment that meets the need.
        var remedy: String {
            switch self {
            case .ability(let ability): "add “\(ability.rawValue)” to the abilities"
            case .attended: "let the Terminal Type, 9F35, be an attended one"
            case .online: "let the Terminal Type, 9F35, be one that goes online"
            case .offline: "let the Terminal Type, 9F35, be one that never goes online"
            }
        }
    }

    enum Following: Substring, Sendable {
        case whereMet = "+"
        case unattended = "u"
        case never = "-"
    }

    let tag: TLVTag
    /// The byte number, from 0.
    let byte: Int
    let mask: UInt8
    let value: UInt8
    /// The alternatives of each need; one of each is required.
    let needs: [[Need]]
    /// The case in which the bits are advertised by default.
    let following: Following

    init(_ columns: [Substring]) {
        guard columns.count == 5, let tag = UInt32(columns[0], radix: 16), let byte = Int(columns[1]),
            let mask = UInt8(columns[2].prefix(2), radix: 16), let value = UInt8(columns[2].suffix(2), radix: 16),
            let following = Following(rawValue: columns[4])
        else { preconditionFailure("five columns") }
        (self.tag, self.byte, self.mask, self.value) = (TLVTag(rawValue: tag), byte - 1, mask, value)
        needs =
            columns[3] == "-" ? [] : columns[3].split(separator: ",").map { $0.split(separator: "/").map { Need($0) } }
        self.following = following
    }
}

/// A reader's equipment and terminal type, which determine the bits it can advertise.
private struct Advertiser {
    let abilities: Set<ReaderConfiguration.Ability>
    let type: UInt8
    let rows: [TLVTag: [Advertisement]]

    /// - Parameters:
    ///   - type: 9F35; without it, a terminal is attended and can go online.
    ///   - kernels: the types of kernels whose data counts beside the common data.
    init(_ abilities: Set<ReaderConfiguration.Ability>, type: [UInt8]?, _ kernels: [any Kernel.Type]) {
        self.abilities = abilities
        self.type = type?.first ?? 0x22
        rows = Dictionary(
            grouping: AdvertisedData.common.rows + kernels.flatMap { $0.advertisedData.rows }, by: \.tag)
    }

    private func missing(for row: Advertisement) -> [Advertisement.Need]? {
        row.needs.first { !$0.contains { $0.isMet(by: abilities, type: type) } }
    }

    /// The default values, by tag.
    var values: [TLVTag: [UInt8]] {
        let lengths: [TLVTag: Int] = [0x9F33: 3, 0x9F40: 5, 0x9F66: 4]
        let isAttended = Advertisement.Need.attended.isMet(by: abilities, type: type)
        var values: [TLVTag: [UInt8]] = [:]
        for (tag, rows) in rows {
            var value = [UInt8](repeating: 0, count: lengths[tag] ?? 1)
            for row in rows where value[row.byte] & row.mask == 0 && missing(for: row) == nil {
                switch row.following {
                case .whereMet: value[row.byte] |= row.value
                case .unattended: value[row.byte] |= isAttended ? 0 : row.value
                case .never: break
                }
            }
            values[tag] = value
        }
        return values
    }

    /// - Throws: ``ConfigurationError`` for the first bit that exceeds the equipment, with its tag, place and name.
    func check(_ data: [TLVTag: [UInt8]], _ path: String) throws(ConfigurationError) {
        for (tag, value) in data.sorted(by: { $0.key < $1.key }) {
            for row in rows[tag] ?? []
            where value.indices.contains(row.byte) && value[row.byte] & row.mask == row.value {
                guard let missing = missing(for: row) else { continue }
                var bit = [UInt8](repeating: 0, count: value.count)
                bit[row.byte] = row.value
                let meaning = BitTable[tag, tag == 0x9F66 ? .common : .mastercard]?.decode(bit).last {
                    $0.byte > row.byte
                }
                throw ConfigurationError(
                    path: path + (tag == 0x9F66 ? "" : ".\(tag)"),
                    reason: "\(tag) \(meaning.map { "\($0)" } ?? ""): "
                        + missing.map(\.remedy).joined(separator: ", or ") + "; or leave it out")
            }
        }
    }
}

extension ReaderConfiguration {
    /// The configuration with advertised defaults for values that it lacks; the TTQ combine both.  Byte 1 of 9F40
    /// contains the combination's transaction types.
    func advertised(for kernels: Kernels = .all) -> ReaderConfiguration {
        var configuration = self
        for (index, combination) in combinations.enumerated() {
            func set(_ tag: TLVTag) -> [UInt8]? { combination.data[tag] ?? terminal[tag] }
            let kernel = kernels[combination.kernel]
            var values = Advertiser(abilities, type: set(0x9F35), kernel.map { [$0] } ?? []).values
            if let qualifiers = values.removeValue(forKey: 0x9F66).flatMap({ TerminalTransactionQualifiers($0) }) {
                configuration.combinations[index].terminalTransactionQualifiers?.formUnion(qualifiers)
            }
            for supply in kernel?.advertisedData.supplies ?? [] {
                guard let byte = set(supply.source)?.first else { continue }
                values[supply.tag]?[supply.byte] = byte
            }
            values[0x9F40]?[0] = combination.transactionTypes.reduce(0) { $0 | $1.capability }
            for (tag, value) in values where set(tag) == nil {
                configuration.combinations[index].data[tag] = value
            }
        }
        return configuration
    }

    /// - Throws: ``ConfigurationError`` for a value that exceeds the abilities.
    func validateAbilities(for kernels: Kernels) throws(ConfigurationError) {
        let types = kernels.identifiers.compactMap { kernels[$0] }
        try Advertiser(abilities, type: terminal[0x9F35], types).check(terminal, "terminal")
        for (index, combination) in combinations.enumerated() {
            let path = "combinations[\(index)]"
            let own = combination.data[0x9F35]
            let advertiser = Advertiser(abilities, type: own ?? terminal[0x9F35], types)
            // The terminal's values apply with the combination's terminal type.
            try advertiser.check(
                own == nil ? combination.data : terminal.merging(combination.data) { $1 }, "\(path).data")
            let qualifiers = combination.terminalTransactionQualifiers ?? []
            try advertiser.check([0x9F66: qualifiers.bytes], "\(path).terminalTransactionQualifiers")
        }
    }
}

extension Transaction.Kind {
    /// The bit in tag 9F40, byte 1 (EMV Book 4, Annex A3); a refund has none.
    fileprivate var capability: UInt8 {
        switch self {
        case .purchase: 0x60
        case .cash: 0x80
        case .purchaseWithCashback: 0x70
        case .refund: 0
        }
    }
}
