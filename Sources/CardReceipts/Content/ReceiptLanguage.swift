/// A language in which receipts are printed.
public enum ReceiptLanguage: String, CaseIterable, Codable, Hashable, Sendable {
    case english = "en"
    case german = "de"
    case french = "fr"
    case spanish = "es"

    /// The separators between thousands and before decimals.
    private var marks: (group: String, decimal: String) {
        switch self {
        case .english: (",", ".")
        case .german, .spanish: (".", ",")
        case .french: ("\u{A0}", ",")
        }
    }

    /// Formats an amount in minor units with the given number of decimals: `1,234.50`.
    func amount(_ units: Int, decimals: Int) -> String {
        (units < 0 ? "-" : "") + amount(units.magnitude, decimals: decimals)
    }

    func amount(_ units: UInt, decimals: Int) -> String {
        let digits = String(units)
        let padded = String(repeating: "0", count: max(0, decimals + 1 - digits.count)) + digits
        return grouped(padded.dropLast(decimals)) + (decimals == 0 ? "" : marks.decimal + padded.suffix(decimals))
    }

    /// Formats a number in the notation of `Decimal`: `0.355`.
    func number(_ text: String) -> String { text.split(separator: ".").joined(separator: marks.decimal) }

    private func grouped(_ digits: Substring) -> String {
        var text = ""
        for (index, digit) in digits.enumerated() {
            if index > 0, (digits.count - index) % 3 == 0 { text += marks.group }
            text.append(digit)
        }
        return text
    }

    /// Formats a time as the day and the time of day with seconds.
    func text(_ time: ReceiptTime) -> String {
        let parts = time.components.map { ($0 < 10 ? "0" : "") + String($0) }
        let day =
            switch self {
            case .english: parts[0...2].joined(separator: "-")
            case .german: parts[0...2].reversed().joined(separator: ".")
            case .french, .spanish: parts[0...2].reversed().joined(separator: "/")
            }
        return day + " " + parts[3...5].joined(separator: ":")
    }

    func text(_ phrase: ReceiptPhrase) -> String {
        let texts = phrase.texts
        return switch self {
        case .english: texts.en
        case .german: texts.de
        case .french: texts.fr
        case .spanish: texts.es
        }
    }
}

/// A phrase of a receipt in the customer's language.
enum ReceiptPhrase: CaseIterable {
    case sale, refund
    case subtotal, discount, fees, shipping, taxes, amountPaid, amountRefunded, amount
    case date, accepted, stored, order, card, entryMode
    case contactlessEMV, contactlessMagneticStripe, chip, magneticStripe, keyed
    case application, accountType, authorization, authorizationMode, byIssuer, byCard, responseCode, cryptogram
    case noCVM, verifiedByPIN, verifiedByPINAndSignature, verifiedBySignature, verifiedOnDevice, notVerified, signature
    case merchantID, terminalID

    var texts: (en: String, de: String, fr: String, es: String) {
        switch self {
        case .sale: ("SALE", "KAUF", "ACHAT", "COMPRA")
        case .refund: ("REFUND", "GUTSCHRIFT", "REMBOURSEMENT", "DEVOLUCIÓN")
        case .subtotal: ("Subtotal", "Zwischensumme", "Sous-total", "Subtotal")
        case .discount: ("Discount", "Rabatt", "Remise", "Descuento")
        case .fees: ("Fees", "Gebühren", "Frais", "Cargos")
        case .shipping: ("Shipping", "Versand", "Livraison", "Envío")
        case .taxes: ("Taxes", "Steuern", "Taxes", "Impuestos")
        case .amountPaid: ("AMOUNT PAID", "BEZAHLT", "MONTANT PAYÉ", "IMPORTE PAGADO")
        case .amountRefunded: ("AMOUNT REFUNDED", "ERSTATTET", "MONTANT REMBOURSÉ", "IMPORTE DEVUELTO")
        case .amount: ("AMOUNT", "BETRAG", "MONTANT", "IMPORTE")
        case .accepted: ("Accepted", "Angenommen", "Accepté", "Aceptado")
        case .stored:
            (
                "Stored, not yet authorized", "Gespeichert, noch nicht autorisiert", "Enregistré, pas encore autorisé",
                "Guardado, aún sin autorizar"
            )
        case .date: ("Date", "Datum", "Date", "Fecha")
        case .order: ("Order", "Bestellung", "Commande", "Pedido")
        case .card: ("Card", "Karte", "Carte", "Tarjeta")
        case .entryMode: ("Entry", "Erfassung", "Saisie", "Lectura")
        case .contactlessEMV: ("Contactless", "Kontaktlos", "Sans contact", "Sin contacto")
        case .contactlessMagneticStripe:
            (
                "Contactless (magnetic stripe)", "Kontaktlos (Magnetstreifen)", "Sans contact (piste)",
                "Sin contacto (banda)"
            )
        case .chip: ("Chip", "Chip", "Puce", "Chip")
        case .magneticStripe: ("Magnetic stripe", "Magnetstreifen", "Piste magnétique", "Banda magnética")
        case .keyed: ("Keyed", "Manuell", "Manuelle", "Manual")
        case .application: ("Application", "Anwendung", "Application", "Aplicación")
        case .accountType: ("Account", "Konto", "Compte", "Cuenta")
        case .authorization: ("Authorization", "Autorisierung", "Autorisation", "Autorización")
        case .authorizationMode: ("Mode", "Modus", "Mode", "Modo")
        case .byIssuer: ("Issuer", "Herausgeber", "Émetteur", "Emisor")
        case .byCard: ("Card", "Karte", "Carte", "Tarjeta")
        case .responseCode: ("Response code", "Antwortcode", "Code réponse", "Código resp.")
        case .cryptogram: ("Cryptogram", "Kryptogramm", "Cryptogramme", "Criptograma")
        case .noCVM:
            (
                "No cardholder verification", "Keine Prüfung des Karteninhabers", "Aucune vérification du porteur",
                "Sin verificación del titular"
            )
        case .verifiedByPIN: ("Verified by PIN", "Mit PIN geprüft", "Vérifié par code", "Verificado por PIN")
        case .verifiedByPINAndSignature:
            (
                "Verified by PIN and signature", "Mit PIN und Unterschrift geprüft", "Vérifié par code et signature",
                "Verificado por PIN y firma"
            )
        case .verifiedBySignature:
            ("Verified by signature", "Mit Unterschrift geprüft", "Vérifié par signature", "Verificado por firma")
        case .verifiedOnDevice:
            (
                "Verified on the cardholder's device", "Am Gerät des Karteninhabers geprüft",
                "Vérifié sur l'appareil du porteur", "Verificado en el dispositivo del titular"
            )
        case .notVerified:
            (
                "Cardholder verification failed", "Prüfung des Karteninhabers misslungen",
                "Échec de la vérification du porteur", "Verificación del titular fallida"
            )
        case .signature: ("Signature", "Unterschrift", "Signature", "Firma")
        case .merchantID: ("Merchant", "Händler", "Commerçant", "Comercio")
        case .terminalID: ("Terminal", "Terminal", "Terminal", "Terminal")
        }
    }
}

extension CardholderVerificationMethod {
    var phrase: ReceiptPhrase {
        switch self {
        case .noCVM: .noCVM
        case .signature: .verifiedBySignature
        case .onlinePIN, .offlinePIN: .verifiedByPIN
        case .offlinePINAndSignature: .verifiedByPINAndSignature
        case .confirmationCode: .verifiedOnDevice
        case .failed: .notVerified
        }
    }

    /// True if the customer has to sign.
    var needsSignature: Bool { self == .signature || self == .offlinePINAndSignature }
}

extension AuthorizationMode {
    var phrase: ReceiptPhrase {
        switch self {
        case .issuer: .byIssuer
        case .card: .byCard
        }
    }
}

extension CardReadMethod {
    /// True if the card supplied EMV data objects.
    var isEMV: Bool { self == .contactlessEMV || self == .chip }

    var phrase: ReceiptPhrase {
        switch self {
        case .contactlessEMV: .contactlessEMV
        case .contactlessMagneticStripe: .contactlessMagneticStripe
        case .chip: .chip
        case .magneticStripe: .magneticStripe
        case .keyed: .keyed
        }
    }
}
