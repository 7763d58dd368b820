public import SmartCard

/// An ACS ACR122U's own commands (ACS ACR122U API v2.04, section 6), and access to its PN532.
///
/// No command needs a card.  Any reader that passes on `FF 00 …` can carry them:
///
///     let reader = ACR122U(over: pcscReader)
///     print(try await reader.firmwareVersion())        // ACR122U216
///     try await reader.setLights(.steady(green: true), blinking: .init(on: 1, off: 1, times: 2, buzzer: .whileOn))
///
/// Every call throws `CardError`.  Its `cause` is an ``ACR122UStatus`` for an error of the reader, a ``PN532Error`` for
/// one of the PN532.
public struct ACR122U: Sendable {
    let link: any ReaderLink

    /// Uses the reader, with or without a card on it.
    public init(over reader: any CardReader) {
        link = EndlessLink {
            try await reader.transmitToReader($0)
        } release: {
            _ = try? await reader.withLink { await $0.releaseCard() }
        }
    }

    /// Uses an open link.
    public init(over link: any ReaderLink) {
        // The holder of the link closes it.
        self.link = EndlessLink {
            try await link.transmit($0)
        } release: {
            await link.releaseCard()
        }
    }

    /// Uses a connection to the card on the reader, without any layer over it: the reader's answers are not always
    /// response APDUs.
    public init(through card: any CardChannel) {
        link = EndlessLink { command in
            let apdu: CommandAPDU
            do {
                apdu = try CommandAPDU(command)
            } catch {
                throw CardError(.tooLong, cause: error)
            }
            return try await card.transmit(apdu).bytes
        } release: {
            // The holder of the connection has the card.
        }
    }

    private struct EndlessLink: ReaderLink {
        let exchange: @Sendable ([UInt8]) async throws -> [UInt8]
        let release: @Sendable () async -> Void

        func transmit(_ command: [UInt8]) async throws -> [UInt8] { try await exchange(command) }
        func releaseCard() async { await release() }
        func close() async {}
    }

    private func exchange(_ command: [UInt8]) async throws -> [UInt8] { try await link.transmit(command) }

    /// The chip behind direct transmit.  While the reader polls for cards, it uses the chip as well; see
    /// ``withChip(_:)``.
    public var chip: PN532 { PN532(over: self) }

    // MARK: The reader

    /// Returns the firmware version, ten characters such as `ACR122U216` (6.3).  The answer has no status word.
    public func firmwareVersion() async throws -> String {
        var answer = try await exchange([0xFF, 0x00, 0x48, 0x00, 0x00])
        if answer.count == 12, answer.suffix(2) == [0x90, 0x00] { answer.removeLast(2) }
        guard (6...16).contains(answer.count), answer.allSatisfy({ (0x20...0x7E).contains($0) }) else {
            throw Self.unexpected(answer, to: "firmware version")
        }
        return String(decoding: answer, as: UTF8.self)
    }

    /// Returns the kinds of card that the reader looks for, and whether it polls for them (6.4).
    public func operatingParameter() async throws -> PICCOperatingParameter {
        try Self.parameter(await exchange([0xFF, 0x00, 0x50, 0x00, 0x00]))
    }

    /// Sets the operating parameter (6.5).  It applies to all programs until the reader is unplugged.
    public func setOperatingParameter(_ parameter: PICCOperatingParameter) async throws {
        let answer = try await exchange([0xFF, 0x00, 0x51, parameter.rawValue, 0x00])
        guard try Self.parameter(answer) == parameter else { throw Self.unexpected(answer, to: "operating parameter") }
    }

    /// Parses `90 PP`, or `PP` alone from firmware 2.15.
    private static func parameter(_ answer: [UInt8]) throws -> PICCOperatingParameter {
        switch (answer.count, answer.first) {
        case (1, let value?): return PICCOperatingParameter(rawValue: value)
        case (2, 0x90): return PICCOperatingParameter(rawValue: answer[1])
        case (2, _): throw ACR122UStatus(answer[0], answer[1]).error
        default: throw unexpected(answer, to: "operating parameter")
        }
    }

    /// Sets the sound of the buzzer when a card is found (6.7).
    ///
    /// - Throws: `CardError` of kind `unsupported` from old firmware without this command.
    public func setBuzzerOnDetection(_ isOn: Bool) async throws {
        let answer = try await exchange([0xFF, 0x00, 0x52, isOn ? 0xFF : 0x00, 0x00])
        guard let status = ACR122UStatus(answer) else { throw Self.unexpected(answer, to: "buzzer on detection") }
        guard status == .success else {
            throw CardError(.unsupported, "the firmware has no switch for its buzzer", cause: status)
        }
    }

    /// Sets the time that the reader waits for a card's answer (6.6).
    public func setTimeout(_ timeout: ReaderTimeout) async throws {
        try succeed(await exchange([0xFF, 0x00, 0x41, timeout.parameter, 0x00]), "timeout parameter")
    }

    /// Sets the lights after blinking and sounding (6.2).
    ///
    /// The reader answers at the end, so the call waits for ``Blinking/duration``, and no other command reaches the
    /// reader meanwhile.  A blinking longer than two seconds is split into several commands, because drivers give up on
    /// a reader that is silent for three seconds.  A single blink cannot be split.
    ///
    /// - Returns: the lights at the end.
    @discardableResult
    public func setLights(_ lights: LightControl, blinking: Blinking? = nil) async throws -> Lights {
        let blinking = blinking ?? Blinking(on: 0, off: 0, times: 0)
        var rest = Int(blinking.times)
        let tenths = Int(blinking.on) + Int(blinking.off)
        let most = tenths == 0 ? rest : max(1, 20 / tenths)
        var state: Lights = []
        repeat {
            let times = min(rest, most)
            rest -= times
            let answer = try await exchange(
                [0xFF, 0x00, 0x40, lights.rawValue, 0x04, blinking.on, blinking.off]
                    + [UInt8(truncatingIfNeeded: times), blinking.buzzer.rawValue])
            guard let status = ACR122UStatus(answer) else { throw Self.unexpected(answer, to: "lights") }
            guard status.rawValue >> 8 == 0x90 else { throw status.error }
            state = Lights(rawValue: answer[1])
        } while rest > 0
        return state
    }

    /// Switches the field on or off.  Without it, every card loses power and state.
    public func setAntenna(_ isOn: Bool) async throws {
        try await chip.configure(.field(isOn: isOn))
    }

    // MARK: Direct transmit

    /// Passes `payload`, beginning with `D4`, to the PN532, and returns its response, beginning with `D5` (6.1).
    ///
    /// - Parameter payload: up to 255 bytes.
    /// - Throws: `CardError`: of kind `noAnswer` if the card was silent, otherwise with an ``ACR122UStatus``.
    public func directTransmit(_ payload: [UInt8]) async throws -> [UInt8] {
        guard (1...255).contains(payload.count) else {
            throw CardError(.tooLong, "\(payload.count) bytes for the PN532; direct transmit takes 1 to 255")
        }
        var answer = try await exchange([0xFF, 0x00, 0x00, 0x00, UInt8(truncatingIfNeeded: payload.count)] + payload)
        if answer.count == 2, answer[0] == 0x61 {
            // The older ACR122 needs a command to fetch its answer.
            answer = try await exchange([0xFF, 0xC0, 0x00, 0x00, answer[1]])
        }
        guard let status = ACR122UStatus(answer.suffix(2)) else { throw Self.unexpected(answer, to: "direct transmit") }
        guard status == .success else {
            throw answer.count == 2 ? status.error : Self.unexpected(answer, to: "direct transmit")
        }
        return answer.dropLast(2)
    }

    // MARK: Answers

    private func succeed(_ answer: [UInt8], _ command: String) throws {
        guard let status = ACR122UStatus(answer) else { throw Self.unexpected(answer, to: command) }
        guard status == .success else { throw status.error }
    }

    static func unexpected(_ answer: [UInt8], to command: String) -> CardError {
        CardError(.malformedAnswer, "\(answer.count) bytes to \(command)")
    }
}
