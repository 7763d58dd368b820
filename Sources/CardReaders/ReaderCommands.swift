public import SmartCard
import SmartCardPN532
import Waiting

/// A reader's own commands, independent of its model: firmware version, lights, buzzer, defaults.
///
///     try await reader.withLink { link in
///         print(try await ReaderCommands(of: reader, over: link).firmwareVersion())      // ACR1252U_V101.0
///     }
///
/// Every call throws `CardError`, of kind `unsupported` if ``Model/functions`` has no command for it; the error names
/// the function.
public struct ReaderCommands: Sendable {
    public let model: Model
    private let link: any ReaderLink

    /// - Throws: `CardError` of kind `unsupported` for a reader of unknown model.
    public init(of reader: any CardReader, over link: any ReaderLink) throws {
        guard let model = reader.model else {
            throw CardError(.unsupported, "the commands of “\(reader.identity.name)” are unknown")
        }
        self.init(of: model, over: link)
    }

    public init(of model: Model, over link: any ReaderLink) {
        (self.model, self.link) = (model, link)
    }

    /// Returns the printable firmware version, such as `ACR122U216` or `ACR1252U_V101.0`.
    public func firmwareVersion() async throws -> String {
        let command = try command(.firmware)
        if model.commands == .pseudoAPDUs { return try await ACR122U(over: link).firmwareVersion() }
        let answer = try await escape(command.get, [], .firmware)
        guard !answer.isEmpty, answer.allSatisfy({ (0x20...0x7E).contains($0) }) else { throw unexpected(.firmware) }
        return String(decoding: answer, as: UTF8.self)
    }

    /// Sets all lights, after blinking those that will be on.
    ///
    /// Waits until the blinking ends: 400 ms for each time.
    public func setLights(_ lights: Set<Model.Light>, blinking times: Int = 0) async throws {
        let command = try command(.lights)
        for light in lights where model.lights[light] == nil {
            throw CardError(.unsupported, "the \(model.name) has no \(light.rawValue) light")
        }
        let bits = lights.reduce(0x00) { $0 | (model.lights[$1] ?? 0x00) }
        guard model.commands == .escape else {
            var control: LightControl = [.updateRed, .updateGreen, LightControl(rawValue: bits)]
            guard times > 0 else { return _ = try await ACR122U(over: link).setLights(control) }
            control.formUnion(LightControl(rawValue: bits << 4 | bits << 6))
            let blinking = Blinking(on: 2, off: 2, times: UInt8(clamping: times))
            return _ = try await ACR122U(over: link).setLights(control, blinking: blinking)
        }
        for _ in 0..<times {
            for bits in [bits, 0x00] {
                _ = try await escape(command.set, [bits], .lights)
                try await Time.sleep(for: .milliseconds(200))
            }
        }
        _ = try await escape(command.set, [bits], .lights)
    }

    /// Sounds the buzzer this many times for 100 ms, and waits until it ends.
    public func beep(times: Int) async throws {
        let command = try command(.buzzer)
        guard model.commands == .escape else {
            let blinking = Blinking(on: 1, off: 1, times: UInt8(clamping: times), buzzer: .whileOn)
            return _ = try await ACR122U(over: link).setLights([], blinking: blinking)
        }
        for _ in 0..<times {
            // No document says whether the answer waits for the sound.
            _ = try await escape(command.set, [10], .buzzer)
            try await Time.sleep(for: .milliseconds(200))
        }
    }

    /// A reader's automatic search for cards.
    public struct Polling: Hashable, Sendable {
        /// True if the reader looks for cards by itself.
        public let isOn: Bool
        /// True if the reader looks for cards of types A and B and activates ISO/IEC 14443-4; nil if unknown.
        public let findsPaymentCards: Bool?
        /// The commands that were asked, with their values: `the PICC operating parameter (FF00500000) is FF`.
        public let told: String
    }

    /// Returns the state of the reader's search for cards.
    public func polling() async throws -> Polling {
        guard model.commands == .escape else {
            _ = try command(.operatingParameter)
            let parameter = try await ACR122U(over: link).operatingParameter()
            return Polling(
                isOn: parameter.contains(.automaticPolling),
                findsPaymentCards: parameter.isSuperset(of: [.typeA, .typeB, .automaticATS]),
                told: "the PICC operating parameter (FF00500000) is \([parameter.rawValue].hex)")
        }
        let polling = try await escape(try command(.automaticPolling).get, [], .automaticPolling)
        guard let first = polling.first else { throw unexpected(.automaticPolling) }
        var told = ["its automatic polling (\(try request(.automaticPolling).hex)) is \(polling.hex)"]
        var findsPaymentCards: Bool?
        if model.functions[.operatingParameter] != nil {
            let cards = try await escape(try command(.operatingParameter).get, [], .operatingParameter)
            // Bits 0 and 1 of the first byte mean types A and B in every model.
            findsPaymentCards = cards.first.map { $0 & 0x03 == 0x03 }
            told.append("the PICC operating parameter (\(try request(.operatingParameter).hex)) is \(cards.hex)")
        }
        return Polling(
            isOn: first & 0x01 != 0, findsPaymentCards: findsPaymentCards, told: told.joined(separator: ", "))
    }

    /// Restores the state of a new or newly attached reader, as far as it is known, and switches on the search for
    /// cards.
    ///
    /// Use a link of the driver, or send commands one by one: a ``MachineReader``'s link would restore the previous
    /// state.
    ///
    /// - Throws: the first error; the remaining settings are restored nevertheless.
    public func restoreDefaults() async throws {
        switch model.commands {
        case .pseudoAPDUs: try await ACR122U(over: link).restoreDefaults()
        case .escape:
            guard !model.settings.isEmpty else { throw lacks(.automaticPolling) }
            var first: (any Error)?
            for setting in model.settings {
                do {
                    // Without a known default, only polling is corrected; the rest of the value stays.
                    var answer: [UInt8]?
                    if setting.restore(nil) == nil, let read = setting.read { answer = try await link.transmit(read) }
                    try await setting.putBack(answer, over: link)
                } catch {
                    first = first ?? error
                }
            }
            if let first { throw first }
        case .none, .chip: throw lacks(.operatingParameter)
        }
    }

    // MARK: The commands

    private func command(_ function: Model.Function) throws -> Model.Command {
        guard let command = model.functions[function] else { throw lacks(function) }
        return command
    }

    private func lacks(_ function: Model.Function) -> CardError {
        CardError(.unsupported, "no command for the \(function.rawValue) of the \(model.name) is known")
    }

    private func unexpected(_ function: Model.Function) -> CardError {
        CardError(.malformedAnswer, "the \(model.name)'s answer about its \(function.rawValue)")
    }

    /// Returns the complete query command.
    private func request(_ function: Model.Function) throws -> [UInt8] { (try command(function).get ?? []) + [0x00] }

    /// - Returns: the data of the answer.
    private func escape(
        _ prefix: [UInt8]?, _ data: [UInt8], _ function: Model.Function
    ) async throws -> [UInt8] {
        guard let prefix else { throw lacks(function) }
        let answer = try await link.transmit(prefix + [UInt8(truncatingIfNeeded: data.count)] + data)
        guard let value = Model.escapeData(answer) else { throw unexpected(function) }
        return value
    }
}

extension Model {
    /// The settings that commands change beyond a connection, and how to restore them: see `RestoringLink`.
    package var settings: [ReaderSetting] {
        switch commands {
        case .none, .chip: []
        case .pseudoAPDUs: ACR122U.settings
        case .escape: [.antenna, .operatingParameter, .automaticPolling].compactMap(escapeSetting)
        }
    }

    private func escapeSetting(_ function: Function) -> ReaderSetting? {
        guard let command = functions[function], let set = command.set else { return nil }
        return ReaderSetting(
            function.rawValue, changes: [0x01, 0x02].map { set + [$0] }, read: command.get.map { $0 + [0x00] },
            restore: { answer in
                guard var value = answer.flatMap(Self.escapeData) ?? command.initial, !value.isEmpty else { return nil }
                // An earlier program left polling off; no program would find a card.
                if function == .automaticPolling { value[0] |= 0x01 }
                return set + [UInt8(truncatingIfNeeded: value.count)] + value
            }, isDone: { _, answer in Self.escapeData(answer) != nil })
    }

    /// Parses `E1 00 00 00`, a length and the data; nil for other answers.
    fileprivate static func escapeData(_ answer: [UInt8]) -> [UInt8]? {
        guard answer.count >= 5, answer.starts(with: [0xE1, 0x00, 0x00, 0x00]), answer.count == 5 + Int(answer[4])
        else { return nil }
        return Array(answer.dropFirst(5))
    }
}
