/// A command by which a terminal reads passes from a phone's wallet: Apple's Value Added Services 1.0, Google's Smart Tap 2.1
/// (Google's APDU reference; proxmark3, `cmdhfvas.c` and `cmdhfgst.c`).
///
/// This is what masks, names and redaction need to know of them: where in the answers the pass is.
package enum WalletCommand: Sendable {
    /// SELECT of OSE.VAS.01, under which either wallet answers.
    case selectWallet
    case selectSmartTap
    /// Apple's: the answer is a template 70 with the mobile token and the encrypted pass.
    case getVASData
    /// Google's: nonces, keys and signatures.
    case negotiateSecureChannel
    /// Google's: the answer is an NDEF message with the passes.
    case getSmartTapData
    /// Google's: the rest of that.
    case getAdditionalData
    /// Google's: data for the customer's wallet.
    case pushData

    /// - Returns: nil for any other command.
    package init?(_ command: CommandAPDU) {
        let data = command.data
        switch (command.cla, command.ins, command.p1, command.p2) {
        case (0x00, 0xA4, 0x04, _) where data.elementsEqual("OSE.VAS.01".utf8): self = .selectWallet
        case (0x00, 0xA4, 0x04, _) where data.starts(with: Self.smartTap): self = .selectSmartTap
        // EMV's GET DATA, and GlobalPlatform's, have no data field with these objects.
        case (0x80, 0xCA, 0x01, 0x00...0x01) where Self.isVASRequest(data): self = .getVASData
        case (0x90, 0x53, 0x00, 0x00) where Self.recordName(of: data) == "ngr": self = .negotiateSecureChannel
        case (0x90, 0x50, 0x00, 0x00) where Self.recordName(of: data) == "srq": self = .getSmartTapData
        case (0x90, 0x52, 0x00, 0x00) where Self.recordName(of: data) == "spr": self = .pushData
        case (0x90, 0xC0, 0x00, 0x00) where data.isEmpty: self = .getAdditionalData
        default: return nil
        }
    }

    /// The beginning of the names of both versions.
    private static let smartTap: [UInt8] = [0xA0, 0x00, 0x00, 0x04, 0x76, 0xD0, 0x00, 0x01]

    /// 9F22, the version, comes first; 9F25 is the merchant.
    private static func isVASRequest(_ data: [UInt8]) -> Bool {
        data.starts(with: [0x9F, 0x22]) || (try? TLVList(data))?[0x9F25] != nil
    }

    /// Returns the type of the first record of an NDEF message, of which no more needs to be there (NDEF 1.0, 3.2).
    package static func recordName(of bytes: some RandomAccessCollection<UInt8>) -> String? {
        let bytes = Array(bytes.prefix(64))
        guard bytes.count > 2 else { return nil }
        // SR: the length has one byte; IL: there is a length of the identifier.
        let start = 2 + (bytes[0] & 0x10 != 0 ? 1 : 4) + (bytes[0] & 0x08 != 0 ? 1 : 0)
        let end = start + Int(bytes[1])
        guard end <= bytes.count else { return nil }
        return String(validating: bytes[start..<end], as: UTF8.self)
    }

    /// True if the answer holds passes, sealed or not.
    package var answersPasses: Bool {
        switch self {
        case .getVASData, .getSmartTapData, .getAdditionalData, .pushData: true
        case .selectWallet, .selectSmartTap, .negotiateSecureChannel: false
        }
    }

    /// The name for people; nil for SELECT, which has its own.
    package var name: String? {
        switch self {
        case .selectWallet, .selectSmartTap: nil
        case .getVASData: "GET VAS DATA"
        case .negotiateSecureChannel: "NEGOTIATE SECURE CHANNEL"
        case .getSmartTapData: "GET SMART TAP DATA"
        case .getAdditionalData: "GET ADDITIONAL DATA"
        case .pushData: "PUSH DATA"
        }
    }
}
