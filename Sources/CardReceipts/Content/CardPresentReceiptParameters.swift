public import EMVContactless
public import Foundation
import SmartCard

/// The receipt data of a card payment.
public struct CardPresentReceiptParameters: Codable, Hashable, Sendable {
    public enum TransactionType: String, Codable, CaseIterable, Hashable, Sendable {
        case sale, refund
        /// A sale that was stored while the payment service was unreachable.  Nobody has authorized it yet.
        case storedSale = "stored_sale"
    }

    public let type: TransactionType
    /// The amount in the currency's minor unit.
    public let amount: UInt
    /// The ISO 4217 code of the currency: `EUR`.
    public let currency: String
    /// The time of the payment service's answer; for a stored sale, the time at which it was accepted.
    public let time: ReceiptTime
    public let card: ReceiptCard
    public let orderID: String?

    /// Creates the receipt data.
    ///
    /// - Parameters:
    ///   - type: a sale or a refund.
    ///   - amount: in the currency's minor unit.
    ///   - currency: an ISO 4217 code in either case; the currency must have a minor unit.
    ///   - date: the time of the transaction.
    ///   - timeZone: the time zone of the place of sale.
    ///   - cardDetails: the card and the result of the transaction.
    ///   - orderID: the number of the order; nil if there is none.
    /// - Throws: ``ReceiptError``.
    public init(
        type: TransactionType, amount: UInt, currency: String, date: Date, timeZone: TimeZone = .current,
        cardDetails: CardPresentTransactionDetails, orderID: String? = nil
    ) throws(ReceiptError) {
        try self.init(
            type: type, amount: amount, currency: currency, time: ReceiptTime(date, timeZone: timeZone),
            card: ReceiptCard(cardDetails), orderID: orderID)
    }

    private init(
        type: TransactionType, amount: UInt, currency: String, time: ReceiptTime, card: ReceiptCard, orderID: String?
    ) throws(ReceiptError) {
        let currency = currency.uppercased()
        guard currency.isFilled else { throw .missingRequiredField(.currency) }
        guard currency.utf8.count == 3, let entry = Currency[currency], entry.code == currency, entry.exponent != nil
        else { throw .malformedField(.currency) }
        guard type == .refund || card.emv != nil || !card.entryMode.isEMV else { throw .missingRequiredField(.emv) }
        (self.type, self.amount, self.currency) = (type, amount, currency)
        // EMV data belongs to the sale: a refund involves no cryptogram, no PIN and no signature.
        self.card = type == .refund ? card.withoutEMV : card
        (self.time, self.orderID) = (time, orderID?.receiptText)
    }

    private enum CodingKeys: String, CodingKey {
        case type, amount, currency, time, card
        case orderID = "order_id"
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        try self.init(
            type: container.required(.type, .transactionType), amount: container.required(.amount, .amount),
            currency: container.required(.currency, .currency), time: container.required(.time, .dateAndTime),
            card: container.required(.card, .lastFourDigits),
            orderID: container.decodeIfPresent(String.self, forKey: .orderID))
    }
}

/// The card data that a receipt may show.
public struct ReceiptCard: Codable, Hashable, Sendable {
    public let brand: CardBrand
    /// The last four digits of the account number.
    public let lastFourDigits: String
    public let entryMode: CardReadMethod
    /// The EMV data; nil if the card was not read by EMV, and on the receipt of a refund.
    public let emv: EMV?

    /// Creates the card data from a payment service's details.
    ///
    /// - Throws: ``ReceiptError``.
    public init(_ details: CardPresentTransactionDetails) throws(ReceiptError) {
        guard let entryMode = details.readMethod else { throw .missingRequiredField(.entryMode) }
        let emv: EMV? = if let receipt = details.receipt { try EMV(receipt) } else { nil }
        try self.init(brand: details.brand, lastFourDigits: details.last4, entryMode: entryMode, emv: emv)
    }

    private init(_ card: ReceiptCard, emv: EMV?) {
        (brand, lastFourDigits, entryMode) = (card.brand, card.lastFourDigits, card.entryMode)
        self.emv = emv
    }

    var withoutEMV: Self { ReceiptCard(self, emv: nil) }

    private init(
        brand: CardBrand, lastFourDigits: String, entryMode: CardReadMethod, emv: EMV?
    ) throws(ReceiptError) {
        guard brand != .unknown else { throw .missingRequiredField(.cardBrand) }
        guard lastFourDigits.isFilled else { throw .missingRequiredField(.lastFourDigits) }
        guard lastFourDigits.utf8.count == 4, lastFourDigits.utf8.allSatisfy({ (0x30...0x39).contains($0) }) else {
            throw .malformedField(.lastFourDigits)
        }
        (self.brand, self.lastFourDigits, self.entryMode, self.emv) = (brand, lastFourDigits, entryMode, emv)
    }

    private enum CodingKeys: String, CodingKey {
        case brand, emv
        case lastFourDigits = "last4"
        case entryMode = "entry_mode"
    }

    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        try self.init(
            brand: container.required(.brand, .cardBrand),
            lastFourDigits: container.required(.lastFourDigits, .lastFourDigits),
            entryMode: container.required(.entryMode, .entryMode),
            emv: container.decodeIfPresent(EMV.self, forKey: .emv))
    }

    /// The lines of an EMV transaction.  Hexadecimal is in upper case; nil is not printed.
    public struct EMV: Codable, Hashable, Sendable {
        public let applicationName: String
        /// The application identifier, 5 to 16 bytes.
        public let applicationIdentifier: String
        public let cardholderVerification: CardholderVerificationMethod
        /// The account type, required outside the United States.
        public let accountType: String?
        public let authorizationCode: String?
        public let authorizationMode: AuthorizationMode?
        /// Two letters or digits.
        public let authorizationResponseCode: String?
        /// 8 bytes.
        public let applicationCryptogram: String?
        public let cryptogramType: ApplicationCryptogramType?
        /// 5 bytes.
        public let terminalVerificationResults: String?
        /// 2 bytes.
        public let transactionStatusInformation: String?
        /// 1 to 32 bytes.
        public let issuerApplicationData: String?

        /// Creates the lines from receipt details.
        ///
        /// - Throws: ``ReceiptError``.
        public init(_ details: ReceiptDetails) throws(ReceiptError) {
            guard details.applicationPreferredName.isFilled else { throw .missingRequiredField(.applicationName) }
            guard let verification = details.cardholderVerificationMethod else {
                throw .missingRequiredField(.cardholderVerification)
            }
            guard let identifier = try Self.hex(details.dedicatedFileName, 5...16, .applicationIdentifier) else {
                throw .missingRequiredField(.applicationIdentifier)
            }
            applicationName = details.applicationPreferredName.receiptText
            applicationIdentifier = identifier
            cardholderVerification = verification
            accountType = Self.filled(details.accountType)?.receiptText
            authorizationMode = details.authorizationMode
            cryptogramType = details.cryptogramType
            authorizationCode = try Self.letters(details.authorizationCode, 1...6, .authorizationCode)
            authorizationResponseCode = try Self.letters(
                details.authorizationResponseCode, 2...2, .authorizationResponseCode)
            applicationCryptogram = try Self.hex(details.applicationCryptogram, 8...8, .applicationCryptogram)
            terminalVerificationResults = try Self.hex(
                details.terminalVerificationResults, 5...5, .terminalVerificationResults)
            transactionStatusInformation = try Self.hex(
                details.transactionStatusInformation, 2...2, .transactionStatusInformation)
            issuerApplicationData = try Self.hex(details.issuerApplicationData, 1...32, .issuerApplicationData)
        }

        private static func filled(_ text: String?) -> String? { text.flatMap { $0.isFilled ? $0 : nil } }

        private static func hex(
            _ text: String, _ lengths: ClosedRange<Int>, _ field: ReceiptField
        ) throws(ReceiptError) -> String? {
            guard text.isFilled else { return nil }
            guard let bytes = try? [UInt8](hex: text), lengths.contains(bytes.count) else {
                throw .malformedField(field)
            }
            return bytes.hex
        }

        private static func letters(
            _ text: String?, _ lengths: ClosedRange<Int>, _ field: ReceiptField
        ) throws(ReceiptError) -> String? {
            guard let text = filled(text) else { return nil }
            guard lengths.contains(text.utf8.count), text.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) })
            else { throw .malformedField(field) }
            return text
        }

        private enum CodingKeys: String, CodingKey {
            case applicationName = "application_name"
            case applicationIdentifier = "aid"
            case cardholderVerification = "cardholder_verification"
            case accountType = "account_type"
            case authorizationCode = "authorization_code"
            case authorizationMode = "authorization_mode"
            case authorizationResponseCode = "authorization_response_code"
            case applicationCryptogram = "application_cryptogram"
            case cryptogramType = "cryptogram_type"
            case terminalVerificationResults = "terminal_verification_results"
            case transactionStatusInformation = "transaction_status_information"
            case issuerApplicationData = "issuer_application_data"
        }

        public init(from decoder: any Decoder) throws {
            let container = try decoder.container(keyedBy: CodingKeys.self)
            func text(_ key: CodingKeys) throws -> String {
                try container.decodeIfPresent(String.self, forKey: key) ?? ""
            }
            try self.init(
                ReceiptDetails(
                    applicationPreferredName: text(.applicationName), dedicatedFileName: text(.applicationIdentifier),
                    authorizationResponseCode: text(.authorizationResponseCode),
                    applicationCryptogram: text(.applicationCryptogram),
                    cryptogramType: container.decodeIfPresent(ApplicationCryptogramType.self, forKey: .cryptogramType),
                    terminalVerificationResults: text(.terminalVerificationResults),
                    transactionStatusInformation: text(.transactionStatusInformation),
                    issuerApplicationData: text(.issuerApplicationData), accountType: text(.accountType),
                    cardholderVerificationMethod: container.decodeIfPresent(
                        CardholderVerificationMethod.self, forKey: .cardholderVerification),
                    authorizationCode: text(.authorizationCode),
                    authorizationMode: container.decodeIfPresent(AuthorizationMode.self, forKey: .authorizationMode)))
        }
    }
}

/// A time with the UTC offset of its place, so that a reprinted receipt shows the same time everywhere.
public struct ReceiptTime: Codable, Hashable, Sendable {
    /// The time in whole seconds.
    public let date: Date
    /// The UTC offset of the place, in seconds; a whole number of minutes.
    public let secondsFromGMT: Int

    /// Creates a time in a time zone.
    ///
    /// - Throws: ``ReceiptError/malformedField(_:)`` if the year does not have four digits.
    public init(_ date: Date, timeZone: TimeZone = .current) throws(ReceiptError) {
        try self.init(date, secondsFromGMT: timeZone.secondsFromGMT(for: date))
    }

    private init(_ date: Date, secondsFromGMT: Int) throws(ReceiptError) {
        // The years 1000 to 9998: with any offset the year still has four digits.
        guard (-30_610_224_000..<253_370_764_800).contains(date.timeIntervalSince1970) else {
            throw .malformedField(.dateAndTime)
        }
        self.date = Date(timeIntervalSince1970: date.timeIntervalSince1970.rounded(.down))
        self.secondsFromGMT = secondsFromGMT / 60 * 60
    }

    /// The year, month, day, hour, minute and second.
    var components: [Int] {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let parts = calendar.dateComponents(
            [.year, .month, .day, .hour, .minute, .second], from: date.addingTimeInterval(Double(secondsFromGMT)))
        return [parts.year, parts.month, parts.day, parts.hour, parts.minute, parts.second].map { $0 ?? 0 }
    }

    /// The time in RFC 3339 format: `2026-11-22T14:05:09+01:00`.
    public var text: String {
        let parts = components.map { ($0 < 10 ? "0" : "") + String($0) }
        let minutes = abs(secondsFromGMT) / 60
        let offset = [minutes / 60, minutes % 60].map { ($0 < 10 ? "0" : "") + String($0) }.joined(separator: ":")
        return parts[0...2].joined(separator: "-") + "T" + parts[3...5].joined(separator: ":")
            + (secondsFromGMT < 0 ? "-" : "+") + offset
    }

    /// Parses a time in the format of ``text``; `Z` stands for `+00:00`.
    ///
    /// - Throws: ``ReceiptError/malformedField(_:)``.
    public init(_ text: String) throws(ReceiptError) {
        let whole = text.hasSuffix("Z") ? text.dropLast() + "+00:00" : text
        let numbers = whole.split { !$0.isASCII || !$0.isNumber }.compactMap { Int($0) }
        guard whole.utf8.count == 25, numbers.count == 8, numbers[6] < 24, numbers[7] < 60 else {
            throw .malformedField(.dateAndTime)
        }
        let offset = (numbers[6] * 60 + numbers[7]) * (whole.utf8.dropLast(5).last == UInt8(ascii: "-") ? -60 : 60)
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        let parts = DateComponents(
            year: numbers[0], month: numbers[1], day: numbers[2], hour: numbers[3], minute: numbers[4],
            second: numbers[5])
        guard let date = calendar.date(from: parts) else { throw .malformedField(.dateAndTime) }
        try self.init(date.addingTimeInterval(Double(-offset)), secondsFromGMT: offset)
        // The 30th of February becomes another day, and so does not match the text.
        guard self.text == whole || offset == 0 && whole.hasSuffix("-00:00") else {
            throw .malformedField(.dateAndTime)
        }
    }

    public init(from decoder: any Decoder) throws {
        try self.init(decoder.singleValueContainer().decode(String.self))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(text)
    }
}
