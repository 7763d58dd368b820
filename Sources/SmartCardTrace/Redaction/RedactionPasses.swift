import SmartCard

/// The redaction of passes that a phone's wallet hands over: Apple's Value Added Services, Google's Smart Tap.
extension RedactionWork {
    /// The wallet's own objects in the answer to SELECT: label, version, nonce and capabilities (Apple); versions, features,
    /// nonces, key and directory (Google; kormax, `google-smart-tap`).  Elsewhere the same tags are an account's.
    private static let selected: Set<TLVTag> = [
        0x50, 0x4F, 0x87, 0x9F21, 0x9F23, 0x9F24, 0xC0, 0xC1, 0xC2, 0xC3, 0xDF4D, 0xDF62, 0xDF6D, 0xDF6E,
    ]
    /// The terminal's objects in GET DATA of Apple's: version, merchant, capabilities, nonce, filter, by their lengths.
    private static let requested: [TLVTag: Int] = [0x9F22: 2, 0x9F25: 32, 0x9F26: 4, 0x9F28: 4, 0x9F2B: 5]

    /// Learns what a pass tells that is handed over in the clear.
    mutating func collectPass(_ message: TraceMessage) {
        guard case .response = message.kind, let command = Self.walletCommand(answeredBy: message) else { return }
        for value in PassAnswer(message.bytes, to: command).values { values.learn(value: value) }
    }

    /// - Returns: false if the command is none that reads passes, or that may hold something else.
    mutating func redactPass(command bytes: inout [UInt8], _ command: CommandAPDU, _ data: Range<Int>) -> Bool {
        switch WalletCommand(command) {
        // Nonces, keys and signatures are random, and names of records have digits of account numbers by chance: str, pcr.
        case .negotiateSecureChannel, .getSmartTapData: return true
        case .getVASData:
            var part = Array(bytes[data])
            guard redactObjects(&part, sparing: { Self.requested[$0.tag] == $0.value.count }) else { return false }
            bytes.replaceSubrange(data, with: part)
            return true
        case .pushData:
            blank(&bytes, data, .pass)
            return true
        default: return false
        }
    }

    /// - Returns: false if the answer is none of a wallet.
    mutating func redactPass(response bytes: inout [UInt8], _ message: TraceMessage) -> Bool {
        guard let command = Self.walletCommand(answeredBy: message) else { return false }
        switch command {
        case .selectWallet, .selectSmartTap:
            return redactObjects(&bytes, sparing: { Self.selected.contains($0.tag) && $0.value.count <= 33 })
                || command == .selectSmartTap
        case .negotiateSecureChannel: return true
        case .getVASData, .getSmartTapData, .getAdditionalData, .pushData:
            let answer = PassAnswer(bytes, to: command)
            var start: Int?
            for index in bytes.indices {
                if !answer.kept.contains(index) {
                    start = start ?? index
                } else if let first = start {
                    blank(&bytes, first..<index, .pass)
                    start = nil
                }
            }
            if let start { blank(&bytes, start..<bytes.count, .pass) }
            return true
        }
    }

    private static func walletCommand(answeredBy message: TraceMessage) -> WalletCommand? {
        guard case .response(let command, _) = message.kind else { return nil }
        return command.map { WalletCommand($0) } ?? PassAnswer.command(answeredBy: message.bytes)
    }
}
