import SmartCard

/// The statements of `card emv` for passes in a phone.
extension CardFileReader {
    /// - Returns: nil for a card without passes.
    static func wallet(_ body: inout Section) throws(CardFileError) -> AppleWalletPhone.Wallet? {
        var wallet = AppleWalletPhone.Wallet(passes: [])
        for statement in body.all("pass") {
            guard wallet.passes.count < 32 else { throw statement.error("a phone holds up to 32 passes") }
            wallet.passes.append(try pass(statement))
        }
        guard !wallet.passes.isEmpty else { return nil }
        if let statement = try body.one("locked-taps") {
            try statement.withoutBlock()
            try statement.arguments(count: 1...1, "locked-taps NUMBER")
            wallet.lockedTaps = Int(try statement.number(0, "taps", 0...100))
        }
        if let statement = try body.one("clock-ahead") {
            try statement.withoutBlock()
            try statement.arguments(count: 1...1, "clock-ahead SECONDS")
            wallet.clockOffset = Int(try statement.number(0, "seconds", 0...1_000_000))
        }
        return wallet
    }

    /// `pass IDENTIFIER { key …  message … }`
    private static func pass(_ statement: Statement) throws(CardFileError) -> AppleWalletPhone.Pass {
        try statement.arguments(count: 1...1, "pass IDENTIFIER")
        var body = try Section(statement, ["key", "message"])
        let keyStatement = try body.required("key")
        let key = try keyStatement.bytes(65...65)
        // The key times one is the key, if it is on the curve.
        guard ChipCurve(12)?.agree(key, [1]) == key else {
            throw keyStatement.error("“key” takes a point on P-256: 04, x, y")
        }
        let message = try body.required("message").bytes(0...64)
        guard let hash = RSAKey.sha256(Array(statement.arguments[0].text.utf8)) else {
            throw statement.error("libcrypto has no SHA-256")
        }
        return AppleWalletPhone.Pass(identifierHash: hash, merchantKey: key, message: message)
    }
}
