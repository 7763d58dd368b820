public import EMVContactless
import SmartCard

/// The EMV data of a receipt.  Binary data objects are hexadecimal; an absent one is an empty string.
public struct ReceiptDetails: Codable, Hashable, Sendable {
    /// Tag 9F12 if the terminal can print it, otherwise tag 50.
    public let applicationPreferredName: String
    /// Tag 84, the dedicated file name, which begins with the application identifier: hexadecimal.
    public let dedicatedFileName: String
    /// Tag 8A, the authorization response code: two characters.
    public let authorizationResponseCode: String
    /// Tag 9F26, the application cryptogram: hexadecimal, 8 bytes.
    public let applicationCryptogram: String
    /// The type of the cryptogram, from tag 9F27.
    public let cryptogramType: ApplicationCryptogramType?
    /// Tag 95, the terminal verification results: hexadecimal, 5 bytes.
    public let terminalVerificationResults: String
    /// Tag 9B, the transaction status information: hexadecimal, 2 bytes.
    public let transactionStatusInformation: String
    /// Tag 9F10, the issuer application data: hexadecimal, up to 32 bytes.
    public let issuerApplicationData: String
    /// Tag 5F57, the account type, in the payment service's words: `Credit`, or `Default` if none was selected.
    public let accountType: String?
    public let cardholderVerificationMethod: CardholderVerificationMethod?
    /// The issuer's authorization code, tag 89.
    public let authorizationCode: String?
    public let authorizationMode: AuthorizationMode?

    /// Creates details from single values.
    ///
    /// - Parameters:
    ///   - applicationPreferredName: tag 9F12 if the terminal can print it, otherwise tag 50.
    ///   - dedicatedFileName: tag 84, in hexadecimal digits.
    ///   - authorizationResponseCode: tag 8A; empty if there is none.
    ///   - applicationCryptogram: tag 9F26, in hexadecimal digits; empty if there is none.
    ///   - cryptogramType: the type of the cryptogram; nil without one.
    ///   - terminalVerificationResults: tag 95, in hexadecimal digits; empty if there are none.
    ///   - transactionStatusInformation: tag 9B, in hexadecimal digits; empty if there is none.
    ///   - issuerApplicationData: tag 9F10, in hexadecimal digits; empty if there is none.
    ///   - accountType: the type of the account; nil if it is not known.
    ///   - cardholderVerificationMethod: the method that was performed; nil if it is not known.
    ///   - authorizationCode: tag 89; nil if there is none.
    ///   - authorizationMode: nil to derive it from the response code and the cryptogram.
    public init(
        applicationPreferredName: String, dedicatedFileName: String, authorizationResponseCode: String = "",
        applicationCryptogram: String = "", cryptogramType: ApplicationCryptogramType? = nil,
        terminalVerificationResults: String = "", transactionStatusInformation: String = "",
        issuerApplicationData: String = "", accountType: String? = nil,
        cardholderVerificationMethod: CardholderVerificationMethod? = nil, authorizationCode: String? = nil,
        authorizationMode: AuthorizationMode? = nil
    ) {
        self.applicationPreferredName = applicationPreferredName
        self.dedicatedFileName = dedicatedFileName
        self.authorizationResponseCode = authorizationResponseCode
        self.applicationCryptogram = applicationCryptogram
        self.cryptogramType = cryptogramType
        self.terminalVerificationResults = terminalVerificationResults
        self.transactionStatusInformation = transactionStatusInformation
        self.issuerApplicationData = issuerApplicationData
        self.accountType = accountType
        self.cardholderVerificationMethod = cardholderVerificationMethod
        self.authorizationCode = authorizationCode
        self.authorizationMode =
            authorizationMode
            ?? AuthorizationMode(responseCode: authorizationResponseCode, cryptogram: cryptogramType)
    }

    /// Creates details from the kernel's facts and the data that the issuer and the payment service add.
    public init(
        _ facts: ReceiptFacts, authorizationResponseCode: String = "", transactionStatusInformation: String = "",
        issuerApplicationData: String = "", accountType: String? = nil, authorizationCode: String? = nil
    ) {
        self.init(
            applicationPreferredName: facts.preferredName ?? facts.label ?? "",
            dedicatedFileName: facts.applicationIdentifier.hex, authorizationResponseCode: authorizationResponseCode,
            applicationCryptogram: facts.applicationCryptogram?.hex ?? "",
            cryptogramType: facts.cryptogramInformationData.flatMap(
                ApplicationCryptogramType.init(cryptogramInformationData:)),
            terminalVerificationResults: facts.terminalVerificationResults?.bytes.hex ?? "",
            transactionStatusInformation: transactionStatusInformation, issuerApplicationData: issuerApplicationData,
            accountType: accountType,
            cardholderVerificationMethod: CardholderVerificationMethod(facts.cardholderVerification),
            authorizationCode: authorizationCode)
    }

    private enum CodingKeys: String, CodingKey {
        case applicationPreferredName = "application_preferred_name"
        case dedicatedFileName = "dedicated_file_name"
        case authorizationResponseCode = "authorization_response_code"
        case applicationCryptogram = "application_cryptogram"
        case cryptogramType = "cryptogram_type"
        case terminalVerificationResults = "terminal_verification_results"
        case transactionStatusInformation = "transaction_status_information"
        case issuerApplicationData = "issuer_application_data"
        case accountType = "account_type"
        case cardholderVerificationMethod = "cardholder_verification_method"
        case authorizationCode = "authorization_code"
        case authorizationMode = "authorization_mode"
    }

    /// Decodes details.  An absent string becomes empty.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: CodingKeys.self)
        func text(_ key: CodingKeys) throws -> String {
            try container.decodeIfPresent(String.self, forKey: key) ?? ""
        }
        self.init(
            applicationPreferredName: try text(.applicationPreferredName),
            dedicatedFileName: try text(.dedicatedFileName),
            authorizationResponseCode: try text(.authorizationResponseCode),
            applicationCryptogram: try text(.applicationCryptogram),
            cryptogramType: try container.decodeIfPresent(ApplicationCryptogramType.self, forKey: .cryptogramType),
            terminalVerificationResults: try text(.terminalVerificationResults),
            transactionStatusInformation: try text(.transactionStatusInformation),
            issuerApplicationData: try text(.issuerApplicationData),
            accountType: try container.decodeIfPresent(String.self, forKey: .accountType),
            cardholderVerificationMethod: try container.decodeIfPresent(
                CardholderVerificationMethod.self, forKey: .cardholderVerificationMethod),
            authorizationCode: try container.decodeIfPresent(String.self, forKey: .authorizationCode),
            authorizationMode: try container.decodeIfPresent(AuthorizationMode.self, forKey: .authorizationMode))
    }
}

/// The party that authorized a transaction.
public enum AuthorizationMode: String, Codable, CaseIterable, Hashable, Sendable {
    /// The issuer authorized it online.
    case issuer
    /// The card authorized it offline.
    case card

    /// Derives the mode from the response code, or, without one, from the card's first cryptogram.
    ///
    /// - Returns: nil if neither determines it.
    public init?(responseCode: String, cryptogram: ApplicationCryptogramType?) {
        // EMV Book 4, A6: the terminal's own codes for offline approval, offline decline, and failure to go online.
        let offline: Set = ["Y1", "Z1", "Y3", "Z3"]
        switch (responseCode, cryptogram) {
        case ("", .arqc?): self = .issuer
        case ("", .tc?), ("", .aac?): self = .card
        case ("", nil): return nil
        case (let code, _): self = offline.contains(code.uppercased()) ? .card : .issuer
        }
    }
}

/// The method by which the cardholder was verified.
public enum CardholderVerificationMethod: String, Codable, CaseIterable, Hashable, Sendable {
    case noCVM = "none"
    case signature
    case onlinePIN = "online_pin"
    case offlinePIN = "offline_pin"
    case offlinePINAndSignature = "offline_pin_and_signature"
    /// The consumer device verified the cardholder: a passcode, a fingerprint, a face.
    case confirmationCode = "confirmation_code"
    case failed

    /// Maps the method in a contactless kernel's outcome.
    public init(_ method: Outcome.CVM) {
        self =
            switch method {
            case .none: .noCVM
            case .signature: .signature
            case .onlinePIN: .onlinePIN
            case .deviceCVM: .confirmationCode
            }
    }

    /// Reads CVM Results, tag 9F34 (EMV Book 4, A4; codes as in Book 3, C3).
    ///
    /// A contactless card does not verify a PIN offline.  In a contactless transaction that code means that the
    /// consumer device verified the cardholder: `01 00 02` (EMV Contactless Book C-2, 7.5, CVM.1 to CVM.4: above the
    /// reader's CVM required limit).
    ///
    /// - Parameters:
    ///   - cvmResults: tag 9F34, 3 bytes.
    ///   - readMethod: the way in which the card was read.
    /// - Returns: nil if the value is not three bytes long, for the issuer's proprietary methods, and for methods that
    ///   the interface does not support.
    public init?(cvmResults: some Collection<UInt8>, readMethod: CardReadMethod) {
        let bytes = Array(cvmResults)
        guard bytes.count == 3 else { return nil }
        guard bytes[2] != 0x01 else {
            self = .failed
            return
        }
        let isContactless = readMethod == .contactlessEMV || readMethod == .contactlessMagneticStripe
        switch bytes[0] & 0x3F {
        case 0x00: self = .failed
        case 0x01 where isContactless: self = .confirmationCode
        case 0x03 where isContactless, 0x04 where isContactless, 0x05 where isContactless: return nil
        case 0x01, 0x04: self = .offlinePIN
        case 0x02: self = .onlinePIN
        case 0x03, 0x05: self = .offlinePINAndSignature
        case 0x1E: self = .signature
        case 0x1F, 0x3F: self = .noCVM
        default: return nil
        }
    }
}
