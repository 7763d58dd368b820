import SmartCard

/// Google Wallet: Smart Tap 2.1 (Google's APDU reference; kormax for what phones do).
struct GoogleWallet: PhoneWallet {
    struct Object: Sendable {
        let kind: SmartTapKind
        /// Eight bytes.
        let identifier: [UInt8]
        /// The issuer: 01 for a merchant or 02 for a wallet, and its number of four bytes.
        let issuer: [UInt8]
        /// The redemption value.
        let value: [UInt8]
        let texts: [(name: String, text: [UInt8])]

        var record: SmartTapRecord {
            SmartTapRecord(
                "asv",
                [
                    .binary("i", issuer),
                    SmartTapRecord(
                        kind.codes.record,
                        [.binary("oid", identifier), .text("n", value)] + texts.map { .text($0.name, $0.text) }),
                ])
        }
    }

    struct Customer: Sendable {
        let identifier: [UInt8]
        let language: [UInt8]?
        let tapIdentifier: [UInt8]?

        var record: SmartTapRecord {
            var fields = [SmartTapRecord.binary("cid", identifier)]
            if let language { fields.append(.text("cpl", language)) }
            if let tapIdentifier { fields.append(.binary("cut", tapIdentifier)) }
            return SmartTapRecord("asv", [.binary("i", [0x02, 0, 0, 0, 0]), SmartTapRecord("cus", fields)])
        }
    }

    struct Collector: Sendable {
        /// Four bytes.
        let identifier: [UInt8]
        /// Public keys, `04 x y`, by their versions.
        var keys: [UInt32: [UInt8]] = [:]
        var objects: [Object] = []
        var customer: Customer?
    }

    var collectors: [Collector] = []
    /// An older phone, whose answer to the universal name has no nonce, so that Smart Tap itself has to be selected.
    var needsSecondSelect = false
    /// The most data in one response.
    var part = 240
    /// The values that each session draws, where a card file fixes them.
    var fixed: (nonce: [UInt8]?, ephemeralKey: [UInt8]?, iv: [UInt8]?)

    private enum Selection { case none, universal, smartTap }
    private var selection = Selection.none
    private var session: SmartTapSession?
    /// The rest of a long response.
    private var pending: ArraySlice<UInt8> = []
    private var pendingStatus = StatusWord.success

    static let lockStatus: StatusWord = 0x9300
    private static let universalName = Array("OSE.VAS.01".utf8)
    private static let name: [UInt8] = [0xA0, 0x00, 0x00, 0x04, 0x76, 0xD0, 0x00, 0x01, 0x11]
    private static let version: [UInt8] = [0x00, 0x01]

    mutating func reset() { (selection, session, pending) = (.none, nil, []) }

    mutating func answer(_ command: CommandAPDU, _ visit: inout WalletVisit) -> ResponseAPDU? {
        if command.ins == 0xA4, command.p1 == 0x04 { return select(command.data, visit) }
        guard selection == .smartTap || selection == .universal && !needsSecondSelect else { return nil }
        guard command.cla == 0x90, command.p1 == 0, command.p2 == 0 else { return ResponseAPDU(status: 0x9400) }
        do {
            switch command.ins {
            case 0x53: return try negotiate(command.data)
            case 0x50: return try getData(command.data, &visit)
            case 0xC0: return try getMore()
            case 0x52: return try push(command.data)
            default: return ResponseAPDU(status: 0x9400)
            }
        } catch { return ResponseAPDU(status: error.status) }
    }

    // MARK: SELECT

    private mutating func select(_ name: [UInt8], _ visit: WalletVisit) -> ResponseAPDU? {
        switch name {
        case Self.universalName: selection = .universal
        case Self.name: selection = .smartTap
        default:
            selection = .none
            return nil
        }
        // Both answers of a session have the same nonce.
        guard let session = session ?? SmartTapSession(nonce: fixed.nonce, ephemeralKey: fixed.ephemeralKey) else {
            return ResponseAPDU(status: 0x9200)
        }
        self.session = session
        if selection == .smartTap {
            var nonce = SmartTapRecord.binary("mdn", session.nonce)
            nonce.identifier = nonce.type
            return ResponseAPDU(data: [0x00, 0x00] + Self.version + SmartTapRecord.message([nonce]), status: .success)
        }
        let capabilities: UInt8 = needsSecondSelect ? 0x02 : 0x03
        let directory = TLVTag(0xA5).encode(
            TLVTag(0xBF0C).encode(
                TLVTag(0x61).encode(
                    objects: TLVTag(0x4F).encode(Self.name), TLVTag(0x87).encode([0x01]),
                    TLVTag(0x73).encode(
                        objects: TLVTag(0xDF6D).encode([0x00, 0x00]), TLVTag(0xDF4D).encode(Self.version),
                        TLVTag(0xDF62).encode([capabilities])))))
        // Payment enabled and requested (C0), passes enabled and requested (0C).
        let features: UInt8 = visit.offersPayment ? 0xCC : 0x0C
        let fresh =
            TLVTag(0xC1).encode([features, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x80])
            + TLVTag(0xC2).encode(session.nonce) + TLVTag(0xC3).encode(session.publicKey)
        return ResponseAPDU(
            data: TLVTag(0x6F).encode(
                objects: TLVTag(0x50).encode(Array("AndroidPay".utf8)), TLVTag(0xC0).encode(Self.version),
                needsSecondSelect ? [] : fresh, directory),
            status: .success)
    }

    // MARK: Commands

    /// The records of a request, after its version.
    private static func request(
        _ data: [UInt8], _ name: String
    ) throws(SmartTapRefusal) -> (records: [SmartTapRecord], header: SmartTapSession.Header) {
        guard let outer = SmartTapRecord.parse(data), outer.count == 1, outer[0].name == name,
            outer[0].payload.count >= 2
        else { throw .notUnderstood }
        guard Array(outer[0].payload.prefix(2)) == version else { throw .wrongVersion }
        guard let records = SmartTapRecord.parse(outer[0].payload.dropFirst(2)),
            let header = records["ses"].flatMap(SmartTapSession.Header.init)
        else { throw .notUnderstood }
        return (records, header)
    }

    private mutating func negotiate(_ data: [UInt8]) throws(SmartTapRefusal) -> ResponseAPDU {
        let (records, header) = try Self.request(data, "ngr")
        guard let parameters = records["cpr"], parameters.count > 70,
            let nested = SmartTapRecord.parse(parameters.dropFirst(70)), let signature = nested["sig"],
            signature.first == 0x04, let identifier = Self.collector(nested)
        else { throw .notUnderstood }
        guard var session else { throw .notUnderstood }
        if let stale = session.answer(toStale: header) { return response("nrs", [stale]) }
        let version = parameters[66..<70].reduce(0) { $0 << 8 | UInt32($1) }
        guard let key = collectors.first(where: { $0.identifier == identifier })?.keys[version],
            session.establish(
                with: SmartTapSession.Proof(
                    nonce: Array(parameters.prefix(32)), isLive: parameters[32] & 0x01 != 0,
                    key: Array(parameters[33..<66]), signature: Array(signature.dropFirst())), of: identifier, key)
        else { throw .notAuthentic }
        let answer = session.answer(to: header)
        self.session = session
        return response(
            "nrs", [answer, SmartTapRecord("dpk", session.publicKey)],
            parameters[32] & 0x01 != 0 ? .success : 0x9002)
    }

    private mutating func getData(
        _ data: [UInt8], _ visit: inout WalletVisit
    ) throws(SmartTapRefusal) -> ResponseAPDU {
        let (records, header) = try Self.request(data, "srq")
        guard var session, let negotiated = session.collector else { throw .notAuthentic }
        if let stale = session.answer(toStale: header) { return response("srs", [stale]) }
        defer { self.session = session }
        guard let merchant = records["mer"].flatMap(SmartTapRecord.parse), let identifier = Self.collector(merchant)
        else {
            return response("srs", [session.answer(to: header, .merchantMissing)])
        }
        guard identifier == negotiated, let collector = collectors.first(where: { $0.identifier == identifier }) else {
            return response("srs", [session.answer(to: header, .unknownMerchant)])
        }
        guard let list = records["slr"].flatMap(SmartTapRecord.parse) else {
            return response("srs", [session.answer(to: header, .servicesMissing)])
        }
        let capabilities = records["pcr"] ?? []
        guard [0, 5].contains(capabilities.count) else { throw .notUnderstood }
        // The tap is for a payment only.
        let services =
            capabilities.last == 0x02 ? [] : Set(list.filter { $0.name == "str" }.flatMap(\.payload))
        let isAll = services.contains(0x00) || services.contains(0x01)
        let objects = collector.objects.filter { isAll || services.contains($0.kind.codes.service) }
        let customer = collector.customer.flatMap { isAll || services.contains(0x40) ? $0 : nil }
        guard !objects.isEmpty || customer != nil else {
            visit.outcome = .missing
            return ResponseAPDU(status: 0x9001)
        }
        if visit.isLocked(), let status = visit.lockStatus { return ResponseAPDU(status: status) }
        let content = SmartTapRecord.message(objects.map(\.record) + (customer.map { [$0.record] } ?? []))
        let isCompressed = capabilities.first.map { $0 & 0x40 != 0 } ?? false
        guard let payload = isCompressed ? Deflate.compress(content) : content,
            let sealed = session.seal(payload, iv: fixed.iv)
        else { throw .failedCryptography }
        visit.outcome = objects.isEmpty ? .missing : .given
        let bundle = SmartTapRecord("reb", [isCompressed ? 0x03 : 0x01] + sealed)
        return response("srs", [session.answer(to: header), bundle], objects.isEmpty ? 0x9001 : .success)
    }

    private mutating func getMore() throws(SmartTapRefusal) -> ResponseAPDU {
        guard !pending.isEmpty else { throw .nothingMore }
        return nextPart()
    }

    private mutating func push(_ data: [UInt8]) throws(SmartTapRefusal) -> ResponseAPDU {
        let (_, header) = try Self.request(data, "spr")
        guard var session else { throw .notUnderstood }
        defer { self.session = session }
        return response("psr", [session.answer(toStale: header) ?? session.answer(to: header)])
    }

    // MARK: Responses

    private mutating func response(
        _ name: String, _ records: [SmartTapRecord], _ status: StatusWord = .success
    ) -> ResponseAPDU {
        (pending, pendingStatus) = (SmartTapRecord.message([SmartTapRecord(name, records)])[...], status)
        return nextPart()
    }

    private mutating func nextPart() -> ResponseAPDU {
        let data = Array(pending.prefix(part))
        pending = pending.dropFirst(data.count)
        return ResponseAPDU(data: data, status: pending.isEmpty ? pendingStatus : 0x9100)
    }

    /// The last four bytes of a collector's number.
    private static func collector(_ records: [SmartTapRecord]) -> [UInt8]? {
        guard let payload = records["cld"], payload.first == 0x04, payload.count > 1 else { return nil }
        return Array(([0, 0, 0] + payload.dropFirst()).suffix(4))
    }
}

/// A status word that refuses a command.
struct SmartTapRefusal: Error {
    let status: StatusWord

    static let failedCryptography = SmartTapRefusal(status: 0x9201)
    static let notUnderstood = SmartTapRefusal(status: 0x9402)
    static let nothingMore = SmartTapRefusal(status: 0x9404)
    static let notAuthentic = SmartTapRefusal(status: 0x9500)
    static let wrongVersion = SmartTapRefusal(status: 0x9502)
}
