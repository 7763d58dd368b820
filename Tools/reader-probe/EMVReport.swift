import EMVContactless
import SmartCard
import ToolSupport

extension Report {
    /// An application listed in the directory, for `card`.
    struct ListedApplication: Encodable {
        let aid: String
        @OrNull var label: String?
        @OrNull var scheme: String?
        @OrNull var kernel: Int?
        @OrNull var priority: Int?

        init(_ application: InspectedApplication) {
            aid = application.aid.bytes.hex
            label = application.label
            scheme = application.scheme
            kernel = application.kernel.flatMap { $0 == .any ? nil : Int($0.rawValue) }
            priority = application.priority
        }
    }

    /// An application with all its data, for `emv`.
    struct Application: Encodable {
        let aid: String
        @OrNull var label: String?
        @OrNull var scheme: String?
        @OrNull var kernel: Int?
        @OrNull var priority: Int?
        @OrNull var pan: String?
        @OrNull var panSequence: Int?
        @OrNull var expiry: String?
        @OrNull var atc: Int?
        @OrNull var pinTryCounter: Int?
        @OrNull var cryptogram: String?
        @OrNull var cryptogramType: String?
        @OrNull var aip: String?
        @OrNull var afl: String?
        let elements: [Element]
        let log: [LogRecord]
        let findings: [String]

        init(_ application: InspectedApplication, reveal: Bool) {
            aid = application.aid.bytes.hex
            label = application.label
            scheme = application.scheme
            kernel = application.kernel.flatMap { $0 == .any ? nil : Int($0.rawValue) }
            priority = application.priority
            pan = application.accountNumber.map { reveal ? $0.digits : $0.masked }
            panSequence = application.number(0x5F34, decimal: true)
            expiry = application.expiration?.description
            atc = application.number(0x9F36)
            pinTryCounter = application.number(0x9F17)
            cryptogram = application.value(0x9F26)?.hex
            cryptogramType = application.value(0x9F27)?.first.map {
                ApplicationCryptogramType(cryptogramInformationData: $0)?.description ?? "RFU"
            }
            aip = application.applicationInterchangeProfile?.hex
            afl = application.applicationFileLocator?.hex
            elements = application.elements.map {
                Element(
                    Annotation($0.object, scope: application.scope), origin: $0.origin.description,
                    reveal: reveal)
            }
            log = application.log.map { LogRecord($0, of: application, reveal: reveal) }
            findings = application.findings
        }
    }

    struct Element: Encodable {
        let tag: String
        @OrNull var name: String?
        /// The value in hexadecimal, masked where required.
        let value: String
        /// The value for people, if digits are hard to read.
        @OrNull var text: String?
        let bits: [String]
        @OrNull var origin: String?

        init(_ annotation: Annotation, origin: String? = nil, reveal: Bool) {
            tag = annotation.tag.description
            name = annotation.element?.name
            value = annotation.hex(reveal: reveal)
            let text = annotation.text(reveal: reveal)
            self.text = text == value ? nil : text
            let isOpen = reveal || SensitiveData.exposure(of: annotation.value, in: annotation.tag) == nil
            bits = isOpen ? annotation.bits.map(\.description) : []
            self.origin = origin
        }
    }
}

extension Report {
    /// A record of the transaction log.
    struct LogRecord: Encodable {
        /// The value; all `*` if it does not have the layout in 9F4F.
        let value: String
        /// The objects that 9F4F lists, in its order.
        let elements: [Element]

        init(_ record: [UInt8], of application: InspectedApplication, reveal: Bool) {
            let format = application.value(0x9F4F).flatMap { try? DataObjectList($0) }
            guard let format, format.length == record.count else {
                value = reveal ? record.hex : String(repeating: "*", count: record.count * 2)
                elements = []
                return
            }
            var rest = record[...]
            elements = format.entries.map { entry in
                defer { rest = rest.dropFirst(entry.length) }
                let annotation = Annotation(
                    tag: entry.tag, value: rest.prefix(entry.length), scope: application.scope)
                return Element(annotation, reveal: reveal)
            }
            value = elements.map(\.value).joined()
        }
    }
}

extension InspectedApplication {
    /// The ASCII part of the Application Label (tag 50), whose format allows no other characters (EMV Book 4, Annex B).
    var label: String? {
        value(0x50).map { label in
            String(decoding: label.map { (0x20...0x7E).contains($0) ? $0 : UInt8(ascii: "?") }, as: UTF8.self)
        }
    }

    var scheme: String? { KnownApplication.matching(aid)?.scheme ?? KnownApplication.scheme(of: aid) }

    /// The priority from 1, the highest, to 15; nil if the card sets none.
    var priority: Int? {
        let rank = ApplicationPriority(value(0x87)).rank
        return rank > 15 ? nil : rank
    }

    private var track2: Track2? { (value(0x57) ?? value(0x9F6B)).flatMap { try? Track2($0) } }

    /// The account number from 5A, else from track 2.
    var accountNumber: PAN? { value(0x5A).flatMap { PAN(packed: $0) } ?? track2?.pan }

    /// The expiration date from 5F24, else from track 2.
    var expiration: ExpirationDate? { value(0x5F24).flatMap { ExpirationDate(packed: $0) } ?? track2?.expiration }

    func number(_ tag: TLVTag, decimal: Bool = false) -> Int? {
        guard let value = value(tag), (1...4).contains(value.count) else { return nil }
        return Int(value.hex, radix: decimal ? 10 : 16)
    }
}
