import EMVContactless
import Foundation
import SmartCard

/// A receipt as lines with a meaning, in one language: the input of all renderers.
///
/// Its text is safe to print, like the text of the content: it has no control characters, and each line is a single
/// line.
public struct ReceiptDocument: Hashable, Sendable {
    public enum Line: Hashable, Sendable {
        /// The merchant's name, at the head of the receipt.
        case merchant(String)
        /// A centered line below the head.
        case subhead(String)
        /// The word for sale or refund.
        case heading(String)
        case item(String, amount: String)
        /// A detail of the item above.
        case itemDetail(String)
        case total(String, amount: String)
        /// The last line of the totals.
        case amount(String, amount: String)
        case fact(String, value: String)
        /// The method by which the cardholder was verified.
        case statement(String)
        /// The line for the customer's signature.
        case signature(String)
        case note(String)
        case separator
        /// The content of a QR code.
        case code(String)
    }

    public let language: ReceiptLanguage
    public let lines: [Line]

    public init(_ content: ReceiptContent, language: ReceiptLanguage = .english) {
        let writer = Writer(language: language, currency: content.parameters.currency)
        self.language = language
        lines = [
            writer.head(content.merchant) + [writer.heading(content.parameters.type)],
            content.lineItems.flatMap(writer.item),
            writer.totals(content.cartTotals, content.parameters),
            writer.payment(content.parameters),
            content.parameters.card.emv.map { writer.emv($0, content.parameters.type) } ?? [],
            writer.foot(content),
        ]
        .filter { !$0.isEmpty }.joined(separator: [.separator]).map(\.self)
    }

    private struct Writer {
        let language: ReceiptLanguage
        let currency: String
        let decimals: Int

        init(language: ReceiptLanguage, currency: String) {
            (self.language, self.currency) = (language, currency)
            decimals = Currency[currency]?.exponent ?? 0
        }

        func head(_ merchant: ReceiptMerchant) -> [Line] {
            let numbers = [(ReceiptPhrase.merchantID, merchant.merchantID), (.terminalID, merchant.terminalID)]
                .map { phrase, number in "\(language.text(phrase)) \(number)" }
            return [.merchant(merchant.name)]
                + (merchant.address.filter(\.isFilled) + numbers).map { .subhead($0) }
        }

        func heading(_ type: CardPresentReceiptParameters.TransactionType) -> Line {
            .heading(language.text(type == .refund ? .refund : .sale))
        }

        func item(_ item: ReceiptLineItem) -> [Line] {
            let quantity = item.quantity == 1 ? "" : language.number("\(item.quantity)") + " × "
            let attributes = item.attributes.map { "\($0.name): \($0.value)" }
            return [.item(quantity + item.title, amount: text(item.amount))]
                + attributes.map { .itemDetail($0) }
        }

        /// Returns the lines of the totals: subtotal and amount always; the discount if it is not zero or has coupons;
        /// other parts unless zero.
        func totals(_ totals: ReceiptTotals, _ parameters: CardPresentReceiptParameters) -> [Line] {
            var lines = [line(.subtotal, totals.subtotal)]
            if totals.discount != 0 || !totals.coupons.isEmpty {
                let coupons = totals.coupons.isEmpty ? "" : " (\(totals.coupons.joined(separator: ", ")))"
                let amount = language.amount(totals.discount.magnitude, decimals: decimals)
                lines.append(
                    .total(language.text(.discount) + coupons, amount: (totals.discount > 0 ? "-" : "") + amount))
            }
            let others: [(ReceiptPhrase, Int)] = [
                (.fees, totals.fees), (.shipping, totals.shipping), (.taxes, totals.taxes),
            ]
            lines += others.filter { $0.1 != 0 }.map(line)
            let paid = language.amount(parameters.amount, decimals: decimals) + " " + currency
            let phrase: ReceiptPhrase =
                switch parameters.type {
                case .sale: .amountPaid
                case .refund: .amountRefunded
                case .storedSale: .amount
                }
            return lines + [.amount(language.text(phrase), amount: paid)]
        }

        func payment(_ parameters: CardPresentReceiptParameters) -> [Line] {
            let card = parameters.card
            let number = [card.brand.name, "****", card.lastFourDigits].compactMap(\.self).joined(separator: " ")
            var lines: [Line] = [
                fact(.card, number),
                fact(.entryMode, language.text(card.entryMode.phrase)),
                fact(parameters.type == .storedSale ? .accepted : .date, language.text(parameters.time)),
            ]
            if let order = parameters.orderID, order.isFilled { lines.append(fact(.order, order)) }
            if parameters.type == .storedSale { lines.append(.statement(language.text(.stored))) }
            return lines
        }

        func emv(_ emv: ReceiptCard.EMV, _ type: CardPresentReceiptParameters.TransactionType) -> [Line] {
            // The card's request does not matter here: nobody has authorized the sale.
            let mode = type == .storedSale ? nil : emv.authorizationMode
            let facts: [(String, String?)] = [
                (language.text(.application), emv.applicationName),
                ("AID", emv.applicationIdentifier),
                (language.text(.accountType), emv.accountType),
                (language.text(.authorization), emv.authorizationCode),
                (language.text(.authorizationMode), mode.map { language.text($0.phrase) }),
                (language.text(.responseCode), emv.authorizationResponseCode),
                // The name of the cryptogram is its type.
                (emv.cryptogramType?.description ?? language.text(.cryptogram), emv.applicationCryptogram),
                ("TVR", emv.terminalVerificationResults),
                ("IAD", emv.issuerApplicationData),
                ("TSI", emv.transactionStatusInformation),
            ]
            let verification = emv.cardholderVerification
            return facts.compactMap { label, value in value.map { .fact(label, value: $0) } }
                + [.statement(language.text(verification.phrase))]
                + (verification.needsSignature ? [.signature(language.text(.signature))] : [])
        }

        func foot(_ content: ReceiptContent) -> [Line] {
            let note = (content.orderNote ?? "").split(separator: "\n").map(String.init)
            let link = content.link.flatMap { $0.isFilled ? Line.code($0) : nil }
            return note.filter(\.isFilled).map { .note($0) } + (link.map { [$0] } ?? [])
        }

        private func line(_ phrase: ReceiptPhrase, _ amount: Int) -> Line {
            .total(language.text(phrase), amount: text(amount))
        }

        private func fact(_ phrase: ReceiptPhrase, _ value: String) -> Line {
            .fact(language.text(phrase), value: value)
        }

        private func text(_ amount: Int) -> String { language.amount(amount, decimals: decimals) }
    }
}

extension String {
    /// The text as a receipt may show it: one printable line, with account numbers masked.
    var receiptText: String { AccountNumbers.masked(in: printable) }

    /// The text as several printable lines.  An account number may continue on the next line.
    var receiptLines: String {
        let lines = split(whereSeparator: \.isNewline).map { String($0).printable }
        return AccountNumbers.masked(in: lines.joined(separator: "\n"))
    }

    /// The text on one line, without characters that control a printer, a terminal or the writing direction.
    var printable: String {
        var result = UnicodeScalarView()
        for scalar in unicodeScalars {
            if scalar.properties.isWhitespace {
                result.append(" ")
            } else if scalar.isPrintable {
                result.append(scalar)
            }
        }
        return String(result).split(separator: " ").joined(separator: " ")
    }
}

extension Unicode.Scalar {
    /// True unless the scalar is a control or formatting character, unassigned, or for private use.
    var isPrintable: Bool {
        switch properties.generalCategory {
        case .control, .surrogate, .unassigned, .privateUse, .lineSeparator, .paragraphSeparator: false
        // The zero-width joiner of emoji.
        case .format: self == "\u{200D}"
        default: true
        }
    }
}

/// Account numbers in free text.
enum AccountNumbers {
    /// Masks account numbers: `*` replaces all but the last four digits, and the track data that follows.
    ///
    /// An account number is a sequence of 13 to 19 digits with a Luhn check digit that begins like the numbers of a
    /// card network.  One space, hyphen, period or slash may stand between two digits.
    static func masked(in text: String) -> String {
        var characters = Array(text)
        let digits = characters.indices.compactMap { index in
            characters[index].wholeNumberValue.flatMap { (0...9).contains($0) ? (index: index, value: $0) : nil }
        }
        var start = 0
        while start < digits.count {
            guard let end = end(of: digits, from: start, in: characters) else {
                start += 1
                continue
            }
            for digit in digits[start..<end - 4] { characters[digit.index] = "*" }
            mask(trackAfter: digits[end - 1].index, in: &characters)
            start = end
        }
        return String(characters)
    }

    /// Returns the end of the longest account number that begins at `start`.
    private static func end(
        of digits: [(index: Int, value: Int)], from start: Int, in characters: [Character]
    ) -> Int? {
        var last = start
        while last + 1 < digits.count, last - start < 18,
            isGap(characters[(digits[last].index + 1)..<digits[last + 1].index])
        {
            last += 1
        }
        return stride(from: last + 1, through: start + 13, by: -1).first { end in
            SensitiveData.isAccountNumber(digits[start..<end].map { UInt8($0.value) }[...])
        }
    }

    private static func isGap(_ between: ArraySlice<Character>) -> Bool {
        between.count <= 1 && between.allSatisfy { " -./‐‑–·_\n".contains($0) }
    }

    /// Masks track data: after the separator of track 2, `=` or `D`, up to the next space; after that of track 1, `^`,
    /// up to the sentinel.
    private static func mask(trackAfter index: Int, in characters: inout [Character]) {
        let first = index + 1
        guard first < characters.count, "=Dd^".contains(characters[first]) else { return }
        let isTrack1 = characters[first] == "^"
        for index in (first + 1)..<max(characters.count, first + 1) {
            if characters[index] == "?" || characters[index].isNewline || !isTrack1 && characters[index] == " " {
                return
            }
            characters[index] = "*"
        }
    }
}
