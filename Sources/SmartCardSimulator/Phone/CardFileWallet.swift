import SmartCard

/// The statements of `card emv` for a phone.
extension CardFileReader {
    static let phoneKeywords = [
        "pass", "smart-tap", "screen", "wakes", "locked-taps", "unlocks-after", "lock-status", "leaves-after-pass",
        "clock-ahead", "clock-at", "ephemeral-key",
    ]

    /// - Returns: nil for a card without passes.
    static func phone(_ body: inout Section) throws(CardFileError) -> WalletPhone.Configuration? {
        let passes = body.all("pass")
        let smartTap = try body.one("smart-tap")
        let wallet: any PhoneWallet
        switch (passes.first, smartTap) {
        case (nil, nil): return nil
        case (_?, let statement?): throw statement.error("a phone has “pass” or “smart-tap”, not both")
        case (_?, nil): wallet = try appleWallet(passes, &body)
        case (nil, let statement?):
            wallet = try googleWallet(statement)
            for keyword in ["clock-ahead", "clock-at", "ephemeral-key"] {
                if let statement = try body.one(keyword) {
                    throw statement.error("“\(keyword)” is of a phone with “pass”")
                }
            }
        }
        var phone = WalletPhone.Configuration(wallet: wallet)
        if let screen = try word("screen", of: WalletPhone.Screen.allCases.map(\.rawValue), &body) {
            phone.screen = WalletPhone.Screen(rawValue: screen) ?? .both
        }
        phone.wakesByPolling = try word("wakes", of: ["at-once", "by-polling"], &body) == "by-polling"
        phone.lockedTaps = Int(try number("locked-taps", "NUMBER", "taps", 0...100, &body) ?? 0)
        if let seconds = try number("unlocks-after", "SECONDS", "seconds", 0...86_400, &body), seconds > 0 {
            phone.unlockTime = .seconds(seconds)
        }
        if let statement = try body.one("lock-status") {
            try statement.withoutBlock()
            try statement.arguments(count: 1...1, "lock-status STATUS")
            phone.lockStatus = try statement.status(0)
        }
        if let time = try number("leaves-after-pass", "MILLISECONDS", "milliseconds", 0...600_000, &body), time > 0 {
            phone.absence = .milliseconds(time)
        }
        return phone
    }

    private static func appleWallet(
        _ passes: [Statement], _ body: inout Section
    ) throws(CardFileError) -> AppleWallet {
        var wallet = AppleWallet(passes: [])
        for statement in passes {
            guard wallet.passes.count < 32 else { throw statement.error("a phone holds up to 32 passes") }
            wallet.passes.append(try pass(statement))
        }
        wallet.clockOffset = Int(try number("clock-ahead", "SECONDS", "seconds", 0...1_000_000, &body) ?? 0)
        wallet.fixedTime = try number("clock-at", "SECONDS", "seconds since 2001", 0...UInt64(UInt32.max), &body)
            .map { UInt32(truncatingIfNeeded: $0) }
        wallet.ephemeralKey = try body.bytes("ephemeral-key", 32...32)
        return wallet
    }

    /// `pass IDENTIFIER { key …  message … }`
    private static func pass(_ statement: Statement) throws(CardFileError) -> AppleWallet.Pass {
        try statement.arguments(count: 1...1, "pass IDENTIFIER")
        var body = try Section(statement, ["key", "message"])
        let key = try publicKey(try body.required("key"), from: 0)
        let message = try body.required("message").bytes(0...64)
        guard let hash = RSAKey.sha256(Array(statement.arguments[0].text.utf8)) else {
            throw statement.error("libcrypto has no SHA-256")
        }
        return AppleWallet.Pass(identifierHash: hash, merchantKey: key, message: message)
    }

    private static func publicKey(_ statement: Statement, from first: Int) throws(CardFileError) -> [UInt8] {
        let key = try statement.bytes(from: first, 65...65)
        // The key times one is the key, if it is on the curve.
        guard ChipCurve(12)?.agree(key, [1]) == key else {
            throw statement.error("“key” takes a point on P-256: 04, x, y")
        }
        return key
    }

    /// The number after a keyword; nil if it is not there.
    private static func number(
        _ keyword: String, _ usage: String, _ name: String, _ range: ClosedRange<UInt64>, _ body: inout Section
    ) throws(CardFileError) -> UInt64? {
        guard let statement = try body.one(keyword) else { return nil }
        try statement.withoutBlock()
        try statement.arguments(count: 1...1, "\(keyword) \(usage)")
        return try statement.number(0, name, range)
    }

    /// The word after a keyword, one of `words`; nil if it is not there.
    private static func word(
        _ keyword: String, of words: [String], _ body: inout Section
    ) throws(CardFileError) -> String? {
        guard let statement = try body.one(keyword) else { return nil }
        try statement.withoutBlock()
        guard statement.arguments.count == 1, words.contains(statement.arguments[0].text) else {
            throw statement.error("“\(keyword)” takes one of \(words.joined(separator: ", "))")
        }
        return statement.arguments[0].text
    }

    // MARK: Google Wallet

    /// `smart-tap { collector …  … }`
    private static func googleWallet(_ statement: Statement) throws(CardFileError) -> GoogleWallet {
        try statement.arguments(count: 0...0, "smart-tap { … }")
        var body = try Section(
            statement, ["collector", "second-select", "part", "nonce", "ephemeral-key", "iv"])
        var wallet = GoogleWallet()
        for statement in body.all("collector") {
            guard wallet.collectors.count < 32 else { throw statement.error("a phone knows up to 32 collectors") }
            let collector = try collector(statement)
            guard !wallet.collectors.contains(where: { $0.identifier == collector.identifier }) else {
                throw statement.error("the collector occurs twice")
            }
            wallet.collectors.append(collector)
        }
        wallet.needsSecondSelect = try body.flag("second-select")
        if let part = try number("part", "BYTES", "bytes", 16...256, &body) { wallet.part = Int(part) }
        wallet.fixed = (
            try body.bytes("nonce", 32...32), try body.bytes("ephemeral-key", 32...32), try body.bytes("iv", 12...12)
        )
        return wallet
    }

    /// `collector NUMBER { key VERSION …  KIND { … }  customer … }`
    private static func collector(_ statement: Statement) throws(CardFileError) -> GoogleWallet.Collector {
        try statement.arguments(count: 1...1, "collector NUMBER")
        let number = try statement.number(0, "a collector", 0...UInt64(UInt32.max))
        var body = try Section(statement, ["key", "customer"] + SmartTapKind.allCases.map(\.rawValue))
        var collector = GoogleWallet.Collector(
            identifier: stride(from: 24, through: 0, by: -8).map { UInt8(truncatingIfNeeded: number >> UInt64($0)) })
        for statement in body.all("key") {
            let version = UInt32(
                truncatingIfNeeded: try statement.number(0, "a version", 0...UInt64(UInt32.max)))
            guard collector.keys[version] == nil else { throw statement.error("the version occurs twice") }
            collector.keys[version] = try publicKey(statement, from: 1)
        }
        for kind in SmartTapKind.allCases {
            for statement in body.all(kind.rawValue) {
                guard collector.objects.count < 64 else { throw statement.error("a collector has up to 64 passes") }
                collector.objects.append(try object(kind, statement))
            }
        }
        if let statement = try body.one("customer") {
            try statement.arguments(count: 0...0, "customer { … }")
            var fields = try Section(statement, ["id", "language", "tap"])
            collector.customer = GoogleWallet.Customer(
                identifier: try fields.required("id").bytes(16...16), language: try fields.bytes("language", 2...16),
                tapIdentifier: try fields.bytes("tap", 16...16))
        }
        return collector
    }

    /// `loyalty { id …  value …  text NAME … }`
    private static func object(
        _ kind: SmartTapKind, _ statement: Statement
    ) throws(CardFileError) -> GoogleWallet.Object {
        try statement.arguments(count: 0...0, "\(kind.rawValue) { … }")
        var body = try Section(statement, ["id", "issuer", "value", "text"])
        var texts: [(name: String, text: [UInt8])] = []
        for statement in body.all("text") {
            guard texts.count < 16, let name = statement.arguments.first?.text, (1...16).contains(name.utf8.count)
            else {
                throw statement.error("“text” is written: text NAME \"…\", up to 16 times")
            }
            texts.append((name, try statement.bytes(from: 1, 0...1024)))
        }
        return GoogleWallet.Object(
            kind: kind, identifier: try body.required("id").bytes(8...8),
            issuer: try body.bytes("issuer", 5...5) ?? [0x01, 0x00, 0x00, 0x00, 0x00],
            value: try body.required("value").bytes(0...1024), texts: texts)
    }
}
