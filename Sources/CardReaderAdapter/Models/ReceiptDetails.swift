public import EMVContactless
import SmartCard

/// What a receipt says of an EMV transaction.  Hexadecimal where a data object is binary; empty where there is none.
public struct ReceiptDetails: Codable, Hashable, Sendable {
    /// Tag 9F12 where the terminal can print it, else tag 50.
    public let applicationPreferredName: String
    /// Tag 84, which the application identifier begins: hexadecimal.
    public let dedicatedFileName: String
    /// Tag 8A: two characters.
    public let authorizationResponseCode: String
    /// Tag 9F26: hexadecimal, 8 bytes.
    public let applicationCryptogram: String
    /// Of tag 9F27.
    public let cryptogramType: CryptogramType?
    /// Tag 95: hexadecimal, 5 bytes.
    public let terminalVerificationResults: String
    /// Tag 9B: hexadecimal, 2 bytes.
    public let transactionStatusInformation: String
    /// Tag 9F10: hexadecimal, up to 32 bytes.
    public let issuerApplicationData: String
    /// Tag 5F57, as the payment service puts it: `Credit`, and `Default` where none was selected.
    public let accountType: String?
    public let cardholderVerificationMethod: CardholderVerificationMethod?
    /// The issuer's, tag 89.
    public let authorizationCode: String?
    public let authorizationMode: AuthorizationMode?

    /// - Parameter authorizationMode: nil for what the response code and the cryptogram tell.
    public init(
        applicationPreferredName: String, dedicatedFileName: String, authorizationResponseCode: String = "",
        applicationCryptogram: String = "", cryptogramType: CryptogramType? = nil,
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

    /// Facts of a transaction: the kernel's, and those that issuer and payment service add.
    public init(
        _ facts: ReceiptFacts, authorizationResponseCode: String = "", transactionStatusInformation: String = "",
        issuerApplicationData: String = "", accountType: String? = nil, authorizationCode: String? = nil
    ) {
        self.init(
            applicationPreferredName: facts.preferredName ?? facts.label ?? "",
            dedicatedFileName: facts.applicationIdentifier.hex, authorizationResponseCode: authorizationResponseCode,
            applicationCryptogram: facts.applicationCryptogram?.hex ?? "",
            cryptogramType: facts.cryptogramInformationData.flatMap(CryptogramType.init),
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

    /// What is absent is empty.
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
            cryptogramType: try container.decodeIfPresent(CryptogramType.self, forKey: .cryptogramType),
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

/// Which application cryptogram a card has made (EMV Book 3, 6.5.5).
public enum CryptogramType: String, Codable, CaseIterable, Hashable, Sendable {
    /// Declined.
    case aac = "AAC"
    /// Approved offline, or in the end.
    case tc = "TC"
    /// To be authorised online.
    case arqc = "ARQC"

    /// Reads Cryptogram Information Data, tag 9F27 (EMV Book 3, table 15: the two high bits).
    ///
    /// - Returns: nil for the type that is reserved.
    public init?(cryptogramInformationData byte: UInt8) {
        switch byte >> 6 {
        case 0: self = .aac
        case 1: self = .tc
        case 2: self = .arqc
        default: return nil
        }
    }
}

/// Who has authorised a transaction.
public enum AuthorizationMode: String, Codable, CaseIterable, Hashable, Sendable {
    /// The issuer, online.
    case issuer
    /// The card, offline.
    case card

    /// What the response code says; where there is none, the card's first cryptogram.
    ///
    /// - Returns: nil where neither tells.
    public init?(responseCode: String, cryptogram: CryptogramType?) {
        // EMV Book 4, A6: the terminal's own codes, for what was approved and declined offline, and where it could not go
        // online.
        let offline: Set = ["Y1", "Z1", "Y3", "Z3"]
        switch (responseCode, cryptogram) {
        case ("", .arqc?): self = .issuer
        case ("", .tc?), ("", .aac?): self = .card
        case ("", nil): return nil
        case (let code, _): self = offline.contains(code.uppercased()) ? .card : .issuer
        }
    }
}

/// How the cardholder was verified.
public enum CardholderVerificationMethod: String, Codable, CaseIterable, Hashable, Sendable {
    case noCVM = "none"
    case signature
    case onlinePIN = "online_pin"
    case offlinePIN = "offline_pin"
    case offlinePINAndSignature = "offline_pin_and_signature"
    /// On the cardholder's own device: a code, a finger, a face.
    case confirmationCode = "confirmation_code"
    case failed

    /// The method that a contactless kernel's outcome names.
    public init(_ method: Outcome.CVM) {
        self =
            switch method {
            case .none: .noCVM
            case .signature: .signature
            case .onlinePIN: .onlinePIN
            case .deviceCVM: .confirmationCode
            }
    }

    /// Reads CVM Results, tag 9F34 (EMV Book 4, A4; codes as Book 3, C3).
    ///
    /// A contactless card verifies no PIN offline.  The code for it says there that the cardholder was verified on the device:
    /// `01 00 02` (EMV Contactless Book C-2, 7.5, CVM.1 to CVM.4: above the reader's CVM required limit).
    ///
    /// - Parameter readMethod: how the card was read.
    /// - Returns: nil for what is not three bytes, for methods of the issuer's own, and for those that the interface does not
    ///   have.
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
