import SmartCard

/// An object that Google's wallet hands over: a pass, or the customer.
public enum SmartTapObject: Hashable, Sendable {
    case pass(SmartTapPass)
    case customer(SmartTapCustomer)
}

/// The issuer of a pass: record `i`.
public struct SmartTapIssuer: Hashable, Sendable {
    /// The giver of the identifier (proxmark3, `cmdhfgst.c`).
    public enum Kind: UInt8, Hashable, Sendable {
        case unspecified = 0
        case merchant = 1
        case wallet = 2
        case manufacturer = 3
    }

    /// The kind by its name; nil for one that is not known.
    public let kind: Kind?
    /// Usually four bytes.
    public let identifier: [UInt8]
}

/// A pass of Google's wallet: record `asv`, with one of its objects.
public struct SmartTapPass: Hashable, Sendable {
    /// The kind, by the name of its record (Google's APDU reference; kormax, Records; proxmark3).
    public enum Kind: String, Hashable, Sendable, CaseIterable {
        case loyalty = "ly"
        case offer = "of"
        case giftCard = "gc"
        case privateLabelCard = "pl"
        case eventTicket = "et"
        case flight = "fl"
        case transit = "tr"
        case generic = "gr"
        case genericPrivate = "gp"
    }

    public let kind: Kind
    public let issuer: SmartTapIssuer?
    /// `oid`.
    let objectData: PassData?
    /// `oid`: 8 bytes, which identify the customer's pass.
    public var objectID: [UInt8]? { objectData?.bytes }
    /// `n`: what the merchant reads from the pass, such as a member number.
    public let redemptionValue: PassData?
    /// `p`, of gift cards.
    public let pin: PassData?
    /// `c1`, of private label cards.
    public let verificationCode: PassData?
    /// `ex`, as the phone writes it.
    public let expiration: PassData?
    /// `tcr`, as the phone writes it.
    public let transactionCounter: PassData?
}

/// The customer: record `cus`.
public struct SmartTapCustomer: Hashable, Sendable {
    public let issuer: SmartTapIssuer?
    /// `cid`: 16 bytes, all zero where the wallet does not tell.
    public let identifier: PassData?
    /// `cpl`: a language tag, such as `en`.
    public let language: String?
    /// `cut`: 16 bytes, other ones in each tap.
    public let tapID: PassData?
}

extension SmartTapObject {
    /// The greatest number of objects that are taken from one answer.
    static let maximumCount = 64

    /// Parses the decrypted contents of a record bundle, `reb`.
    ///
    /// - Parameters:
    ///   - bytes: what the bundle's encryption gave.
    ///   - isCompressed: true for zlib's format, as b1 of the bundle's flags states.
    /// - Throws: ``SmartTapFault``; `tooLong` for more than ``SmartTap/maximumLength`` bytes.
    public static func objects(
        inBundle bytes: [UInt8], isCompressed: Bool
    ) throws(SmartTapFault) -> [SmartTapObject] {
        guard isCompressed else { return try objects(bytes) }
        var clear: [UInt8] = []
        defer { clear.wipe() }
        do throws(Inflater.Fault) { clear = try Inflater.inflate(bytes, limit: SmartTap.maximumLength) } catch {
            throw error == .tooLong ? .tooLong : .notInflated
        }
        return try objects(clear)
    }

    /// Parses the clear contents of a record bundle: records `asv`, which nest issuer and object.  Records that are not known
    /// are skipped, as newer phones may have more of them.
    static func objects(_ bytes: [UInt8]) throws(SmartTapFault) -> [SmartTapObject] {
        var objects: [SmartTapObject] = []
        for value in try SmartTapRecords.records(bytes, at: .bundle) where SmartTapRecords.name(value) == "asv" {
            let records = try SmartTapRecords.records(value.payload, at: .object)
            let issuer = SmartTapRecords.payload("i", in: records).flatMap(SmartTapIssuer.init)
            for record in records {
                guard let object = try SmartTapObject(record, issuer) else { continue }
                guard objects.count < maximumCount else { throw .tooLong }
                objects.append(object)
            }
        }
        return objects
    }

    private init?(_ record: NDEFRecord, _ issuer: SmartTapIssuer?) throws(SmartTapFault) {
        guard let name = SmartTapRecords.name(record) else { return nil }
        if name == "cus" {
            let fields = Fields(try SmartTapRecords.records(record.payload, at: .object))
            self = .customer(
                SmartTapCustomer(
                    issuer: issuer, identifier: fields["cid"], language: fields["cpl"]?.text, tapID: fields["cut"]))
            return
        }
        guard let kind = SmartTapPass.Kind(rawValue: name) else { return nil }
        let fields = Fields(try SmartTapRecords.records(record.payload, at: .object))
        self = .pass(
            SmartTapPass(
                kind: kind, issuer: issuer, objectData: fields["oid"], redemptionValue: fields["n"],
                pin: fields["p"], verificationCode: fields["c1"], expiration: fields["ex"],
                transactionCounter: fields["tcr"]))
    }

    private struct Fields {
        let records: [NDEFRecord]

        init(_ records: [NDEFRecord]) { self.records = records }

        subscript(name: String) -> PassData? {
            records.first { SmartTapRecords.name($0) == name }.flatMap(SmartTapRecords.value).map { value in
                var value = value
                defer { value.wipe() }
                return PassData(value)
            }
        }
    }
}

extension SmartTapIssuer {
    /// Format, kind, identifier.
    fileprivate init?(_ payload: [UInt8]) {
        guard payload.count > 2 else { return nil }
        self.init(kind: Kind(rawValue: payload[1]), identifier: Array(payload.dropFirst(2)))
    }
}
