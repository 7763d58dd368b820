public import SmartCard

/// Action codes: the findings for which a terminal declines, goes online, or declines because it cannot go online (EMV
/// Book 3, 10.7).
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

    /// Creates the issuer action codes of a card: 9F0E, 9F0F and 9F0D.  If one is absent or does not have five bytes,
    /// denial is all zeros, the others are all ones.
    public init(issuer data: (TLVTag) -> [UInt8]?) {
        func code(_ tag: TLVTag) -> TerminalVerificationResults? {
            data(tag).flatMap { TerminalVerificationResults($0) }
        }
        self.init(denial: code(0x9F0E) ?? [], online: code(0x9F0F) ?? .all, default: code(0x9F0D) ?? .all)
    }
}

/// Terminal action analysis (EMV Book 3, 10.7).
public enum TerminalActionAnalysis {
    /// The online capability that the terminal type, tag 9F35, expresses (EMV Book 4, Annex A1).
    public enum OnlineCapability: Hashable, Sendable, CaseIterable {
        case onlineOnly, offlineWithOnlineCapability, offlineOnly

        /// Reads the terminal type.
        ///
        /// - Parameter terminalType: two digits, the second of 1 to 6.
        public init?(terminalType: UInt8) {
            guard let capability = TerminalType(terminalType).onlineCapability else { return nil }
            self = capability
        }
    }

    /// Returns the cryptogram to request first.
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

    /// Returns the cryptogram to request if the terminal cannot go online, or could not.
    public static func requestOffline(
        for results: TerminalVerificationResults, terminal: ActionCodes, issuer: ActionCodes
    ) -> ApplicationCryptogramType {
        results.isDisjoint(with: terminal.default.union(issuer.default)) ? .tc : .aac
    }
}
