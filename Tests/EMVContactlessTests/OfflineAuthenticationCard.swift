import EMVContactless
import SmartCard

/// The bytes of hexadecimal digits in the source of a test.
func bytes(_ hex: String) -> [UInt8] { (try? [UInt8](hex: hex)) ?? [] }

/// A card and a terminal for offline data authentication, so that a test may change one thing of them.
struct Card {
    var keys = CAPublicKeys.published
    var aid: String
    var environment: CAPublicKey.Environment
    var date: (Int, Int, Int)
    /// Values in hexadecimal.
    var objects: [TLVTag: String]
    var records: [(sfi: UInt8, bytes: [UInt8])] = []

    init(
        aid: String, environment: CAPublicKey.Environment, date: (Int, Int, Int), objects: [TLVTag: String],
        records: [(UInt8, [UInt8])] = []
    ) {
        self.aid = aid
        self.environment = environment
        self.date = date
        self.objects = objects
        self.records = records.map { ($0.0, $0.1) }
    }

    func data(_ tag: TLVTag) -> [UInt8]? { objects[tag].map { bytes($0) } }

    var staticData: StaticDataToBeAuthenticated {
        var staticData = StaticDataToBeAuthenticated()
        for record in records { staticData.append(record: record.bytes, sfi: record.sfi) }
        return staticData
    }

    private func with<Value>(
        _ body: (OfflineDataAuthentication) -> Result<Value, AuthenticationFailure>
    ) -> Result<Value, AuthenticationFailure> {
        guard let aid = AID(bytes(aid)), let date = CalendarDate(year: date.0, month: date.1, day: date.2) else {
            preconditionFailure("the test gives no AID or no date")
        }
        return body(OfflineDataAuthentication(keys: keys, environment: environment, aid: aid, date: date))
    }

    func issuerKey() -> Result<IssuerPublicKey, AuthenticationFailure> { with { $0.issuerKey(data: data) } }
    func iccKey() -> Result<ICCPublicKey, AuthenticationFailure> {
        with { $0.iccKey(signing: staticData, data: data) }
    }
    func pinEnciphermentKey() -> Result<ICCPublicKey, AuthenticationFailure> {
        with { $0.pinEnciphermentKey(data: data) }
    }
    func sda() -> Result<SignedStaticData, AuthenticationFailure> { with { $0.sda(of: staticData, data: data) } }
}
