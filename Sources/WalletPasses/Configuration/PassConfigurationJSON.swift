public import CardEncryption
import Foundation

extension PassConfiguration {
    /// The longest JSON text that is read, in bytes.
    public static let maximumLength = 1 << 18

    /// Reads a configuration and the keys that it names; <doc:MerchantsAndTheirKeys> shows one.
    ///
    /// Blocks on the disk: call it only at start, and not on the threads that Swift's tasks share.
    ///
    /// - Parameters:
    ///   - path: a JSON file.  Names of key files are relative to its folder.
    ///   - wrapping: opens key files that are wrapped.
    /// - Throws: ``PassConfigurationError``, which names the fault and its place, and never shows what a key file contains.
    public init(contentsOf path: String, wrappedBy wrapping: WrappingKey? = nil) throws(PassConfigurationError) {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw PassConfigurationError(.json("a file that can be read"), path)
        }
        let folder = path.lastIndex(of: "/").map { String(path[...$0]) } ?? ""
        try self.init(json: Array(data)) { name throws(KeyFileError) in
            try MerchantKey(KeyFile(name.hasPrefix("/") ? name : folder + name, wrappedBy: wrapping))
        }
    }

    /// Parses a configuration.
    ///
    /// - Parameters:
    ///   - text: JSON in UTF-8, at most ``maximumLength`` bytes.
    ///   - key: returns the key that the text names.
    public init(
        json text: [UInt8], key: (_ name: String) throws(KeyFileError) -> MerchantKey
    ) throws(PassConfigurationError) {
        guard text.count <= Self.maximumLength else {
            throw PassConfigurationError(.json("at most \(Self.maximumLength) bytes"), "")
        }
        let value: JSON
        do throws(JSON.Fault) { value = try JSON(text) } catch {
            throw PassConfigurationError(.json("\(error.due) at byte \(error.offset)"), "")
        }
        let root = try PassMember(value, "").object(["merchants", "terminal", "clockTolerance"])
        var merchants: [PassMerchant] = []
        for member in try root.required("merchants").array() { merchants.append(try member.merchant(key)) }
        let terminal = try root["terminal"]?.object(["type", "system", "userInterface", "checkout", "verification"])
        var capabilities: SmartTapCapabilities? = .kiosk
        if let terminal, terminal["system"] != nil {
            capabilities = SmartTapCapabilities(
                system: try terminal.options("system", SmartTapCapabilities.System.names),
                userInterface: try terminal.options("userInterface", SmartTapCapabilities.UserInterface.names),
                checkout: try terminal.options("checkout", SmartTapCapabilities.Checkout.names),
                verification: try terminal.options("verification", SmartTapCapabilities.Verification.names))
        }
        var type = AppleVAS.TerminalType.payment
        if let member = terminal?["type"] {
            let types: [String: AppleVAS.TerminalType] = ["payment": .payment, "transit": .transit]
            type = try member.one(of: types)
        }
        try self.init(
            merchants: merchants, capabilities: capabilities, terminalType: type,
            clockTolerance: try root["clockTolerance"]?.number() ?? 300)
    }
}

/// A value of the text, with its place for messages.
private struct PassMember {
    let value: JSON
    let place: String

    init(_ value: JSON, _ place: String) { (self.value, self.place) = (value, place) }

    func fault(_ due: String) -> PassConfigurationError { PassConfigurationError(.json(due), place) }

    struct Object {
        let members: [JSON.Text: JSON]
        let place: String

        subscript(name: String) -> PassMember? {
            members[JSON.Text(name)].map { PassMember($0, place.isEmpty ? name : "\(place).\(name)") }
        }

        func required(_ name: String) throws(PassConfigurationError) -> PassMember {
            guard let member = self[name] else { throw PassConfigurationError(.json("the member \(name)"), place) }
            return member
        }

        func text(_ name: String) throws(PassConfigurationError) -> String? { try self[name]?.text() }

        func options<Options: OptionSet>(
            _ name: String, _ names: [String: Options]
        ) throws(PassConfigurationError) -> Options {
            var options: Options = []
            for member in try self[name]?.array() ?? [] { options.formUnion(try member.one(of: names)) }
            return options
        }
    }

    /// - Parameter names: the members that it may have.
    func object(_ names: [String]) throws(PassConfigurationError) -> Object {
        let members = try membersOfAnyName()
        if let unknown = members.keys.map(\.string).sorted().first(where: { !names.contains($0) }) {
            throw PassConfigurationError(
                .json("none of this name, but \(names.joined(separator: ", "))"),
                (place.isEmpty ? "" : place + ".") + JSON.excerpt(unknown))
        }
        return Object(members: members, place: place)
    }

    func membersOfAnyName() throws(PassConfigurationError) -> [JSON.Text: JSON] {
        guard let members = value.object else { throw fault("an object") }
        return members
    }

    func array() throws(PassConfigurationError) -> [PassMember] {
        guard let items = value.array else { throw fault("an array") }
        return items.enumerated().map { PassMember($1, "\(place)[\($0)]") }
    }

    func text() throws(PassConfigurationError) -> String {
        guard let text = value.text?.string else { throw fault("a string") }
        return text
    }

    func number() throws(PassConfigurationError) -> Double {
        guard case .number(let digits) = value, let number = Double(digits) else { throw fault("a number") }
        return number
    }

    func one<Choice>(of names: [String: Choice]) throws(PassConfigurationError) -> Choice {
        guard let choice = names[try text()] else {
            throw fault("one of " + names.keys.sorted().joined(separator: ", "))
        }
        return choice
    }

    // MARK: Merchants

    func merchant(
        _ key: (String) throws(KeyFileError) -> MerchantKey
    ) throws(PassConfigurationError) -> PassMerchant {
        let object = try object(["id", "apple", "google"])
        return PassMerchant(
            id: try object.required("id").text(), apple: try object["apple"]?.apple(key),
            google: try object["google"]?.google(key))
    }

    private func file(
        _ key: (String) throws(KeyFileError) -> MerchantKey
    ) throws(PassConfigurationError) -> MerchantKey {
        let name = try text()
        do throws(KeyFileError) { return try key(name) } catch { throw PassConfigurationError(.keyFile(error), place) }
    }

    private func apple(
        _ key: (String) throws(KeyFileError) -> MerchantKey
    ) throws(PassConfigurationError) -> PassMerchant.Apple {
        let object = try object(["passTypeIdentifier", "keys", "signUpURL"])
        var keys: [MerchantKey] = []
        for member in try object.required("keys").array() { keys.append(try member.file(key)) }
        return PassMerchant.Apple(
            passTypeIdentifier: try object.required("passTypeIdentifier").text(), keys: keys,
            signUpURL: try object.text("signUpURL"))
    }

    private func google(
        _ key: (String) throws(KeyFileError) -> MerchantKey
    ) throws(PassConfigurationError) -> PassMerchant.Google {
        let object = try object([
            "collectorID", "keys", "services", "locationID", "terminalID", "merchantName", "merchantCategory",
        ])
        let collector = try object.required("collectorID")
        guard let collectorID = UInt32(exactly: try collector.number()) else {
            throw collector.fault("a number of at most 32 bits")
        }
        let members = try object.required("keys")
        var keys: [UInt32: MerchantKey] = [:]
        for (name, value) in try members.membersOfAnyName().sorted(by: { $0.key.string < $1.key.string }) {
            guard let version = UInt32(name.string), String(version) == name.string else {
                throw members.fault("a version as the name of a key file")
            }
            keys[version] = try PassMember(value, "\(members.place).\(version)").file(key)
        }
        let names = Dictionary(uniqueKeysWithValues: SmartTapService.allCases.map { ($0.name, $0) })
        var services: [SmartTapService] = []
        for member in try object["services"]?.array() ?? [] { services.append(try member.one(of: names)) }
        return PassMerchant.Google(
            collectorID: collectorID, keys: keys, services: object["services"] == nil ? [.loyalty] : services,
            locationID: try object.text("locationID"), terminalID: try object.text("terminalID"),
            merchantName: try object.text("merchantName"), merchantCategory: try object.text("merchantCategory"))
    }
}

// The names of bits in a configuration.

extension SmartTapCapabilities.System {
    static let names: [String: Self] = [
        "standalone": .standalone, "semiIntegrated": .semiIntegrated, "unattended": .unattended, "online": .online,
        "offline": .offline, "mobileMarketing": .mobileMarketing, "zlib": .zlib,
    ]
}

extension SmartTapCapabilities.UserInterface {
    static let names: [String: Self] = [
        "printer": .printer, "printerGraphics": .printerGraphics, "display": .display, "images": .images,
        "audio": .audio, "animation": .animation, "video": .video,
    ]
}

extension SmartTapCapabilities.Checkout {
    static let names: [String: Self] = [
        "payment": .payment, "digitalReceipt": .digitalReceipt, "serviceIssuance": .serviceIssuance,
        "terminalData": .terminalData,
    ]
}

extension SmartTapCapabilities.Verification {
    static let names: [String: Self] = [
        "onlinePIN": .onlinePIN, "devicePIN": .devicePIN, "signature": .signature, "none": .none,
        "deviceCode": .deviceCode, "serviceCode": .serviceCode, "identityDocument": .identityDocument,
        "biometric": .biometric,
    ]
}
