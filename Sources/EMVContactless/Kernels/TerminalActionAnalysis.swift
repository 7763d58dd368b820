public import SmartCard

/// Which findings make a terminal decline, go online, or decline because it cannot go online (EMV Book 3, 10.7).
public struct ActionCodes: Hashable, Sendable {
    public var denial: TerminalVerificationResults
    public var online: TerminalVerificationResults
    public var `default`: TerminalVerificationResults

    public init(
        denial: TerminalVerificationResults = [], online: TerminalVerificationResults = [],
        default: TerminalVerificationResults = []
    ) {
        self.denial = denial
        self.online = online
        self.default = `default`
    }

    /// The issuer action codes of a card: 9F0E, 9F0F and 9F0D.  Of those that it does not give, or not in five bytes, denial
    /// is all zeros, the others are all ones.
    public init(issuer data: (TLVTag) -> [UInt8]?) {
        func code(_ tag: TLVTag) -> TerminalVerificationResults? {
            data(tag).flatMap { TerminalVerificationResults($0) }
        }
        self.init(denial: code(0x9F0E) ?? [], online: code(0x9F0F) ?? .all, default: code(0x9F0D) ?? .all)
    }
}

/// Terminal action analysis (EMV Book 3, 10.7).
public enum TerminalActionAnalysis {
    /// What the terminal type, tag 9F35, says of going online (EMV Book 4, Annex A1).
    public enum OnlineCapability: Hashable, Sendable, CaseIterable {
        case onlineOnly, offlineWithOnlineCapability, offlineOnly

        /// - Parameter terminalType: two digits, the second of 1 to 6.
        public init?(terminalType: UInt8) {
            switch terminalType & 0x0F {
            case 1, 4: self = .onlineOnly
            case 2, 5: self = .offlineWithOnlineCapability
            case 3, 6: self = .offlineOnly
            default: return nil
            }
        }
    }

    /// The cryptogram to ask the card for first.
    public static func request(
        for results: TerminalVerificationResults, terminal: ActionCodes, issuer: ActionCodes,
        capability: OnlineCapability
    ) -> ApplicationCryptogramType {
        guard results.isDisjoint(with: terminal.denial.union(issuer.denial)) else { return .aac }
        switch capability {
        case .onlineOnly: return .arqc
        case .offlineWithOnlineCapability:
            return results.isDisjoint(with: terminal.online.union(issuer.online)) ? .tc : .arqc
        case .offlineOnly: return requestOffline(for: results, terminal: terminal, issuer: issuer)
        }
    }

    /// The cryptogram to ask the card for where the terminal cannot go online, or could not.
    public static func requestOffline(
        for results: TerminalVerificationResults, terminal: ActionCodes, issuer: ActionCodes
    ) -> ApplicationCryptogramType {
        results.isDisjoint(with: terminal.default.union(issuer.default)) ? .tc : .aac
    }
}
